"""Cross-checks: published values, nested integration, one method against the other."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

from flint import arb, ctx, fmpq

from . import hyperbola, line, nested, store
from .line import NotFeasibleError
from .model import Phase, Point
from .saddle import Cumulants
from .solve import agreed_digits

METHODS = {"line": line, "hyperbola": hyperbola}


def run(point: Point, method: str) -> dict[str, arb]:
    """Return the six quantities by the first variant of a method that is feasible."""
    module, cumulants = METHODS[method], Cumulants(point.phases)
    for variant in module.VARIANTS:
        try:
            return module.evaluate([point], module.plan(point, cumulants, variant))[0]
        except NotFeasibleError:
            continue
    raise NotFeasibleError(method)


def published(path: Path) -> None:
    """Print the digits on which each method agrees with the published values."""
    data = json.loads(path.read_text(encoding="utf-8"))
    for row in data["gamma"]:
        phases = _phases(row)
        for method in METHODS:
            gamma, beta = _trade_off(phases, row, method)
            digits = [_digits(gamma, row["gamma"]), _digits(beta, row["beta"])]
            print("gamma", method, _label(row), digits, flush=True)
    for row in data["delta"]:
        epsilon = float(row["epsilon"])
        name, c = ("h_qp", epsilon) if row["adjacency"] == "remove" else ("h_pq", -epsilon)
        for method in METHODS:
            try:
                value = run(Point(_phases(row), c), method)[name]
            except NotFeasibleError:
                continue
            print("delta", method, _label(row), _digits(value, row["delta"]), flush=True)


@ctx.workprec(200)
def _trade_off(phases: tuple[Phase, ...], row: dict[str, Any], method: str) -> tuple[arb, arb]:
    """Return gamma and beta at kappa: secant steps to a double c, then a tangent."""
    numerator, denominator = Fraction(row["kappa"]).as_integer_ratio()
    add = row["adjacency"] == "add"
    name, other = ("p_above", "q_above") if add else ("q_below", "p_below")
    rest = "q_below" if add else "p_above"
    kappa = arb(fmpq(numerator, denominator))
    cumulants = Cumulants(phases)
    c = cumulants.threshold(name, math.log(float(kappa))) + cumulants.shift
    width = 1e-3 * math.sqrt(cumulants.mean_variance(0.5)[1])
    previous, c = c, c + width
    values = run(Point(phases, previous), method)
    for _ in range(12):
        error = float((values[name] / kappa).log())
        values = run(Point(phases, c), method)
        now = float((values[name] / kappa).log())
        if abs(now) < 3e-14 or now == error:
            break
        previous, c = c, c - now * (c - previous) / (now - error)
    slope = arb(c).exp() if add else (-arb(c)).exp()
    change = slope * (kappa - values[name])
    return values[other] + change, values[rest] - change


@ctx.workprec(200)
def nested_sample(path: Path, most: int) -> None:
    """Print the agreement of stored points of two and three steps with nested integration.

    Three steps take a million nodes a point: a third as many, of moderate noise and tail.
    """
    _, points, _ = store.read(path)
    done: dict[int, set[tuple[Phase, ...]]] = {2: set(), 3: set()}
    for record in points:
        point = store.point(record)
        if point.total_steps not in done or 1.0 in record["p"]:
            continue
        seen = done[point.total_steps]
        easy = 0.4 < record["noise"][0] < 2.5 and float(record.get("p_above", 0)) > 1e-9
        if point.phases in seen or (point.total_steps == 3 and not easy):
            continue
        if len(seen) >= (most if point.total_steps == 2 else most // 3):
            continue
        seen.add(point.phases)
        values = nested.evaluate(point, _rule(point))
        kept = {k: arb(v) for k, v in record.items() if k in values}
        digits = agreed_digits({**dict.fromkeys(values, arb(0)), **kept}, values)
        shown = {k: v for k, v in digits.items() if k in kept}
        print(f"nested {store.parameters(point)} {shown}", flush=True)


def _rule(point: Point) -> nested.NestedRule:
    if point.total_steps == 3:
        return nested.NestedRule(0.045, -40.0, 320)
    noise = [float(phase.noise) for phase in point.phases]
    return nested.NestedRule(
        min(0.025 if min(noise) > 0.5 else 0.012, 0.2 / max(noise)), -72.0, 320
    )


def _phases(row: dict[str, Any]) -> tuple[Phase, ...]:
    return (Phase(Fraction(row["sigma"]), Fraction(row["p"]), row["steps"]),)


def _label(row: dict[str, Any]) -> str:
    return " ".join(str(v) for k, v in row.items() if k not in ("gamma", "beta", "delta"))


@ctx.workprec(200)
def _digits(value: arb, text: str) -> float:
    """Return the digits on which a value agrees with a decimal string."""
    gap = abs(value.mid() / arb(text) - 1).mid()
    return 99.0 if gap == 0 else round(-float(gap.log()) / math.log(10), 1)
