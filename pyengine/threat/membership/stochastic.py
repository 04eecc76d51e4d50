"""Stochastic composition: the attacker draws a record, and with it a test, at random.

Definition 4.1 of Leemann et al. (2023): minimise Σ w_i f_i(α_i) subject to Σ w_i α_i = α.  At the
optimum all f_i have the same slope -e^c (Lagrange), so one number c solves the problem for each α.
The minimum is the trade-off function of a test that sees which member was drawn, so it is convex.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt

from pyengine._objects import Guarded
from pyengine._support import checks
from pyengine.errors import AccuracyError
from pyengine.numerics import functions as fn
from pyengine.numerics.bracketing import falling_root
from pyengine.threat.membership.family import ConvexTradeOff, TradeOffFunction

__all__ = ["stochastic_composition", "stochastic_composition_over", "worst_case"]

FloatArray = npt.NDArray[np.float64]
LARGEST = 1e9  # |c| at which tests have no error on one side
PANELS = 32  # dyadic panels towards each end of the distribution
NODES = (4, 7)  # Gauss-Legendre nodes per panel, for the check and for the answer
AGREEMENT = 1e-8  # largest relative difference of both


class Distribution(Protocol):
    """The methods of a frozen distribution of scipy.stats that are used."""

    def ppf(self, q: Any) -> Any:
        """Quantile function."""

    def isf(self, q: Any) -> Any:
        """Quantile function of the upper tail."""


def _members(functions: Any) -> list[TradeOffFunction]:
    members = checks.listed("functions", functions)
    if not members:
        raise ValueError("functions must hold at least one trade-off function, got none")
    return [member if hasattr(member, "at_slope") else ConvexTradeOff(member) for member in members]


def _weights(weights: Any, number: int) -> FloatArray:
    array: FloatArray = checks.real_array("weights", weights, 0.0, np.inf)
    if array.shape != (number,):
        raise ValueError(
            f"weights must hold one number per function, {number}, got shape {array.shape}"
        )
    if not abs(array.sum() - 1.0) <= 1e-9:
        raise ValueError(f"weights must add up to 1, got {float(array.sum())!r}")
    normed: FloatArray = array / array.sum()
    return normed


def stochastic_composition(
    functions: Sequence[TradeOffFunction | Callable[[FloatArray], npt.ArrayLike]],
    weights: npt.ArrayLike,
    alpha: float | npt.ArrayLike,
) -> Any:
    """Trade-off function of an attacker who splits the false positive rate over random tests.

    Parameters
    ----------
    functions : sequence of trade-off functions
        Members of the family: `GaussianTradeOff`, `NoisySGDStep` or another object with
        ``at_slope``, or any convex function of α, which is wrapped in `ConvexTradeOff`.
    weights : array_like, one per function
        Probabilities with which they are drawn, >= 0, with sum 1.
    alpha : array_like
        Global false positive rate, in [0, 1].

    Returns
    -------
    float or ndarray of the shape of ``alpha``
        The smallest global false negative rate: exact up to rounding, about 1e-13, for members with
        ``at_slope``.

    Raises
    ------
    ValueError
        For an argument outside its domain.

    References
    ----------
    T. Leemann, M. Pawelczyk, G. Kasneci, Gaussian Membership Inference Privacy (2023),
    Definition 4.1 and Theorem 4.1.

    Examples
    --------
    >>> import pyengine as pe
    >>> family = [pe.membership.GaussianTradeOff(mu) for mu in (0.5, 2.0)]
    >>> round(pe.membership.stochastic_composition(family, [0.9, 0.1], 0.05), 6)
    0.820078
    """
    members = _members(functions)
    share = _weights(weights, len(members))
    levels = checks.real_array("alpha", alpha, 0.0, 1.0)
    value = _composed(members, share, levels.ravel()).reshape(levels.shape)
    return value if levels.shape else float(value)


def _composed(members: list[TradeOffFunction], share: FloatArray, alpha: FloatArray) -> FloatArray:
    def at(c: FloatArray) -> tuple[FloatArray, FloatArray]:
        level, error = np.zeros(c.size), np.zeros(c.size)
        for member, weight in zip(members, share, strict=True):
            if weight > 0.0:
                one, other = member.at_slope(c)
                level += weight * one
                error += weight * other
        return level, error

    low, high = np.full(alpha.size, -1.0), np.full(alpha.size, 1.0)
    while True:  # α(c) falls from 1 to 0
        need_low, need_high = at(low)[0] < alpha, at(high)[0] > alpha
        need_low &= low > -LARGEST
        need_high &= high < LARGEST
        if not (need_low.any() or need_high.any()):
            break
        low[need_low] *= 4.0
        high[need_high] *= 4.0
    inside = (alpha > 0.0) & (alpha < 1.0)

    def excess(c: FloatArray) -> FloatArray:
        return np.asarray(fn.log(np.maximum(at(c)[0], 1e-320)) - fn.log(alpha[inside]))

    high[inside] = falling_root(excess, low[inside], high[inside])
    level, error = at(high)
    # value of the tangent at ``high``, which is that of the function up to a rounding of c; where
    # α(c) jumps, the tangent is a piece of the function
    result = error + fn.exp(np.clip(high, -700.0, 700.0)) * (level - alpha)
    result = np.where(alpha == 0.0, at(np.full(alpha.size, LARGEST))[1], result)
    return np.clip(np.where(alpha == 1.0, 0.0, result), 0.0, 1.0 - alpha)


def stochastic_composition_over(
    family: Callable[[float], TradeOffFunction],
    distribution: Distribution,
    alpha: float | npt.ArrayLike,
) -> Any:
    """Stochastic composition of a parametric family whose parameter is random.

    Parameters
    ----------
    family : callable
        Takes the parameter and returns a trade-off function.
    distribution : frozen distribution
        Law of the parameter, with ``ppf`` and ``isf`` as in ``scipy.stats``; continuous.
    alpha : array_like
        Global false positive rate, in [0, 1].

    Returns
    -------
    float or ndarray of the shape of ``alpha``
        An estimate by Gauss-Legendre quadrature over the quantiles, on panels that shrink towards
        both ends; two orders agree to 1e-8.

    Raises
    ------
    ValueError
        For an argument outside its domain.
    AccuracyError
        If the two orders do not agree.

    Examples
    --------
    Records whose susceptibility K has the χ² law of independent gradient coordinates:

    >>> import pyengine as pe
    >>> from scipy import stats
    >>> family = lambda k: pe.membership.NoisySGDStep(500, 650, k)
    >>> round(pe.membership.stochastic_composition_over(family, stats.chi2(650), 0.1), 6)
    0.556186
    """
    levels = checks.real_array("alpha", alpha, 0.0, 1.0)
    check, value = (
        _composed(*_quadrature(family, distribution, nodes), levels.ravel()) for nodes in NODES
    )
    with np.errstate(divide="ignore", invalid="ignore"):
        difference = np.where(value == check, 0.0, np.abs(check / value - 1.0))
    if np.any(difference > AGREEMENT):
        raise AccuracyError(
            f"two quadratures over the distribution differ by {float(difference.max()):.3g}, "
            "relative; is the distribution continuous, and the family smooth in its parameter?"
        )
    value = value.reshape(levels.shape)
    return value if levels.shape else float(value)


def _quadrature(
    family: Callable[[float], TradeOffFunction], distribution: Distribution, nodes: int
) -> tuple[list[TradeOffFunction], FloatArray]:
    """Members at quantiles of the distribution, with their weights."""
    points, weights = np.polynomial.legendre.leggauss(nodes)
    edges = np.concatenate([[0.0], 0.5 ** np.arange(PANELS, 0, -1.0)])
    width = np.diff(edges)[:, None]
    tail = (edges[:-1, None] + 0.5 * width * (points + 1.0)).ravel()
    share = (0.5 * width * weights).ravel()
    quantiles = Guarded(distribution.ppf), Guarded(distribution.isf)
    parameters = np.concatenate([quantile(tail) for quantile in quantiles])
    return _members(Guarded(family)(float(x)) for x in parameters), np.concatenate([share, share])


def worst_case(
    functions: Sequence[TradeOffFunction | Callable[[FloatArray], npt.ArrayLike]],
    alpha: float | npt.ArrayLike,
) -> Any:
    """A trade-off function below all stochastic compositions of a family.

    Parameters
    ----------
    functions : sequence of trade-off functions
        As in `stochastic_composition`.
    alpha : array_like
        False positive rate, in [0, 1].

    Returns
    -------
    float or ndarray of the shape of ``alpha``
        The lower convex hull of the members: the largest convex function below all of them, and so
        below every composition with any weights (Theorem D.2).  If one member is the smallest, such
        as the step of largest susceptibility, it is that member.

    References
    ----------
    T. Leemann, M. Pawelczyk, G. Kasneci, Gaussian Membership Inference Privacy (2023), Theorem D.2.

    Examples
    --------
    >>> import pyengine as pe
    >>> family = [pe.membership.GaussianTradeOff(mu) for mu in (0.5, 2.0)]
    >>> round(pe.membership.worst_case(family, 0.05), 6)
    0.36124
    """
    members = _members(functions)
    levels = checks.real_array("alpha", alpha, 0.0, 1.0)
    flat = levels.ravel()

    def lowest(c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The point of the member whose tangent of slope -e^c lies lowest."""
        pairs = [member.at_slope(c) for member in members]
        weight = fn.exp(np.minimum(c, 0.0)), fn.exp(np.minimum(-c, 0.0))
        heights = np.array([weight[0] * a + weight[1] * b for a, b in pairs])
        first = np.argmin(heights, axis=0)[None]
        level, error = (
            np.take_along_axis(np.array(x), first, 0)[0] for x in zip(*pairs, strict=True)
        )
        return level, error

    class _Lowest:
        def __call__(self, alpha: float | npt.ArrayLike) -> Any:
            raise NotImplementedError

        def at_slope(self, c: FloatArray) -> tuple[FloatArray, FloatArray]:
            return lowest(c)

    value = _composed([_Lowest()], np.ones(1), flat).reshape(levels.shape)
    return value if levels.shape else float(value)
