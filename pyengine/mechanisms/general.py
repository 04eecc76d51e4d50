"""Mechanisms given by two distributions, by a log-likelihood ratio, or by a privacy profile."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._objects import Guarded
from pyengine._support import checks
from pyengine.mechanisms.core import Step
from pyengine.mechanisms.finite import FinitePair, from_probabilities
from pyengine.mechanisms.words import Words
from pyengine.numerics import functions as fn
from pyengine.numerics.bracketing import bisected
from pyengine.numerics.point_hull import lower_hull

__all__ = [
    "DistributionPair",
    "LikelihoodRatio",
    "from_distributions",
    "from_log_likelihood_ratio",
    "from_profile",
    "symmetric_masses",
]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True, repr=False)
class DistributionPair(Step):
    """Two continuous distributions on the line; made by `from_distributions`.

    Parameters
    ----------
    p, q : frozen distribution
        Law of what is released without and with the record.
    breakpoints : tuple of float
        Points where a density or the loss is not smooth, or where the loss has an extremum.
    """

    p: Any
    q: Any
    breakpoints: tuple[float, ...] = ()

    def own_words(self) -> Words:
        """Label: two distributions, and neighbours are the pair."""
        return _of_two_laws("two distributions", super().own_words())


@dataclass(frozen=True, repr=False)
class LikelihoodRatio(Step):
    """A continuous distribution and a log-likelihood ratio; see `from_log_likelihood_ratio`.

    Parameters
    ----------
    log_ratio : callable
        log dQ/dP as a function of one float.
    base : frozen distribution
        P, the law of what is released without the record.
    breakpoints : tuple of float
        Points where the base's density or the ratio is not smooth, or the ratio has an extremum.
    infinite_mass : float
        Mass of Q where P has none.
    """

    log_ratio: Callable[[float], float]
    base: Any
    breakpoints: tuple[float, ...] = ()
    infinite_mass: float = 0.0

    def own_words(self) -> Words:
        """Label: a distribution and a ratio, and neighbours are the pair."""
        return _of_two_laws("a distribution and a log-likelihood ratio", super().own_words())


def _of_two_laws(name: str, words: Words) -> Words:
    hidden = ("p", "q", "base", "log_ratio", "breakpoints", "infinite_mass")
    return words._replace(name=name, neighbours="pair", hidden=hidden)


def _distribution(name: str, value: Any) -> Any:
    missing = [m for m in ("logpdf", "ppf", "isf", "support") if not callable(getattr(value, m, 0))]
    if missing:
        if callable(getattr(value, "logpmf", None)):
            raise ValueError(
                f"{name} must be continuous, got the discrete {value!r}: "
                "give its probabilities to from_probabilities"
            )
        raise ValueError(
            f"{name} must be a frozen continuous distribution with the methods of scipy.stats; "
            f"{value!r} has no {', '.join(missing)}"
        )
    return value


def _breakpoints(values: Any) -> tuple[float, ...]:
    given = checks.listed("breakpoints", values)
    points = checks.real_array("breakpoints", given, -math.inf, math.inf)
    if points.ndim != 1 or not np.isfinite(points).all():
        raise ValueError(f"breakpoints must be finite numbers, got {checks.shown(values)}")
    return tuple(sorted({float(point) for point in points}))


def from_distributions(p: Any, q: Any, *, breakpoints: Any = ()) -> DistributionPair:
    """Make a mechanism from two continuous distributions on the line.

    Parameters
    ----------
    p, q : frozen distribution
        Law of what is released without and with the record: objects with the methods ``logpdf``
        (of arrays), ``ppf``, ``isf`` and ``support`` of `scipy.stats`.  The loss is infinite where
        only one of them has mass.
    breakpoints : sequence of float
        Points where a density has a kink or a jump, or where the loss has an extremum.  Extrema and
        the ends of flat pieces and of supports are found without it, unless they are within a few
        hundredths of a standard deviation of each other.

    Returns
    -------
    DistributionPair
        A single step, to be sampled and composed.

    Raises
    ------
    ValueError
        For objects that are not continuous distributions; when a question is asked, for densities
        whose integral is not 1 within 1e-6.

    Notes
    -----
    Accuracy: masses are Gauss-Legendre integrals of the densities between breakpoints; ten times
    the difference of rules of two orders, plus 1e-13, is taken as the error.  That is an estimate,
    meant for densities that are smooth between the breakpoints.  Values of many steps of smooth
    densities are line integrals over quadrature nodes, with 11 digits in all cases measured.

    Examples
    --------
    >>> import pyengine as pe
    >>> from scipy import stats
    >>> pair = pe.from_distributions(stats.norm(0, 1), stats.norm(1, 1))
    >>> pair.poisson_sampled(0.1).composed(5).steps
    5
    """
    return DistributionPair(_distribution("p", p), _distribution("q", q), _breakpoints(breakpoints))


def from_log_likelihood_ratio(
    log_ratio: Callable[[float], float],
    base: Any,
    *,
    breakpoints: Any = (),
    infinite_mass: float = 0.0,
) -> LikelihoodRatio:
    """Make a mechanism from the law without the record and a log-likelihood ratio.

    Parameters
    ----------
    log_ratio : callable
        log dQ/dP as a function of one float that Numba can compile (or has compiled); -inf where Q
        has no mass.
    base : frozen distribution
        P, the law of what is released without the record, with the methods ``logpdf`` (of arrays),
        ``ppf``, ``isf`` and ``support`` of `scipy.stats`.
    breakpoints : sequence of float
        As in `from_distributions`.
    infinite_mass : float
        Mass of Q where P has none, in [0, 1]; the loss is infinite there.

    Returns
    -------
    LikelihoodRatio
        A single step, to be sampled and composed.

    Raises
    ------
    ValueError
        For arguments outside their domains; when a question is asked, unless E_P e^ratio is
        1 - ``infinite_mass`` within 1e-6, or where the ratio is NaN or inf.

    Notes
    -----
    Accuracy: as in `from_distributions`.  Needs Numba, of the extra ``distributions``.
    """
    if not callable(log_ratio):
        raise ValueError(f"log_ratio must be callable, got {checks.shown(log_ratio)}")
    lost = float(checks.probability("infinite_mass", infinite_mass))
    return LikelihoodRatio(log_ratio, _distribution("base", base), _breakpoints(breakpoints), lost)


DEEPEST = 1e-20  # the default grid ends where the profile is this small
POINTS = 1024  # intervals of the default grid
DENT = 1e-9  # relative excess over the convex hull that is taken for rounding


def from_profile(
    profile: Callable[[float], float], *, epsilon: Any = None, convexify: bool = False
) -> FinitePair:
    """Make a mechanism from a privacy profile δ(ε).

    Parameters
    ----------
    profile : callable
        δ(ε) at a float ε >= 0, a guarantee for both directions of the neighbouring relation: values
        in [0, 1], not increasing, convex in e^ε.
    epsilon : sequence of float, optional
        Increasing grid from 0 at which the profile is evaluated; by default 1024 equal steps up to
        where it is below 1e-20 or constant.
    convexify : bool
        Whether to replace values that are not convex by the largest convex function below them; it
        still bounds any true profile that the values bound.

    Returns
    -------
    FinitePair
        The finite pair whose profile joins the values by chords in e^ε.  It dominates every
        mechanism with this profile, so its answers are upper bounds of γ, δ and ε and lower bounds
        of trade-off functions, off by the excess of the chords.  The δ at the end of the grid is
        mass at infinite loss.

    Raises
    ------
    ValueError
        For a profile that leaves [0, 1], increases, or is not convex unless ``convexify``.

    References
    ----------
    V. Doroshenko, B. Ghazi, P. Kamath, R. Kumar, P. Manurangsi, Connect the Dots, PoPETs 2022 (4);
    Y. Zhu, J. Dong, Y.-X. Wang, Optimal Accounting of Differential Privacy via Characteristic
    Function, AISTATS 2022, Proposition 8.

    Examples
    --------
    >>> import pyengine as pe
    >>> tight = pe.GaussianMechanism(2.0)
    >>> pair = pe.from_profile(lambda epsilon: pe.delta(tight, epsilon))
    >>> 0 < pe.delta(pair, 1.0) / pe.delta(tight, 1.0) - 1 < 1e-3
    True
    """
    if not callable(profile):
        raise ValueError(f"profile must be callable, got {checks.shown(profile)}")
    is_convexified = checks.flag("convexify", convexify)
    grid = _grid(profile, epsilon)
    values = [Fraction(_value(profile, point)) for point in grid]
    for point, before, after in zip(grid[1:], values, values[1:], strict=False):
        if after > before and not is_convexified:
            raise ValueError(f"profile must not increase, but it does before epsilon = {point!r}")
    right = [(Fraction(fn.exp(e)), v) for e, v in zip(grid, values, strict=True)]
    points = _both_sides(right)
    hull = _falling_hull(points)
    dents = [abs(_on(hull, t) - v) for t, v in points]
    if not is_convexified and any(d > DENT * v for d, (_, v) in zip(dents, points, strict=True)):
        where = max(range(len(dents)), key=dents.__getitem__)
        raise ValueError(
            "profile must be convex in e^epsilon in both directions, but is not near "
            f"epsilon = {abs(fn.log(float(points[where][0] or 1))):.6g}; "
            "convexify=True takes the largest convex function below it"
        )
    first, second = zip(*_masses(hull), strict=True)
    return from_probabilities(first, second)


def _grid(profile: Callable[[float], float], epsilon: Any) -> list[float]:
    if epsilon is not None:
        grid = checks.real_array("epsilon", checks.listed("epsilon", epsilon), 0.0, 700.0)
        if grid.ndim != 1 or grid.size < 2 or grid[0] != 0.0 or not (np.diff(grid) > 0).all():
            raise ValueError(f"epsilon must increase from 0, got {checks.shown(epsilon)}")
        return [float(e) for e in grid]
    end = 1.0
    while end < 512.0 and _value(profile, end) > max(DEEPEST, _value(profile, 2.0 * end)):
        end *= 2.0
    least = max(DEEPEST, _value(profile, end))
    _, last = bisected(lambda e: _value(profile, float(e)) > least, 0.0, end, rounds=30)
    return [float(e) for e in np.linspace(0.0, float(last), POINTS + 1)]


def _value(profile: Callable[[float], float], epsilon: float) -> float:
    value = checks.real(f"profile({epsilon:g})", Guarded(profile)(epsilon))
    if not 0.0 <= value <= 1.0:
        raise ValueError(f"profile({epsilon:g}) must lie in [0, 1], got {checks.shown(value)}")
    return value


Point = tuple[Fraction, Fraction]


def symmetric_masses(right: list[Point]) -> list[Point]:
    """Masses of a pair that dominates every mechanism with H_t at most these, in both orders.

    ``right`` holds (t, H_t) with increasing t from 1, not necessarily convex.  Each outcome has its
    mass with and without the record; ratios increase.
    """
    return pair_of_profile(_both_sides(right))


def pair_of_profile(points: list[Point]) -> list[Point]:
    """Masses, as of `symmetric_masses`, that dominate these (t, H_t) with t from 0."""
    return _masses(_falling_hull(points))


def _both_sides(right: list[Point]) -> list[Point]:
    """Add t < 1, where the other direction has the same profile: H_(1/t) = 1 - 1/t + H_t/t."""
    left = [(1 / t, 1 - 1 / t + value / t) for t, value in reversed(right[1:])]
    return [(Fraction(0), Fraction(1)), *left, *right]


def _falling_hull(points: list[Point]) -> list[Point]:
    """Exact lower convex hull of points with increasing abscissae, up to its minimum."""
    hull = lower_hull(points)
    while len(hull) > 1 and hull[-1][1] >= hull[-2][1]:
        hull.pop()
    return hull


def _slope(a: Point, b: Point) -> Fraction:
    return (b[1] - a[1]) / (b[0] - a[0])


def _on(hull: list[Point], t: Fraction) -> Fraction:
    """Value of the hull at t, constant beyond its end."""
    from bisect import bisect_right

    at = bisect_right(hull, t, key=lambda point: point[0])
    if at == len(hull):
        return hull[-1][1]
    before, after = hull[at - 1], hull[at]
    return before[1] + _slope(before, after) * (t - before[0])


def _masses(hull: list[Point]) -> list[Point]:
    """Pair (A, B) with H_t(A‖B) the hull: B's masses are changes of slope, A's t times those."""
    slopes = [Fraction(-1), *(_slope(a, b) for a, b in pairwise(hull)), Fraction(0)]
    b = [after - before for before, after in pairwise(slopes)]
    masses = [(t * mass, mass) for (t, _), mass in zip(hull, b, strict=True)]
    return [*masses, (hull[-1][1], Fraction(0))]
