"""Lebeda, Regehr, Kamath and Steinke 2024: pitfalls of accounting for subsampled mechanisms."""

from __future__ import annotations

import itertools
import math
from collections.abc import Iterable
from typing import TYPE_CHECKING, Any

import numpy as np

from pyengine.api import delta, epsilon
from pyengine.calibration import calibrate
from pyengine.calibration.targets import EpsilonDelta
from pyengine.engines.problem import Problem
from pyengine.engines.registry import questions_on_pair
from pyengine.laws.composition import step_law
from pyengine.mechanisms import (
    GaussianMechanism,
    LaplaceMechanism,
    Mechanism,
    RandomizedResponse,
    dp_sgd,
)
from pyengine.workbench.papers.item import Check, Item, Paper, Table, check, curves
from pyengine.workbench.plots.style import frame, line

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pyengine.api.typing import Adjacency

__all__ = ["PAPER"]

# Figure 1
LAPLACE = LaplaceMechanism(0.8)
FIGURE_1_RATE, FIGURE_1_STEPS = 0.7, (1, 2, 4, 10)
# Figure 2 and Table 1
STEPS, DELTA = 10_000, 1e-6
FIGURE_2_EPSILONS = (1.0, 2.0, 5.0, 10.0)
TABLE_1_DELTAS = (1e-7, 1e-6, 1e-5, 1e-4)
TABLE_1 = {
    "poisson": ("1.19", "0.96", "0.80", "0.64"),
    "without_replacement": ("17.48", "15.26", "12.98", "10.62"),
}
# Figure 3: batches of one record out of two, Laplace noise of scale 2 on values -1 and 1
HALVED = LaplaceMechanism(2.0).sampled_without_replacement(batch_size=1, dataset_size=2)
PAIRS = {
    "P×P against Q×Q": ("remove", "remove"),
    "Q×Q against P×P": ("add", "add"),
    "P×Q against Q×P": ("remove", "add"),
}
# Figure 4
BATCHED = GaussianMechanism(4.0).sampled_without_replacement(batch_size=50, dataset_size=1000)
FIGURE_4_STEPS = 1000
FIGURE_4: dict[str, Adjacency] = {"upper": "substitute", "remove": "remove", "add": "add"}
REVERSED: dict[Adjacency, Adjacency] = {"remove": "add", "add": "remove"}


def _proposition_11() -> Table:
    """δ at e^ε = 4/3 and 2 of two steps of randomized response, sampled with probability 1/2."""
    mechanism = RandomizedResponse("3/4").poisson_sampled("1/2").composed(2)
    orders: tuple[Adjacency, ...] = ("add", "remove")
    asked = itertools.product((("4/3", 4.0 / 3.0), ("2", 2.0)), orders)
    rows: list[tuple[Any, ...]] = [
        (name, order, float(delta(mechanism, math.log(scale), adjacency=order)))
        for (name, scale), order in asked
    ]
    return Table(("exp_epsilon", "adjacency", "delta"), rows)


def _check_proposition_11(table: Table) -> Iterable[Check]:
    printed = {
        ("4/3", "add"): (11, 48),
        ("4/3", "remove"): (1, 6),
        ("2", "add"): (1, 16),
        ("2", "remove"): (1, 8),
    }
    for scale, adjacency, value in table.rows:
        numerator, denominator = printed[str(scale), str(adjacency)]
        text = f"{numerator / denominator:.10f}"
        assert isinstance(value, float)
        yield check(f"H_{scale}, {adjacency}: {numerator}/{denominator}", text, value)


def _figure_1() -> Table:
    grid = np.linspace(0.0, 2.0, 81)
    rows = []
    for steps in FIGURE_1_STEPS:
        mechanism = LAPLACE.poisson_sampled(FIGURE_1_RATE).composed(steps)
        for adjacency in ("add", "remove"):
            values = delta(mechanism, grid, adjacency=adjacency, tolerance=1e-3)
            rows += [
                (steps, adjacency, e, v)
                for e, v in zip(grid.tolist(), values.tolist(), strict=True)
            ]
    return Table(("steps", "adjacency", "epsilon", "delta"), list(rows))


def _draw_figure_1(table: Table, figure: Figure) -> None:
    panels = figure.subplots(2, 2, sharex=True)
    for axes, steps in zip(panels.flat, FIGURE_1_STEPS, strict=True):
        curves(axes, table.where(steps=steps), "epsilon", "delta", "adjacency")
        frame(axes, title=f"k = {steps}", xlim=(0.0, 2.0), ylim=(0.0, None))
    panels[0, 0].legend(frameon=False)
    for axes in panels[1]:
        axes.set_xlabel("ε")
    for axes in panels[:, 0]:
        axes.set_ylabel("δ(ε)")


def _noise(target: float, rate: float) -> float:
    return float(calibrate(lambda noise: dp_sgd(noise, rate, STEPS), EpsilonDelta(target, DELTA)))


def _figure_2() -> Table:
    rows = []
    for rate in np.geomspace(1e-4, 1.0, 25).tolist():
        for target in FIGURE_2_EPSILONS:
            found = _noise(target, rate)
            rows.append(("poisson", target, rate, found))
            if target == FIGURE_2_EPSILONS[-1]:  # Proposition 9: twice the noise
                rows.append(("without_replacement", target, rate, 2.0 * found))
    return Table(("sampling", "epsilon", "sampling_probability", "noise_multiplier"), list(rows))


def _draw_figure_2(table: Table, figure: Figure) -> None:
    axes = figure.subplots()
    columns = ("sampling_probability", "noise_multiplier")
    poisson, fixed = (table.where(sampling=word) for word in ("poisson", "without_replacement"))
    curves(axes, poisson, *columns, "epsilon", "Poisson, ε = {:g}".format)
    style = line(len(FIGURE_2_EPSILONS))
    axes.plot(*map(fixed.column, columns), label="without replacement, ε = 10", **style)
    frame(axes, xscale="log", yscale="log", xlabel="sampling rate", ylabel="noise multiplier")
    axes.legend(frameon=False)


def _table_1() -> Table:
    fixed = GaussianMechanism(0.8).sampled_without_replacement(batch_size=1, dataset_size=1000)
    runs: dict[str, Mechanism] = {
        "poisson": dp_sgd(0.8, 0.001, STEPS),
        "without_replacement": fixed.composed(STEPS),
    }
    rows: list[tuple[Any, ...]] = []
    for sampling, mechanism in runs.items():
        values = epsilon(mechanism, TABLE_1_DELTAS).tolist()
        rows += [(sampling, d, v) for d, v in zip(TABLE_1_DELTAS, values, strict=True)]
    return Table(("sampling", "delta", "epsilon"), rows)


def _check_table_1(table: Table) -> Iterable[Check]:
    for sampling, printed in TABLE_1.items():
        rows = table.where(sampling=sampling)
        for target, text, value in zip(
            rows.column("delta"), printed, rows.column("epsilon"), strict=True
        ):
            yield check(
                f"ε at δ = {target:g}, {sampling.replace('_', ' ')}",
                text,
                float(value),
                reason="the printed value carries the slack of the accountant that made it",
            )


def _profile(orders: tuple[str, str]) -> list[tuple[float, float]]:
    """Privacy profile of two halved Laplace steps, each in its own order of the pair.

    No relative tolerance can be met where the profile is 0, so the last ε lies just below the end
    of its support.
    """
    laws = tuple((step_law(HALVED, order), 1) for order in orders)
    end = -sum(law.support()[0] for law, _ in laws)
    grid = np.linspace(0.0, 2.0, 161)
    far = grid[grid < end - 0.02]
    asked = questions_on_pair(Problem(HALVED.composed(2), "add", tolerance=1e-4, given=laws))
    found = list(zip(far.tolist(), asked.profile(far).value.tolist(), strict=True))
    beyond = [end, *grid[grid > end].tolist()]
    return [*found, *((e, 0.0) for e in beyond)]


def _figure_3() -> Table:
    rows = [(name, e, v) for name, orders in PAIRS.items() for e, v in _profile(orders)]
    return Table(("pair", "epsilon", "delta"), list(rows))


def _draw_figure_3(table: Table, figure: Figure) -> None:
    axes = figure.subplots()
    curves(axes, table, "epsilon", "delta", "pair")
    frame(axes, xlabel="ε", ylabel="hockey-stick divergence", xlim=(0.0, 1.3), ylim=(0.0, None))
    axes.legend(frameon=False)


def _figure_4() -> Table:
    rows = []
    for steps, grid in (
        (1, np.linspace(-0.1, 0.1, 81)),
        (FIGURE_4_STEPS, np.linspace(0.0, 3.0, 61)),
    ):
        mechanism = BATCHED.composed(steps)
        positive = np.abs(grid)
        for name, adjacency in FIGURE_4.items():
            values = delta(mechanism, positive, adjacency=adjacency)
            if steps == 1:  # the profile at -ε follows from the one of the exchanged laws at ε
                other = REVERSED.get(adjacency, adjacency)
                mirrored = 1.0 - np.exp(grid) * (1.0 - delta(mechanism, positive, adjacency=other))
                values = np.where(grid < 0.0, mirrored, values)
            rows += [
                (steps, name, e, v) for e, v in zip(grid.tolist(), values.tolist(), strict=True)
            ]
    return Table(("steps", "curve", "epsilon", "delta"), list(rows))


def _draw_figure_4(table: Table, figure: Figure) -> None:
    left, right = figure.subplots(1, 2)
    for axes, steps in ((left, 1), (right, FIGURE_4_STEPS)):
        names = {"upper": "dominating pair", "remove": "remove", "add": "add"}
        curves(axes, table.where(steps=steps), "epsilon", "delta", "curve", names.__getitem__)
        frame(
            axes,
            xlabel="ε",
            ylabel="hockey-stick divergence",
            title=f"{steps} steps" if steps > 1 else "1 step",
        )
    left.set_xticks([-0.1, -0.05, 0.0, 0.05, 0.1])
    right.set(yscale="log", ylim=(1e-5, 1.0))
    left.legend(frameon=False)


PAPER = Paper(
    "lebeda2024",
    "C. J. Lebeda, M. Regehr, G. Kamath, T. Steinke, Avoiding Pitfalls for Privacy Accounting of "
    "Subsampled Mechanisms under Composition (2024)",
    [
        Item(
            "table_proposition_11",
            "Two steps of randomized response: neither order is the worst for all ε",
            _proposition_11,
            checks=_check_proposition_11,
        ),
        Item(
            "figure_1",
            "Profiles of the subsampled Laplace mechanism for add and remove, which cross at k = 2",
            _figure_1,
            _draw_figure_1,
            chosen="scale 0.8, sampling probability 0.7",
            size=(8.0, 6.0),
        ),
        Item(
            "figure_2",
            "Noise multiplier for (ε, 1e-6) at 10,000 steps against the sampling rate",
            _figure_2,
            _draw_figure_2,
            adjacency="add_remove",
        ),
        Item(
            "table_1",
            "ε of 10,000 steps at noise 0.8 and rate 0.001, Poisson and without replacement",
            _table_1,
            checks=_check_table_1,
        ),
        Item(
            "figure_3",
            "Three pairs of data sets under substitution, Laplace, without replacement",
            _figure_3,
            _draw_figure_3,
        ),
        Item(
            "figure_4",
            "Gaussian under substitution without replacement: dominating pair and lower curve",
            _figure_4,
            _draw_figure_4,
            size=(9.5, 4.2),
        ),
    ],
    left_out="the curve of the RDP accountant in Figure 4, which is there for scale.",
)
