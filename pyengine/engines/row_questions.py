"""From rows of log values to answers: questions on ordered pairs without atoms.

For an ordered pair (A, B) with loss S = log dB/dA: T(A, B)(α) = B(S <= c) at A(S > c) = α, and the
profile H_{e^ε}(A‖B) = E_A max(0, 1 - e^{S+ε}).  Laws here have no atoms, so no test is randomised.
"""

from __future__ import annotations

import math
from functools import partial
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine.answers import Answer, ErrorCurve, Judged, Questions, Triple
from pyengine.caches import cached_property
from pyengine.curves import OneOrder, taken
from pyengine.engines.functionals import (
    A_ABOVE,
    A_BELOW,
    B_BELOW,
    ERRORS,
    PROFILE,
    FloatArray,
    Limits,
    Rows,
    array,
)
from pyengine.engines.hull import OneLineHull
from pyengine.errors import AccuracyError
from pyengine.numerics.rounding import UNIT

__all__ = ["BothOrdersOfRows", "OneOrderOfRows", "RowQuestions"]

ORDER, ORDER_TINY = 1.0 + 1e-9, 1e-300  # what rounding may do to two profiles that agree
MANY = 2048  # values that are asked together: below, they are the engine's own
TRIPLE, PAIR_OF_TRIPLES = ffi.typeof("double[3]"), ffi.typeof("double[6]")


class RowQuestions:
    """Questions on one ordered pair, answered from rows of an engine.

    The methods ``one_…`` answer for a float without arrays; they return None where the arrays must
    be asked: at the ends of the domain, and where the first engine is not good enough.  Derived
    classes say where rows come from.
    """

    is_trivial: bool  # whether both laws are equal
    is_telling: bool = False  # whether there may be answers without an engine
    has_proven_ends: bool = False  # whether the bounds of the largest ε are proven
    limits: Limits  # relative errors that an answer may have

    @property
    def is_ordinary(self) -> bool:
        """Whether values may be interpolated: no tolerance is set, and only the engine answers."""
        return self.limits == Limits() and not self.is_telling

    def _at(self, functional: int, c: FloatArray) -> Rows:
        """Rows at thresholds of the loss."""
        raise NotImplementedError

    def _solve(self, functional: int, log_target: FloatArray) -> Rows:
        """Rows at the thresholds where the log of a functional has given values."""
        raise NotImplementedError

    def _row(self, functional: int, x: float, *, by_value: bool) -> Any:
        """One such row with the same bits, or None if arrays have to be asked."""
        raise NotImplementedError

    def _memo(self) -> dict[Any, Any]:
        """What several questions need is kept here."""
        raise NotImplementedError

    @cached_property
    def ends(self) -> Triple:
        """The largest ε of all, between its bounds."""
        raise NotImplementedError

    def _simple(self, alpha: FloatArray) -> tuple[ErrorCurve, npt.NDArray[np.bool_]] | None:
        """What is known without an engine, and where nothing is; None where that is everywhere."""
        del alpha
        return None

    @property
    def is_estimated(self) -> bool:
        """Whether every answer between the ends of the domain is estimated."""
        return False

    def told_apart(self, alpha: FloatArray) -> tuple[ErrorCurve, npt.NDArray[np.bool_]] | None:
        """Where β is next to nothing, which makes it that of every hull with this curve.

        None where no answer can be had without an engine.
        """
        known = self._simple(alpha)
        if known is None:
            return None
        found, rest = known
        return found, ~rest & (found.beta.lower == 0.0) & (alpha < 1.0) & (alpha > 0.0)

    def _beyond(self, epsilon: float) -> Triple:
        """δ from the largest ε on: 0, or within its rounding what one of a smaller ε may leave."""
        return 0.0, 0.0, max(self.ends[2] - epsilon, 0.0) if epsilon < math.inf else 0.0

    def _without_engine(self, value: FloatArray) -> Answer:
        """Values at the ends of the domain; rounded, or placed by an estimate, unless trivial."""
        answer = Answer.exact(value)
        answer.certified[:] = self.is_trivial
        return answer

    def _at_zero(self) -> float:
        memo = self._memo()
        key = "at zero"
        if key not in memo:
            found = self.one_profile(0.0)
            memo[key] = float(self.profile(np.zeros(1)).value[0]) if found is None else found[0]
        return float(memo[key])

    def tangent(self) -> tuple[float, float, float, float, str]:
        """Total variation with its error, the point (a, b) of slope -1, the engine."""
        memo = self._memo()
        key = "tangent"
        if key not in memo:
            table, names = self._at(PROFILE, np.zeros(1))
            distance = math.exp(table[0, 2 + PROFILE])  # a + b = 1 - distance
            error = distance * float(table[0, ERRORS + PROFILE]) + 4.0 * UNIT
            a, b = (math.exp(min(table[0, 2 + side], 0.0)) for side in (A_ABOVE, B_BELOW))
            memo[key] = distance, error, a, b, str(names[0])
        found: tuple[float, float, float, float, str] = memo[key]
        return found

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """T(A, B) at α in [0, 1]."""
        beta, gamma = Answer.rest(alpha), Answer.exact(alpha.copy())
        c = np.where(alpha == 0.0, math.inf, np.where(alpha == 1.0, -math.inf, 0.0))
        if self.is_trivial:
            return ErrorCurve(beta, gamma, c)
        open_ = np.ones(alpha.size, dtype=np.bool_)
        found_simply = self._simple(alpha)
        if found_simply is not None:
            simple, open_ = found_simply
            for answer, found in ((beta, simple.beta), (gamma, simple.gamma)):
                answer.put(~open_, taken(found, ~open_))
                answer.certified[~open_] = False  # the rates of this pair are rounded to doubles
            c = np.where(open_, c, simple.c)
        for functional in (A_ABOVE, A_BELOW):
            if functional == A_ABOVE:
                chosen = open_ & (alpha > 0.0) & (alpha <= 0.5)
            else:
                chosen = open_ & (alpha > 0.5) & (alpha < 1.0)
            if not chosen.any():
                continue
            level = alpha[chosen]
            tail, out = np.empty(level.size), np.empty((level.size, 6))
            lib.pe_log_tails(level.size, array(level), array(tail, writable=True))
            table, names = self._solve(functional, tail)
            lib.pe_trade_off_answers(
                level.size, array(level), array(table), array(out, writable=True)
            )
            c[chosen] = table[:, 0]
            beta.put(chosen, _answer(out[:, :3], names))
            gamma.put(chosen, _answer(out[:, 3:], names))
        return ErrorCurve(beta, gamma, c)

    def one_trade_off(self, alpha: float) -> tuple[Any, float] | None:
        """The triples of β and of γ at α, as an array of the C core, and the threshold."""
        if not 0.0 < alpha < 1.0 or self.is_trivial or self.is_telling:
            return None
        functional = A_ABOVE if alpha <= 0.5 else A_BELOW
        tail = lib.pe_log_tail(alpha)
        row = self._row(functional, tail, by_value=True)
        if row is None:
            return None
        out = ffi.new(PAIR_OF_TRIPLES)
        lib.pe_trade_off_answers(1, (alpha,), row, out)
        return out, row[0]

    def profile(self, epsilon: FloatArray) -> Answer:
        """H_{e^ε}(A‖B) at ε >= 0."""
        answer = self._without_engine(np.zeros(epsilon.size))
        answer.certified[:] = answer.certified | self.has_proven_ends
        chosen = epsilon < self.ends[0]
        for i in np.flatnonzero(~chosen & (epsilon < self.ends[2])):
            answer.upper[i] = self._beyond(float(epsilon[i]))[2]
        if not chosen.any():
            return answer
        table, names = self._at(PROFILE, -epsilon[chosen])
        out = np.empty((len(table), 3))
        lib.pe_profile_answers(len(table), array(table), array(out, writable=True))
        answer.put(chosen, _answer(out, names))
        return answer

    def one_profile(self, epsilon: float) -> Triple | None:
        """δ between its bounds at ε."""
        if epsilon >= self.ends[0]:
            return self._beyond(epsilon)
        row = self._row(PROFILE, -epsilon, by_value=False)
        if row is None:
            return None
        out = ffi.new(TRIPLE)
        lib.pe_profile_answers(1, row, out)
        return out[0], out[1], out[2]

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with H_{e^ε}(A‖B) <= δ."""
        answer = self._without_engine(np.full(delta.size, self.ends[0]))
        answer.lower[:], answer.upper[:] = self.ends[1:]
        answer.certified[:] = answer.certified | self.has_proven_ends
        chosen = delta > 0.0
        if self.is_trivial or not chosen.any():
            return answer
        nothing = delta >= self._at_zero()
        answer.put(nothing, self._without_engine(np.zeros(int(nothing.sum()))))
        chosen &= ~nothing
        if chosen.any():
            level = delta[chosen]
            target, out = np.empty(level.size), np.empty((level.size, 3))
            lib.pe_natural_logs(level.size, array(level), array(target, writable=True))
            table, names = self._solve(PROFILE, target)
            lib.pe_epsilon_answers(level.size, array(table), array(out, writable=True))
            answer.put(chosen, _answer(out, names))
        return answer

    def one_epsilon(self, delta: float) -> Triple | None:
        """ε between its bounds at δ."""
        if not 0.0 < delta < 1.0 or self.is_trivial:
            return None
        try:
            if delta >= self._at_zero():
                return 0.0, 0.0, 0.0
        except AccuracyError:  # arrays say why, or who else knows
            return None
        row = self._row(PROFILE, lib.pe_natural_log(delta), by_value=True)
        if row is None:
            return None
        out = ffi.new(TRIPLE)
        lib.pe_epsilon_answers(1, row, out)
        return out[0], out[1], out[2]


class _InterpolatedValues(Questions):
    """Values of smooth functions, interpolated where thousands are asked at once."""

    _keeper: RowQuestions  # with whose contours polynomials are kept

    @property
    def is_estimated(self) -> bool:
        """Whether no answer inside of its domain is proven, however it is asked."""
        return self._keeper.is_estimated

    def values(self, name: str, x: FloatArray) -> FloatArray:
        """As `answer` without bounds: thousands of values from polynomials between them."""
        if x.size < MANY or self._keeper.is_trivial or not self._keeper.is_ordinary:
            return super().values(name, x)
        from pyengine.engines.chebyshev_panels import ChebyshevPanels

        memo, key = self._keeper._memo(), (type(self), name)
        if key not in memo:
            try:
                memo[key] = ChebyshevPanels(name, self._keeper._at_zero)
            except AccuracyError:  # of δ(0), by which panels are placed
                return super().values(name, x)
        panels: ChebyshevPanels = memo[key]
        return panels.values(x, partial(super().values, name))


class OneOrderOfRows(_InterpolatedValues, OneOrder):
    """One order of a pair, with a short way for floats."""

    is_light = True

    def __init__(self, pair: RowQuestions) -> None:
        super().__init__(pair)
        self._keeper = pair

    def one(self, name: str, x: float) -> Judged:
        """Value of a public function between its bounds, with the bits that arrays get."""
        rows = self._keeper
        if name == "delta":
            found = None if x >= rows.ends[0] else rows.one_profile(x)
        elif name == "epsilon":
            found = rows.one_epsilon(x)
        else:
            errors = rows.one_trade_off(x)
            found = None if errors is None else _side(name, errors[0])
        return super().one(name, x) if found is None else (*found, False)


def _answer(triples: FloatArray, names: npt.NDArray[np.str_]) -> Answer:
    return Answer(triples[:, 0], triples[:, 1], triples[:, 2], names)


def _side(name: str, out: Any) -> Triple:
    """β or γ of both triples."""
    return (out[0], out[1], out[2]) if name == "trade_off" else (out[3], out[4], out[5])


class BothOrdersOfRows(_InterpolatedValues, OneLineHull):
    """Questions on both orders of the pair: adjacency ``add_remove``.

    That the profile of ``remove`` is the larger one is checked at each answer's own slope.
    """

    is_light = True
    _add: RowQuestions
    _remove: RowQuestions

    def __init__(self, add: RowQuestions, remove: RowQuestions) -> None:
        super().__init__(add, remove)
        self._keeper = add

    def trade_off(self, alpha: FloatArray) -> tuple[Answer, Answer]:
        """β and γ of the hull: of one curve where that is next to nothing, else by its shape."""
        add, remove = self._add, self._remove
        beta, gamma = Answer.rest(alpha), Answer.exact(alpha.copy())
        if add.is_trivial:
            return beta, gamma
        apart = np.zeros(alpha.size, dtype=np.bool_)
        for questions in (add, remove):
            told = questions.told_apart(alpha)
            if told is not None:
                found, new = told[0], told[1] & ~apart
                for answer, own in ((beta, found.beta), (gamma, found.gamma)):
                    answer.put(new, taken(own, new))
                    answer.certified[new] = False
                apart |= new
        if not apart.all():
            for answer, rest in zip((beta, gamma), super().trade_off(alpha[~apart]), strict=True):
                answer.put(~apart, rest)
        return beta, gamma

    def _touching(self) -> tuple[float, float]:
        return self._add.tangent()[2:4]

    def _on_line(self, alpha: FloatArray) -> tuple[Answer, Answer]:
        distance, error, _, _, name = self._add.tangent()
        errors, engine = np.full(alpha.size, error), np.full(alpha.size, name)
        return (
            Answer.around((1.0 - distance) - alpha, errors, engine),
            Answer.around(distance + alpha, errors, engine),
        )

    def _on_add(self, alpha: FloatArray) -> tuple[Answer, Answer]:
        return _in_order(self._add, self._remove, alpha)

    def _on_remove(self, alpha: FloatArray) -> tuple[Answer, Answer]:
        return _in_order(self._remove, self._add, alpha)

    def one(self, name: str, x: float) -> Judged:
        """Value of a public function between its bounds, with the bits that arrays get."""
        add, remove = self._add, self._remove
        if name == "delta":
            first, second = remove.one_profile(x), add.one_profile(x)
        elif name == "epsilon":
            first, second = remove.one_epsilon(x), add.one_epsilon(x)
        else:
            found = self._one_trade_off(name, x)
            return super().one(name, x) if found is None else (*found, False)
        if first is None or second is None:
            return super().one(name, x)
        return max(first[0], second[0]), max(first[1], second[1]), max(first[2], second[2]), False

    def _one_trade_off(self, name: str, alpha: float) -> Triple | None:
        if not 0.0 < alpha < 1.0 or self._add.is_trivial:
            return None
        if self._add.is_telling:  # arrays know more
            return None
        distance, error, a, b, _ = self._add.tangent()
        if a < alpha < b:
            value = (1.0 - distance) - alpha if name == "trade_off" else distance + alpha
            return value, value - error, value + error
        pair, other = (self._add, self._remove) if alpha <= a else (self._remove, self._add)
        found = pair.one_trade_off(alpha)
        if found is None:
            return None
        out, c = found
        first, second = (other, pair) if c >= 0.0 else (pair, other)
        own, rest = first.one_profile(abs(c)), second.one_profile(abs(c))
        if own is None or rest is None or rest[0] > own[0] * ORDER + ORDER_TINY:
            return None
        return _side(name, out)


def _in_order(pair: RowQuestions, other: RowQuestions, alpha: FloatArray) -> tuple[Answer, Answer]:
    """Answers of one curve, if the tangents there are below the other one."""
    curve = pair.trade_off(alpha)
    _check_order(pair, other, curve.c)
    return curve.beta, curve.gamma


def _check_order(pair: RowQuestions, other: RowQuestions, c: FloatArray) -> None:
    """Raise if the tangent of slope -e^c to one curve cuts the other one.

    The tangent's intercept is 1 - H_{e^c}(B‖A); for c < 0 the comparison is the same as the one of
    the exchanged laws at -c.
    """
    inner = c[np.isfinite(c)]
    if not inner.size:
        return
    size = np.abs(inner)
    own = np.empty(inner.size)
    rest = np.empty(inner.size)
    for mask, first, second in ((inner >= 0, other, pair), (inner < 0, pair, other)):
        if mask.any():
            own[mask] = first.profile(size[mask]).value
            rest[mask] = second.profile(size[mask]).value
    bad = rest > own * ORDER + ORDER_TINY
    if bad.any():
        raise AccuracyError(
            "the profiles of adjacency 'add' and 'remove' cross near epsilon "
            f"{float(size[bad][0]):.6g}; ask for each adjacency apart"
        )
