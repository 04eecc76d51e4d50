"""Questions and true answers from the reference files, for the tests of the engines."""

from __future__ import annotations

import json
from collections.abc import Iterator
from decimal import Context, Decimal
from pathlib import Path
from typing import Any, NamedTuple

import pyengine as pe

DATA = Path(__file__).parent / "data"
CONTEXT = Context(prec=40, Emin=-10_000_000, Emax=10_000_000)
SMALLEST = Decimal("1e-300")
# The rounding of an argument is corrected to first order; the second order is the square of this.
LARGEST_SHIFT = Decimal("1e-8")


class Question(NamedTuple):
    """A question with its true answer."""

    name: str  # "gamma", "beta" or "delta"
    adjacency: str
    mechanism: pe.Mechanism
    argument: float
    truth: Decimal
    where: str


def mechanism_of(point: dict[str, Any]) -> pe.Mechanism:
    """Composition of the phases of a random point."""
    phases = zip(point["noise"], point["p"], point["steps"], strict=True)
    return pe.compose(*[pe.dp_sgd(noise, p, steps) for noise, p, steps in phases])


def load(name: str) -> Any:
    """Read a data file."""
    return json.loads((DATA / name).read_text(encoding="utf-8"))


def questions_of(point: dict[str, Any]) -> Iterator[Question]:
    """Yield every question that a random point answers."""
    mechanism, c = mechanism_of(point), Decimal(point["c"])
    where = (
        f"noise={point['noise'][:3]} p={point['p'][:3]} steps={point['steps'][:3]} c={point['c']}"
    )
    known = {key: Decimal(point[key]) for key in point if key[:2] in ("p_", "q_", "h_")}
    for adjacency, sign, keys in (
        ("add", 1, ("p_above", "p_below", "q_above", "q_below")),
        ("remove", -1, ("q_below", "q_above", "p_below", "p_above")),
    ):
        level, rest, gamma, beta = (known.get(key) for key in keys)
        if level is None or not SMALLEST < level < 1:
            continue
        argument = float(level)
        if not 0.0 < argument < 1.0:
            continue
        moved_level = CONTEXT.subtract(Decimal(argument), level)
        if rest is not None and rest < level:  # it has the digits of a level near 1
            moved_level = CONTEXT.subtract(rest, CONTEXT.subtract(Decimal(1), Decimal(argument)))
        if abs(moved_level) > LARGEST_SHIFT * CONTEXT.subtract(Decimal(1), level):
            continue
        # the argument is rounded to a double; the curve's slope is e^{±c}
        shift = CONTEXT.multiply(CONTEXT.exp(sign * c), moved_level)
        for name, value, moved in (("gamma", gamma, shift), ("beta", beta, -shift)):
            if value is None or value < SMALLEST or abs(moved) > LARGEST_SHIFT * value:
                continue
            truth = CONTEXT.add(value, moved)
            yield Question(name, adjacency, mechanism, argument, truth, where)
    if point["c"] >= 0 and "h_qp" in known:
        yield Question("delta", "remove", mechanism, point["c"], known["h_qp"], where)
    if point["c"] <= 0 and "h_pq" in known:
        yield Question("delta", "add", mechanism, -point["c"], known["h_pq"], where)


FUNCTIONS = {"gamma": pe.gamma_bound, "beta": pe.trade_off, "delta": pe.delta}


def ask(question: Question, bounds: bool | str = True) -> pe.Bounds:
    """Ask the package, with proven bounds, or as the word says."""
    answer = FUNCTIONS[question.name](
        question.mechanism, question.argument, adjacency=question.adjacency, bounds=bounds
    )
    assert isinstance(answer, pe.Bounds)
    return answer


def plain(question: Question) -> float:
    """Ask the package for the value alone."""
    return float(
        FUNCTIONS[question.name](
            question.mechanism, question.argument, adjacency=question.adjacency
        )
    )


def relative_error(value: float, truth: Decimal) -> float:
    """|value - truth| / truth without rounding the truth."""
    return abs(float(CONTEXT.divide(CONTEXT.subtract(Decimal(value), truth), truth)))
