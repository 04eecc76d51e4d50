"""Risks of a release that need no ε: Bayes risk of a membership guess, and a Gaussian fit μ.

The Bayes risk at a prior, the μ of Gaussian differential privacy with its regret, and two other
names of γ(κ).  All are conversions of the questions of `pyengine.api`, and are proven if those are.
"""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine._support.certainty import certainty
from pyengine.api import (
    ESTIMATED,
    QUESTIONS,
    Bounds,
    Question,
    answers,
    check_words,
    compose,
    kind_of_bounds,
)
from pyengine.calibration.gaussian_dp import largest_regret, least_mu, mu_from_below
from pyengine.errors import AccuracyError, NotDefinedError
from pyengine.mechanisms import Mechanism, label_of
from pyengine.mechanisms.report import guaranteed, is_least
from pyengine.mechanisms.threat_models import DifferentialPrivacy
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT
from pyengine.numerics.scaled import LOST

__all__ = [
    *("ASKED", "REFERENCED", "RISKS"),
    *("GaussianFit", "bayes_risk", "gaussian_fit", "risk_answers"),
]

FloatArray = npt.NDArray[np.float64]
RISKS = {
    "true_positive_rate": Question("false_positive_rate", 1.0, 1.0),
    "unified_risk": Question("baseline", 1.0, 1.0),
    "bayes_risk": Question("prior", 1.0, 1.0),
    "gaussian_mu": Question("slack", 1.0, math.inf),
    "gaussian_regret": Question("slack", 1.0, 1.0),
}
ASKED = {**QUESTIONS, **RISKS}
# Other names of γ; and the questions that `pyengine.reference` answers, with their names there.
GAMMA = dict.fromkeys(("true_positive_rate", "unified_risk"), "gamma_bound")
REFERENCED = {**{name: name for name in QUESTIONS}, **GAMMA}
REVERSED = {"add": "remove", "remove": "add"}
FIT = "Gaussian fit"


class GaussianFit(NamedTuple):
    """The best Gaussian guarantee of a mechanism, and its regret; made by `gaussian_fit`.

    Parameters
    ----------
    mu : float
        The mechanism is μ-GDP up to the slack: δ(ε) <= max(δ_μ(ε), slack) at every ε.
    slack : float
        Smaller values of δ are ignored.
    regret : float
        An upper bound on how far G_μ lies below the trade-off function T: T(α + κ) - κ <= G_μ(α)
        at all α for this κ.  The error of every Bayes risk computed from G_μ is at most that.
    certainty : {"proven", "estimate"}
        Whether both are proven, floating point included.
    """

    mu: float
    slack: float
    regret: float
    certainty: str


def gaussian_fit(
    mechanism: Any, slack: float, *, adjacency: str = "add_remove", bounds: bool | str = True
) -> GaussianFit:
    """Report a mechanism by one number: μ of Gaussian differential privacy, and its regret.

    Parameters
    ----------
    mechanism : Mechanism, or what describes one
        What is released.
    slack : float
        δ below which the fit may fail, in [0, 1].  0 requires T >= G_μ everywhere, which for
        sampled Gaussian steps gives the μ without sampling.
    adjacency : {"add_remove", "add", "remove", "substitute"}
        As in `pyengine.delta`; the first three give the same fit.
    bounds : {True, "estimated"}
        Whether to use proven bounds, or those of the fastest engine.

    Returns
    -------
    GaussianFit
        With the smallest μ to a relative 1e-9, on the safe side.

    Raises
    ------
    ValueError
        For an argument outside its domain; with ``slack=0`` as for `pyengine.targets.GaussianDP`.
    AccuracyError
        If no engine answers.

    Notes
    -----
    The regret is the largest (δ_μ(ε) - δ(ε))/(1 + e^ε) over ε >= 0.  If it is small, about 0.01 or
    less, μ alone describes the mechanism.

    References
    ----------
    J. F. Gomez, B. Kulynych, G. Kaissis, F. Calmon, J. Hayes, B. Balle, A. Honkela, Gaussian DP for
    Reporting Differential Privacy Guarantees in Machine Learning (2025), arXiv:2503.10945; G.
    Kaissis, S. Kolek, B. Balle, J. Hayes, D. Rueckert, Beyond the Calibration Point (2024),
    arXiv:2406.08918: the regret is the Δ-divergence there.

    Examples
    --------
    >>> import pyengine as pe
    >>> fit = pe.gaussian_fit(pe.dp_sgd(9.4, 0.328, 2000), slack=1e-8)
    >>> print(f"{fit.mu:.5f} {fit.regret:.5f} {fit.certainty}")
    1.56916 0.00112 proven
    """
    kind = kind_of_bounds(bounds)
    if kind is False:
        raise ValueError(f"bounds must be True or {ESTIMATED!r} for a fit, got False")
    level = checks.scalar("slack", slack, 0.0, 1.0)
    run = compose(mechanism)
    check_words(adjacency, "auto", "dp", None)
    if is_least(run):
        guaranteed(label_of(run, adjacency))
    _, mu, _, regret = _fitted(run, level, adjacency, bounds=kind)
    return GaussianFit(mu, level, regret, certainty(kind is True))


def _fitted(
    run: Mechanism, slack: float, adjacency: str, *, bounds: bool | str
) -> tuple[float, float, float, float]:
    """Lower and upper bound of μ, and bounds on the regret of the upper one."""
    if slack == 1.0:
        return 0.0, 0.0, 0.0, 0.0
    words: dict[str, Any] = {"adjacency": adjacency, "bounds": bounds}
    mu = least_mu(run, 1.0, slack, **words)
    least = mu_from_below(run, mu, slack, **words)
    regret = (0.0, 1.0) if mu == math.inf else largest_regret(run, mu, **words)
    return least, mu, *regret


def bayes_risk(
    mechanism: Any,
    prior: float | npt.ArrayLike,
    *,
    adjacency: str = "add_remove",
    bounds: bool | str = False,
) -> Any:
    """Bayes risk: smallest error probability of a guess whether a record took part.

    Parameters
    ----------
    mechanism : Mechanism, or what describes one
        What is released.
    prior : array_like
        Prior probability of the alternative hypothesis, in [0, 1]: that the record took part for
        "add" and "add_remove", that it did not for "remove", that it is the other one for
        "substitute".
    adjacency : {"add_remove", "add", "remove", "substitute"}
        As in `pyengine.trade_off`.
    bounds : bool or "estimated"
        As in `pyengine.delta`.

    Returns
    -------
    float, ndarray or Bounds
        In [0, min(prior, 1 - prior)]; 1 minus it is the largest probability of a correct guess.

    Raises
    ------
    ValueError
        For an argument outside its domain.
    AccuracyError
        If no engine answers, or proves bounds if ``bounds=True``.

    Notes
    -----
    With s the smaller of prior and 1 - prior, the risk is s (1 - δ(log((1 - s)/s))): the smallest
    (1 - prior) α + prior T(α).  At the prior 1/2 it is half of 1 - advantage.

    References
    ----------
    B. Kulynych, J. F. Gomez, G. Kaissis, J. Hayes, B. Balle, F. Calmon, J. L. Raisaro, Unifying
    Re-Identification, Attribute Inference, and Data Reconstruction Risks in Differential Privacy
    (2025), arXiv:2507.06969, Proposition D.1.

    Examples
    --------
    >>> import pyengine as pe
    >>> print(f"{pe.bayes_risk(pe.GaussianMechanism(1.0), 0.5):.6f}")  # Φ(-1/2)
    0.308538
    """
    kind = kind_of_bounds(bounds)
    given = checks.real_array("prior", prior, 0.0, 1.0)
    found, _, proven = risk_answers(
        "bayes_risk", compose(mechanism), given.ravel(), adjacency=adjacency, proven=kind is True
    )
    if kind is True and not all(proven):
        at = float(given.ravel()[proven.index(False)])
        raise AccuracyError(
            f"no engine proves bounds of the Bayes risk at prior = {at!r}: bounds={ESTIMATED!r} "
            "returns estimates of them"
        )
    shaped = Bounds(*(checks.shaped("bayes_risk", x, given.shape, prior) for x in found))
    return shaped.value if kind is False else shaped


def risk_answers(
    name: str,
    mechanism: Mechanism,
    argument: npt.ArrayLike,
    *,
    adjacency: str,
    proven: bool = True,
    **words: Any,
) -> tuple[Bounds, list[str], list[bool]]:
    """As `pyengine.api.answers`, for its questions and those of `RISKS`."""
    check_words(adjacency, "auto", words.get("threat_model", "dp"), None)
    if name in REFERENCED:
        asked = REFERENCED[name]
        return answers(asked, mechanism, argument, adjacency=adjacency, proven=proven, **words)
    model = words.get("threat_model", "dp")
    if model != "dp" and not isinstance(model, DifferentialPrivacy):
        raise NotDefinedError(f"threat_model must be 'dp' for {name}, got {checks.shown(model)}")
    question = RISKS[name]
    flat = checks.real_array(question.argument, argument, 0.0, question.upper).ravel() + 0.0
    if name == "bayes_risk":
        return _bayes(mechanism, flat, adjacency, proven=proven)
    pick = 0 if name == "gaussian_mu" else 2
    rows, sure = [], []
    for slack in flat.tolist():
        found, certain = _proven_first(mechanism, slack, adjacency, proven=proven)
        lower, upper = found[pick : pick + 2]
        # the value of μ is its upper bound, which may be reported
        rows.append((lower, upper if pick == 0 else 0.5 * (lower + upper), upper))
        sure.append(certain)
    columns = np.array(rows, dtype=np.float64).reshape(-1, 3).T
    return Bounds(*columns), [FIT] * flat.size, sure


def _proven_first(
    run: Mechanism, slack: float, adjacency: str, *, proven: bool
) -> tuple[tuple[float, float, float, float], bool]:
    if proven:
        try:
            return _fitted(run, slack, adjacency, bounds=True), True
        except AccuracyError:
            pass
    return _fitted(run, slack, adjacency, bounds=ESTIMATED), False


def _bayes(
    run: Mechanism, prior: FloatArray, adjacency: str, *, proven: bool
) -> tuple[Bounds, list[str], list[bool]]:
    """Risks s (1 - δ(log((1 - s)/s))), with δ of the order of laws that the prior needs."""
    small = np.minimum(prior, 1.0 - prior)
    with np.errstate(divide="ignore"):
        epsilon = np.maximum(fn.log1p(-small) - fn.log(small), 0.0)
    value, lower, upper = np.zeros((3, prior.size))
    engines, sure = ["exact"] * prior.size, [True] * prior.size
    for rare in (True, False):
        # T(A, B) has the conjugate H(B‖A), whose order is the other one
        places = np.flatnonzero(((prior <= 0.5) == rare) & (small > 0.0))
        if not places.size:
            continue
        order = REVERSED.get(adjacency, adjacency) if rare else adjacency
        found, names, certain = answers(
            "delta", run, epsilon[places], adjacency=order, proven=proven
        )
        share = small[places]
        # ε has an error of some units, which changes the weight of α; α is at most s/(1 - s) there
        error = (3.0 * ELEMENTARY + 16.0) * UNIT * (1.0 + epsilon[places]) * share + LOST
        value[places] = share * (1.0 - found.value)
        lower[places] = np.maximum(share * (1.0 - found.upper) - error, 0.0)
        upper[places] = np.minimum(share * (1.0 - found.lower) + error, share)
        for place, name, is_proven in zip(places.tolist(), names, certain, strict=True):
            engines[place], sure[place] = name, is_proven
    return Bounds(lower, np.clip(value, lower, upper), upper), engines, sure
