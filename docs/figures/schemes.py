"""The table and the picture of docs/batch_selection.md that compare schemes at equal noise.

``python docs/figures/schemes.py`` asks every scheme for ε at δ = 1e-5 over noise multipliers, steps
an epoch and epochs, writes docs/schemes_measured.md, and draws docs/schemes.png; needs the extra
``plots``.  What no engine answers has a dash.
"""

from __future__ import annotations

import argparse
from collections.abc import Callable
from pathlib import Path

import numpy as np

import pyengine as pe

DOCS = Path(__file__).resolve().parents[1]
DELTA = 1e-5
NOISES, STEPS, EPOCHS = (0.5, 1.0, 2.0, 4.0), (10, 100, 1000, 10_000), (1, 10, 100, 1000)

Run = Callable[[float, int, int], pe.Mechanism]


def poisson(noise: float, steps: int, epochs: int) -> pe.Mechanism:
    """Each record in each batch with probability 1/t."""
    return pe.dp_sgd(noise, f"1/{steps}", steps * epochs)


def allocated(noise: float, steps: int, epochs: int) -> pe.Mechanism:
    """Each record in one random batch of each epoch."""
    return pe.dp_sgd_allocated(noise, steps, epochs)


def without_replacement(noise: float, steps: int, epochs: int) -> pe.Mechanism:
    """A random batch of the share 1/t, of fixed size, in each step."""
    step = pe.GaussianMechanism(noise)
    one = step.sampled_without_replacement(batch_size=1, dataset_size=steps)
    return one.composed(steps * epochs)


def shuffled(noise: float, steps: int, epochs: int) -> pe.Mechanism:
    """What shuffled batches leak at the least."""
    return pe.shuffled_lower_bound(noise, steps, epochs)


SCHEMES: dict[str, tuple[Run, tuple[str, ...]]] = {
    "Poisson, p = 1/t": (poisson, ("remove", "add")),
    "random allocation": (allocated, ("remove", "add")),
    "without replacement": (without_replacement, ("add_remove",)),
    "shuffled, at the least": (shuffled, ("remove",)),
}


def asked(run: Run, adjacency: str, noise: float, steps: int, epochs: int) -> float:
    """ε, or NaN where nothing answers."""
    try:
        return float(pe.epsilon(run(noise, steps, epochs), DELTA, adjacency=adjacency))
    except pe.AccuracyError as error:
        print(f"{noise:g}, {steps}, {epochs}, {adjacency}: {error}", flush=True)
        return float("nan")


def cell(run: Run, adjacencies: tuple[str, ...], noise: float, steps: int, epochs: int) -> str:
    """All adjacencies of one scheme."""
    values = (asked(run, adjacency, noise, steps, epochs) for adjacency in adjacencies)
    return " / ".join("–" if np.isnan(value) else f"{value:.5g}" for value in values)


def table() -> str:
    """Markdown rows of all settings."""
    head = " | ".join(SCHEMES)
    lines = [f"| σ | t | epochs | {head} |", "|---" * (3 + len(SCHEMES)) + "|"]
    for noise in NOISES:
        for steps in STEPS:
            for epochs in EPOCHS:
                cells = [
                    cell(run, orders, noise, steps, epochs) for run, orders in SCHEMES.values()
                ]
                lines.append(f"| {noise:g} | {steps} | {epochs} | {' | '.join(cells)} |")
                print(lines[-1], flush=True)
    return "\n".join(lines) + "\n"


def draw(path: Path) -> None:
    """ε against the steps of an epoch, at noise 1, for 1 and for 100 epochs."""
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9.0, 3.8), layout="constrained")
    panels = figure.subplots(1, 2)
    steps = [10, 18, 32, 56, 100, 178, 316, 562, 1000, 3162, 10_000]
    for panel, epochs in zip(panels, (1, 100), strict=True):
        for name, (run, orders) in SCHEMES.items():
            values = [
                max(asked(run, order, 1.0, count, epochs) for order in orders) for count in steps
            ]
            style = "--" if run is shuffled else "-"
            panel.plot(steps, values, style, label=name)
        panel.set(xscale="log", yscale="log", xlabel="steps an epoch, t")
        panel.set_title(f"{epochs} epoch{'s' if epochs > 1 else ''}, σ = 1, add or remove")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel(f"ε at δ = {DELTA:g}")
    panels[1].legend(fontsize="small")
    figure.savefig(path, dpi=150)


def main() -> None:
    """Write the files."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--only-picture", action="store_true")
    if not parser.parse_args().only_picture:
        (DOCS / "schemes_measured.md").write_text(table(), encoding="utf-8")
    draw(DOCS / "schemes.png")


if __name__ == "__main__":
    main()
