"""Trade-off curves at and next to the corners that atoms make, against exact values.

``python tools/campaigns.py levels --answers 5000`` prints for each kind of problem how many levels
were asked, how many brackets miss the truth and how wide they are; test_exact_levels.py runs fewer.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import mpmath
import numpy as np
import outcomes
from outcomes import Outcomes, Points, chain, corners, height, number, product, reversed_

import pyengine as pe

DIGITS = 80
LEAST = 1e-40  # least level, as masses have that many digits


class Case(NamedTuple):
    """A level, and both errors of the best test there."""

    kind: str
    mechanism: pe.Mechanism
    adjacency: str
    method: str
    alpha: float
    beta: Any


def near(rng: np.random.Generator, level: Any) -> float:
    """A double at a level or next to it: by ulps, or by up to 1e-12 of its smaller side."""
    alpha = float(level)
    shift = rng.integers(-3, 4) if rng.random() < 0.5 else 0
    for _ in range(abs(int(shift))):
        alpha = math.nextafter(alpha, math.copysign(math.inf, shift))
    if rng.random() < 0.5:
        alpha += rng.choice([-1, 1]) * 10.0 ** rng.uniform(-16, -12) * min(alpha, 1.0 - alpha)
    return min(max(alpha, 0.0), 1.0)


# ---- outcomes that can be listed


def pair(rng: np.random.Generator) -> tuple[pe.Mechanism, Outcomes]:
    """A finite pair whose ratios are very close together or far apart."""
    size, depth = int(rng.integers(2, 6)), rng.choice([1.0, 6.0, 30.0])
    masses = []
    for _ in range(2):
        weights = [Fraction(float(10.0 ** -rng.uniform(0, depth))) for _ in range(size)]
        if rng.random() < 0.3:
            weights[int(rng.integers(size))] = Fraction(0)
        masses.append([w / sum(weights) for w in weights])
    p, q = masses
    if not any(a and b for a, b in zip(p, q, strict=True)):
        return pair(rng)
    return pe.from_probabilities(p, q), list(zip(p, q, strict=True))


def response(rng: np.random.Generator) -> tuple[pe.Mechanism, Outcomes]:
    truth, categories = Fraction(float(rng.uniform(0.3, 0.999))), int(rng.integers(2, 6))
    step: pe.Mechanism = pe.RandomizedResponse(truth, categories)
    return perhaps_sampled(rng, step, outcomes.response(truth, categories))


def generic(rng: np.random.Generator) -> tuple[pe.Mechanism, Outcomes]:
    epsilon, delta = float(10.0 ** rng.uniform(-2, 1.5)), float(10.0 ** -rng.uniform(1, 12))
    return pe.GenericMechanism(epsilon, delta), outcomes.generic(epsilon, delta)


def discrete(rng: np.random.Generator) -> tuple[pe.Mechanism, Outcomes]:
    noise, shift = float(rng.uniform(0.3, 1.0)), int(rng.integers(1, 4))
    scale = mpmath.mpf(noise) * shift
    if rng.random() < 0.5:
        q = mpmath.exp(-1 / scale)
        total = (1 + q) / (1 - q)
        inner = [q**k / total for k in range(1, shift)]
        ends = 1 / (1 - q) / total
        p = [ends, *inner, ends * q**shift]
        found = list(zip(p, p[::-1], strict=True))
        return perhaps_sampled(rng, pe.DiscreteLaplaceMechanism(noise, shift), found)
    reach = int(20 * scale) + shift + 2
    weight = {k: mpmath.exp(-(k**2) / (2 * scale**2)) for k in range(-2 * reach, 2 * reach + 1)}
    total = mpmath.fsum(weight.values())
    found = [(weight[k] / total, weight[k - shift] / total) for k in range(-reach, reach + 1)]
    return perhaps_sampled(rng, pe.DiscreteGaussianMechanism(noise, shift), found)


def perhaps_sampled(rng: np.random.Generator, step: Any, found: Outcomes) -> tuple[Any, Outcomes]:
    if rng.random() < 0.5:
        return step, found
    rate = float(10.0 ** -rng.uniform(0, 4))
    return step.poisson_sampled(rate), outcomes.sampled(found, Fraction(rate))


def curves_of(found: Outcomes) -> dict[str, Points]:
    """Trade-off functions of all adjacencies."""
    curves = {"add": corners(found), "remove": corners(reversed_(found))}
    return {**curves, "add_remove": chain(curves["add"] + curves["remove"])}


LISTED = {"pairs": pair, "response": response, "generic": generic, "discrete": discrete}


def listed(rng: np.random.Generator) -> Iterator[Case]:
    """Levels of a composition of steps with finitely many outcomes, in all adjacencies."""
    kind = str(rng.choice(list(LISTED)))
    most = {"pairs": 4, "response": 8, "generic": 6, "discrete": 1}[kind]
    parts = [LISTED[kind](rng) for _ in range(int(rng.integers(1, 3)))]
    steps = [int(rng.integers(1, most + 1)) for _ in parts]
    if math.prod(len(o) ** n for (_, o), n in zip(parts, steps, strict=True)) > 3000:
        parts, steps = parts[:1], [1]
    mechanism = pe.compose(*(m.composed(n) for (m, _), n in zip(parts, steps, strict=True)))
    curves = curves_of(product(*((o, n) for (_, o), n in zip(parts, steps, strict=True))))
    method = "lattice" if sum(steps) == 1 and rng.random() < 0.5 else "exact"
    for adjacency, points in curves.items():
        for _ in range(2):
            alpha = near(rng, points[int(rng.integers(len(points)))][0])
            level = Fraction(alpha)
            if not isinstance(points[-1][0], Fraction):
                level = mpmath.mpf(alpha)
                if not LEAST < level < 1:
                    continue
            yield Case(kind, mechanism, adjacency, method, alpha, height(points, level))


# ---- losses with densities


class Tail(NamedTuple):
    """Masses of A and B at losses above x (``closed``: including x), and at most x (below x)."""

    a: Any
    b: Any
    a_rest: Any
    b_rest: Any


def beside(tail: Callable[[Any, bool], Tail], c: Any, alpha: float) -> Any:
    """β at a level close to that of a threshold; None if no threshold near it has such a level."""
    level, rest = mpmath.mpf(alpha), 1 - mpmath.mpf(alpha)
    if not LEAST < level < 1:
        return None
    above, at = tail(c, False), tail(c, True)
    if above.a <= level <= at.a:
        if at.a == above.a:
            return at.b_rest
        return at.b_rest + (above.b_rest - at.b_rest) * (at.a - level) / (at.a - above.a)
    small = level < 0.5
    sign = 1 if level < above.a else -1
    start = above if sign > 0 else at

    def miss(x: Any) -> Any:
        t = start if x == c else tail(x, False)
        return t.a / level - 1 if small else 1 - t.a_rest / rest

    one, two = c, c + sign * mpmath.mpf("1e-13")
    f, g = miss(one), miss(two)
    for _ in range(40):
        if f == g:
            return None
        one, two, f = two, two - g * (two - one) / (g - f), g
        if (two - c) * sign < 0 or abs(two - c) > 1e-3:
            return None
        g = miss(two)
        if abs(g) < mpmath.mpf(10) ** -60:
            return tail(two, False).b_rest
    return None


@lru_cache(maxsize=100_000)
def _laplace_above(steps: int, mu: Any, x: Any, closed: bool) -> Any:
    """A's mass of N Laplace steps where (S + N μ) / (2 μ) > x: a mixture of uniform sums."""
    total = mpmath.mpf(0)
    for high in range(steps + 1):
        for inner in range(steps - high + 1):
            ways = math.comb(steps, high) * math.comb(steps - high, inner)
            y = x - high
            if inner == 0:
                share = mpmath.mpf(y < 0 or (closed and y == 0))
            else:
                share = mpmath.fsum(
                    (-1) ** j
                    * math.comb(inner, j)
                    * mpmath.exp(-mu * j)
                    * mpmath.gammainc(inner, mu * max(y - j, 0), regularized=True)
                    for j in range(inner + 1)
                )
            total += ways * mpmath.exp(-mu * high) * share
    return total / 2**steps


def laplace_tail(noise: float, steps: int) -> Callable[[Any, bool], Tail]:
    mu = 1 / mpmath.mpf(noise)

    def tail(x: Any, closed: bool) -> Tail:
        a = _laplace_above(steps, mu, x, closed)
        b_rest = _laplace_above(steps, mu, steps - x, not closed)
        return Tail(a, 1 - b_rest, 1 - a, b_rest)

    return tail


def laplace(rng: np.random.Generator) -> Iterator[Case]:
    """Equal Laplace steps, at atoms and between them."""
    steps, noise = int(rng.integers(1, 6)), float(10.0 ** rng.uniform(-0.5, 1))
    method = "lattice" if steps == 1 and rng.random() < 0.5 else "exact"
    tail = laplace_tail(noise, steps)
    mechanism = pe.LaplaceMechanism(noise).composed(steps)
    for _ in range(2):
        x = mpmath.mpf(int(rng.integers(0, steps + 1)))
        if rng.random() < 0.2:
            x = mpmath.mpf(rng.uniform(0, steps))
        at = tail(x, bool(rng.integers(2)))
        alpha = near(rng, at.a)
        beta = beside(tail, x, alpha)
        if beta is not None:
            adjacency = str(rng.choice(["add", "remove"]))
            yield Case("laplace", mechanism, adjacency, method, alpha, beta)


def laplace_with_response(rng: np.random.Generator) -> Iterator[Case]:
    """Laplace steps and one of randomized response: atoms at sums of losses."""
    steps, noise = int(rng.integers(1, 4)), float(10.0 ** rng.uniform(-0.5, 0.5))
    truth = Fraction(float(rng.uniform(0.51, 0.95)))
    mu, inner = 1 / mpmath.mpf(noise), laplace_tail(noise, steps)
    p, q = (mpmath.mpf(f.numerator) / f.denominator for f in (truth, 1 - truth))
    loss = mpmath.log(p / q)
    weights = [(-loss, p, q), (loss, q, p)]

    def tail(c: Any, closed: bool) -> Tail:
        parts = []
        for value, a, b in weights:
            x = (c - value) / mu / 2 + mpmath.mpf(steps) / 2
            if abs(x - mpmath.nint(x)) < mpmath.mpf(10) ** (10 - DIGITS):
                x = mpmath.nint(x)
            t = inner(x, closed)
            parts.append((a * t.a, b * t.b, a * t.a_rest, b * t.b_rest))
        return Tail(*map(mpmath.fsum, zip(*parts, strict=True)))

    mechanism = pe.LaplaceMechanism(noise).composed(steps) + pe.RandomizedResponse(truth)
    c = weights[int(rng.integers(2))][0] + (2 * int(rng.integers(0, steps + 1)) - steps) * mu
    alpha = near(rng, tail(c, bool(rng.integers(2))).a)
    beta = beside(tail, c, alpha)
    if beta is not None:
        yield Case("laplace + response", mechanism, "add", "exact", alpha, beta)


def laplace_sampled(rng: np.random.Generator) -> Iterator[Case]:
    """One Poisson-sampled Laplace step: atoms at both ends."""
    noise, rate = float(10.0 ** rng.uniform(-0.5, 1)), float(10.0 ** -rng.uniform(0.0, 4))
    p = mpmath.mpf(rate)

    def points(x: Any, closed: bool) -> Tail:
        t = laplace_tail(noise, 1)(x, closed)
        return Tail(t.a, (1 - p) * t.a + p * t.b, t.a_rest, (1 - p) * t.a_rest + p * t.b_rest)

    def mirrored(x: Any, closed: bool) -> Tail:
        t = points(1 - x, not closed)
        return Tail(t.b_rest, t.a_rest, t.b, t.a)

    mechanism = pe.LaplaceMechanism(noise).poisson_sampled(rate)
    for adjacency, tail in (("add", points), ("remove", mirrored)):
        x = mpmath.mpf(int(rng.integers(2))) if rng.random() < 0.8 else mpmath.mpf(rng.random())
        alpha = near(rng, tail(x, bool(rng.integers(2))).a)
        beta = beside(tail, x, alpha)
        if beta is not None:
            method = str(rng.choice(["exact", "lattice"]))
            yield Case("sampled Laplace", mechanism, adjacency, method, alpha, beta)


def gaussian(rng: np.random.Generator) -> Iterator[Case]:
    """One Gaussian step, Poisson-sampled or not: no atoms, all levels."""
    noise = float(10.0 ** rng.uniform(-0.7, 1.5))
    rate = 1.0 if rng.random() < 0.3 else float(10.0 ** -rng.uniform(0, 5))
    mu, p = 1 / mpmath.mpf(noise), mpmath.mpf(rate)
    z = mpmath.mpf(rng.normal() * 3 + rng.choice([0.0, float(mu)]))

    def points(z: Any, _: bool) -> Tail:
        a, b = mpmath.ncdf(-z), mpmath.ncdf(mu - z)
        x, y = mpmath.ncdf(z), mpmath.ncdf(z - mu)
        return Tail(a, (1 - p) * a + p * b, x, (1 - p) * x + p * y)

    def mirrored(z: Any, closed: bool) -> Tail:
        t = points(-z, closed)
        return Tail(t.b_rest, t.a_rest, t.b, t.a)

    mechanism = pe.dp_sgd(noise, rate, 1)
    for adjacency, tail in (("add", points), ("remove", mirrored)):
        alpha = near(rng, tail(z, False).a)
        beta = beside(tail, z, alpha)
        if beta is not None and 1e-290 < alpha < 1.0:
            yield Case("Gaussian", mechanism, adjacency, "lattice", alpha, beta)


KINDS = (listed, listed, listed, laplace, laplace_with_response, laplace_sampled, gaussian)


def cases(number: int, seed: int) -> Iterator[Case]:
    """That many levels of random mechanisms."""
    rng = np.random.default_rng(seed)
    while number > 0:
        with mpmath.workdps(DIGITS):
            found = list(KINDS[int(rng.integers(len(KINDS)))](rng))[:number]
        number -= len(found)
        yield from found


class Found(NamedTuple):
    """Whether both brackets hold the truth, their widths, and the errors of the values."""

    held: bool
    width: float  # of the narrower bracket, relative to the smaller error
    miss: float
    bounds: tuple[pe.Bounds, pe.Bounds]


def ask(case: Case) -> Found:
    options: Any = {"adjacency": case.adjacency, "method": case.method, "bounds": True}
    beta = pe.trade_off(case.mechanism, case.alpha, **options)
    gamma = pe.gamma_bound(case.mechanism, case.alpha, **options)
    with mpmath.workdps(DIGITS):
        truths = [case.beta, 1 - case.beta]
        if isinstance(case.beta, Fraction):
            truths = [number(t) for t in truths]
        held, widths, misses = True, [], []
        for bounds, truth in zip((beta, gamma), truths, strict=True):
            low, value, high = (mpmath.mpf(float(x)) for x in bounds)
            # a bound that is attained may differ from the truth by less than its digits show
            slack = mpmath.mpf(10) ** (20 - DIGITS) * (truth + (case.alpha > LEAST))
            held &= bool(low <= truth + slack and truth <= high + slack and low <= value <= high)
            if truth > 0:
                widths.append(float((high - low) / truth))
                misses.append(float(abs(value - truth) / truth))
    return Found(held, max(widths, default=0.0), max(misses, default=0.0), (beta, gamma))
