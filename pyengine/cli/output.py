"""Output of answers: aligned columns for people, JSON for programs."""

from __future__ import annotations

import json
import math
import os
import sys
import textwrap
from collections.abc import Iterable, Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, TextIO

from pyengine._support.decimals import written
from pyengine._support.markup import shortened, terminal_width
from pyengine._version import __version__
from pyengine.mechanisms import Mechanism, in_words, label_of
from pyengine.mechanisms.report import JOINTLY
from pyengine.workbench.runs.grammar import NamedRun

__all__ = [
    *("decimal", "label_lines", "paint", "print_json", "print_label", "print_lines", "print_table"),
    *("remark", "remarks_on", "spelled"),
]

GREEK = {
    "α": "alpha",
    "β": "beta",
    "γ": "gamma",
    "δ": "delta",
    "ε": "epsilon",
    "κ": "kappa",
    "μ": "mu",
}
NAMED = 3  # most runs that are named in a label
LARGE_DELTA = 0.01  # δ that is large for any number of records
LARGE_EPSILON = 1000.0
KNOWN = {
    "upper bound": "upper bounds of what leaks",
    "lower bound": "lower bounds of what leaks, and no guarantee",
}
RED, PLAIN = "\033[31m", "\033[0m"


def decimal(value: Any, digits: int, rounding: str) -> str:
    """Text of an mpmath number, correctly rounded to ``digits`` significant digits."""
    from mpmath import isfinite
    from mpmath.libmp import to_rational

    if not isfinite(value):
        return str(float(value))
    numerator, denominator = to_rational(value._mpf_)
    context = Context(prec=digits, rounding=rounding)
    quotient = context.divide(Decimal(numerator), Decimal(denominator))
    if not quotient:
        return "0"
    if quotient.adjusted() >= -4:
        return f"{quotient:.{digits}g}"
    return written(quotient, f".{digits - 1}e")


def spelled(text: str, encoding: str | None = None) -> str:
    """Text for a terminal: Greek letters are spelled out if its encoding lacks them."""
    try:
        text.encode(encoding or getattr(sys.stdout, "encoding", None) or "utf-8")
    except (UnicodeEncodeError, LookupError):
        for letter, name in GREEK.items():
            text = text.replace(letter, name)
    return text


def print_lines(lines: Iterable[str]) -> None:
    """Print lines, broken between words if the terminal is narrower."""
    columns = terminal_width()
    for line in map(spelled, lines):
        if not columns or len(line) <= columns:
            print(line)
        else:
            print(textwrap.fill(line, columns, subsequent_indent="  ", break_long_words=False))


def print_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> None:
    """Print aligned columns; on a terminal that is too narrow, several lines for each row.

    Trailing spaces are removed.
    """
    heads, rows = [*map(spelled, heads)], [[*map(spelled, row)] for row in rows]
    widths = [max(map(len, column)) for column in zip(heads, *rows, strict=True)]
    lines = [
        "  ".join(cell.ljust(size) for cell, size in zip(row, widths, strict=True)).rstrip()
        for row in (heads, *rows)
    ]
    columns = terminal_width()
    if not columns or max(map(len, lines)) <= columns:
        print("\n".join(lines))
        return
    longest = max(map(len, heads))
    for i, row in enumerate(rows):
        if i:
            print()
        cells = [(head, cell) for head, cell in zip(heads, row, strict=True) if cell]
        print_lines(f"{head.ljust(longest)}  {cell}" for head, cell in cells)


def print_label(runs: Sequence[NamedRun], adjacency: str) -> None:
    """Print the labels of runs: mechanism, batches, protected unit and kind of bound."""
    if len(runs) == 1:
        mechanism = runs[0].mechanism
        print_lines((*shortened(in_words(mechanism)), *label_lines(mechanism, adjacency)))
        return
    from pyengine.workbench.tables.printed import labelled, with_names

    for run in runs[:NAMED]:
        print_lines(f"{run.name}: {line}" for line in shortened(in_words(run.mechanism)))
    if runs[NAMED:]:
        print(f"and {len(runs) - NAMED:,} more")
    lines = [(run.name, line) for run in runs for line in label_lines(run.mechanism, adjacency)]
    drawn = labelled([(run.name, run.mechanism) for run in runs])
    others = [
        line
        for title in ("protects", "answers")
        for line in with_names([each for each in lines if each[1].startswith(title)])
    ]
    print_lines((*drawn, *others))


def label_lines(mechanism: Mechanism, adjacency: str) -> list[str]:
    """Return lines on how batches must be drawn, what is protected, and the kind of bound."""
    label = label_of(mechanism, adjacency)
    protects = dict.fromkeys(f"{each.protects} (adjacency {adjacency})" for each in label)
    titles = (
        ("batches", [each.batches for each in label]),
        ("protects", [*protects, *([JOINTLY] if len(protects) > 1 else [])]),
        ("answers", [KNOWN[each.known] for each in label if each.known]),
    )
    return [f"{title}: {text}" for title, texts in titles for text in dict.fromkeys(texts)]


def print_json(content: dict[str, Any]) -> None:
    """Print a JSON object; fractions become strings, infinity ``"inf"`` and NaN null."""
    print(json.dumps({"pyengine": __version__, **_plain(content)}, indent=2, ensure_ascii=False))


def _plain(value: Any) -> Any:
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return [_plain(item) for item in value]
    if isinstance(value, Fraction):
        return str(value)
    if isinstance(value, float) and not math.isfinite(value):
        return None if math.isnan(value) else ("inf" if value > 0 else "-inf")
    return value


def remarks_on(
    *, deltas: Iterable[float] = (), epsilons: Iterable[float] = (), records: int | None = None
) -> list[str]:
    """Return warnings about δ and ε, given or computed, that give no meaningful protection."""
    found = []
    delta = max(deltas, default=0.0)
    if records is not None and delta >= 1.0 / records:
        found.append(
            f"δ = {written(delta)} is at least 1/n for n = {records:,} records, where even "
            "publishing one record at random is (0, δ)-DP: choose δ well below "
            f"{written(1 / records, '.2g')}"
        )
    elif delta > LARGE_DELTA:
        found.append(
            f"δ = {written(delta)} is large: publishing one of n records at random is (0, 1/n)-DP, "
            "so choose δ well below 1/n"
        )
    epsilon = max(epsilons, default=0.0)
    if LARGE_EPSILON < epsilon < math.inf:
        found.append(
            f"ε = {epsilon:,.6g} protects nobody: are two arguments swapped, such as the noise and "
            "the sampling rate?"
        )
    return found


def remark(texts: Iterable[str]) -> None:
    """Print remarks on standard error, so that redirected output is unaffected."""
    for text in texts:
        print(f"pyengine: remark: {text}", file=sys.stderr)


def paint(text: str, colour: str, stream: TextIO | None = None) -> str:
    """Colour a text if the stream is a terminal and NO_COLOR is not set."""
    stream = sys.stdout if stream is None else stream
    if os.environ.get("NO_COLOR") or not stream.isatty():
        return text
    return f"{colour}{text}{PLAIN}"
