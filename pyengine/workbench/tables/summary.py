"""Summary of a table as text: aligned columns, few digits, one adjacency for each question."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Iterable, Mapping, Sequence
from decimal import Decimal

from pyengine._support.certainty import ESTIMATE, PROVEN
from pyengine._support.decimals import written
from pyengine._support.markup import terminal_width
from pyengine.workbench.runs.numbers import fraction
from pyengine.workbench.tables.printed import labelled, protected
from pyengine.workbench.tables.rows import INTEGERS, Row, parameters
from pyengine.workbench.tables.spec import Grid, Specification

__all__ = ["as_given", "summary"]

WIDTH = 80
RUNS = 20  # most lines of a table
LONGEST = 20  # longer texts of parameters are shown rounded
COLUMNS = 5  # columns besides the name that fit a line of 80 characters
SYMBOLS = {
    "kappa": "κ",
    "alpha": "α",
    "epsilon": "ε",
    "delta": "δ",
    "false_positive_rate": "FPR",
    "baseline": "baseline",
    "prior": "prior",
    "slack": "slack",
}
TITLES = {
    "gamma_bound": "γ(κ): the most that a reconstruction attack can reach with the release,\n"
    "if it succeeds with probability κ without it",
    "trade_off": "β(α): the least rate at which a test for a record with false positive rate α\n"
    "misses the record",
    "epsilon": "ε(δ): the smallest ε for which the run is (ε, δ)-differentially private",
    "delta": "δ(ε): the smallest δ for which the run is (ε, δ)-differentially private",
    "true_positive_rate": "TPR(FPR): the most that a test whether a record took part can reach",
    "unified_risk": "unified risk: the most that re-identification, inference of an attribute or\n"
    "reconstruction can reach, if it succeeds at the baseline without the release",
    "bayes_risk": "Bayes risk: the least probability of a wrong guess whether a record took part,\n"
    "at the prior probability of it",
    "gaussian_mu": "μ: the run is μ-Gaussian differentially private up to the slack in δ",
    "gaussian_regret": "regret of that μ: the most that it overstates a right guess by",
}


def summary(specification: Specification, rows: Sequence[Row]) -> str:
    """Make several aligned tables for a terminal, without a final newline."""
    runs = specification.workflows[:RUNS]
    named = [(run.name, run.mechanism) for run in runs]
    blocks = [_workflows(specification)] if runs else []
    blocks += ["\n".join(_wrapped(line) for line in labelled(named))] if runs else []
    blocks += [_question(specification, grid, rows) for grid in specification.grids]
    blocks += _specials(specification, rows)
    blocks.append(_accuracy(rows))
    hidden = len(specification.workflows) - RUNS
    if hidden > 0:
        blocks.append(f"... and {hidden} more workflows in the files")
    return "\n\n".join(blocks)


def _workflows(specification: Specification) -> str:
    """Table of workflows with their parameters."""
    runs = specification.workflows[:RUNS]
    names = parameters(specification)
    lines = [["workflow", *(name.replace("_", " ") for name in names)]]
    for run in runs:
        lines.append([run.name, *(as_given(name, run.get(name)) for name in names)])
    if any(run.kind != "GaussianMechanism" for run in runs):
        for line, kind in zip(lines, ["mechanism", *(run.kind for run in runs)], strict=True):
            line.insert(1, kind)
    return _aligned(lines)


def as_given(name: str, text: str | None) -> str:
    """Text of a parameter: six digits if these are exact, otherwise as it was given."""
    if text is None:
        return ""
    if name in INTEGERS:
        return f"{fraction(text).numerator:,}"
    value = fraction(text)
    short = written(float(value), ".6g")
    if fraction(short) == value:
        return short
    return text if len(text) <= LONGEST else written(float(value))


def _question(specification: Specification, grid: Grid, rows: Sequence[Row]) -> str:
    adjacency, model = grid.adjacencies[0], grid.threat_models[0]
    values = {
        (row.workflow.name, row.at): _double(row.cell.value)
        for row in rows
        if (row.question, row.adjacency, row.threat_model) == (grid.question, adjacency, model)
    }
    names = [run.name for run in specification.workflows]
    lines = _lines(SYMBOLS[grid.argument], grid.question, names, grid.values, values)
    words = f"adjacency {adjacency}: {protected(specification.workflows[:RUNS], adjacency)}"
    if model != "dp":
        words += f"; threat model {model}"
    words = _wrapped(f"({words})")
    return f"{_wrapped(TITLES[grid.question])}\n{words}\n{_aligned(lines)}"


def _wrapped(line: str) -> str:
    width = min(WIDTH, terminal_width() or WIDTH)
    return "\n".join(textwrap.wrap(line, width, subsequent_indent="  "))


def _specials(specification: Specification, rows: Sequence[Row]) -> list[str]:
    """Tables of the special functions, one for all with the same argument values."""
    cells = {(row.workflow.name, row.at): _double(row.cell.value) for row in rows}
    groups: dict[tuple[str, str, tuple[str, ...]], list[str]] = {}
    for function, values in specification.specials:
        key = (function.argument, function.function, values)
        groups.setdefault(key, []).append(function.name)
    return [
        _aligned(_lines(argument, name, names, values, cells))
        for (argument, name, values), names in groups.items()
    ]


def _lines(
    symbol: str,
    question: str,
    names: Sequence[str],
    values: Sequence[str],
    cells: Mapping[tuple[str, str], float | None],
) -> list[tuple[str, ...]]:
    """A head with some of the argument values, and a line for each of the first names."""
    chosen = _spread(values)
    head = (f"{symbol} =", *(written(float(fraction(at))) for at in chosen))
    return [
        head,
        *((name, *(_short(cells[name, at], question) for at in chosen)) for name in names[:RUNS]),
    ]


def _double(text: str | None) -> float | None:
    return None if text is None else float(text)


def _spread(values: Sequence[str]) -> list[str]:
    """At most `COLUMNS` evenly spread values, including the first and the last one."""
    last = len(values) - 1
    stride = max(1, math.ceil(last / (COLUMNS - 1)))
    return [values[index] for index in sorted({*range(0, last, stride), last})]


def _short(value: float | None, question: str) -> str:
    if value is None:
        return "refused"
    if value == 0.0:
        return "0"
    if question == "epsilon":
        return f"{value:.4f}" if value < 1e6 else written(value, ".4g")
    if 0.99 < value < 1.0:  # what matters is the distance from 1
        decimals = 1 - math.floor(math.log10(1.0 - value))
        return f"{value:.{decimals}f}"
    return f"{value:#.4g}"


def _accuracy(rows: Iterable[Row]) -> str:
    """Largest relative errors, separately for proven and for estimated ones."""
    largest: dict[str, Decimal] = {}
    for cell in (row.cell for row in rows):
        if cell.value in (None, "inf") or cell.error is None or not Decimal(cell.value) > 0:
            continue
        # in decimal arithmetic, since reference values may be below the smallest double
        relative = Decimal(cell.error) / Decimal(cell.value)
        largest[cell.certainty] = max(relative, largest.get(cell.certainty, Decimal(0)))
    found = [
        f"{written(largest[word], '.1e')} ({word})"
        for word in (PROVEN, ESTIMATE)
        if word in largest
    ]
    return _wrapped(f"Largest relative error of a value: {', '.join(found) or 'none'}")


def _aligned(lines: Sequence[Sequence[str]]) -> str:
    """A head, a rule and lines in columns: the first column left-aligned, the others right-aligned.

    On a terminal that is too narrow, each cell gets a line.
    """
    widths = [max(map(len, column)) for column in zip(*lines, strict=True)]
    texts = []
    for line in lines:
        cells = [line[0].ljust(widths[0])]
        cells += [cell.rjust(width) for cell, width in zip(line[1:], widths[1:], strict=True)]
        texts.append("  ".join(cells).rstrip())
    if 0 < terminal_width() < max(map(len, texts)):
        first, *others = lines[0]
        heads = [f"{first} {head}" if first.endswith("=") else head for head in others]
        cut = max(map(len, heads), default=0)
        return "\n".join(
            f"  {head.ljust(cut)}  {cell}" if i else cell
            for line in lines[1:]
            for i, (head, cell) in enumerate(zip(["", *heads], line, strict=True))
            if cell
        )
    rule = "-" * max(map(len, texts))
    return "\n".join([texts[0], rule, *texts[1:]])
