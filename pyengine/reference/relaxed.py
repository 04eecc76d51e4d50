"""The relaxed threat model in arbitrary precision.

Trade-off functions of Theorems 1 and 2, Corollary 1 and Lemmas 8 and 9 of Kaissis et al. (2023),
"Optimal privacy guarantees for a relaxed threat model".  They are computed as roots of distribution
functions of the distance, not by the closed forms of the engines.
"""

from __future__ import annotations

from fractions import Fraction

import mpmath

from pyengine._support import checks
from pyengine.errors import NotDefinedError
from pyengine.mechanisms import Mechanism, Noise, in_words, steps_of
from pyengine.mechanisms.threat_models import Relaxed
from pyengine.reference.atomic.law import AtomicPair
from pyengine.reference.balls import precision
from pyengine.reference.chi_squared.length import LengthSource
from pyengine.reference.exclusive import exclusive
from pyengine.reference.value import MOST_DIGITS

__all__ = ["length_pair", "log_trade_off"]


@exclusive
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
        The trade-off function j of the paper, or its inverse.
    dimension : int
        Dimension of a Gaussian query, >= 1.
    digits : int
        Significant digits, in [1, 200].

    Returns
    -------
    mpmath.mpf
        log β(α), an estimate: two computations agree on ``digits`` digits of log β, or of β where
        that is near 1.

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
    >>> value = relaxed.log_trade_off(pe.GaussianMechanism(0.5), 0.1, adjacency="add", digits=20)
    >>> print(f"{float(value):.14f}")
    -1.01858319030023
    """
    level = Fraction(checks.probability("alpha", alpha))
    digits = checks.count("digits", digits, least=1, most=MOST_DIGITS)
    if not 0 < level < 1:
        raise ValueError(f"alpha must lie in (0, 1), got {checks.shown(alpha)}")
    checks.choice("adjacency", adjacency, ("add", "remove"))
    pair = length_pair(mechanism, Relaxed(dimension))
    if pair is None:
        raise ValueError(f"mechanism must be one that releases something, got {mechanism!r}")
    sign = 1 if adjacency == "add" else -1
    gamma = pair.trade_off(level, sign, "gamma", digits).value
    if gamma > 0.5:
        beta = pair.trade_off(level, sign, "beta", digits).value
    with mpmath.workdps(digits + 5), precision(4 * digits + 64):
        log_beta = beta.log() if gamma > 0.5 else (-gamma).log1p()
        return +mpmath.mpf(log_beta.str(digits + 5, radius=False))


def length_pair(mechanism: Mechanism, model: Relaxed) -> AtomicPair | None:
    """Return the pair of laws of the length; None if the record is in no step."""
    dimension = model.dimension
    steps = [
        (step, n)
        for step, n in steps_of(mechanism)
        if not (step.scheme == "poisson" and step.share == 0)
    ]
    if not steps:
        return None
    probability = Fraction(1)
    if len(steps) == 1 and steps[0][1] == 1 and steps[0][0].scheme == "poisson":
        probability = Fraction(steps[0][0].share)
        steps = [(steps[0][0].inner, 1)]
    noises: list[tuple[Noise, int]] = [(step.noise, n) for step, n in steps if step.noise]
    if len(steps) == 1 and [(noise.family, n) for noise, n in noises] == [("laplace", 1)]:
        if dimension != 1:
            raise NotDefinedError(f"dimension must be 1 for a Laplace mechanism, got {dimension!r}")
        square = 1 / Fraction(noises[0][0].multiplier) ** 2
        return AtomicPair(LengthSource(square, probability, 1, laplace=True))
    if [noise.family for noise, _ in noises] != ["gaussian"] * len(steps):
        raise NotDefinedError(
            "mechanism must be Gaussian steps or one Laplace step, got "
            + " and ".join(in_words(mechanism))
        )
    variances = [(Fraction(noise.multiplier) ** 2, n) for noise, n in noises]
    square = sum((n / variance for variance, n in variances), Fraction(0))
    if model.combination == "mean":
        total = sum(n for _, n in variances)
        square = total**2 / sum((n * variance for variance, n in variances), Fraction(0))
    return AtomicPair(LengthSource(square, probability, dimension, laplace=False))
