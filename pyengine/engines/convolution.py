"""Convolution engine: the law of the composed loss by direct integrals of positive terms.

For few steps, or rare large ones, where a transform decays slowly or cancels
(docs/theory/convolution).  The law is built by repeated squaring; each convolution takes about
0.1 s, so the engine answers where no faster one does.
"""

from __future__ import annotations

import threading
from decimal import Context, Decimal
from typing import Any

from pyengine._core import ffi, lib
from pyengine.engines.rows import FloatArray, call_kernel
from pyengine.errors import AccuracyError
from pyengine.pairs import GaussianPair

__all__ = ["Convolution"]

MAX_PANELS = 4000
MAX_CONVOLUTIONS = 160


def log_of_rest(probability: float) -> tuple[float, float]:
    """log(1 - probability) as a sum of two doubles."""
    context = Context(prec=50)
    exact = context.ln(context.subtract(Decimal(1), Decimal(probability)))
    high = float(exact)
    return high, float(context.subtract(exact, Decimal(high)))


def _law(status: int, out: Any) -> Any:
    law = ffi.gc(out[0], lib.pe_law_free)
    if status:
        raise AccuracyError(
            "the convolution engine cannot resolve this law of the privacy loss",
        )
    return law


def _convolve(a: Any, b: Any) -> Any:
    out = ffi.new("pe_law **")
    return _law(lib.pe_law_convolve(a, b, MAX_PANELS, out), out)


def _power(law: Any, exponent: int) -> Any:
    result = None
    while True:
        if exponent & 1:
            result = law if result is None else _convolve(result, law)
        exponent >>= 1
        if not exponent:
            return result
        law = _convolve(law, law)


class Convolution:
    """Convolution engine on one pair; the law is built at the first question."""

    name = "convolution"

    def __init__(self, pair: GaussianPair) -> None:
        self._pair = pair
        self._law: Any = None
        self._lock = threading.Lock()

    def _built(self) -> Any:
        with self._lock:
            if self._law is None:
                self._law = self._build()
            return self._law

    def _build(self) -> Any:
        pair = self._pair
        if 1.0 in pair.probability:
            raise AccuracyError(
                "the convolution engine needs losses that are bounded below: "
                "no step may have sampling probability 1"
            )
        work = sum(2 * n.bit_length() for n in pair.steps)
        if work > MAX_CONVOLUTIONS:
            raise AccuracyError(
                f"the convolution engine would need about {work} convolutions, "
                f"more than {MAX_CONVOLUTIONS}: compose fewer kinds of steps"
            )
        result = None
        for noise, probability, steps in zip(pair.noise, pair.probability, pair.steps, strict=True):
            out = ffi.new("pe_law **")
            floor = log_of_rest(probability)
            step = _law(lib.pe_law_step(noise, probability, *floor, MAX_PANELS, out), out)
            law = _power(step, steps)
            result = law if result is None else _convolve(result, law)
        return result

    def at(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows at thresholds of the loss."""
        law = self._built()
        return call_kernel(
            lambda _, n, x, out: lib.pe_law_at(law, self._pair.reversed, n, x, out), None, None, c
        )

    def solve(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Rows at the thresholds where the log of a functional has given values."""
        law = self._built()
        return call_kernel(
            lambda _, f, n, x, out: lib.pe_law_solve(law, self._pair.reversed, f, n, x, out),
            None,
            functional,
            log_target,
        )
