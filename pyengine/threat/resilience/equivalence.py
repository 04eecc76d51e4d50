"""Noise whose relaxed guarantee equals the DP guarantee of a larger noise."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from pyengine import special
from pyengine._objects import Guarded
from pyengine._support import checks
from pyengine.api import epsilon, trade_off
from pyengine.errors import AccuracyError
from pyengine.mechanisms import Mechanism
from pyengine.mechanisms.threat_models import ThreatModel
from pyengine.numerics.bracketing import falling_root
from pyengine.threat.resilience.arguments import FloatArray, levels_between, relaxed_model

if TYPE_CHECKING:
    from pyengine.api.typing import ThreatModelWord

__all__ = ["EquivalentNoise", "equivalent_noise"]


class EquivalentNoise(NamedTuple):
    """Noise whose relaxed guarantee equals the DP guarantee of a larger noise.

    Parameters
    ----------
    noise_multiplier : float
        The larger of both scales, ``upper``, which is safe.
    lower, upper : float
        Largest noise at which J <= f, smallest at which J >= f, at the levels considered.
    epsilon, delta : float
        Differential privacy at ``noise_multiplier``: the guarantee in the worst case.
    reference_epsilon : float
        The ε of differential privacy at the given noise.
    """

    noise_multiplier: float
    lower: float
    upper: float
    epsilon: float
    delta: float
    reference_epsilon: float


def equivalent_noise(
    make: Callable[[float], Mechanism],
    noise_multiplier: float,
    *,
    levels: tuple[float, float] = (1e-6, 1.0 - 1e-6),
    delta: float = 1e-5,
    threat_model: ThreatModelWord | ThreatModel = "relaxed",
) -> EquivalentNoise:
    """Find the noise whose relaxed guarantee equals the DP guarantee of a given noise.

    Parameters
    ----------
    make : callable
        Takes a noise multiplier and returns the mechanism.
    noise_multiplier : float
        Noise whose trade-off function f under differential privacy is the target, in (0, ∞).
    levels : (float, float)
        Range of α over which J is compared with f, within (0, 1).
    delta : float
        δ at which the remaining differential privacy is reported, in (0, 1).
    threat_model : "relaxed" or Relaxed
        The adversary.

    Returns
    -------
    EquivalentNoise
        Both noise scales between which J crosses f, the larger one as the answer, and the ε of
        differential privacy at that noise, which is the guarantee in the worst case.

    Notes
    -----
    This is the sandwich of Appendix 7.3.  The range of levels matters: as α → 0, the relaxed
    adversary of one Gaussian dimension loses only a factor 2 in α against that of DP, so over all
    of (0, 1) the answer is the given noise.

    References
    ----------
    G. Kaissis et al., Optimal privacy guarantees for a relaxed threat model, NeurIPS 2023,
    Section 5 and Appendix 7.3.

    Examples
    --------
    >>> import pyengine as pe
    >>> found = pe.resilience.equivalent_noise(
    ...     pe.GaussianMechanism, 2.0, threat_model=pe.threat_models.Relaxed(dimension=10)
    ... )
    >>> round(found.lower, 4), round(found.upper, 4)
    (0.6338, 0.8087)
    >>> round(found.epsilon, 3), round(found.reference_epsilon, 3)
    (5.608, 1.993)
    """
    if not callable(make):
        raise ValueError(f"make must be callable, got {checks.shown(make)}")
    make = Guarded(make)
    relaxed_model(threat_model)
    level = checks.scalar("delta", delta, 0.0, 1.0)
    if not 0.0 < level < 1.0:
        raise ValueError(f"delta must lie in (0, 1), got {checks.shown(delta)}")
    start = float(checks.positive("noise_multiplier", noise_multiplier))
    ends = tuple(float(checks.probability("levels", level)) for level in levels)
    if not (len(ends) == 2 and 0.0 < ends[0] < ends[1] < 1.0):
        raise ValueError(
            f"levels must be two numbers 0 < low < high < 1, got {checks.shown(levels)}"
        )
    alpha = levels_between(ends[0], ends[1], 65)
    reference = trade_off(make(start), alpha)
    alpha = alpha[reference > 1e-300]

    def margins(noise: float, levels: FloatArray) -> FloatArray:
        beta = trade_off(make(noise), levels, threat_model=threat_model)
        target = trade_off(make(start), levels)
        difference: FloatArray = np.maximum(special.ndtri(beta), -1e3) - special.ndtri(target)
        return difference

    upper = _touching(margins, np.argmin, alpha, start)
    lower = _touching(margins, np.argmax, alpha, start)
    left = make(upper)
    return EquivalentNoise(
        upper, lower, upper, epsilon(left, level), level, epsilon(make(start), level)
    )


def _touching(
    margins: Callable[[float, FloatArray], FloatArray],
    extreme: Callable[[FloatArray], np.intp],
    alpha: FloatArray,
    start: float,
) -> float:
    """The noise at which the extreme margin is 0, on levels that are refined around it."""
    for _ in range(2):

        def margin(noise: float, levels: FloatArray = alpha) -> float:
            values = margins(noise, levels)
            return float(values[extreme(values)])

        noise = _passing(margin, start)
        at = int(extreme(margins(noise, alpha)))
        low, high = alpha[max(at - 1, 0)], alpha[min(at + 1, alpha.size - 1)]
        alpha = np.unique(np.concatenate([alpha, np.linspace(low, high, 17)]))
    return noise


def _passing(margin: Callable[[float], float], start: float) -> float:
    """The smallest noise with margin >= 0, at most ``start``, which has it."""
    high = start
    if margin(high) < 0.0:  # only by rounding: DP implies the relaxed guarantee
        return high
    low = 0.5 * high
    while margin(low) >= 0.0:
        high, low = low, 0.5 * low
        if low < 1e-9 * start:
            raise AccuracyError(
                f"no noise below {start:g} has a relaxed guarantee weaker than the reference; "
                "give other levels"
            )
    root = falling_root(
        lambda noise: np.array([-margin(float(noise[0]))]), np.array([low]), np.array([high])
    )
    return float(root[0])
