"""From a mechanism and an adjacency to an ordered pair of laws (A, B).

The trade-off function asked for is T(A, B) and the privacy profile is H(A‖B):

==============  ======================  ======================
adjacency       A                       B
==============  ======================  ======================
``add``         without the record      with the record
``remove``      with the record         without the record
``substitute``  with one record         with another one in its place
==============  ======================  ======================
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from typing import NamedTuple

from pyengine._core import ffi, lib
from pyengine._support.checks import Number
from pyengine.engines.answers import Triple
from pyengine.mechanisms import Mechanism, steps_of
from pyengine.numerics.rounding import UNIT

__all__ = [
    "GaussianPair",
    "GaussianRows",
    "enclosing_pairs",
    "exact_steps",
    "gaussian_rows",
    "largest_epsilon",
    "ordered_pair",
]

LEAST = 2.0**-1074  # the smallest positive double
TRIPLE = ffi.typeof("double[3]")

# Noise multiplier, its divisor (the distance of the query), sampling probability, number of steps.
GaussianRows = list[tuple[Number, int, Number, int]]


class GaussianPair(NamedTuple):
    """Composition of Poisson-subsampled Gaussian steps as an ordered pair of laws.

    Without the record a step has the law N(0, 1), with it (1 - p) N(0, 1) + p N(1/noise, 1): the
    dominating pair of the sampled mechanism.  One entry for each kind of step, p in (0, 1]; if
    reversed A is the law with the record.
    """

    noise: tuple[float, ...]
    probability: tuple[float, ...]
    steps: tuple[int, ...]
    reversed: bool

    @property
    def is_trivial(self) -> bool:
        """Whether both laws are equal: there are no steps that use the record."""
        return not self.steps


def exact_steps(rows: GaussianRows) -> list[tuple[Fraction, Fraction, int]]:
    """Return noise, sampling probability and number of each kind of steps, exactly."""
    return [
        (
            Fraction(noise) if farther == 1 else Fraction(noise) / farther,
            Fraction(p),
            number,
        )
        for noise, farther, p, number in rows
    ]


def gaussian_rows(mechanism: Mechanism, adjacency: str) -> GaussianRows | None:
    """Return the Gaussian steps of a mechanism, those of sampling probability 0 left out.

    None where a step is not Gaussian or, under ``substitute``, is sampled.
    """
    rows = []
    for step, number in steps_of(mechanism):
        inner, probability = step.inner, step.share
        noise = inner.noise
        if noise is None or noise.family != "gaussian":
            return None
        # batches of fixed size: the record replaces another, and the query moves twice as far
        farther = 2 if step.scheme == "without_replacement" else 1
        if adjacency == "substitute":
            if probability > 0 and inner is not step:
                return None
            farther = 2
        if float(probability) > 0.0:
            rows.append((noise.multiplier, farther, probability, number))
    return rows


def ordered_pair(rows: GaussianRows, adjacency: str) -> GaussianPair:
    """Return the pair for ``add``, ``remove`` or ``substitute``, parameters rounded to doubles."""
    noise, probabilities, steps = [], [], []
    for multiplier, farther, p, number in rows:
        noise.append(float(multiplier) / farther)
        probabilities.append(float(p))
        steps.append(number)
    return GaussianPair(tuple(noise), tuple(probabilities), tuple(steps), adjacency == "remove")


def enclosing_pairs(rows: GaussianRows, adjacency: str) -> tuple[GaussianPair, GaussianPair]:
    """Return pairs with parameters in doubles, one at least and one at most as private.

    They differ only where a parameter is no double.  More noise and a smaller probability are more
    private, as they result from adding noise and from leaving out more records.
    """
    if all(map(_are_doubles, rows)):
        pair = ordered_pair(rows, adjacency)
        return pair, pair
    exact, order = exact_steps(rows), adjacency == "remove"
    steps = tuple(number for _, _, number in exact)
    private, public = (
        GaussianPair(
            tuple(_rounded(noise, up) for noise, _, _ in exact),
            tuple(_rounded(p, not up) for _, p, _ in exact),
            steps,
            order,
        )
        for up in (True, False)
    )
    return private, public


def _are_doubles(row: tuple[Number, int, Number, int]) -> bool:
    """Whether noise, divided, and probability of a row are doubles."""
    noise, farther, p, _ = row
    exact = isinstance(noise, float) and noise / farther * farther == noise
    return exact and (isinstance(p, float) or p == 1)


def _rounded(x: Fraction, up: bool) -> float:
    """A number rounded up, or down, to a double."""
    near = float(x)
    if Fraction(near) == x or (Fraction(near) > x) == up:
        return near
    return math.nextafter(near, math.inf if up else 0.0)


def largest_epsilon(pair: GaussianPair, rates: Sequence[float | Fraction]) -> Triple:
    """The least ε with a profile of 0, and bounds of it: the supremum of log dA/dB.

    That is -Σ n log(1 - p), with the exact rates: one below 1 may round to 1.
    """
    if pair.reversed or any(rate == 1 for rate in rates):
        return math.inf, math.inf, math.inf
    if all(isinstance(rate, float) for rate in rates):
        out = ffi.new(TRIPLE)
        lib.pe_largest_loss(len(rates), tuple(rates), pair.steps, out)
        return out[0], out[1], out[2]
    value = -math.fsum(n * _log_of_rest(p) for p, n in zip(rates, pair.steps, strict=True))
    off = 16.0 * UNIT * value + sum(pair.steps) * LEAST
    return value, value - off, value + off


def _log_of_rest(rate: float | Fraction) -> float:
    """log(1 - rate), within 2 ulp."""
    if isinstance(rate, float):
        return lib.pe_log1p_at(-rate)
    from pyengine.numerics.exact_numbers import log_of_rest

    return log_of_rest(rate)[0]
