"""Chernoff bounds for laws that are nearly disjoint; no composition is needed.

Let M(λ) = ∫ (dA)^{1-λ} (dB)^λ, 0 < λ < 1; M of a composition is the product over its steps.  As
min(x, y) <= x^{1-λ} y^λ, the overlap 1 - H_{e^ε}(A‖B) = ∫ min(dA, e^ε dB) is at most e^{λε} M(λ).
The test {S > c} with e^{λc} = M(λ)/α has level at most α and type-II error B(S <= c) at most
M(λ)^{1/λ} α^{-(1-λ)/λ}.  By Hölder's inequality M of a step is at most the sum of a^{1-λ} b^λ over
the cells of any partition (docs/theory/lattice, Lemma 6).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import kept
from pyengine.engines.lattice.coarse_cumulants import Part, survey_cells
from pyengine.laws.base import Cells, StepLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["ChernoffBounds", "chernoff_bounds"]

FloatArray = npt.NDArray[np.float64]

# orders λ; a bound holds for each, and the smallest one is used
BETWEEN = 1.0 / (1.0 + fn.exp(-np.linspace(-9.0, 9.0, 73)))
LEAST = -1e280  # used for log 0


class ChernoffBounds:
    """Upper bounds of the overlap and of the trade-off function of a composition."""

    def __init__(self, parts: tuple[Part, ...]) -> None:
        with np.errstate(over="ignore"):
            logs = [number * _log_overlaps(law, survey_cells(law)[1]) for law, number in parts]
        total = np.sum(np.maximum(logs, LEAST), axis=0)
        self._between = total + 16.0 * UNIT * (1.0 + len(parts)) * np.abs(total)

    def log_overlap(self, epsilon: FloatArray) -> FloatArray:
        """Upper bounds of log(1 - H_{e^ε}(A‖B)) at finite ε >= 0."""
        return _least(BETWEEN[:, None] * epsilon, self._between[:, None])

    def log_beta(self, alpha: FloatArray) -> FloatArray:
        """Upper bounds of the log of the trade-off function T(A, B) at α in (0, 1]."""
        second = -((1.0 - BETWEEN) / BETWEEN)[:, None] * fn.log(alpha)
        return _least((self._between / BETWEEN)[:, None], second)


def _least(first: FloatArray, second: FloatArray) -> FloatArray:
    """Minimum of ``first`` + ``second`` over all orders (axis 0), rounded up."""
    sums = first + second + 16.0 * UNIT * (1.0 + np.abs(first) + np.abs(second))
    return np.asarray(sums.min(axis=0))


def _total(terms: FloatArray) -> FloatArray:
    """Logs of sums over cells (axis 1) of e^terms, rounded up."""
    top = np.maximum(terms.max(axis=1, initial=-math.inf), LEAST)
    top = np.where(np.isfinite(top), top, 0.0)
    with np.errstate(over="ignore", divide="ignore"):
        sums = top + fn.log(fn.exp(terms - top[:, None]).sum(axis=1))
    sums = np.maximum(sums, LEAST)
    return np.asarray(sums + UNIT * terms.shape[1] * (8.0 + np.abs(sums)))


def _log_overlaps(law: StepLaw, cells: Cells) -> FloatArray:
    """Upper bounds of log M(λ) of a step at all orders of `BETWEEN`."""
    both = (cells.log_a > -math.inf) & (cells.log_b > -math.inf)
    log_a, log_b = cells.log_a[both], cells.log_b[both]
    doubt = cells.error[both] + UNIT * (32.0 + 8.0 * (np.abs(log_a) + np.abs(log_b)))
    terms = (1.0 - BETWEEN[:, None]) * log_a + BETWEEN[:, None] * log_b + doubt
    missing = np.full((BETWEEN.size, 1), _log(law.left_out()))
    return _total(np.hstack([terms, missing]))


def _log(mass: float) -> float:
    return fn.log(mass) if mass > 0.0 else -math.inf


@kept(256)
def chernoff_bounds(parts: tuple[Part, ...]) -> ChernoffBounds:
    """Return the bounds of a composition of at least one step."""
    return ChernoffBounds(parts)
