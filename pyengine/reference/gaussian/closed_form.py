"""Closed forms in ball arithmetic: one step, or every record in every step."""

from __future__ import annotations

from flint import arb

from pyengine.reference.balls import precision, upper_normal
from pyengine.reference.gaussian.steps import EqualSteps, offset
from pyengine.reference.tails import BallTails

__all__ = ["ClosedGaussian", "applies"]


def applies(phases: tuple[EqualSteps, ...]) -> bool:
    """Whether a closed form covers the composition."""
    return sum(phase.steps for phase in phases) == 1 or all(phase.full_batch for phase in phases)


class ClosedGaussian:
    """Tails and divergences by the normal law.

    Parameters
    ----------
    phases : tuple of Phase
        A composition that `applies` accepts.
    bits : int
        Working precision.
    """

    certified = True

    def __init__(self, phases: tuple[EqualSteps, ...], bits: int) -> None:
        self.phases, self.bits = phases, bits

    def at(self, c: arb) -> BallTails:
        """Return enclosures at a threshold."""
        with precision(self.bits):
            full = all(phase.full_batch for phase in self.phases)
            p_above, p_below, q_above, q_below = self._full_batch(c) if full else self._one_step(c)
            scale = c.exp()
            h_qp, h_pq = q_above - scale * p_above, p_below - q_below / scale
            return BallTails(p_above, p_below, q_above, q_below, h_qp, h_pq)

    def _full_batch(self, c: arb) -> tuple[arb, arb, arb, arb]:
        square = sum((phase.steps * phase.mu() ** 2 for phase in self.phases), arb(0))
        root = square.sqrt()
        under_p = (c + square / 2) / root
        under_q = under_p - root
        return (
            upper_normal(under_p),
            upper_normal(-under_p),
            upper_normal(under_q),
            upper_normal(-under_q),
        )

    def _one_step(self, c: arb) -> tuple[arb, arb, arb, arb]:
        (phase,) = self.phases
        away = c - offset(self.phases)
        if not away > 0:
            return arb(1), arb(0), arb(1), arb(0)
        mu, p, rest = phase.mu(), phase.exact_probability(), phase.complement()
        z = ((away.expm1() / phase.odds()).log() + mu**2 / 2) / mu
        p_above, p_below = upper_normal(z), upper_normal(-z)
        q_above = rest * p_above + p * upper_normal(z - mu)
        q_below = rest * p_below + p * upper_normal(mu - z)
        return p_above, p_below, q_above, q_below
