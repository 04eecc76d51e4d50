"""Optimal composition of exponential mechanisms that are fixed beforehand.

Each step has loss t with A-probability a = (e^{-t} - e^{-w})/(1 - e^{-w}) and loss t - w otherwise.
With k steps of one t in [0, w], δ(ε) is the largest over l < k of
F_l(t) = P(Bin(k, 1 - a e^t) <= l) - e^ε P(Bin(k, 1 - a) <= l), and F_l is largest over t at
t_l = (ε + (l + 1) w)/(k + 1), if that is below w; for a larger l nothing exceeds ε.

Sums have positive terms only, so that they keep their digits: with s = w - t_l and c = 1 - a e^t,

    δ = Σ_{i <= l} P(Bin(k, c) = i) (1 - e^{-s - (l - i) w}),
    1 - δ = Σ_{i > l} P(Bin(k, c) = i) + Σ_{i <= l} P(Bin(k, c) = i) e^{-s - (l - i) w}.

s = ((k - l) w - ε)/(k + 1) is formed from w in two parts, whose multiples are exact: its error is a
few units, and so are those of c, 1 - c and the losses above ε.  The error of a term is some units
of log C(k, i) and of its own logarithm, plus that of c times the distance of i from its mean in
standard deviations: 1e-11 at most.  Terms that are left out of a sum are below 1e-15 of it.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine.numerics import functions as fn
from pyengine.numerics.bracketing import falling_bracket

__all__ = ["bounded_range_delta", "bounded_range_epsilon"]

FloatArray = npt.NDArray[np.float64]

MOST_STEPS = 5_000
BLOCK = 64  # rows l at once, in which about the same terms matter
REACH, ROOM = (
    10.0,
    36.0,
)  # standard deviations plus terms, beyond which the mass is below e^{-48} (Bernstein)
LOG_HALF = -0.7  # log δ from which on 1 - δ is computed
CLOSE = 1e-13  # width of the last bracket, relative to the largest loss
SPLIT = 2.0**27 + 1.0  # Dekker's constant, to split a double into halves
LARGEST = 700.0
SMALL, UP = 1e-250, 200  # for a smaller range, range and ε are scaled by 2^200, and so is δ


def bounded_range_delta(epsilon: Any, *, range_per_step: Any, steps: int) -> Any:
    """Optimal δ of mechanisms of bounded range that are composed non-adaptively.

    Parameters
    ----------
    epsilon : array_like
        In [0, ∞); from ``range_per_step * steps`` on δ is 0.
    range_per_step : float
        Bounded range of each mechanism, in (0, 700]: that of the exponential mechanism with weights
        e^{ε q/(2Δ)}, q of sensitivity Δ, is ε.
    steps : int
        Number of mechanisms, in [1, 5000], which are chosen before any of them runs.

    Returns
    -------
    float or ndarray of the shape of ``epsilon``
        The smallest δ that holds for all such mechanisms, in both orders of neighbours; an estimate
        with a relative error of 1e-11, measured against exact sums, or 5e-324.  If later mechanisms
        depend on earlier releases this is *no* guarantee: ask `pyengine.delta` for
        `pyengine.ExponentialMechanism`, composed.

    Raises
    ------
    ValueError
        For an argument outside its domain.

    References
    ----------
    J. Dong, D. Durfee, R. Rogers, Optimal Differential Privacy Composition for Exponential
    Mechanisms and the Cost of Adaptivity (2019), arXiv:1909.13830, Theorem 3.

    Examples
    --------
    >>> import pyengine as pe
    >>> beforehand = pe.duality.bounded_range_delta(0.5, range_per_step=0.1, steps=20)
    >>> adaptive = pe.delta(pe.ExponentialMechanism("0.1").composed(20), 0.5)
    >>> pure = pe.delta(pe.GenericMechanism("0.1").composed(20), 0.5)
    >>> f"{beforehand:.8f} {adaptive:.7f} {pure:.8f}"
    '0.00131007 0.0031680 0.03825557'
    """
    at = checks.real_array("epsilon", epsilon, 0.0, math.inf)
    profile = _Profile(range_per_step, steps)
    values = np.array([profile.delta(float(e)) for e in at.ravel()]).reshape(at.shape)
    return values if at.shape else float(values)


def bounded_range_epsilon(delta: Any, *, range_per_step: Any, steps: int) -> Any:
    """Optimal ε of mechanisms of bounded range that are composed non-adaptively.

    Parameters
    ----------
    delta : array_like
        In [0, 1].
    range_per_step, steps
        As in `bounded_range_delta`, whose inverse this is.

    Returns
    -------
    float or ndarray of the shape of ``delta``
        An estimate; absolute error below 1e-10 times ``range_per_step * steps``, which is the
        answer where δ is 0.

    Examples
    --------
    >>> import pyengine as pe
    >>> round(pe.duality.bounded_range_epsilon(1e-6, range_per_step=0.1, steps=100), 6)
    2.246026
    """
    goals = checks.real_array("delta", delta, 0.0, 1.0)
    profile = _Profile(range_per_step, steps)
    values = np.array([profile.epsilon(float(d)) for d in goals.ravel()]).reshape(goals.shape)
    return values if goals.shape else float(values)


class _Profile:
    """Logarithms of δ and 1 - δ for one range and number of steps, and the inverse."""

    def __init__(self, range_per_step: Any, steps: Any) -> None:
        self._width = float(checks.positive("range_per_step", range_per_step))
        self._steps = k = checks.count("steps", steps, least=1, most=MOST_STEPS)
        if self._width > LARGEST:
            raise ValueError(
                f"range_per_step must be at most {LARGEST:g}, got {checks.shown(range_per_step)}"
            )
        choices = [1]
        for i in range(k):
            choices.append(choices[-1] * (k - i) // (i + 1))
        # logs of the exact integers: differences of lgamma would lose digits
        self._choices = np.array([fn.log(choice) for choice in choices])

    def delta(self, epsilon: float) -> float:
        """The δ of an ε."""
        log_delta = self._log_delta(epsilon)
        # above one half from log(1 - δ), so that 1 - δ keeps its digits
        return fn.exp(log_delta) if log_delta < LOG_HALF else -fn.expm1(self._log_rest(epsilon))

    def epsilon(self, delta: float) -> float:
        """The ε of a δ."""
        end = self._width * self._steps
        if delta == 0.0:
            return end
        if delta == 1.0:
            return 0.0

        def excess(epsilon: FloatArray) -> FloatArray:
            at = float(epsilon[0])
            if delta <= 0.5:
                return np.array([self._log_delta(at) - fn.log(delta)])
            return np.array([fn.log1p(-delta) - self._log_rest(at)])

        low, high = np.array([0.0]), np.array([end])
        if excess(low)[0] <= 0.0:
            return 0.0
        return float(falling_bracket(excess, low, high, room=CLOSE * end)[1][0])

    def _log_delta(self, epsilon: float) -> float:
        """Logarithm of δ; -inf from the largest loss on."""
        scale = 2.0**UP if self._width < SMALL else 1.0
        sums = [
            self._summed(block, block.c, 0.0, block.row, lambda loss: fn.log(-fn.expm1(-loss)))
            for block in self._blocks(epsilon * scale, self._width * scale)
        ]
        return max((float(part.max()) for part in sums), default=-math.inf) - fn.log(scale)

    def _log_rest(self, epsilon: float) -> float:
        """Logarithm of 1 - δ."""
        least = 0.0
        for block in self._blocks(epsilon, self._width):
            above = self._summed(block, block.c, block.row + 1.0, self._steps, np.zeros_like)
            below = self._summed(block, block.tilted, 0.0, block.row, np.negative)
            least = min(least, float(fn.logaddexp(above, below).min()))
        return least

    def _blocks(self, epsilon: float, width: float) -> Iterator[_Block]:
        """The rows l with losses above ε, in blocks."""
        k = self._steps
        rows = np.arange(k, dtype=np.float64)
        high = width * SPLIT - (width * SPLIT - width)  # 26 bits: its multiples are exact
        # the difference is rounded once if it is large, and exact if it cancels
        s = ((k - rows) * high - epsilon + (k - rows) * (width - high)) / (k + 1.0)
        t = (epsilon + (rows + 1.0) * width) / (k + 1.0)
        for start in range(0, int((s > 0.0).sum()), BLOCK):  # s falls
            part = np.flatnonzero(s[start : start + BLOCK] > 0.0) + start
            yield _Block(rows[part], s[part], t[part], width)

    def _summed(
        self, block: _Block, share: FloatArray, first: Any, last: Any, gains: Any
    ) -> FloatArray:
        """Logarithms of sums over i from ``first`` to ``last`` of each row.

        Terms are largest near i = ``share`` k; ``gains`` maps losses above ε to logs of factors.
        """
        k = self._steps
        reach = REACH * np.sqrt(k * share * (1.0 - share)) + ROOM
        middle = np.clip((k + 1.0) * share, first, last)
        begin = max(float(np.min(first)), math.floor((middle - reach).min()))
        end = min(float(np.max(last)), math.ceil((middle + reach).max()))
        i = np.arange(begin, end + 1.0)
        loss = block.s[:, None] + (block.row[:, None] - i) * block.width
        outside = (i < np.reshape(first, (-1, 1))) | (i > np.reshape(last, (-1, 1)))
        logs = self._choices[i.astype(int)] + i * block.log_c[:, None]
        logs += (k - i) * block.log_rest[:, None] + gains(np.where(outside, 1.0, loss))
        logs = np.where(outside, -np.inf, logs)
        top = logs.max(axis=1)
        return np.asarray(top + fn.log(fn.exp(logs - top[:, None]).sum(axis=1)))


class _Block:
    """Rows l with s and c of each, c of the tilted law, and logarithms of c and 1 - c."""

    def __init__(self, row: FloatArray, s: FloatArray, t: FloatArray, width: float) -> None:
        self.row, self.s, self.width = row, s, width
        whole = -fn.expm1(-width)
        self.tilted = np.minimum(-fn.expm1(-t) / whole, 1.0)  # 1 - a
        self.c, rest = fn.exp(-s) * self.tilted, -fn.expm1(-s) / whole
        # both from the smaller one, so that c and 1 - c sum to 1 whatever its error
        small = self.c < 0.5
        less = np.where(small, self.c, rest)
        self.log_c = np.where(small, fn.log(less), fn.log1p(-less))
        self.log_rest = np.where(small, fn.log1p(-less), fn.log(less))
