"""Mechanisms given by bounds on their Rényi divergences, which add up in compositions."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any

from pyengine._support import checks
from pyengine.mechanisms.core import Step
from pyengine.mechanisms.words import Words, number_in_words

__all__ = ["RenyiCurve", "ZeroConcentrated"]

MOST_ORDERS = 10_000


@dataclass(frozen=True, init=False, repr=False)
class RenyiCurve(Step):
    """Any mechanism whose Rényi divergences are bounded at given orders.

    Parameters
    ----------
    orders : sequence of float
        Orders α > 1, finite.
    values : sequence of float
        Upper bounds of the Rényi divergences at these orders, in both directions; >= 0, and
        infinite where none is known.
    delta : float or exact number
        Probability, in [0, 1], with which the bounds may fail and everything may be revealed.

    Raises
    ------
    ValueError
        For arguments outside their domains.

    Notes
    -----
    Its pair is a uniform law and the law with the optimal trade-off function of the curve: the laws
    of any mechanism with these divergences are harder to tell apart, and at each level two
    Bernoulli laws attain it.  A composition adds up all its curves, `ZeroConcentrated` included, to
    **one curve** at the union of their orders (between two orders of a curve, its divergence times
    α - 1 is convex); that curve is one factor beside all other steps.  Answers are upper bounds of
    what such a mechanism leaks; they join the profile of the pair by chords, which add less than
    1e-4 of δ (docs, theory/curves).

    References
    ----------
    I. Mironov, Rényi Differential Privacy (2017), arXiv:1702.07476; the optimal trade-off function:
    arXiv:2602.04562.

    Examples
    --------
    >>> import pyengine as pe
    >>> curve = pe.RenyiCurve([1.5, 2, 4, 8, 16], [0.015, 0.02, 0.04, 0.08, 0.16])
    >>> f"{pe.epsilon(curve.composed(10), 1e-5):.3f}"
    '2.014'
    >>> f"{pe.epsilon(curve.composed(10) + pe.GaussianMechanism(4.0), 1e-5):.2f}"
    '2.26'
    """

    orders: tuple[float, ...]
    values: tuple[float, ...]
    delta: checks.Number = 0.0

    def __init__(self, orders: Any, values: Any, delta: Any = 0.0) -> None:
        alphas = [checks.real("orders", x) for x in checks.listed("orders", orders)]
        costs = [checks.real("values", x) for x in checks.listed("values", values)]
        if not alphas or len(alphas) != len(costs):
            raise ValueError(
                f"values must have one entry for each of at least one order, got {len(costs)} for "
                f"{len(alphas)}"
            )
        if len(alphas) > MOST_ORDERS:
            raise ValueError(f"orders must be at most {MOST_ORDERS:,}, got {len(alphas):,}")
        if not all(1.0 < x < math.inf for x in alphas):
            raise ValueError(f"orders must be finite numbers above 1, got {checks.shown(orders)}")
        if not all(x >= 0.0 for x in costs):
            raise ValueError(f"values must be >= 0, got {checks.shown(values)}")
        least: dict[float, float] = {}
        for alpha, cost in zip(alphas, costs, strict=True):
            least[alpha] = min(cost, least.get(alpha, math.inf))
        rows = sorted(least.items())
        vars(self).update(
            orders=tuple(alpha for alpha, _ in rows),
            values=tuple(cost for _, cost in rows),
            delta=checks.probability("delta", delta),
        )

    def own_words(self) -> Words:
        """Label: the orders; neighbours are those whose divergences were bounded."""
        first, last = self.orders[0], self.orders[-1]
        least, most = number_in_words(first), number_in_words(last)
        between = f" from {least} to {most}" if first < last else f" {least}"
        several = "order" if first == last else f"{len(self.orders):,} orders"
        name = f"any mechanism with bounded Rényi divergences of {several}{between}"
        hidden = ("orders", "values", *(("delta",) if self.delta == 0 else ()))
        return _given(name, hidden, super().own_words())


def _given(name: str, hidden: tuple[str, ...], words: Words) -> Words:
    return words._replace(name=name, neighbours="given", hidden=hidden, known="upper bound")


@dataclass(frozen=True, init=False, repr=False)
class ZeroConcentrated(Step):
    """Any mechanism of zero-concentrated differential privacy: D_α <= ξ + α ρ for all α > 1.

    Parameters
    ----------
    rho, xi : float or exact number
        ρ and ξ, in [0, ∞).
    delta : float or exact number
        In [0, 1]; above 0, the bounds hold for both laws given events of probability 1 - δ
        (δ-approximate zero-concentrated differential privacy).

    Raises
    ------
    ValueError
        For arguments outside their domains.

    Notes
    -----
    As `RenyiCurve`, with bounds at all orders.  Gaussian noise of multiplier σ has ρ = 1/(2σ²) and
    leaks less than that implies: compose `GaussianMechanism` where the noise is known.

    References
    ----------
    M. Bun, T. Steinke, Concentrated Differential Privacy: Simplifications, Extensions, and Lower
    Bounds (2016), arXiv:1605.02065, Definitions 1.1 and 8.1; the optimal trade-off function:
    arXiv:2602.04562.

    Examples
    --------
    >>> import pyengine as pe
    >>> ten = pe.ZeroConcentrated("1/200").composed(10)
    >>> round(pe.epsilon(ten, 1e-5), 4), round(pe.epsilon(pe.ZeroConcentrated("1/20"), 1e-5), 4)
    (1.3081, 1.3081)
    >>> round(pe.epsilon(pe.GaussianMechanism(10.0).composed(10), 1e-5), 4)
    1.1994
    """

    rho: checks.Number
    xi: checks.Number = 0.0
    delta: checks.Number = 0.0

    def __init__(self, rho: Any, xi: Any = 0.0, delta: Any = 0.0) -> None:
        vars(self).update(
            rho=checks.non_negative("rho", rho),
            xi=checks.non_negative("xi", xi),
            delta=checks.probability("delta", delta),
        )

    def own_words(self) -> Words:
        """Label: both parameters; neighbours are those for which they were proven."""
        name = f"any {number_in_words(self.rho)}-zCDP mechanism"
        if self.delta:
            name = f"{name} but for probability {number_in_words(self.delta)}"
        hidden = ("rho", "delta", *(("xi",) if self.xi == 0 else ()))
        return _given(name, hidden, super().own_words())
