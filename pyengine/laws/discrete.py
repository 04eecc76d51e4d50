"""Laws of mechanisms whose loss takes finitely many values, up to a negligible mass.

Discrete Gaussian noise has infinitely many values.  Those of a total mass below e^-800 under both
laws, which is below all doubles, are left out; normalising constants are sums over the others.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine.errors import AccuracyError
from pyengine.laws.fine import Fine
from pyengine.laws.finite import ROUNDED, FiniteLaw
from pyengine.mechanisms import (
    GenericMechanism,
    RandomizedResponse,
)
from pyengine.mechanisms.additive import DiscreteNoise
from pyengine.numerics import functions as fn
from pyengine.numerics.exact_numbers import BEYOND, as_decimal, log_of_rest
from pyengine.numerics.sampled_loss import sampled_loss

__all__ = ["generic_law", "noise_law", "outcomes_of_response", "substituted_law"]

FloatArray = npt.NDArray[np.float64]

DEPTH = 800.0  # masses below e^-DEPTH are left out
MAX_ATOMS = 1 << 22
SMALLEST_RATE = 2.0**-1022  # the smallest normal double


def outcomes_of_response(step: RandomizedResponse) -> list[tuple[Fraction, Fraction]]:
    """Probabilities of the outcomes of randomized response, without and with the record."""
    truth, others = Fraction(step.truth_probability), step.categories - 1
    other = (1 - truth) / others
    return [(truth, other), (other, truth), (other * (others - 1), other * (others - 1))]


def noise_law(step: DiscreteNoise, doubled: bool) -> FiniteLaw:
    """Law of noise on the integers, shifted by the sensitivity, or by twice that if ``doubled``.

    ``doubled`` is for one record in the place of another.
    """
    noise = _Noise(step)
    shift = noise.shift * (2 if doubled else 1)
    k = noise.window(0, shift)
    return noise.law(noise.log_weight(k), noise.log_ratio(k, shift), lambda: noise.digits(k, shift))


# Map: Prop. 13 of Lebeda et al. (2024) | test_laws | theory/adjacency
def substituted_law(step: DiscreteNoise, share: Fraction | float) -> FiniteLaw:
    """Law of a Poisson-sampled discrete step in which one record takes the place of another.

    A is (1 - p) N(0) + p N(+Δ) and B is (1 - p) N(0) + p N(-Δ) (Proposition 13 of Lebeda et al.).
    ``share`` is p, exactly.
    """
    noise = _Noise(step)
    k = noise.window(-noise.shift, noise.shift)
    up, down = (sampled_loss(share, noise.log_ratio(k, s)) for s in (noise.shift, -noise.shift))
    # error of the difference: of both terms, and of what they are computed from
    off = 4.0 * ROUNDED * float((np.abs(up) + np.abs(down)).max())

    def digits() -> Fine:
        with_record, other = (
            noise.digits(k, s).poisson_sampled(Fraction(share), alone=False)
            for s in (noise.shift, -noise.shift)
        )
        return other.minus(with_record)

    return noise.law(noise.log_weight(k) + up, down - up, digits, off)


# Map: the generic (ε, δ) mechanism of Kairouz, Oh and Viswanath | test_exact | theory/finite
def generic_law(step: GenericMechanism) -> FiniteLaw:
    """Law of the least private (ε, δ)-DP mechanism."""
    exact_epsilon, exact_delta = Fraction(step.epsilon), Fraction(step.delta)
    if exact_delta == 1:
        none = np.zeros(0)
        return FiniteLaw(none, none, none, 1.0, 1.0, alone=(Fraction(1), Fraction(1)))
    epsilon = float(exact_epsilon)
    rest = log_of_rest(exact_delta)[0] - fn.log1p(fn.exp(-epsilon))
    loss, log_a = [-epsilon, epsilon], [rest, rest - epsilon]
    return FiniteLaw.from_atoms(
        loss,
        log_a,
        (exact_delta, exact_delta),
        symmetric=True,
        digits=lambda: (
            Fine.of([as_decimal(-exact_epsilon), as_decimal(exact_epsilon)])
            if exact_epsilon
            else Fine.nothing(2)
        ),
    )


class _Noise:
    """Weights of symmetric noise on the integers."""

    def __init__(self, step: DiscreteNoise) -> None:
        self.shift = step.sensitivity
        scale = Fraction(step.noise_multiplier) * step.sensitivity
        self.gaussian = step.family == "gaussian"
        # weight e^(-rate k²) or e^(-rate |k|)
        self.exact_rate = 1 / (2 * scale**2) if self.gaussian else 1 / scale
        self.rate = checks.as_double(self.exact_rate)
        if not SMALLEST_RATE < self.rate < math.inf:
            raise AccuracyError(BEYOND)
        if self.gaussian:
            self.reach = math.ceil(math.sqrt(DEPTH / self.rate)) + 1
            self._check(2 * self.reach)
            k = np.arange(1.0, self.reach + 1.0)
            self.log_total = fn.log1p(2.0 * math.fsum(fn.exp(-self.rate * k * k)))
        else:
            self.reach = 0
            rate = self.rate
            self.log_total = fn.log1p(fn.exp(-rate)) - fn.log(-fn.expm1(-rate))

    def _check(self, size: int) -> None:
        if size > MAX_ATOMS:
            raise AccuracyError(
                f"the discrete law has {size:.3g} values of the loss, more than {MAX_ATOMS}: "
                "scale the query down, or use the continuous noise"
            )

    def window(self, low: int, high: int) -> FloatArray:
        """Integers that matter, for noise centred anywhere from ``low`` to ``high``."""
        low, high = low - self.reach, high + self.reach
        self._check(high - low)
        return np.arange(float(low), high + 1.0)

    def log_weight(self, k: FloatArray) -> FloatArray:
        """Log probability of k; for Laplace, the ends of the window stand for all beyond them."""
        if self.gaussian:
            return np.asarray(-self.rate * k * k - self.log_total)
        log_p = -self.rate * np.abs(k) - self.log_total
        beyond = -fn.log(-fn.expm1(-self.rate))
        log_p[[0, -1]] += beyond  # a geometric series, over which the loss does not change
        return np.asarray(log_p)

    def log_ratio(self, k: FloatArray, shift: int) -> FloatArray:
        """Log of the weight at k - shift over the weight at k."""
        if self.gaussian:
            return np.asarray(self.rate * shift * (2.0 * k - shift))
        return np.asarray(self.rate * (np.abs(k) - np.abs(k - shift)))

    def digits(self, k: FloatArray, shift: int) -> Fine:
        """`log_ratio` to many digits."""
        integers = [int(x) for x in k.tolist()]
        if self.gaussian:
            factors = [shift * (2 * x - shift) for x in integers]
        else:
            factors = [abs(x) - abs(x - shift) for x in integers]
        return Fine.of([as_decimal(self.exact_rate * x) for x in factors])

    def law(
        self,
        log_a: FloatArray,
        loss: FloatArray,
        digits: Callable[[], Fine],
        off: float = 0.0,
    ) -> FiniteLaw:
        """Law with an atom at each integer; ``off`` bounds the errors of losses beyond rounding."""
        # the loss of Gaussian noise is unbounded
        ends = (-math.inf, math.inf) if self.gaussian else None
        # noise and its shifted copy are each other's mirror image, and so are the mixtures
        none = (Fraction(0), Fraction(0))
        return FiniteLaw.from_atoms(loss, log_a, none, off, ends, symmetric=True, digits=digits)
