"""Measured errors of the papers' approximations: two figures in docs/approximations.

``errors.png``: CLT and Edgeworth of order 4 over steps, sampling probability, noise and κ;
``published.png``: CLT, Edgeworth and Monte Carlo at settings of Kaissis et al. 2023.  Truth is
``method="auto"``, whose own error is below 1e-11, for the first and `pyengine.reference` for the
second.  Run with ``python docs/figures/approximations.py`` (needs matplotlib and the extra
``reference``; some minutes).
"""

from __future__ import annotations

import argparse
import warnings
from pathlib import Path

import matplotlib
import numpy as np

import pyengine as pe
from pyengine.approximations import edgeworth_gamma, monte_carlo_gamma

matplotlib.use("Agg")
import matplotlib.pyplot as plt

OUTPUT = Path(__file__).resolve().parents[1] / "approximations"
STEPS = np.unique(np.geomspace(10, 1e6, 11).round().astype(int))
PROBABILITIES = np.geomspace(1e-4, 1.0, 9)
NOISES = (0.7, 1.0, 2.0, 5.0)
KAPPAS = (1e-1, 1e-3, 1e-6)
LIMIT = 1e-6
COLOURS = ("#D55E00", "#CC79A7", "#009E73", "#0072B2")

# (title, mechanism): in the manner of the CIFAR-10 and ImageNet workflows of Kaissis et al. 2023,
# figures 1e and 2, which cite others for the parameters: chosen, with their largest N
SETTINGS = (
    ("CIFAR-10 style: noise 3, p = 4096/50000, N = 1000", pe.dp_sgd(3.0, 4096 / 50000, 1000)),
    ("smaller rate: noise 3, p = 0.01, N = 1000", pe.dp_sgd(3.0, 0.01, 1000)),
    (
        "ImageNet style: noise 2.5, p = 16384/1281167, N = 72,000",
        pe.dp_sgd(2.5, 16384 / 1281167, 72_000),
    ),
    ("smaller rate: noise 2.5, p = 0.001, N = 72,000", pe.dp_sgd(2.5, 0.001, 72_000)),
)


def truth(mechanism: pe.Mechanism, kappa: float) -> float:
    """γ(κ), NaN where the exact engines refuse."""
    try:
        return float(pe.gamma_bound(mechanism, kappa))
    except pe.AccuracyError:
        return np.nan


def measure() -> dict[str, np.ndarray]:
    """Relative errors of γ for both methods, indexed by noise, κ, probability and steps."""
    shape = (len(NOISES), len(KAPPAS), PROBABILITIES.size, STEPS.size)
    errors = {"clt": np.full(shape, np.nan), "edgeworth": np.full(shape, np.nan)}
    for i, noise in enumerate(NOISES):
        for k, p in enumerate(PROBABILITIES):
            for n, steps in enumerate(STEPS):
                mechanism = pe.dp_sgd(noise, float(p), int(steps))
                for j, kappa in enumerate(KAPPAS):
                    exact = truth(mechanism, kappa)
                    for method, table in errors.items():
                        value = pe.gamma_bound(mechanism, kappa, method=method)
                        table[i, j, k, n] = abs(value / exact - 1.0)
    return errors


def draw_errors(errors: dict[str, np.ndarray]) -> None:
    """Heat maps at noise 1, and where order 4 reaches 1e-6 at all noises."""
    figure, axes = plt.subplots(
        3, 3, figsize=(12, 10), layout="constrained", sharex=True, sharey=True
    )
    titles = {"clt": "CLT, noise 1", "edgeworth": "Edgeworth, order 4, noise 1"}
    for row, (method, title) in enumerate(titles.items()):
        for j, kappa in enumerate(KAPPAS):
            table = np.log10(np.maximum(errors[method][NOISES.index(1.0), j], 1e-12))
            mesh = axes[row, j].pcolormesh(
                STEPS, PROBABILITIES, table, cmap="viridis_r", vmin=-12, vmax=0, shading="nearest"
            )
            axes[row, j].set_title(f"{title}, κ = {kappa:g}", fontsize=10)
    bar = figure.colorbar(mesh, ax=axes[:2, :], label="log₁₀ of the relative error of γ")
    bar.ax.invert_yaxis()
    for j, kappa in enumerate(KAPPAS):
        for i, noise in enumerate(NOISES):
            reached = np.log10(np.maximum(np.nan_to_num(errors["edgeworth"][i, j]), 1e-14))
            axes[2, j].contour(
                STEPS, PROBABILITIES, reached, levels=[np.log10(LIMIT)], colors=[COLOURS[i]]
            )
            axes[2, j].plot([], [], color=COLOURS[i], label=f"noise {noise:g}")
        axes[2, j].set_title(f"order 4 below 1e-6: right, κ = {kappa:g}", fontsize=10)
        axes[2, j].set_xlabel("steps N")
    axes[2, 0].legend(fontsize=8, loc="upper right")  # where no curve reaches
    for axis in axes[:, 0]:
        axis.set_ylabel("sampling probability p")
    for axis in axes.ravel():
        axis.set(xscale="log", yscale="log")
    figure.savefig(OUTPUT / "errors.png", dpi=110)


def draw_published() -> None:
    """Relative error of γ(κ) at the papers' settings, with the Monte Carlo interval's width."""
    kappa = np.geomspace(1e-7, 1e-1, 13)
    figure, axes = plt.subplots(
        2, 2, figsize=(11, 8), layout="constrained", sharex=True, sharey=True
    )
    for axis, (title, mechanism) in zip(axes.ravel(), SETTINGS, strict=True):
        exact = np.array(
            [float(pe.reference.gamma_bound(mechanism, float(k), digits=20)) for k in kappa]
        )
        samples = 10**6 if mechanism.steps < 10_000 else 20_000
        plain = monte_carlo_gamma(mechanism, kappa, samples=samples, tilted=False)
        tilted = monte_carlo_gamma(mechanism, kappa[::2], samples=min(samples, 20_000))
        lines = (
            ("CLT", pe.gamma_bound(mechanism, kappa, method="clt"), kappa, "#D55E00", "-"),
            (
                "Edgeworth, order 2",
                edgeworth_gamma(mechanism, kappa, order=2),
                kappa,
                "#56B4E9",
                "--",
            ),
            ("Edgeworth, order 4", edgeworth_gamma(mechanism, kappa), kappa, "#0072B2", "-"),
            ("Monte Carlo, Algorithm 1", plain.value, kappa, "#009E73", "o"),
            ("Monte Carlo, tilted, 20,000 samples", tilted.value, kappa[::2], "#CC79A7", "s"),
        )
        for label, value, x, colour, style in lines:
            error = np.abs(value / exact[:: round(kappa.size / x.size)] - 1.0)
            axis.plot(x, np.maximum(error, 1e-14), style, color=colour, label=label, markersize=4)
        axis.set(xscale="log", yscale="log", ylim=(1e-14, 3.0))
        axis.set_title(f"{title}\nAlgorithm 1: {samples:,} samples", fontsize=10)
        axis.grid(color="0.92")
    for axis in axes[1]:
        axis.set_xlabel("prior success κ")
    for axis in axes[:, 0]:
        axis.set_ylabel("relative error of γ")
    figure.suptitle("Relative error of γ(κ), adjacency add", fontsize=11)
    handles, labels = axes[0, 0].get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3, fontsize=9, frameon=False)
    figure.savefig(OUTPUT / "published.png", dpi=110)


def main() -> None:
    """Measure, draw, and print the region in which order 4 reaches 1e-6."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("figure", nargs="?", choices=["errors", "published"])
    chosen = parser.parse_args().figure
    OUTPUT.mkdir(exist_ok=True)
    warnings.simplefilter("ignore", pe.ApproximationWarning)
    if chosen != "errors":
        draw_published()
    if chosen == "published":
        return
    errors = measure()
    draw_errors(errors)
    for i, noise in enumerate(NOISES):
        for j, kappa in enumerate(KAPPAS):
            below = errors["edgeworth"][i, j] <= LIMIT
            known = np.isfinite(errors["edgeworth"][i, j])
            clt = errors["clt"][i, j][known] <= 1e-2
            print(
                f"noise {noise:g}, kappa {kappa:g}: order 4 within 1e-6 at {below[known].sum()} of "
                f"{known.sum()} points, CLT within 1e-2 at {clt.sum()}"
            )


if __name__ == "__main__":
    main()
