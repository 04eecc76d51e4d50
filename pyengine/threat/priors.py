"""The κ of a prior: success probability of the best guess without the release.

κ(η) = sup over guesses z of P(ρ(Z, z) <= η), Z drawn from the prior and ρ the error function
(Hayes, Mahloujifar and Balle 2023, section 3).  It is the argument of `pyengine.gamma_bound`.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._objects import Guarded
from pyengine._support import checks
from pyengine._support.extras import needed
from pyengine.api import Bounds
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["kappa_from_samples", "kappa_of_points", "kappa_uniform", "kappa_weighted"]

FloatArray = npt.NDArray[np.float64]
ErrorFunction = Callable[[FloatArray, FloatArray], npt.ArrayLike]

NORMS = {"manhattan": 1.0, "euclidean": 2.0, "chebyshev": math.inf}
CHUNK = 4096  # points whose neighbours are searched at once


def kappa_uniform(candidates: int) -> float:
    """κ of equally likely candidates and exact reconstruction.

    Parameters
    ----------
    candidates : int
        Their number n, >= 1.

    Returns
    -------
    float
        1/n, the double nearest to it.
    """
    return 1.0 / checks.count("candidates", candidates, least=1)


def kappa_weighted(probabilities: npt.ArrayLike) -> float:
    """κ of a finite prior and exact reconstruction.

    Parameters
    ----------
    probabilities : array_like, one-dimensional
        Probabilities of the different candidates, in [0, 1], summing to 1 within 1e-9.

    Returns
    -------
    float
        The largest one; exact.

    Raises
    ------
    ValueError
        If they are not probabilities.
    """
    return float(_weights(probabilities, None).max())


def _weights(probabilities: npt.ArrayLike, size: int | None) -> FloatArray:
    weights = checks.real_array("probabilities", probabilities, 0.0, 1.0)
    if weights.ndim != 1 or not weights.size or (size is not None and weights.size != size):
        raise ValueError(
            "probabilities must be one-dimensional"
            + (f" with one for each of {size} points" if size is not None else " and not empty")
            + f", got shape {weights.shape}"
        )
    total = math.fsum(weights)
    if abs(total - 1.0) > 1e-9:
        raise ValueError(f"probabilities must sum to 1, got a sum of {total!r}")
    return weights


def kappa_of_points(
    points: npt.ArrayLike,
    radius: float,
    *,
    error: str | ErrorFunction = "euclidean",
    probabilities: npt.ArrayLike | None = None,
) -> Bounds:
    """κ of a prior over points, if a reconstruction may be off by a radius.

    Parameters
    ----------
    points : array_like of shape (n,) or (n, d)
        Support of the prior.
    radius : float
        η >= 0: a guess z reconstructs Z if ρ(Z, z) <= η.
    error : {"euclidean", "manhattan", "chebyshev"} or callable
        Error function ρ.  A callable takes arrays of shape (1, d) and (m, d) and returns m errors
        >= 0; it must be symmetric and obey the triangle inequality.
    probabilities : array_like of shape (n,), optional
        Probabilities of the points; equal by default.

    Returns
    -------
    Bounds
        ``value`` and ``lower`` are the largest mass of a ball of radius η about one of the points;
        other guesses may do better.  ``upper`` is the largest mass of a ball of radius 2η about a
        point, which contains every ball of radius η that contains the point.  On a line all three
        are the exact κ.

    Raises
    ------
    ValueError
        For an argument outside its domain.

    Notes
    -----
    Neighbours are found by `scipy.spatial.cKDTree`; for a callable, all pairs are compared.

    References
    ----------
    J. Hayes, S. Mahloujifar, B. Balle, Bounding Training Data Reconstruction in DP-SGD (2023),
    section 3.3.

    Examples
    --------
    >>> from pyengine.threat.priors import kappa_of_points
    >>> kappa_of_points([0.0, 1.0, 1.5, 4.0], radius=0.5).value
    0.5
    """
    array = _points(points)
    reach = _radius(radius)
    if not callable(error):
        checks.choice("error", error, tuple(NORMS))
    size = array.shape[0]
    weights = np.full(size, 1.0 / size) if probabilities is None else _weights(probabilities, size)
    if array.shape[1] == 1 and not callable(error):
        value = _on_a_line(array[:, 0], weights, reach)
        return Bounds(value, value, value)
    value = float(_masses(array, weights, reach, error).max())
    # distances of d coordinates have errors of about d units: the radius is rounded up
    twice = 2.0 * reach * (1.0 + (array.shape[1] + 8.0) * UNIT)
    upper = value if reach == 0.0 else float(_masses(array, weights, twice, error).max())
    return Bounds(min(value, 1.0), min(value, 1.0), min(upper, 1.0))


def _points(points: npt.ArrayLike) -> FloatArray:
    array = checks.real_array("points", points, -math.inf, math.inf)
    if array.ndim == 1:
        array = array[:, None]
    if array.ndim != 2 or not array.size or not np.all(np.isfinite(array)):
        raise ValueError(
            f"points must be a finite array of shape (n,) or (n, d), got shape {np.shape(points)}"
        )
    return np.ascontiguousarray(array)


def _radius(radius: Any) -> float:
    reach = checks.real("radius", radius)
    if not 0.0 <= reach < math.inf:
        raise ValueError(f"radius must be finite and at least 0, got {checks.shown(radius)}")
    return reach


def _on_a_line(x: FloatArray, weights: FloatArray, radius: float) -> float:
    """Largest mass of an interval of length 2η; it may begin at a point."""
    order = np.argsort(x, kind="stable")
    x, total = x[order], np.concatenate(([0.0], np.cumsum(weights[order])))
    # the interval is widened by a rounding, on the safe side
    last = np.searchsorted(x, np.nextafter(x + 2.0 * radius, math.inf), side="right")
    return min(float((total[last] - total[:-1]).max()), 1.0)


def _masses(
    points: FloatArray, weights: FloatArray, radius: float, error: str | ErrorFunction
) -> FloatArray:
    """Mass of the ball about each point."""
    size = points.shape[0]
    if callable(error):
        call = Guarded(error)
        rows = (np.asarray(call(points[i : i + 1], points), dtype=float) for i in range(size))
        return np.array([float(weights[_errors(row, size) <= radius].sum()) for row in rows])
    with needed("the search for neighbours", "priors"):
        from scipy.spatial import cKDTree

    tree = cKDTree(points)
    norm = NORMS[error]
    if np.all(weights == weights[0]):
        near = tree.query_ball_point(points, radius, p=norm, return_length=True)
        return np.asarray(near * weights[0])
    found = np.empty(size)
    for start in range(0, size, CHUNK):
        chunk = points[start : start + CHUNK]
        for i, near in enumerate(tree.query_ball_point(chunk, radius, p=norm)):
            found[start + i] = weights[near].sum()
    return found


def _errors(row: FloatArray, size: int) -> FloatArray:
    if row.shape != (size,) or not np.all(row >= 0.0):
        raise ValueError(
            f"error must return {size} numbers >= 0 for {size} points, got shape {row.shape}"
        )
    return row


def kappa_from_samples(
    samples: npt.ArrayLike,
    radius: float,
    *,
    error: str | ErrorFunction = "euclidean",
    confidence: float = 0.99,
) -> Bounds:
    """κ of a prior of which only samples are known, with an upper bound at some confidence.

    Parameters
    ----------
    samples : array_like of shape (n,) or (n, d)
        Independent draws from the prior.
    radius, error
        As in `kappa_of_points`.
    confidence : float
        Least probability, over the draws, that κ <= ``upper``; in (0, 1).

    Returns
    -------
    Bounds
        ``lower`` and ``value`` are those of the empirical prior: estimates of κ, not bounds.
        ``upper`` is the largest κ with κ - √(2 κ log(1/(1 - confidence))/n) <= κ̂, where κ̂ is the
        upper bound of the empirical prior (Proposition 6 solved for κ).

    Raises
    ------
    ValueError
        For an argument outside its domain.

    Notes
    -----
    The proposition needs κ̂ over all guesses.  Balls about the samples may miss the best guess, so
    the upper bound of `kappa_of_points` is used.

    References
    ----------
    J. Hayes, S. Mahloujifar, B. Balle, Bounding Training Data Reconstruction in DP-SGD (2023),
    Proposition 6.

    Examples
    --------
    >>> from pyengine.threat.priors import kappa_from_samples
    >>> found = kappa_from_samples([0.1 * k for k in range(1000)], radius=0.5)
    >>> f"{found.value:.4f} {found.upper:.4f}"
    '0.0110 0.0267'
    """
    share = checks.real("confidence", confidence)
    if not 0.0 < share < 1.0:
        raise ValueError(f"confidence must lie in (0, 1), got {checks.shown(confidence)}")
    empirical = kappa_of_points(samples, radius, error=error)
    size = _points(samples).shape[0]
    root = math.sqrt(-2.0 * fn.log1p(-share) / size)
    upper = (0.5 * (root + math.sqrt(root * root + 4.0 * empirical.upper))) ** 2
    return Bounds(empirical.lower, empirical.value, min(upper, 1.0))
