"""The relaxed threat model in arbitrary precision.

Trade-off functions of Theorems 1 and 2, Corollary 1 and Lemmas 8 and 9 of Kaissis et al. (2023),
"Optimal privacy guarantees for a relaxed threat model", computed from the laws of the distance:
roots of distribution functions, not the closed forms that the engines use.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction

import mpmath
from flint import arb

from pyengine.mechanisms import (
    GaussianMechanism,
    LaplaceMechanism,
    Mechanism,
    PoissonSampled,
    steps_of,
)
from pyengine.reference.noncentral import Run, agreed, exact, solve, tails

__all__ = ["log_trade_off"]

# Lower and upper tail of P, lower and upper tail of Q, densities of both, at a distance.
Laws = Callable[[arb, int], tuple[arb, arb, arb, arb, arb, arb]]


def log_trade_off(
    mechanism: Mechanism,
    alpha: float | str | Fraction,
    *,
    adjacency: str,
    dimension: int = 1,
    digits: int = 30,
) -> mpmath.mpf:
    """Logarithm of the type-II error of the adversary who tests the length of the output.

    Parameters
    ----------
    mechanism : Mechanism
        One Laplace step or a composition of Gaussian steps, or one of these on a Poisson sample.
    alpha : float, decimal string or Fraction
        Level in (0, 1), meant exactly.
    adjacency : {"add", "remove"}
        j or its inverse.
    dimension : int
        Dimension of a Gaussian query, >= 1.
    digits : int
        Significant digits.

    Returns
    -------
    mpmath.mpf
        log β(α); two computations agree on so many digits (of log β, or of β where it is near 1).

    Raises
    ------
    ValueError
        For a mechanism or a level that is not covered.
    AccuracyError
        If the computations do not agree.

    Examples
    --------
    >>> import pyengine as pe
    >>> from pyengine.reference import relaxed
    >>> print(relaxed.log_trade_off(pe.GaussianMechanism(0.5), 0.1, adjacency="add", digits=20))
    -1.01858319030023
    """
    level = Fraction(alpha)
    if not 0 < level < 1:
        raise ValueError(f"alpha must lie in (0, 1), got {alpha!r}")
    if adjacency not in ("add", "remove"):
        raise ValueError(f"adjacency must be 'add' or 'remove', got {adjacency!r}")
    square, probability, laplace = _parameters(mechanism)

    def compute(run: Run, bits: int) -> arb:
        laws = _folded_laplace(square) if laplace else _squared_length(square, dimension, run)
        high = _highest(float(square), 1 if laplace else dimension, float(min(level, 1 - level)))
        return _log_beta(laws, exact(level), exact(probability), adjacency, bits, high)

    value = agreed(compute, digits)
    with mpmath.workdps(digits + 5):
        return +mpmath.mpf(value.str(digits + 5, radius=False))


def _parameters(mechanism: Mechanism) -> tuple[Fraction, Fraction, bool]:
    """Square of the effect, sampling probability, and whether the noise is Laplace."""
    steps = steps_of(mechanism)
    probability = Fraction(1)
    if len(steps) == 1 and steps[0][1] == 1 and isinstance(steps[0][0], PoissonSampled):
        probability = Fraction(steps[0][0].probability)
        steps = [(steps[0][0].mechanism, 1)]
    if len(steps) == 1 and steps[0][1] == 1 and isinstance(steps[0][0], LaplaceMechanism):
        return 1 / Fraction(steps[0][0].noise_multiplier) ** 2, probability, True
    if not steps or not all(isinstance(step, GaussianMechanism) for step, _ in steps):
        raise ValueError(f"mechanism must be Gaussian steps or one Laplace step, got {mechanism!r}")
    squares = (number / Fraction(step.noise_multiplier) ** 2 for step, number in steps)  # type: ignore[attr-defined]
    return sum(squares, Fraction(0)), probability, False


def _highest(square: float, dimension: int, tail: float) -> float:
    """Log of a distance (squared for Gaussians) beyond all that matters."""
    depth = 2.0 * (50.0 - math.log(tail))
    return math.log(dimension + 4.0 * square + 4.0 * depth + 4.0 * math.sqrt(dimension * depth))


def _squared_length(square: Fraction, dimension: int, run: Run) -> Laws:
    def laws(x: arb, bits: int) -> tuple[arb, arb, arb, arb, arb, arb]:
        d = arb(dimension)
        p = tails(x, d, arb(0), run, bits)
        q = tails(x, d, exact(square), run, bits)
        return p.below, p.above, q.below, q.above, p.density, q.density

    return laws


def _folded_laplace(square: Fraction) -> Laws:
    def laws(x: arb, bits: int) -> tuple[arb, arb, arb, arb, arb, arb]:  # noqa: ARG001
        mu = exact(square).sqrt()
        p_above = (-x).exp()
        if x < mu:
            q_below, q_density = (-mu).exp() * x.sinh(), (-mu).exp() * x.cosh()
            q_above = 1 - q_below
        else:
            q_above = q_density = p_above * mu.cosh()
            q_below = 1 - q_above
        return -(-x).expm1(), p_above, q_below, q_above, p_above, q_density

    return laws


def _log_beta(
    laws: Laws, level: arb, probability: arb, adjacency: str, bits: int, high: float
) -> arb:
    rest = 1 - probability
    small = bool(level < 0.5)

    def function(x: arb, bits: int) -> tuple[arb, arb]:
        p_below, p_above, q_below, q_above, p, q = laws(x, bits)
        if adjacency == "add":  # the level is P's upper tail
            below, above, density = p_below, p_above, p
            upper = small
        else:  # the level is the mixture's lower tail
            below = probability * q_below + rest * p_below
            above = probability * q_above + rest * p_above
            density = probability * q + rest * p
            upper = not small
        target = level if small else 1 - level
        tail = above if upper else below
        sign = -1 if upper else 1
        return sign * (tail.log() - target.log()), density / tail

    x = solve(function, -2000.0, high, bits)
    p_below, p_above, q_below, q_above, _, _ = laws(x, bits)
    if adjacency == "add":
        below = probability * q_below + rest * p_below
        above = probability * q_above + rest * p_above
        return below.log() if below < above else (-above).log1p()
    return p_above.log() if p_above < p_below else (-p_below).log1p()
