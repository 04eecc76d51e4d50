"""What the page shows for the settings of one run: figures and curves."""

from __future__ import annotations

import time
from typing import Any

import numpy as np

from pyengine._support.certainty import certainty
from pyengine.accounting.serialization import plain
from pyengine.api import answers
from pyengine.errors import AccuracyError, NotDefinedError
from pyengine.mechanisms import Mechanism, in_words
from pyengine.mechanisms.threat_models import Relaxed
from pyengine.workbench.explore.settings import Settings
from pyengine.workbench.plots.series import Series, asked
from pyengine.workbench.statement import Figure, privacy_statement

__all__ = ["reply"]

LEVELS = np.linspace(0.0, 1.0, 41)
PRIORS = np.geomspace(1e-6, 1.0, 41)
POINTS = 41  # of δ(ε)
ENDS = (1e-10, 1e-5)  # δ at which its curve ends, where engines answer
TOLERANCE = 1e-3  # relative width of proven bounds, of which the upper one is shown


def reply(settings: Settings) -> dict[str, Any]:
    """Figures and curves, as an object for JSON.

    Parameters
    ----------
    settings : Settings
        Of one run.

    Returns
    -------
    dict
        ``mechanism``: what was understood, in words.  ``label``: how batches must have been drawn,
        and what is protected.  ``figures``: upper bounds, rounded up, each
        with its certainty.  ``curves``: points of the trade-off function, of γ(κ) and of δ(ε).
        ``seconds`` that it took.

    Raises
    ------
    SettingError
        If settings do not go together.
    ValueError
        If the question is not defined for the run.
    AccuracyError
        If no engine answers.
    """
    began = time.perf_counter()
    run = settings.mechanism()
    numbers, adjacency = settings.numbers, settings.words["adjacency"]
    stated = privacy_statement(
        run,
        numbers["delta"],
        adjacency=adjacency,
        false_positive_rates=[numbers["false_positive_rate"]],
        kappas=[numbers["kappa"]],
        priors=[numbers["prior"]],
        slack=numbers["delta"] if settings.proven else None,  # seconds, for some runs
        proven=settings.proven,
    )
    found = _weaker(run, settings) if settings.words["threat_model"] == "relaxed" else None
    curves = {
        "trade_off": found or _curve("trade_off", run, LEVELS, adjacency),
        "gamma": _curve("gamma_bound", run, PRIORS, adjacency),
        "delta": _curve("delta", run, np.linspace(0.0, _reach(run, adjacency), POINTS), adjacency),
    }
    figures = [_plain(figure) for figure in stated.figures]
    if found is not None:
        figures.append(_weaker_figure(run, settings))
    content: dict[str, Any] = plain(
        {
            "mechanism": in_words(run),
            "label": [f"{title}: {text}" for title, texts in stated.head()[1:] for text in texts],
            "figures": figures,
            "curves": curves,
            "seconds": round(time.perf_counter() - began, 4),
        }
    )
    return content


def _plain(figure: Figure) -> dict[str, Any]:
    return {**figure.as_object(), "printed": figure.printed}


def _curve(question: str, run: Mechanism, at: Any, adjacency: str) -> dict[str, Any]:
    """Points of a curve, without those that no engine answers: for the eye, without proofs."""
    try:
        return _points(asked(question, "", run, at, adjacency=adjacency, tolerance=TOLERANCE))
    except AccuracyError:
        return {"x": [], "y": []}


def _points(series: Series) -> dict[str, Any]:
    return {"x": series.argument, "y": series.bounds.value}


def _reach(run: Mechanism, adjacency: str) -> float:
    """The ε at which the curve of δ ends."""
    try:
        found = asked("epsilon", "", run, ENDS, adjacency=adjacency, tolerance=TOLERANCE)
    except AccuracyError:
        return 1.0
    return max((end for end in found.bounds.value.tolist() if 0.0 < end < np.inf), default=1.0)


def _relaxed(run: Mechanism, at: Any, settings: Settings) -> Any:
    """β against an adversary who does not know the record."""
    adjacency = settings.words["adjacency"]
    if adjacency == "substitute":
        raise NotDefinedError(
            "the relaxed threat model is of a record that is there or not: adjacency must not be "
            "substitute"
        )
    dimension = int(settings.numbers["dimension"])
    threat = Relaxed(dimension)
    return answers(
        "trade_off", run, at, adjacency=adjacency, threat_model=threat, proven=settings.proven
    )


def _weaker(run: Mechanism, settings: Settings) -> dict[str, Any]:
    bounds, _, _ = _relaxed(run, LEVELS, settings)
    return {"x": LEVELS, "y": bounds.value}


def _weaker_figure(run: Mechanism, settings: Settings) -> dict[str, Any]:
    rate = settings.numbers["false_positive_rate"]
    bounds, _, certain = _relaxed(run, [rate], settings)
    what = f"relaxed threat model: true positive rate at false positive rate {rate:g}"
    return _plain(Figure(what, 1.0 - float(bounds.lower[0]), certainty(certain[0])))
