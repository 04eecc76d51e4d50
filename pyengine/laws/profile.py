"""Laws from values of a profile: where to compute it, and dominating chords between the values."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pyengine.laws.base import StepLaw, positive
from pyengine.laws.finite import FiniteLaw, log_fraction
from pyengine.mechanisms.general import symmetric_masses
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT

__all__ = ["DEEPEST", "apart", "law_of_values", "placed_values", "raised_points", "upper_values"]

FloatArray = npt.NDArray[np.float64]

DEEPEST = 1e-20  # values end where the profile is this small
FEW = 16  # fewer outcomes: the law is formed in fractions
COARSE = 120  # values from which the grid is chosen
STEEP, HALVINGS = 0.1, 60  # fall of log δ between two values that is halved, and how often
ABOVE = 1.0 + (ELEMENTARY + 4.0) * UNIT  # factor that rounds e^ε up


def raised_points(epsilon: FloatArray, delta: FloatArray) -> list[tuple[Fraction, Fraction]]:
    """Points (t, H_t) of upper bounds δ(ε), ε from 0, with t rounded up: H_t decreases in t."""
    t = fn.exp(epsilon) * ABOVE
    right = [(Fraction(x), Fraction(y)) for x, y in zip(t.tolist(), delta.tolist(), strict=True)]
    return [(Fraction(1), right[0][1]), *right[1:]]


def apart(share: Fraction) -> list[tuple[Fraction, Fraction]]:
    """Return two outcomes of this probability, each possible under one law only."""
    return [(share, Fraction(0)), (Fraction(0), share)]


def law_of_values(epsilon: FloatArray, delta: FloatArray, told: Fraction) -> FiniteLaw:
    """Return the symmetric pair whose profile joins upper bounds by chords.

    Parameters
    ----------
    epsilon, delta : ndarray
        ε from 0, and upper bounds of the profile there, given that not everything is revealed.
    told : Fraction
        Probability with which everything is revealed.
    """
    masses = symmetric_masses(raised_points(epsilon, delta))
    if len(masses) < FEW:
        rows = [((1 - told) * a, (1 - told) * b) for a, b in masses]
        return FiniteLaw.from_fractions([*rows, *apart(told)])
    # the first and the last have infinite losses; the others are mirror images of each other
    alone = told + (1 - told) * masses[-1][0]
    both = [(a, b) for a, b in masses if a and b]
    log_a, log_b = (np.array([_log((1 - told) * row[i]) for row in both]) for i in (0, 1))
    loss = fn.log([float(b / a) for a, b in both])
    order = np.argsort(loss)
    return FiniteLaw(
        loss[order],
        log_a[order],
        log_b[order],
        positive(alone),
        positive(alone),
        symmetric=True,
        alone=(alone, alone),
    )


def upper_values(law: StepLaw, edges: FloatArray, t: FloatArray) -> tuple[FloatArray, float]:
    """Return upper bounds of E_A (R - t)_+, R = dB/dA, and of the mass that B has alone.

    Parameters
    ----------
    law : StepLaw
        The pair, which has cells.
    edges, t : ndarray of shape (n,)
        Increasing losses, and their exponentials to a few units of roundoff.
    """
    cells = law.cells(edges)
    a, b = fn.exp(cells.log_a), fn.exp(cells.log_b)
    rounding = (ELEMENTARY + 2.0) * UNIT * (1.0 + np.where(a > 0.0, np.abs(cells.log_a), 0.0))
    rounding += (ELEMENTARY + 2.0) * UNIT * np.where(b > 0.0, np.abs(cells.log_b), 0.0)
    error = cells.error + rounding + t.size * UNIT
    shift = cells.shift + 4.0 * UNIT * (1.0 + np.abs(edges))
    above_a = np.cumsum(a[::-1])[::-1][1:]
    above_b = np.cumsum(b[::-1])[::-1][1:]
    off_a = np.cumsum((a * error)[::-1])[::-1][1:]
    off_b = np.cumsum((b * error)[::-1])[::-1][1:]
    # an edge off by ``shift`` misplaces mass next to it, whose ratio differs from t by that much
    moved = 2.0 * t * shift * (a[:-1] + a[1:])
    alone = (law.infinite()[1] + law.left_out()) * (1.0 + 2.0**-48)
    value = np.maximum(above_b - t * above_a, 0.0) + 1.01 * (off_b + t * off_a) + moved + alone
    value += 4.0 * UNIT * (above_b + t * above_a)
    return value, max(alone, 0.0)


def _log(x: Fraction) -> float:
    """Logarithm of a mass that may underflow."""
    near = float(x)
    return fn.log(near) if near > 1e-300 else log_fraction(x)


def placed_values(
    coarse: Callable[[FloatArray], tuple[FloatArray, FloatArray]],
    fine: Callable[[FloatArray, FloatArray, FloatArray], FloatArray],
    end: float,
    deepest: float = DEEPEST,
    *,
    places: int,
) -> tuple[FloatArray, FloatArray]:
    """Return a grid of ε from 0 to ``end``, densest where the profile bends most, and its values.

    Parameters
    ----------
    coarse : callable
        From ε to upper bounds of the profile, and a parameter of each that ``fine`` interpolates.
    fine : callable
        From ε, the ε of the coarse values and their parameters, to upper bounds.
    end : float
        The largest ε.
    deepest : float
        Smaller values of the profile count as this one when the grid is chosen.
    places : int
        Approximate number of points.
    """
    epsilon = end * np.linspace(0.0, 1.0, COARSE) ** 2
    value, order = coarse(epsilon)
    size = np.maximum(value, deepest)
    fall = np.diff(fn.log(size))
    slope = np.diff(value) / np.diff(fn.exp(epsilon))
    bend = np.abs(np.diff(slope, prepend=slope[0])) * fn.exp(epsilon[:-1])
    # a chord adds (Δ log δ)²/8 of δ, or by its bend; the last term keeps a minimal density
    pace = np.abs(fall) + np.sqrt(bend / size[:-1] * np.diff(epsilon)) + np.diff(epsilon) / end
    place = np.concatenate([[0.0], np.cumsum(pace)])
    points = np.interp(np.linspace(0.0, place[-1], places), place, epsilon)
    points = np.unique(np.concatenate([points, epsilon]))
    near = np.asarray(order, dtype=np.float64)
    found = fine(points, epsilon, near)
    for _ in range(HALVINGS):  # bisect where the profile falls steeply
        drop = -np.diff(fn.log(np.maximum(found, deepest))) > STEEP
        drop &= np.diff(points) > 1e-14 * points[1:]
        if not drop.any():
            break
        at = np.flatnonzero(drop)[:COARSE]
        middle = 0.5 * (points[at] + points[at + 1])
        found = np.insert(found, at + 1, fine(middle, epsilon, near))
        points = np.insert(points, at + 1, middle)
    return points, found
