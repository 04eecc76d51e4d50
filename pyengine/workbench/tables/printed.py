"""Tables for papers and web pages, with few columns and digits."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN, Context, Decimal

from pyengine._support.decimals import written
from pyengine._support.markup import shortened
from pyengine.mechanisms import Mechanism, in_words, label_of
from pyengine.mechanisms.core import phases_of
from pyengine.workbench.runs.grammar import NamedRun
from pyengine.workbench.tables.rows import Row

__all__ = ["HEADS", "labelled", "notes", "printed", "protected", "with_names"]

HEADS = ("run", "question", "adjacency", "at", "lower", "value", "upper", "bounds")
SYMBOLS = {
    "gamma_bound": "γ(κ)",
    "trade_off": "β(α)",
    "delta": "δ(ε)",
    "epsilon": "ε(δ)",
    "true_positive_rate": "TPR(FPR)",
    "unified_risk": "unified risk",
    "bayes_risk": "Bayes risk",
    "gaussian_mu": "μ(slack)",
    "gaussian_regret": "regret(slack)",
}
DIGITS = 6
NAMED, LISTED = 3, 20  # most runs named in a note, and most runs whose mechanisms are described


def printed(table: Sequence[Row]) -> list[list[str]]:
    """Rows with the columns `HEADS`; bounds are rounded outwards to six digits."""
    return [
        [
            row.workflow.name,
            SYMBOLS.get(row.question, row.question) + _model(row.threat_model),
            row.adjacency or "",
            row.at,
            _rounded(row.cell.lower, ROUND_FLOOR),
            _rounded(row.cell.value, ROUND_HALF_EVEN),
            _rounded(row.cell.upper, ROUND_CEILING),
            row.cell.certainty or "",
        ]
        for row in table
    ]


def notes(table: Sequence[Row]) -> list[str]:
    """Notes below a printed table: mechanisms, batches, protected units and rounding."""
    found = dict.fromkeys(row.workflow for row in table)
    runs = [run for run in found if isinstance(run, NamedRun)]
    adjacencies = dict.fromkeys(row.adjacency for row in table if row.adjacency)
    what = [f"{run.name}: {'; '.join(shortened(in_words(run.mechanism)))}" for run in runs[:LISTED]]
    who = [f"adjacency {each}: {protected(runs, each)}" for each in adjacencies]
    rounded = "lower is rounded down and upper up; what is not called proven is an estimate"
    drawn = labelled([(run.name, run.mechanism) for run in runs])
    return [*what, *drawn, *who, rounded] if runs else []


def labelled(runs: Sequence[tuple[str, Mechanism]]) -> list[str]:
    """How the batches of runs must have been drawn, one line for each way, with names of runs."""
    found = []
    for name, mechanism in runs:
        for step, _ in phases_of(mechanism):
            words = step.words
            text = words.said(words.batches)
            if words.rate:
                text = text.replace(f"probability {words.rate}", "the sampling probability")
            found.append((name, f"batches: {text}"))
    return with_names(found)


def protected(runs: Sequence[NamedRun], adjacency: str) -> str:
    """Protected units and neighbours of runs, in words."""
    found = [
        (run.name, each.protects) for run in runs for each in label_of(run.mechanism, adjacency)
    ]
    return "; ".join(with_names(found)) or "all records"


def with_names(found: Sequence[tuple[str, str]]) -> list[str]:
    """Each distinct text once, with the names of its runs unless it holds for all."""
    runs: dict[str, list[str]] = {}
    for name, text in found:
        if name not in runs.setdefault(text, []):
            runs[text].append(name)
    every = len({name for name, _ in found})
    lines = []
    for text, names in runs.items():
        shown = ", ".join(names[:NAMED]) + (", ..." if len(names) > NAMED else "")
        lines.append(f"{text} ({shown})" if len(names) < every else text)
    return lines


def _model(threat_model: str | None) -> str:
    return "" if threat_model in (None, "", "dp") else f", {threat_model}"


def _rounded(text: str | None, rounding: str) -> str:
    if text is None:
        return "none"
    if text == "inf":
        return "∞"
    return written(Context(prec=DIGITS, rounding=rounding).create_decimal(Decimal(text)))
