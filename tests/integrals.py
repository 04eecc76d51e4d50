"""Truths by integrals in 30 digits: ratios of one step, their sums, and checks of all questions."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any, NamedTuple

import mpmath as mp

import pyengine as pe


def double_exponential(spacing: float, end: float) -> list[tuple[Any, Any]]:
    """Nodes and weights of the tanh-sinh rule on [-1, 1], which tolerates singular ends."""
    with mp.workdps(40):
        half, number = mp.pi / 2, round(end / spacing)
        found = []
        for k in range(-number, number + 1):
            t = k * mp.mpf(spacing)
            far = half * mp.sinh(t)
            found.append((mp.tanh(far), spacing * half * mp.cosh(t) / mp.cosh(far) ** 2))
        return found


NODES = double_exponential(0.125, 3.5)


class Ratio(NamedTuple):
    """The likelihood ratio of one step without the record: atoms, densities of its log, corners.

    ``above`` gives E (R - c)+ and P(R > c) at a level c.
    """

    atoms: list[tuple[Any, Any]]
    pieces: list[tuple[list[Any], Callable[[Any], Any]]]
    corners: list[Any]
    above: Callable[[Any], tuple[Any, Any]]


def of_laplace(mu: Any) -> Ratio:
    """Noise 1/μ: atoms at both ends, where the output is beyond both locations."""
    low, high = mp.exp(-mu), mp.exp(mu)

    def above(c: Any) -> tuple[Any, Any]:
        if c <= low:
            return 1 - c, mp.mpf(1)
        if c >= high:
            return mp.mpf(0), mp.mpf(0)
        z = (mp.log(c) + mu) / 2
        mass = mp.exp(-z) / 2
        return 1 - mp.exp(z - mu) / 2 - c * mass, mass

    def density(x: Any) -> Any:
        return mp.exp(-(x + mu) / 2) / 4

    atoms = [(low, mp.mpf(1) / 2), (high, mp.exp(-mu) / 2)]
    return Ratio(atoms, [([-mu, mu], density)], [low, high], above)


def of_range(epsilon: Any) -> Ratio:
    """Bounded range: losses between both ends have densities e^(-L/2) and e^(L/2)."""
    low, high = mp.exp(-epsilon), mp.exp(epsilon)
    whole = 4 * mp.sinh(epsilon / 2)

    def above(c: Any) -> tuple[Any, Any]:
        if c <= low:
            return 1 - c, mp.mpf(1)
        if c >= high:
            return mp.mpf(0), mp.mpf(0)
        mass = 2 * (1 / mp.sqrt(c) - 1 / mp.sqrt(high)) / whole
        return 2 * (mp.sqrt(high) - mp.sqrt(c)) / whole - c * mass, mass

    return Ratio([], [([-epsilon, epsilon], lambda x: mp.exp(-x / 2) / whole)], [low, high], above)


def of_response_and_gaussian(mu: Any) -> Ratio:
    """Randomized response that is true three times in four, with Gaussian noise 1/μ."""
    rows = [(mp.mpf(3) / 4, mp.mpf(1) / 3), (mp.mpf(1) / 4, mp.mpf(3))]

    def above(c: Any) -> tuple[Any, Any]:
        if c <= 0:
            return 1 - c, mp.mpf(1)
        value = tail = mp.mpf(0)
        for mass, r in rows:
            z = (mp.log(c / r)) / mu
            without, given = mp.ncdf(-z - mu / 2), mp.ncdf(-z + mu / 2)
            value += mass * (r * given - c * without)
            tail += mass * without
        return value, tail

    pieces = []
    for mass, r in rows:
        middle = mp.log(r) - mu * mu / 2
        knots = [middle + mu * (k - 12) for k in range(25)]

        def density(x: Any, mass: Any = mass, middle: Any = middle) -> Any:
            return mass * mp.npdf(x, middle, mu)

        pieces.append((knots, density))
    return Ratio([], pieces, [mp.mpf(0)], above)


def of_sum(one: Ratio, rest: Ratio) -> Ratio:
    """The sum of a ratio and of others, by the double-exponential rule between all corners."""

    def above(c: Any) -> tuple[Any, Any]:
        value = tail = mp.mpf(0)

        def add(weight: Any, ratio: Any) -> None:
            nonlocal value, tail
            more, mass = rest.above(c - ratio)
            value, tail = value + weight * more, tail + weight * mass

        for ratio, mass in one.atoms:
            add(mass, ratio)
        for ends, density in one.pieces:
            inner = [mp.log(c - x) for x in rest.corners if x < c]
            knots = sorted([*ends, *(x for x in inner if ends[0] < x < ends[-1])])
            for low, high in itertools.pairwise(knots):
                middle, half = (low + high) / 2, (high - low) / 2
                for node, weight in NODES:
                    x = middle + half * node
                    add(half * weight * density(x), mp.exp(x))
        return value, tail

    corners = sorted({x + y for x in one.corners for y in rest.corners})
    return Ratio([], [], corners, above)


UNSURE = 1e-20  # error of differences of 25 digits, as beyond the largest loss, where they are 0


def check_both_orders(
    step: pe.Mechanism,
    epsilon: float,
    above: Callable[[Any], tuple[Any, Any]],
    width: float,
    *,
    slopes: int = 3,
) -> None:
    """All questions at one ε, for a ratio dP/dQ with known E_Q (R - c)+ and Q(R > c).

    ``slopes`` 1 asks only those at e^ε, 2 only those at e^-ε.
    """

    def within(found: Any, truth: Any) -> None:
        assert mp.mpf(found.lower) <= truth <= mp.mpf(found.upper)
        assert found.upper - found.lower <= width * found.upper + 1e-15

    def check(order: str, delta: Any, slope: Any) -> None:
        """δ(ε), and ε at a double next to it, along the tangent of the profile."""
        if delta < UNSURE:
            assert pe.delta(step, epsilon, adjacency=order, bounds=True).lower <= UNSURE
            return
        within(pe.delta(step, epsilon, adjacency=order, bounds=True), delta)
        near = float(delta)
        there = epsilon + (delta - mp.mpf(near)) / slope
        within(pe.epsilon(step, near, adjacency=order, bounds=True), there)

    def check_tests(order: str, level: Any, power: Any, slope: Any) -> None:
        """γ and β at a double next to a level, along the tangent of the trade-off function."""
        if level < UNSURE:
            return
        alpha = float(level)
        gamma = power + slope * (mp.mpf(alpha) - level)
        within(pe.gamma_bound(step, alpha, adjacency=order, bounds=True), gamma)
        within(pe.trade_off(step, alpha, adjacency=order, bounds=True), 1 - gamma)

    high, low = mp.exp(mp.mpf(epsilon)), mp.exp(-mp.mpf(epsilon))
    if slopes & 1:
        value, tail = above(high)
        check("remove", value, high * tail)
        check_tests("add", tail, value + high * tail, high)
    if slopes & 2:
        value, tail = above(low)
        # E (1 - e^ε R)+ = e^ε E (e^-ε - R)+, and the mean of R is 1
        below = 1 - value - low * tail
        check("add", (low - 1 + value) / low, below / low)
        check_tests("remove", below, 1 - tail, high)
