"""Convolution engine: the law of the composed loss by direct integrals of positive terms.

For few steps, or rare large ones, where a transform decays slowly or cancels
(docs/estimates).  The law is built by repeated squaring, at some 10 to 40 ms for each
convolution, so this engine answers where the faster ones cannot.
"""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np

from pyengine._core import ffi, lib
from pyengine._support.caches import kept
from pyengine._support.status import finished
from pyengine.engines.functionals import B_ABOVE, B_BELOW, FloatArray, call_kernel
from pyengine.engines.pairs import GaussianPair
from pyengine.errors import AccuracyError
from pyengine.numerics import functions as fn
from pyengine.numerics.exact_numbers import log_of_rest

__all__ = ["BoundedStep", "BoundedSteps", "Convolution", "bounded_steps"]

MAX_PANELS = 2000
MAX_CONVOLUTIONS = 240
# A law reaches down to a log density under A and under B; the shallow one is several times cheaper
# to build.  It serves thresholds where either density, or all values asked for, have logs above
# SERVES: what it leaves out is then below e^-80 of every functional (docs/estimates).
SHALLOW, DEEP = -160.0, -780.0
SERVES = -75.0


class BoundedStep(NamedTuple):
    """N(0, 1) against a mixture of it and of shifted ones, whose loss is bounded below.

    Parameters
    ----------
    shifts : tuple of float
        Of the others, positive.
    weights : tuple of Fraction
        Their positive weights, of sum below 1; N(0, 1) has the rest.
    """

    shifts: tuple[float, ...]
    weights: tuple[Fraction, ...]


BoundedSteps = tuple[tuple[BoundedStep, int], ...]


def bounded_steps(pair: GaussianPair) -> BoundedSteps:
    """Return the steps of an unreversed pair; an AccuracyError if the loss of one is unbounded."""
    if 1.0 in pair.probability:
        raise AccuracyError(
            "the convolution engine needs losses that are bounded below: "
            "no step may have sampling probability 1"
        )
    return tuple(
        (BoundedStep((1.0 / noise,), (Fraction(probability),)), steps)
        for noise, probability, steps in zip(pair.noise, pair.probability, pair.steps, strict=True)
    )


def _law(status: int, out: Any) -> Any:
    law = ffi.gc(out[0], lib.pe_law_free)
    if not finished(status, "a law of the convolution engine"):
        raise AccuracyError(
            "the convolution engine cannot resolve this law of the privacy loss",
        )
    return law


def _convolve(a: Any, b: Any) -> Any:
    out = ffi.new("pe_law **")
    return _law(lib.pe_law_convolve(a, b, MAX_PANELS, out), out)


def _power(step: Any, exponent: int) -> Any:
    """Law of ``exponent`` equal steps; products with one step are the cheap ones."""
    law = step
    for bit in bin(exponent)[3:]:
        law = _convolve(law, law)
        if bit == "1":
            law = _convolve(law, step)
    return law


def _bytes(found: Any) -> int:
    return len(found) if isinstance(found, str) else int(lib.pe_law_bytes(found))


@kept(64, _bytes)
def _law_or_refusal(steps: BoundedSteps, deepest: float) -> Any:
    """Law of the composed loss, or why there is none: to find that out may take seconds, too."""
    try:
        return _composed(steps, deepest)
    except AccuracyError as error:
        return str(error)


def _composed_law(steps: BoundedSteps, deepest: float) -> Any:
    """Law of the composed loss, kept down to a log density."""
    found = _law_or_refusal(steps, deepest)
    if isinstance(found, str):
        raise AccuracyError(found)
    return found


def _law_of_step(step: BoundedStep, deepest: float) -> Any:
    rest = 1 - sum(step.weights)
    ratios = [weight / rest for weight in step.weights]
    doubles = [float(ratio) for ratio in ratios]
    lost = [
        fn.log1p(float((ratio - Fraction(double)) / ratio))
        for ratio, double in zip(ratios, doubles, strict=True)
    ]
    out = ffi.new("pe_law **")
    floor = log_of_rest(1 - rest)
    status = lib.pe_law_step(
        len(doubles), step.shifts, doubles, lost, *floor, deepest, MAX_PANELS, out
    )
    return _law(status, out)


def _composed(steps: BoundedSteps, deepest: float) -> Any:
    work = sum(n.bit_length() + n.bit_count() - 1 for _, n in steps)
    if work > MAX_CONVOLUTIONS:
        raise AccuracyError(
            f"the convolution engine would need {work} convolutions, more than "
            f"{MAX_CONVOLUTIONS}: compose fewer kinds of steps"
        )
    result = None
    for step, number in steps:
        law = _power(_law_of_step(step, deepest), number)
        result = law if result is None else _convolve(result, law)
    return result


# Map: convolution of loss densities | test_dp_sgd | estimates
class Convolution:
    """Convolution engine on one pair; a law is built at the first question that needs it.

    Parameters
    ----------
    steps : tuple of (BoundedStep, int)
        The steps, without the record or what stands for that first, and their numbers.
    reversed : bool
        Whether A is the side of the mixtures.

    Laws are immutable once built, so questions need no lock; two threads that ask at the same time
    may both build one.
    """

    name = "convolution"

    def __init__(self, steps: BoundedSteps, *, reversed: bool) -> None:  # noqa: A002
        self._steps = steps
        self._reversed = reversed

    def _rows(
        self, deep: bool, functional: int, kernel: Callable[..., None], x: FloatArray
    ) -> FloatArray:
        law = _composed_law(self._steps, DEEP if deep else SHALLOW)
        return call_kernel(kernel, law, functional, x)

    def _ask(self, functional: int, kernel: Callable[..., None], x: FloatArray) -> FloatArray:
        """Rows from the shallow law, and from the deep one where that leaves out too much."""
        table = self._rows(False, functional, kernel, x)
        values = np.minimum(
            table[:, 2 + functional], np.fmin(table[:, 2 + B_ABOVE], table[:, 2 + B_BELOW])
        )
        c, density = table[:, 0], table[:, 1]
        tiny = ~((values > SERVES) | (np.maximum(density, density + c) > SERVES))
        if tiny.any():
            table[tiny] = self._rows(True, functional, kernel, x[tiny])
        return table

    def at(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows at thresholds of the loss."""

        def kernel(law: Any, _: int, n: int, x: Any, rows: Any) -> None:
            lib.pe_law_at(law, self._reversed, n, x, rows)

        return self._ask(functional, kernel, c)

    def solve(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Rows at the thresholds where the log of a functional has given values."""

        def kernel(law: Any, f: int, n: int, x: Any, rows: Any) -> None:
            lib.pe_law_solve(law, self._reversed, f, n, x, rows)

        return self._ask(functional, kernel, log_target)

    def one(self, functional: int, x: float, by_value: bool) -> Any:  # noqa: ARG002
        """Nothing: this engine answers arrays."""
        return None
