"""Which engine answers: the one place where that is decided."""

from __future__ import annotations

from pyengine.answers import Questions
from pyengine.curves import OneOrder
from pyengine.engines.gaussian import GaussianPairQuestions, GaussianQuestions
from pyengine.engines.solver import clear_cache
from pyengine.errors import AccuracyError
from pyengine.mechanisms import Mechanism
from pyengine.pairs import GaussianPair, ordered_pair

__all__ = ["ADJACENCIES", "METHODS", "THREAT_MODELS", "clear_cache", "questions"]

METHODS = ("auto", "closed_form", "spectral", "convolution")
ADJACENCIES = ("add", "remove", "add_remove")
THREAT_MODELS = ("dp",)


def questions(
    mechanism: Mechanism,
    *,
    adjacency: str,
    method: str,
    threat_model: str,  # noqa: ARG001 - one word so far
    tolerance: float | None,  # noqa: ARG001 - for engines that certify
) -> Questions:
    """Return what answers questions on a mechanism.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.
    adjacency, method, threat_model : str
        Words of `ADJACENCIES`, `METHODS` and `THREAT_MODELS`.
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
