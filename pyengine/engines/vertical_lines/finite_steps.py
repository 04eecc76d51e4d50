"""Steps of finitely many losses as a kind of steps on lines.

The atoms of a finite law are its nodes.  The whole law is its flat part: the transform need not
decay, so that lines need another kind beside it whose transform does (docs/theory/kinds).
"""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property
from pyengine.engines.vertical_lines.decay import Decay
from pyengine.engines.vertical_lines.nodes import PanelRule, StepNodes
from pyengine.engines.vertical_lines.shapes import NO_MASSES, At, Fall, LossShape
from pyengine.engines.vertical_lines.tilted import NodeStep, log_mean_at
from pyengine.laws.finite import LOG_ERROR, ROUNDED, FiniteLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.exact_numbers import CONTEXT, as_decimal
from pyengine.numerics.wide import Wide, wide_exp

__all__ = ["FiniteShape"]

FloatArray = npt.NDArray[np.float64]

FAINTEST = -11000.0  # smallest log of a mass that the core takes as m 2^k
NO_RULE = PanelRule(0, 0, 0.0)
SUBNORMAL = 1e-317  # bound of masses that underflow


@dataclass(frozen=True)
class FiniteShape(LossShape):
    """A step of finitely many losses; either law may have infinite ones besides.

    Parameters
    ----------
    law : FiniteLaw
        The ordered pair.
    """

    law: FiniteLaw
    is_few_losses: ClassVar[bool] = True
    __hash__ = LossShape.__hash__

    @property
    def is_symmetric(self) -> bool:
        """Whether the exchanged pair is the same."""
        return self.law.symmetric

    @property
    def is_bounded(self) -> bool:
        """Whether the smallest and the largest loss are those of all atoms."""
        return self.law.ends is None

    @property
    def ends(self) -> tuple[float, float]:
        """The smallest and the largest finite loss."""
        return self.law.support()

    @property
    def off_ends(self) -> float:
        """Bound of the absolute errors of both ends."""
        return self.law.support_error()

    @property
    def alone(self) -> tuple[Fraction, Fraction]:
        """Masses of A at the loss -∞ and of B at +∞."""
        return self.law.alone or NO_MASSES

    @cached_property
    def log_masses(self) -> tuple[float, float]:
        """Logarithms of A's and B's masses of finite losses."""
        of_a, of_b = (float(CONTEXT.ln(as_decimal(1 - mass))) for mass in self.alone)
        return of_a, of_b

    @cached_property
    def nodes(self) -> StepNodes:
        """The atoms, each with a bound of its mass's relative error."""
        law = self.law
        beside, error = np.zeros(law.loss.size), ROUNDED * float(np.abs(law.loss).max())
        if law.fine is not None:
            beside, error = law.fine.beside(law.loss)
        loss = (Wide(law.loss) + beside).parts
        mass, power = wide_exp(self._log_mass)
        # of each mass, and the error common to all
        off = 2.0 * (LOG_ERROR * (1.0 + np.abs(law.log_a)) + law.error)
        return StepNodes(loss, mass, power, error + law.loss_error, off * (1.0 + 1e-9), NO_RULE)

    @cached_property
    def _log_mass(self) -> FloatArray:
        """Logarithms of A's masses."""
        return np.stack([self.law.log_a, np.zeros(self.law.log_a.size)])

    def log_mean_bound(self, tilt: float) -> float:
        """Upper bound of log E_A e^(``tilt`` loss)."""
        log = log_mean_at(self.nodes, self._log_mass, tilt)
        deepest = float(np.abs(self.law.log_a).max())
        return log.most + LOG_ERROR * (1.0 + deepest) + self.law.error

    def cumulants(self, tilt: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Estimates of log E_A e^(λ loss), and of mean and variance of the tilted loss."""
        loss, log_a = self.law.loss, self.law.log_a
        found = np.empty((3, tilt.size))
        per_part = max(1, 2**20 // loss.size)
        for i in range(0, tilt.size, per_part):
            part = slice(i, i + per_part)
            exponent = log_a + tilt[part, None] * loss
            top = exponent.max(axis=1)
            with np.errstate(under="ignore"):
                share = fn.exp(exponent - top[:, None])
            total = share.sum(axis=1)
            mean = share @ loss / total
            spread = (share * (loss - mean[:, None]) ** 2).sum(axis=1) / total
            found[:, part] = top + fn.log(total), mean, np.maximum(spread, 1e-300)
        return found[0], found[1], found[2]

    def expected_nodes(self, frequency: float) -> float:
        """The number of atoms."""
        del frequency
        return float(self.law.loss.size)

    def log_at_ends(self, at: At) -> float:
        """Logarithm of the tilted mass of the flat part: of all."""
        del at
        return 0.0

    def fall(self, at: At, variance: float, frequency: FloatArray) -> Fall:
        """No decay."""
        del at, variance
        return Fall(np.ones(frequency.size), np.zeros(frequency.size))

    def tilted(self, at: At, frequency: float, enough: float, spacing: float) -> FiniteStep | None:
        """The step at a tilt, for frequencies up to one; None as of `NodeStep.reaching`."""
        del enough, spacing
        return FiniteStep(self, at.tilt, self.nodes, 0.0).reaching(at.log_mean, frequency)


class FiniteStep(NodeStep):
    """A step of finitely many losses at a tilt."""

    shape: FiniteShape
    at_ends = 1.0
    decay = Decay(np.zeros(0), np.zeros(0), 0.0)

    def mass_at_ends(self, pole: float) -> float:
        """All mass."""
        return fn.exp(self.shape.log_masses[int(pole)])

    @property
    def removed(self) -> tuple[float, float]:
        """A bound of the mass of atoms that underflow and are left out."""
        lost = SUBNORMAL if self.shape.law.left_out() > 0.0 else 0.0
        return lost, lost

    def largest_from(self, frequency: FloatArray, modulus: float) -> float:
        """1: no decay."""
        del frequency, modulus
        return 1.0
