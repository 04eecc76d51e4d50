"""Closed forms: one sampled Gaussian step, and compositions of plain Gaussian steps.

The trade-off function of plain steps is Φ(Φ⁻¹(1 − α) − μ), and their profile
Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) (Dong, Roth and Su 2022, eq. 6 and Corollary 2.13); for a sampled
step, the second Gaussian is replaced by the mixture.  Bounds are proven, floating point included
(docs/theory/closed_form).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from pyengine._core import ffi, lib
from pyengine._support.checks import Number
from pyengine.engines.answers import (
    EPSILON,
    Answer,
    Found,
    Judged,
    LawQuestion,
    Questions,
    Triple,
)
from pyengine.engines.curves import NothingReleased
from pyengine.engines.functionals import LIMIT, LIMIT_TINY, FloatArray, array
from pyengine.engines.pairs import GaussianRows
from pyengine.engines.refusals import too_wide
from pyengine.errors import AccuracyError
from pyengine.numerics.exact_numbers import (
    CONTEXT,
    as_decimal,
    in_two_doubles,
    log_of_rest,
    ratio_in_two_doubles,
    root_in_two_doubles,
    two_doubles,
)

__all__ = ["ClosedForm", "closed_form_step", "gaussian_questions", "has_closed_form"]

ORDERS = {
    "add": lib.PE_ADD,
    "remove": lib.PE_REMOVE,
    "add_remove": lib.PE_ADD_REMOVE,
    "substitute": lib.PE_ADD,
}
REACH = 2.0**400  # largest μ and 1/μ
FARTHEST = 1e150  # largest distance: half its square is a double
TINY = 1e-30  # values below it have the limit `LIMIT_TINY`
CLOSE = 1e-11  # relative width of bounds of ε above which `small_epsilon` is tried
STEP, TRIPLE, CURVE_POINT = map(ffi.typeof, ("pe_step *", "double[3]", "double[7]"))
# for each public function: the kernel, its output for one number, and where the values begin there
KERNELS: dict[str, tuple[Any, Any, int]] = {
    "trade_off": (lib.pe_step_trade_off, CURVE_POINT, 0),
    "gamma_bound": (lib.pe_step_trade_off, CURVE_POINT, 3),
    "delta": (lib.pe_step_profile, TRIPLE, 0),
    "epsilon": (lib.pe_step_epsilon, TRIPLE, 0),
}
NOTHING = (0.0, 0.0)


def has_closed_form(rows: GaussianRows) -> bool:
    """Whether all Gaussian steps are plain, or there is only one."""
    if not rows:
        return False
    _, _, probability, number = rows[0]
    if len(rows) == 1:
        return bool(probability == 1 or number == 1)
    return all(probability == 1 for _, _, probability, _ in rows)


# Map: eq. 6 of Dong, Roth and Su (2022) | test_closed_form | theory/closed_form
def closed_form_step(rows: GaussianRows, adjacency: str) -> Any:
    """Return the parameters of steps with a closed form, as a struct of the C core."""
    above, below = _over_square(rows[0])
    for row in rows[1:]:
        other, its = _over_square(row)
        above, below = above * its + other * below, below * its
    mu = _root(above, below)
    half, p = ratio_in_two_doubles(above, 2 * below), rows[0][2]
    if p == 1:
        numbers, inexact = ((1.0, 0.0), NOTHING, NOTHING, NOTHING), False
    else:
        exact = Fraction(p)
        rest, log_p = in_two_doubles(1 - exact), two_doubles(CONTEXT.ln(as_decimal(exact)))
        numbers = (in_two_doubles(p), rest, log_p, log_of_rest(exact))
        inexact = Fraction(rest[0]) + Fraction(rest[1]) != 1 - exact
    return ffi.new(STEP, (mu, half, *numbers, p == 1, ORDERS[adjacency], inexact))


def gaussian_questions(distance: float) -> Questions:
    """Return questions on N(0, 1) against N(distance, 1), for any distance >= 0."""
    if distance == 0.0:
        return NothingReleased()
    distance = min(distance, FARTHEST)
    above, below = (x * x for x in distance.as_integer_ratio())
    half, one = ratio_in_two_doubles(above, 2 * below), (1.0, 0.0)
    step = (distance, 0.0), half, one, NOTHING, NOTHING, NOTHING, True, lib.PE_ADD, False
    return ClosedForm(ffi.new(STEP, step), math.inf)


def _over_square(row: tuple[Number, int, Number, int]) -> tuple[int, int]:
    """Numerator and denominator of number / noise**2."""
    noise, farther, _, number = row
    above, below = noise.as_integer_ratio()
    return number * (farther * below) ** 2, above**2


def _root(above: int, below: int) -> tuple[float, float]:
    """Root of a quotient in two doubles; AccuracyError beyond `REACH`."""
    # for quotients far beyond `REACH` the root is no double
    if abs(above.bit_length() - below.bit_length()) < 1000:
        mu = root_in_two_doubles(above, below)
        if 1.0 / REACH <= mu[0] <= REACH:
            return mu
    noise = CONTEXT.sqrt(as_decimal(Fraction(below, above)))
    raise AccuracyError(
        "the closed form needs a noise multiplier, divided by the root of the number of steps, "
        f"between {1.0 / REACH:.1e} and {REACH:.1e}, got {float(noise):.6g}"
    )


class ClosedForm(Questions):
    """Questions in closed form on one order of the pair, or on both at once.

    Bounds may be as wide as ``tolerance``, or as the package's limits if it is None.  `one` leaves
    wider ones to `ask`, which raises the refusal.
    """

    is_light = True

    def __init__(self, step: Any, tolerance: float | None) -> None:
        self._step = step
        self._tolerance = tolerance

    def ask(self, question: LawQuestion[Found], x: FloatArray) -> Found:
        """Answers from rows of the C core: three columns per answer, and one of slopes."""
        x = np.ascontiguousarray(x, dtype=np.float64)
        parts = len(question.public)
        found = np.empty((x.size, 7 if parts == 2 else 3))
        KERNELS[question.public[0]][0](self._step, x.size, array(x), array(found, writable=True))
        if question is EPSILON:
            with np.errstate(invalid="ignore"):  # epsilon may be infinite
                wide = found[:, 2] - found[:, 1] > CLOSE * found[:, 0]
            for i in np.flatnonzero(wide).tolist():
                found[i] = self._closer(float(x[i]), *found[i].tolist())
        judged = question is not EPSILON
        answers = [self._answer(found[:, 3 * i : 3 * i + 3], judged) for i in range(parts)]
        return question.made(*answers, *found[:, 3 * parts :].T)

    def _closer(self, delta: float, value: float, lower: float, upper: float) -> Triple:
        """Closer bounds of a small ε, by `small_epsilon`."""
        from pyengine.engines.small_epsilon import small_epsilon

        step = self._step
        found = None
        if step.plain or step.order != lib.PE_ADD:
            mu, p = ((x.h, x.l) for x in (step.mu, step.p))
            found = small_epsilon(mu, p, delta, value)
        if found is None or not lower <= found[2] or not found[1] <= upper:
            return value, lower, upper
        lower, upper = max(lower, found[1]), min(upper, found[2])
        return min(max(found[0], lower), upper), lower, upper

    def one(self, name: str, x: float) -> Judged:
        """Value of a public function with its proven bounds."""
        kernel, kind, start = KERNELS[name]
        out = ffi.new(kind)
        kernel(self._step, 1, (x,), out)
        value, lower, upper = out[start], out[start + 1], out[start + 2]
        if name == "epsilon":
            if upper - lower > CLOSE * value:
                value, lower, upper = self._closer(x, value, lower, upper)
            return value, lower, upper, True
        if upper - lower <= self._width(value):
            return value, lower, upper, True
        return super().one(name, x)

    def _width(self, value: float) -> float:
        """Largest width of the bounds of a value that is not refused."""
        if self._tolerance is not None:
            return max(self._tolerance * value, 4.0 * math.ulp(0.0))
        limit = LIMIT_TINY if value < TINY else LIMIT
        return 2.0 * max(limit * value, 2.0 * math.ulp(0.0))

    def _answer(self, triples: FloatArray, judged: bool) -> Answer:
        value, lower, upper = triples.T.copy()
        if judged:
            least = 2.0 * min(LIMIT, LIMIT_TINY) if self._tolerance is None else self._tolerance
            with np.errstate(invalid="ignore"):  # an infinite tolerance of 0 is not exceeded
                doubtful = upper - lower > least * value
            for v, low, high in triples[doubtful].tolist():
                if high - low > self._width(v):
                    width = (high - low) / v if v > 0.0 else math.inf
                    raise too_wide("the closed form", low, high, width)
        names = np.where(lower == upper, "exact", "closed_form").astype("<U12")
        return Answer(value, lower, upper, names, True)
