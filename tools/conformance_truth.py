"""Truth for ``pyengine conformance``: writes pyengine/accounting/conformance/grid.json.

Run ``python -m tools.conformance_truth`` in the checkout (needs python-flint); with ``--settings``
it computes those and keeps the others. Parameters are the doubles nearest to the texts, because
accountants are called with doubles.

Poisson samples, groups, batches without replacement, one epoch of random allocation, trees and
noise of other laws come from the arbitrary precision of `pyengine.reference`, proven. A truncated
Poisson sample comes from the mixture of closed profiles of tests/batch_truth.py, exponential
mechanisms from its search over the outer parameter. Several epochs are copied from
tests/data/random_allocation.json, with the digits that are known there. A selection is that of the
largest Gaussian release, whose law is closed, and a zCDP curve is attained by two coins. None of
them shares code with the engines under test.
"""

from __future__ import annotations

import argparse
import json
import math
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

import mpmath

import pyengine as pe

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / "tests"))

from batch_truth import bounded_range_profile, sampled_profile, truncated_profile  # noqa: E402

OUTPUT = ROOT / "pyengine/accounting/conformance/grid.json"
DIGITS = 16
PROVEN = "pyengine.reference: ball arithmetic, proven"
ALONE = {"p": "1", "provenance": PROVEN}  # all records take part
SETTINGS: dict[str, dict[str, Any]] = {
    "a": {"noise": "0.8", "p": "0.001", "steps": 10_000, "provenance": PROVEN},
    "b": {"noise": "1", "p": "0.01", "steps": 1000, "provenance": PROVEN},
    "c1": {"noise": "2.5", "p": "16384/1281167", "steps": 72_000, "provenance": PROVEN},
    "c2": {"noise": "0.6", "p": "0.0001", "steps": 10**6, "provenance": PROVEN},
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
    "laplace": {**ALONE, "noise": "10", "steps": 20, "scheme": "laplace"},
    "integers": {**ALONE, "noise": "5", "steps": 20, "scheme": "discrete_gaussian"},
    "geometric": {**ALONE, "noise": "10", "steps": 20, "scheme": "discrete_laplace"},
    "coins": {
        **ALONE,
        "noise": "0.9",
        "steps": 20,
        "scheme": "randomized_response",
        "adjacency": "substitute",
    },
    "tree": {**ALONE, "noise": "5", "steps": 64, "scheme": "tree"},
    "choices": {
        **ALONE,
        "noise": "0.5",
        "steps": 10,
        "scheme": "exponential",
        "provenance": "tests/batch_truth.py: search over the outer parameter; attained",
    },
    "best": {
        **ALONE,
        "noise": "4",
        "steps": 1,
        "scheme": "selection",
        "runs": 10.0,
        "provenance": "the largest of the releases, by its closed law; attained",
    },
    "curve": {
        **ALONE,
        "noise": "0.05",
        "steps": 1,
        "scheme": "zcdp",
        "provenance": "two coins that keep all orders, by Newton's method; attained",
    },
}
GAMMA = ("0.1", "1e-3", "1e-5", "1e-7")
SMALL = ("1e-5", "8e-7")
ASKED: dict[str, dict[str, tuple[str, ...]]] = {
    "a": {"gamma": GAMMA, "delta": ("1", "4"), "epsilon": ("1e-5", "1e-7")},
    "b": {
        "gamma": GAMMA,
        "delta": ("1", "2", "4", "8"),
        "epsilon": ("1e-5", "1e-8", "1e-12", "1e-15", "1e-20"),
    },
    "c1": {"gamma": GAMMA, "delta": ("8",), "epsilon": SMALL},
    "c2": {"gamma": GAMMA, "delta": ("2",), "epsilon": SMALL},
    "group": {"gamma": ("0.01",), "delta": ("2",), "epsilon": ("1e-5",)},
    "truncated": {"gamma": ("1e-3",), "delta": ("0.5", "2"), "epsilon": ("1e-5",)},
    "fixed": {"gamma": ("1e-3",), "delta": ("1",), "epsilon": ("1e-5",)},
    "replaced": {"gamma": ("1e-3",), "delta": ("1",), "epsilon": ("1e-3", "1e-5")},
    "epoch": {"gamma": ("1e-3",), "delta": ("0.5", "1"), "epsilon": ("1e-5",)},
    "epochs": {"gamma": ("1e-3",), "delta": ("1.21",), "epsilon": ("1e-5",)},
    "choices": {"delta": ("1",), "epsilon": ("1e-5",)},
}
ORDINARY: dict[str, tuple[str, ...]] = {"gamma": ("1e-3",), "delta": ("1",), "epsilon": ("1e-5",)}
NOISE: dict[str, Callable[[float], pe.mechanisms.Step]] = {
    "laplace": pe.LaplaceMechanism,
    "discrete_gaussian": pe.DiscreteGaussianMechanism,
    "discrete_laplace": pe.DiscreteLaplaceMechanism,
    "randomized_response": lambda coin: pe.RandomizedResponse(1 - Fraction(coin) / 2),
}
QUESTIONS: dict[str, Callable[..., pe.reference.Value]] = {
    "gamma": pe.reference.gamma_bound,
    "delta": pe.reference.delta,
    "epsilon": pe.reference.epsilon,
}


def rows(name: str) -> Iterator[dict[str, str]]:
    """Questions, places and truths of a setting, one after the other."""
    row = SETTINGS[name]
    others = {"epochs": published, "choices": choices, "best": best, "curve": curve}
    for question, places in ASKED.get(name, ORDINARY).items():
        for place in places:
            asked = {"question": question, "at": place}
            if name == "truncated":
                yield asked | truncated(row, question, place)
            else:
                yield asked | {"truth": others.get(name, proven)(row, question, place)}


def mechanism(row: dict[str, Any]) -> pe.Mechanism:
    """The mechanism for the reference; parameters are the doubles nearest to the texts."""
    noise, steps = float(row["noise"]), row["steps"]
    if "scheme" not in row:
        return pe.dp_sgd(noise, float(Fraction(row["p"])), steps)
    if row["scheme"] == "tree":
        return pe.matrix_mechanism(noise, pe.tree_aggregation_matrix(steps))
    if row["scheme"] in NOISE:
        return NOISE[row["scheme"]](noise).composed(steps)
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
    """By the reference, whose bounds must be proven."""
    adjacency = row.get("adjacency", "add" if question == "gamma" else "add_remove")
    value = QUESTIONS[question](
        mechanism(row), float(place), adjacency=adjacency, digits=DIGITS + 1
    )
    if not value.certified:
        raise SystemExit(f"not proven: {question} at {place}, {row}")
    return shown(value)


def truncated(row: dict[str, Any], question: str, place: str) -> dict[str, str]:
    """Bound of the dominating pair, and what two data sets attain, by closed profiles of a step.

    The two data sets differ by a record beside others that contribute 0. For them it is Poisson
    sampling, at the probability with which the record stays in the batch.
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
    """Probability of at least a given number of successes."""
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

    def both(epsilon: Any) -> Any:
        return mpmath.log(max(profile(epsilon, "add"), profile(epsilon, "remove")) / at)

    high = next(i for i in range(1, 60) if both(mpmath.mpf(i) / 2) < 0)
    ends = mpmath.mpf(high - 1) / 2 + mpmath.mpf("0.01"), mpmath.mpf(high) / 2
    return mpmath.findroot(both, ends, solver="illinois")


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


def choices(row: dict[str, Any], question: str, place: str) -> str:
    """Equal steps of the best outer parameter, chosen beforehand; both orders are equal."""

    def profile(epsilon: Any, order: str) -> Any:  # noqa: ARG001
        return bounded_range_profile(float(row["noise"]), row["steps"], epsilon)

    with mpmath.workdps(30):
        return shown(by_profile(profile, question, mpmath.mpf(float(place))))


def best(row: dict[str, Any], question: str, place: str) -> str:
    """The largest, or the smallest, of a geometric number of Gaussian releases.

    With a release's distribution function F that of the largest is φ(F), φ(x) = sx/(1 - (1 - s)x);
    the smallest ones have the profiles of the other order.
    """
    with mpmath.workdps(50):
        mu, stop = 1 / mpmath.mpf(float(row["noise"])), 1 / mpmath.mpf(row["runs"])

        def below(x: Any) -> Any:
            return stop * x / (1 - (1 - stop) * x)

        def log_ratio(z: Any) -> Any:  # of the largest with the record and without it
            first, second = (1 - (1 - stop) * mpmath.ncdf(x) for x in (z - mu, z))
            return mu * z - mu * mu / 2 + 2 * mpmath.log(second / first)

        grid = [mpmath.mpf(i) / 8 for i in range(-160, 161)]
        losses = [log_ratio(z) for z in grid]

        def profile(epsilon: Any, order: str) -> Any:
            sign, shifts = (1, (mu, 0)) if order == "remove" else (-1, (0, mu))
            over = [sign * loss - epsilon for loss in losses]
            ends = [mpmath.mpf("-inf")] if over[0] > 0 else []
            for i in range(len(grid) - 1):
                if (over[i] > 0) != (over[i + 1] > 0):
                    between = grid[i], grid[i + 1]
                    at = mpmath.findroot(
                        lambda z: sign * log_ratio(z) - epsilon, between, solver="illinois"
                    )
                    ends.append(at)
            ends += [mpmath.mpf("inf")] if over[-1] > 0 else []
            masses = [
                sum((-1) ** (i + 1) * below(mpmath.ncdf(end - shift)) for i, end in enumerate(ends))
                for shift in shifts
            ]
            return masses[0] - mpmath.exp(epsilon) * masses[1]

        at = mpmath.mpf(float(place))
        if question != "gamma":
            return shown(by_profile(profile, question, at))
        return shown(max(lowest_line(partial(profile, order=x), at) for x in ("add", "remove")))


def curve(row: dict[str, Any], question: str, place: str) -> str:
    """Coins P(1) = g with the record and a without it, for which all D_τ are at most ρτ.

    With h(g, a, τ) = log(g^τ a^(1-τ) + (1-g)^τ (1-a)^(1-τ)) - (τ - 1) τ ρ the coins on the boundary
    have h = 0 and dh/dτ = 0, those of δ(ε) also dg/da = e^ε (arXiv:2602.04562).
    """
    rho, at = mpmath.mpf(float(row["noise"])), mpmath.mpf(float(place))

    def h(g: Any, a: Any, tau: Any) -> Any:
        first = g**tau * a ** (1 - tau) + (1 - g) ** tau * (1 - a) ** (1 - tau)
        return mpmath.log(first) - (tau - 1) * tau * rho

    def slope(i: int, point: tuple[Any, Any, Any]) -> Any:
        return mpmath.diff(h, point, tuple(int(i == j) for j in range(3)))

    def conditions(g: Any, a: Any, tau: Any, epsilon: Any) -> list[Any]:
        point = g, a, tau
        turned = slope(1, point) + mpmath.exp(epsilon) * slope(0, point)
        return [h(*point), slope(2, point), turned]

    def logged(e: Any, *x: Any) -> list[Any]:
        return conditions(mpmath.exp(x[0]), mpmath.exp(x[1]), 1 + mpmath.exp(x[2]), e)

    with mpmath.workdps(40):
        near = at if question == "delta" else mpmath.mpf("1.3")  # tests of the Gaussian curve
        mu = mpmath.sqrt(2 * rho)
        place_of = near / mu + mu / 2
        ends = mpmath.ncdf(mu - place_of), mpmath.ncdf(-place_of), near / mu**2
        start = [mpmath.log(x) for x in ends]
        if question == "gamma":
            ends = mpmath.log(3 * at), start[2]
            x = mpmath.findroot(lambda g, tau: logged(0, g, mpmath.log(at), tau)[:2], ends)
            found, coins = mpmath.exp(x[0]), (mpmath.exp(x[0]), at)
        elif question == "delta":
            x = mpmath.findroot(lambda *x: logged(at, *x), start)
            coins = mpmath.exp(x[0]), mpmath.exp(x[1])
            found = coins[0] - mpmath.exp(at) * coins[1]
        else:
            x = mpmath.findroot(
                lambda g, a, tau, e: [
                    *logged(e, g, a, tau),
                    mpmath.log((mpmath.exp(g) - mpmath.exp(e + a)) / at),
                ],
                (*start, near),
            )
            found, coins = x[3], (mpmath.exp(x[0]), mpmath.exp(x[1]))
        orders = [1 + mpmath.mpf(10) ** (mpmath.mpf(i) / 20) for i in range(-60, 61)]
        if any(h(*pair, tau) > 1e-30 for pair in (coins, coins[::-1]) for tau in orders):
            raise SystemExit(f"coins {coins} of {question} at {place} break the curve")
        return shown(found)


def published(row: dict[str, Any], question: str, place: str) -> str:
    """From the file of random allocation: remove is the larger order there."""
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


def main() -> None:
    """Compute the values of all or of the named settings, and write the file."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", nargs="+", choices=list(SETTINGS), help="only these (all)")
    chosen = parser.parse_args().settings or list(SETTINGS)
    old = json.loads(OUTPUT.read_text("utf-8"))["truths"] if OUTPUT.exists() else []
    truths = []
    for name in SETTINGS:
        if name not in chosen:
            truths += [row for row in old if row["setting"] == name]
            continue
        for row in rows(name):
            truths.append({"setting": name, **row})
            print(truths[-1], flush=True)
    content = {
        "about": "DP-SGD: gamma at kappa (H0 without the record), delta at epsilon and epsilon at "
        "delta (the larger of both orders). Parameters are the doubles nearest to the texts.",
        "provenance": "python -m tools.conformance_truth; each setting says what made its truths",
        "settings": SETTINGS,
        "truths": truths,
    }
    OUTPUT.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
