"""Kaissis, Hayes, Ziller and Rueckert 2023: reconstruction through hypothesis testing."""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyengine.api import delta, epsilon, gamma_bound, trade_off
from pyengine.api.approximations import clt_mu, monte_carlo_gamma
from pyengine.calibration import calibrate
from pyengine.calibration.targets import EpsilonDelta
from pyengine.mechanisms import GaussianMechanism, LaplaceMechanism, Mechanism, dp_sgd
from pyengine.workbench.papers.item import Check, Item, Paper, Table, check, curves
from pyengine.workbench.plots.style import COLOURS, MARKERS, frame, line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pyengine.api.typing import Adjacency, Method

__all__ = ["PAPER"]

FloatArray = npt.NDArray[np.float64]

LABELS = {
    "exact": "exact",
    "edgeworth": "Edgeworth, order 4",
    "clt": "CLT",
    "monte_carlo": "Monte Carlo, Algorithm 1",
}
DETERMINISTIC: tuple[Method, ...] = ("exact", "edgeworth", "clt")
POINTS = 25  # of a line
FINE = 100  # points of lines that bend within a few hundredths of their range
SPARSE = 12  # every twelfth of these points is also computed by Monte Carlo
RATES = (0.1, 0.5, 0.9)
GUARANTEE = (4.0, 1e-5)
BOTH = "add for γ, add_remove for (ε, δ)"


@dataclass(frozen=True)
class Panel:
    """One of Figures 1a to 1d: γ at one κ against the effect size, sensitivity/noise.

    ``epsilon`` gives the ε that the paper states for an effect size; by default ε at δ = 1e-6.
    """

    make: Callable[[float], Mechanism]
    largest: float
    kappa: float = 0.1
    samples: int = 10**6
    epsilon: Callable[[float], float] | None = None


def _panel(name: str) -> Panel:
    if name == "a":
        return Panel(
            lambda x: LaplaceMechanism(1.0 / x).composed(10), 2.0, epsilon=lambda x: 10.0 * x
        )
    if name == "b":
        return Panel(
            lambda x: LaplaceMechanism(1.0 / x).poisson_sampled(0.1).composed(50),
            (100.0 + math.log(10.0)) / 50.0,
            # the paper's conversion; the correct one is smaller: N log(1 + p (e^x - 1))
            epsilon=lambda x: math.log1p(0.1 * math.expm1(50.0 * x)),
        )
    if name == "c":
        target = EpsilonDelta(100.0, 1e-6)
        noise = float(calibrate(lambda s: GaussianMechanism(s).composed(20), target))
        return Panel(lambda x: GaussianMechanism(1.0 / x).composed(20), 1.0 / noise)
    return Panel(lambda x: dp_sgd(1.0 / x, 0.01, 1000), 5.0, 1e-3, 2 * 10**5)


COLUMNS = ("method", "effect_size", "epsilon", "gamma", "lower", "upper")


def _effect_sizes(name: str) -> Table:
    panel = _panel(name)
    rows: list[tuple[Any, ...]] = []
    for i, x in enumerate(np.linspace(panel.largest / FINE, panel.largest, FINE)):
        mechanism = panel.make(float(x))
        spent = panel.epsilon(float(x)) if panel.epsilon else float(epsilon(mechanism, 1e-6))
        found = {"exact": gamma_bound(mechanism, panel.kappa, bounds=True)}
        for method in ("edgeworth", "clt"):
            found[method] = gamma_bound(mechanism, panel.kappa, method=method, bounds="estimated")
        if i % SPARSE == SPARSE - 1:
            found["monte_carlo"] = monte_carlo_gamma(
                mechanism, panel.kappa, samples=panel.samples, tilted=False
            )
        for method, answer in found.items():
            rows.append((method, float(x), spent, answer.value, answer.lower, answer.upper))
    return Table(COLUMNS, rows)


def _draw_effect_sizes(label: str, table: Table, figure: Figure) -> None:
    axes = figure.subplots()
    for index, method in enumerate(table.distinct("method")):
        rows = table.where(method=method)
        x, gamma = rows.column("effect_size"), rows.column("gamma")
        if method == "monte_carlo":
            ends = np.abs(np.array([rows.column("lower"), rows.column("upper")]) - gamma)
            axes.errorbar(
                x, gamma, ends, fmt=MARKERS[index], color=COLOURS[index], markersize=4,
                linewidth=0.8, label=f"{LABELS[str(method)]}, 99 % interval",
            )  # fmt: skip
        else:
            axes.plot(x, gamma, **line(index), label=LABELS[str(method)])
    frame(axes, xlabel=label, ylabel="γ", ylim=(0.0, 1.03))
    axes.legend(frameon=False, fontsize=8)


def _largest_epsilon(name: str, printed: str, table: Table) -> Iterable[Check]:
    yield check(f"largest ε of panel {name}", printed, float(table.column("epsilon").max()))


WORKFLOWS = {
    "CIFAR-10 style": (3.0, 4096 / 50_000, 1000),
    "CIFAR-10 style, smaller rate": (3.0, 0.01, 1000),
    "ImageNet style": (2.5, 16384 / 1281167, 72_000),
    "ImageNet style, smaller rate": (2.5, 0.001, 72_000),
}


def _against_kappa(names: Iterable[str]) -> Table:
    kappa = np.geomspace(1e-7, 0.1, POINTS)
    rows: list[tuple[Any, ...]] = []
    for name, method in itertools.product(names, DETERMINISTIC):
        word: Method = "auto" if method == "exact" else method
        gamma = gamma_bound(dp_sgd(*WORKFLOWS[name]), kappa, method=word)
        rows += [(name, method, float(k), float(g)) for k, g in zip(kappa, gamma, strict=True)]
    return Table(("workflow", "method", "kappa", "gamma"), rows)


def _draw_against_kappa(table: Table, figure: Figure) -> None:
    names = table.distinct("workflow")
    rows = 1 if len(names) == 1 else 2
    grid = np.atleast_2d(figure.subplots(rows, len(names) // rows, squeeze=False))
    for axes, name in zip(grid.ravel(), names, strict=True):
        curves(axes, table.where(workflow=name), "kappa", "gamma", "method", LABELS.__getitem__)
        noise, p, steps = WORKFLOWS[str(name)]
        axes.set_title(f"{name}: noise {noise:g}, p = {p:.3g}, N = {steps:,}", fontsize=9)
        frame(axes, xscale="log", yscale="log", xlabel="κ", ylabel="γ")
        axes.legend(frameon=False, fontsize=8)


def _calibrated(rate: float, steps: int) -> Mechanism:
    noise = float(calibrate(lambda s: dp_sgd(s, rate, steps), EpsilonDelta(*GUARANTEE)))
    return dp_sgd(noise, rate, steps)


def _figure_1f() -> Table:
    kappa = np.concatenate([np.geomspace(1e-3, 0.1, 13), np.linspace(0.12, 1.0, 45)])
    rows: list[tuple[Any, ...]] = []
    for rate in RATES:
        gamma = gamma_bound(_calibrated(rate, 100), kappa)
        rows += [(rate, float(k), float(g)) for k, g in zip(kappa, gamma, strict=True)]
    return Table(("sampling_probability", "kappa", "gamma"), rows)


def _draw_figure_1f(table: Table, figure: Figure) -> None:
    axes = figure.subplots()
    curves(axes, table, "kappa", "gamma", "sampling_probability", "p = {:g}".format)
    axes.axvline(0.1, color="0.6", linewidth=0.8)
    frame(axes, xlabel="κ", ylabel="γ", xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    axes.legend(frameon=False)


def _mechanisms(steps: int, adjacencies: Iterable[Adjacency]) -> Table:
    """Profiles and trade-off functions at one (ε, δ) for three sampling rates."""
    levels = np.concatenate([[0.0], np.geomspace(1e-5, 0.04, 15), np.linspace(0.05, 1.0, 39)])
    spent = np.linspace(0.0, 8.0, 33)
    rows: list[tuple[Any, ...]] = []
    for rate in RATES:
        mechanism = _calibrated(rate, steps)
        curves = [("profile", spent, delta(mechanism, spent))]
        for adjacency in adjacencies:
            beta = trade_off(mechanism, levels, adjacency=adjacency)
            curves.append((adjacency, levels, beta))
        if steps > 1:
            same = GaussianMechanism(1.0 / clt_mu(mechanism))
            curves.append(("clt", levels, trade_off(same, levels)))
        for curve, x, y in curves:
            rows += [(rate, curve, float(a), float(b)) for a, b in zip(x, y, strict=True)]
    return Table(("sampling_probability", "curve", "x", "y"), rows)


NAMES = {"add": "add", "remove": "remove", "add_remove": "both", "clt": "CLT"}


def _draw_mechanisms(table: Table, figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    for index, rate in enumerate(RATES):
        rows = table.where(sampling_probability=rate)
        part = rows.where(curve="profile")
        y = np.maximum(part.column("y"), 1e-300)
        left.plot(part.column("x"), y, **line(index), label=f"p = {rate:g}")
        for number, curve in enumerate(c for c in rows.distinct("curve") if c != "profile"):
            part = rows.where(curve=curve)
            style = {**line(number), "color": COLOURS[index]}
            label = f"p = {rate:g}, {NAMES[str(curve)]}"
            right.plot(part.column("x"), part.column("y"), **style, label=label)
    left.plot(*GUARANTEE, "ko", markersize=4)
    frame(left, xlabel="ε", ylabel="δ(ε)", yscale="log", ylim=(1e-12, 1.0))
    frame(right, xlabel="α", ylabel="β", xlim=(0.0, 1.0), ylim=(0.0, 1.0))
    left.legend(frameon=False, fontsize=8)
    right.legend(frameon=False, fontsize=8)


# name, mechanism, label of the effect size, printed ε, and what is chosen
PANELS = (
    ("a", "Laplace mechanism, up to ε = 20", "Δ₁/b", "20", "10 steps, κ = 0.1"),
    (
        *("b", "Poisson-sampled Laplace mechanism, up to ε = 100", "Δ₁/b", "100"),
        "50 steps, p = 0.1, κ = 0.1; ε by the paper's conversion",
    ),
    (
        *("c", "Gaussian mechanism, up to ε = 100 at δ = 1e-6", "Δ₂/σ", "100"),
        "20 steps, κ = 0.1",
    ),
    (
        *("d", "Poisson-sampled Gaussian mechanism", "Δ₂/σ", ""),
        "1,000 steps, p = 0.01, κ = 0.001, effect sizes up to 5, where γ has come within 0.001 "
        "of 1 (the paper goes on to ε of the order of 1e8); 200,000 Monte Carlo samples where "
        "the paper has 1,000,000",
    ),
)


def _panel_item(name: str, mechanism: str, label: str, printed: str, chosen: str) -> Item:
    return Item(
        f"figure_1{name}",
        f"γ against the effect size, {mechanism}",
        partial(_effect_sizes, name),
        partial(_draw_effect_sizes, label),
        partial(_largest_epsilon, name, printed) if printed else lambda _: (),
        chosen,
        adjacency="add",
    )


PAPER = Paper(
    name="kaissis2023_bounding",
    reference="G. Kaissis, J. Hayes, A. Ziller, D. Rueckert, Bounding data reconstruction attacks "
    "with the hypothesis testing interpretation of differential privacy (2023, arXiv 2307.03928)",
    items=(
        *(_panel_item(*row) for row in PANELS),
        Item(
            "figure_1e",
            "γ against κ for a very low sampling rate and very many steps",
            partial(_against_kappa, ["ImageNet style, smaller rate"]),
            _draw_against_kappa,
            chosen="noise 2.5, p = 0.001, 72,000 steps, in the manner of ImageNet workflows",
            adjacency="add",
        ),
        Item(
            "figure_1f",
            "γ against κ for three sampling rates at one (ε, δ)",
            _figure_1f,
            _draw_figure_1f,
            chosen="(4, 1e-5) and 100 steps, those of the figures of Hayes et al. that it explains",
            adjacency=BOTH,
        ),
        Item(
            "figure_2",
            "γ against κ for workflows in the manner of CIFAR-10 and ImageNet",
            partial(_against_kappa, list(WORKFLOWS)),
            _draw_against_kappa,
            chosen="all parameters, for which the paper refers to tables of another one",
            size=(10.0, 7.4),
            adjacency="add",
        ),
        Item(
            "figure_3",
            "three sampling rates at (4, 1e-5), one step: profiles and trade-off functions",
            partial(_mechanisms, 1, ("add", "remove", "add_remove")),
            _draw_mechanisms,
            size=(10.0, 4.4),
            adjacency="add_remove for profiles",
        ),
        Item(
            "figure_4",
            "three sampling rates at (4, 1e-5), 10,000 steps: profiles and trade-off functions",
            partial(_mechanisms, 10_000, ("add_remove",)),
            _draw_mechanisms,
            size=(10.0, 4.4),
            adjacency="add_remove for profiles",
        ),
    ),
)
