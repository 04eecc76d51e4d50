"""Hayes, Mahloujifar and Balle 2023: figures about training at one (ε, δ) and attacks on it."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyengine.api import gamma_bound
from pyengine.calibration import calibrate
from pyengine.calibration.targets import EpsilonDelta
from pyengine.mechanisms import dp_sgd
from pyengine.workbench.audit.prior_aware import orthogonal_success
from pyengine.workbench.papers.item import Check, Table, check, curves
from pyengine.workbench.plots.style import COLOURS, MARKERS, frame, line
from pyengine.workbench.plots.ticks import ticked

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = [
    *("check_figure_5a", "check_figure_15", "draw_attacks", "draw_figure_5a", "draw_figure_14"),
    *("draw_figure_15", "draw_prior_sizes", "figure_9", "figure_13", "prior_sizes"),
    "sampling_rates",
]

STEPS, DELTA = 100, 1e-5
RATES = (0.01, 0.02, 0.03, 0.05, 0.08, 0.13, 0.2, 0.3, 0.45, 0.6, 0.75, 0.9, 0.99)
ATTACKS = 10_000  # in a simulation, as in the paper


def _noise(spent: float, rate: float) -> float:
    """Noise multiplier of 100 steps for (ε, 1e-5) at a sampling rate."""
    target = EpsilonDelta(spent, DELTA)
    return float(calibrate(lambda s: dp_sgd(s, rate, STEPS), target, rtol=1e-8))


def prior_sizes() -> Table:
    """γ and the attack's success on orthogonal gradients for prior sizes up to 2^11."""
    rows: list[tuple[Any, ...]] = []
    for spent in (1.0, 4.0, 10.0, 20.0, 40.0):
        noise = _noise(spent, 1.0)
        for power in range(1, 12):
            gamma = float(gamma_bound(dp_sgd(noise, 1.0, STEPS), 0.5**power))
            attack = orthogonal_success(2**power, math.sqrt(STEPS) / noise)
            rows.append((spent, 2**power, gamma, attack))
    return Table(("epsilon", "prior_size", "gamma", "attack"), rows)


def draw_prior_sizes(table: Table, figure: Figure) -> None:
    """Lines for γ, symbols for the attack."""
    axes = figure.subplots()
    for index, spent in enumerate(table.distinct("epsilon")):
        rows = table.where(epsilon=spent)
        size = rows.column("prior_size")
        axes.plot(size, rows.column("gamma"), **line(index), label=f"ε = {spent:g}")
        axes.plot(
            size, rows.column("attack"), MARKERS[index], color=COLOURS[index], markersize=4
        )  # fmt: skip
    axes.plot(size, 1.0 / size, color="0.5", linewidth=0.8)
    frame(axes, xlabel="prior size", ylabel="success", xscale="log", ylim=(0.0, 1.03))
    axes.set_xscale("log", base=2)
    axes.set_title("lines: γ; symbols: prior-aware attack on orthogonal gradients", fontsize=9)
    axes.legend(frameon=False, fontsize=8)


def sampling_rates(budgets: Sequence[float], sizes: Sequence[int]) -> Table:
    """γ at each (ε, 1e-5) and prior size, for all sampling rates."""
    rows: list[tuple[Any, ...]] = []
    for spent, rate in itertools.product(budgets, RATES):
        noise = _noise(spent, rate)
        gamma = gamma_bound(dp_sgd(noise, rate, STEPS), [1.0 / size for size in sizes])
        rows += [(spent, k, rate, noise, float(g)) for k, g in zip(sizes, gamma, strict=True)]
    columns = ("epsilon", "prior_size", "sampling_probability", "noise_multiplier", "gamma")
    return Table(columns, rows)


def draw_figure_5a(table: Table, figure: Figure) -> None:
    """Noise against rate, coloured by γ."""
    axes = figure.subplots()
    x, y = table.column("sampling_probability"), table.column("noise_multiplier")
    axes.plot(x, y, color="0.75", linewidth=1.0, zorder=1)
    points = axes.scatter(x, y, c=table.column("gamma"), cmap="viridis", s=22, zorder=2)
    figure.colorbar(points, ax=axes, label="γ")
    frame(axes, xlabel="sampling rate q", ylabel="noise multiplier σ")


def _gamma_at(table: Table, spent: float, size: int, rate: float) -> float:
    rows = table.where(epsilon=spent, prior_size=size, sampling_probability=rate)
    return float(rows.column("gamma")[0])


def check_figure_5a(table: Table) -> Iterable[Check]:
    """Two values of the text of section 4.3."""
    reason = "stated as approximate, for bounds from samples and another accountant's noise"
    for rate, printed in ((0.01, "0.20"), (0.99, "0.35")):
        value = _gamma_at(table, 4.0, 10, rate)
        yield check(f"γ at q = {rate:g}", printed, value, error=0.015, reason=reason)


def check_figure_15(table: Table) -> Iterable[Check]:
    """Two values of the caption."""
    for rate, printed in ((0.01, "0.4"), (0.99, "1")):
        value = _gamma_at(table, 32.0, 100, rate)
        yield check(f"γ at ε = 32, 100 candidates, q = {rate:g}", printed, value)


def draw_figure_14(table: Table, figure: Figure) -> None:
    """γ against the rate, one panel a prior size."""
    sizes = table.distinct("prior_size")
    grid = figure.subplots(1, len(sizes), sharey=True)
    for axes, size in zip(grid, sizes, strict=True):
        rows = table.where(prior_size=size)
        curves(axes, rows, "sampling_probability", "gamma", "epsilon", "ε = {:g}".format)
        axes.axhline(1.0 / float(size), color="0.5", linewidth=0.8)
        axes.set_title(f"{size} candidates", fontsize=9)
        frame(axes, xlabel="sampling rate q", ylim=(0.0, 1.03))
    grid[0].set_ylabel("γ")
    grid[0].legend(frameon=False, fontsize=8)


def draw_figure_15(table: Table, figure: Figure) -> None:
    """Noise against rate, a line for each ε, one panel a prior size, coloured by γ."""
    sizes, budgets = table.distinct("prior_size"), table.distinct("epsilon")
    grid = figure.subplots(1, len(sizes), sharey=True)
    for axes, size in zip(grid, sizes, strict=True):
        rows = table.where(prior_size=size)
        for spent in budgets:
            part = rows.where(epsilon=spent)
            x, y = part.column("sampling_probability"), part.column("noise_multiplier")
            axes.plot(x, y, color="0.75", linewidth=1.0, zorder=1)
            axes.text(x[-1] * 1.15, y[-1], f"ε = {spent:g}", fontsize=8, va="center")
        points = axes.scatter(
            rows.column("sampling_probability"),
            rows.column("noise_multiplier"),
            c=rows.column("gamma"),
            cmap="viridis",
            s=26,
            zorder=2,
        )
        figure.colorbar(points, ax=axes, label="γ", location="bottom", aspect=30)
        frame(axes, xlabel="sampling rate q", xscale="log", yscale="log", xlim=(0.008, 2.5))
        ticked(axes)
        axes.set_xticks([x for x in axes.get_xticks() if 0.01 <= x <= 1.0])  # rates, not labels
        axes.set_xticks([], minor=True)
        axes.set_title(f"{size} candidates", fontsize=9)
    grid[0].set_ylabel("noise multiplier σ")


def _simulated_success(size: int, mu: float, correlation: float, generator: Any) -> float:
    """Share of attacks that find the target among gradients with equal correlations, full batch.

    In units of the noise, the score of a candidate is the inner product of its gradient with the
    sum of all releases: μ times its entry in the target's column of the Gram matrix, plus normal
    noise whose covariance is the Gram matrix.
    """
    common = generator.standard_normal((ATTACKS, 1))
    own: npt.NDArray[np.float64] = generator.standard_normal((ATTACKS, size))
    scores = math.sqrt(correlation) * common + math.sqrt(1.0 - correlation) * own
    scores += mu * correlation
    scores[:, 0] += mu * (1.0 - correlation)
    return float(np.mean(scores.argmax(axis=1) == 0))


def _full_batches() -> Iterator[tuple[float, float, float]]:
    """ε, γ at ten candidates, and the length μ of the sum of gradients in units of the noise."""
    for spent in (1.0, 2.0, 4.0, 7.0, 10.0, 20.0, 40.0):
        noise = _noise(spent, 1.0)
        yield spent, float(gamma_bound(dp_sgd(noise, 1.0, STEPS), 0.1)), math.sqrt(STEPS) / noise


def figure_9() -> Table:
    """Success among similar and among unrelated candidates."""
    generator = np.random.default_rng(9)
    rows: list[tuple[Any, ...]] = []
    for spent, gamma, mu in _full_batches():
        for label, correlation in (("similar", 0.3), ("noise", 0.0)):
            success = _simulated_success(10, mu, correlation, generator)
            rows.append((spent, label, success, gamma))
    return Table(("epsilon", "prior", "attack", "gamma"), rows)


def figure_13() -> Table:
    """Success for two clipping norms.

    For the larger one gradients have norms from 0.9 of it at ε = 1 down to 0.5 at ε = 40.
    """
    generator = np.random.default_rng(13)
    rows: list[tuple[Any, ...]] = []
    for spent, gamma, mu in _full_batches():
        shorter = 0.9 - 0.4 * math.log(spent) / math.log(40.0)
        for label, norm in (("C = 0.1", 1.0), ("C = 1", shorter)):
            success = _simulated_success(10, norm * mu, 0.0, generator)
            rows.append((spent, label, norm, success, gamma))
    return Table(("epsilon", "clipping", "norm", "attack", "gamma"), rows)


def draw_attacks(group: str, table: Table, figure: Figure) -> None:
    """Attacks with 95 % intervals below γ."""
    axes = figure.subplots()
    for index, label in enumerate(table.distinct(group)):
        rows = table.where(**{group: label})
        x, y = rows.column("epsilon"), rows.column("attack")
        error = 1.96 * np.sqrt(y * (1.0 - y) / ATTACKS)
        axes.errorbar(
            x, y, error, fmt=MARKERS[index], color=COLOURS[index], label=f"attack, {label}"
        )  # fmt: skip
    axes.plot(x, rows.column("gamma"), color="0.2", linewidth=1.4, label="γ")
    frame(axes, xlabel="ε at δ = 1e-5", ylabel="success", xscale="log", ylim=(0.0, 1.03))
    axes.legend(frameon=False)
