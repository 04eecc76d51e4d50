"""Calibration: the smallest noise, or another extreme parameter, that meets a privacy target."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._objects import Guarded
from pyengine._support import checks
from pyengine._support.decimals import written
from pyengine.calibration.search import Domain, NoiseSearch, Unbounded, Unreachable
from pyengine.calibration.targets import Target, refuse_the_least
from pyengine.engines.loss_quadrature import pearson
from pyengine.errors import AccuracyError
from pyengine.mechanisms import GenericMechanism, Mechanism, as_mechanism, steps_of
from pyengine.numerics import functions as fn

__all__ = ["Calibration", "calibrate"]

REALS = Domain(2.0**-200, 2.0**200, False)
INTEGERS = Domain(0.0, 2.0**53, True)
START, INTEGER_START = 1.0, 1024.0
ROUNDED_UP = 1.0 + 2.0**-48  # covers a few roundings of a probability, each of 2^-53 relatively
NEARLY = 1e-9  # probabilities nearer than this may be equal
FAR = 1.0  # an excess beyond it in modulus needs only a few digits
APART = 1e-6  # relative distance of the neighbours that must be valid in an interval


@dataclass(frozen=True, eq=False)
class Calibration:
    """Result of `calibrate`; ``float()``, ``int()`` and ``numpy.asarray`` give its value.

    Parameters
    ----------
    value : float, int or ndarray
        The parameter; an array of the target's shape if the target holds arrays.
    achieved : Target or tuple of Target
        The targets in the order given, with the figures that the calibrated mechanism achieves,
        rounded to the safe side; with arrays if ``value`` is an array.
    mechanism : Mechanism or ndarray of object
        The calibrated mechanism.
    evaluations : int
        Total number of mechanisms that were evaluated.
    """

    value: Any
    achieved: Any
    mechanism: Any
    evaluations: int

    def __float__(self) -> float:
        return float(self.value)

    def __int__(self) -> int:
        return int(self.value)

    def _repr_html_(self) -> str:
        """The result in HTML, for notebooks."""
        from pyengine._support.markup import html_table

        achieved = self.achieved if isinstance(self.achieved, tuple) else (self.achieved,)
        lines = {
            "Value": str(self.value),
            "Achieves": "\n".join(map(str, achieved)),
            "Mechanism": str(self.mechanism),
        }
        return html_table((), list(lines.items()))

    def __index__(self) -> int:
        if isinstance(self.value, int):
            return self.value
        raise TypeError(f"only a single integer can be an index, got {checks.shown(self.value)}")

    def __array__(self, dtype: Any = None, copy: bool | None = None) -> npt.NDArray[Any]:
        return np.array(self.value, dtype=dtype, copy=True if copy is None else copy)


class _Divergence:
    """The χ² divergence of a composition as a `Guide`.

    By the central limit theorem a composition is close to the Gaussian mechanism whose μ is the
    root of its divergence, and a target gives the μ of the Gaussian mechanism that just meets it.
    """

    def __init__(self, mechanism: Callable[[float], Mechanism], target: Target) -> None:
        self._mechanism, self._target = mechanism, target
        self._goal = target.gaussian(0.0)

    def strength(self, x: float) -> float:
        """See `Guide`: log μ; NaN where it is unknown."""
        try:
            squared = pearson(self._mechanism(x))
        except (ValueError, AccuracyError):
            return math.nan
        return 0.5 * fn.log(squared) if 0.0 < squared < math.inf else math.nan

    def goal(self) -> float:
        """See `Guide`."""
        return fn.log(self._goal) if 0.0 < self._goal < math.inf else math.nan

    def missing(self, excess: float) -> float:
        """See `Guide`."""
        found = self._target.gaussian(excess)
        return fn.log(self._goal / found) if 0.0 < found < math.inf else math.nan


class _Job:
    """Calibration to scalar targets that must all be met."""

    def __init__(
        self, make: Callable[[Any], Mechanism], targets: tuple[Target, ...], integer: bool
    ) -> None:
        self._make, self.targets, self._integer = make, targets, integer
        self._rough = tuple(target.roughly() for target in targets)
        self._made: dict[float, Mechanism] = {}

    def mechanism(self, x: float) -> Mechanism:
        """Return the mechanism at a parameter."""
        if x not in self._made:
            given = self._make(int(x) if self._integer else x)
            made = as_mechanism(given)
            if made is None:
                raise ValueError(f"make must return a Mechanism, got {checks.shown(given)}")
            self._made[x] = made
        return self._made[x]

    def valid(self, x: float) -> bool:
        """Whether the parameter is in the domain of ``make``."""
        try:
            self.mechanism(x)
        except ValueError:
            return False
        return True

    def check_interval(self, x: float) -> None:
        """Raise ValueError if x is valid but no real number next to it, as for integers."""
        try:
            self.mechanism(x * (1.0 + APART))
        except ValueError as error:
            if not self.valid(x * (1.0 - APART)):
                raise ValueError(
                    f"make must take real numbers near {x:g} unless integer=True is given: {error}"
                ) from None

    def excess(self, x: float) -> float:
        """The largest excess of all targets; positive if one is missed."""
        mechanism = self.mechanism(x)
        return max(target.judged(mechanism) for target in self.targets)

    def rough(self, x: float) -> float:
        """The excess to a few digits if it is far from 0, otherwise NaN.

        Far from the target the fast engines may not reach full accuracy, and the slow ones take a
        second.
        """
        mechanism = self.mechanism(x)
        try:
            y = max(target.judged(mechanism) for target in self._rough)
        except AccuracyError:
            return math.nan
        return y if abs(y) > FAR else math.nan

    def ceiling(self, x: float) -> float:
        """An upper bound of the excess from sampling rates alone; inf where there is none."""
        chance = _chance(self.mechanism(x))
        if chance is None or any(target.threat_model != "dp" for target in self.targets):
            return math.inf
        if chance > min(target.distance() for target in self.targets) + NEARLY:
            return math.inf  # no engine is needed
        most = GenericMechanism(0.0, chance)
        free = (replace(target, method="auto", tolerance=None) for target in self.targets)
        try:
            return max(target.judged(most) for target in free)
        except (ValueError, AccuracyError):
            return math.inf

    def guide(self) -> _Divergence | None:
        """A guide to where the parameter is expected; None for several targets."""
        if len(self.targets) > 1 or self.targets[0].threat_model != "dp":
            return None
        found = _Divergence(self.mechanism, self.targets[0])
        return None if math.isnan(found.goal()) else found

    def is_monotone(self) -> bool:
        """Whether the excess itself is monotone in the parameter, not its sign alone."""
        return all(target.is_monotone() for target in self.targets)

    def slips(self) -> str:
        """Likely mistakes in the targets, in sentences."""
        return " ".join(filter(None, (target.slip() for target in self.targets)))

    def achieved(self, x: float) -> tuple[Target, ...]:
        """Return the targets with the figures that the mechanism at x achieves."""
        mechanism = self.mechanism(x)
        return tuple(target.achieved(mechanism) for target in self.targets)


def _chance(mechanism: Mechanism) -> float | None:
    """An upper bound of the probability that a record takes part in any step; None without one.

    If it takes part in none, both data sets have the same outcomes.  So their laws are within that
    total variation distance, and `GenericMechanism(0, chance)` dominates all such pairs.
    """
    logs = []  # of the probabilities to be in no step of each kind
    for step, number in steps_of(mechanism):
        share = max(float(step.share), math.ulp(0.0))
        if step.scheme != "poisson" or share >= 1.0:
            return None
        logs.append(number * fn.log1p(-share))
    return min(-fn.expm1(math.fsum(logs)) * ROUNDED_UP, 1.0)


def calibrate(
    make: Callable[[Any], Mechanism],
    target: Target | Sequence[Target],
    *,
    integer: bool = False,
    maximize: bool | None = None,
    start: float | None = None,
    rtol: float = 1e-11,
) -> Calibration:
    """Find the smallest noise, largest sampling probability or most steps that meet a target.

    Parameters
    ----------
    make : callable
        Returns the mechanism for a parameter, a positive float or, with ``integer``, an int >= 0.
        Privacy must be monotone in the parameter.  If ``make`` raises ValueError, the value is
        outside the parameter's domain, which must be an interval.
    target : Target or sequence of Target
        The target, or several that must all be met.  Arrays in targets broadcast together, and a
        parameter is found for each entry.
    integer : bool
        Whether the parameter is an integer.
    maximize : bool, optional
        True finds the largest parameter that meets the target, for parameters such as steps whose
        growth costs privacy; False finds the smallest.  By default it is determined automatically.
    start : float, optional
        A valid parameter at which the search begins; by default 1, or 1024 for integers.
    rtol : float
        Largest relative distance of the answer from the boundary, in [1e-14, 0.1].  Integers are
        always exact.

    Returns
    -------
    Calibration
        A parameter on the safe side of the boundary: its mechanism was evaluated and meets the
        target by the requested bounds, estimated or proven (``bounds=True`` of the target).

    Raises
    ------
    ValueError
        For an argument outside its domain, for a target that no parameter meets (the message says
        what can be achieved), or for one that all meet if none of them is the largest or smallest.
    AccuracyError
        If no engine has an answer near the boundary.

    Notes
    -----
    Accuracy: ``rtol``, plus the width of the engine's bounds, usually below 1e-12.  Five to ten
    mechanisms are evaluated.  See docs/calibration.

    Examples
    --------
    >>> import pyengine as pe
    >>> target = pe.targets.EpsilonDelta(1.0, 1e-6)
    >>> noise = pe.calibrate(lambda s: pe.dp_sgd(s, 0.01, 10_000), target)
    >>> print(f"{noise.value:.9f}")
    4.302106466
    >>> steps = pe.calibrate(lambda n: pe.dp_sgd(4.0, 0.01, n), target, integer=True)
    >>> int(steps), steps.achieved.delta <= 1e-6
    (8594, True)
    """
    given: Any = make
    if not callable(given):
        hint = "; it is the first argument" if isinstance(given, Target) else ""
        raise ValueError(f"make must be callable, got {checks.shown(given)}{hint}")
    make = Guarded(make)
    targets, several = _targets(target)
    try:
        shape = np.broadcast_shapes(*(each.shape for each in targets))
    except ValueError:
        shapes = [each.shape for each in targets]
        raise ValueError(f"target must hold arrays that broadcast together, got {shapes}") from None
    precision = checks.real("rtol", rtol)
    if not 1e-14 <= precision <= 0.1:
        raise ValueError(f"rtol must lie in [1e-14, 0.1], got {checks.shown(rtol)}")
    integer = checks.flag("integer", integer)
    where = _start(start, integer)
    grows = None if maximize is None else checks.flag("maximize", maximize)
    values = np.empty(shape, dtype=np.int64 if integer else np.float64)
    mechanisms = np.empty(shape, dtype=object)
    achieved = np.empty(shape, dtype=object)
    evaluations = 0
    for index in np.ndindex(shape):
        job = _Job(make, tuple(each.at(index, shape) for each in targets), integer)
        domain = INTEGERS if integer else REALS
        search = NoiseSearch(
            job.excess, job.valid, domain, precision, job.rough, job.guide(), job.ceiling
        )
        # the caller's start, or the answer for the entry before, is nearer than a guess
        search.starts_near = start is not None or evaluations > 0
        refuse_the_least(job.mechanism(where))  # a start outside the domain raises here, too
        began = where
        try:
            search.refuse_what_all_meet(where)
            if grows is None:
                where, grows = search.undirected(where, monotone=job.is_monotone())
            else:
                where = search.boundary(where, grows)
        except Unbounded as end:
            asked = " and ".join(each.called() for each in job.targets)
            why = ": " + job.slips() if job.slips() else ", so none is the last that does"
            raise ValueError(f"{end} {asked}{why}") from None
        except Unreachable as end:
            figures = " and ".join(found.in_words() for found in job.achieved(end.best))
            best = f"the parameter {written(end.best, '.6g')}, the last one tried, gives {figures}"
            if end.error is None and end.best in (REALS.low, REALS.high):
                kind = "finite" if end.best == REALS.high else "positive"
                best = (
                    f"no {kind} parameter meets it; even {written(end.best, '.1g')} gives {figures}"
                )
            if end.error is None:
                slips = f". {job.slips()}" if job.slips() else ""
                raise ValueError(f"target must be within reach: {best}{slips}") from None
            raise AccuracyError(f"{best}, and beyond there is {end.error}") from end.error
        if where == began and not integer:
            job.check_interval(where)
        values[index], mechanisms[index] = where, job.mechanism(where)
        achieved[index] = job.achieved(where)
        evaluations += len(search.points) + len(search.unknown)
    found = [
        _gathered(each, [achieved[i][k] for i in np.ndindex(shape)], shape)
        for k, each in enumerate(targets)
    ]
    return Calibration(
        values if shape else values.item(),
        tuple(found) if several else found[0],
        mechanisms if shape else mechanisms.item(),
        evaluations,
    )


def _targets(target: Any) -> tuple[tuple[Target, ...], bool]:
    several = isinstance(target, list | tuple)
    targets = tuple(target) if several else (target,)
    if not targets or not all(isinstance(each, Target) for each in targets):
        raise ValueError(
            f"target must be a Target or a sequence of them, got {checks.shown(target)}"
        )
    return targets, several


def _start(start: Any, integer: bool) -> float:
    if start is None:
        return INTEGER_START if integer else START
    domain = INTEGERS if integer else REALS
    value = float(checks.count("start", start) if integer else checks.real("start", start))
    if not domain.low <= value <= domain.high:
        raise ValueError(
            f"start must lie in [{domain.low:g}, {domain.high:g}], got {checks.shown(start)}"
        )
    return value


def _gathered(target: Target, single: list[Any], shape: tuple[int, ...]) -> Target:
    """One target that holds arrays, from the targets of all entries."""
    return single[0] if not shape else target.gathered(single, shape)
