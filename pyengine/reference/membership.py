"""Membership inference privacy of one gradient step in arbitrary precision.

Equation 8 of Leemann, Pawelczyk, Kasneci (2023), "Gaussian Membership Inference Privacy".
"""

from __future__ import annotations

import math
from fractions import Fraction

import mpmath
from flint import arb

from pyengine.reference.balls import exact
from pyengine.reference.chi_squared.ncx2 import Curve
from pyengine.reference.chi_squared.noncentral import agreed, solve, tails
from pyengine.reference.exclusive import exclusive

__all__ = ["log_one_step_trade_off"]

Exact = float | str | Fraction


@exclusive
def log_one_step_trade_off(
    alpha: Exact,
    *,
    batch_size: Exact,
    parameters: int,
    susceptibility: Exact,
    noise: Exact = 0,
    clip: Exact = 1,
    digits: int = 30,
) -> mpmath.mpf:
    """Logarithm of the type-II error of the attack on one noisy gradient step (equation 8).

    Parameters
    ----------
    alpha : float, decimal string or Fraction
        Level in (0, 1), meant exactly.
    batch_size : float, decimal string or Fraction
        n of the paper, meant exactly; n + τ²n²/C² must exceed 1.
    parameters : int
        The number d of parameters.
    susceptibility, noise, clip : float, decimal string or Fraction
        K, τ and C of the paper, meant exactly.
    digits : int
        Significant digits.

    Returns
    -------
    mpmath.mpf
        log β(α), an estimate: two computations agree on ``digits`` digits.

    Raises
    ------
    ValueError
        For an argument outside its domain.
    AccuracyError
        If the computations do not agree.

    Examples
    --------
    >>> from pyengine.reference.membership import log_one_step_trade_off
    >>> step = {"batch_size": 4096, "parameters": 36_500_000, "susceptibility": 36_500_000}
    >>> print(log_one_step_trade_off(0.01, digits=20, **step))
    -4245.67...
    """
    level, k = Fraction(alpha), Fraction(susceptibility)
    n = Fraction(batch_size)
    n += (Fraction(noise) * n / Fraction(clip)) ** 2
    if not 0 < level < 1:
        raise ValueError(f"alpha must lie in (0, 1), got {alpha!r}")
    if not (n > 1 and parameters > 0 and k >= 0):
        raise ValueError(
            "batch_size, with noise, must exceed 1, parameters and susceptibility be >= 0, got "
            f"{float(n)!r}, {parameters!r}, {susceptibility!r}"
        )

    def compute(run: Curve, bits: int) -> arb:
        d, under_null, under_other = arb(parameters), exact(n * k), exact((n - 1) * k)
        small = level <= Fraction(1, 2)
        target = exact(level if small else 1 - level).log()

        def gap(x: arb, bits: int) -> arb:
            below, above = tails(x, d, under_null, run, bits)
            return below.log() - target if small else target - above.log()

        mean, deviation = float(parameters + n * k), math.sqrt(float(2 * parameters + 4 * n * k))
        depth = 50.0 - math.log(float(min(level, 1 - level)))
        high = math.log(mean + deviation * 2.0 * math.sqrt(depth) + 4.0 * depth)
        x = solve(gap, -2000.0, high, bits)
        below, above = tails((x * exact(n / (n - 1))).mid(), d, under_other, run, bits)
        return above.log() if above < below else (-below).log1p()

    value = agreed(compute, digits)
    with mpmath.workdps(digits + 5):
        return +mpmath.mpf(value.str(digits + 5, radius=False))
