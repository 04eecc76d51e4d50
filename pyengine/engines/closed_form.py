"""Closed forms: one subsampled step, and the Gaussian under any composition.

The Gaussian's trade-off function is Φ(Φ⁻¹(1 − α) − μ) and its profile
Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) (Dong, Roth and Su 2022, eq. 6 and Corollary 2.13); one sampled
step is the same with the mixture in the place of the second Gaussian.  Bounds are proven, floating
point included (docs/theory/closed_form).
"""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np

from pyengine._core import ffi, lib
from pyengine.answers import Answer, ErrorCurve, Triple
from pyengine.caches import kept
from pyengine.curves import OneOrder
from pyengine.engines.functionals import LIMIT, LIMIT_TINY, FloatArray, array
from pyengine.engines.within import too_wide
from pyengine.errors import AccuracyError
from pyengine.mechanisms import Mechanism
from pyengine.numerics.exact_numbers import CONTEXT, as_decimal, log_of_rest, two_doubles
from pyengine.pairs import exact_steps, gaussian_rows

__all__ = ["ClosedForm", "ClosedFormPair", "closed_form_step"]

ORDERS = {
    "add": lib.PE_ADD,
    "remove": lib.PE_REMOVE,
    "add_remove": lib.PE_ADD_REMOVE,
    "substitute": lib.PE_ADD,
}
REACH = 2.0**400  # of mu and of its inverse
TINY = 1e-30
TRIPLE, CURVE_POINT = ffi.typeof("double[3]"), ffi.typeof("double[7]")


# Map: eq. 6 of Dong, Roth and Su (2022) | test_closed_form | theory/closed_form
@kept(1024, lambda _: 1024)
def closed_form_step(mechanism: Mechanism, adjacency: str) -> Any:
    """Return the parameters of the closed form as the C core takes them; None where there is none.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.
    adjacency : {"add", "remove", "add_remove", "substitute"}
        Neighbouring relation.
    """
    rows = gaussian_rows(mechanism, adjacency)
    if not rows:
        return None
    plain = all(probability == 1 for _, _, probability, _ in rows)
    if not plain and sum(number for *_, number in rows) > 1:
        return None
    steps = exact_steps(rows)
    square = _over_square(*steps[0][::2])
    for noise, _, number in steps[1:]:
        square += _over_square(noise, number)
    mu = CONTEXT.sqrt(as_decimal(square))
    if not 1.0 / REACH <= float(mu) <= REACH:
        raise AccuracyError(
            "the closed form needs a noise multiplier, divided by the root of the number of steps, "
            f"between {1.0 / REACH:.1e} and {REACH:.1e}, got {float(1 / mu):.6g}"
        )
    p = steps[0][1]
    rest = (0.0, 0.0) if plain else _pair(1 - p)
    return ffi.new(
        "pe_step *",
        {
            "mu": two_doubles(mu),
            "half_square": _pair(square / 2),
            "p": _pair(p),
            "rest": rest,
            "log_p": (0.0, 0.0) if plain else two_doubles(CONTEXT.ln(as_decimal(p))),
            "floor": (0.0, 0.0) if plain else log_of_rest(p),
            "plain": plain,
            "order": ORDERS[adjacency],
            "inexact": not plain and Fraction(rest[0]) + Fraction(rest[1]) != 1 - p,
        },
    )


def _over_square(noise: Fraction, number: int) -> Fraction:
    """Return number / noise**2."""
    return Fraction(number * noise.denominator**2, noise.numerator**2)


def _pair(x: Fraction) -> tuple[float, float]:
    """Return an exact number as a sum of two doubles."""
    high = float(x)
    return high, float(x - Fraction(high))


class ClosedFormPair:
    """Questions in closed form on one order of the pair, or on both at once.

    Parameters
    ----------
    step : pe_step
        Parameters in the C core.
    tolerance : float or None
        Largest relative width of the bounds; None for the package's own limit.
    """

    def __init__(self, step: Any, tolerance: float | None) -> None:
        self._step = step
        self._tolerance = tolerance

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """T(A, B) at α in [0, 1]."""
        out = self._call(lib.pe_step_trade_off, alpha, 7)
        return ErrorCurve(self._answer(out[:, :3]), self._answer(out[:, 3:6]), out[:, 6])

    def profile(self, epsilon: FloatArray) -> Answer:
        """H_{e^ε}(A‖B) at ε >= 0."""
        return self._answer(self._call(lib.pe_step_profile, epsilon, 3))

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with H_{e^ε}(A‖B) <= δ."""
        return self._answer(self._call(lib.pe_step_epsilon, delta, 3), judged=False)

    def one(self, name: str, x: float) -> Triple | None:
        """Value of a public function between its bounds; None where they are too wide."""
        start = 0
        if name in ("trade_off", "gamma_bound"):
            out = ffi.new(CURVE_POINT)
            lib.pe_step_trade_off(self._step, 1, (x,), out)
            start = 0 if name == "trade_off" else 3
        elif name == "delta":
            out = ffi.new(TRIPLE)
            lib.pe_step_profile(self._step, 1, (x,), out)
        else:
            out = ffi.new(TRIPLE)
            lib.pe_step_epsilon(self._step, 1, (x,), out)
            return out[0], out[1], out[2]
        value, lower, upper = out[start], out[start + 1], out[start + 2]
        return (value, lower, upper) if upper - lower <= self._width(value) else None

    def _call(self, kernel: Any, x: FloatArray, width: int) -> FloatArray:
        x = np.ascontiguousarray(x, dtype=np.float64)
        out = np.empty((x.size, width))
        kernel(self._step, x.size, array(x), array(out, writable=True))
        return out

    def _width(self, value: float) -> float:
        """Largest width of the bounds of a value."""
        if self._tolerance is not None:
            return max(self._tolerance * value, 4.0 * math.ulp(0.0))
        limit = LIMIT_TINY if value < TINY else LIMIT
        return 2.0 * max(limit * value, 2.0 * math.ulp(0.0))

    def _answer(self, triples: FloatArray, *, judged: bool = True) -> Answer:
        value, lower, upper = triples.T.copy()
        if judged:
            for v, low, high in triples.tolist():
                if high - low > self._width(v):
                    raise too_wide("the closed form", v, low, high)
        names = np.where(lower == upper, "exact", "closed_form").astype("<U12")
        return Answer(value, lower, upper, names, True)


class ClosedForm(OneOrder):
    """Questions in closed form, with a short way for floats."""

    is_light = True

    def __init__(self, pair: ClosedFormPair) -> None:
        super().__init__(pair)
        self.pair = pair

    def one(self, name: str, x: float) -> Triple:
        """Value of a public function between its bounds; arrays say why they refuse one."""
        return self.pair.one(name, x) or super().one(name, x)
