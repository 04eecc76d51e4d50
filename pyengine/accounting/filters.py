"""Odometers and filters: accounts of runs whose mechanisms are chosen from a menu as they go."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from pyengine import api
from pyengine._support import checks
from pyengine.accounting.kernels import ORDERS, StepProfile
from pyengine.accounting.noise_range import NoiseRange
from pyengine.accounting.questions import WorstCase
from pyengine.accounting.runs import MOST_STATES, AdaptiveRun, adaptive
from pyengine.accounting.tables import MOST_POINTS, Choosing, Detail
from pyengine.calibration.targets import EpsilonDelta, GaussianDP, Target, single_target
from pyengine.engines.pairs import gaussian_rows
from pyengine.mechanisms import Mechanism, dp_sgd
from pyengine.mechanisms.report import guaranteed

__all__ = ["Filter", "Odometer"]

CLOSE = 1e-3  # relative width of the bounds on δ that decide whether a budget fits, by default
MOST_UNITS = MOST_STATES - 1  # most units of cost in a budget: 0 units left is a state, too
SHORT = 2e-3  # relative shortfall of a budget from the largest that meets the target, at most
FIRST = 0.25  # resolution of the first recursion over all budgets, relative to one question's
KEPT = 4e6  # most grid nodes, over all budgets, that are in memory at a time


class Odometer:
    """Books choices as they are made, and bounds what any run of the same total cost reveals.

    Parameters
    ----------
    menu : iterable of Mechanism or NoiseRange
        The possible choices, as in `adaptive`.
    costs : sequence of float or exact number, optional
        Cost > 0 of each choice; 1 if not given.  Questions are fast if all costs are small
        multiples of one number.

    Notes
    -----
    For every cost B fixed beforehand, a run that ends before its cost would exceed B has the
    guarantee of ``run_of(B)``, whatever its choices depend on.  If the end of a run depends on the
    odometer's figures, only the guarantee of the largest B that the run might have reached holds;
    `Filter` enforces such a B.  Threads may share an odometer, and `copy.copy` and `copy.deepcopy`
    return the same one.  A pickle is a checkpoint: continue with it or with the original, never
    with both.

    Examples
    --------
    >>> import pyengine as pe
    >>> steps = [pe.GaussianMechanism(s).poisson_sampled(p) for s, p in ((1, 0.02), (2, 0.06))]
    >>> odometer = pe.Odometer(steps)
    >>> all(odometer.spend(choice) for choice in (0, 1, 1))
    True
    >>> print(f"{pe.delta(odometer.run, 0.5):.4e}")
    1.9422e-05
    """

    def __init__(
        self,
        menu: Iterable[Mechanism | NoiseRange],
        *,
        costs: Sequence[checks.NumberLike] | None = None,
    ) -> None:
        one = adaptive(menu, 1, costs=costs)
        guaranteed(one.labels("add_remove"))
        if min(one.costs) <= 0:
            raise ValueError(f"costs must be positive, got {checks.shown(costs)}")
        self._one, self._lock = one, threading.Lock()
        self._choices: list[int] = []
        self._spent = Fraction(0)
        self._limit: Fraction | None = None

    def __getstate__(self) -> dict[str, Any]:
        with self._lock:
            state = {**self.__dict__, "_choices": list(self._choices)}
        del state["_lock"]
        return state

    def __setstate__(self, state: dict[str, Any]) -> None:
        self.__dict__.update(state, _lock=threading.Lock())

    def __copy__(self) -> Odometer:
        return self

    def __deepcopy__(self, memo: Any) -> Odometer:
        return self

    @property
    def menu(self) -> tuple[Mechanism | NoiseRange, ...]:
        """The possible choices."""
        return self._one.menu

    @property
    def costs(self) -> tuple[Fraction, ...]:
        """Cost of each choice."""
        return self._one.costs

    @property
    def choices(self) -> tuple[int, ...]:
        """Indices of all choices so far, in order."""
        with self._lock:
            return tuple(self._choices)

    @property
    def spent(self) -> Fraction:
        """Total cost of the choices so far."""
        with self._lock:
            return self._spent

    @property
    def run(self) -> AdaptiveRun:
        """The worst case over all runs with the total cost spent so far, as one run."""
        return self.run_of(self.spent)

    def run_of(self, budget: checks.NumberLike) -> AdaptiveRun:
        """The worst case over all runs whose total cost is at most a budget, as one run.

        Parameters
        ----------
        budget : float or exact number
            Largest total cost, in [0, ∞).
        """
        total = Fraction(checks.non_negative("budget", budget))
        steps = int(total / min(self.costs))
        return adaptive(self.menu, steps, costs=self.costs, budget=total)

    def spend(self, choice: int) -> bool:
        """Book a choice, unless this is a `Filter` whose budget it would exceed.

        Parameters
        ----------
        choice : int
            Its index in the menu.

        Returns
        -------
        bool
            True if it was booked; if False, it must not be made.  An odometer books every choice.
        """
        cost = self._cost(choice)
        with self._lock:
            if self._limit is not None and self._spent + cost > self._limit:
                return False
            self._choices.append(int(choice))
            self._spent += cost
            return True

    def covering(self, *, noise_multiplier: float, sample_rate: float) -> int:
        """The cheapest choice that dominates a given step of DP-SGD.

        Parameters
        ----------
        noise_multiplier : float
            Noise multiplier of the step, in (0, ∞).
        sample_rate : float
            Probability in [0, 1] with which a record enters its batch, a Poisson sample.

        Returns
        -------
        int
            Index of the cheapest choice of a single Gaussian step with at most this noise and at
            least this rate, which therefore reveals no less (docs, theory/adaptive).

        Raises
        ------
        ValueError
            For a parameter outside its domain, or a step that no choice covers.
        """
        dp_sgd(noise_multiplier, sample_rate, 1)  # checks
        noise, rate = Fraction(noise_multiplier), Fraction(sample_rate)
        fits = []
        for i, choice in enumerate(self._one.choices):
            rows = gaussian_rows(choice, "add")
            if rows is None or len(rows) != 1:
                continue
            own, farther, share, number = rows[0]
            if farther == number == 1 and Fraction(own) <= noise and Fraction(share) >= rate:
                fits.append((self.costs[i], i))
        if not fits:
            raise ValueError(
                "noise_multiplier and sample_rate must be those of a step that the menu covers, by "
                f"a choice of no more noise and no smaller rate, got {noise_multiplier!r} and "
                f"{sample_rate!r}"
            )
        return min(fits)[1]

    def _cost(self, choice: int) -> Fraction:
        index = checks.count("choice", choice)
        if index >= len(self.costs):
            raise ValueError(
                f"choice must be an index below {len(self.costs)}, got {checks.shown(choice)}"
            )
        return self.costs[index]


class Filter(Odometer):
    """Admits adaptive choices only while the whole run is sure to meet a target.

    Parameters
    ----------
    menu : iterable of Mechanism or NoiseRange
        The possible choices, as in `adaptive`.
    target : Target
        A single target of `pyengine.targets` other than ``GaussianDP``, such as
        ``EpsilonDelta(1.0, 1e-6)``; it is judged by proven bounds.
    costs : sequence of float or exact number, optional
        Cost > 0 of each choice, as for `Odometer`.

    Attributes
    ----------
    budget : Fraction
        The largest total cost, or at most 0.2 % less, with which even the worst strategy meets the
        target by a proven bound; a multiple of the greatest common divisor of the costs.

    Raises
    ------
    ValueError
        For an argument outside its domain, a target that no step of the menu meets, or one that is
        met by more than 20,000 units of cost.
    AccuracyError
        If no bound can be proven.

    Notes
    -----
    The budget is computed when the filter is made; admitting a choice then only adds up costs.  A
    run may stop earlier, at any time and for any reason, and still meets the target.  Threads may
    share a filter: a choice is admitted and booked in one atomic operation.  `copy.copy` and
    `copy.deepcopy` return the same filter, since there is only one budget.  A pickle is a
    checkpoint: continue with it or with the original, never with both.

    Examples
    --------
    >>> import pyengine as pe
    >>> steps = [pe.GaussianMechanism(s).poisson_sampled(p) for s, p in ((1, 0.02), (2, 0.06))]
    >>> budget = pe.Filter(steps, pe.targets.EpsilonDelta(1.0, 1e-6))
    >>> int(budget.budget)
    6
    >>> budget.spend(0), budget.allows(1)
    (True, True)
    """

    def __init__(
        self,
        menu: Iterable[Mechanism | NoiseRange],
        target: Target,
        *,
        costs: Sequence[checks.NumberLike] | None = None,
    ) -> None:
        super().__init__(menu, costs=costs)
        judged = single_target(target)
        if isinstance(judged, GaussianDP):
            raise ValueError(
                f"target must not be GaussianDP, got {judged!r}: for adaptive runs a μ is known "
                "only for Gaussian releases, by pyengine.duality.GaussianFilter"
            )
        tolerance = CLOSE if judged.tolerance is None else judged.tolerance
        self.target = replace(judged, bounds=True, tolerance=tolerance)
        self.budget = self._limit = self._largest()

    def _largest(self) -> Fraction:
        unit = _common(self.costs)
        found = self._counted(unit)
        return unit * (self._searched(unit) if found is None else found)

    def _counted(self, unit: Fraction) -> int | None:
        """Most units of cost that meet an (ε, δ) target, by recursions for all budgets at once.

        None for other targets, for menus without recursion, and if no budget is shown to fit.
        """
        target = self.target
        if not isinstance(target, EpsilonDelta) or target.threat_model != "dp":
            return None
        if not isinstance(self._one.questions(target.adjacency, target.tolerance), WorstCase):
            return None
        orders: tuple[Any, ...] = (target.adjacency,)
        if target.adjacency == "add_remove":
            orders = ORDERS
        high = self._fixed_units(unit)
        while True:
            budgets = _AllBudgets(self, unit, min(high, MOST_UNITS), orders)
            found, end = budgets.largest()
            if end is None:  # the first guess was too small
                if high >= MOST_UNITS:
                    raise self._is_kept_by_all()
                high += high // 4 + 1
                continue
            if not found:
                return None
            # budgets that are not among the states of the largest are judged one by one
            while found + 1 < end and not budgets.has(found + 1) and self._fits(unit, found + 1):
                found += 1
            return found

    def _fixed_units(self, unit: Fraction) -> int:
        """Units at which some choice, only repeated, first fails: about an upper bound of all."""
        target: Any = self.target
        found = MOST_UNITS
        for choice, cost in zip(self._one.choices, self.costs, strict=True):

            def fits(steps: int, choice: Mechanism = choice) -> bool:
                run = choice.composed(steps)
                return bool(
                    api.delta(run, target.epsilon, adjacency=target.adjacency) <= target.delta
                )

            each = int(cost / unit)
            most = max(found // each, 1)
            if not fits(most):
                found = min(found, each * (_last(fits, 0, most) + 1))
        return found

    def _searched(self, unit: Fraction) -> int:
        """Most units of cost that meet the target, by bisection over single budgets."""

        def fits(count: int) -> bool:
            return self._fits(unit, count)

        low = 0  # largest count known to fit; high becomes the smallest known not to
        high = int(min(self.costs) / unit)
        while fits(high):
            if high >= MOST_UNITS:
                raise self._is_kept_by_all()
            low, high = high, min(2 * high, MOST_UNITS)
        if low == 0:
            raise self._is_kept_by_none()
        return _last(fits, low, high)

    def _fits(self, unit: Fraction, count: int) -> bool:
        run: Any = self.run_of(count * unit)  # targets accept it like a mechanism
        return bool(self.target.is_met(run))

    def _is_kept_by_all(self) -> ValueError:
        return ValueError(
            f"target must be kept by at most {MOST_UNITS:,} units of cost, got {self.target!r}: "
            "give larger costs or a menu of larger steps"
        )

    def _is_kept_by_none(self) -> ValueError:
        return ValueError(f"target must be kept by a step of the menu, got {self.target!r}")

    @property
    def left(self) -> Fraction:
        """The budget less the cost of the choices so far."""
        return self.budget - self.spent

    def allows(self, choice: int) -> bool:
        """Whether a choice fits into what is left of the budget.

        Parameters
        ----------
        choice : int
            Its index in the menu.

        Returns
        -------
        bool
            True: the run meets the target even after this choice, which is proven.  False: only
            cheaper choices, if there are any, may still fit.
        """
        return self._cost(choice) <= self.left


def _common(costs: Iterable[Fraction]) -> Fraction:
    """The greatest common divisor of rational costs."""
    found = Fraction(0)
    for cost in costs:
        whole = math.lcm(found.denominator, cost.denominator)
        parts = (int(found * whole), int(cost * whole))
        found = Fraction(math.gcd(*parts), whole)
    return found


def _last(fits: Callable[[int], bool], low: int, high: int) -> int:
    """The largest number that fits, by bisection; ``low`` must fit and ``high`` must not."""
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (middle, high) if fits(middle) else (low, middle)
    return low


class _AllBudgets:
    """δ(ε) of the worst strategy within each budget up to a largest one, by one recursion for all.

    What some choices leave of the largest budget is a smaller budget, so its worst strategy is
    a state of the same plan.  Budgets are counted in multiples of ``unit``, up to ``high`` of them;
    the target must be met for each order of the neighbours.
    """

    def __init__(self, budget: Filter, unit: Fraction, high: int, orders: tuple[Any, ...]) -> None:
        self._target: Any = budget.target
        run = budget.run_of(high * unit)
        self._state = _states(run, unit, high)
        self._choosing = [
            Choosing([StepProfile(step, order) for step in run.choices], run.plan)
            for order in orders
        ]

    def has(self, count: int) -> bool:
        """Whether some choices leave exactly ``count`` units of the largest budget."""
        return count in self._state

    def largest(self) -> tuple[int, int | None]:
        """The largest budget shown to meet the target, and the smallest shown not to, in units.

        The first is 0 if none is shown to meet it, the second None if none is shown not to.
        """
        counts = sorted(self._state)
        low, high = 0, counts[-1] + 1
        for choosing in self._choosing:
            some = [count for count in counts if count < high]
            fit, high = self._between(choosing, some, high)
            low = fit if choosing is self._choosing[0] else min(low, fit)
        return low, None if high > counts[-1] else high

    def _between(self, choosing: Choosing, counts: list[int], high: int) -> tuple[int, int]:
        """The largest count shown to have δ(ε) <= δ for one order, and the smallest shown not to.

        The latter is ``high`` if there is none below; the grid is refined until few are undecided.
        """
        target, finer, fit = self._target, FIRST, 0
        while True:
            detail = Detail(
                choosing.coarse / finer,
                target.epsilon,
                1e-2 * target.tolerance * target.delta,
                1e-5 * target.tolerance,
                stop=target.epsilon,
            )
            if finer > FIRST and choosing.points(detail, 2) > MOST_POINTS:
                return fit, high
            width = 0.0
            for asked in self._rounds(counts, fit, high, detail):
                tables = choosing.tables(detail, [self._state[count] for count in asked])
                for count, table in zip(asked, tables, strict=True):
                    found = table.delta(target.epsilon)
                    if found is None:
                        continue
                    _, lower, upper = found
                    if upper <= target.delta:
                        fit = max(fit, count)
                    elif lower > target.delta:
                        high = min(high, count)
                    else:
                        width = max(width, (upper - lower) / upper)
            doubtful = sum(fit < count < high for count in counts)
            if doubtful <= fit * SHORT or width <= target.tolerance:
                return fit, high
            finer *= 2.0

    def _rounds(
        self, counts: list[int], fit: int, high: int, detail: Detail
    ) -> Iterator[list[int]]:
        """The undecided counts between ``fit`` and ``high``, in blocks of at most KEPT nodes."""
        some = [count for count in counts if fit < count < high]
        nodes = detail.stop / detail.spacing + 100.0
        most = max(int(KEPT / nodes), 64)
        for start in range(0, len(some), most):
            yield some[start : start + most]


def _states(run: AdaptiveRun, unit: Fraction, high: int) -> dict[int, int]:
    """For each budget in units, the state of the plan in which that much is left."""
    moves = run.plan.moves
    left: dict[int, int] = {len(moves) - 1: high}
    for state in range(len(moves) - 1, 0, -1):
        for choice, then in moves[state]:
            rest = left[state] - int(run.costs[choice] / unit)
            left[then] = max(left.get(then, rest), rest)
    return {count: state for state, count in left.items() if state}
