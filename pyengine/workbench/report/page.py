"""A privacy report as an HTML page."""

from __future__ import annotations

import json
from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import TYPE_CHECKING, Any

from pyengine._support.certainty import PROVEN
from pyengine._support.decimals import number, written
from pyengine._support.extras import needed
from pyengine._support.markup import rendered_page, shortened
from pyengine.mechanisms import Step, step_in_words
from pyengine.mechanisms.core import phases_of
from pyengine.mechanisms.report import SAMPLING
from pyengine.mechanisms.words import number_in_words
from pyengine.workbench.plots.series import Series
from pyengine.workbench.report.alternatives import neighbours
from pyengine.workbench.report.pictures import pictures

if TYPE_CHECKING:
    from pyengine.workbench.report.content import PrivacyReport

__all__ = ["page"]

DIGITS = 6  # significant digits in tables
HEADS = {
    "epsilon": ("δ", "ε", "Privacy parameters: the smallest ε at each δ"),
    "gamma_bound": (
        "κ, or false positive rate",
        "γ, or true positive rate",
        "Reconstruction and membership: the largest success from each prior κ, and the largest "
        "true positive rate at each false positive rate, which is the same number",
    ),
    "trade_off": ("level α", "β", "Trade-off function: the smallest type-II error at each level"),
    "delta": ("ε", "δ", "Privacy profile: the smallest δ at each ε"),
}
KINDS = {
    "adjacency": "Other neighbours",
    "sampling": "Other batches, at the same noise, rate and number of steps",
    "group_size": "Several records of one user",
}
# Characters that HTML would take for markup inside a script, as JSON escapes.
ESCAPES = str.maketrans({"<": "\\u003c", ">": "\\u003e", "&": "\\u0026"})


def page(report: PrivacyReport) -> str:
    """The HTML text of the page, which depends on the report only; needs Jinja2 and matplotlib."""
    with needed("a report", "report"):
        import jinja2

    return rendered_page(
        *(jinja2, "pyengine.report", "templates"),
        report=report,
        statement=report.statement,
        head=report.statement.head(),
        steps=_steps(report),
        resampled=any(each.kind == "sampling" for each in report.alternatives),
        dominated=any(each.known for each in report.statement.label),
        proven=PROVEN,
        pictures=pictures(report),
        tables=[_table(table) for table in report.tables],
        kinds=_kinds(report),
        attacks=_attacks(report),
        written=written,
        data=json.dumps(report.as_object(), ensure_ascii=False, allow_nan=False).translate(ESCAPES),
    )


def _steps(report: PrivacyReport) -> list[tuple[str, list[tuple[str, str]]]]:
    """Description and parameters of each kind of step."""
    return [
        (step_in_words(step), _parameters(step, number))
        for step, number in phases_of(report.mechanism)
    ]


def _parameters(step: Step, number: int) -> list[tuple[str, str]]:
    """Parameters of a step as they were given, otherwise as the step stores them."""
    given = step.words.given
    left_out = {*step.words.hidden, *(SAMPLING if given else ())}
    held = [
        (key.replace("_", " "), _value(value))
        for key, value in step.described().items()
        if key not in left_out
    ]
    counted = f"{step.words.counted}s"
    number_of = [] if counted in dict(given) else [(counted, f"{number:,}")]
    return [*held, *given, *number_of]


def _value(value: Any) -> str:
    text = f"{value:,}" if isinstance(value, int) else number_in_words(value)
    return text if len(text) <= 200 else f"{text[:200]}…"


def _table(table: Series) -> dict[str, Any]:
    argument, answer, caption = HEADS[table.question]
    lower, value, upper = table.bounds
    rows = [
        {
            "argument": written(table.argument[i]),
            "lower": number(lower[i], DIGITS, ROUND_FLOOR),
            "value": number(value[i], DIGITS),
            "upper": number(upper[i], DIGITS, ROUND_CEILING),
            "certainty": table.certainty[i],
            "engine": table.engine[i].replace("_", " "),
        }
        for i in range(table.argument.size)
    ]
    return {
        "caption": caption,
        "argument": argument,
        "answer": answer,
        "adjacency": table.adjacency,
        "rows": rows,
        "refused": ", ".join(written(x) for x in table.refused),
    }


def _kinds(report: PrivacyReport) -> list[dict[str, Any]]:
    """Tables of alternatives, each of which starts with the unchanged run."""
    own = report.statement
    this = {
        "adjacency": neighbours(report.mechanism, own.adjacency),
        "sampling": "as it is",
        "group_size": "one record" if _is_single(report) else "as it is",
    }
    found = []
    for kind, title in KINDS.items():
        rows = [each for each in report.alternatives if each.kind == kind]
        if rows:
            first = {"what": this[kind], "words": [], "figures": report.stated, "note": ""}
            others = [
                {**vars(each), "words": shortened(each.mechanism) if kind == "sampling" else []}
                for each in rows
            ]
            found.append({"title": title, "rows": [first, *others]})
    return found


def _is_single(report: PrivacyReport) -> bool:
    """Whether no step of the run is about groups of records."""
    return not any(step.words.neighbours == "group" for step, _ in phases_of(report.mechanism))


def _attacks(report: PrivacyReport) -> list[dict[str, Any]]:
    above = "above the bound: either chance, or the run is not the one that is described"
    return [
        {
            "attack": attack,
            "figure": figure,
            "verdict": "within the bound" if attack.true_positive_rate <= figure.bound else above,
        }
        for attack, figure in report.attacks
    ]
