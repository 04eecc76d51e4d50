"""Steps that a run which adapts may make, by its worst strategy and by the Rényi filter.

``python tools/adaptive_gain.py`` writes docs/theory/adaptive_gain.md and adaptive_gain.png: for
some menus and targets the largest number of steps, each chosen from the menu in view of all that
was released, that keeps the target, by proven bounds of `pyengine.adaptive` and by the Rényi filter
(Feldman and Zrnic, 2021), and how much more noise the Rényi filter would need for as many.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import dataclass
from pathlib import Path

import numpy as np

import pyengine as pe
from pyengine.accounting.kernels import StepProfile
from pyengine.accounting.tables import Choosing, Detail

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / "docs" / "theory" / "adaptive_gain.md"
PICTURE = PAGE.with_suffix(".png")
ORDERS = np.unique(np.concatenate([1.0 + np.geomspace(0.05, 1.0, 12), np.geomspace(2, 400, 60)]))
TARGETS = ((1.0, 1e-5), (3.0, 1e-6))
MENUS = (
    ((0.6, 0.001), (1.0, 0.003)),
    ((0.8, 0.002), (1.2, 0.006)),
    ((1.0, 0.01), (2.0, 0.03)),
    ((1.0, 0.02), (2.0, 0.06)),
    ((1.5, 0.01), (3.0, 0.025)),
    ((2.0, 0.05), (4.0, 0.1)),
    ((1.0, 0.01), (1.5, 0.02), (2.5, 0.04), (4.0, 0.08)),
)
WIDTH = 2e-3  # relative, of the bounds of δ
ASKED = 30  # numbers of steps that are asked at a time


@dataclass(frozen=True)
class Gain:
    """One row: a menu, a target, steps by both, and noise that the Rényi filter needs."""

    menu: tuple[tuple[float, float], ...]
    epsilon: float
    delta: float
    steps: int
    renyi_steps: int
    noise: float

    def cells(self) -> list[str]:
        """As the page has them."""
        menu = ", ".join(f"({s:g}, {p:g})" for s, p in self.menu)
        more = f"{100.0 * (self.steps / self.renyi_steps - 1.0):.0f} %"
        target = f"({self.epsilon:g}, {self.delta:g})"
        return [menu, target, f"{self.steps:,}", f"{self.renyi_steps:,}", more, f"{self.noise:.3f}"]


def mechanisms(menu: Sequence[tuple[float, float]], noise: float = 1.0) -> list[pe.Mechanism]:
    """Sampled Gaussian steps, their noise times a factor."""
    return [pe.GaussianMechanism(noise * s).poisson_sampled(p) for s, p in menu]


def divergences(menu: Sequence[tuple[float, float]], noise: float = 1.0) -> np.ndarray:
    """The largest Rényi divergence of a step, of both orders of neighbours, at `ORDERS`."""
    return np.max(
        [
            pe.baselines.renyi_divergence(step, ORDERS, adjacency=order)
            for step in mechanisms(menu, noise)
            for order in ("add", "remove")
        ],
        axis=0,
    )


def renyi_steps(each: np.ndarray, epsilon: float, delta: float) -> int:
    """Steps up to which some order's budget is not used up, by the best conversion of an order.

    An adversary who adapts spends at most T times the largest divergence of each order, and a
    filter that stops by one order has that order's guarantee.
    """

    def fits(steps: int) -> bool:
        return float(pe.duality.from_rdp(ORDERS, steps * each, epsilon)) <= delta

    return _last(fits, 1)


def exact_steps(
    menu: Sequence[tuple[float, float]], epsilon: float, delta: float, guess: int
) -> int:
    """Steps up to which the worst strategy keeps the target by a proven bound.

    Rounded down by at most a 500th; ``guess`` is where the search begins.
    """
    low, high, finer = 0, guess, 1.0
    while high - low > max(1, low // 500):
        asked = np.unique(np.linspace(low + 1, high, ASKED).astype(int))
        bounds, finer = _bounds(menu, epsilon, delta, asked, finer)
        fits = bounds <= delta
        if fits.all():
            low, high = high, 2 * high
            continue
        at = int(np.argmin(fits))  # the first that does not fit
        low, high = int(asked[at - 1]) if at else low, int(asked[at])
    words = {"adjacency": "add_remove", "bounds": True, "tolerance": 5e-3}
    while pe.delta(pe.adaptive(mechanisms(menu), low), epsilon, **words).upper > delta:
        low -= max(1, low // 500)  # where the other order is larger
    return low


def _bounds(
    menu: Sequence[tuple[float, float]],
    epsilon: float,
    delta: float,
    asked: np.ndarray,
    finer: float,
) -> tuple[np.ndarray, float]:
    """Upper bounds of δ for some numbers of steps, and how fine the grid had to be."""
    run = pe.adaptive(mechanisms(menu), int(asked[-1]))
    choosing = Choosing([StepProfile(step, "remove") for step in run.choices], run.plan)
    while True:
        detail = Detail(choosing.coarse / finer, epsilon, 1e-2 * WIDTH * delta, 1e-5 * WIDTH)
        # the plan of a run without limits has a state for each number of steps left
        tables = choosing.tables(detail, asked.tolist())
        found = np.array([table.delta(epsilon) for table in tables])
        near = found[min(int(np.searchsorted(found[:, 2], delta)), asked.size - 1)]
        if near[2] - near[1] <= WIDTH * near[2]:
            return found[:, 2], finer
        finer *= 2.0


def noise_for(menu: Sequence[tuple[float, float]], epsilon: float, delta: float, steps: int) -> float:
    """Factor of all noise with which the Rényi filter admits so many steps."""
    low, high = 1.0, 2.0
    while high - low > 1e-4:
        middle = 0.5 * (low + high)
        enough = renyi_steps(divergences(menu, middle), epsilon, delta) >= steps
        low, high = (low, middle) if enough else (middle, high)
    return high


def gain(menu: tuple[tuple[float, float], ...], target: tuple[float, float]) -> Gain:
    """One row of the table."""
    epsilon, delta = target
    known = renyi_steps(divergences(menu), epsilon, delta)
    steps = exact_steps(menu, epsilon, delta, math.ceil(1.25 * known) + 20)
    return Gain(menu, epsilon, delta, steps, known, noise_for(menu, epsilon, delta, steps))


def _last(holds: object, start: int) -> int:
    """The last number from ``start`` on at which something holds that then fails."""
    if not callable(holds):
        raise TypeError("what holds must be a function")
    low, high = 0, start
    while holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def page(rows: Sequence[Gain]) -> str:
    """The page, in Markdown."""
    heads = (
        "menu: (noise, rate)",
        "target (ε, δ)",
        "steps, worst strategy",
        "steps, Rényi filter",
        "more steps",
        "noise the filter needs for as many, times",
    )
    lines = [f"| {' | '.join(cells)} |" for cells in (heads, ["---"] * 6, *(r.cells() for r in rows))]
    return "\n".join(
        [
            "# Beside the Rényi filter",
            "",
            "How many steps may be chosen from a menu, in view of all that was released, before an",
            "(ε, δ) target is lost: by the worst strategy ([runs that adapt](adaptive.md), proven",
            "upper bounds) and by the Rényi filter (Feldman and Zrnic 2021, arXiv 2008.11193) with",
            "the best conversion of an order at 72 orders. Made by",
            "`python tools/adaptive_gain.py`; adjacency `add_remove`.",
            "",
            *lines,
            "",
            "![Steps of the worst strategy over those of the Rényi filter](adaptive_gain.png)",
            "",
        ]
    )


def draw(rows: Sequence[Gain], path: Path) -> None:
    """Ratio of steps against the number of steps."""
    from pyengine.plots.files import save
    from pyengine.plots.style import COLOURS, MARKERS, figure, frame, legend

    made = figure(6.4, 4.0)
    axes = made.subplots()
    entries = []
    for i, target in enumerate(TARGETS):
        chosen = [row for row in rows if (row.epsilon, row.delta) == target]
        (drawn,) = axes.plot(
            [row.steps for row in chosen],
            [row.steps / row.renyi_steps for row in chosen],
            MARKERS[i],
            color=COLOURS[i],
        )
        entries.append((drawn, f"ε = {target[0]:g}, δ = {target[1]:g}"))
    frame(axes, xlabel="steps, worst strategy", ylabel="times those of the Rényi filter", xscale="log")
    axes.set_ylim(bottom=1.0)
    legend(made, entries)
    save(made, path)


def main() -> None:
    """Write the page and the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    jobs = parser.parse_args().jobs
    pairs = [(menu, target) for menu in MENUS for target in TARGETS]
    with ProcessPoolExecutor(jobs) as pool:
        futures = [pool.submit(gain, *pair) for pair in pairs]
        rows = []
        for future in futures:
            rows.append(future.result())
            print(*rows[-1].cells(), sep="  ", flush=True)
    PAGE.write_text(page(rows), encoding="utf-8")
    draw(rows, PICTURE)


if __name__ == "__main__":
    main()
