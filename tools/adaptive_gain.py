"""Steps of an adaptive run, by its worst strategy and by the Rényi filter.

``python tools/adaptive_gain.py`` writes docs/adaptive_gain.csv and docs/adaptive_gain.png. For each
menu and target it computes the largest number of steps that keeps the target, however they are
chosen in view of earlier releases: by proven upper bounds of `pyengine.adaptive`, and by a Rényi
filter (Feldman and Zrnic, 2021) of the best order. It also computes the factor by which all noise
must grow for the Rényi filter to admit as many steps. It takes minutes; ``--jobs`` computes several
rows at a time.
"""

from __future__ import annotations

import argparse
import csv
import time
from collections.abc import Callable, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import astuple, dataclass, fields
from pathlib import Path

import numpy as np

import pyengine as pe
from pyengine.accounting.kernels import ORDERS, StepProfile
from pyengine.accounting.tables import Choosing, Detail

ROOT = Path(__file__).resolve().parents[1]
TABLE = ROOT / "docs" / "adaptive_gain.csv"
PICTURE = TABLE.with_suffix(".png")
RENYI = np.unique(np.concatenate([1.0 + np.geomspace(0.02, 1.0, 16), np.geomspace(2, 400, 80)]))
WIDTH = 1e-2  # relative, of the bounds of δ
ASKED = 80  # numbers of steps from half the guess to the guess: 0.9 % apart
Menu = tuple[tuple[float, float], ...]  # noise and rate of each choice
CASES: tuple[tuple[Menu, float, float], ...] = (
    (((0.6, 0.001), (1.0, 0.003)), 1.0, 1e-5),
    (((0.6, 0.001), (1.0, 0.003)), 3.0, 1e-6),
    (((0.7, 0.001), (1.0, 0.002)), 1.0, 1e-5),
    (((0.8, 0.002), (1.2, 0.004)), 1.0, 1e-6),
    (((1.0, 0.01), (2.0, 0.03)), 1.0, 1e-5),
    (((1.0, 0.01), (2.0, 0.03)), 3.0, 1e-6),
    (((1.0, 0.02), (2.0, 0.06)), 2.0, 1e-5),
    (((1.5, 0.01), (3.0, 0.025)), 2.0, 1e-6),
    (((2.0, 0.05), (4.0, 0.1)), 2.0, 1e-5),
    (((1.0, 0.01), (1.5, 0.02), (2.5, 0.04), (4.0, 0.07)), 2.0, 1e-5),
)


@dataclass(frozen=True)
class Gain:
    """One row: a menu and a target, steps by both ways, and the noise that the filter needs.

    ``fixed`` is the number of steps that a composition of the worst choice alone allows.
    """

    menu: str
    epsilon: float
    delta: float
    steps: int
    renyi: int
    fixed: int
    noise: float


def mechanisms(menu: Menu, noise: float = 1.0) -> list[pe.Mechanism]:
    """Sampled Gaussian steps, their noise times a factor."""
    return [pe.GaussianMechanism(noise * s).poisson_sampled(p) for s, p in menu]


def renyi_steps(menu: Menu, epsilon: float, delta: float, noise: float = 1.0) -> int:
    """Steps that a Rényi filter admits for any choices, at the order that admits most.

    T steps spend at most T times the largest divergence of a choice; the budget of a filter of one
    order is converted to the guarantee.
    """
    each = np.max(
        [
            pe.baselines.renyi_divergence(step, RENYI, adjacency=order)
            for step in mechanisms(menu, noise)
            for order in ORDERS
        ],
        axis=0,
    )
    return _last(lambda steps: float(pe.duality.from_rdp(RENYI, steps * each, epsilon)) <= delta)


def fixed_steps(menu: Menu, epsilon: float, delta: float) -> int:
    """Steps for which the composition of each single choice meets the target."""
    return min(
        _last(lambda steps, m=step: pe.delta(m.composed(steps), epsilon) <= delta)  # type: ignore[misc]
        for step in mechanisms(menu)
    )


def exact_steps(menu: Menu, epsilon: float, delta: float, guess: int) -> int:
    """Steps up to which the worst strategy meets the target by a proven bound.

    Rounded down by at most 1 %; no more than ``guess``. One recursion gives all numbers of steps:
    the plan of a run without limits has a state for each number of remaining steps.
    """
    while guess:
        asked = np.unique(np.geomspace(max(guess // 2, 1), guess, ASKED).astype(int))
        fits = np.ones(asked.size, dtype=bool)
        for order in ORDERS:
            fits &= _bounds(menu, epsilon, delta, asked, order) <= delta
        if fits[0]:
            return int(asked[np.flatnonzero(np.append(~fits, True))[0] - 1])
        guess = int(asked[0]) - 1
    return 0


def _bounds(menu: Menu, epsilon: float, delta: float, asked: np.ndarray, order: str) -> np.ndarray:
    """Upper bounds of δ for some numbers of steps."""
    run = pe.adaptive(mechanisms(menu), int(asked[-1]))
    choosing = Choosing([StepProfile(step, order) for step in run.choices], run.plan)  # type: ignore[arg-type]
    finer = 1.0
    while True:
        detail = Detail(choosing.coarse / finer, epsilon, 1e-2 * WIDTH * delta, 1e-5 * WIDTH)
        tables = choosing.tables(detail, asked.tolist())
        found = np.array([table.delta(epsilon) for table in tables])
        near = found[min(int(np.searchsorted(found[:, 2], delta)), asked.size - 1)]
        if near[2] - near[1] <= WIDTH * max(near[2], delta):
            return np.asarray(found[:, 2])
        finer *= 2.0


def noise_for(menu: Menu, epsilon: float, delta: float, steps: int) -> float:
    """Factor of all noise at which the Rényi filter admits that many steps."""
    low, high = 1.0, 4.0
    while high - low > 1e-4:
        middle = 0.5 * (low + high)
        enough = renyi_steps(menu, epsilon, delta, middle) >= steps
        low, high = (low, middle) if enough else (middle, high)
    return high


def gain(case: tuple[Menu, float, float]) -> tuple[Gain, float]:
    """One row, and the processor time of its worst strategy."""
    menu, epsilon, delta = case
    words = " ".join(f"{s:g}/{p:g}" for s, p in menu)
    fixed = fixed_steps(menu, epsilon, delta)
    start = time.process_time()
    steps = exact_steps(menu, epsilon, delta, fixed)
    seconds = time.process_time() - start
    renyi = renyi_steps(menu, epsilon, delta)
    noise = noise_for(menu, epsilon, delta, steps)
    return Gain(words, epsilon, delta, steps, renyi, fixed, round(noise, 3)), seconds


def _last(holds: Callable[[int], bool]) -> int:
    """The last number at which a condition holds that fails from there on."""
    low, high = 0, 1
    while holds(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if holds(middle) else (low, middle)
    return low


def write(rows: Sequence[Gain]) -> None:
    """Write the table."""
    with TABLE.open("w", encoding="utf-8", newline="") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([field.name for field in fields(Gain)])
        writer.writerows(astuple(row) for row in rows)


def read() -> list[Gain]:
    """Rows of the table."""
    with TABLE.open(encoding="utf-8", newline="") as file:
        kinds = {"menu": str, "steps": int, "renyi": int, "fixed": int}
        return [
            Gain(**{name: kinds.get(name, float)(text) for name, text in row.items()})
            for row in csv.DictReader(file)
        ]


def draw(rows: Sequence[Gain], path: Path) -> None:
    """Plot the gain in steps, and the saving in noise, against the number of steps."""
    from pyengine.plots.files import save
    from pyengine.plots.style import COLOURS, MARKERS, figure, frame, legend

    made = figure(6.8, 3.4)
    pair = made.subplots(1, 2)
    entries = []
    noises = sorted({row.menu.split("/")[0] for row in rows}, key=float)
    for i, least in enumerate(noises):
        some = [row for row in rows if row.menu.split("/")[0] == least]
        for axes, values in zip(
            pair,
            ([row.steps / row.renyi for row in some], [row.noise for row in some]),
            strict=True,
        ):
            (drawn,) = axes.plot([row.steps for row in some], values, MARKERS[i], color=COLOURS[i])
        entries.append((drawn, f"σ ≥ {least}"))
    for axes, label in zip(
        pair, ("steps, times the Rényi filter's", "noise that it needs, times"), strict=True
    ):
        frame(axes, xlabel="steps, worst strategy", ylabel=label, xscale="log")
        axes.set_xlim(100, 10_000)
    pair[0].set_yscale("log")
    legend(made, entries)
    save(made, path)


def main() -> None:
    """Write the table and the picture."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--jobs", type=int, default=1, help="processes")
    parser.add_argument("--draw", action="store_true", help="the picture of the table alone")
    given = parser.parse_args()
    if not given.draw:
        rows = []
        with ProcessPoolExecutor(given.jobs) as pool:
            for row, seconds in pool.map(gain, CASES):
                rows.append(row)
                print(*astuple(row), f"{seconds:.0f} s", flush=True)
        write(rows)
    draw(read(), PICTURE)


if __name__ == "__main__":
    main()
