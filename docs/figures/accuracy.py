"""Measured accuracy over the domain: docs/accuracy.png, and accuracy_measured.md beside it.

Compares values with the arbitrary-precision ones of tests/data/dp_sgd_random.json, each
answer from nothing, and writes what it found.  Run with ``python docs/figures/accuracy.py`` (needs
matplotlib).
"""

from __future__ import annotations

import argparse
import json
import math
import statistics
import time
from collections import defaultdict
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import matplotlib
import numpy as np

import pyengine as pe
from pyengine.api import answers
from pyengine.caches import clear_cache

matplotlib.use("Agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).resolve().parents[2]
OUTPUT = ROOT / "docs"
ENGINES = {
    "closed_form": "#1b9e77",
    "certified": "#7570b3",
    "lattice": "#e7298a",
}
SYMBOLS = {"gamma": "γ(κ)", "beta": "β(α)", "delta": "δ(ε)"}
SPLIT = 1e-30  # the limit of the error is 1e-11 above and 1e-9 below
FLOOR = 2.0**-54  # where errors of zero are drawn
TOP, REFUSED = 1e-4, 2e-5  # upper end of the axis; where refused answers are drawn


class Result(NamedTuple):
    """One answer beside its truth; value, error and claim are NaN where it was refused."""

    question: str
    point: dict[str, Any]
    truth: float
    error: float
    claim: float
    engine: str
    seconds: float


def questions(point: dict[str, Any]) -> list[tuple[str, str, str, float, Decimal]]:
    """(name, function, adjacency, argument, truth) of what a point of the file answers.

    T(A, B) is asked at the level A(S > c) or, with the laws exchanged, at B(S <= c), whichever is
    below 1/2: a double near 1 does not hold the digits of its distance from 1.
    """
    found = []
    value = {
        key: Decimal(text) for key, text in point.items() if isinstance(text, str) and "_" in key
    }
    least = Decimal("1e-300")
    for level, gamma, beta, adjacency in (
        ("p_above", "q_above", "q_below", "add"),
        ("q_below", "p_below", "p_above", "remove"),
    ):
        if level not in value or not least < value[level] <= Decimal("0.5"):
            continue
        alpha = value[level]
        if gamma in value:
            found.append(("gamma", "gamma_bound", adjacency, float(alpha), value[gamma]))
        # rounding of the level to double must not be what is measured
        sign = 1 if adjacency == "add" else -1
        slope = sign * point["c"] + math.log(alpha) - math.log(value.get(beta, Decimal(1)))
        if beta in value and value[beta] > least and slope < math.log(20.0):
            found.append(("beta", "trade_off", adjacency, float(alpha), value[beta]))
        break
    name, adjacency = ("h_qp", "remove") if point["c"] >= 0 else ("h_pq", "add")
    if name in value and value[name] > least:
        found.append(("delta", "delta", adjacency, abs(point["c"]), value[name]))
    return found


def measure(point: dict[str, Any]) -> list[Result]:
    """Ask everything that a point of the file answers, each time from nothing."""
    phases = zip(point["noise"], point["p"], point["steps"], strict=True)
    mechanism = pe.compose(*(pe.dp_sgd(s, p, int(n)) for s, p, n in phases))
    results = []
    for name, function, adjacency, argument, truth in questions(point):
        clear_cache()
        start = time.process_time()
        try:
            bounds, engine, _ = answers(
                function, mechanism, [argument], adjacency=adjacency, proven=False
            )
        except pe.AccuracyError:
            spent = time.process_time() - start
            results.append(Result(name, point, float(truth), math.nan, math.nan, "refused", spent))
            continue
        spent = time.process_time() - start
        if engine[0] not in ENGINES:
            raise ValueError(f"no table and no picture shows answers of {engine[0]}")
        exact = Decimal(float(bounds.value[0]))
        error = float(abs(exact - truth) / truth)
        claim = float(
            max(bounds.upper[0] - bounds.value[0], bounds.value[0] - bounds.lower[0])
        ) / float(truth)
        results.append(Result(name, point, float(truth), error, claim, engine[0], spent))
    return results


def shown(results: list[Result], question: str, engine: str) -> list[Result]:
    """Results of one question by one engine."""
    return [r for r in results if r.question == question and r.engine == engine]


def draw(results: list[Result], path: Path) -> None:
    """Errors against steps and noise, and claimed errors against measured ones."""
    plt.rcParams.update({"font.size": 8, "axes.spines.top": False, "axes.spines.right": False})
    figure, axes = plt.subplots(3, 3, figsize=(9, 8), sharey="row", constrained_layout=True)
    for column, (question, symbol) in enumerate(SYMBOLS.items()):
        for row, (label, x_of) in enumerate(
            (
                ("steps", lambda r: sum(r.point["steps"])),
                ("noise multiplier (smallest)", lambda r: min(r.point["noise"])),
            )
        ):
            ax = axes[row, column]
            for engine, colour in ENGINES.items():
                kept = shown(results, question, engine)
                x = [x_of(r) for r in kept]
                ax.scatter(
                    x,
                    [min(max(r.error, FLOOR), TOP) for r in kept], 7, colour, alpha=0.6, lw=0,
                    label=engine.replace("_", " "),
                )  # fmt: skip
            refused = shown(results, question, "refused")
            ax.scatter(
                [x_of(r) for r in refused], [REFUSED] * len(refused), 14, "black",
                marker="x", lw=0.7, label="refused",
            )  # fmt: skip
            ax.axhline(1e-11, color="0.6", lw=0.8)
            ax.axhline(1e-9, color="0.6", lw=0.8, ls=":")
            ax.set(xscale="log", yscale="log", xlabel=label, ylim=(FLOOR / 2, TOP))
            if row == 0:
                ax.set_title(symbol)
        ax = axes[2, column]
        for engine, colour in ENGINES.items():
            kept = shown(results, question, engine)
            ax.scatter(
                [max(r.claim, FLOOR) for r in kept], [max(r.error, FLOOR) for r in kept], 7, colour,
                alpha=0.6, lw=0,
            )  # fmt: skip
        ends = [FLOOR, 1e-8]
        ax.plot(ends, ends, color="0.4", lw=0.8)
        ax.set(xscale="log", yscale="log", xlabel="claimed relative error")
        ax.set(xlim=(FLOOR, 1e-8), ylim=(FLOOR / 2, TOP))
    for row in range(3):
        axes[row, 0].set_ylabel("measured relative error")
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(
        handles, labels, loc="outside upper center", ncols=6, frameon=False, markerscale=2
    )
    figure.savefig(path, dpi=110)
    plt.close(figure)


def table(head: list[str], rows: list[list[str]]) -> str:
    """Markdown table."""
    lines = ["| " + " | ".join(head) + " |", "|" + "---|" * len(head)]
    return "\n".join(lines + ["| " + " | ".join(row) + " |" for row in rows]) + "\n"


def number(value: float) -> str:
    """Error in two digits."""
    return f"{value:.1e}"


def accuracy_rows(results: list[Result]) -> list[list[str]]:
    """Errors and claims by question, engine and size of the value."""
    rows = []
    for question, symbol in SYMBOLS.items():
        for engine in ENGINES:
            for tiny in (False, True):
                kept = [r for r in shown(results, question, engine) if (r.truth < SPLIT) == tiny]
                if not kept:
                    continue
                errors = [r.error for r in kept]
                under = sum(r.error > r.claim for r in kept)
                rows.append(
                    [
                        symbol, engine.replace("_", " "), "below 1e-30" if tiny else "above 1e-30",
                        str(len(kept)), number(statistics.median(errors)), number(max(errors)),
                        number(max(r.claim for r in kept)), str(under),
                    ]
                )  # fmt: skip
    return rows


def timing_rows(results: list[Result]) -> list[list[str]]:
    """Time by engine."""
    rows = []
    for engine in [*ENGINES, "refused"]:
        times = [1e3 * r.seconds for r in results if r.engine == engine]
        if times:
            q = np.quantile(times, [0.5, 0.9, 1.0])
            rows.append([engine.replace("_", " "), str(len(times)), *(f"{t:.3g}" for t in q)])
    return rows


def refused_rows(results: list[Result]) -> list[list[str]]:
    """Where no engine answers."""
    groups: dict[str, list[Result]] = defaultdict(list)
    for r in results:
        steps = sum(r.point["steps"])
        decade = 10 ** int(math.log10(steps))
        groups[f"{decade:.0e}".replace("e+0", "e").replace("e+", "e")].append(r)
    rows = []
    for decade, group in sorted(groups.items(), key=lambda item: float(item[0])):
        bad = [r for r in group if r.engine == "refused"]
        if not bad:
            rows.append([f"{decade} to 10 times", str(len(group)), "0", "", ""])
            continue
        noise = [min(r.point["noise"]) for r in bad]
        rate = [max(r.point["p"]) for r in bad]
        rows.append(
            [
                f"{decade} to 10 times", str(len(group)), str(len(bad)),
                f"{min(noise):.3g} to {max(noise):.3g}", f"{min(rate):.3g} to {max(rate):.3g}",
            ]
        )  # fmt: skip
    return rows


def report(results: list[Result], points: int) -> str:
    """All tables as Markdown."""
    refused = sum(r.engine == "refused" for r in results)
    head = ["value", "engine", "range", "answers", "median", "largest", "largest claim", "exceeded"]
    parts = [
        f"{points} points, {len(results)} answers, {refused} of them refused with "
        "`AccuracyError`.\n",
        "Relative errors. *Exceeded* counts the answers whose measured error is above the claimed "
        "one.\n",
        table(head, accuracy_rows(results)),
        "The answers that exceed their claims most:\n",
        table(["value", "engine", "truth", "error", "claim", "phases"], worst_rows(results)),
        "Refused answers by number of steps, with the range of noise multipliers and sampling\n"
        "probabilities within which they lie.\n",
        table(
            ["steps", "asked", "refused", "noise multiplier", "probability"], refused_rows(results)
        ),
        "Processor time of one answer from nothing, in milliseconds.\n",
        table(["engine", "answers", "median", "90 %", "largest"], timing_rows(results)),
    ]
    return "\n".join(parts)


def worst_rows(results: list[Result]) -> list[list[str]]:
    """Answers whose errors are above the claim, by their ratio; noise, probability, steps."""
    bad = sorted((r for r in results if r.error > r.claim), key=lambda r: r.claim / r.error)
    rows = []
    for r in bad[:10]:
        phases = zip(r.point["noise"], r.point["p"], r.point["steps"], strict=True)
        text = "; ".join(f"{s:.4g}, {p:.4g}, {n}" for s, p, n in list(phases)[:3])
        rows.append(
            [SYMBOLS[r.question], r.engine.replace("_", " "), number(r.truth), number(r.error),
             number(r.claim), text]
        )  # fmt: skip
    return rows


def main() -> None:
    """Measure, draw, write."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--data", type=Path, default=ROOT / "tests/data/dp_sgd_random.json")
    parser.add_argument("--limit", type=int, default=10**9, help="points at most")
    given = parser.parse_args()
    points = json.loads(given.data.read_text(encoding="utf-8"))["points"][: given.limit]
    results = []
    for i, point in enumerate(points):
        results += measure(point)
        if i % 50 == 49:
            print(f"{i + 1} of {len(points)} points", flush=True)
    draw(results, OUTPUT / "accuracy.png")
    text = report(results, len(points))
    (OUTPUT / "accuracy_measured.md").write_text(text, encoding="utf-8")
    print(text)


if __name__ == "__main__":
    main()
