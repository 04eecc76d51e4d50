"""Convolution engine: the law of the composed loss by direct integrals of positive terms.

For few steps, or rare large ones, where a transform decays slowly or cancels
(docs/theory/convolution).  The law is built by repeated squaring, at some 10 to 40 ms for each
convolution, so this engine answers where the faster ones cannot.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np

from pyengine._core import ffi, lib
from pyengine.caches import kept
from pyengine.engines.functionals import B_ABOVE, B_BELOW, FloatArray, call_kernel
from pyengine.errors import AccuracyError
from pyengine.numerics.exact_numbers import log_of_rest
from pyengine.pairs import GaussianPair
from pyengine.status import finished

__all__ = ["Convolution"]

MAX_PANELS = 2000
MAX_CONVOLUTIONS = 240
# A law reaches down to a log density; the shallow one is several times cheaper to build and
# serves log values above SERVES, so that what it leaves out is below e^-80 of them.
SHALLOW, DEEP = -160.0, -780.0
SERVES = -75.0


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
def _law_or_refusal(pair: GaussianPair, deepest: float) -> Any:
    """Law of the composed loss, or why there is none: to find that out may take seconds, too."""
    try:
        return _composed(pair, deepest)
    except AccuracyError as error:
        return str(error)


def composed_law(pair: GaussianPair, deepest: float) -> Any:
    """Law of the composed loss of an unreversed pair, kept down to a log density."""
    found = _law_or_refusal(pair, deepest)
    if isinstance(found, str):
        raise AccuracyError(found)
    return found


def _composed(pair: GaussianPair, deepest: float) -> Any:
    if 1.0 in pair.probability:
        raise AccuracyError(
            "the convolution engine needs losses that are bounded below: "
            "no step may have sampling probability 1"
        )
    work = sum(n.bit_length() + n.bit_count() - 1 for n in pair.steps)
    if work > MAX_CONVOLUTIONS:
        raise AccuracyError(
            f"the convolution engine would need {work} convolutions, more than "
            f"{MAX_CONVOLUTIONS}: compose fewer kinds of steps"
        )
    result = None
    for noise, probability, steps in zip(pair.noise, pair.probability, pair.steps, strict=True):
        out = ffi.new("pe_law **")
        floor = log_of_rest(probability)
        step = _law(lib.pe_law_step(noise, probability, *floor, deepest, MAX_PANELS, out), out)
        law = _power(step, steps)
        result = law if result is None else _convolve(result, law)
    return result


# Map: convolution of loss densities | test_dp_sgd | theory/convolution
class Convolution:
    """Convolution engine on one pair; a law is built at the first question that needs it.

    Laws are immutable once built, so questions need no lock; two threads that ask at the same time
    may both build one.
    """

    name = "convolution"

    def __init__(self, pair: GaussianPair) -> None:
        self._law_of = replace(pair, reversed=False)
        self._reversed = pair.reversed

    def _rows(
        self, deep: bool, functional: int, kernel: Callable[..., None], x: FloatArray
    ) -> FloatArray:
        law = composed_law(self._law_of, DEEP if deep else SHALLOW)
        return call_kernel(kernel, law, functional, x)

    def _ask(self, functional: int, kernel: Callable[..., None], x: FloatArray) -> FloatArray:
        """Rows from the shallow law, and from the deep one where values are tiny."""
        table = self._rows(False, functional, kernel, x)
        values = np.minimum(
            table[:, 2 + functional], np.fmin(table[:, 2 + B_ABOVE], table[:, 2 + B_BELOW])
        )
        tiny = ~(values > SERVES)
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
