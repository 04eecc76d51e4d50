"""Steps whose sides are mixtures of normals: spectral engine, else convolution, else proofs.

Gaussian mixtures, sampled steps under substitution, truncated Poisson samples, and compositions of
them with Gaussian steps.  Errors are estimates, except of what certified lines or the lattice
answer.
"""

from __future__ import annotations

import contextlib
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._core import lib
from pyengine.answers import Answer, ErrorCurve, PairQuestions, Triple
from pyengine.caches import Cache, cached_property
from pyengine.engines.bounded_mixtures import bounded_mixtures
from pyengine.engines.certified import LineSide, completed_thresholds
from pyengine.engines.convolution import Convolution
from pyengine.engines.functionals import FloatArray, Limits, RowEngine, Rows, row_errors
from pyengine.engines.hull import BothOrders
from pyengine.engines.row_engines import RowEngines
from pyengine.engines.row_questions import BothOrdersOfRows, RowQuestions
from pyengine.engines.spectral import Spectral
from pyengine.errors import AccuracyError
from pyengine.laws.base import StepLaw
from pyengine.laws.normals import STANDARD, Alternatives, ExactAlternatives, LossNodes
from pyengine.numerics.rounding import UNIT
from pyengine.pairs import GaussianPair

__all__ = ["SmoothBothOrders", "SmoothPair", "SmoothPairQuestions", "SmoothSide", "smooth_pair"]

UNANSWERED = ""  # the engine of a row that is not accurate enough

SmoothPair = tuple[tuple[StepLaw, int], ...]


def smooth_pair(laws: list[tuple[StepLaw, int]]) -> SmoothPair | None:
    """Return the laws of several steps if the spectral engine takes each of them."""
    if sum(number for _, number in laws) < 2:
        return None  # one step is an integral up to a threshold, which needs no transform
    return tuple(laws) if all(_taken(*step) is not None for step in laws) else None


def _taken(law: StepLaw, number: int) -> Alternatives | LossNodes | None:
    """What the spectral engine takes of a law and a number of its steps."""
    pairs = law.mixtures()
    if pairs is not None:
        return pairs if len(pairs) <= lib.PE_ALTERNATIVES else None
    return law.nodes(number)


def _sampled_gaussian(found: Alternatives | LossNodes) -> tuple[float, float, bool] | None:
    """Noise and rate of a sampled or plain Gaussian step, and whether it is reversed."""
    if isinstance(found, LossNodes) or len(found) > 1:
        return None
    pair = found[0]
    for a, b, is_reversed in ((pair.a, pair.b, False), (pair.b, pair.a, True)):
        if a != STANDARD or b.shifts[-1] <= 0.0:
            continue
        if len(b.shifts) == 1 or (len(b.shifts) == 2 and b.shifts[0] == 0.0):
            return 1.0 / b.shifts[-1], b.weights[-1], is_reversed
    return None


class _Kept(RowEngines):
    """The engines of one pair."""

    def __init__(self, pair: SmoothPair) -> None:
        rows: list[tuple[float, float, bool, int]] = []
        others: list[tuple[Alternatives | LossNodes, int]] = []
        for law, number in pair:
            found = _taken(law, number)
            assert found is not None
            gaussian = _sampled_gaussian(found)
            if gaussian is None or (rows and gaussian[2] != rows[0][2] and gaussian[1] < 1.0):
                others.append((found, number))
            else:
                rows.append((*gaussian, number))
        noise, probability, orders, steps = zip(*rows, strict=True) if rows else ((), (), (), ())
        plain = GaussianPair(noise, probability, steps, reversed=any(orders))
        super().__init__()
        self._steps, self._bounded = (plain, tuple(others)), bounded_mixtures(pair)
        self.convolves = self._bounded is not None
        self.prover: Spectral | None = None  # with exact numbers, made when a proof is asked for

    def _made(self, name: str) -> RowEngine:
        if name == "spectral":
            return Spectral(*self._steps)
        assert self._bounded is not None
        laws, is_reversed = self._bounded
        return Convolution(laws, reversed=is_reversed)

    def bytes(self) -> int:
        """Memory that this and its contours take."""
        proofs = self.prover.bytes() if self.prover is not None else 0
        return super().bytes() + proofs


_engines: Cache[_Kept] = Cache(64, lambda kept: kept.bytes(), grows=True)


def _kept(pair: SmoothPair) -> _Kept:
    return _engines.get_or_make(pair, lambda: _Kept(pair))


def _proving(pair: SmoothPair) -> Spectral | None:
    """The engine of a pair whose numbers are exact; None where those of a step are not known."""
    plain: list[tuple[float, int]] = []
    others: list[tuple[Alternatives | LossNodes, int]] = []
    exact: list[ExactAlternatives | None] = []
    for law, number in pair:
        terms, found = law.exact_mixtures(), law.mixtures()
        if terms is None or found is None:
            return None
        gaussian = _sampled_gaussian(found)
        if gaussian is not None and gaussian[1] == 1.0 and _is_plain(terms, gaussian[0]):
            plain.append((gaussian[0], number))
        else:
            others.append((found, number))
            exact.append(terms)
    noise, steps = zip(*plain, strict=True) if plain else ((), ())
    gaussians = GaussianPair(noise, (1.0,) * len(noise), steps, reversed=False)
    return Spectral(gaussians, tuple(others), tuple(exact))


def _is_plain(terms: ExactAlternatives, noise: float) -> bool:
    """Whether a step is the Gaussian mechanism of just that noise."""
    shifts = [abs(shift) for shift in terms[0].terms if shift != 0]
    return len(terms) == 1 and len(shifts) == 1 and shifts[0] * Fraction(noise) == 1


class SmoothSide(LineSide):
    """Certified rows of one pair.

    Parameters
    ----------
    pair : SmoothPair
        Laws of the steps, whose numbers are known exactly.
    """

    def __init__(self, pair: SmoothPair) -> None:
        self._pair = pair

    @classmethod
    def of(cls, pair: SmoothPair) -> SmoothSide | None:
        """The side of a pair; None where a step's numbers are not known well enough."""
        known = all(law.exact_mixtures() is not None for law, _ in pair)
        return cls(pair) if known else None

    def threshold(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Thresholds of the fast engine; where it has none, of the lines that prove."""
        table = _kept(self._pair).spectral().solve(functional, log_target)
        return completed_thresholds(self.prover(), functional, log_target, table)

    def estimates(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows of the fast engine."""
        return _kept(self._pair).spectral().at(functional, c)

    def prover(self) -> Spectral:
        """The spectral engine with exact numbers."""
        kept = _kept(self._pair)
        if kept.prover is None:
            kept.prover = _proving(self._pair)
        assert kept.prover is not None
        return kept.prover


class SmoothPairQuestions(RowQuestions):
    """Questions on one ordered pair.

    Parameters
    ----------
    pair : SmoothPair
        Laws of the steps.
    method : str
        Name of an engine, or "auto".
    tolerance : float or None
        Relative width of the bounds; None for the engine's own limits.
    otherwise : callable or None
        Makes the questions that answer what this engine does not; None to refuse that.
    """

    is_trivial = False

    def __init__(
        self,
        pair: SmoothPair,
        method: str,
        tolerance: float | None,
        otherwise: Callable[[], PairQuestions] | None,
    ) -> None:
        self._pair = pair
        self._method = method
        self.limits = Limits.of(tolerance)
        self._otherwise = otherwise

    def _kept(self) -> _Kept:
        return _kept(self._pair)

    def _judged(self, functional: int, found: Rows) -> Rows:
        errors, good = row_errors(found.table, functional, self.limits)
        if not good.all() and self._otherwise is None:
            worst = float(errors[~good].max())
            raise AccuracyError(
                f"no answer within the error limit of {self.limits.ordinary:.3g}: estimated "
                f"relative error {worst:.1e} with method={self._method!r}; method='auto' also asks "
                "the lattice, which may bracket what this engine does not resolve"
            )
        return Rows(found.table, np.where(good, found.engine, UNANSWERED).astype("<U12"))

    def _at(self, functional: int, c: FloatArray) -> Rows:
        return self._judged(functional, self._kept().at(functional, c, self._method, self.limits))

    def _solve(self, functional: int, log_target: FloatArray) -> Rows:
        found = self._kept().solve(functional, log_target, self._method, self.limits)
        return self._judged(functional, found)

    def _row(self, functional: int, x: float, *, by_value: bool) -> Any:
        return self._kept().one(functional, x, self._method, self.limits, by_value=by_value)

    def _memo(self) -> dict[Any, Any]:
        memo: dict[Any, Any] = self._kept().memo.setdefault((self._method, self.limits), {})
        return memo

    @cached_property
    def ends(self) -> Triple:
        """The largest ε of all, between its bounds, which count the rounding of weights."""
        parts = [-number * law.limits()[0] for law, number in self._pair]
        if math.inf in parts:
            return math.inf, math.inf, math.inf
        value = math.fsum(parts)
        off = math.fsum(number * law.support_error() for law, number in self._pair)
        off = (off + 4.0 * UNIT * abs(value)) * (1.0 + 2.0**-40)
        return value, max(value - off, 0.0), value + off

    def _completed(
        self, answer: Answer, ask: Callable[[PairQuestions], Answer], weak: npt.NDArray[np.bool_]
    ) -> Answer:
        if weak.any():
            assert self._otherwise is not None
            answer.put(weak, ask(self._otherwise()))
        return answer

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """T(A, B) at α in [0, 1]."""
        curve = super().trade_off(alpha)
        weak = curve.beta.engine == UNANSWERED
        if weak.any():
            assert self._otherwise is not None
            other = self._otherwise().trade_off(alpha[weak])
            curve.beta.put(weak, other.beta)
            curve.gamma.put(weak, other.gamma)
            curve.c[weak] = other.c
        return curve

    def profile(self, epsilon: FloatArray) -> Answer:
        """H_{e^ε}(A‖B) at ε >= 0."""
        answer = super().profile(epsilon)
        weak = answer.engine == UNANSWERED
        return self._completed(answer, lambda pair: pair.profile(epsilon[weak]), weak)

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with H_{e^ε}(A‖B) <= δ."""
        answer = super().epsilon(delta)
        weak = answer.engine == UNANSWERED
        return self._completed(answer, lambda pair: pair.epsilon(delta[weak]), weak)

    def tangent(self) -> tuple[float, float, float, float, str]:
        """Total variation with its error, the point (a, b) of slope -1, the engine."""
        found = super().tangent()
        if found[-1] == UNANSWERED:
            other = self._otherwise() if self._otherwise is not None else None
            if isinstance(other, RowQuestions):
                return other.tangent()
            raise AccuracyError("the total variation is not known well enough")
        return found


class SmoothBothOrders(BothOrdersOfRows):
    """Questions on both orders of the pair: adjacency ``add_remove``."""

    def trade_off(self, alpha: FloatArray) -> tuple[Answer, Answer]:
        """The hull by its known shape, or where the profiles cross by a search for it."""
        with contextlib.suppress(AccuracyError):
            return super().trade_off(alpha)
        return BothOrders.trade_off(self, alpha)
