"""Bounds of a trade-off function at a level, from masses above and below a few thresholds.

Masses are known to a relative error and thresholds to a shift, so which of two slopes meet at a
level may be open; every bound takes the slope that is on its safe side (docs/theory/conversions).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine._support.status import keep_raised
from pyengine.engines.answers import (
    Answer,
    ErrorCurve,
    Judged,
    Questions,
    Triple,
    complement_above,
    names,
)
from pyengine.engines.functionals import array
from pyengine.errors import AccuracyError
from pyengine.numerics import functions as fn
from pyengine.numerics.bracketing import falling_bracket
from pyengine.numerics.rounding import UNIT

__all__ = [
    "ANSWERS",
    "BELOW_DOUBLES",
    "ERRORS",
    "ROUNDING",
    "SUBNORMAL",
    "WEAK",
    "ClosedLaw",
    "ComposedLaw",
    "LawTests",
    "LevelQuestions",
    "Parts",
    "Tails",
    "Thresholds",
    "bounded",
    "errors_at",
    "excess",
    "thresholds",
]

FloatArray = npt.NDArray[np.float64]
Parts = tuple[FloatArray, FloatArray, FloatArray]  # values, and bounds that may be impossible

ERRORS = ("trade_off", "gamma_bound")  # the public functions of both errors at a level
SUBNORMAL = 2e-317  # what rounding below the normal range may take from a sum of 2^22 masses
ROUNDING = 16.0 * UNIT  # of the few operations of a bound, relative to its terms
BELOW_DOUBLES = 1e-300  # what is not known to be above 0, and is less than this, is 0
WEAK = 2.0**-33  # an error of a profile that losses to many digits are to take away, relative
OK: int = lib.PE_OK
ANSWERS = 7  # what the C core says at a level
FAR = 1024.0  # a bracket of thresholds wider than this is halved on a logarithmic axis


class Tails(NamedTuple):
    """Masses of A and B on an event and off it, infinite losses included.

    The event is {S > c} for a threshold c, but for outcomes whose loss is within ``shift`` of c.
    """

    a_above: FloatArray
    a_below: FloatArray
    b_above: FloatArray
    b_below: FloatArray
    error: FloatArray  # a bound on the relative error of each
    shift: FloatArray


TAILS = len(Tails._fields)
NOWHERE = np.zeros(0)


class Thresholds(Protocol):
    """Events {S > c} whose masses are known."""

    def support(self) -> tuple[float, float]:
        """Smallest and largest finite loss."""

    def tails(self, c: FloatArray) -> Tails:
        """Masses above c and at most c, for finite c."""

    @property
    def losses(self) -> FloatArray | None:
        """All finite losses, rising; None of infinitely many."""
        return None


class ComposedLaw(Thresholds, Protocol):
    """An ordered pair (A, B) of composed laws with loss S = log dB/dA; derived ones say more."""

    def lowest(self) -> tuple[float, float]:
        """Numbers not above and not below the infimum of all finite losses; -inf if unbounded."""
        low = self.support()[0]
        return math.nextafter(low, -math.inf), math.nextafter(low, math.inf)

    def infinite(self) -> tuple[float, float]:
        """Mass of A at loss -inf and of B at loss inf."""
        return 0.0, 0.0

    @property
    def meets(self) -> bool:
        """Whether both laws have some outcome, of masses that may lie below all doubles."""
        return True

    def alone(self) -> tuple[float, float, float]:
        """Mass of A at loss -inf as a sum of two doubles, and a bound on the absolute error."""
        return 0.0, 0.0, 0.0

    def formulas(self, alpha: FloatArray) -> tuple[Parts, Parts, FloatArray] | None:
        """β and γ, as values and bounds, and thresholds; None where no formula says them."""
        del alpha
        return None

    def profile(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """H_{e^ε}(A‖B) less the mass of A alone, at finite ε, and a bound on its absolute error.

        The bound is 0 only where the profile is known to be 0.
        """


class ClosedLaw(ComposedLaw, Protocol):
    """A composed law whose profile has the digits of an ε that is a sum of two doubles."""

    def profile(
        self, epsilon: FloatArray, low: FloatArray | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """As of a `ComposedLaw`; ``low`` is what ε is above the double."""


def excess(tails: Tails, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Return bounds of A(event) - α, from the mass on the event or off it, whichever says more."""
    # a level for each column of points, or for each point
    shape = tails.error.shape
    level = np.ascontiguousarray(alpha, np.float64)
    out = np.empty((2, *shape))
    lib.pe_level_excess(
        tails.error.size // max(level.size, 1),
        level.size,
        array(level.reshape(-1)),
        _core(tails),
        ROUNDING,
        _room(out[0]),
        _room(out[1]),
    )
    return out[0], out[1]


def thresholds(law: Thresholds, alpha: FloatArray) -> tuple[FloatArray, Tails]:
    """Brackets of the thresholds at which A's mass is surely at most α, and surely at least α.

    They are looked for beside losses or, among infinitely many, by interpolation, and then halved.
    The search is one of its own, as each bracket keeps the tails that were seen at its ends.  Of
    four thresholds that decrease, masses cease to be surely at most α between the first two, and
    come to be surely at least α between the last two; inside of an atom both brackets are one.
    """
    low, high = law.support()
    # room for the rounding of losses, so that no atom at an end is outside
    room = 32.0 * UNIT * (1.0 + max(abs(low), abs(high)))
    ends = np.array([high + room, low - room])
    upper, lower = (np.full((2, alpha.size), end) for end in ends)
    # errors depend on how many thresholds are asked at once, so that what was found is kept
    shape = (len(Tails._fields), 2, alpha.size)
    at_ends = np.array(law.tails(ends))
    at_upper, at_lower = (np.broadcast_to(at_ends[:, i, None, None], shape) for i in (0, 1))
    levels = np.broadcast_to(alpha, upper.shape)

    def seen(places: FloatArray) -> FloatArray | None:
        """Close brackets at places, and how far masses are above a level; None if all are closed.

        In logarithms of the smaller of both masses.
        """
        nonlocal upper, lower, at_upper, at_lower
        middle = places.reshape(upper.shape)
        wide = upper - lower > 8.0 * UNIT * (1.0 + np.abs(lower) + np.abs(upper))
        open_ = wide & (middle > lower) & (middle < upper)
        if not open_.any():
            return None
        one = open_[0] & open_[1] & (middle[0] == middle[1])
        ask = np.array([open_[0], open_[1] & ~one])
        found = np.empty(shape)
        found[:, ask] = law.tails(middle[ask])
        found[:, 1, one] = found[:, 0, one]
        least, most = excess(Tails(*found[:, open_]), levels[open_])
        # the first bracket ends where α is surely exceeded no more, the second where it surely is
        is_first, down = np.nonzero(open_)[0] == 0, np.zeros_like(open_)
        down[open_] = np.where(is_first, most <= 0.0, ~(least >= 0.0))
        up = open_ & ~down
        upper, at_upper = np.where(down, middle, upper), np.where(down, found, at_upper)
        lower, at_lower = np.where(up, middle, lower), np.where(up, found, at_lower)
        over = np.zeros_like(upper)
        over[open_] = _logs_over(np.where(is_first, most, least), levels[open_])
        return np.where(up, np.fmax(over, BELOW_DOUBLES), np.fmin(over, -BELOW_DOUBLES)).ravel()

    losses = law.losses
    if losses is None:
        for end in (low + room, high - room):  # which mostly are atoms
            seen(np.full(upper.shape, end))
        closed = np.zeros(upper.size)
        falling_bracket(
            lambda c: closed if (over := seen(c)) is None else over, lower.ravel(), upper.ravel()
        )
    else:
        for place in _beside_loss(law, losses, alpha):
            seen(np.broadcast_to(place, upper.shape))
    while True:
        middle = 0.5 * (lower + upper)
        far = upper - lower > FAR
        if far.any():
            between = fn.sinh(0.5 * (fn.arcsinh(lower[far]) + fn.arcsinh(upper[far])))
            middle[far] = np.clip(between, lower[far], upper[far])
        if seen(middle) is None:
            break
    c = np.concatenate([upper, lower])
    order = np.argsort(-c, axis=0, kind="stable")
    tails = np.take_along_axis(np.concatenate([at_upper, at_lower], axis=1), order[None], axis=1)
    return np.take_along_axis(c, order, axis=0), Tails(*tails)


def _beside_loss(
    law: Thresholds, losses: FloatArray, alpha: FloatArray
) -> tuple[FloatArray, FloatArray]:
    """Places below and at the loss at which A's mass comes to be at most α, as far as is seen.

    Or next to two losses, between which the events of a hull become those of the other order.
    """
    places = np.stack([np.nextafter(losses, -np.inf), losses], axis=1).ravel()
    first, last = np.zeros(alpha.size, np.intp), np.full(alpha.size, places.size - 1)
    while (last - first > 1).any():
        middle = (first + last) // 2
        found = law.tails(places[middle])
        above = np.where(alpha <= 0.5, found.a_above > alpha, found.a_below < 1.0 - alpha)
        first, last = np.where(above, middle, first), np.where(above, last, middle)
    return places[first], places[last]


def _logs_over(excess: FloatArray, alpha: FloatArray) -> FloatArray:
    """Logarithms of masses over levels, or of what levels leave over what masses leave."""
    small = alpha <= 0.5
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        part = np.where(small, excess, -excess) / np.where(small, alpha, 1.0 - alpha)
    log = fn.log1p(np.maximum(part, -1.0))
    return np.asarray(np.where(small, log, -log))


def errors_at(points: Tails, c: FloatArray, alpha: FloatArray, shown: float) -> FloatArray:
    """β, two bounds, γ, two bounds, and c, from the tails at thresholds of shape (points, n).

    Values are those of the line between the points on both sides of α, of which c is the first.
    With t = e^c at a threshold c, the event there is optimal for the sum of B off it and t A on
    it, but for the shift: that bounds T from below.  Every event is a test, and T is convex: that
    bounds T from above, with slopes known where A's mass is surely on one side of α.  ``shown`` is
    B's mass where A has none, which every level gains.
    """
    rows, size = c.shape
    out = np.empty((ANSWERS, size))
    level, c = np.ascontiguousarray(alpha), np.ascontiguousarray(c)
    lib.pe_level_errors(
        rows, size, array(level), array(c), _core(points), ROUNDING, shown, _room(out)
    )
    return out


def bounded(
    found: Sequence[FloatArray], least: FloatArray | float, most: FloatArray | float, engine: str
) -> Answer:
    """A value and its proven bounds, moved to what is possible, and the value within the bounds.

    What is not known to be above 0, and is below all doubles, is 0.
    """
    value, lower, upper = found[0], *(np.clip(end, least, most) for end in found[1:])
    value = np.clip(value, lower, upper) + 0.0  # no -0.0
    value[(lower == 0.0) & (upper < BELOW_DOUBLES)] = 0.0
    return Answer(value, lower, upper, names(engine, value.size), True)


def _bounded_one(found: Triple, least: float, most: float) -> Triple:
    """As `bounded` for one value."""
    # what is no number stays none
    lower, upper = (min(max(end, least), most) for end in found[1:])
    value = min(max(found[0], lower), upper) + 0.0
    return 0.0 if lower == 0.0 and upper < BELOW_DOUBLES else value, lower, upper


class LevelQuestions(Questions):
    """Questions whose errors at levels inside are bounded together; of a number the one asked."""

    engine: str

    def _found(self, alpha: FloatArray) -> tuple[Parts, Parts, FloatArray]:
        """β and γ at levels inside, and c of the slopes -e^c; no c where nobody needs it."""
        raise NotImplementedError

    def _is_inside(self, level: float) -> bool:
        return 0.0 < level < 1.0

    def _hands_over(self, found: Triple, level: float, *, is_gamma: bool) -> bool:
        """Whether another engine is to be asked about a number."""
        del found, level, is_gamma
        return False

    def _inside(self, alpha: FloatArray) -> ErrorCurve:
        beta, gamma, c = self._found(alpha)
        return ErrorCurve(
            bounded(beta, 0.0, complement_above(alpha), self.engine),
            bounded(gamma, alpha, 1.0, self.engine),
            c,
        )

    def one(self, name: str, x: float) -> Judged:
        """As `answer` for one number."""
        if name in ERRORS and self._is_inside(x):
            with suppress(AccuracyError):  # of which `answer` knows what to do
                return self._one_inside(x, is_gamma=name == "gamma_bound")
        return super().one(name, x)

    def _one_inside(self, level: float, *, is_gamma: bool) -> Judged:
        alpha = np.array([level])
        value, lower, upper = (float(part[0]) for part in self._found(alpha)[is_gamma])
        least, most = (level, 1.0) if is_gamma else (0.0, float(complement_above(alpha)[0]))
        found = _bounded_one((value, lower, upper), least, most)
        if self._hands_over(found, level, is_gamma=is_gamma):
            raise AccuracyError("another engine is asked")
        return *found, True


class LawTests:
    """Tests {S > c} of a law as the C core asks about them.

    Parameters
    ----------
    law : Thresholds
        The law, which has ``roughly`` as well where tests are looked for.
    jumps : ndarray, optional
        Losses that may be atoms, rising.
    own : tuple, optional
        A law of the core, and the functions that say its masses; those of ``law`` otherwise.
    has_atoms : bool
        Whether atoms count.
    """

    def __init__(
        self,
        law: Thresholds,
        jumps: FloatArray = NOWHERE,
        own: tuple[Any, Any, Any] | None = None,
        *,
        has_atoms: bool = False,
    ) -> None:
        calls = own or (ffi.new_handle(law), lib.python_tails, lib.python_roughly)
        given = *calls, law.support(), has_atoms, jumps.size, array(jumps)
        self.core, self._kept = ffi.new("pe_tests *", given), given


@ffi.def_extern(error=lib.PE_RAISED, onerror=keep_raised)  # type: ignore[untyped-decorator]
def python_tails(law: Any, n: int, c: Any, tails: Any) -> int:
    """Masses of a law at thresholds."""
    at, room = (np.frombuffer(ffi.buffer(x, 8 * n * k)) for x, k in ((c, 1), (tails, TAILS)))
    np.concatenate(ffi.from_handle(law).tails(at.copy()), out=room)
    return OK


@ffi.def_extern(error=lib.PE_RAISED, onerror=keep_raised)  # type: ignore[untyped-decorator]
def python_roughly(law: Any, c: float, masses: Any) -> int:
    """About the masses of a law at one threshold."""
    masses[0:4] = ffi.from_handle(law).roughly(c)
    return OK


def _core(tails: Tails) -> Any:
    """Tails as the C core takes them."""
    return array(np.concatenate(tails, axis=None))


def _room(x: FloatArray) -> Any:
    """Where the C core writes."""
    return array(x.reshape(-1), writable=True)
