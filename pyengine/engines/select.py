"""Which engine answers: the one place where that is decided."""

from __future__ import annotations

from pyengine.answers import Questions
from pyengine.curves import OneOrder
from pyengine.engines.gaussian import GaussianPairQuestions, GaussianQuestions
from pyengine.engines.solver import clear_cache
from pyengine.errors import AccuracyError
from pyengine.mechanisms import Mechanism
from pyengine.pairs import GaussianPair, ordered_pair
from pyengine.threat_models import THREAT_MODELS, Relaxed, ThreatModel, threat_model_of

__all__ = ["ADJACENCIES", "METHODS", "THREAT_MODELS", "clear_cache", "questions"]

METHODS = ("auto", "closed_form", "spectral", "convolution", "clt")
ADJACENCIES = ("add", "remove", "add_remove")


def questions(
    mechanism: Mechanism,
    *,
    adjacency: str,
    method: str,
    threat_model: str | ThreatModel,
    tolerance: float | None,  # noqa: ARG001 - for engines that certify
) -> Questions:
    """Return what answers questions on a mechanism.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.
    adjacency, method : str
        Words of `ADJACENCIES` and `METHODS`.
    threat_model : str or ThreatModel
        A word of `THREAT_MODELS` or an object of `pyengine.threat_models`.
    tolerance : float or None
        Relative width of a certified bracket; None for the engine's default.

    Returns
    -------
    Questions
        Ready to be asked; nothing is computed yet.

    Raises
    ------
    AccuracyError
        Where no engine can answer for the mechanism.
    """
    model = threat_model_of(threat_model)
    if isinstance(model, Relaxed):
        from pyengine.engines.relaxed_select import relaxed_questions

        return relaxed_questions(mechanism, model=model, adjacency=adjacency, method=method)
    if method == "clt":
        raise ValueError("method='clt' answers for threat_model='relaxed' only")
    if adjacency == "add_remove":
        return GaussianQuestions(
            _gaussian(mechanism, "add"), _gaussian(mechanism, "remove"), method
        )
    return OneOrder(GaussianPairQuestions(_gaussian(mechanism, adjacency), method))


def _gaussian(mechanism: Mechanism, adjacency: str) -> GaussianPair:
    pair = ordered_pair(mechanism, adjacency)
    if pair is None:
        raise AccuracyError(f"no engine answers for {mechanism!r}")
    return pair
