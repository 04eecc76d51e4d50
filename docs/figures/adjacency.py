"""Draw docs/theory/adjacency.png: profiles that cross, and what is known about substitution.

Run from the repository's root: python docs/figures/adjacency.py
"""

from __future__ import annotations

from pathlib import Path

import matplotlib as mpl

mpl.use("Agg")
import matplotlib.pyplot as plt
import numpy as np

import pyengine as pe
from pyengine.engines.lattice import LatticePair
from pyengine.laws.composition import step_law

OUTPUT = Path(__file__).parents[1] / "theory" / "adjacency.png"


def main() -> None:
    """Three panels: figures 1, 3 and 4 of Lebeda et al. (2024)."""
    figure, axes = plt.subplots(1, 3, figsize=(12.5, 3.8), constrained_layout=True)

    grid = np.linspace(0.0, 1.3, 80)
    sampled = pe.LaplaceMechanism(1.0).poisson_sampled(0.5).composed(2)
    for adjacency, style in (("add", "-"), ("remove", "--")):
        values = pe.delta(sampled, grid, adjacency=adjacency)
        axes[0].plot(grid, values, style, label=adjacency)
    axes[0].set_title("Laplace noise 1, Poisson rate 1/2, two steps")

    step = pe.LaplaceMechanism(2.0).sampled_without_replacement(batch_size=1, dataset_size=2)
    orders = {
        "P×P against Q×Q": (("remove", "remove"), "--"),
        "Q×Q against P×P": (("add", "add"), "-"),
        "P×Q against Q×P": (("remove", "add"), "-."),
    }
    colours = ("C1", "C0", "C2")  # P×P against Q×Q is remove, the reverse is add
    for colour, (label, (pair, style)) in zip(colours, orders.items(), strict=True):
        laws = [(step_law(step, order), 1) for order in pair]
        values = LatticePair(laws).profile(grid).value
        axes[1].plot(grid, values, style, color=colour, label=label)
    found = pe.delta(step.composed(2), grid, adjacency="substitute", bounds=True)
    axes[1].plot(grid, found.upper, ":", color="black", label="upper bound")
    axes[1].set_title("Laplace noise 2, one of two records, two steps")

    grid = np.linspace(0.0, 6.0, 40)
    gaussian = pe.GaussianMechanism(4.0).sampled_without_replacement(batch_size=1, dataset_size=20)
    found = pe.delta(gaussian.composed(1000), grid, adjacency="substitute", bounds=True)
    axes[2].semilogy(grid, found.upper, ":", color="black", label="upper bound")
    axes[2].semilogy(grid, found.lower, "--", color="C1", label="lower bound (remove)")
    axes[2].set_title("Gaussian noise 4, batches of 1/20, 1000 steps")

    for axis in axes:
        axis.set_xlabel("ε")
        axis.set_ylabel("δ(ε)")
        axis.legend(frameon=False, fontsize=8)
        axis.grid(alpha=0.25)
        axis.title.set_fontsize(10)
    figure.savefig(OUTPUT, dpi=110)


if __name__ == "__main__":
    main()
