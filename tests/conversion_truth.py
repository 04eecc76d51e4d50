"""Conversions and older bounds by their formulas in ball arithmetic, at random inputs.

Truth shares no code with `pyengine.duality` and `pyengine.baselines`: it takes the formulas as the
papers write them, differences that cancel among them, with as many digits as that takes.  Inverses
are judged by evaluating at the proposed answer.  `CONVERSIONS` holds for each function how inputs
are drawn from its whole domain, how it is asked, and how an answer is judged; questions that follow
each other are the same for the same seed.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any, NamedTuple

from closed_form_truth import exact, precision, spread, upper
from flint import arb

from pyengine import duality

BITS = 320
LOST = arb(2) * 2**-1073  # what results below the normal range may lose


class Verdict(NamedTuple):
    """What is wrong with an answer.

    Parameters
    ----------
    error : float
        In units of the error that the docstring states.
    unsafe : bool
        Whether the answer is on the other side of the truth than the docstring promises.
    """

    error: float
    unsafe: bool


class Conversion(NamedTuple):
    """How one function is asked and judged."""

    draw: Callable[[random.Random], tuple[Any, ...]]
    ask: Callable[..., Any]
    judge: Callable[..., Verdict]


def number(x: float) -> arb:
    """Return a double, or infinity, as a ball."""
    return exact(x) if math.isfinite(x) else arb("inf")


def near(value: float, truth: arb, allowed: arb) -> Verdict:
    """Verdict on an estimate."""
    return Verdict(float((number(value) - truth).abs_upper() / allowed), False)


def above(value: float, truth: arb, allowed: arb) -> Verdict:
    """Verdict on what is rounded up."""
    miss = number(value) - truth
    return Verdict(float(miss.abs_upper() / allowed), bool(miss < 0))


def below(value: float, truth: arb, allowed: arb) -> Verdict:
    """Verdict on what is rounded down."""
    miss = number(value) - truth
    return Verdict(float(miss.abs_upper() / allowed), bool(miss > 0))


# ---- draws


def a_positive(source: random.Random, low: float, high: float) -> float:
    """A number of (low, high], as often of any size as of an ordinary one, sometimes an end."""
    kind = source.random()
    if kind < 0.05:
        return high
    if kind < 0.5:
        return spread(source, low, high)
    return min(high, max(low, spread(source, 1e-4, 1e2)))


def an_epsilon(source: random.Random, high: float = 700.0) -> float:
    """An ε of [0, high]."""
    kind = source.random()
    if kind < 0.05:
        return 0.0
    if kind < 0.1:
        return high - spread(source, 1e-13, 1.0) * high
    return a_positive(source, 1e-320, high)


def a_probability(source: random.Random) -> float:
    """A number of [0, 1]: ordinary, tiny, next to 1, or an end."""
    kind = source.random()
    if kind < 0.1:
        return source.choice([0.0, 1.0])
    if kind < 0.3:
        return 1.0 - spread(source, 2.0**-53, 1.0)
    if kind < 0.6:
        return source.random()
    return spread(source, 5e-324, 1.0)


# ---- Rényi divergences and pure differential privacy


def draw_rdp(source: random.Random) -> tuple[Any, ...]:
    epsilon = an_epsilon(source)
    orders, costs = [], []
    for _ in range(source.randint(1, 4)):
        kind = source.random()
        x = spread(source, 2.0**-52, 1.0 if kind < 0.4 else 1e3 if kind < 0.9 else 1e300)
        orders.append(1.0 + x)
        beside = epsilon * (1.0 + spread(source, 1e-16, 1.0) * source.choice([-1.0, 1.0]))
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


def judge_rdp(value: float, orders: list[float], costs: list[float], epsilon: float) -> Verdict:
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
        return above(value, truth, arb("3e-15") * room * truth + 2 * LOST)


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
    if low < -1900.0:  # 1 but for e^-1900
        return above(value, arb(1), arb("1e-14"))
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
        return above(value, truth, arb("2e-15") * room * truth + 2 * LOST)


def judge_gdp(value: float, epsilon: float) -> Verdict:
    if epsilon == 0.0:
        return Verdict(0.0 if value == 0.0 else math.inf, value < 0.0)
    with precision(BITS):
        t, e = number(value) / 2, number(epsilon)
        density = (-t * t / 2).exp() / (2 * arb.pi()).sqrt()
        if epsilon < 1.0:
            miss = ((t / arb(2).sqrt()).erf() - (e / 2).tanh()) / (2 * density)
        else:
            tail = upper(t)
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
        """The largest F_l: of all for few steps, else uphill, and beside some more.

        Its radius is the largest of them all.
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
        """δ, to 40 digits or to what is given."""
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
    width = 700.0 if kind < 0.03 else spread(source, 1e-320 if kind < 0.15 else 1e-6, 700.0)
    return width, round(spread(source, 1.0, 40.0 if source.random() < 0.97 else 5000.0))


def draw_range_delta(source: random.Random) -> tuple[Any, ...]:
    width, steps = a_range(source)
    end, kind = width * steps, source.random()
    if kind < 0.1:
        return source.choice([0.0, end, 2.0 * end]), width, steps
    part = source.random() if kind < 0.5 else spread(source, 1e-17, 1.0)
    return (end * part if kind < 0.75 else end * (1.0 - part)), width, steps


def judge_range_delta(value: float, epsilon: float, width: float, steps: int) -> Verdict:
    truth = Range(width, steps).profile(number(epsilon))
    with precision(BITS):
        return near(value, truth, arb("1e-11") * truth + LOST)


def draw_range_epsilon(source: random.Random) -> tuple[Any, ...]:
    width, steps = a_range(source)
    if source.random() < 0.2:  # next to δ(0), which is below this
        most = -math.expm1(-0.5 * width * math.sqrt(steps))
        return most * (1.0 - spread(source, 1e-16, 0.5)), width, steps
    return a_probability(source), width, steps


def judge_range_epsilon(value: float, delta: float, width: float, steps: int) -> Verdict:
    """The smallest of some distances within which the profile crosses the level."""
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


CONVERSIONS = {
    "from_rdp": Conversion(draw_rdp, duality.from_rdp, judge_rdp),
    "from_zcdp": Conversion(draw_zcdp, duality.from_zcdp, judge_zcdp),
    "to_gdp": Conversion(lambda source: (an_epsilon(source),), duality.to_gdp, judge_gdp),
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
}


class Count(NamedTuple):
    """Answers of one function at random inputs.

    Parameters
    ----------
    asked, unsafe, outside : int
        Number of inputs, of answers on the wrong side, and of answers outside of the stated error.
    worst : float
        Largest error in units of the stated one.
    examples : list of str
        Wrong answers.
    """

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
