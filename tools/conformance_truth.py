"""Truth for ``pyengine conformance``: writes pyengine/accounting/conformance/grid.json.

Run with ``python -m tools.conformance_truth`` from the checkout (needs python-flint); with
``--settings`` it computes those and keeps the others.  On Poisson samples each value comes from two
contour inversions in ball arithmetic that share nothing but the definition (tests/reference); they
must agree in 16 digits.  For other schemes see tools/scheme_truth.py.  Parameters are the doubles
nearest to the fractions given, because that is what an accountant is called with.
"""

from __future__ import annotations

import argparse
import json
import math
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path

from flint import arb, ctx, fmpq

from tests.reference import check
from tests.reference.model import Phase, Point
from tests.reference.saddle import Cumulants
from tests.reference.solve import solve
from tools import scheme_truth

OUTPUT = Path(__file__).resolve().parents[1] / "pyengine/accounting/conformance/grid.json"
DIGITS = 16
POISSON = f"two contour inversions in ball arithmetic (tests/reference), equal in {DIGITS} digits"
SETTINGS = {
    "a": ("0.8", "0.001", 10_000),
    "b": ("1", "0.01", 1000),
    "c1": ("2.5", "16384/1281167", 72_000),
    "c2": ("0.6", "0.0001", 10**6),
}
GAMMA = ("0.1", "1e-3", "1e-5", "1e-7")
DELTA = {"a": ("1", "4"), "b": ("1", "2", "4", "8"), "c1": ("8",), "c2": ("2",)}
EPSILON = {
    "a": ("1e-5", "1e-7"),
    "b": ("1e-5", "1e-8", "1e-12", "1e-15", "1e-20"),
    "c1": ("1e-5", "8e-7"),
    "c2": ("1e-5", "8e-7"),
}


def exactly(text: str) -> Fraction:
    """The double nearest to a decimal number or a fraction."""
    return Fraction(float(Fraction(text)))


def target(text: str) -> arb:
    return arb(fmpq(*exactly(text).as_integer_ratio()))


def threshold(phases: tuple[Phase, ...], name: str, goal: arb) -> float:
    """Double c at which a quantity is the goal but for 1e-13 of it: secant steps."""
    cumulants = Cumulants(phases)
    c = cumulants.threshold("p_above", math.log(float(goal))) + cumulants.shift
    previous, c = c, c + 1e-3 * math.sqrt(cumulants.mean_variance(0.5)[1])
    old = float((check.run(Point(phases, previous), "line")[name] / goal).log())
    for _ in range(25):
        error = float((check.run(Point(phases, c), "line")[name] / goal).log())
        if abs(error) < 1e-13 or error == old:
            break
        previous, c, old = c, c - error * (c - previous) / (error - old), error
    return c


def at(phases: tuple[Phase, ...], c: float) -> dict[str, arb]:
    """Quantities at a threshold, agreed by two runs."""
    answer = solve([Point(phases, c)])[0]
    if answer is None or min(answer.digits.values()) < DIGITS:
        raise SystemExit(f"two runs disagree at {c}, {phases}: {answer}")
    ctx.prec = 200
    return {name: arb(text) for name, text in answer.values.items()}


def gamma(phases: tuple[Phase, ...], kappa: str) -> arb:
    """Q(S > c) where P(S > c) = kappa: the tangent at a double c, in error by the second order."""
    c = threshold(phases, "p_above", target(kappa))
    values = at(phases, c)
    return values["q_above"] + arb(c).exp() * (target(kappa) - values["p_above"])


def delta(phases: tuple[Phase, ...], epsilon: str) -> arb:
    """H_{e^c}(Q‖P) at c = epsilon."""
    return at(phases, float(epsilon))["h_qp"]


def epsilon(phases: tuple[Phase, ...], delta: str) -> arb:
    """The c with H_{e^c}(Q‖P) = delta; the derivative in c is -e^c P(S > c)."""
    c = threshold(phases, "h_qp", target(delta))
    values = at(phases, c)
    return arb(c) + (values["h_qp"] - target(delta)) / (arb(c).exp() * values["p_above"])


def poisson(name: str) -> Iterator[dict[str, str]]:
    """Questions, places and truths of a setting on Poisson samples, one after the other."""
    noise, p, steps = SETTINGS[name]
    phases = (Phase(float(noise), float(Fraction(p)), steps),)
    grid = [("gamma", gamma, GAMMA), ("delta", delta, DELTA[name])]
    for word, question, places in [*grid, ("epsilon", epsilon, EPSILON[name])]:
        for place in places:
            truth = question(phases, place).mid().str(DIGITS, radius=False)
            yield {"question": word, "at": place, "truth": truth}


def main() -> None:
    """Compute the values of all settings, or of those that are named, and write the file."""
    settings = {
        name: {"noise": noise, "p": p, "steps": steps, "provenance": POISSON}
        for name, (noise, p, steps) in SETTINGS.items()
    } | scheme_truth.SETTINGS
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--settings", nargs="+", choices=list(settings), help="only these (all)")
    chosen = parser.parse_args().settings or list(settings)
    old = json.loads(OUTPUT.read_text("utf-8"))["truths"] if OUTPUT.exists() else []
    truths = []
    for name in settings:
        if name not in chosen:
            truths += [row for row in old if row["setting"] == name]
            continue
        for row in (poisson if name in SETTINGS else scheme_truth.rows)(name):
            truths.append({"setting": name, **row})
            print(truths[-1], flush=True)
    content = {
        "about": "DP-SGD: gamma at kappa (H0 without the record), delta at epsilon and epsilon at "
        "delta (the larger of both orders). Parameters are the doubles nearest to the texts.",
        "provenance": "python -m tools.conformance_truth; each setting says what made its truths",
        "settings": settings,
        "truths": truths,
    }
    OUTPUT.write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
