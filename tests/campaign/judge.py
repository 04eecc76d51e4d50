"""Whether an answer is right, and whether the truth lies within its bounds."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

from flint import arb

from campaign.steps import is_gaussian
from campaign.truth.law import precision

__all__ = ["APPROXIMATE", "CERTIFYING", "PROVEN", "judge"]

# Engines that claim proven bounds; those of the others are estimates of the error.
CERTIFYING = ("exact", "lattice")
BRACKETS = (*CERTIFYING, "certified")
PROVEN = (*CERTIFYING, "closed_form")
APPROXIMATE = ("clt", "edgeworth")  # which promise no accuracy, but an estimate of it
TINY = arb(10) ** -30
NEGLIGIBLE = arb(10) ** -307  # below this a double has no full precision
SLACK = arb(10) ** -19  # largest width of an enclosure of the truth
LEAST = arb(2) ** -1074
CANCELLED, MOVED = arb(10) ** -15, 1e-12
# where masses are integrals of densities, and the integrals end at quantiles of 1e-299
INTEGRATED, LEFT_OUT = arb(10) ** -12, arb(3) * arb(10) ** -299


def promise(question: dict[str, Any], truth: arb) -> arb:
    """Relative error that the docs promise for a value."""
    if _gaussian(question):
        return arb(10) ** (-11 if truth > TINY else -9)
    return arb(2) / 10**4  # the width of a bracket of the lattice engine, and a little


def _gaussian(question: dict[str, Any]) -> bool:
    """Whether eleven digits are promised."""
    gaussian = is_gaussian(question["steps"], question["adjacency"])
    # proven bounds of certified lines may be wider, and the value is the middle of them
    return gaussian and {question["method"], question.get("engine")}.isdisjoint(BRACKETS)


def _integrated(question: dict[str, Any]) -> bool:
    return any(step["kind"] == "distributions" for step in question["steps"])


def judge(
    question: dict[str, Any],
    argument: float,
    answers: list[list[float]],
    truth: arb | None,
    delta_at: Callable[[float], arb],
) -> dict[str, Any]:
    """Compare answers with the truth, an enclosure, or None for infinity.

    Answers are [lower, value, upper] in all requested forms, from 0 to inf without bounds. For
    ``epsilon`` the promised accuracy is in δ, which ``delta_at`` computes. Returns ``wrong``, a
    reason or None; ``error``, relative; ``outside``, the distance of the truth from the bounds
    relative to the truth, or None.
    """
    found: dict[str, Any] = {"wrong": None, "error": 0.0, "outside": None}
    with precision(400):
        for lower, value, upper in answers:
            reason = _malformed(question["question"], argument, lower, value, upper)
            if reason:
                found["wrong"] = reason
                continue
            error, right = _compared(question, argument, value, truth, delta_at)
            found["error"] = max(found["error"], error)
            if not right and question["method"] not in APPROXIMATE:
                found["wrong"] = f"value {value!r}"
            miss = _missed(lower, upper, truth)
            if miss is not None:
                found["outside"] = max(miss, found["outside"] or 0.0)
    return found


def _malformed(asked: str, argument: float, lower: float, value: float, upper: float) -> str | None:
    numbers = (lower, value, upper)
    if any(math.isnan(x) for x in numbers):
        return "NaN"
    if any(x == 0.0 and math.copysign(1.0, x) < 0 for x in numbers):
        return "minus zero"
    if not lower <= value <= upper:
        return "bounds and value out of order"
    ceiling = math.inf if asked == "epsilon" else 1.0
    if not 0.0 <= value <= ceiling or (asked == "gamma_bound" and value < argument):
        return "outside its range"
    return None


def _compared(
    question: dict[str, Any],
    argument: float,
    value: float,
    truth: arb | None,
    delta_at: Callable[[float], arb],
) -> tuple[float, bool]:
    if truth is None or math.isinf(value):
        if truth is None and math.isinf(value):
            return 0.0, True
        # ε jumps to infinity at δ = the mass there; near that, the promise is about δ
        near = argument > 0.0 and _promised(question, argument, value, delta_at)
        return math.inf, near or (truth is not None and 0.0 < argument <= NEGLIGIBLE)
    distance = abs(arb(value) - truth).mid()
    if distance <= (LEFT_OUT if _integrated(question) else NEGLIGIBLE):
        return 0.0, True
    error = float(distance / abs(truth).mid()) if truth.mid() > 0 else math.inf
    limit = promise(question, truth)
    if distance <= (limit * abs(truth)).mid():
        return error, True
    if question["question"] != "epsilon" and not _gaussian(question):
        return error, _beside(question, argument, value, distance, delta_at)
    if question["question"] != "epsilon" or argument == 0.0:
        return error, False
    return error, _promised(question, argument, value, delta_at)


def _promised(
    question: dict[str, Any], argument: float, value: float, delta_at: Callable[[float], arb]
) -> bool:
    """Whether δ at an ε is as close to the δ of the question as the docs promise."""
    delta = arb(argument)
    limit = promise(question, delta)
    distance = abs(delta_at(value) - delta)
    return bool(distance <= limit * delta * (1 + SLACK)) or bool(distance <= NEGLIGIBLE)


def _beside(
    question: dict[str, Any],
    argument: float,
    value: float,
    distance: arb,
    delta_at: Callable[[float], arb],
) -> bool:
    """Whether a value is the truth of an argument within rounding of the given one.

    Next to the level from which on β is 0, and to the largest of finite losses, values are
    differences of masses that cancel: the docs promise 1e-15 of 1 - α for β, 1e-12 of it where
    masses are integrals of densities, and for δ that of an ε within 1e-12.
    """
    if question["question"] == "trade_off":
        cancelled = INTEGRATED if _integrated(question) else CANCELLED
        return bool(distance <= cancelled * (1 - arb(argument)))
    if question["question"] == "delta" and math.isfinite(argument):
        shift = MOVED * (1.0 + argument)
        above = delta_at(max(argument - shift, 0.0))
        return bool(delta_at(argument + shift) <= value) and bool(value <= above)
    return False


def _missed(lower: float, upper: float, truth: arb | None) -> float | None:
    if truth is None:
        return None if math.isinf(upper) else math.inf
    slack = abs(truth) * SLACK
    gaps = []
    if lower > 0.0:
        gaps.append(arb(lower) - truth - slack if math.isfinite(lower) else arb("+inf"))
    if math.isfinite(upper):
        gaps.append(truth - slack - arb(upper))
    worst = max((gap for gap in gaps if gap > LEAST), key=lambda g: float(g.mid()), default=None)
    if worst is None:
        return None
    return float((worst / abs(truth)).mid()) if truth.mid() > 0 else math.inf
