"""Closed forms in ball arithmetic: one step, or every record in every step."""

from __future__ import annotations

from flint import arb

from .model import QUANTITIES, Point


def upper_normal(x: arb) -> arb:
    """Return the upper tail of the standard normal law."""
    return (x / arb(2).sqrt()).erfc() / 2


def applies(point: Point) -> bool:
    """Whether a closed form covers the point."""
    return point.total_steps == 1 or all(phase.full_batch for phase in point.phases)


def evaluate(point: Point) -> dict[str, arb]:
    """Return the six quantities as enclosures at the working precision."""
    if all(phase.full_batch for phase in point.phases):
        tails = _full_batch_tails(point)
    else:
        tails = _one_step_tails(point)
    p_above, p_below, q_above, q_below = tails
    scale = arb(point.threshold).exp()
    divergences = (q_above - scale * p_above, p_below - q_below / scale)
    return dict(zip(QUANTITIES, (*tails, *divergences), strict=True))


def _full_batch_tails(point: Point) -> tuple[arb, arb, arb, arb]:
    square = sum((phase.steps * phase.mu() ** 2 for phase in point.phases), arb(0))
    root = square.sqrt()
    under_p = (arb(point.threshold) + square / 2) / root
    under_q = under_p - root
    return tuple(upper_normal(x) for x in (under_p, -under_p, under_q, -under_q))


def _one_step_tails(point: Point) -> tuple[arb, arb, arb, arb]:
    (phase,) = point.phases
    mu, p, rest = phase.mu(), phase.exact_probability(), phase.complement()
    z = ((point.offset_threshold().expm1() / phase.odds()).log() + mu**2 / 2) / mu
    p_above, p_below = upper_normal(z), upper_normal(-z)
    q_above = rest * p_above + p * upper_normal(z - mu)
    q_below = rest * p_below + p * upper_normal(mu - z)
    return p_above, p_below, q_above, q_below
