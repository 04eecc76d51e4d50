"""Laws of a step where one record is replaced by another.

Under Poisson sampling, A is (1 - p) N(0) + p N(+1) and B is (1 - p) N(0) + p N(-1): that pair is
not determined by the loss of the mechanism itself (`SubstitutedGaussian`, `SubstitutedLaplace`).
Without replacement no pair of data sets is the worst for all ε, and `SplicedLaw` is a pair that
dominates all of them (docs/theory/adjacency).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from decimal import Decimal
from fractions import Fraction
from typing import ClassVar

import numpy as np

from pyengine.laws.base import (
    Cells,
    FloatArray,
    Law,
    PoissonSampledLaw,
    ReversedLaw,
    StepLaw,
)
from pyengine.laws.fine import Fine
from pyengine.laws.finite import FiniteLaw
from pyengine.laws.laplace_parameters import LaplaceParameters
from pyengine.laws.normals import (
    Alternatives,
    ExactAlternatives,
    ExactMixturePair,
    MixturePair,
    Normals,
    normal_cells,
)
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT
from pyengine.numerics.sampled_loss import sampled_loss, share_of

__all__ = [
    "SplicedLaw",
    "SubstitutedGaussian",
    "SubstitutedLaplace",
    "spliced",
    "spliced_density",
]


@dataclass(frozen=True)
class SubstitutedGaussian(Law):
    """Poisson-sampled Gaussian step under substitution; both orders have the same law.

    Parameters
    ----------
    noise_multiplier : float
        Standard deviation of the noise over the sensitivity, in (0, ∞).
    probability : float or Fraction
        Sampling probability, in (0, 1), exactly.
    low : float or None
        The noise multiplier minus its double; None where that is unknown, and nothing can be
        proven.
    """

    noise_multiplier: float
    probability: float | Fraction
    low: float | None = None
    symmetric: ClassVar[bool] = True

    def support(self) -> tuple[float, float]:
        """All losses."""
        return -math.inf, math.inf

    def mixtures(self) -> Alternatives | None:
        """Two normals on each side, one of them common."""
        mu, share = 1.0 / self.noise_multiplier, share_of(self.probability)
        a = Normals((-mu, 0.0), (share.p, share.rest))
        b = Normals((0.0, mu), (share.rest, share.p))
        return (MixturePair(a, b),)

    def exact_mixtures(self) -> ExactAlternatives | None:
        """Two normals on each side, with the noise as two doubles."""
        if self.low is None:
            return None
        shift = 1 / (Fraction(self.noise_multiplier) + Fraction(self.low))
        p, none = Fraction(self.probability), Fraction(0)
        return (ExactMixturePair({-shift: (p, none), none: (1 - p, 1 - p), shift: (none, p)}),)

    def cells(self, edges: FloatArray) -> Cells:
        """Mixtures of normal masses between y(L), where A is shifted by -μ and B by μ.

        With μ = 1/noise, μ y = L/2 + asinh((1 - p) e^{μ²/2} sinh(L/2)/p).
        """
        mu = 1.0 / self.noise_multiplier
        _, _, log_p, log_rest, _ = share_of(self.probability)
        half = 0.5 * np.abs(edges)
        log_factor = 0.5 * mu * mu + log_rest - log_p
        with np.errstate(divide="ignore"):
            log_sinh = half + fn.log(-0.5 * fn.expm1(-2.0 * half))
        log_y = log_factor + log_sinh
        near = fn.arcsinh(fn.exp(np.minimum(log_y, 19.0)))
        asinh = np.where(log_y > 18.0, log_y + fn.log(2.0), near)
        y = np.sign(edges) * (half + asinh) / mu
        masses = [normal_cells(y, mean) for mean in (0.0, -mu, mu)]
        parts = [log_rest + masses[0], *(log_p + m for m in masses[1:])]
        log_a, log_b = fn.logaddexp(parts[0], parts[1]), fn.logaddexp(parts[0], parts[2])
        reach = np.abs(y) + mu
        reach = np.maximum(np.append(reach, 0.0), np.append(0.0, reach))
        with np.errstate(over="ignore"):  # an infinite error says that nothing is known
            finite = np.where(np.isfinite(log_a), np.abs(log_a) + np.abs(log_b), 0.0)
            error = UNIT * (128.0 + 8.0 * (finite - log_p - log_rest) + 12.0 * reach * reach)
        # a relative error of sinh moves asinh by at most min(1, asinh) times it, and L by less
        rounding = 16.0 + 4.0 * np.abs(np.where(np.isfinite(log_y), log_y, 0.0))
        rounding += mu * mu + abs(log_rest) + abs(log_p)  # terms of log_y may cancel
        shift = UNIT * (4.0 * np.abs(edges) + 2.0 * np.minimum(np.abs(edges), 1.0) * rounding)
        return Cells(log_a, log_b, error, shift)


@dataclass(frozen=True)
class SubstitutedLaplace(Law):
    """Poisson-sampled Laplace step under substitution; both orders have the same law.

    Parameters
    ----------
    noise_multiplier : float
        Scale of the noise over the sensitivity, in (0, ∞).
    probability : float or Fraction
        Sampling probability, in (0, 1), exactly.
    """

    noise_multiplier: float
    probability: float | Fraction
    symmetric: ClassVar[bool] = True

    def laplace(self) -> LaplaceParameters:
        """Noise and sampling probability."""
        return LaplaceParameters(self.noise_multiplier, self.probability, is_substituted=True)

    def support(self) -> tuple[float, float]:
        """The two atoms: ±(log(1 - p + p e^μ) - log(1 - p + p e^-μ))."""
        high = self._largest()
        return -high, high

    def _largest(self) -> float:
        mu = 1.0 / self.noise_multiplier
        ends = sampled_loss(self.probability, np.array([mu, -mu]))
        return float(ends[0] - ends[1])

    def cells(self, edges: FloatArray) -> Cells:
        """Masses in closed form between x(L), which falls from 1 to -1 (in sensitivities).

        For L < 0, e^{2 μ x} = ((1 - p + p w) e^{-L} - (1 - p))/(p w), w = e^{-μ}; A's mass beyond
        x in (0, 1) is ((1 - p) e^{-μ x} + p (2 - e^{-μ (1 - x)}))/2, B's has e^{-μ (1 + x)}.
        """
        mu = 1.0 / self.noise_multiplier
        p, share_of_rest, log_p, *_ = share_of(self.probability)
        top = self._largest()
        inside = np.clip(np.abs(edges), 0.0, top)
        # log of ((1 - p + p w) e^l - (1 - p))/(p w) = log(1 + (1 - p + p w)(e^l - 1)/(p w))
        log_scale = float(sampled_loss(self.probability, np.array([-mu]))[0]) - log_p + mu
        with np.errstate(divide="ignore"):
            log_grown = fn.log(fn.expm1(np.minimum(inside, 700.0))) + log_scale
        x = np.clip(0.5 * fn.logaddexp(0.0, log_grown) / mu, 0.0, 1.0)
        x = np.where(edges < 0.0, x, -x)
        x = np.where(edges < -top, math.inf, np.where(edges >= top, -math.inf, x))
        masses = []
        for centre in (0.0, 1.0, -1.0):
            masses.append(_laplace_cells(mu * (x - centre)))
        rest = share_of_rest * masses[0]
        with np.errstate(divide="ignore"):
            log_a, log_b = fn.log(rest + p * masses[1]), fn.log(rest + p * masses[2])
        error = np.full(log_a.size, UNIT * (128.0 + 16.0 * mu))
        with np.errstate(over="ignore"):  # an infinite shift says that nothing is known
            shift = UNIT * (64.0 + 8.0 * mu) * (np.abs(edges) + np.minimum(1.0, np.abs(edges)))
        return Cells(log_a, log_b, error, shift)


def _laplace_cells(y: FloatArray) -> FloatArray:
    """Masses of the standard Laplace law between decreasing points, outermost tails included."""
    high = np.concatenate([[math.inf], y])
    low = np.concatenate([y, [-math.inf]])
    with np.errstate(invalid="ignore", over="ignore", under="ignore"):
        gap = np.where(high == low, 0.0, high - low)
        right = 0.5 * fn.exp(-np.maximum(low, 0.0)) * -fn.expm1(-np.maximum(gap, 0.0))
        left = 0.5 * fn.exp(np.minimum(high, 0.0)) * -fn.expm1(-np.maximum(gap, 0.0))
        across = -0.5 * (fn.expm1(np.minimum(low, 0.0)) + fn.expm1(-np.maximum(high, 0.0)))
    return np.asarray(np.where(low >= 0.0, right, np.where(high <= 0.0, left, across)))


@dataclass(frozen=True)
class SplicedLaw(Law):
    """The pair whose profile is that of one law for ε >= 0 and of another one for ε <= 0.

    Parameters
    ----------
    negative, positive : StepLaw
        The laws whose losses below and above 0 are kept; neither has an atom at 0.
    atom : float
        Mass of both laws at loss 0: the jump of the profile's slope in e^ε there.
    """

    negative: StepLaw
    positive: StepLaw
    atom: float

    @property
    def is_proven(self) -> bool:
        """Whether the errors of both laws are proven."""
        return self.negative.is_proven and self.positive.is_proven

    def support(self) -> tuple[float, float]:
        """From the one law's smallest loss to the other one's largest."""
        return self.negative.support()[0], self.positive.support()[1]

    def limits(self) -> tuple[float, float]:
        """As the support, of the limits of both."""
        return self.negative.limits()[0], self.positive.limits()[1]

    def left_out(self) -> float:
        """That of both together."""
        return self.negative.left_out() + self.positive.left_out()

    def support_error(self) -> float:
        """The larger of both."""
        return max(self.negative.support_error(), self.positive.support_error())

    def infinite(self) -> tuple[float, float]:
        """The mass that A has alone in ``negative``, and B in ``positive``."""
        return self.negative.infinite()[0], self.positive.infinite()[1]

    def cells(self, edges: FloatArray) -> Cells:
        """Cells of both laws, joined at 0."""
        zero = int(np.searchsorted(edges, 0.0))
        extended = (
            edges if zero < edges.size and edges[zero] == 0.0 else np.insert(edges, zero, 0.0)
        )
        low = self.negative.cells(extended[: zero + 1])
        high = self.positive.cells(extended[zero:])
        here = fn.log(self.atom) if self.atom > 0.0 else -math.inf
        joined = []
        for below, above in ((low.log_a, high.log_a), (low.log_b, high.log_b)):
            inner = fn.logaddexp(below[zero], here)
            if extended is not edges:  # 0 is no given edge: join the cells on both sides of it
                inner = fn.logaddexp(inner, above[1])
            rest = above[1:] if extended is edges else above[2:]
            joined.append(np.concatenate([below[:zero], np.array([inner]), rest]))
        skip = 1 if extended is edges else 2
        at_zero = max(low.error[zero], float(high.error[1]), 16.0 * UNIT)
        error = np.concatenate([low.error[:zero], [at_zero], high.error[skip:]])
        shift = np.concatenate([low.shift[:zero], high.shift[skip - 1 :]])
        return Cells(joined[0], joined[1], error, shift)


# Map: Theorem 15 of Lebeda et al. (2024) | test_lebeda | theory/adjacency
def spliced(law: FiniteLaw, share: Fraction) -> FiniteLaw:
    """Dominating pair of a symmetric finite law on a batch without replacement, as atoms."""
    up = law.poisson_sampled(share)
    down = up.reversed
    negative, positive = law.loss < -4.0 * UNIT, np.abs(law.loss) <= 4.0 * UNIT
    ties = float(fn.exp(law.log_a[positive]).sum())
    distance = law.a_infinite + float(
        (fn.exp(law.log_a[negative]) * -fn.expm1(law.loss[negative])).sum()
    )
    p, rest, *_ = share_of(share)
    atom = ties + rest * distance
    low, high = down.loss < -4.0 * UNIT * p, up.loss > 4.0 * UNIT * p
    log_atom = [fn.log(atom)] if atom > 0.0 else []

    def digits() -> Fine:
        below, above = down.many_digits(), up.many_digits()
        return below.taken(np.flatnonzero(low)).followed(
            [Decimal(0)] * len(log_atom), above.taken(np.flatnonzero(high))
        )

    return FiniteLaw(
        np.concatenate([down.loss[low], [0.0] * len(log_atom), up.loss[high]]),
        np.concatenate([down.log_a[low], log_atom, up.log_a[high]]),
        np.concatenate([down.log_b[low], log_atom, up.log_b[high]]),
        down.a_infinite,
        up.b_infinite,
        up.error,
        up.loss_error,
        None if down.ends is None or up.ends is None else (down.ends[0], up.ends[1]),
        digits=digits if up.digits is not None and down.digits is not None else None,
        alone=None if up.alone is None or down.alone is None else (down.alone[0], up.alone[1]),
    )


def spliced_density(plain: StepLaw, share: Fraction, distance: float) -> SplicedLaw:
    """Dominating pair for a replaced record that is in the batch with some probability.

    Parameters
    ----------
    plain : StepLaw
        Law of noise on a query that moves by twice the sensitivity; not finite.
    share : Fraction
        Probability that the record is in the batch.
    distance : float
        Total variation distance of ``plain``.
    """
    thinned = PoissonSampledLaw(plain, share)
    return SplicedLaw(ReversedLaw(thinned), thinned, share_of(share).rest * distance)
