"""Pictures of the pages for users; the build of the site runs ``docs/figures/gallery.py DIR``."""

from __future__ import annotations

import sys
from functools import partial
from pathlib import Path
from typing import Any

import pyengine as pe
from pyengine.plots import delta_figure, gamma_figure, noise_figure, save, trade_off_figure

PICTURES = 4
RUNS = {
    "noise 0.8, p 0.001, 10,000 steps": pe.dp_sgd(0.8, 0.001, 10_000),
    "noise 2.5, p 0.0128, 72,000 steps": pe.dp_sgd(2.5, 16384 / 1281167, 72_000),
    "noise 4, full batch, 100 steps": pe.dp_sgd(4.0, 1.0, 100),
}


def family(probability: float, noise: Any) -> pe.Mechanism:
    """10,000 steps of DP-SGD."""
    return pe.dp_sgd(noise, probability, 10_000)


def make(directory: Path) -> None:
    """Draw all pictures of the gallery."""
    directory.mkdir(parents=True, exist_ok=True)
    few = pe.dp_sgd(0.8, 0.1, 30)
    title = "30 steps, noise 0.8, p 0.1"
    families = {f"p = {p:g}, 10,000 steps": partial(family, p) for p in (0.01, 0.1, 1.0)}
    figures = {
        "trade_off": trade_off_figure(few, title=title),
        "gamma": gamma_figure(RUNS),
        "delta": delta_figure(few, title=title),
        "noise": noise_figure(families, 1e-6),
    }
    for name, figure in figures.items():
        save(figure, directory / f"{name}.png")


if __name__ == "__main__":
    make(Path(sys.argv[1]))
