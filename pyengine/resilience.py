"""Guarantees against the adversary of the relaxed threat model, beside those of DP."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine import _checks, special
from pyengine.api import epsilon, gamma_bound, trade_off
from pyengine.engines.relaxed_select import relaxed_log_beta
from pyengine.errors import AccuracyError
from pyengine.magnitude.gaussian import GaussianPair
from pyengine.magnitude.parts import magnitude_parts
from pyengine.magnitude.roots import falling_root
from pyengine.mechanisms import Mechanism
from pyengine.threat_models import Relaxed, ThreatModel, threat_model_of

__all__ = [
    "Certificate",
    "EquivalentNoise",
    "Resilience",
    "asymptotic_mu",
    "certificate",
    "detection_resilience",
    "equivalent_noise",
    "log_trade_off",
    "power",
]

FloatArray = npt.NDArray[np.float64]
Reference = Mechanism | Callable[[FloatArray], npt.ArrayLike]
ROUNDING = 1e-11  # relative errors that both functions may have; DP engines promise as much
ZOOMS = 6


def _relaxed(threat_model: str | ThreatModel) -> Relaxed:
    model = threat_model_of(threat_model)
    if not isinstance(model, Relaxed):
        raise ValueError(f"threat_model must be the relaxed one, got {threat_model!r}")
    return model


def _mechanism(value: Any) -> Mechanism:
    if not isinstance(value, Mechanism):
        raise ValueError(f"mechanism must be a Mechanism, got {value!r}")
    return value


def log_trade_off(
    mechanism: Mechanism,
    alpha: float | npt.ArrayLike,
    *,
    adjacency: str = "add_remove",
    threat_model: str | ThreatModel = "relaxed",
) -> Any:
    """Logarithm of the smallest type-II error in the relaxed threat model.

    Parameters
    ----------
    mechanism : Mechanism
        Gaussian steps, or one step with Gaussian or Laplace noise, plain or on a Poisson sample.
    alpha : array_like
        Levels in [0, 1].
    adjacency : {"add_remove", "add", "remove"}
        ``add`` is the paper's j, ``remove`` its inverse, ``add_remove`` J = C(j, j⁻¹).
    threat_model : "relaxed" or Relaxed
        The adversary.

    Returns
    -------
    float or ndarray of the shape of ``alpha``
        log β(α), also where β is below the smallest double; an estimate with absolute error below
        1e-12 for effects up to 40 (measured: docs/relaxed).

    Examples
    --------
    >>> import pyengine as pe
    >>> mechanism = pe.GaussianMechanism(noise_multiplier=0.02)
    >>> round(pe.resilience.log_trade_off(mechanism, 0.1, adjacency="add"), 6)
    -1173.908029
    """
    model = _relaxed(threat_model)
    levels = _checks.real_array("alpha", alpha, 0.0, 1.0)
    flat = relaxed_log_beta(_mechanism(mechanism), levels.ravel(), model=model, adjacency=adjacency)
    value = flat.reshape(levels.shape)
    return value if levels.shape else float(value)


def power(
    mechanism: Mechanism,
    alpha: float | npt.ArrayLike,
    *,
    adjacency: str = "add",
    threat_model: str | ThreatModel = "relaxed",
) -> Any:
    """Power 1 - β(α) of the adversary's best test of level α.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.
    alpha : array_like
        Levels in [0, 1].
    adjacency, threat_model
        As in `pyengine.gamma_bound`, which is the same function under its name in reconstruction.

    Returns
    -------
    float or ndarray of the shape of ``alpha``
        1 - β(α), accurate in relative terms.

    Examples
    --------
    >>> import pyengine as pe
    >>> mechanism = pe.GaussianMechanism(noise_multiplier=1.0)
    >>> round(pe.resilience.power(mechanism, 1e-3), 6)
    0.011004
    >>> round(pe.resilience.power(mechanism, 1e-3, threat_model="dp"), 6)
    0.018298
    """
    return gamma_bound(mechanism, alpha, adjacency=adjacency, threat_model=threat_model)


def asymptotic_mu(mechanism: Mechanism, threat_model: str | ThreatModel = "relaxed") -> float:
    """Parameter of the Gaussian trade-off function that j and its inverse tend to as d grows.

    Parameters
    ----------
    mechanism : Mechanism
        Gaussian steps without sampling.
    threat_model : Relaxed
        Gives the dimension d.

    Returns
    -------
    float
        μ²/√(2d), μ² = Σ 1/noise²: an approximation for μ² << d (Theorem 3, equation 7, right, in
        which the paper prints N√(μ/(2d))).

    Examples
    --------
    >>> import pyengine as pe
    >>> mechanism = pe.GaussianMechanism(noise_multiplier=5.0).composed(150)
    >>> model = pe.threat_models.Relaxed(dimension=300)
    >>> round(pe.resilience.asymptotic_mu(mechanism, model), 6)
    0.244949
    """
    model = _relaxed(threat_model)
    parts = magnitude_parts(_mechanism(mechanism), model)
    if not parts:
        return 0.0
    if len(parts) > 1 or not isinstance(parts[0][0], GaussianPair):
        raise ValueError(f"mechanism must be Gaussian steps without sampling, got {mechanism!r}")
    return parts[0][0].effect ** 2 / math.sqrt(2.0 * model.dimension)


class Resilience(NamedTuple):
    """Whether trade-off functions lie on or above a reference.

    Parameters
    ----------
    holds : bool
        Whether J >= λ on the levels that were tried, up to rounding.
    margin : float
        The least (J - λ)/min(λ, 1 - λ), at ``alpha``.
    alpha : float
        Where it is.
    dp_holds, dp_margin : bool, float
        The same for the trade-off function of differential privacy.
    """

    holds: bool
    margin: float
    alpha: float
    dp_holds: bool
    dp_margin: float


def detection_resilience(
    mechanism: Mechanism, reference: Reference, *, threat_model: str | ThreatModel = "relaxed"
) -> Resilience:
    """Check λ-detection resilience: J(α) >= λ(α) for all α.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.
    reference : Mechanism or callable
        λ: a function of an array of α, or a mechanism whose trade-off function under differential
        privacy is meant.
    threat_model : "relaxed" or Relaxed
        The adversary.

    Returns
    -------
    Resilience
        A numerical check, not a proof: 400 levels from 1e-12 to 1 - 1e-12, and finer ones around
        the smallest difference.

    References
    ----------
    G. Kaissis et al., Optimal privacy guarantees for a relaxed threat model, NeurIPS 2023,
    Definition 3 and Lemma 6.

    Examples
    --------
    >>> import pyengine as pe
    >>> wanted = pe.membership.GaussianTradeOff(1.0)
    >>> found = pe.resilience.detection_resilience(pe.GaussianMechanism(0.95), wanted)
    >>> found.holds, found.dp_holds
    (True, False)
    """
    _relaxed(threat_model)
    of_reference = _function(reference)
    margin, where = _least(
        lambda alpha: trade_off(mechanism, alpha, threat_model=threat_model), of_reference
    )
    dp_margin, _ = _least(lambda alpha: trade_off(mechanism, alpha), of_reference)
    return Resilience(margin >= -ROUNDING, margin, where, dp_margin >= -ROUNDING, dp_margin)


def _function(reference: Reference) -> Callable[[FloatArray], FloatArray]:
    if isinstance(reference, Mechanism):
        return lambda alpha: trade_off(reference, alpha)
    if not callable(reference):
        raise ValueError(f"reference must be a Mechanism or a function, got {reference!r}")
    return lambda alpha: _checks.real_array("reference(alpha)", reference(alpha), 0.0, 1.0)


def _levels(low: float, high: float, number: int) -> FloatArray:
    """Levels at equal distances on the scale log(α/(1 - α))."""
    ends = (math.log(low) - math.log1p(-low), math.log(high) - math.log1p(-high))
    logits = np.linspace(*ends, number)
    return np.where(
        logits < 0.0,
        np.exp(-np.abs(logits)) / (1.0 + np.exp(-np.abs(logits))),
        1.0 / (1.0 + np.exp(-np.abs(logits))),
    )


def _least(
    first: Callable[[FloatArray], FloatArray], second: Callable[[FloatArray], FloatArray]
) -> tuple[float, float]:
    """The least difference of two functions, relative to the second, and where it is."""
    alpha = _levels(1e-12, 1.0 - 1e-12, 400)
    for zoom in range(ZOOMS):
        beta = second(alpha)
        # of a β too near 1 a double does not hold enough; its mirror image is a small β
        seen = (beta > 0.0) & (1.0 - beta > 1e-8)
        scale = np.where(seen, np.minimum(beta, 1.0 - beta), 1.0)
        slack = first(alpha) - beta
        slack = np.where((beta > 0.5) & (np.abs(slack) <= 2.0**-51), 0.0, slack)
        difference = np.where(seen, slack / scale, math.inf)
        best = int(np.argmin(difference))
        result = float(difference[best]), float(alpha[best])
        if zoom == ZOOMS - 1:
            break
        low, high = alpha[max(best - 1, 0)], alpha[min(best + 1, alpha.size - 1)]
        alpha = np.linspace(low, high, 33)
    return result


class EquivalentNoise(NamedTuple):
    """Noise with which the relaxed guarantee is the one that DP gives at more noise.

    Parameters
    ----------
    noise_multiplier : float
        The pessimistic one of both scales, ``upper``.
    lower, upper : float
        Largest noise at which J <= f, smallest at which J >= f, at the levels considered.
    epsilon, delta : float
        Differential privacy that remains at ``noise_multiplier``: the guarantee in the worst case.
    reference_epsilon : float
        The same at the noise that the search started from.
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
    threat_model: str | ThreatModel = "relaxed",
) -> EquivalentNoise:
    """Noise that gives in the relaxed threat model what a given noise gives under DP.

    Parameters
    ----------
    make : callable
        Takes a noise multiplier and returns the mechanism.
    noise_multiplier : float
        Noise whose trade-off function f under differential privacy is to be met, in (0, ∞).
    levels : (float, float)
        Range of α over which J is compared with f, within (0, 1).
    delta : float
        δ at which the remaining differential privacy is reported, in (0, 1).
    threat_model : "relaxed" or Relaxed
        The adversary.

    Returns
    -------
    EquivalentNoise
        Both noise scales between which J passes f, the larger one as the answer, and the ε of
        differential privacy at that noise, which is the guarantee that holds in the worst case.

    Notes
    -----
    The paper's sandwich (Appendix 7.3).  The range of levels matters: as α → 0 a one-dimensional
    Gaussian adversary loses only a factor 2 in α against the one of DP, so over all of (0, 1) the
    answer is the noise itself.

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
        raise ValueError(f"make must be callable, got {make!r}")
    _relaxed(threat_model)
    start = float(_checks.positive("noise_multiplier", noise_multiplier))
    ends = tuple(float(_checks.probability("levels", level)) for level in levels)
    if not (len(ends) == 2 and 0.0 < ends[0] < ends[1] < 1.0):
        raise ValueError(f"levels must be two numbers 0 < low < high < 1, got {levels!r}")
    alpha = _levels(ends[0], ends[1], 65)
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
        upper, lower, upper, epsilon(left, delta), delta, epsilon(make(start), delta)
    )


def _touching(
    margins: Callable[[float, FloatArray], FloatArray],
    extreme: Callable[[FloatArray], np.intp],
    alpha: FloatArray,
    start: float,
) -> float:
    """The noise at which the extreme margin is 0, on levels that get denser where it is."""
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
    """The smallest noise whose margin is >= 0, below one that has it."""
    high = start
    if margin(high) < 0.0:  # by rounding only: differential privacy implies the relaxed guarantee
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


class Certificate(NamedTuple):
    """Error rates of both adversaries, side by side.

    Parameters
    ----------
    alpha : ndarray
        Levels of the tests.
    dp, relaxed : ndarray
        Smallest type-II errors of the adversary of DP and of the relaxed one.
    epsilon, delta : float
        Differential privacy of the mechanism.
    threat_model : Relaxed
        The relaxed adversary.
    """

    alpha: FloatArray
    dp: FloatArray
    relaxed: FloatArray
    epsilon: float
    delta: float
    threat_model: Relaxed

    def __str__(self) -> str:
        """Return a table with the assumptions."""
        lines = [
            f"differential privacy: epsilon = {self.epsilon:.6g} at delta = {self.delta:.6g}",
            f"relaxed threat model: record unknown, dimension {self.threat_model.dimension};",
            "  no differential privacy, and void once the record is learnt elsewhere",
            f"{'alpha':>12} {'beta (DP)':>14} {'beta (relaxed)':>14}",
        ]
        rows = zip(self.alpha, self.dp, self.relaxed, strict=True)
        lines += [f"{a:12.6g} {b:14.8g} {c:14.8g}" for a, b, c in rows]
        return "\n".join(lines)


def certificate(
    mechanism: Mechanism,
    alpha: npt.ArrayLike = (1e-3, 1e-2, 0.05, 0.1),
    *,
    delta: float = 1e-5,
    threat_model: str | ThreatModel = "relaxed",
) -> Certificate:
    """Report the relaxed guarantee together with the one of differential privacy.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.
    alpha : array_like, one-dimensional
        Levels in [0, 1].
    delta : float
        δ of the differential privacy to report, in (0, 1).
    threat_model : "relaxed" or Relaxed
        The adversary.

    Returns
    -------
    Certificate
        Prints as a table.

    Examples
    --------
    >>> import pyengine as pe
    >>> print(pe.resilience.certificate(pe.GaussianMechanism(1.0), [0.01, 0.1]))
    differential privacy: epsilon = 4.37718 at delta = 1e-05
    relaxed threat model: record unknown, dimension 1;
      no differential privacy, and void once the record is learnt elsewhere
           alpha      beta (DP) beta (relaxed)
            0.01     0.90763775     0.94229287
             0.1     0.61085631     0.73640266
    """
    model = _relaxed(threat_model)
    levels = np.atleast_1d(_checks.real_array("alpha", alpha, 0.0, 1.0)).ravel()
    return Certificate(
        levels,
        trade_off(mechanism, levels),
        trade_off(mechanism, levels, threat_model=model),
        epsilon(mechanism, delta),
        delta,
        model,
    )
