"""The answers of accountants as rows of tables and as objects for JSON."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from pyengine._support.decimals import written
from pyengine.accounting.conformance.grid import Setting
from pyengine.accounting.conformance.run import Result

__all__ = ["HEADS", "as_objects", "groups", "times"]

SYMBOLS = {"gamma": "γ", "delta": "δ", "epsilon": "ε"}
HEADS = ("question", "truth", "accountant", "answer", "error", "time", "ratio", "")
YARDSTICK = "pyengine"
DASH = "\N{EN DASH}"  # shown instead of an answer for a setting that is not supported


def times(results: list[Result]) -> dict[tuple[str, str, str], float]:
    """Seconds that this package took, by name of the setting, question and argument (text)."""
    return {
        _place(result): result.seconds
        for result in results
        if result.accountant == YARDSTICK and result.seconds is not None
    }


def _place(result: Result) -> tuple[str, str, str]:
    return result.case.setting.name, result.case.question, result.case.at


def groups(
    results: list[Result], mark: Callable[[str], str]
) -> Iterator[tuple[Setting, list[list[str]]]]:
    """Rows of each setting, in the grid's order of questions; ``mark`` formats ``UNSAFE``."""
    own = times(results)
    settings = list(dict.fromkeys(result.case.setting for result in results))
    for setting in settings:
        chosen = [result for result in results if result.case.setting == setting]
        places = list(dict.fromkeys((r.case.question, r.case.at) for r in chosen))
        chosen.sort(key=lambda r: places.index((r.case.question, r.case.at)))
        yield setting, [_row(result, own.get(_place(result)), mark) for result in chosen]


def _row(result: Result, own: float | None, mark: Callable[[str], str]) -> list[str]:
    case = result.case
    who = f"{result.accountant} {result.method}"
    head = [f"{SYMBOLS[case.question]}({case.at})", written(float(case.truth), ".8g"), who]
    if not result.supported:
        return [*head, DASH, "", "", "", ""]
    if result.value is None:
        return [*head, "none", "", "", "", result.message]
    seconds = result.seconds
    ratio = f"{seconds / own:,.0f}x" if seconds is not None and own else ""
    return [
        *head,
        written(result.value, ".8g"),
        _percent(result.error),
        _seconds(seconds),
        ratio,
        mark("UNSAFE") if result.unsafe else "",
    ]


def _percent(error: float | None) -> str:
    if error is None:
        return "NaN"
    if abs(error) < 1e-9:
        return "0"
    return (
        f"{written(100 * error, '+.3g')} %" if abs(error) < 10 else f"x {written(1 + error, '.3g')}"
    )


def _seconds(seconds: float | None) -> str:
    if seconds is None:
        return ""
    return f"{seconds:.2f} s" if seconds >= 0.1 else f"{1e3 * seconds:.2f} ms"


def as_objects(results: list[Result]) -> list[dict[str, Any]]:
    """One object for each answer."""
    own = times(results)
    rows = []
    for result in results:
        yardstick = own.get(_place(result))
        rows.append(
            {
                "accountant": result.accountant,
                "version": result.version,
                "method": result.method,
                "setting": result.case.setting.name,
                "question": result.case.question,
                "at": float(result.case.at),
                "truth": result.case.truth,
                "value": result.value,
                "relative_error": result.error,
                "supported": result.supported,
                "unsafe": result.unsafe,
                "seconds": result.seconds,
                "time_ratio": result.seconds / yardstick if result.seconds and yardstick else None,
                "message": result.message,
            }
        )
    return rows
