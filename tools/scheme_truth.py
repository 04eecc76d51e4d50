"""Truth for the settings of ``pyengine conformance`` that do not draw Poisson samples of records.

Groups, batches without replacement and one epoch of random allocation come from the arbitrary
precision of `pyengine.reference`, proven; a truncated Poisson sample from the mixture of closed
profiles of tests/batch_truth.py; several epochs are copied from tests/data/random_allocation.json,
with the digits that are known there.  None of them shares code with the engines that are judged.
"""

from __future__ import annotations

import json
import math
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import mpmath

import pyengine as pe

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from batch_truth import sampled_profile, truncated_profile  # noqa: E402

__all__ = ["SETTINGS", "rows"]

DIGITS = 16
PROVEN = "pyengine.reference: ball arithmetic, proven"
SETTINGS: dict[str, dict[str, Any]] = {
    "group": {
        "noise": "2",
        "p": "0.1",
        "steps": 100,
        "scheme": "group",
        "group_size": 2,
        "provenance": PROVEN,
    },
    "truncated": {
        "noise": "1",
        "p": "1/128",
        "steps": 1,
        "scheme": "truncated_poisson",
        "batch_size": 20,
        "dataset_size": 2048,
        "provenance": "tests/batch_truth.py: closed profiles mixed by exact binomial tails",
    },
    "fixed": {
        "noise": "2",
        "p": "1/32",
        "steps": 200,
        "scheme": "without_replacement",
        "batch_size": 256,
        "dataset_size": 8192,
        "provenance": PROVEN,
    },
    "replaced": {
        "noise": "1",
        "p": "1/8",
        "steps": 1,
        "scheme": "without_replacement",
        "adjacency": "substitute",
        "batch_size": 16,
        "dataset_size": 128,
        "provenance": PROVEN,
    },
    "epoch": {
        "noise": "1",
        "p": "1/100",
        "steps": 100,
        "scheme": "random_allocation",
        "epochs": 1,
        "provenance": PROVEN,
    },
    "epochs": {
        "noise": "1",
        "p": "1/100",
        "steps": 500,
        "scheme": "random_allocation",
        "epochs": 5,
        "provenance": "tests/data/random_allocation.json, 12 digits",
    },
}
ASKED: dict[str, dict[str, tuple[str, ...]]] = {
    "group": {"gamma": ("0.01",), "delta": ("2",), "epsilon": ("1e-5",)},
    "truncated": {"gamma": ("1e-3",), "delta": ("0.5", "2"), "epsilon": ("1e-5",)},
    "fixed": {"gamma": ("1e-3",), "delta": ("1",), "epsilon": ("1e-5",)},
    "replaced": {"gamma": ("1e-3",), "delta": ("1",), "epsilon": ("1e-3", "1e-5")},
    "epoch": {"gamma": ("1e-3",), "delta": ("0.5", "1"), "epsilon": ("1e-5",)},
    "epochs": {"gamma": ("1e-3",), "delta": ("1.21",), "epsilon": ("1e-5",)},
}
QUESTIONS: dict[str, Callable[..., pe.reference.Value]] = {
    "gamma": pe.reference.gamma_bound,
    "delta": pe.reference.delta,
    "epsilon": pe.reference.epsilon,
}


def rows(name: str) -> Iterator[dict[str, str]]:
    """Questions, places and truths of a setting, one after the other."""
    row = SETTINGS[name]
    for question, places in ASKED[name].items():
        for place in places:
            asked = {"question": question, "at": place}
            if name == "truncated":
                yield asked | truncated(row, question, place)
            else:
                answer = published if name == "epochs" else proven
                yield asked | {"truth": answer(row, question, place)}


def mechanism(row: dict[str, Any]) -> pe.Mechanism:
    """What is released, for the reference: parameters are the doubles nearest to the texts."""
    noise, steps = float(row["noise"]), row["steps"]
    if row["scheme"] == "group":
        p = float(Fraction(row["p"]))
        return pe.dp_sgd(noise, p, steps, group_size=row["group_size"])
    if row["scheme"] == "random_allocation":
        return pe.dp_sgd_allocated(noise, steps // row["epochs"], row["epochs"])
    return pe.GaussianMechanism(noise).sampled_without_replacement(**sizes(row)).composed(steps)


def sizes(row: dict[str, Any]) -> dict[str, int]:
    """Of a batch and of the data set."""
    return {key: row[key] for key in ("batch_size", "dataset_size")}


def proven(row: dict[str, Any], question: str, place: str) -> str:
    """By the reference, which must have proven it."""
    adjacency = row.get("adjacency", "add" if question == "gamma" else "add_remove")
    value = QUESTIONS[question](
        mechanism(row), float(place), adjacency=adjacency, digits=DIGITS + 1
    )
    if not value.certified:
        raise SystemExit(f"not proven: {question} at {place}, {row}")
    return shown(value)


def truncated(row: dict[str, Any], question: str, place: str) -> dict[str, str]:
    """From closed profiles of one step: of the pair that dominates, and what two data sets attain.

    These differ by a record beside others that move nothing: it is a Poisson sample then, at the
    chance with which the record stays in the batch.
    """
    noise, p, batch, records = mpmath.mpf(row["noise"]), Fraction(row["p"]), *sizes(row).values()
    full = at_least(p, records - 1, batch)
    inside = at_least(p, records, batch + 1) * batch / records
    stays = (1 - full) * p + inside

    def dominating(epsilon: Any, adjacency: str) -> Any:
        return truncated_profile(float(noise), p, batch, records, epsilon, adjacency)

    def attained(epsilon: Any, adjacency: str) -> Any:
        rate = mpmath.mpf(stays.numerator) / stays.denominator
        return sampled_profile(noise, rate, epsilon, adjacency)

    with mpmath.workdps(60):
        at = mpmath.mpf(float(place))
        return {
            word: shown(by_profile(profile, question, at))
            for word, profile in (("truth", dominating), ("attained", attained))
        }


def at_least(p: Fraction, trials: int, least: int) -> Fraction:
    """Chance of at least so many successes."""
    rest = sum(
        (math.comb(trials, i) * p**i * (1 - p) ** (trials - i) for i in range(least)), Fraction(0)
    )
    return 1 - rest


def by_profile(profile: Callable[[Any, str], Any], question: str, at: Any) -> Any:
    """Answer from the profiles of both orders."""
    if question == "gamma":
        return lowest_line(lambda e: profile(e, "remove"), at)
    if question == "delta":
        return max(profile(at, "add"), profile(at, "remove"))
    found = mpmath.findroot(
        lambda e: mpmath.log(profile(e, "remove") / at), (0.01, 3), solver="illinois"
    )
    if profile(found, "add") > at:
        raise SystemExit(f"add is the larger order at {at}")
    return found


def lowest_line(profile: Callable[[Any], Any], kappa: Any) -> Any:
    """Smallest e^ε κ + δ(ε), which is γ(κ): where its derivative in ε vanishes."""

    def line(epsilon: Any) -> Any:
        return mpmath.exp(epsilon) * kappa + profile(epsilon)

    step = mpmath.mpf("1e-15")  # the slope is known to 1e-30, and the line to its square

    def slope(epsilon: Any) -> Any:
        return (line(epsilon + step) - line(epsilon - step)) / (2 * step * kappa)

    best = min((mpmath.mpf(i) / 20 for i in range(1, 100)), key=line)
    place = mpmath.findroot(slope, (best, best + step**0.5), tol=1e-40)
    if abs(slope(place)) > 1e-18:
        raise SystemExit(f"no lowest line at {kappa}")
    return line(place)


def published(row: dict[str, Any], question: str, place: str) -> str:
    """From the file of random allocation, as it stands there: remove is the larger order."""
    order = "add" if question == "gamma" else "remove"
    file = ROOT / "tests" / "data" / "random_allocation.json"
    wanted = {
        "sigma": row["noise"],
        "steps": row["steps"] // row["epochs"],
        "epochs": row["epochs"],
        "adjacency": order,
        "question": question,
    }
    (found,) = (
        each
        for each in json.loads(file.read_text("utf-8"))
        if wanted.items() <= each.items() and float(each["argument"]) == float(place)
    )
    return str(found["value"])


def shown(value: Any) -> str:
    """The digits that the grid keeps."""
    with mpmath.workdps(50):
        return str(mpmath.nstr(mpmath.mpf(value), DIGITS, strip_zeros=False))
