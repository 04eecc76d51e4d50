"""Mechanisms of few outcomes: the masses of all outcomes under both laws, and sums of these.

Masses are fractions, numbers of mpmath or doubles; nothing of the engines is used. Also closed-form
profiles of one Gaussian or Laplace step.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable, Iterable
from fractions import Fraction
from typing import Any

import mpmath
import numpy as np

__all__ = [
    "Outcomes",
    "Points",
    "all_together",
    "chain",
    "corners",
    "discrete_laplace",
    "gaussian_delta",
    "generic",
    "height",
    "hockey_stick",
    "number",
    "power_of",
    "product",
    "profile",
    "response",
    "reversed_",
    "sampled",
    "sampled_gaussian_delta",
    "sampled_laplace_delta",
    "vectors",
]

Outcomes = list[tuple[Any, Any]]  # masses without the record and with it
Points = list[tuple[Any, Any]]  # levels and values of the corners of a piecewise linear curve


def number(x: Any) -> Any:
    """A double, a fraction or its text as a number of mpmath."""
    if isinstance(x, mpmath.mpf):
        return x
    exact = Fraction(x)
    return mpmath.mpf(exact.numerator) / exact.denominator


# ---- steps


def response(truth: Any, categories: int = 2) -> Outcomes:
    """Randomized response; outcomes that neither data set has as true answer are merged."""
    other = (1 - truth) / (categories - 1)
    rest = [((categories - 2) * other,) * 2] if categories > 2 else []
    return [(truth, other), (other, truth), *rest]


def generic(epsilon: float, delta: Any, exp: Callable[[Any], Any] = mpmath.exp) -> Outcomes:
    """The dominating pair of (ε, δ), with a given exponential function."""
    less = exp(-number(epsilon) if exp is mpmath.exp else -epsilon)
    told = number(delta) if exp is mpmath.exp else delta
    more = (1 - told) / (1 + less)
    return [(told, 0 * told), (more, more * less), (more * less, more), (0 * told, told)]


def discrete_laplace(noise: Any) -> Outcomes:
    """Discrete Laplace noise, shifted by 1 by the record; outcomes of equal loss are merged."""
    r = mpmath.exp(-1 / number(noise))
    return [(1 / (1 + r), r / (1 + r)), (r / (1 + r), 1 / (1 + r))]


def vectors(p: Iterable[Any], q: Iterable[Any], of: Callable[[Any], Any] = number) -> Outcomes:
    """Two vectors of probabilities."""
    return [(of(a), of(b)) for a, b in zip(p, q, strict=True)]


def sampled(outcomes: Outcomes, rate: Any) -> Outcomes:
    """A Poisson sample of such a step."""
    p = rate if isinstance(outcomes[0][0], Fraction | float) else number(rate)
    return [(a, (1 - p) * a + p * b) for a, b in outcomes]


def reversed_(outcomes: Outcomes) -> Outcomes:
    """The pair in the other order."""
    return [(b, a) for a, b in outcomes]


def all_together(*steps: Outcomes) -> Outcomes:
    """All outcomes of a composition, one by one."""
    return [
        (math.prod(a for a, _ in row), math.prod(b for _, b in row))
        for row in itertools.product(*steps)
    ]


def product(*parts: tuple[Outcomes, int]) -> Outcomes:
    """Outcomes of repeated steps; those of equal ratio are merged on the way."""
    result: Outcomes = [(Fraction(1), Fraction(1))]
    for outcomes, steps in parts:
        for _ in range(steps):
            merged: dict[Any, list[Any]] = {}
            for a, b in result:
                for x, y in outcomes:
                    u, v = a * x, b * y
                    if not (u or v):
                        continue
                    mass = merged.setdefault(v / u if u else None, [0, 0])
                    mass[0] += u
                    mass[1] += v
            result = [(u, v) for u, v in merged.values()]
    return result


# ---- profiles, curves and powers


def profile(outcomes: Outcomes, level: Any, adjacency: str = "add") -> Any:
    """H of the order that an adjacency names, at e^ε = level."""
    rows = outcomes if adjacency == "add" else reversed_(outcomes)
    return sum((max(a - level * b, 0 * a) for a, b in rows), 0 * level)


def hockey_stick(p: Any, q: Any, epsilon: float) -> float:
    """H of two arrays of masses."""
    return float(np.maximum(p - math.exp(epsilon) * q, 0.0).sum())


def corners(outcomes: Outcomes) -> Points:
    """Points (level, β) between which the trade-off function is straight, by increasing level."""
    last = 10**400
    order = sorted(outcomes, key=lambda o: o[1] / o[0] if o[0] else last, reverse=True)
    # sums from both ends, so that small values keep their digits where masses are not fractions
    a, b = zip(*(row for row in order if row[0]), strict=True)
    rest = [*itertools.accumulate(reversed(b), initial=0 * b[0])][::-1]
    return list(zip(itertools.accumulate(a, initial=0 * a[0]), rest, strict=True))


def chain(points: Iterable[tuple[Any, Any]]) -> Points:
    """Corners of the lower convex hull."""
    kept: Points = []
    for point in sorted(points):
        while len(kept) > 1:
            (x, y), (u, v) = kept[-2:]
            if (v - y) * (point[0] - u) < (point[1] - v) * (u - x):
                break
            kept.pop()
        if not (kept and kept[-1][0] == point[0]):
            kept.append(point)
    return kept


def height(points: Points, alpha: Any) -> Any:
    """Value at a level of a piecewise linear curve."""
    for (x, y), (u, v) in itertools.pairwise(points):
        if alpha <= u:
            return v + (y - v) * (u - alpha) / (u - x)
    return 0 * points[-1][1]


def power_of(outcomes: Outcomes, alpha: Any) -> Any:
    """Power of the best test at a level, by the Neyman-Pearson lemma."""
    return 1 - height(corners(outcomes), alpha)


def gaussian_delta(mu: Any, epsilon: Any) -> Any:
    """H of N(0, 1) and N(μ, 1), at any real ε."""
    at = mpmath.mpf(epsilon)
    return mpmath.ncdf(mu / 2 - at / mu) - mpmath.exp(at) * mpmath.ncdf(-mu / 2 - at / mu)


def sampled_gaussian_delta(mu: Any, p: Any, t: Any, order: str = "remove") -> Any:
    """H at e^ε = t of one Poisson-sampled Gaussian step."""
    rest = (t if order == "remove" else 1 / t) - 1 + p
    if rest <= 0:
        return 1 - t if order == "remove" else mpmath.mpf(0)
    z = mpmath.log(rest / p) / mu + mu / 2
    if order == "remove":
        return p * mpmath.ncdf(mu - z) - rest * mpmath.ncdf(-z)
    return t * (rest * mpmath.ncdf(z) - p * mpmath.ncdf(z - mu))


def sampled_laplace_delta(mu: Any, p: Any, t: Any, order: str = "remove") -> Any:
    """The same of one Laplace step."""
    low, high = (1 - p + p * mpmath.exp(sign * mu) for sign in (-1, 1))
    ratio = t if order == "remove" else 1 / t
    if not low < ratio < high:
        return max(1 - t, mpmath.mpf(0))
    edge = mpmath.log((ratio - 1 + p) / p)
    if order == "add":
        return -(1 - t * (1 - p)) * mpmath.expm1(-(edge + mu) / 2)
    return -p * mpmath.expm1((edge - mu) / 2)
