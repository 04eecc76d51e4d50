"""Conversions and older bounds by their formulas in ball arithmetic, at random inputs.

The truth shares no code with `pyengine.duality` and `pyengine.baselines`. It uses the formulas as
the papers write them, including differences that cancel, with as many digits as they need. Inverses
are judged by evaluating at the proposed answer. For each function, `CONVERSIONS` has how inputs are
drawn from its whole domain, how it is called, and how an answer is judged; the sequence of
questions is the same for the same seed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from fractions import Fraction
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import outcomes
from campaign.steps import between
from campaign.truth.law import ball, precision
from campaign.truth.lines import normal
from flint import acb, arb

import pyengine as pe
from pyengine import baselines, duality
from pyengine.gaussian_dp import least_mu

BITS = 320
LOST = arb(2) * 2**-1073  # error that results below the normal range may have


class Verdict(NamedTuple):
    """The error in units of the docstring's accuracy, and whether it is on the unsafe side."""

    error: float
    unsafe: bool


class Conversion(NamedTuple):
    """How one function is called and judged."""

    draw: Callable[[random.Random], tuple[Any, ...]]
    ask: Callable[..., Any]
    judge: Callable[..., Verdict]


def number(x: float) -> arb:
    """Return a double, or infinity, as a ball."""
    return ball(x) if math.isfinite(x) else arb("inf")


def near(value: float, truth: arb, allowed: arb) -> Verdict:
    """Verdict on an estimate."""
    return Verdict(float((number(value) - truth).abs_upper() / allowed), False)


def above(value: float, truth: arb, allowed: arb) -> Verdict:
    """Verdict on a value that is rounded up."""
    miss = number(value) - truth
    return Verdict(float(miss.abs_upper() / allowed), bool(miss < 0))


def not_above(value: float, truth: arb, allowed: arb) -> Verdict:
    """Verdict on a value that is at most a bound, except for its rounding."""
    miss = number(value) - truth
    return Verdict(max(0.0, float((miss / allowed).mid())), value < 0.0)


def below(value: float, truth: arb, allowed: arb) -> Verdict:
    """Verdict on a value that is rounded down."""
    miss = number(value) - truth
    return Verdict(float(miss.abs_upper() / allowed), bool(miss > 0))


# ---- draws


def a_positive(source: random.Random, low: float, high: float) -> float:
    """A number of (low, high]: half of any size, half of ordinary size, sometimes an end."""
    kind = source.random()
    if kind < 0.05:
        return high
    if kind < 0.5:
        return between(source, low, high)
    return min(high, max(low, between(source, 1e-4, 1e2)))


def an_epsilon(source: random.Random, high: float = 700.0) -> float:
    """An ε of [0, high]."""
    kind = source.random()
    if kind < 0.05:
        return 0.0
    if kind < 0.1:
        return high - between(source, 1e-13, 1.0) * high
    return a_positive(source, 1e-320, high)


def a_probability(source: random.Random) -> float:
    """A number of [0, 1]: ordinary, tiny, next to 1, or an end."""
    kind = source.random()
    if kind < 0.1:
        return source.choice([0.0, 1.0])
    if kind < 0.3:
        return 1.0 - between(source, 2.0**-53, 1.0)
    if kind < 0.6:
        return source.random()
    return between(source, 5e-324, 1.0)


# ---- Rényi divergences and pure differential privacy


def draw_rdp(source: random.Random) -> tuple[Any, ...]:
    epsilon = an_epsilon(source)
    orders, costs = [], []
    for _ in range(source.randint(1, 4)):
        kind = source.random()
        x = between(source, 2.0**-52, 1.0 if kind < 0.4 else 1e3 if kind < 0.9 else 1e300)
        orders.append(1.0 + x)
        beside = epsilon * (1.0 + between(source, 1e-16, 1.0) * source.choice([-1.0, 1.0]))
        costs.append(
            source.choice(
                [0.0, math.inf, max(beside, 0.0), *(a_positive(source, 1e-320, 1e4),) * 4]
            )
        )
    return orders, costs, epsilon


def log_rdp(x: arb, rho: arb, epsilon: arb) -> arb:
    """Logarithm of e^{(α - 1)(ρ - ε)} (1 - 1/α)^α/(α - 1), α = 1 + x."""
    alpha = 1 + x
    return x * (rho - epsilon) - x.log() + alpha * (1 - 1 / alpha).log()


def bernoulli(x: arb, rho: arb, epsilon: arb) -> arb:
    """δ of the two Bernoulli laws that one order allows, from below, to some 1e-15 of it; or 0.

    Ratios are e^-s and e^u. P and Q have sum 1, and E R^τ = e^{xρ} fixes one of them, e^ε the
    other.
    """
    tau = 1 + x
    if rho >= epsilon + (tau / x).log():
        return 1 - (epsilon - rho).exp()

    def other(s: arb, u: arb, steps: int = 12) -> arb:
        for _ in range(steps):
            width = s + u
            miss = u + ((1 - (-tau * width).exp()) / tau / ((1 - (-x * width).exp()) / x)).log()
            slope = 1 + tau / ((tau * width).exp() - 1) - x / ((x * width).exp() - 1)
            u = (u - (miss - epsilon) / slope).mid()
        return u

    low, high, best = -100.0, 30.0, arb(0)
    u = epsilon + (1 + 1 / x).log()
    for round_ in range(64):
        middle = 0.5 * (low + high)
        s = arb(middle).exp().mid()
        u = other(s, u, 12 if round_ else 80)
        share = (1 - (-s).exp()) / (u.exp() - (-s).exp())
        used = share * (tau * u).exp() + (1 - share) * (-tau * s).exp()
        if used < (x * rho).exp():
            low, best = middle, share * (u.exp() - epsilon.exp())
        else:
            high = middle
    return best


def judge_rdp(value: float, orders: list[float], costs: list[float], epsilon: float) -> Verdict:
    """Between two Bernoulli laws and the older bound; above the former by the stated accuracy."""
    known = [row for row in zip(orders, costs, strict=True) if row[1] < math.inf]
    with precision(420):
        least = [arb(1)]
        for alpha, rho in known:
            x = number(alpha) - 1
            if 1e-12 < float(x) < 1e6 and float(x) * (epsilon + rho) < 1e5:
                found = bernoulli(x, number(rho), number(epsilon))
                room = arb("1e-13") * (1 + number(alpha)) * (1 + number(epsilon) + number(rho))
                if bool(found > 0):
                    least.append(found * (1 + room + arb("1e-12")))
                if bool(number(value) < found) and len(known) == 1:
                    return Verdict(math.inf, True)
        if len(known) == 1 and len(least) == 2 and bool(number(value) > least[1] + arb("1e-12")):
            return Verdict(math.inf, False)
    with precision(1400):  # x of 1e-16 to 1e300 beside 1
        logs = [
            (log_rdp(number(alpha) - 1, number(rho), number(epsilon)), alpha)
            for alpha, rho in zip(orders, costs, strict=True)
            if rho < math.inf
        ]
        log, alpha = min(logs, key=lambda pair: pair[0].mid(), default=(arb(0), 2.0))
        log = arb.min(log, arb(0))
        room = 4 - log + 2 * number(alpha).log()
        truth = log.exp()
        return not_above(value, truth, arb("3e-15") * room * truth + 2 * LOST)


def draw_zcdp(source: random.Random) -> tuple[Any, ...]:
    return a_positive(source, 5e-324, 1e308), an_epsilon(source)


def judge_zcdp(value: float, rho: float, epsilon: float) -> Verdict:
    low, high = -2000.0, 2000.0

    def rises(y: float) -> bool:
        """Whether log δ rises at x = e^y."""
        log = math.log1p(math.exp(-y)) if y > -30.0 else -y
        slope = rho + (2.0 * math.exp(min(y + math.log(rho), 700.0))) - epsilon
        return slope > log

    for _ in range(100):
        middle = 0.5 * (low + high)
        low, high = (low, middle) if rises(middle) else (middle, high)
    if low < -1900.0:  # 1 up to e^-1900
        return not_above(value, arb(1), arb("1e-14"))
    with precision(8000):  # x of e^±2000 beside 1
        y, r, e = arb(low), number(rho), number(epsilon)
        for _ in range(4):
            x = y.exp()
            slope = (1 + 2 * x) * r - e - (1 + 1 / x).log()
            y = (y - slope / (2 * r * x + 1 / (1 + x))).mid()
        x = y.exp()
        log = arb.min(log_rdp(x, (1 + x) * r, e), arb(0))
        room = 4 + x * ((1 + x) * r + e) + (1 + x).log()
        truth = log.exp()
        return not_above(value, truth, arb("2e-15") * room * truth + 2 * LOST)


def judge_gdp(value: float, epsilon: float) -> Verdict:
    if epsilon == 0.0:
        return Verdict(0.0 if value == 0.0 else math.inf, value < 0.0)
    with precision(BITS):
        t, e = number(value) / 2, number(epsilon)
        density = (-t * t / 2).exp() / (2 * arb.pi()).sqrt()
        if epsilon < 1.0:
            miss = ((t / arb(2).sqrt()).erf() - (e / 2).tanh()) / (2 * density)
        else:
            _, tail = normal(t)
            miss = -(tail * (1 + e.exp())).log() * tail / density
        return above(value, number(value) - 2 * miss, arb("1e-14") * number(value) + 2 * LOST)


# ---- bounded range


class Range:
    """The profile of k exponential mechanisms, from both binomial distribution functions."""

    def __init__(self, width: float, steps: int) -> None:
        self.width, self.steps = number(width), steps

    def row(self, row: int, epsilon: arb) -> arb:
        """F_l at its best t; -1 where that is not above ε."""
        w, k = self.width, self.steps
        t = (epsilon + (row + 1) * w) / (k + 1)
        if not t < w:
            return arb(-1)
        a = ((-t).exp() - (-w).exp()) / (1 - (-w).exp())
        sums = []
        for p in (1 - a * t.exp(), 1 - a):
            ratio, term = p / (1 - p), (1 - p) ** k
            total = term
            for i in range(row):
                term *= ratio * (k - i) / (i + 1)
                total += term
            sums.append(total)
        return sums[0] - epsilon.exp() * sums[1]

    def best(self, epsilon: arb) -> arb:
        """The largest F_l: of all for few steps, else uphill and of some more.

        Its radius is the largest of theirs.
        """
        last = self.steps - 1
        known: dict[int, arb] = {}

        def at(row: int) -> arb:
            if row not in known:
                known[row] = self.row(row, epsilon)
            return known[row].mid()

        if last <= 30:
            rows = range(last + 1)
        else:
            low, high = 0, last
            while high - low > 2:
                middle = (low + high) // 2
                if at(middle) < at(middle + 1):
                    low = middle
                else:
                    high = middle + 1
            rows = [low, low + 1, high, *random.Random(last).sample(range(last + 1), 3)]
        most = max(at(row) for row in (*rows, *known))
        return arb(most, max(value.rad() for value in known.values()))

    def profile(self, epsilon: arb, room: arb | None = None) -> arb:
        """δ, to 40 digits or to a given number."""
        bits = BITS
        while True:
            with precision(bits):
                if not epsilon < self.width * self.steps:
                    return arb(0)
                delta = self.best(epsilon)
                if room is None and (
                    delta.rel_accuracy_bits() > 130 or delta.abs_upper() < arb(10) ** -360
                ):
                    return delta
                if room is not None and delta.rad() < room:
                    return delta
            bits *= 2


def a_range(source: random.Random) -> tuple[float, int]:
    kind = source.random()
    width = 700.0 if kind < 0.03 else between(source, 1e-320 if kind < 0.15 else 1e-6, 700.0)
    return width, round(between(source, 1.0, 40.0 if source.random() < 0.97 else 5000.0))


def draw_range_delta(source: random.Random) -> tuple[Any, ...]:
    width, steps = a_range(source)
    end, kind = width * steps, source.random()
    if kind < 0.1:
        return source.choice([0.0, end, 2.0 * end]), width, steps
    part = source.random() if kind < 0.5 else between(source, 1e-17, 1.0)
    return (end * part if kind < 0.75 else end * (1.0 - part)), width, steps


def judge_range_delta(value: float, epsilon: float, width: float, steps: int) -> Verdict:
    truth = Range(width, steps).profile(number(epsilon))
    with precision(BITS):
        return near(value, truth, arb("1e-11") * truth + LOST)


def draw_range_epsilon(source: random.Random) -> tuple[Any, ...]:
    width, steps = a_range(source)
    if source.random() < 0.2:  # next to δ(0), which is below this
        most = -math.expm1(-0.5 * width * math.sqrt(steps))
        return most * (1.0 - between(source, 1e-16, 0.5)), width, steps
    return a_probability(source), width, steps


def judge_range_epsilon(value: float, delta: float, width: float, steps: int) -> Verdict:
    """The smallest of several distances within which the profile crosses the level."""
    law = Range(width, steps)
    with precision(BITS):
        if delta in (0.0, 1.0):
            truth = law.width * steps if delta == 0.0 else arb(0)
            return near(value, truth, arb("1e-10") * law.width * steps)
        goal, at, end = number(delta), number(value), number(width) * steps
        room = arb("1e-40") * (min(delta, 1.0 - delta) or 1.0)
        for error in (1e-3, 1e-2, 0.1, 1.0, 10.0, 1e3, 1e6):
            left, right = (at + arb(sign * error) * arb("1e-10") * end for sign in (-1, 1))
            if left > 0 and not law.profile(left.mid(), room) >= goal:
                continue
            if right < end and not law.profile(right.mid(), room) <= goal:
                continue
            return Verdict(error, False)
    return Verdict(math.inf, False)


# ---- one guarantee


def draw_guarantee(source: random.Random) -> tuple[Any, ...]:
    epsilon = math.inf if source.random() < 0.02 else an_epsilon(source)
    delta, x = a_probability(source), a_probability(source)
    if source.random() < 0.3:  # next to where the bound ends
        x = (1.0 - delta) * math.exp(-min(epsilon, 700.0)) * (1.0 + between(source, 1e-17, 1.0))
    elif source.random() < 0.3:
        x = (1.0 - delta) * (1.0 - between(source, 1e-17, 1.0))
    return epsilon, delta, min(x, 1.0)


def judge_gamma(value: float, epsilon: float, delta: float, kappa: float) -> Verdict:
    with precision(BITS):
        truth = number(delta)
        if kappa > 0.0:
            truth = truth + number(kappa) * number(epsilon).exp() if epsilon < math.inf else arb(1)
        truth = arb.min(truth, arb(1))
        return above(value, truth, arb("2e-15") * truth + 2 * LOST)


def judge_trade_off(value: float, epsilon: float, delta: float, alpha: float) -> Verdict:
    with precision(4 * BITS):
        d, x = number(delta), number(alpha)
        if epsilon == math.inf:
            steep, flat = 1 - d if alpha == 0.0 else arb(0), arb(0)
        else:
            slope = number(epsilon).exp()
            steep, flat = 1 - d - slope * x, (1 - d - x) / slope
        truth = arb.max(arb.max(steep, flat), arb(0))
        share = truth if flat > steep else arb(1)
        return below(value, truth, arb("3e-15") * share + 2 * LOST)


# ---- older bounds


def draw_advantage(source: random.Random) -> tuple[Any, ...]:
    prior = a_probability(source)
    beside = prior * (1.0 + between(source, 1e-16, 1.0) * source.choice([-1.0, 1.0]))
    success = a_probability(source) if source.random() < 0.5 else min(beside, 1.0)
    return success, 0.5 if prior == 1.0 else prior


def judge_advantage(value: float, success: float, prior: float) -> Verdict:
    with precision(4 * BITS):
        truth = (number(success) - number(prior)) / (1 - number(prior))
        return near(value, truth, arb("4e-16") * abs(truth) + LOST)


def draw_mse(source: random.Random) -> tuple[Any, ...]:
    cost = source.choice([an_epsilon(source), an_epsilon(source, 3000.0), math.inf])
    size = source.choice([1.0, 1.0, between(source, 1e-300, 1e300)])
    return cost, [
        min(size * between(source, 1e-3, 1e3), 1e308) for _ in range(source.randint(1, 4))
    ]


def judge_mse(value: float, cost: float, widths: list[float]) -> Verdict:
    if cost in (0.0, math.inf):
        return Verdict(0.0 if value == (math.inf if cost == 0.0 else 0.0) else math.inf, False)
    with precision(12 * BITS):
        square = sum((number(w) ** 2 for w in widths), arb(0)) / len(widths)
        truth = square / (4 * (number(cost).exp() - 1))
        most = number(1.7976931348623157e308)
        if truth > most:
            return below(value, most, arb("1e-14") * most)
        return below(value, truth, arb("1e-14") * truth + 2 * LOST)


def draw_renyi_gamma(source: random.Random) -> tuple[Any, ...]:
    orders = [1.0 + between(source, 2.0**-52, 1e300 if source.random() < 0.1 else 1e3)]
    orders += [math.inf] * (source.random() < 0.1)
    kappa = a_probability(source)
    cost = -math.log(kappa) if kappa else 1.0
    ordinary = a_positive(source, 1e-320, 1e4)
    costs = [
        source.choice([ordinary, abs(cost * (1.0 - between(source, 1e-16, 1.0))), math.inf])
        for _ in orders
    ]
    return kappa, orders, costs


def judge_renyi_gamma(
    value: float, kappa: float, orders: list[float], costs: list[float]
) -> Verdict:
    if kappa == 0.0:
        return Verdict(0.0 if value == 0.0 else math.inf, False)
    with precision(1400):
        log = number(kappa).log()
        pairs = [
            (arb(0), arb(0))
            if cost == math.inf
            else ((1 - 1 / number(alpha)) * (log + number(cost)), number(cost))
            for alpha, cost in zip(orders, costs, strict=True)
        ]
        best, cost = min(pairs, key=lambda pair: pair[0].mid())
        truth = arb.min(best, arb(0)).exp()
        return above(value, truth, arb("4e-15") * (1 - log + cost) * truth + 2 * LOST)


def judge_gaussian_renyi(value: float, kappa: float, noise: float, steps: int) -> Verdict:
    if kappa == 0.0:
        return Verdict(0.0 if value == 0.0 else math.inf, False)
    with precision(1400):
        log = -number(kappa).log()
        distance = arb.max(log.sqrt() - (arb(steps) / 2).sqrt() / number(noise), arb(0))
        truth = (-distance * distance).exp()
        return above(value, truth, arb("1e-14") * (1 + log) * truth + 2 * LOST)


def a_prior(source: random.Random) -> int | list[float]:
    kind = source.random()
    if kind < 0.7:
        return round(between(source, 2.0, 1e3 if kind < 0.4 else 1e15))
    if kind < 0.85:  # nearly equal
        size, tilt = source.randint(2, 30), between(source, 1e-16, 1.0)
        return [(1.0 + tilt * source.uniform(-1.0, 1.0)) / size for _ in range(size)]
    return [
        between(source, 1e-30 if kind < 0.9 else 0.1, 1.0) for _ in range(source.randint(2, 30))
    ]


def normalised(weights: int | list[float]) -> int | list[float]:
    """A prior that sums to 1 up to rounding."""
    if isinstance(weights, int):
        return weights
    return [w / math.fsum(weights) for w in weights]


def balls(prior: int | list[float]) -> tuple[list[arb], int]:
    """Probabilities, as one number if they are equal, and their number."""
    if isinstance(prior, int):
        return [arb(1) / prior], prior
    total = sum((number(w) for w in prior), arb(0))
    return [number(w) / total for w in prior], len(prior)


def draw_fano(source: random.Random) -> tuple[Any, ...]:
    prior = normalised(a_prior(source))
    most = math.log(prior if isinstance(prior, int) else len(prior))
    kind = source.random()
    if kind < 0.3:
        return prior, most * (1.0 - between(source, 1e-16, 1.0))
    return prior, 0.0 if kind < 0.4 else a_positive(source, 1e-320, 50.0)


def judge_fano(value: float, prior: int | list[float], information: float) -> Verdict:
    with precision(BITS):
        weights, size = balls(prior)
        entropy = -sum((w * w.log() for w in weights), arb(0))
        entropy = arb(size).log() if isinstance(prior, int) else entropy
        slack = entropy - number(information)
        if slack <= 0:
            return above(value, arb(1), arb("1e-13"))

        def left(s: arb) -> arb:
            """The inequality's left side at success s; it rises with s from 1/n on."""
            t = 1 - s
            entropic = sum((x * x.log() for x in (s, t) if x > 0), arb(0))
            return slack + entropic - t * arb(size - 1).log()

        unit = arb("1e-13") * (1.0 if isinstance(prior, int) else math.sqrt(size))
        at, least = number(value), arb(1) / size
        unsafe = value < 1.0 and (at < least or left(at) < 0)
        for error in (0.01, 0.1, 1.0, 10.0, 1e6):
            lowered = at * (1 - error * unit)
            if lowered <= least or left(lowered.mid()) <= 0:
                return Verdict(error, bool(unsafe))
    return Verdict(math.inf, bool(unsafe))


def draw_gaussian_information(source: random.Random) -> tuple[Any, ...]:
    wide = source.random() < 0.2
    noise = between(source, *((1e-300, 1e300) if wide else (1e-2, 1e4)))
    sensitivity = between(source, *((1e-100, 1e100) if wide else (1e-1, 1e1)))
    return normalised(a_prior(source)), noise, sensitivity, round(between(source, 1.0, 1e6))


def judge_gaussian_information(
    value: float, prior: int | list[float], noise: float, sensitivity: float, steps: int
) -> Verdict:
    with precision(8 * BITS):
        overlap = (-steps * (number(sensitivity) / number(noise)) ** 2 / 2).exp()
        weights, _ = balls(prior)
        logs = [(w, (w + (1 - w) * overlap).log()) for w in weights]
        if isinstance(prior, int):
            logs = [(arb(1), logs[0][1])]
        truth = -sum((w * log for w, log in logs), arb(0))
        return above(value, truth, arb("2e-14") * truth + 2 * len(weights) * LOST)


def draw_orthogonal(source: random.Random) -> tuple[Any, ...]:
    more = source.random() < 0.03  # rarely, because that truth takes a second
    return round(between(source, 3.0, 1e15)) if more else 2, 1.0 / between(source, 1e-3, 25.0)


def judge_orthogonal(value: float, size: int, noise: float) -> Verdict:
    """Two candidates by one integral; more in long double, on other nodes."""
    if size == 2:
        with precision(120):
            mu = 1 / number(noise)
            step = arb.min(arb(1) / 4, arb(1) / (4 * mu)).mid()
            total, nodes = arb(0), int(float(14 / step)) + 1
            for i in range(-nodes, nodes + 1):
                x = i * step
                total += (-x * x / 2).exp() * (1 + (arb(2).sqrt() * mu * x - mu * mu).exp()).log()
            truth = arb(2).log() - total * step / (2 * arb.pi()).sqrt()
            return near(value, truth, arb("1e-12"))
    mu, log_size = np.longdouble(1.0) / np.longdouble(noise), np.log(np.longdouble(size))
    if mu > 18.0:
        return near(value, number(float(log_size)), arb("1e-12"))
    step = np.longdouble(0.2)
    reach = np.sqrt(2 * (log_size + 45))
    g = np.arange(-np.ceil(reach / step * max(mu, 1.0)), np.ceil(reach / step * max(mu, 1.0)) + 1)
    g = g * (step / max(mu, np.longdouble(1.0)))
    weight = np.exp(-g * g / 2)
    weight /= weight.sum()
    total = np.longdouble(0.0)
    low = -45 - mu * (1.5 * mu + reach) - log_size
    for u in np.arange(low, 6 + reach * mu, step):
        rest = (-np.expm1(-np.exp(u + mu * g)) * weight).sum()
        first = (np.exp(-np.exp(u + mu * g + mu * mu)) * weight).sum()
        power = np.exp((size - 1) * np.log1p(-rest)) if rest < 1 else np.longdouble(0.0)
        total += np.exp(-np.exp(u)) - power * first
    return near(value, number(float(log_size - total * step + mu * mu)), arb("1e-12"))


# ---- private selection


class LogLinear:
    """The profile e^{-a - b ε}, rounded up; it remembers its first arguments."""

    def __init__(self, a: float, b: float) -> None:
        self.a, self.b, self.asked = a, b, None

    def __call__(self, epsilon: Any) -> Any:
        if self.asked is None:
            self.asked = np.array(epsilon)
        found = np.exp(-self.a - self.b * np.asarray(epsilon)) * (1.0 + 1e-12) + 1e-323
        return np.minimum(found, 1.0)

    def __repr__(self) -> str:
        return f"LogLinear({self.a!r}, {self.b!r})"

    def at(self, epsilon: arb) -> arb:
        return (-number(self.a) - number(self.b) * epsilon).exp()


def draw_selection(source: random.Random) -> tuple[Any, ...]:
    profile = LogLinear(between(source, 1e-3, 700.0), between(source, 1e-3, 100.0))
    epsilon = an_epsilon(source, 100.0 if source.random() < 0.9 else 700.0)
    if source.random() < 0.5:
        return (
            profile,
            epsilon,
            {
                "mean": between(source, 1e-300, 1e308)
                if source.random() < 0.1
                else between(source, 1e-3, 1e3)
            },
        )
    wide = source.random() < 0.3
    shape = source.choice(
        [
            0.0,
            1.0,
            -1.0 + between(source, 1e-15, 1.0),
            between(source, 1e-300 if wide else 1e-3, 1e2),
        ]
    )
    stopping = between(source, 5e-324 if wide else 1e-4, 1.0)
    stopping = 1.0 - stopping if source.random() < 0.3 and stopping > 1e-15 else stopping
    law = {"runs": "negative_binomial", "shape": shape, "stopping": min(stopping, 1.0 - 2.0**-53)}
    return profile, epsilon, law


def judge_selection(
    value: float, profile: LogLinear, epsilon: float, law: dict[str, Any]
) -> Verdict:
    with precision(BITS):
        bounds = []
        for more in (0, 1):  # the formula, and the same with all rounding upwards
            deltas, loose = [], 1 + more * arb("1e-11")
            for point in profile.asked:
                inner = number(float(point))
                found = profile.at(inner) * loose
                if "mean" in law:
                    mean = number(law["mean"])
                    cost = mean * (inner.expm1() + found)
                else:
                    eta, gamma = number(law["shape"]), number(law["stopping"])
                    share = -(eta * gamma.log()).expm1() / eta if law["shape"] else -gamma.log()
                    mean = (1 - gamma) / (gamma * share)
                    cost = (eta + 1) * (inner.expm1() + (1 - gamma) / gamma * found).log1p()
                left = (
                    number(epsilon)
                    - cost * (1 + more * arb("4e-14"))
                    - more * arb("3e-16") * number(epsilon)
                )
                if left >= 0:
                    deltas.append(
                        mean
                        * (profile.at(left) * loose + 4 * more * LOST)
                        * (1 + more * arb("4e-14"))
                    )
            best = min(deltas, key=lambda x: x.mid(), default=arb(1))
            bounds.append(arb.min(best, arb(1)))
        return above(value, bounds[0], bounds[1] - bounds[0] + 2 * LOST)


def draw_divergence(source: random.Random) -> tuple[Any, ...]:
    noise = between(source, 0.3, 30.0)
    law = pe.GaussianMechanism(noise) if source.random() < 0.7 else pe.LaplaceMechanism(noise)
    rate = source.choice([1.0, source.random(), between(source, 1e-9, 1.0)])
    order = 1.0 + source.choice([0.0, between(source, 2.0**-52, 1.0), between(source, 1.0, 40.0)])
    return law, rate, round(between(source, 1.0, 1e6)), order, source.choice(["add", "remove"])


def divergence(law: Any, rate: float, order: float, adjacency: str) -> arb:
    """Rényi divergence of one step: a sum over many nodes, or a proven integral."""
    mu, p, x = 1 / number(float(law.noise_multiplier)), number(rate), number(order) - 1
    power = 1 + x if adjacency == "add" else -x

    def moment(s: Any) -> Any:
        log = (1 - p + p * s.exp()).log()
        if order > 1.0:
            return (power * log).exp()
        return log * log.exp() if adjacency == "add" else -log

    if isinstance(law, pe.GaussianMechanism):
        step = (arb.min(1 / mu, arb(1)) / 5).mid()
        ends = sorted([0.0, float(mu), float(power * mu)])
        nodes = range(int((ends[0] - 18) / float(step)), int((ends[-1] + 18) / float(step)) + 1)
        total = arb(0)
        for i in nodes:
            z = i * step
            total += (-z * z / 2).exp() * moment(mu * z - mu * mu / 2)
        mean = total * step / (2 * arb.pi()).sqrt()
    else:
        inner = acb.integral(lambda z, _: (-z).exp() * moment(2 * z - mu), acb(0), acb(mu))
        mean = (moment(-mu) + inner.real + (-mu).exp() * moment(mu)) / 2
    return mean.log() / x if order > 1.0 else mean


def judge_divergence(
    value: float, law: Any, rate: float, steps: int, order: float, adjacency: str
) -> Verdict:
    with precision(BITS):
        truth = steps * divergence(law, rate, order, adjacency)
        return near(value, truth, arb("1e-11") * truth)


def draw_substitution(source: random.Random) -> tuple[Any, ...]:
    law, rate, steps, *_ = draw_divergence(source)
    return law, rate, steps


def judge_substitution(value: float, law: Any, rate: float, steps: int) -> Verdict:
    with precision(BITS):
        mu, p = 1 / number(float(law.noise_multiplier)), number(rate)

        def square(plain: Any, up: Any, down: Any) -> Any:
            """b²/a for the densities of which both laws are mixed."""
            return ((1 - p) * plain + p * down) ** 2 / ((1 - p) * plain + p * up)

        if isinstance(law, pe.GaussianMechanism):
            step = (arb.min(1 / mu, arb(1)) / 5).mid()
            total = arb(0)
            for i in range(-int(float((3 * mu + 18) / step)), int(float((2 * mu + 18) / step))):
                z = i * step
                total += square(*((-((z - m) ** 2) / 2).exp() for m in (arb(0), mu, -mu)))
            mean = total * step / (2 * arb.pi()).sqrt()
        else:

            def right(z: Any, _: Any = None) -> Any:
                return square((-z).exp(), (z - mu).exp(), (-z - mu).exp()) / 2

            def left(z: Any, _: Any = None) -> Any:
                return square(z.exp(), (z - mu).exp(), (-z - mu).exp()) / 2

            inner = acb.integral(left, acb(-mu), acb(0)) + acb.integral(right, acb(0), acb(mu))
            mean = left(-mu) + inner.real + right(mu)  # beyond, all densities fall at the same rate
        truth = steps * mean.log()
        return near(value, truth, arb("1e-12") * truth)


def judge_best_order(value: float, kappa: float, noise: float, steps: int) -> Verdict:
    """The closed form of the best order, which the search must reach."""
    if kappa == 0.0:
        return Verdict(0.0 if value == 0.0 else math.inf, False)
    with precision(BITS):
        log = -number(kappa).log()
        distance = arb.max(log.sqrt() - (arb(steps) / 2).sqrt() / number(noise), arb(0))
        truth = (-distance * distance).exp()
        return above(value, truth, arb("1e-9") * (1 + log) * truth + 2 * LOST)


# ---- Gaussian differential privacy


def draw_mu(source: random.Random) -> tuple[Any, ...]:
    if source.random() < 0.02:  # rarely, because the search takes a tenth of a second
        return (between(source, 1e-2, 10.0),)
    wide = source.random() < 0.3
    ends = (1e-300, 1e300) if wide else (1e-2, 1e2)
    kinds = round(between(source, 1.0, 60.0))
    return ([(between(source, *ends), round(between(source, 1.0, 1e9))) for _ in range(kinds)],)


def ask_mu(given: float | list[tuple[float, int]]) -> float:
    if isinstance(given, float):
        mechanism: Any = pe.GenericMechanism(given)
    else:
        mechanism = pe.compose(*(pe.GaussianMechanism(noise).composed(n) for noise, n in given))
    return least_mu(mechanism, 1.0, 0.0, adjacency="add_remove", bounds=True)


def judge_mu(value: float, given: float | list[tuple[float, int]]) -> Verdict:
    """Pure privacy needs a search, good to 1e-8; Gaussian steps the root of their squares' sum."""
    with precision(BITS):
        if isinstance(given, list):
            squares = (steps / number(noise) ** 2 for noise, steps in given)
            truth = sum(squares, arb(0)).sqrt()
            return above(value, truth, arb("4e-15") * truth)
    error, unsafe = judge_gdp(value, given)
    return Verdict(error * 1e-6, unsafe)


# ---- conjugates, for laws with a few values


class Pair:
    """Two laws on a few values, given as pairs of weights, so that all quantities are sums."""

    def __init__(self, weights: list[tuple[float, float]]) -> None:
        p, q = ([Fraction(w[i]) for w in weights] for i in (0, 1))
        self.atoms = [(x / sum(p), y / sum(q)) for x, y in zip(p, q, strict=True)]

    def __repr__(self) -> str:
        return f"Pair({[(float(x), float(y)) for x, y in self.atoms]})"

    def profile(self, epsilon: float, symmetric: bool) -> float:
        """δ of the second law from the first, of both orders the larger if asked."""
        with precision(1200):
            slope, found = number(epsilon).exp(), []
            for i in (1, 0) if symmetric else (1,):
                gains = [ball(atom[i]) - slope * ball(atom[1 - i]) for atom in self.atoms]
                found.append(sum((gain for gain in gains if gain > 0), arb(0)))
            return float(max(found, key=lambda x: x.mid()).mid())

    def corners(self, symmetric: bool) -> outcomes.Points:
        """Corners of α -> 1 - γ(α): of all tests, or of those in both orders."""
        both = [outcomes.reversed_(self.atoms)] if symmetric else []
        return outcomes.chain(
            point for atoms in (self.atoms, *both) for point in outcomes.corners(atoms)
        )

    def gamma(self, kappa: float, symmetric: bool) -> Fraction:
        """γ(κ), between the corners."""
        return Fraction(1 - outcomes.height(self.corners(symmetric), Fraction(kappa)))


def draw_pair(source: random.Random) -> tuple[Pair, float, list[float], bool]:
    """A pair, the accuracy of its values, their errors, and whether both orders are used."""
    spreads = source.choice([1e-6, 0.1, 1.0, 10.0, 100.0])
    weights = []
    for _ in range(source.randint(2, 4)):
        p = source.choice([1.0, between(source, 1e-12, 1.0)])
        weights.append((p, p * math.exp(source.uniform(-spreads, spreads))))
    if source.random() < 0.2:
        weights.append((0.0, between(source, 1e-10, 1.0)))
    accuracy = source.choice([0.0, 0.0, 1e-11, 1e-6])
    errors = [source.uniform(-accuracy, accuracy) for _ in range(40)]
    return Pair(weights), accuracy, errors, source.random() < 0.5


def ask_events(
    ask: Callable[..., Any],
    pair: Pair,
    accuracy: float,
    errors: list[float],
    symmetric: bool,
    x: float,
    grid: list[float] | None,
) -> Any:
    """A bracket at a level, from a profile given as a function, or on a grid with errors."""

    def function(epsilon: Any) -> Any:
        return np.array([pair.profile(float(e), symmetric) for e in epsilon])

    given: Any = function
    if grid is not None:
        given = grid, np.minimum(function(grid) * (1 + np.array(errors[: len(grid)])), 1.0)
    return ask(given, x, symmetric=symmetric, accuracy=accuracy)


def draw_gamma(source: random.Random) -> tuple[Any, ...]:
    pair, accuracy, errors, symmetric = draw_pair(source)
    function = source.random() < 0.01
    losses = [abs(math.log(b / a)) for a, b in pair.atoms if a and b]
    top = source.choice([5.0, 50.0, 700.0, *losses])
    grid = sorted(
        {
            0.0,
            *(min(top * source.random() * 1.2, 700.0) for _ in range(source.randint(1, 20))),
            *source.sample(losses, source.randint(0, len(losses))),
        }
    )
    return pair, accuracy, errors, symmetric, a_probability(source), None if function else grid


def within(bracket: Any, truth: Fraction) -> Verdict:
    """Verdict on a bracket."""
    outside = not Fraction(float(bracket.lower)) <= truth <= Fraction(float(bracket.upper))
    return Verdict(0.0, outside)


def judge_events(bracket: Any, *inputs: Any, is_gamma: bool) -> Verdict:
    pair, _, _, symmetric, x, _ = inputs
    gamma = pair.gamma(x, symmetric)
    return within(bracket, gamma if is_gamma else 1 - gamma)


def draw_curve(source: random.Random) -> tuple[Any, ...]:
    pair, accuracy, errors, symmetric = draw_pair(source)
    levels = sorted({a_probability(source) for _ in range(source.randint(1, 20))})
    return pair, accuracy, errors, symmetric, an_epsilon(source), levels


def ask_profile(
    pair: Pair,
    accuracy: float,
    errors: list[float],
    symmetric: bool,
    epsilon: float,
    levels: list[float],
) -> Any:
    values = [
        float(min((1 - pair.gamma(x, symmetric)) * (1 + Fraction(error)), Fraction(1)))
        for x, error in zip(levels, errors, strict=False)
    ]
    return duality.profile_from_trade_off((levels, values), epsilon, accuracy=accuracy)


def judge_profile(bracket: Any, *inputs: Any) -> Verdict:
    # the largest of 1 - T(α) - e^ε α is at a corner
    pair, _, _, symmetric, epsilon, _ = inputs
    with precision(1200):
        slope = number(epsilon).exp()
        gains = [ball(1 - y) - slope * ball(x) for x, y in pair.corners(symmetric)]
        truth = max(gains, key=lambda x: x.mid())
        lower, upper = number(float(bracket.lower)), number(float(bracket.upper))
        return Verdict(0.0, bool(truth < lower or truth > upper))


CONVERSIONS = {
    "from_rdp": Conversion(draw_rdp, duality.from_rdp, judge_rdp),
    "from_zcdp": Conversion(draw_zcdp, duality.from_zcdp, judge_zcdp),
    "to_gdp": Conversion(lambda source: (an_epsilon(source),), duality.to_gdp, judge_gdp),
    "gamma_from_epsilon_delta": Conversion(
        draw_guarantee, duality.gamma_from_epsilon_delta, judge_gamma
    ),
    "trade_off_from_epsilon_delta": Conversion(
        draw_guarantee, duality.trade_off_from_epsilon_delta, judge_trade_off
    ),
    "dp_gamma": Conversion(
        draw_guarantee,
        lambda epsilon, delta, kappa: baselines.dp_gamma(kappa, epsilon, delta),
        judge_gamma,
    ),
    "bounded_range_delta": Conversion(
        draw_range_delta,
        lambda epsilon, width, steps: duality.bounded_range_delta(
            epsilon, range_per_step=width, steps=steps
        ),
        judge_range_delta,
    ),
    "bounded_range_epsilon": Conversion(
        draw_range_epsilon,
        lambda delta, width, steps: duality.bounded_range_epsilon(
            delta, range_per_step=width, steps=steps
        ),
        judge_range_epsilon,
    ),
    "repeat_and_select": Conversion(
        draw_selection,
        lambda profile, epsilon, law: duality.repeat_and_select(profile, epsilon, **law),
        judge_selection,
    ),
    "gamma_from_profile": Conversion(
        draw_gamma,
        partial(ask_events, duality.gamma_from_profile),
        partial(judge_events, is_gamma=True),
    ),
    "trade_off_from_profile": Conversion(
        draw_gamma,
        partial(ask_events, duality.trade_off_from_profile),
        partial(judge_events, is_gamma=False),
    ),
    "profile_from_trade_off": Conversion(draw_curve, ask_profile, judge_profile),
    "renyi_divergence": Conversion(
        draw_divergence,
        lambda law, rate, steps, order, adjacency: baselines.renyi_divergence(
            law.poisson_sampled(rate).composed(steps), order, adjacency=adjacency
        ),
        judge_divergence,
    ),
    "substitution_cost": Conversion(
        draw_substitution,
        lambda law, rate, steps: baselines.substitution_cost(
            law.poisson_sampled(rate).composed(steps)
        ),
        judge_substitution,
    ),
    "renyi_gamma_bound": Conversion(
        lambda source: (
            a_probability(source),
            between(source, 0.1, 100.0),
            round(between(source, 1.0, 1e3)),
        ),
        lambda kappa, noise, steps: baselines.renyi_gamma_bound(
            pe.GaussianMechanism(noise).composed(steps), kappa
        ),
        judge_best_order,
    ),
    "least_mu": Conversion(draw_mu, ask_mu, judge_mu),
    "advantage": Conversion(draw_advantage, baselines.advantage, judge_advantage),
    "mse_lower_bound": Conversion(
        draw_mse,
        lambda cost, widths: baselines.mse_lower_bound(cost, diameter=widths),
        judge_mse,
    ),
    "renyi_gamma": Conversion(draw_renyi_gamma, baselines.renyi_gamma, judge_renyi_gamma),
    "gaussian_renyi_gamma": Conversion(
        lambda source: (
            a_probability(source),
            a_positive(source, 1e-300, 1e300),
            round(between(source, 1.0, 1e9)),
        ),
        lambda kappa, noise, steps: baselines.gaussian_renyi_gamma(kappa, noise, steps=steps),
        judge_gaussian_renyi,
    ),
    "fano_success": Conversion(draw_fano, baselines.fano_success, judge_fano),
    "gaussian_information": Conversion(
        draw_gaussian_information,
        lambda prior, noise, sensitivity, steps: baselines.gaussian_information(
            prior, noise, sensitivity=sensitivity, steps=steps
        ),
        judge_gaussian_information,
    ),
    "orthogonal_information": Conversion(
        draw_orthogonal, baselines.orthogonal_information, judge_orthogonal
    ),
}


class Count(NamedTuple):
    """Answers of one function at random inputs: unsafe ones, and those above the stated error."""

    asked: int
    unsafe: int
    outside: int
    worst: float
    examples: list[str]


def campaign(name: str, count: int, seed: object) -> Count:
    """Ask a function at random inputs and judge its answers."""
    conversion = CONVERSIONS[name]
    unsafe, outside, worst, examples = 0, 0, 0.0, []
    for k in range(count):
        inputs = conversion.draw(random.Random(f"{name}/{seed}/{k}"))
        value = conversion.ask(*inputs)
        error, wrong = conversion.judge(value, *inputs)
        unsafe += wrong
        outside += not error <= 1.0
        worst = max(worst, math.inf if math.isnan(error) else error)
        if wrong or not error <= 1.0:
            examples.append(f"{name}{inputs} = {value!r}: {'unsafe, ' * wrong}error {error:.3g}")
    return Count(count, unsafe, outside, worst, examples)
