"""Rows of laws of the loss by direct integrals of positive terms, as truths.

For few steps, or rare large ones. A law is built by repeated squaring, at some 10 to 40 ms for each
convolution, by independent code (`tools/convolution`). Errors of rows are estimates; actual errors
against `pyengine.reference` were at most half as large (``pytest tests/test_convolution.py``).
"""

from __future__ import annotations

import ctypes
import tempfile
import weakref
from collections.abc import Callable
from fractions import Fraction
from functools import cache, lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from compiling import ROOT, compiled, doubles

from pyengine.engines.functionals import B_ABOVE, B_BELOW, WIDTH, FloatArray
from pyengine.engines.pairs import GaussianPair
from pyengine.errors import AccuracyError
from pyengine.numerics import functions as fn
from pyengine.numerics.exact_numbers import log_of_rest

__all__ = ["BoundedStep", "BoundedSteps", "Convolution", "bounded_steps"]

MAX_PANELS = 2000
MAX_CONVOLUTIONS = 240
# A law reaches down to a log density under A and under B; the shallow one is several times cheaper
# to build.  It serves thresholds where either density, or all values asked for, have logs above
# SERVES: it then omits less than e^-80 of every functional.
SHALLOW, DEEP = -160.0, -780.0
SERVES = -75.0
SOURCES = (
    *(ROOT / "tools" / "convolution" / f"{name}.c" for name in ("law", "rows", "step", "sums")),
    *(ROOT / "csrc" / f"{name}.c" for name in ("normal", "functionals")),
)


class BoundedStep(NamedTuple):
    """N(0, 1) against a mixture of it and of ones moved up, whose loss is bounded below.

    The weights of the shifted ones have a sum below 1; N(0, 1) has the rest.
    """

    shifts: tuple[float, ...]
    weights: tuple[Fraction, ...]


BoundedSteps = tuple[tuple[BoundedStep, int], ...]


def bounded_steps(pair: GaussianPair) -> BoundedSteps:
    """Return the steps of an unreversed pair, none of which may have sampling probability 1."""
    return tuple(
        (BoundedStep((1.0 / noise,), (Fraction(probability),)), steps)
        for noise, probability, steps in zip(pair.noise, pair.probability, pair.steps, strict=True)
    )


@cache
def _library() -> ctypes.CDLL:
    place = tempfile.mkdtemp(prefix="convolution")
    return compiled(Path(place) / "convolution.so", SOURCES)


class _Law:
    """A law of the library, which is freed with this object."""

    def __init__(self, make: Callable[[Any], int]) -> None:
        self.handle = ctypes.c_void_p()
        if make(ctypes.byref(self.handle)):
            raise AccuracyError("the convolution cannot resolve this law of the privacy loss")
        weakref.finalize(self, _library().pe_law_free, self.handle)


def _convolve(a: _Law, b: _Law) -> _Law:
    panels = ctypes.c_size_t(MAX_PANELS)
    return _Law(lambda out: _library().pe_law_convolve(a.handle, b.handle, panels, out))


def _power(step: _Law, exponent: int) -> _Law:
    """Law of ``exponent`` equal steps; products with a single step are the cheap ones."""
    law = step
    for bit in bin(exponent)[3:]:
        law = _convolve(law, law)
        if bit == "1":
            law = _convolve(law, step)
    return law


def _law_of_step(step: BoundedStep, deepest: float) -> _Law:
    rest = 1 - sum(step.weights)
    ratios = [weight / rest for weight in step.weights]
    near = [float(ratio) for ratio in ratios]
    lost = [
        fn.log1p(float((ratio - Fraction(double)) / ratio))
        for ratio, double in zip(ratios, near, strict=True)
    ]
    numbers = *log_of_rest(1 - rest), deepest
    size = ctypes.c_size_t
    return _Law(
        lambda out: _library().pe_law_step(
            size(len(near)),
            *(doubles(column) for column in (step.shifts, near, lost)),
            *(ctypes.c_double(number) for number in numbers),
            size(MAX_PANELS),
            out,
        )
    )


@lru_cache(64)
def composed_law(steps: BoundedSteps, deepest: float) -> _Law:
    """Law of the composed loss, kept down to a log density.

    `AccuracyError` for more than 240 convolutions, or too many panels.
    """
    if sum(n.bit_length() + n.bit_count() - 1 for _, n in steps) > MAX_CONVOLUTIONS:
        raise AccuracyError(f"these steps take more than {MAX_CONVOLUTIONS} convolutions")
    result: _Law | None = None
    for step, number in steps:
        law = _power(_law_of_step(step, deepest), number)
        result = law if result is None else _convolve(result, law)
    assert result is not None
    return result


def rows_at(law: _Law, backward: bool, c: FloatArray) -> FloatArray:
    """Rows of all functionals at thresholds, as the core has them."""
    table = np.full((c.size, WIDTH), np.nan)
    out = table.ctypes.data_as(ctypes.POINTER(ctypes.c_double))
    size = ctypes.c_size_t(c.size)
    _library().pe_law_at(law.handle, ctypes.c_int(backward), size, doubles(c), out)
    return table


class Convolution:
    """Rows of one pair; a law is built at the first question that needs it.

    Steps are given with the law without the record first, or its counterpart; ``reversed`` makes A
    the mixtures.
    """

    def __init__(self, steps: BoundedSteps, *, reversed: bool) -> None:  # noqa: A002
        self._steps, self._reversed = steps, reversed

    def at(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows from the shallow law, or from the deep one where that omits too much."""
        table = rows_at(composed_law(self._steps, SHALLOW), self._reversed, c)
        values = np.minimum(
            table[:, 2 + functional], np.fmin(table[:, 2 + B_ABOVE], table[:, 2 + B_BELOW])
        )
        threshold, density = table[:, 0], table[:, 1]
        tiny = ~((values > SERVES) | (np.maximum(density, density + threshold) > SERVES))
        if tiny.any():
            table[tiny] = rows_at(composed_law(self._steps, DEEP), self._reversed, c[tiny])
        return table
