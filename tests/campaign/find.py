"""The truth of a question, as an enclosure."""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any, NamedTuple

from flint import arb, ctx

from campaign.steps import laws_of, mechanism_of, number, source_of
from campaign.truth.atoms import Atoms
from campaign.truth.law import Law, Reversed, precision
from campaign.truth.products import Product, TwoSteps
from campaign.truth.questions import (
    LARGEST_SHIFT,
    Curve,
    NoTruthError,
    curve,
    epsilon,
    hull,
    near,
    profile,
    touching,
)

__all__ = ["Found", "argument_of", "delta_at", "truth_of"]

Question = dict[str, Any]
BITS = (160, 320, 640, 1280, 2560)
QUADRATURE = (160,)
NARROW = arb(10) ** -20
ROUGH = arb(10) ** -13  # largest difference of two integrals
LEAST = arb(10) ** -345  # far below the least double
DIGITS = 22
FEW = 12  # finite losses beside a continuous law


class Found(NamedTuple):
    """An enclosure of the truth and its source; None is infinity."""

    value: arb | None
    source: str


def argument_of(question: Question) -> tuple[float, float | None]:
    """Argument of a question, and the loss from which it was chosen, if any."""
    text = question["argument"]
    if not text.startswith("touching"):
        return float(number(text)), None
    rng = random.Random(int(text.split()[1]))
    with precision(BITS[0]):
        laws = _laws(question)
        c = _random_loss(laws[0], rng)
        if question["question"] == "delta":
            return abs(c), c
        if question["question"] == "epsilon":
            return _double(profile(laws, arb(abs(c)))), abs(c)
        parts, _ = touching(laws, arb(c))
        return _double(parts.a_above), c


_kept: dict[tuple[str, int], list[Law]] = {}


def _laws(question: Question) -> list[Law]:
    """Laws of a question at the working precision; those of the last question are kept."""
    key = repr((question["steps"], question["adjacency"])), ctx.prec
    if key not in _kept:
        if _kept and next(iter(_kept))[0] != key[0]:
            _kept.clear()
        _kept[key] = laws_of(question["steps"], question["adjacency"])
    return _kept[key]


def _double(value: arb) -> float:
    return min(max(float(value.mid()), 0.0), 1.0)


def _random_loss(law: Law, rng: random.Random) -> float:
    if isinstance(law, Reversed):
        return -_random_loss(law.law, rng)
    if isinstance(law, Product):
        return _random_loss(law.finite, rng) + _random_loss(law.law, rng)
    if isinstance(law, TwoSteps):
        return _random_loss(law.first, rng) + _random_loss(law.second, rng)
    if isinstance(law, Atoms):
        if not law.losses:
            return 0.0
        i = rng.randrange(len(law.losses))
        if rng.random() < 0.5:  # one that matters
            i = rng.choices(range(len(law.losses)), [float(a + b) for a, b in law.masses])[0]
        loss = float(law.losses[i])
        return loss if rng.random() < 0.3 else loss + rng.gauss(0.0, 0.1) * (1 + abs(loss))
    try:
        pieces = law.pieces()
    except NotImplementedError:
        low, high = (float(end) for end in law.span())
        return rng.uniform(max(low, -50.0), min(high, 50.0))
    ends = [float(pieces[0][0]), *(float(high) for _, high in pieces)]
    if len(ends) == 2:
        x = rng.uniform(*ends)
    else:
        x = rng.choice(ends[1:-1]) + rng.gauss(0.0, 1.0) * rng.choice((1.0, 1.0, 3.0, 12.0))
        x = min(max(x, ends[0]), ends[-1])
    return float(law.point(arb(x)).loss)


def truth_of(question: Question, argument: float, c: float | None) -> Found:
    """Truth of a question at an argument; `NoTruthError` where it cannot be found."""
    source = source_of(question["steps"])
    if source == "reference":
        return Found(_reference(question, argument), source)
    for bits in QUADRATURE if source == "quadrature" else BITS:
        with precision(bits):
            value = _answer(question, argument, c)
        if value is None or _sharp(value, NARROW if source != "quadrature" else ROUGH):
            return Found(value, source)
    raise NoTruthError(f"no sharp enclosure: {value.str(10)}")


def _costly(law: Law) -> bool:
    """Whether masses take too long for a hundred evaluations."""
    if isinstance(law, Reversed):
        return _costly(law.law)
    if isinstance(law, Product):
        return len(law.finite.losses) > FEW or isinstance(law.law, TwoSteps)
    return isinstance(law, TwoSteps)


def _sharp(value: arb, narrow: arb) -> bool:
    if not value.is_finite():
        return False
    radius = value.rad()
    return bool(radius <= abs(value.mid()) * narrow) or bool(value.abs_upper() < LEAST)


def _answer(question: Question, argument: float, c: float | None) -> arb | None:
    laws = _laws(question)
    asked, x = question["question"], arb(argument)
    if not _costly(laws[0]):
        c = None  # a search is more general than the tangent at the chosen loss
    if asked == "delta":
        return profile(laws, None if math.isinf(argument) else x)
    if asked == "epsilon":
        return epsilon(laws, x) if c is None else _near_epsilon(laws, x, arb(c))
    found: Curve
    if c is not None:
        parts, slope = touching(laws, arb(c))
        found = near(parts, slope, x)
    else:
        found = hull(laws[0], x) if len(laws) == 2 else curve(laws[0], x)
    value = found.beta if asked == "trade_off" else found.gamma
    return value.intersection(arb(0.5, 0.5)) if value.overlaps(arb(0.5, 0.5)) else value


def _near_epsilon(laws: list[Law], delta: arb, guess: arb) -> arb | None:
    """ε of a δ that was rounded from δ(guess), by the tangent."""
    if delta < profile(laws, None):
        return None
    values = [profile([law], guess) for law in laws]
    best = max(range(len(laws)), key=lambda i: float(values[i].mid()))
    slope = guess.exp() * laws[best].at(-guess).b_below
    if not (slope > 0 and values[best] > 0 and guess > 0):
        raise NoTruthError("the profile is flat")
    shift = (values[best] - delta) / slope
    if not abs(shift) <= LARGEST_SHIFT * guess:
        raise NoTruthError("rounding δ moves ε too far")
    return guess + shift + arb(0, (abs(shift) * arb(10) ** -10).abs_upper())


def delta_at(question: Question, epsilon_value: float) -> arb:
    """δ at an answered ε, infinity included."""
    if source_of(question["steps"]) == "reference":
        import pyengine as pe

        value = pe.reference.delta(
            mechanism_of(question["steps"]),
            epsilon_value,
            adjacency=question["adjacency"],
            digits=DIGITS,
        )
        return _from_reference(value)
    with precision(BITS[2] if source_of(question["steps"]) != "quadrature" else BITS[0]):
        finite = math.isfinite(epsilon_value)
        return profile(_laws(question), arb(epsilon_value) if finite else None)


def _reference(question: Question, argument: float) -> arb | None:
    import pyengine as pe

    ask: Callable[..., Any] = getattr(pe.reference, question["question"])
    try:
        value = ask(
            mechanism_of(question["steps"]),
            argument,
            adjacency=question["adjacency"],
            digits=DIGITS,
        )
    except (ArithmeticError, ValueError) as error:
        raise NoTruthError(f"reference: {error}") from None
    if math.isinf(float(value)):
        return None
    return _from_reference(value)


def _from_reference(value: Any) -> arb:
    with precision(400):
        return _exactly(value.lower).union(_exactly(value.upper))


def _exactly(value: Any) -> arb:
    """A number of mpmath as an exact ball."""
    sign, mantissa, exponent, _ = value._mpf_
    return arb(-int(mantissa) if sign else int(mantissa)) * arb(2) ** int(exponent)
