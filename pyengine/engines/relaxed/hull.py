"""Lower convex hull of a trade-off function j and its inverse, for laws of a distance.

The minimum of β + e^c α over j is s(c) = Q(L <= c) + e^c P(L > c), and e^c s(-c) over its inverse.
A point of either function is on the hull if its tangent stays below the other function.  Where
neither is, the hull is a line that touches both, with a slope at which both minima are equal.  One
such slope is -1; Laplace laws on a sample have others.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyengine.engines.relaxed.core import ROUNDING, Errors, FloatArray, MagnitudePair
from pyengine.numerics import functions as fn
from pyengine.numerics.bracketing import bisected

__all__ = ["hull"]

HALVINGS = 60
LARGEST = 1e9  # log of a slope beyond which one error is 0 or 1
NEAR_0 = 1e-9  # least |c| of a tangent other than that of slope -1


def _log_supports(pair: MagnitudePair, c: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Logs of the minimum of β + e^c α over j and over its inverse."""
    plus, minus = (pair.tails(np.clip(x, pair.lowest, pair.highest)) for x in (c, -c))
    # beyond the support everything lies on one side
    with np.errstate(under="ignore", over="ignore", invalid="ignore"):
        forward = fn.logaddexp(plus.q_below, c + plus.p_above)
        backward = fn.logaddexp(minus.p_above, c + minus.q_below)
    forward = np.where(c >= pair.highest, 0.0, np.where(c <= pair.lowest, c, forward))
    backward = np.where(-c >= pair.highest, c, np.where(-c <= pair.lowest, 0.0, backward))
    return forward, backward


def _excess(pair: MagnitudePair, c: FloatArray) -> FloatArray:
    """Log of the ratio of both minima: > 0 if the tangent of j of slope -e^c is the lower one."""
    forward, backward = _log_supports(pair, c)
    return backward - forward


def hull(pair: MagnitudePair, alpha: FloatArray, first: Errors, second: Errors) -> Errors:
    """Return the errors on the hull from those of T(P, Q) and T(Q, P) at levels in [0, 1].

    The smaller of both where it is on the hull, else that of the common tangent.
    """
    slopes = pair.loss(alpha), -pair.loss(second.beta)
    c = [np.clip(slope, -LARGEST, LARGEST) for slope in slopes]
    on_first = _excess(pair, c[0]) >= -ROUNDING
    on_second = _excess(pair, c[1]) <= ROUNDING
    take_second = (second.log_beta < first.log_beta) & (on_second | ~on_first)
    take_second |= on_second & ~on_first
    result = Errors(*(np.where(take_second, b, a) for a, b in zip(first, second, strict=True)))
    # between its touching points (a, b) and (b, a), the line of slope -1 is the hull
    tails = pair.tails(np.zeros(1))
    ends = fn.exp([tails.p_above[0], tails.q_below[0]])
    inside = (alpha > 0.0) & (alpha < 1.0)
    middle = inside & (alpha >= ends.min()) & (alpha <= ends.max())
    other = inside & ~(on_first | on_second | middle)
    if other.any():
        low, high = (f(c[0][other], c[1][other]) for f in (np.minimum, np.maximum))
        # tangents left of the line of slope -1 have c > 0, those right of it c < 0
        left = alpha[other] < ends.min()
        low = np.where(left, np.maximum(low, NEAR_0), low)
        high = np.where(left, high, np.minimum(high, -NEAR_0))
        _put(result, other, _on_tangent(pair, alpha[other], _crossing(pair, low, high)))
    if middle.any():
        _put(result, middle, _on_tangent(pair, alpha[middle], np.zeros(int(middle.sum()))))
    return result


def _put(result: Errors, where: npt.NDArray[np.bool_], part: Errors) -> None:
    for array, values in zip(result, part, strict=True):
        array[where] = values


def _crossing(pair: MagnitudePair, low: FloatArray, high: FloatArray) -> FloatArray:
    """A c at which both tangents coincide, by bisection; an end if there is none."""
    sign = np.sign(_excess(pair, low))
    ends = bisected(
        lambda c: np.sign(_excess(pair, c)) == sign, low, np.maximum(low, high), rounds=HALVINGS
    )
    return np.asarray(0.5 * (ends[0] + ends[1]))


def _on_tangent(pair: MagnitudePair, alpha: FloatArray, c: FloatArray) -> Errors:
    """Errors at α on the lower of both tangents of slope -e^c; no cancellation if they coincide."""
    forward, backward = _log_supports(pair, c)
    plus, minus = (pair.tails(np.clip(x, pair.lowest, pair.highest)) for x in (c, -c))
    with np.errstate(under="ignore", over="ignore", invalid="ignore"):
        # if both tangents are one line, use the point of contact right of α
        one = np.abs(forward - backward) <= ROUNDING
        first = np.where(one, fn.exp(plus.p_above) >= alpha, forward <= backward)
        touch = fn.exp(np.where(first, plus.p_above, minus.q_below))
        beta = fn.exp(np.where(first, plus.q_below, minus.p_above))
        beta = beta + fn.exp(np.minimum(c, 700.0)) * (touch - alpha)
        gamma = -fn.expm1(np.minimum(forward, backward)) + fn.exp(np.minimum(c, 700.0)) * alpha
    beta = np.clip(beta, 0.0, 1.0 - alpha)
    gamma = np.clip(gamma, alpha, 1.0)
    with np.errstate(divide="ignore"):
        log_beta = np.where(gamma < 0.5, fn.log1p(-np.minimum(gamma, 0.5)), fn.log(beta))
    return Errors(beta, gamma, log_beta)
