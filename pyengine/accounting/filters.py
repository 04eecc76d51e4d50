"""Budgets of runs that adapt: what may still be chosen, and what the choices so far amount to."""

from __future__ import annotations

import math
import threading
from collections.abc import Iterable, Sequence
from dataclasses import replace
from fractions import Fraction
from typing import Any

from pyengine._support import checks
from pyengine.accounting.noise_range import NoiseRange
from pyengine.accounting.runs import MOST_STATES, AdaptiveRun, adaptive
from pyengine.calibration.targets import Target, single_target
from pyengine.mechanisms import Mechanism

__all__ = ["Filter", "Odometer"]

CLOSE = 1e-3  # relative width of the bounds by which a budget is judged, where none is asked for


class Odometer:
    """Books choices as they are made, and says what holds for all runs of their cost.

    Parameters
    ----------
    menu : iterable of Mechanism or NoiseRange
        What may be chosen, as in `adaptive`.
    costs : sequence of float or exact number, optional
        Cost > 0 of each choice; 1 if not given.  States are few where costs are small multiples of
        one number.

    Notes
    -----
    For every cost B that is fixed beforehand, a run that ends before its cost would exceed B has
    the guarantee of `run_of` B, whatever its choices depend on.  A run whose end depends on what
    the odometer said has the guarantee of the largest B that it might have gone to: `Filter` holds
    one.  Threads may share an odometer.

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
        if min(one.costs) <= 0:
            raise ValueError(f"costs must be positive, got {costs!r}")
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

    @property
    def menu(self) -> tuple[Mechanism | NoiseRange, ...]:
        """What may be chosen."""
        return self._one.menu

    @property
    def costs(self) -> tuple[Fraction, ...]:
        """Cost of each choice."""
        return self._one.costs

    @property
    def choices(self) -> tuple[int, ...]:
        """All choices so far."""
        with self._lock:
            return tuple(self._choices)

    @property
    def spent(self) -> Fraction:
        """Their cost."""
        with self._lock:
            return self._spent

    @property
    def run(self) -> AdaptiveRun:
        """All runs of the cost of the choices so far, to be asked as any other run."""
        return self.run_of(self.spent)

    def run_of(self, budget: checks.NumberLike) -> AdaptiveRun:
        """All runs whose cost is at most a budget.

        Parameters
        ----------
        budget : float or exact number
            In [0, ∞).
        """
        total = Fraction(checks.non_negative("budget", budget))
        steps = int(total / min(self.costs))
        return adaptive(self.menu, steps, costs=self.costs, budget=total)

    def spend(self, choice: int) -> bool:
        """Book a choice, unless it would exceed a filter's budget.

        Parameters
        ----------
        choice : int
            Its index in the menu.

        Returns
        -------
        bool
            Whether it was booked; if not, it must not be made.  An odometer books every choice.
        """
        cost = self._cost(choice)
        with self._lock:
            if self._limit is not None and self._spent + cost > self._limit:
                return False
            self._choices.append(int(choice))
            self._spent += cost
            return True

    def _cost(self, choice: int) -> Fraction:
        index = checks.count("choice", choice)
        if index >= len(self.costs):
            raise ValueError(f"choice must be an index below {len(self.costs)}, got {choice!r}")
        return self.costs[index]


class Filter(Odometer):
    """Admits choices as long as every continuation that it admits keeps a target.

    Parameters
    ----------
    menu : iterable of Mechanism or NoiseRange
        What may be chosen, as in `adaptive`.
    target : Target
        A single target of `pyengine.targets`, such as ``EpsilonDelta(1.0, 1e-6)``; it is judged by
        proven bounds.
    costs : sequence of float or exact number, optional
        As of `Odometer`.

    Attributes
    ----------
    budget : Fraction
        The largest total cost, a multiple of what all costs are multiples of, such that the worst
        strategy of all runs within it meets the target by a proven bound.

    Raises
    ------
    ValueError
        For an argument outside its domain, a target that no step of the menu keeps, or one that is
        kept by more than 20,000 units of cost.
    AccuracyError
        Where no bound can be proven.

    Notes
    -----
    The budget is found when the filter is made; after that each question takes a sum.  Whoever
    stops before the filter does, at whatever time and for whatever reason, keeps the target.
    Threads may share a filter: a choice is admitted and booked at once.

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
        tolerance = CLOSE if judged.tolerance is None else judged.tolerance
        self.target = replace(judged, bounds=True, tolerance=tolerance)
        self.budget = self._limit = self._largest()

    def _largest(self) -> Fraction:
        unit = _common(self.costs)

        def fits(count: int) -> bool:
            run: Any = self.run_of(count * unit)  # all questions take it as a mechanism
            return bool(self.target.is_met(run))

        low = 0  # the last one that is known to fit, and the first one that does not
        high = int(min(self.costs) / unit)
        while fits(high):
            if high >= MOST_STATES:
                raise ValueError(
                    f"target must be kept by at most {MOST_STATES:,} units of cost, got "
                    f"{self.target!r}: give larger costs or a menu of larger steps"
                )
            low, high = high, min(2 * high, MOST_STATES)
        if low == 0:
            raise ValueError(f"target must be kept by a step of the menu, got {self.target!r}")
        while high - low > 1:
            middle = (low + high) // 2
            low, high = (middle, high) if fits(middle) else (low, middle)
        return low * unit

    @property
    def left(self) -> Fraction:
        """The budget without the cost of the choices so far."""
        return self.budget - self.spent

    def allows(self, choice: int) -> bool:
        """Whether a choice, and all that may be admitted after it, keep the target.

        Parameters
        ----------
        choice : int
            Its index in the menu.

        Returns
        -------
        bool
            Proven where True; where False, the run may go on with cheaper choices, if any is left.
        """
        return self._cost(choice) <= self.left


def _common(costs: Iterable[Fraction]) -> Fraction:
    """The largest number of which all costs are multiples."""
    found = Fraction(0)
    for cost in costs:
        whole = math.lcm(found.denominator, cost.denominator)
        parts = (int(found * whole), int(cost * whole))
        found = Fraction(math.gcd(*parts), whole)
    return found
