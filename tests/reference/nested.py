"""Check for two and three steps: the convolution integral itself, all of whose terms are >= 0.

The law of S for n steps is an integral over the last step of the law for n - 1 steps. With
z = z_c - e^v, where Y(z_c) = c', the integrand is analytic and decays at both ends, so that the
trapezoidal rule in v converges exponentially. No transform, no contour, no cancellation.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from flint import arb, ctx

from .closed_form import upper_normal
from .model import QUANTITIES, Phase, Point

Tails = tuple[arb, arb, arb, arb]


@dataclass(frozen=True)
class NestedRule:
    """Trapezoidal rule in v: spacing, lowest node, and the working precision."""

    spacing: float
    lowest: float
    bits: int


def evaluate(point: Point, rule: NestedRule) -> dict[str, arb]:
    """Return the six quantities; the radii cover rounding only."""
    before, ctx.prec = ctx.prec, rule.bits
    try:
        steps = [phase for phase in point.phases for _ in range(phase.steps)]
        tails = _tails(steps, point.offset_threshold(), rule)
        scale = arb(point.threshold).exp()
        p_above, p_below, q_above, q_below = tails
        divergences = (q_above - scale * p_above, p_below - q_below / scale)
        return dict(zip(QUANTITIES, (*tails, *divergences), strict=True))
    finally:
        ctx.prec = before


def _tails(steps: list[Phase], threshold: arb, rule: NestedRule) -> Tails:
    """Return P above, P below, Q above, Q below an offset threshold."""
    phase = steps[0]
    mu, p, rest, odds = phase.mu(), phase.exact_probability(), phase.complement(), phase.odds()
    edge = ((threshold.expm1() / odds).log() + mu**2 / 2) / mu
    p_above, p_below = upper_normal(edge), upper_normal(-edge)
    q_above = rest * p_above + p * upper_normal(edge - mu)
    q_below = rest * p_below + p * upper_normal(mu - edge)
    if len(steps) == 1:
        return p_above, p_below, q_above, q_below
    p_below = q_below = arb(0)
    highest = math.log(max(float(edge), -38.0) + 40.0)
    spacing = arb(rule.spacing)
    constant = spacing / (2 * arb.pi()).sqrt()
    for k in range(int((highest - rule.lowest) / rule.spacing)):
        distance = (arb(rule.lowest) + k * spacing).exp()
        z = edge - distance
        left = threshold - ((mu * z - mu**2 / 2).exp() * odds).log1p()
        inner = _tails(steps[1:], left, rule)
        weight = constant * distance * (-z * z / 2).exp()
        ratio = rest + p * (mu * z - mu**2 / 2).exp()
        p_above += weight * inner[0]
        p_below += weight * inner[1]
        q_above += weight * ratio * inner[2]
        q_below += weight * ratio * inner[3]
    return p_above, p_below, q_above, q_below
