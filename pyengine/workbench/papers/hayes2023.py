"""Hayes, Mahloujifar and Balle 2023: bounding training data reconstruction in DP-SGD."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from functools import partial
from typing import TYPE_CHECKING

import numpy as np

from pyengine.api import gamma_bound
from pyengine.mechanisms import GaussianMechanism
from pyengine.special import ndtr, ndtri
from pyengine.threat.baselines.information import (
    fano_success,
    gaussian_information,
    orthogonal_information,
)
from pyengine.workbench.papers import hayes2023_training as training
from pyengine.workbench.papers.item import Check, Item, Paper, Table, check, curves
from pyengine.workbench.plots.style import frame

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["PAPER"]

BOTH = "add for γ, add_remove for (ε, δ)"

LABELS = {
    "fano": "Guo et al. 2022b (Fano)",
    "fano_exact_information": "Fano, exact mutual information",
    "exact": "exact γ(κ)",
}
SAMPLES = 100_000  # of the paper's Monte Carlo simulation

# Table 2: advantages by prior size and method, noise multipliers in columns
TABLE_2_NOISE = (0.5, 1.0, 1.5, 2.0, 2.5, 3.0)
TABLE_2 = {
    (10, "fano"): "0.976 0.593 0.380 0.274 0.213 0.174",
    (10, "fano_exact_information"): "0.771 0.397 0.257 0.184 0.144 0.118",
    (10, "exact"): "0.737 0.322 0.189 0.128 0.099 0.080",
    (100, "fano"): "0.861 0.346 0.195 0.131 0.097 0.076",
    (100, "fano_exact_information"): "0.549 0.210 0.120 0.081 0.062 0.049",
    (100, "exact"): "0.362 0.077 0.035 0.024 0.018 0.012",
}


def _advantages(size: int, noise: float) -> dict[str, float]:
    """Advantage (equation 4) of one step without sampling, by each of the three bounds."""
    prior = 1.0 / size
    success = {
        # orthogonal gradients of norm 1 are √2 apart
        "fano": fano_success(size, gaussian_information(size, noise, sensitivity=math.sqrt(2.0))),
        "fano_exact_information": fano_success(size, orthogonal_information(size, noise)),
        "exact": float(gamma_bound(GaussianMechanism(noise), prior)),
    }
    return {method: (value - prior) / (1.0 - prior) for method, value in success.items()}


def _advantage_table(sizes: Iterable[int], noises: Iterable[float]) -> Table:
    columns = ("prior_size", "method", "noise_multiplier", "advantage")
    asked = itertools.product(sizes, map(float, noises))
    found = ((at, _advantages(*at).items()) for at in asked)
    return Table(columns, [(k, method, s, x) for (k, s), each in found for method, x in each])


def _information_error(size: int, noise: float) -> float:
    """Four standard deviations of the advantage if the information is estimated from samples."""
    mu = 1.0 / noise
    draws = mu * np.random.default_rng(0).standard_normal((20_000, size))
    draws[:, 0] += mu * mu
    spread = float(np.log(np.exp(draws - draws[:, :1]).sum(axis=1)).std()) / math.sqrt(SAMPLES)
    information = orthogonal_information(size, noise)
    ends = (fano_success(size, max(information + s * 4.0 * spread, 0.0)) for s in (-1.0, 1.0))
    low, high = ends
    return 0.5 * (high - low) / (1.0 - 1.0 / size)


def _simulation_error(size: int, noise: float) -> float:
    """Four standard deviations of γ from 100,000 samples under each law."""
    kappa, mu = 1.0 / size, 1.0 / noise
    z = -float(ndtri(kappa))
    gamma = float(ndtr(mu - z))
    slope = math.exp(mu * z - 0.5 * mu * mu)  # of γ against κ
    variance = gamma * (1.0 - gamma) + slope**2 * kappa * (1.0 - kappa)
    return 4.0 * math.sqrt(variance / SAMPLES) / (1.0 - kappa)


def _check_table_2(table: Table) -> Iterable[Check]:
    for (size, method), printed in TABLE_2.items():
        values = table.where(prior_size=size, method=method).column("advantage")
        for noise, text, value in zip(TABLE_2_NOISE, printed.split(), values, strict=True):
            what = f"{LABELS[method]}, {size} candidates, noise {noise:g}"
            if method == "fano":
                yield check(what, text, float(value))
                continue
            simulated = _simulation_error if method == "exact" else _information_error
            yield check(
                what,
                text,
                float(value),
                error=simulated(size, noise),
                reason="printed from 100,000 samples; ours has no sampling error, theirs four "
                "standard deviations",
            )


def _draw_figure_11(table: Table, figure: Figure) -> None:
    axes = figure.subplots()
    curves(axes, table, "noise_multiplier", "advantage", "method", LABELS.__getitem__)
    frame(axes, xlabel="noise multiplier σ", ylabel="advantage, at most", ylim=(0.0, 1.0))
    axes.legend(frameon=False)


PAPER = Paper(
    name="hayes2023",
    reference="J. Hayes, S. Mahloujifar, B. Balle, Bounding training data reconstruction in DP-SGD "
    "(2023, arXiv 2302.07225)",
    items=(
        Item(
            "figure_3",
            "success against the prior size, full batch, 100 steps",
            training.prior_sizes,
            training.draw_prior_sizes,
            chosen="ε; the attack's success is that on orthogonal gradients, without a network",
            adjacency=BOTH,
        ),
        Item(
            "figure_5a",
            "noise and sampling rate at (4, 1e-5) and 100 steps, with γ at ten candidates",
            partial(training.sampling_rates, (4.0,), (10,)),
            training.draw_figure_5a,
            training.check_figure_5a,
            "sampling rates between the stated ends",
            adjacency=BOTH,
        ),
        Item(
            "figure_9",
            "success of the prior-aware attack for two kinds of prior, simulated",
            training.figure_9,
            partial(training.draw_attacks, "prior"),
            chosen="pairwise correlation 0.3 of the gradients of similar candidates and 0 of "
            "noise, 10,000 attacks each, in the place of trained networks",
            adjacency=BOTH,
        ),
        Item(
            "figure_11",
            "bounds on the advantage against the noise, ten candidates, one step",
            partial(_advantage_table, (10,), np.linspace(0.5, 3.0, 41)),
            _draw_figure_11,
            adjacency="add",
        ),
        Item(
            "table_2",
            "bounds on the advantage, ten and a hundred candidates, one step",
            partial(_advantage_table, (10, 100), TABLE_2_NOISE),
            checks=_check_table_2,
        ),
        Item(
            "figure_13",
            "success of the prior-aware attack for two clipping norms, simulated",
            training.figure_13,
            partial(training.draw_attacks, "clipping"),
            chosen="gradient norms between the stated 0.9 C at ε = 1 and 0.5 C at ε = 40, linear "
            "in log ε, 10,000 attacks each, in the place of trained networks",
            adjacency=BOTH,
        ),
        Item(
            "figure_14",
            "γ against the sampling rate at one (ε, δ), 100 steps",
            partial(training.sampling_rates, (1.0, 4.0, 8.0, 16.0), (2, 10, 100)),
            training.draw_figure_14,
            chosen="sampling rates between the stated ends; the bounds only",
            size=(10.0, 3.8),
            adjacency=BOTH,
        ),
        Item(
            "figure_15",
            "noise and sampling rate at one (ε, δ), 100 steps, with γ",
            partial(training.sampling_rates, (1.0, 2.0, 4.0, 8.0, 16.0, 32.0), (2, 10, 100)),
            training.draw_figure_15,
            training.check_figure_15,
            "sampling rates between the stated ends",
            (11.0, 5.4),
            BOTH,
        ),
    ),
    left_out="Figures 1, 2, 4, 5b, 6 to 8, 10 and 12, which show attacks on trained networks, and "
    "Table 1, which has no results.",
)
