"""Runs whose steps are chosen after seeing earlier releases, and their worst strategy."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine import api
from pyengine._support import checks
from pyengine._support.caches import cached_property, kept
from pyengine.accounting.corners import CornerRun, OutcomePair, finite_steps, tells_apart
from pyengine.accounting.kernels import ORDERS, StepProfile
from pyengine.accounting.noise_range import NoiseRange
from pyengine.accounting.questions import FARTHEST, TOLERANCE, WorstCase
from pyengine.accounting.recursion import StatePlan
from pyengine.accounting.tables import Choosing, Detail
from pyengine.api import compose
from pyengine.engines.answers import Answering, Questions
from pyengine.engines.curves import NothingReleased
from pyengine.engines.pairs import GaussianRows, gaussian_rows
from pyengine.engines.registry import questions
from pyengine.errors import NotDefinedError
from pyengine.mechanisms import (
    Label,
    Mechanism,
    checked_mechanism,
    in_words,
    label_of,
    steps_of,
)
from pyengine.mechanisms.words import LOWER
from pyengine.numerics import functions as fn

__all__ = ["AdaptiveRun", "Strategy", "adaptive"]

MOST_STATES = 20_000
MOST_CHOICES = 100
# Steps left, budget left, uses left of each limit, and the first choice that is still allowed.
State = tuple[int, Fraction | None, tuple[int | None, ...], int]
Limit = tuple[tuple[int, ...], int]  # some choices, and how often they may be made in total
WAYS = ("free", "menu")


@dataclass(frozen=True)
class AdaptiveRun(Answering):
    """A run whose steps are chosen one by one after seeing the earlier releases; see `adaptive`.

    Parameters
    ----------
    menu : tuple of Mechanism or NoiseRange
        The possible choices.
    steps : int
        Largest number of steps.
    costs : tuple of Fraction
        Cost of each choice.
    budget : Fraction or None
        Largest total cost; None for no limit.
    limits : tuple of (tuple of int, int)
        Indices of some choices, and how often they may be made in total.
    order : {"free", "menu"}
        Whether choices may be made in any order or only in that of the menu.
    """

    menu: tuple[Mechanism | NoiseRange, ...]
    steps: int
    costs: tuple[Fraction, ...]
    budget: Fraction | None
    limits: tuple[Limit, ...]
    order: str = "free"

    @cached_property
    def choices(self) -> tuple[Mechanism, ...]:
        """The mechanism of each choice; for a `NoiseRange` that of its worst parameters."""
        return tuple(each.worst if isinstance(each, NoiseRange) else each for each in self.menu)

    @property
    def names(self) -> tuple[str, ...]:
        """Each choice in words."""
        return tuple(map(_named, self.menu))

    @property
    def label(self) -> str:
        """The run and its limits in words."""
        words = " or ".join(f"({name})" for name in self.names)
        limits = []
        for some, most in self.limits:
            which = " and ".join(str(i + 1) for i in some)
            plural, together = ("s", " together") if len(some) > 1 else ("", "")
            limits.append(f"choice{plural} {which}{together} at most {most:,} times")
        if self.order == "menu":
            limits.append("in the order of the menu")
        if self.budget is not None:
            each = ", ".join(f"{cost} of choice {i + 1}" for i, cost in enumerate(self.costs))
            limits.append(f"total cost at most {self.budget} ({each})")
        return (
            f"up to {self.steps:,} step{'s' * (self.steps != 1)}, each chosen from {words} after "
            "seeing what was released"
            f"{''.join('; ' + limit for limit in limits)}; worst strategy"
        )

    @property
    def parts(self) -> tuple[Mechanism, ...]:
        """As `choices`."""
        return self.choices

    def labels(self, adjacency: str) -> list[Label]:
        """What the figures hold for: batches, protected unit and kind of bound of all choices."""
        parts = [label for choice in self.choices for label in label_of(choice, adjacency)]
        batches, protects = (
            "; ".join(dict.fromkeys(column))
            for column in ([p.batches for p in parts], [p.protects for p in parts])
        )
        known = next((k for k in (LOWER, "upper bound") if k in [p.known for p in parts]), "")
        return [Label(self.label, batches, protects, known)]

    def __repr__(self) -> str:
        return self.label

    def strategy(self, epsilon: float, *, adjacency: str = "remove") -> Strategy:
        """The worst strategy for δ(ε), as a table.

        Parameters
        ----------
        epsilon : float
            ε in [0, 600].
        adjacency : {"add", "remove"}
            The order of the neighbours.

        Returns
        -------
        Strategy
            The best choices on a grid of log-likelihood ratios.  Where it switches from one choice
            to another, both are almost equally good, and the switch is known to one grid step.

        Raises
        ------
        ValueError
            For an argument outside its domain.
        """
        at = checks.scalar("epsilon", epsilon, 0.0, FARTHEST)
        order = checks.choice("adjacency", adjacency, ORDERS)
        choosing = Choosing([StepProfile(step, order) for step in self.choices], self.plan)
        detail = Detail(choosing.coarse / 8.0, at, 1e-12, 1e-12)
        first, best = choosing.choices(detail)
        ratios = np.asarray((first + np.arange(best[0].size)) * detail.spacing + at, np.float64)
        return Strategy(self, at, order, ratios, tuple(best))

    @cached_property
    def plan(self) -> StatePlan:
        """The states of the run and the choices allowed in each."""
        return _plan(self)

    @cached_property
    def as_composition(self) -> Mechanism | None:
        """A fixed composition with the same δ(ε) as the worst strategy, if one is known.

        Known if a choice tells both data sets apart for certain, for a menu of one choice of
        Gaussian steps, and for menus of Gaussian releases without sampling, where only the sum of
        1 / noise² matters (theory/adaptive); None otherwise.
        """
        allowed = sorted({choice for way in self.plan.moves for choice, _ in way})
        for each in (self.choices[choice] for choice in allowed):
            if tells_apart(each):
                return each
        rows = [
            each for each in (gaussian_rows(m, "add") for m in self.choices) if each is not None
        ]
        if len(rows) < len(self.choices):
            return None
        if len(rows) > 1 and not all(map(_is_plain, rows)):
            return None
        counts = self.plan.largest(
            [sum((k / Fraction(s) ** 2 for s, _, _, k in each), Fraction(0)) for each in rows]
        )
        parts = [m.composed(k) for m, k in zip(self.choices, counts, strict=True) if k]
        return compose(*parts)

    def questions(self, adjacency: str, tolerance: float | None) -> Questions:
        """The object that computes bounds for the worst strategy."""
        fixed = self.as_composition
        if fixed is not None:
            how: dict[str, Any] = {"method": "auto", "threat_model": "dp"}
            return questions(fixed, adjacency=adjacency, tolerance=tolerance, **how).proving
        if adjacency == "substitute":
            raise NotDefinedError(
                "adjacency must be 'add', 'remove' or 'add_remove' for an adaptive run, got "
                "'substitute'"
            )
        return _questions(self, adjacency, tolerance)


@dataclass(frozen=True, eq=False, repr=False)
class Strategy:
    """The worst strategy of a run for one ε; made by `AdaptiveRun.strategy`.

    Parameters
    ----------
    run : AdaptiveRun
        The run.
    epsilon : float
        The ε at which the strategy maximizes δ.
    adjacency : {"add", "remove"}
        The order of the neighbours.
    log_ratios : ndarray of float
        Grid of log-likelihood ratios of all releases so far: for "remove" the law with the record
        over the law without it, for "add" the other way round.
    tables : tuple of ndarray of int8
        For each state of the plan, the best choice at each of `log_ratios`; -1 where no choice
        gains more than rounding error.
    """

    run: AdaptiveRun
    epsilon: float
    adjacency: str
    log_ratios: npt.NDArray[np.float64]
    tables: tuple[npt.NDArray[np.int8], ...]

    def row(self, made: Sequence[int] = ()) -> npt.NDArray[np.int8]:
        """Best next choice at each of `log_ratios`, after some choices were made.

        Parameters
        ----------
        made : sequence of int
            The choices so far, each allowed when it was made.

        Returns
        -------
        ndarray of int8
            Indices in the menu; -1 where stopping is as good as any choice, up to rounding.
        """
        moves, state = self.run.plan.moves, len(self.run.plan.moves) - 1
        for choice in made:
            then = dict(moves[state])
            if choice not in then:
                raise ValueError(
                    f"made must be choices that the run allows, got {checks.shown(made)}"
                )
            state = then[choice]
        return self.tables[state]

    def intervals(self, made: Sequence[int] = ()) -> list[tuple[float, float, int]]:
        """Intervals of the log-likelihood ratio with the same best next choice, in order.

        Parameters
        ----------
        made : sequence of int
            As in `row`.

        Returns
        -------
        list of (float, float, int)
            First and last of `log_ratios` in the interval, and the choice as in `row`.
        """
        row = self.row(made)
        starts = np.concatenate([[0], np.flatnonzero(np.diff(row)) + 1])
        ends = np.concatenate([starts[1:] - 1, [row.size - 1]])
        low, high = self.log_ratios[starts], self.log_ratios[ends]
        return [
            (float(a), float(b), int(choice))
            for a, b, choice in zip(low, high, row[starts], strict=True)
        ]

    def choice(self, made: Sequence[int], log_ratio: float) -> int:
        """Best next choice after some choices were made, at the nearest of `log_ratios`.

        Parameters
        ----------
        made : sequence of int
            As in `row`.
        log_ratio : float
            Log-likelihood ratio of what these choices released.
        """
        spacing = float(self.log_ratios[1] - self.log_ratios[0])
        index = round((checks.real("log_ratio", log_ratio) - float(self.log_ratios[0])) / spacing)
        return int(self.row(made)[min(max(index, 0), self.log_ratios.size - 1)])


def adaptive(
    menu: Iterable[Mechanism | NoiseRange],
    steps: int,
    *,
    costs: Sequence[checks.NumberLike] | None = None,
    budget: checks.NumberLike | None = None,
    most: Mapping[int | tuple[int, ...], int] | None = None,
    least: Mapping[int | tuple[int, ...], int] | None = None,
    order: str = "free",
) -> AdaptiveRun:
    """A run whose steps are chosen from a menu after seeing earlier releases, in the worst case.

    Parameters
    ----------
    menu : iterable of Mechanism or NoiseRange
        The 1 to 100 possible choices, all on the same records: mechanisms or compositions, or
        a `NoiseRange` for all steps whose noise and rate lie in a range.
    steps : int
        Largest number of choices, >= 0; a run may stop earlier at any time.
    costs : sequence of float or exact number, optional
        Cost >= 0 of each choice; 1 if not given.
    budget : float or exact number, optional
        Largest total cost; no limit if not given.
    most : mapping of int or tuple of int to int, optional
        Largest number of times that a choice, or several choices in total, may be made; keys are
        indices in the menu.
    least : mapping of int or tuple of int to int, optional
        How many of the ``steps`` are reserved for these choices: all other choices together may be
        made at most ``steps`` less this number of times.
    order : {"free", "menu"}
        "menu": after a choice only the same one or later ones in the menu may follow, as in
        a schedule that only goes forward.

    Returns
    -------
    AdaptiveRun
        For `delta`, `epsilon`, `gamma_bound` and `trade_off`, with ``adjacency`` "add", "remove" or
        "add_remove".  They give proven bounds of the largest value over all strategies, randomized
        ones included, and a value between them.  The bounds meet the ``tolerance``; without one
        they agree to a relative 1e-6, or up to 1e-3 if more than about 10^9 products were needed.

    Raises
    ------
    ValueError
        For an argument outside its domain, or if the run has more than 20,000 states.

    Notes
    -----
    The menu must be fixed before the run.  Not covered are steps that are not on the menu, and
    anything revealed besides the releases, such as a training loss without noise.  Theorem, proof
    and cost: docs, theory/adaptive.

    Examples
    --------
    >>> import pyengine as pe
    >>> low, high = (pe.GaussianMechanism(s).poisson_sampled(p) for s, p in ((1, 0.02), (2, 0.06)))
    >>> run = pe.adaptive([low, high], steps=40)
    >>> print(f"{pe.delta(run, 0.5, adjacency='remove'):.5e}")
    1.35935e-03
    >>> orders = (low.composed(k) + high.composed(40 - k) for k in range(0, 41, 10))
    >>> print(f"{max(pe.delta(m, 0.5, adjacency='remove') for m in orders):.5e}")
    1.08336e-03
    """
    choices = tuple(
        choice if isinstance(choice, NoiseRange) else checked_mechanism(choice)
        for choice in checks.listed("menu", menu)
    )
    if not 1 <= len(choices) <= MOST_CHOICES:
        raise ValueError(f"menu must hold 1 to {MOST_CHOICES} mechanisms, got {len(choices)}")
    number = checks.count("steps", steps)
    prices = [1] * len(choices) if costs is None else checks.listed("costs", costs)
    if len(prices) != len(choices):
        raise ValueError(f"costs must have one entry for each choice, got {checks.shown(costs)}")
    exact = tuple(Fraction(checks.non_negative("costs", price)) for price in prices)
    total = None if budget is None else Fraction(checks.non_negative("budget", budget))
    limits: dict[tuple[int, ...], int] = {}

    def limit_to(some: tuple[int, ...], uses: int) -> None:
        limits[some] = min(limits.get(some, uses), uses)

    for key, limit in (most or {}).items():
        limit_to(_indices("most", key, len(choices)), checks.count("most", limit))
    for key, floor in (least or {}).items():
        some = _indices("least", key, len(choices))
        left = checks.count("least", floor, most=number, limit="steps, which is ")
        others = tuple(i for i in range(len(choices)) if i not in some)
        if others:
            limit_to(others, number - left)
    way = checks.choice("order", order, WAYS)
    return AdaptiveRun(choices, number, exact, total, tuple(sorted(limits.items())), way)


def _indices(name: str, key: Any, size: int) -> tuple[int, ...]:
    """Checked indices of the choices that a limit applies to, in ascending order."""
    found = sorted({checks.count(name, i) for i in (key if isinstance(key, tuple) else (key,))})
    if not found or found[-1] >= size:
        raise ValueError(
            f"{name} must have indices of choices below {size}, got {checks.shown(key)}"
        )
    return tuple(found)


def _named(choice: Mechanism | NoiseRange) -> str:
    return choice.label if isinstance(choice, NoiseRange) else " and ".join(in_words(choice))


def _is_plain(rows: GaussianRows) -> bool:
    """Whether all Gaussian steps are without sampling."""
    return all(farther == 1 and rate == 1 for _, farther, rate, _ in rows)


@kept(64, grows=True)
def _questions(run: AdaptiveRun, adjacency: str, tolerance: float | None) -> Questions:
    """The object that computes bounds for a run; kept, with its tables, for further questions."""
    by_grid = partial(_by_grid, run, adjacency, tolerance)
    known: dict[str, list[OutcomePair]] = {}
    for order in ORDERS:
        steps = [finite_steps(choice, order) for choice in run.choices]
        known[order] = [step for step in steps if step is not None]
    if any(len(each) < len(run.choices) for each in known.values()) or not run.plan.depth:
        return by_grid()
    found = CornerRun(known, run.plan, adjacency, TOLERANCE if tolerance is None else tolerance)
    found.otherwise = by_grid
    return found


@kept(64, grows=True)
def _by_grid(run: AdaptiveRun, adjacency: str, tolerance: float | None) -> Questions:
    """Bounds from tables on a grid of log-likelihood ratios."""
    largest: dict[str, tuple[float, float]] = {order: _largest(run, order) for order in ORDERS}
    if all(pair == (0.0, 0.0) for pair in largest.values()):
        return NothingReleased()
    return WorstCase(run.choices, run.plan, adjacency, tolerance, largest)


def _largest(run: AdaptiveRun, order: str) -> tuple[float, float]:
    """Largest privacy loss of a run, and the largest probability that the loss is infinite."""
    losses = [_of_step(api.epsilon, choice, 0.0, order) for choice in run.choices]
    alone = [_of_step(api.delta, choice, math.inf, order) for choice in run.choices]
    with np.errstate(divide="ignore"):
        gains = np.array([losses, -fn.log1p(-np.array(alone))]).T
    loss, rest = run.plan.most(gains)[-1]
    return float(loss), -fn.expm1(-float(rest))


def _of_step(ask: Any, choice: Mechanism, x: float, order: str) -> float:
    if not steps_of(choice):
        return 0.0
    return float(ask(choice, x, adjacency=order))


def _plan(run: AdaptiveRun) -> StatePlan:
    """All states that a run can reach, those with fewer steps left first.

    A budget or limit that the rest of the run cannot use up is dropped, which merges states.
    """
    dearest, cheapest = max(run.costs), min(run.costs)

    def reduced(
        steps: int, budget: Fraction | None, uses: tuple[int | None, ...], start: int
    ) -> State:
        if budget is not None and cheapest > 0:
            steps = min(steps, int(budget / cheapest))
        if budget is not None and budget >= steps * dearest:
            budget = None
        return steps, budget, tuple(None if k is None or k >= steps else k for k in uses), start

    def moves(state: State) -> list[tuple[int, State]]:
        steps, budget, uses, start = state
        found = []
        for choice, cost in enumerate(run.costs):
            concerns = [choice in some for some, _ in run.limits]
            if steps == 0 or choice < start or (budget is not None and cost > budget):
                continue
            if any(about and k == 0 for about, k in zip(concerns, uses, strict=True)):
                continue
            rest = tuple(
                k - 1 if k is not None and about else k
                for about, k in zip(concerns, uses, strict=True)
            )
            left = None if budget is None else budget - cost
            first = choice if run.order == "menu" else 0
            found.append((choice, reduced(steps - 1, left, rest, first)))
        return found

    first = reduced(run.steps, run.budget, tuple(most for _, most in run.limits), 0)
    known: dict[State, list[tuple[int, State]]] = {}
    open_ = [first]
    while open_:
        state = open_.pop()
        if state in known:
            continue
        known[state] = moves(state)
        if len(known) > MOST_STATES:
            raise ValueError(
                f"costs, budget and most must leave at most {MOST_STATES:,} states of what is "
                "left, and leave more: costs that are multiples of one number leave fewer"
            )
        open_.extend(then for _, then in known[state])
    index: dict[State, int] = {}
    plan: list[tuple[tuple[int, int], ...]] = [()]
    depth = [0]
    for state in sorted(known, key=lambda state: state[0]):
        if not known[state]:
            index[state] = 0
            continue
        index[state] = len(plan)
        plan.append(tuple((choice, index[then]) for choice, then in known[state]))
        depth.append(1 + max(depth[index[then]] for _, then in known[state]))
    # the initial state has the most steps left, so it comes last
    return StatePlan(tuple(plan), depth[index[first]])
