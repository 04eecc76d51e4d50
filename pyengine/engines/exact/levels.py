"""Bounds of a trade-off function at a level, from masses above and below a few thresholds.

Masses have a relative error and thresholds a shift, so the slope at a level may be uncertain; every
bound uses the slope on its safe side (docs/theory/conversions).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from contextlib import suppress
from copy import copy
from typing import Any, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine._support.status import finished, keep_raised
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
    "NO_LOW_PARTS",
    "ROUNDING",
    "SUBNORMAL",
    "Calls",
    "ClosedLaw",
    "ComposedLaw",
    "KnownProfile",
    "LawProfile",
    "LawTests",
    "LevelQuestions",
    "Parts",
    "Tails",
    "Thresholds",
    "bounded",
    "brackets",
    "everywhere",
    "low_parts",
    "masses_from",
    "profile_from",
]

FloatArray = npt.NDArray[np.float64]
Parts = tuple[FloatArray, FloatArray, FloatArray]  # values, and bounds that may be impossible

ERRORS = ("trade_off", "gamma_bound")  # the public functions of both errors at a level
SUBNORMAL = 2e-317  # absolute error of a sum of 2^22 masses, each rounded below the normal doubles
ROUNDING = 16.0 * UNIT  # rounding of the operations of a bound, relative to its terms
BELOW_DOUBLES = 1e-300  # a value below this is 0 if its lower bound is
OK: int = lib.PE_OK
ANSWERS = 7  # numbers per level from the C core: β and γ with bounds, and c
FAR = 1024.0  # width of a bracket of thresholds above which the axis of the search is logarithmic


class Tails(NamedTuple):
    """Masses of A and B on an event and on its complement, infinite losses included.

    The event is {S > c}, where losses within ``shift`` of c may be on either side.
    """

    a_above: FloatArray
    a_below: FloatArray
    b_above: FloatArray
    b_below: FloatArray
    error: FloatArray  # bound of the relative error of each mass
    shift: FloatArray


class KnownProfile(NamedTuple):
    """H_{e^ε}(A‖B) of finite losses at some ε."""

    value: FloatArray
    error: FloatArray  # bound of its absolute error, 0 only if the value is proven to be 0
    fall: FloatArray  # estimate of e^ε B(S <= -ε), by which it falls with ε


class Calls(NamedTuple):
    """Functions of the C core's type that return what a law knows, and what they are called with.

    `roughly` estimates masses at one threshold, `start` the ε of a profile; NULL if there is none.
    """

    law: Any
    tails: Any
    profile: Any = ffi.NULL
    roughly: Any = ffi.NULL
    start: Any = ffi.NULL


TAILS = len(Tails._fields)
PARTS = len(KnownProfile._fields)
NO_LOW_PARTS = ffi.NULL, ffi.NULL, ffi.NULL, 0.0
LARGEST = 1.7976931348623157e308
NOWHERE = np.zeros(0)


class Thresholds(Protocol):
    """Events {S > c} with known masses."""

    def support(self) -> tuple[float, float]:
        """Smallest and largest finite loss."""

    def tails(self, c: FloatArray) -> Tails:
        """Masses above c and at most c, for finite c."""


class ComposedLaw(Thresholds, Protocol):
    """An ordered pair (A, B) of composed laws with loss S = log dB/dA.

    `is_light` laws take little memory; the tests of `is_narrowed` ones narrow thresholds.
    """

    is_light: bool = False
    is_narrowed: bool = False

    def lowest(self) -> tuple[float, float]:
        """Lower and upper bound of the infimum of all finite losses; -inf if unbounded."""
        low = self.support()[0]
        return math.nextafter(low, -math.inf), math.nextafter(low, math.inf)

    def infinite(self) -> tuple[float, float]:
        """Mass of A at loss -inf and of B at loss inf."""
        return 0.0, 0.0

    @property
    def meets(self) -> bool:
        """Whether some outcome is possible under both laws; its masses may underflow."""
        return True

    def alone(self) -> tuple[float, float, float]:
        """Mass of A at loss -inf as a sum of two doubles, and a bound of its absolute error."""
        return 0.0, 0.0, 0.0

    def expected(self, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Expected brackets of the thresholds c with A(S > c) = α; an estimate."""
        return everywhere(self, alpha) if self.is_narrowed else brackets(self, alpha)

    @property
    def calls(self) -> Calls:
        """Functions of this law for the C core."""
        return Calls(ffi.new_handle(self), lib.python_tails, lib.python_profile)

    @property
    def tests(self) -> LawTests:
        """Tests {S > c} for the C core, which searches the expected brackets."""
        return LawTests(self, self.calls)

    def formulas(self, alpha: FloatArray) -> tuple[Parts, Parts, FloatArray] | None:
        """β and γ as values and bounds, and thresholds, from formulas; None if there are none."""
        del alpha
        return None

    def profile(self, epsilon: FloatArray) -> tuple[FloatArray, ...]:
        """H_{e^ε}(A‖B) minus A's mass at loss -inf, at finite ε, and a bound of its absolute error.

        The bound is 0 only if the profile is proven to be 0.  Laws whose `calls` are asked for
        profiles return a `KnownProfile`.
        """


class ClosedLaw(ComposedLaw, Protocol):
    """A composed law that may stand beside finite losses."""

    @property
    def jumps(self) -> FloatArray:
        """Losses that may be atoms, where thresholds are narrowed."""
        return NOWHERE

    def profile(self, epsilon: FloatArray, low: FloatArray | None = None) -> KnownProfile:
        """As of a `ComposedLaw`, at any ε + low, where low is at most an ulp of ε."""

    def shift(self, c: FloatArray) -> FloatArray:
        """That of `tails`."""
        return self.tails(c).shift


def brackets(law: Thresholds, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Brackets of the thresholds c at which A(S > c) falls to α, a few roundings wide.

    A level inside an atom has a bracket around the loss of the atom.
    """
    low, high = law.support()
    # margin for the rounding of losses, so that atoms at the ends are inside
    room = 32.0 * UNIT * (1.0 + max(abs(low), abs(high)))
    small = alpha <= 0.5
    goal = np.where(small, alpha, 1.0 - alpha)

    def over(c: FloatArray) -> FloatArray:
        found = law.tails(c)
        with np.errstate(divide="ignore", over="ignore"):
            log = fn.log(np.where(small, found.a_above, found.a_below) / goal)
        return np.asarray(np.where(small, log, -log))

    # test the atoms at both ends first: many levels lie inside them
    places = sorted((low - room, low + room, high - room, high + room))
    before = sum(over(np.full(alpha.size, place)) > 0.0 for place in places[1:3])
    ends = np.take(places, before), np.take(places, before + 1)
    if high - low > FAR:  # first in arcsinh c, which is logarithmic far out
        far = falling_bracket(lambda x: over(fn.sinh(x)), *(fn.arcsinh(end) for end in ends))
        ends = fn.sinh(far[0]), fn.sinh(far[1])
    return falling_bracket(over, *ends, room=8.0 * UNIT)


def everywhere(law: Thresholds, alpha: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Brackets of all losses, for tests that narrow them."""
    low, high = law.support()
    return np.full(alpha.size, low), np.full(alpha.size, high)


def masses_from(kernel: Any, law: Any, c: FloatArray) -> Tails:
    """Tails by the C function that the tests of a law have."""
    out, at = np.empty((TAILS, c.size)), np.ascontiguousarray(c)
    finished(kernel(law, at.size, array(at), array(out.reshape(-1), writable=True)), "exact sums")
    return Tails(*out)


def profile_from(
    kernel: Any, law: Any, epsilon: FloatArray, low: FloatArray | None = None
) -> KnownProfile:
    """A profile by the C function that a law has for it."""
    out, at = np.empty((PARTS, epsilon.size)), np.ascontiguousarray(epsilon)
    left = ffi.NULL if low is None else array(np.ascontiguousarray(low))
    room = array(out.reshape(-1), writable=True)
    finished(kernel(law, at.size, array(at), left, room), "exact sums")
    return KnownProfile(*out)


def low_parts(holder: Any) -> tuple[Any, ...]:
    """For the C core: the low parts of losses are ``holder.low``, asked for where they count."""
    return lib.python_low, ffi.new_handle(holder), ffi.NULL, 0.0


def bounded(
    found: Sequence[FloatArray], least: FloatArray | float, most: FloatArray | float, engine: str
) -> Answer:
    """An answer from values and proven bounds, clipped to [least, most].

    A value is 0 if its lower bound is 0 and its upper bound below `BELOW_DOUBLES`.
    """
    value, lower, upper = found[0], *(np.clip(end, least, most) for end in found[1:])
    value = np.clip(value, lower, upper) + 0.0  # no -0.0
    value[(lower == 0.0) & (upper < BELOW_DOUBLES)] = 0.0
    return Answer(value, lower, upper, names(engine, value.size), True)


def _bounded_one(found: Triple, least: float, most: float) -> Triple:
    """As `bounded` for one value."""
    # NaN stays NaN
    lower, upper = (min(max(end, least), most) for end in found[1:])
    value = min(max(found[0], lower), upper) + 0.0
    return 0.0 if lower == 0.0 and upper < BELOW_DOUBLES else value, lower, upper


class LevelQuestions(Questions):
    """Questions for which one computation bounds both β and γ; `one` returns the one asked for."""

    engine: str
    _known: tuple[float, tuple[Parts, Parts, FloatArray]] | None = None  # a level, and its errors

    def _found(self, alpha: FloatArray) -> tuple[Parts, Parts, FloatArray]:
        """β and γ at levels inside, and c of the slopes -e^c; c is empty if it is not needed."""
        raise NotImplementedError

    def _is_inside(self, level: float) -> bool:
        return 0.0 < level < 1.0

    def _hands_over(self, found: Triple, level: float, *, is_gamma: bool) -> bool:
        """Whether another engine has to answer instead."""
        del found, level, is_gamma
        return False

    def _inside(self, alpha: FloatArray) -> ErrorCurve:
        known = self._known
        is_known = known is not None and alpha.tolist() == [known[0]]
        beta, gamma, c = known[1] if known is not None and is_known else self._found(alpha)
        return ErrorCurve(
            bounded(beta, 0.0, complement_above(alpha), self.engine),
            bounded(gamma, alpha, 1.0, self.engine),
            c,
        )

    def one(self, name: str, x: float) -> Judged:
        """As `answer` for one number."""
        asked = self
        if name in ERRORS and self._is_inside(x):
            with suppress(AccuracyError):  # `answer` handles it below
                is_gamma, found = name == "gamma_bound", self._found(np.array([x]))
                value, lower, upper = (float(part[0]) for part in found[is_gamma])
                least, most = (
                    (x, 1.0) if is_gamma else (0.0, float(complement_above(np.array([x]))[0]))
                )
                one = _bounded_one((value, lower, upper), least, most)
                if not self._hands_over(one, x, is_gamma=is_gamma):
                    return *one, True
                asked = copy(self)
                asked._known = x, found
        return super(LevelQuestions, asked).one(name, x)


class LawTests:
    """Tests {S > c} of a law for the C core.

    Parameters
    ----------
    law : Thresholds
        The law.
    calls : Calls
        Its functions; without `roughly` the expected brackets need no further search.
    jumps : ndarray, optional
        Losses that may be atoms, increasing.
    has_atoms : bool
        Whether atoms count.
    room : float
        Width to which thresholds are narrowed; 0 for a small part of the expected bracket.
    """

    def __init__(
        self,
        law: Thresholds,
        calls: Calls,
        jumps: FloatArray = NOWHERE,
        *,
        has_atoms: bool = False,
        room: float = 0.0,
    ) -> None:
        jump = jumps.size, array(jumps)
        given = calls.law, calls.tails, calls.roughly, law.support(), has_atoms, *jump, room
        self.core, self._kept = ffi.new("pe_tests *", given), given


class LawProfile:
    """The profile of a law for the C core, which bounds δ at ε and ε at δ."""

    def __init__(self, law: ComposedLaw) -> None:
        calls, (low, high) = law.calls, law.lowest()
        # the ε from which on no mass is left in doubles, and bounds of the largest ε
        end = min(max(-law.support()[0], 0.0) * (1.0 + 4.0 * UNIT), LARGEST)
        ends = end, max(0.0 - high, 0.0), max(0.0 - low, 0.0)
        given = calls.law, calls.profile, calls.start, law.alone(), *ends
        self._core, self._kept = ffi.new("pe_profile *", given), given

    def deltas(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Values, lower and upper bounds of δ at ε >= 0."""
        return self._asked(lib.pe_profile_deltas, epsilon)

    def epsilons(self, delta: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Values, lower and upper bounds of the smallest ε >= 0 with a profile of at most δ."""
        return self._asked(lib.pe_profile_epsilons, delta)

    def _asked(self, kernel: Any, x: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        out, at = np.empty((3, x.size)), np.ascontiguousarray(x)
        room = array(out.reshape(-1), writable=True)
        finished(kernel(self._core, at.size, array(at), room), "a profile")
        return out[0], out[1], out[2]


@ffi.def_extern(error=lib.PE_RAISED, onerror=keep_raised)  # type: ignore[untyped-decorator]
def python_tails(law: Any, n: int, c: Any, tails: Any) -> int:
    """Callback: masses of a law at thresholds."""
    at, room = (np.frombuffer(ffi.buffer(x, 8 * n * k)) for x, k in ((c, 1), (tails, TAILS)))
    np.concatenate(ffi.from_handle(law).tails(at.copy()), out=room)
    return OK


@ffi.def_extern(error=lib.PE_RAISED, onerror=keep_raised)  # type: ignore[untyped-decorator]
def python_roughly(law: Any, c: float, masses: Any) -> int:
    """Callback: estimated masses of a law at one threshold."""
    masses[0:4] = ffi.from_handle(law).roughly(c)
    return OK


@ffi.def_extern(error=lib.PE_RAISED, onerror=keep_raised)  # type: ignore[untyped-decorator]
def python_profile(law: Any, n: int, epsilon: Any, low: Any, out: Any) -> int:
    """Callback: the profile of a law."""
    given = [np.frombuffer(ffi.buffer(x, 8 * n)).copy() for x in (epsilon, low) if x != ffi.NULL]
    room = np.frombuffer(ffi.buffer(out, 8 * n * PARTS))
    np.concatenate(ffi.from_handle(law).profile(*given), out=room)
    return OK


@ffi.def_extern(error=lib.PE_RAISED, onerror=keep_raised)  # type: ignore[untyped-decorator]
def python_low(handle: Any, low: Any, error: Any) -> int:
    """Callback: low parts of losses, and a bound of the error of both parts."""
    parts, error[0] = ffi.from_handle(handle).low
    low[0] = array(parts)
    return OK
