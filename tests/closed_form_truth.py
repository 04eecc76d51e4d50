"""Closed forms of one subsampled Gaussian step by definition, in ball arithmetic.

Truth for the tests of the closed forms. It starts from the tails of both laws at a threshold and
shares no formula with the engine: profiles are differences of tails, with enough digits for their
cancellation, and inverses are judged by evaluating at the proposed answer.
"""

from __future__ import annotations

import math
import random
from collections.abc import Iterator
from contextlib import contextmanager
from fractions import Fraction
from typing import NamedTuple

from flint import arb, ctx

import pyengine as pe

BITS = 260


@contextmanager
def precision(bits: int) -> Iterator[None]:
    """Set the working precision for a block."""
    before, ctx.prec = ctx.prec, bits
    try:
        yield
    finally:
        ctx.prec = before


def exact(x: Fraction | float) -> arb:
    """Return a number as a ball."""
    fraction = Fraction(x)
    return arb(fraction.numerator) / arb(fraction.denominator)


def upper(x: arb) -> arb:
    """Φ(-x)."""
    return (x / arb(2).sqrt()).erfc() / 2


class Step:
    """N(0, 1) against (1 - p) N(0, 1) + p N(μ, 1), by μ² and p, exact, and an order."""

    def __init__(self, square: Fraction, p: Fraction, order: str) -> None:
        self.square, self.p, self.order = square, p, order

    def _constants(self) -> tuple[arb, arb, arb]:
        return exact(self.square).sqrt(), exact(self.p), exact(1 - self.p)

    def with_record(self, x: arb) -> tuple[arb, arb]:
        """Masses of the law with the record above and below x."""
        mu, p, rest = self._constants()
        return rest * upper(x) + p * upper(x - mu), rest * upper(-x) + p * upper(mu - x)

    def profile(self, epsilon: float) -> arb:
        """δ(ε) of an order, to 40 digits or to 1e-360."""
        if self.order != "add_remove":
            return self._profile(epsilon, self.order)
        one, other = self._profile(epsilon, "add"), self._profile(epsilon, "remove")
        return other if other.mid() >= one.mid() else one

    def _profile(self, epsilon: float, order: str) -> arb:
        bits = BITS
        while True:
            with precision(bits):
                found = self._difference(epsilon, order)
                if found.abs_upper() < arb(10) ** -360 or found.rel_accuracy_bits() > 130:
                    return found
            bits *= 2
            if bits > 1 << 20:
                raise ArithmeticError(f"no digits at epsilon={epsilon!r}")

    def _difference(self, epsilon: float, order: str) -> arb:
        mu, p, rest = self._constants()
        slope = exact(epsilon).exp()
        # where the likelihood ratio rest + p e^{μx - μ²/2} equals e^{±ε}
        ratio = ((slope if order == "remove" else 1 / slope) - rest) / p
        if ratio <= 0:
            return arb(0)
        if not ratio > 0:
            return arb(0, 1)
        x = (ratio.log() + mu * mu / 2) / mu
        above, below = self.with_record(x)
        return above - slope * upper(x) if order == "remove" else upper(-x) - slope * below

    def level(self, x: arb, order: str) -> tuple[arb, arb, arb, arb]:
        """α, 1 - α, β and γ of the test with threshold x."""
        above, below = self.with_record(x)
        if order == "add":
            return upper(x), upper(-x), below, above
        return below, above, upper(x), upper(-x)

    def threshold(self, alpha: float, order: str) -> arb:
        """The threshold of the level-α test, by bisection with proven signs."""
        low, high = Fraction(-60), Fraction(60) + Fraction(math.isqrt(int(self.square)) + 2)
        at, rest = exact(alpha), exact(1 - Fraction(alpha))
        while high - low > Fraction(1, 1 << 30):
            middle = (low + high) / 2
            above = None
            for bits in (BITS, 6 * BITS):  # few levels are so near a corner that they need more
                with precision(bits):
                    found, complement, *_ = self.level(exact(middle), order)
                    if found > at or complement < rest:
                        above = True
                    elif found < at or complement > rest:
                        above = False
                if above is not None:
                    break
            if order == "add":
                low, high = (middle, high) if above else (low, middle)
            else:
                low, high = (low, middle) if above else (middle, high)
        return exact((low + high) / 2)

    def curve(self, alpha: float) -> tuple[arb, arb]:
        """β and γ at α, for add or remove."""
        with precision(6 * BITS):  # a β of 1e-320 may depend on the last digits of α
            x, order = self.threshold(alpha, self.order), self.order
            mu, p, rest = self._constants()
            for _ in range(5):
                found, complement, *_ = self.level(x, order)
                miss = (
                    found - exact(alpha) if alpha < 0.5 else exact(1 - Fraction(alpha)) - complement
                )
                density = (-x * x / 2).exp()
                if order == "remove":
                    density = -(rest * density + p * (-((x - mu) ** 2) / 2).exp())
                x = (x + miss * (2 * arb.pi()).sqrt() / density).mid()
            _, _, beta, gamma = self.level(x, order)
            return beta, gamma

    def hull(self, alpha: float) -> tuple[arb, arb]:
        """β and γ of the lower convex hull of both orders, as the conjugate of the larger profile.

        γ is the least α t + D(log t), where D(-c) = 1 - e^-c + e^-c D(c). This uses neither an
        order of the two profiles nor a symmetry of the hull.
        """
        golden = (5.0**0.5 - 1.0) / 2.0

        def gamma(c: float) -> arb:
            d, slope = self.profile(abs(c)), exact(c).exp()
            return exact(alpha) * slope + (d if c >= 0.0 else 1 - slope + slope * d)

        with precision(10 * BITS):  # e^-760 beside 1
            low, high = -760.0, 760.0
            x, y = high - golden * (high - low), low + golden * (high - low)
            f, g = gamma(x), gamma(y)
            for _ in range(90):
                if f.mid() <= g.mid():
                    high, y, g = y, x, f
                    x = high - golden * (high - low)
                    f = gamma(x)
                else:
                    low, x, f = x, y, g
                    y = low + golden * (high - low)
                    g = gamma(y)
            best = f if f.mid() <= g.mid() else g
            best = best if best.mid() <= 1 else arb(1)  # the limit for c towards minus infinity
            return 1 - best, best


class Question(NamedTuple):
    """A question of the package with the data of its truth."""

    name: str
    mechanism: pe.Mechanism
    adjacency: str
    argument: float
    step: Step


def spread(random_: random.Random, low: float, high: float) -> float:
    """Log-uniform number."""
    return math.exp(random_.uniform(math.log(low), math.log(high)))


def random_question(random_: random.Random) -> Question:
    """A question from the whole domain, half of them next to an end or a seam."""
    noise = spread(random_, 1e-4, 1e3)
    gaussian = pe.GaussianMechanism(noise)
    kind = random_.randrange(5)
    mechanism: pe.Mechanism = gaussian
    square, p = 1 / Fraction(noise) ** 2, Fraction(1)
    if kind < 2:
        rate = random_.choice([spread(random_, 1e-12, 1.0), 1.0 - spread(random_, 1e-16, 1.0)])
        if 0.0 < rate < 1.0:
            mechanism, p = gaussian.poisson_sampled(rate), Fraction(rate)
    elif kind < 4:
        size = random_.randint(1, 10 ** random_.randint(1, 12))
        batch = random_.randint(1, max(1, min(size, 10 ** random_.randint(0, 12))))
        if batch < size:
            mechanism = gaussian.sampled_without_replacement(batch_size=batch, dataset_size=size)
            square, p = 4 * square, Fraction(batch, size)
    else:
        steps = random_.randint(1, 10 ** random_.randint(0, 6))
        mechanism, square = gaussian.composed(steps), square * steps
    adjacency = random_.choice(["add", "remove", "add_remove"])
    name = random_.choice(["delta", "epsilon", "gamma_bound", "trade_off"])
    mu = math.sqrt(square)
    if name == "delta":
        argument = _some_epsilon(random_, mu, float(p))
    else:
        argument = _some_probability(random_, mu, float(p))
    return Question(name, mechanism, adjacency, argument, Step(square, p, adjacency))


def _some_epsilon(random_: random.Random, mu: float, p: float) -> float:
    kind = random_.randrange(6)
    if kind == 0:
        return random_.choice([0.0, spread(random_, 1e-300, 1e-3)])
    if kind == 1:
        return spread(random_, 1e-3, 1e4)
    if kind == 2 and p < 1.0:
        return max(
            -math.log1p(-p) * (1.0 - random_.choice([-1, 1]) * spread(random_, 1e-17, 1.0)), 0
        )
    z = random_.uniform(-10.0, 38.0) if kind < 5 else random_.gauss(0.0, 1.0)
    s = mu * (z + 0.5 * mu)
    s = max(s, 0.0)
    return abs(s + math.log(p) if s > 600.0 else math.log1p(p * math.expm1(s)))


def _some_probability(random_: random.Random, mu: float, p: float) -> float:
    near = random_.choice([-1, 1]) * spread(random_, 1e-17, 0.5)
    places = [
        0.0,
        1.0,
        spread(random_, 1e-320, 1e-280),
        spread(random_, 1e-300, 1.0),
        spread(random_, 1e-6, 1.0),
        1.0 - spread(random_, 1e-17, 1.0),
        random_.random(),
        p * math.erf(mu / math.sqrt(8.0)) * (1.0 + near),  # the largest δ
        (1.0 - p) * (1.0 + near),  # where the mixture's parts meet
        0.5 * math.erfc(mu / math.sqrt(8.0)) * (1.0 + near),  # slope -1
        p * (1.0 + near),
    ]
    return min(max(random_.choice(places), 0.0), 1.0)


def judge(question: Question, bounds: pe.Bounds) -> tuple[bool, float]:
    """Whether the truth lies between the bounds, and the relative error of the value.

    Inverses are judged by the profile at the answer: the error is that of δ.
    """
    step, x = question.step, question.argument
    lower, value, upper = (float(part) for part in bounds)
    if not (lower <= value <= upper) or any(map(math.isnan, (lower, value, upper))):
        return False, math.inf
    if question.name == "delta":
        return _between(step.profile(x), lower, value, upper)
    if question.name == "epsilon":
        return _epsilon_is_right(step, x, lower, value, upper)
    if x in (0.0, 1.0):
        end = x if question.name == "gamma_bound" else 1.0 - x
        return lower == value == upper == end, 0.0
    if step.order == "add_remove" and step.p == 1:  # one Gaussian is its own mirror image
        step = Step(step.square, step.p, "add")
    beta, gamma = step.hull(x) if step.order == "add_remove" else step.curve(x)
    return _between(gamma if question.name == "gamma_bound" else beta, lower, value, upper)


def _between(truth: arb, lower: float, value: float, upper: float) -> tuple[bool, float]:
    with precision(BITS):
        inside = not exact(lower) > truth and not exact(upper) < truth
        if truth.abs_upper() < 1e-300:
            return inside, 0.0
        return inside, float(abs((exact(value) - truth) / truth).upper())


def _epsilon_is_right(
    step: Step, delta: float, lower: float, value: float, upper: float
) -> tuple[bool, float]:
    if delta == 0.0 and (step.order != "add" or step.p == 1):
        return lower == math.inf, 0.0
    with precision(BITS):
        target = exact(delta)
        inside = lower == 0.0 or not step.profile(lower) < target
        inside = inside and (upper < math.inf and not step.profile(upper) > target)
        if value == 0.0 or delta == 0.0 or not inside:
            return inside, 0.0
        return inside, float(abs(step.profile(value) / target - 1).upper())
