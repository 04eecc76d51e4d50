"""All questions at and next to the atoms and the ends of finite losses, against exact sums.

``python tools/campaigns.py ends --answers 20000`` prints for each kind of mechanism, question and
engine how many answers were asked for, refused and outside their bounds; test_ends.py runs fewer.
Mechanism number i depends only on the seed and on i, so that ``--first`` continues an earlier run.

The truths are sums of fractions, or of numbers with 80 digits where masses are exponentials, and
share only the definitions of the mechanisms with the engines.
"""

from __future__ import annotations

import math
from collections.abc import Iterator
from fractions import Fraction
from typing import Any, NamedTuple

import fuzz_levels
import mpmath
import numpy as np
from fuzz_levels import DIGITS, LEAST
from outcomes import Outcomes, height, number, product, reversed_
from outcomes import sampled as of_sample

import pyengine as pe
from pyengine.mechanisms import steps_of

QUESTIONS = {
    "delta": pe.delta,
    "epsilon": pe.epsilon,
    "beta": pe.trade_off,
    "gamma": pe.gamma_bound,
}
METHODS = ("exact", "lattice")
MOST_OUTCOMES = 3000


class Case(NamedTuple):
    """A question with its true answer."""

    kind: str
    mechanism: pe.Mechanism
    question: str
    adjacency: str
    method: str
    argument: float
    truth: Any


def disjoint(rng: np.random.Generator) -> tuple[pe.Mechanism, Outcomes]:
    """Mechanisms of which all or nearly all outcomes occur under one law only."""
    which = int(rng.integers(4))
    if which == 0:
        return pe.RandomizedResponse(1.0), [(Fraction(1), Fraction(0)), (Fraction(0), Fraction(1))]
    if which == 1:
        return pe.GenericMechanism(float(rng.uniform(0, 3)), 1.0), [
            (Fraction(1), Fraction(0)),
            (Fraction(0), Fraction(1)),
        ]
    if which == 2:
        delta = Fraction(float(10.0 ** -rng.uniform(0, 9)))
        both = (1 - delta) / 2
        return pe.GenericMechanism(0.0, float(delta)), [
            (delta, Fraction(0)),
            (2 * both, 2 * both),
            (Fraction(0), delta),
        ]
    p = [Fraction(1, 4), Fraction(3, 4), Fraction(0)]
    q = [Fraction(0), Fraction(0), Fraction(1)]
    return pe.from_probabilities(p, q), list(zip(p, q, strict=True))


def sampled_generic(rng: np.random.Generator) -> tuple[pe.Mechanism, Outcomes]:
    """Generic mechanism on samples, rates next to 0 and 1 included."""
    mechanism, outcomes = fuzz_levels.generic(rng)
    rate = float(10.0 ** -rng.uniform(0, 12))
    if rng.random() < 0.5:
        rate = 1.0 - rate
    if not 0.0 < rate < 1.0:
        return mechanism, outcomes
    return mechanism.poisson_sampled(rate), of_sample(outcomes, rate)


def crowded(rng: np.random.Generator) -> tuple[pe.Mechanism, Outcomes]:
    """Ratios so close that their logarithms are the same double, or nearly."""
    size = int(rng.integers(3, 40))
    gap = Fraction(float(10.0 ** -rng.uniform(13.0, 17.0)))
    weights = [Fraction(int(rng.integers(1, 9))) for _ in range(size)]
    ratio = Fraction(int(rng.integers(1, 9)), 3)
    others = [w * ratio * (1 + i * gap) for i, w in enumerate(weights)]
    p = [w / sum(weights) / 2 for w in weights]
    q = [w / sum(others) / 3 for w in others]
    p.append(1 - sum(p))
    q.append(1 - sum(q))
    return pe.from_probabilities(p, q), list(zip(p, q, strict=True))


def gaussian(rng: np.random.Generator) -> tuple[pe.Mechanism, Outcomes]:
    """Discrete Gaussian noise, of unbounded loss: all outcomes with masses above e^-1000."""
    scale = mpmath.mpf(float(rng.uniform(0.3, 2.0)))
    reach = int(45 * scale) + 3
    weight = {k: mpmath.exp(-(k**2) / (2 * scale**2)) for k in range(-reach - 1, reach + 2)}
    total = mpmath.fsum(weight.values())
    outcomes = [(weight[k] / total, weight[k - 1] / total) for k in range(-reach, reach + 1)]
    return pe.DiscreteGaussianMechanism(float(scale), 1), outcomes


def is_gaussian(mechanism: pe.Mechanism) -> bool:
    """Whether a step has discrete Gaussian noise, whose list of outcomes is truncated."""
    steps = [step.inner for step, _ in steps_of(mechanism)]
    return any(isinstance(step, pe.DiscreteGaussianMechanism) for step in steps)


def discrete(rng: np.random.Generator) -> tuple[pe.Mechanism, Outcomes]:
    """Discrete Laplace noise."""
    while True:
        mechanism, outcomes = fuzz_levels.discrete(rng)
        if not is_gaussian(mechanism):
            return mechanism, outcomes


LISTED = {
    **fuzz_levels.LISTED,
    "discrete": discrete,
    "discrete Gaussian": gaussian,
    "sampled generic": sampled_generic,
    "crowded": crowded,
    "disjoint": disjoint,
}
MOST = {"pairs": 5, "response": 24, "generic": 8, "discrete": 2, "crowded": 2, "disjoint": 3}
MOST["discrete Gaussian"] = 1


def drawn(rng: np.random.Generator) -> tuple[str, pe.Mechanism, Outcomes]:
    """A composition of one or two kinds of steps, and its outcomes."""
    kind = str(rng.choice(list(LISTED)))
    kinds = [kind]
    if rng.random() < 0.4:
        kinds.append(str(rng.choice(list(LISTED))))
    parts = [LISTED[k](rng) for k in kinds]
    steps = [int(rng.integers(1, MOST.get(k, 5) + 1)) for k in kinds]

    def size() -> float:
        found = 1.0
        for k, (_, outcomes), n in zip(kinds, parts, steps, strict=True):
            merged = k in ("response", "disjoint")
            found *= math.comb(n + len(outcomes), n) if merged else float(len(outcomes)) ** n
        return found

    while size() > MOST_OUTCOMES and max(steps) > 1:
        steps[int(np.argmax(steps))] -= 1
    if size() > MOST_OUTCOMES:
        parts, steps = parts[:1], steps[:1]
    mechanism = pe.compose(*(m.composed(n) for (m, _), n in zip(parts, steps, strict=True)))
    outcomes = product(*((o, n) for (_, o), n in zip(parts, steps, strict=True)))
    return kind, mechanism, [(number(a), number(b)) for a, b in outcomes]


class Pair:
    """The ordered pair of laws on listed outcomes."""

    def __init__(self, outcomes: Outcomes) -> None:
        self.lost = mpmath.fsum(a for a, b in outcomes if not b)
        self.both = sorted(((a / b, a, b) for a, b in outcomes if a and b), key=lambda row: -row[0])
        self.losses = [mpmath.log(t) for t, _, _ in self.both]

    def delta(self, epsilon: float) -> Any:
        """H at e^ε."""
        if epsilon == math.inf:
            return self.lost
        t = mpmath.exp(mpmath.mpf(epsilon))
        return self.lost + mpmath.fsum(a - t * b for r, a, b in self.both if r > t)

    def epsilon(self, delta: float) -> Any:
        """The smallest ε >= 0 with H <= δ."""
        room = mpmath.mpf(delta) - self.lost
        if room < 0:
            return mpmath.inf
        if not self.both:
            return mpmath.mpf(0)
        a_sum, b_sum = mpmath.mpf(0), mpmath.mpf(0)
        for i, (_, a, b) in enumerate(self.both):
            a_sum, b_sum = a_sum + a, b_sum + b
            below = self.both[i + 1][0] if i + 1 < len(self.both) else mpmath.mpf(0)
            t = (a_sum - room) / b_sum
            if t >= below:
                break
        if room == 0:
            t = self.both[0][0]
        return max(mpmath.log(t), mpmath.mpf(0)) if t > 0 else mpmath.mpf(0)


def beside(rng: np.random.Generator, x: Any, most: float) -> float:
    """A double at a number in [0, most], or next to it by ulps or by a small part of it."""
    value = float(x)
    how = rng.random()
    if how < 0.6:
        shift = int(rng.integers(-3, 4))
        for _ in range(abs(shift)):
            value = math.nextafter(value, math.copysign(math.inf, shift))
    elif how < 0.85:
        value *= 1.0 + rng.choice([-1.0, 1.0]) * 10.0 ** rng.uniform(-15.5, -3.0)
    return min(max(value, 0.0), most)


def arguments(
    rng: np.random.Generator, question: str, pairs: list[Pair], points: list[tuple[Any, Any]]
) -> float:
    """Arguments of a question: at atoms, ends, the mass at infinity, and anywhere."""
    own = pairs[int(rng.integers(len(pairs)))]
    if question in ("beta", "gamma"):
        return fuzz_levels.near(rng, points[int(rng.integers(len(points)))][0])
    if question == "delta":
        if not own.losses or rng.random() < 0.05:
            return float(rng.choice([0.0, math.inf, rng.uniform(0.0, 5.0)]))
        first = rng.random() < 0.5
        loss = own.losses[0 if first else int(rng.integers(len(own.losses)))]
        return beside(rng, max(loss, mpmath.mpf(0)), math.inf)
    how = rng.random()
    if how < 0.3:
        return beside(rng, own.lost, 1.0)
    if how < 0.4 or not own.losses:
        return float(rng.choice([0.0, 5e-324, 1e-300, 1.0, rng.random()]))
    loss = own.losses[int(rng.integers(len(own.losses)))]
    return beside(rng, own.delta(float(max(loss, mpmath.mpf(0)))), 1.0)


def questions(seed: int, index: int) -> Iterator[Case]:
    """Questions on mechanism number ``index``."""
    rng = np.random.default_rng([seed, index])
    kind, mechanism, outcomes = drawn(rng)
    pairs = {"add": [Pair(outcomes)], "remove": [Pair(reversed_(outcomes))]}
    pairs["add_remove"] = pairs["add"] + pairs["remove"]
    curves: dict[str, list[tuple[Any, Any]]] = {}
    for question in QUESTIONS:
        adjacency = str(rng.choice(list(pairs)))
        if question in ("beta", "gamma") and not curves:
            curves = fuzz_levels.curves_of(outcomes)
        x = arguments(rng, question, pairs[adjacency], curves.get(adjacency, []))
        if question in ("beta", "gamma"):
            if x != 0.0 and x < LEAST:
                continue
            truth = height(curves[adjacency], mpmath.mpf(x))
            truth = truth if question == "beta" else 1 - truth
        else:
            truth = max(getattr(pair, question)(x) for pair in pairs[adjacency])
            if question == "epsilon" and x == 0.0 and is_gaussian(mechanism):
                truth = mpmath.inf  # from the truncation here
        for method in METHODS:
            yield Case(kind, mechanism, question, adjacency, method, x, truth)


def is_held(case: Case, bounds: pe.Bounds) -> bool:
    """Whether the truth lies between the bounds, as far as its own digits tell."""
    if mpmath.isinf(case.truth):
        return bounds.upper == math.inf >= bounds.lower and bounds.value <= bounds.upper
    with mpmath.workdps(DIGITS):
        slack = mpmath.mpf(10) ** (20 - DIGITS) * (case.truth + 1)
        low, high = (mpmath.mpf(float(x)) for x in (bounds.lower, bounds.upper))
        between = bounds.lower <= bounds.value <= bounds.upper
        return bool(between and low <= case.truth + slack and case.truth - slack <= high)


def ask(case: Case) -> pe.Bounds | None:
    """Bounds of a question's answer; None where it is refused."""
    options: Any = {"adjacency": case.adjacency, "method": case.method, "bounds": True}
    try:
        found: pe.Bounds = QUESTIONS[case.question](case.mechanism, case.argument, **options)
    except pe.AccuracyError:
        return None
    return found
