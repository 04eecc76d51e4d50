"""Random questions: the same one for the same seed and index, on every machine."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

from campaign import ordinary
from campaign.causes import cause_of, pose_cause
from campaign.ordinary import ORDINARY
from campaign.steps import between, text_of

__all__ = ["QUESTIONS", "pose"]

Step = dict[str, Any]
QUESTIONS = ("trade_off", "gamma_bound", "delta", "epsilon")
FINITE_KINDS = {"response", "generic"}  # a sampled one says nothing of another record
NEAR_ONE = math.nextafter(1.0, 0.0)
LEAST = 5e-324


def pose(seed: str, index: int) -> dict[str, Any]:
    """Question number ``index`` of a seed, as plain data.

    ``family``, ``steps``, ``adjacency``, ``question``, ``method``, ``form`` and ``argument``, a
    text: a double in hexadecimal, or ``touching`` and a number that chooses it from the law.
    """
    rng = random.Random(f"{seed}/{index}")
    if seed.startswith(ORDINARY):
        return _ordinary(rng)
    cause = cause_of(seed)
    if cause is not None:
        return pose_cause(cause, rng)
    name = rng.choices([f[0] for f in FAMILIES], [f[1] for f in FAMILIES])[0]
    steps = {f[0]: f[2] for f in FAMILIES}[name](rng)
    adjacency = rng.choices(("add", "remove", "add_remove", "substitute"), (4, 4, 4, 2))[0]
    if adjacency == "substitute" and not _substitutes(name, steps):
        adjacency = rng.choice(("add", "remove"))
    question = rng.choice(QUESTIONS)
    touching = name in TOUCHING or (rng.random() < 0.25 and name not in PLAIN)
    argument = f"touching {rng.getrandbits(48)}" if touching else text_of(_argument(rng, question))
    return {
        "family": name,
        "steps": steps,
        "adjacency": adjacency,
        "question": question,
        "method": rng.choice(METHODS.get(name, ("auto",))) if rng.random() < 0.2 else "auto",
        "form": rng.choices(("scalar", "both", "array"), (7, 2, 1))[0],
        "argument": argument,
    }


def _ordinary(rng: random.Random) -> dict[str, Any]:
    family, chosen = ordinary.steps(rng)
    adjacency = rng.choices(("add", "remove", "add_remove", "substitute"), (3, 3, 6, 2))[0]
    sampled = any(step["sampling"] is not None and "p" in step["sampling"] for step in chosen)
    kinds = {step["kind"] for step in chosen}
    if adjacency == "substitute" and ("pair" in kinds or (sampled and kinds & FINITE_KINDS)):
        adjacency = "add_remove"
    question = rng.choice(QUESTIONS)
    return {
        "family": family,
        "steps": chosen,
        "adjacency": adjacency,
        "question": question,
        "method": "auto",
        "form": "scalar",
        "argument": text_of(ordinary.argument(rng, question)),
    }


def _substitutes(name: str, steps: list[Step]) -> bool:
    """Whether the mechanisms say what another record does, and the truth knows it."""
    for step in steps:
        sampling = step["sampling"]
        if step["kind"] in ("pair", "distributions"):
            return False
        if sampling is None:
            continue
        if "batch" in sampling or step["kind"] not in ("gaussian", "laplace"):
            return False
        if name in ("gaussian, many", "laplace, many"):
            return False
    return True


def _argument(rng: random.Random, question: str) -> float:
    if question == "delta":
        kind = rng.random()
        if kind < 0.1:
            return 0.0
        if kind < 0.15:
            return rng.choice((math.inf, 700.0, 745.2, 1e-300, 1e-16, math.log(2.0), math.log(3.0)))
        return between(rng, 1e-4, 1e2 if kind < 0.9 else 1e4)
    kind = rng.random()
    if kind < 0.06:
        return rng.choice((0.0, 1.0, LEAST, NEAR_ONE, 0.5, 2.0**-53))
    if kind < 0.3:
        return rng.random()
    if kind < 0.7:
        return between(rng, 1e-12, 1.0)
    if kind < 0.85:
        return between(rng, 1e-300, 1e-12)
    return 1.0 - between(rng, 1e-15, 0.5)


def _number(rng: random.Random, low: float, high: float) -> str:
    """A number between bounds: any double, a double of few digits, or an exact decimal."""
    value = between(rng, low, high)
    kind = rng.random()
    if kind < 0.5:
        return text_of(value)
    rounded = float(f"{value:.{rng.randrange(1, 4)}g}")
    rounded = min(max(rounded, low), high)
    return text_of(rounded) if kind < 0.8 else text_of(Fraction(repr(rounded)))


def _noise(rng: random.Random, low: float = 0.3, high: float = 20.0) -> str:
    if rng.random() < 0.15:  # beyond the ordinary
        low, high = low / 30, high * 50
    return _number(rng, low, high)


def _rate(rng: random.Random) -> str:
    kind = rng.random()
    if kind < 0.1:
        return text_of(1.0 - between(rng, 1e-12, 0.4))
    if kind < 0.15:
        return _number(rng, 1e-12, 1e-5)
    return _number(rng, 1e-5, 0.999)


def _sampling(rng: random.Random, none: float = 0.3) -> Step | None:
    kind = rng.random()
    if kind < none:
        return None
    if kind < none + 0.75 * (1.0 - none):
        return {"p": _rate(rng)}
    size = int(between(rng, 2.0, 1e6))
    return {"batch": rng.randrange(1, size) if rng.random() < 0.5 else 1, "size": size}


def _step(kind: str, of: Step, sampling: Step | None = None, steps: int = 1) -> Step:
    return {"kind": kind, "of": of, "sampling": sampling, "steps": steps}


def _count(rng: random.Random, most: float) -> int:
    return int(between(rng, 1.0, most))


def _gaussian(rng: random.Random) -> list[Step]:
    number = rng.choice((1, 1, 1, 2, 3))
    most = 1e6 if rng.random() < 0.9 else 1e12
    return [
        _step("gaussian", {"noise": _noise(rng)}, None, _count(rng, most)) for _ in range(number)
    ]


def _gaussian_step(rng: random.Random, none: float = 0.0) -> list[Step]:
    return [_step("gaussian", {"noise": _noise(rng)}, _sampling(rng, none))]


def _gaussian_two(rng: random.Random) -> list[Step]:
    if rng.random() < 0.5:
        (step,) = _gaussian_step(rng)
        return [{**step, "steps": 2}]
    return _gaussian_step(rng) + _gaussian_step(rng, 0.3)


def _gaussian_many(rng: random.Random) -> list[Step]:
    (step,) = _gaussian_step(rng)
    step["of"]["noise"] = _number(rng, 0.3, 20.0)
    return [{**step, "steps": 2 + _count(rng, 1e6)}]


def _laplace(rng: random.Random) -> list[Step]:
    return [_step("laplace", {"noise": _noise(rng)}, _sampling(rng))]


def _laplace_two(rng: random.Random) -> list[Step]:
    of = {"noise": _number(rng, 0.2, 20.0)}
    if rng.random() < 0.5:
        return [_step("laplace", of, _sampling(rng), 2)]
    return [_step("laplace", of, _sampling(rng)), *_laplace(rng)]


def _laplace_many(rng: random.Random) -> list[Step]:
    return [_step("laplace", {"noise": _number(rng, 0.3, 20.0)}, None, 2 + _count(rng, 300))]


def _discrete_gaussian(rng: random.Random) -> list[Step]:
    sensitivity = rng.choice((1, 1, 2, 3))
    of = {"noise": _number(rng, 0.2, 6.0 / sensitivity), "sensitivity": sensitivity}
    sampling = _sampling(rng, 0.5)
    return [_step("discrete_gaussian", of, sampling, 1 if sampling else rng.choice((1, 1, 2, 3)))]


def _discrete_laplace(rng: random.Random) -> list[Step]:
    sensitivity = rng.choice((1, 1, 1, 2, 3))
    of = {"noise": _noise(rng), "sensitivity": sensitivity}
    return [_step("discrete_laplace", of, _sampling(rng, 0.4), _finite_count(rng, sensitivity + 1))]


def _finite_count(rng: random.Random, kinds: int) -> int:
    """Number of repetitions that leaves at most a few thousand outcomes."""
    most = {2: 1000, 3: 40, 4: 12, 5: 7}.get(kinds, 4 if kinds < 8 else 2)
    return _count(rng, most if rng.random() < 0.1 else max(2, most // 5))


def _response(rng: random.Random) -> list[Step]:
    categories = rng.choice((2, 2, 2, 3, 10, 1000))
    kind = rng.random()
    if kind < 0.1:
        truth = rng.choice(("0x0.0p+0", "0x1.0p+0", "1/2", "3/4", text_of(LEAST), "1/3"))
    elif kind < 0.7:
        truth = _number(rng, 0.3, 0.9999)
    else:
        truth = text_of(rng.random())
    of = {"truth": truth, "categories": categories}
    return [_step("response", of, _sampling(rng, 0.5), _finite_count(rng, 2 + (categories > 2)))]


def _generic(rng: random.Random) -> list[Step]:
    kind = rng.random()
    epsilon = "0x0.0p+0" if kind < 0.05 else _number(rng, 1e-3, 20.0 if kind < 0.9 else 600.0)
    kind = rng.random()
    delta = rng.choice(("0x0.0p+0", "0x1.0p+0")) if kind < 0.2 else _number(rng, 1e-15, 0.5)
    return [
        _step(
            "generic",
            {"epsilon": epsilon, "delta": delta},
            _sampling(rng, 0.5),
            _finite_count(rng, 3),
        )
    ]


def _pair(rng: random.Random) -> list[Step]:
    size = rng.choice((1, 2, 2, 3, 3, 4, 5, 7))
    unit = rng.choice((10, 1000, 2**20, 2**52))
    exact = rng.random() < 0.5 or unit in (10, 1000)

    def vector() -> list[str]:
        weights = [0 if rng.random() < 0.15 else int(between(rng, 1.0, unit)) for _ in range(size)]
        if not sum(weights):
            weights[0] = 1
        # cut to multiples of 1/unit that add up to 1, which are doubles if unit is a power of 2
        cut = [w * unit // sum(weights) for w in weights]
        cut[cut.index(max(cut))] += unit - sum(cut)
        fractions = [Fraction(w, unit) for w in cut]
        return [text_of(x) if exact else text_of(float(x)) for x in fractions]

    of = {"p": vector(), "q": vector()}
    return [_step("pair", of, _sampling(rng, 0.5), _finite_count(rng, size))]


def _distributions(rng: random.Random) -> list[Step]:
    name = rng.choice(
        ("normal", "normal", "laplace", "logistic", "cauchy", "exponential", "uniform")
    )
    x = text_of(between(rng, 0.05, 5.0))
    of = {"name": name, "x": x}
    steps = 1
    if name == "normal":
        of["scale"] = text_of(rng.choice((1.0, between(rng, 0.5, 2.0))))
    if name == "exponential":  # rates 1/x and 1, x < 1
        of["x"] = text_of(between(rng, 0.3, 0.95))
    if name == "uniform":
        of["x"] = text_of(rng.random())
        steps = _count(rng, 20)
    return [_step("distributions", of, _sampling(rng, 0.5), steps)]


def _mixture(rng: random.Random) -> list[Step]:
    """Finite steps beside others, and beside continuous ones."""
    small = (_response, _generic, _discrete_laplace, _pair)

    def finite(most: int) -> Step:
        (step,) = rng.choice(small)(rng)
        return {**step, "steps": min(step["steps"], rng.randrange(1, most))}

    kind = rng.random()
    if kind < 0.35:
        return [finite(12), finite(4)]
    first = finite(8)
    if kind < 0.6:
        (other,) = [_step("gaussian", {"noise": _noise(rng)}, None, _count(rng, 1e5))]
    elif kind < 0.8:
        (other,) = _gaussian_step(rng)
    else:
        (other,) = _laplace(rng)
    return [first, other]


# Weights depend on the importance of a family and on the cost of its questions.
FAMILIES = (
    ("gaussian", 15, _gaussian),
    ("gaussian, one step", 20, _gaussian_step),
    ("gaussian, two steps", 4, _gaussian_two),
    ("gaussian, many", 2.5, _gaussian_many),
    ("laplace, one step", 9, _laplace),
    ("laplace, two steps", 1, _laplace_two),
    ("laplace, many", 0.4, _laplace_many),
    ("discrete gaussian", 6, _discrete_gaussian),
    ("discrete laplace", 6, _discrete_laplace),
    ("randomized response", 8, _response),
    ("generic", 9, _generic),
    ("probability vectors", 9, _pair),
    ("distributions", 1.5, _distributions),
    ("mixture", 3, _mixture),
)
# Families whose truth costs too much for a search: the argument is chosen together with it.
TOUCHING = ("gaussian, two steps", "laplace, two steps", "mixture")
PLAIN = ("gaussian, many", "laplace, many")
FINITE = ("auto", "lattice")
METHODS = {
    "gaussian": ("auto", "closed_form"),
    "gaussian, one step": ("auto", "closed_form"),
    "gaussian, two steps": ("auto", "lattice"),
    "gaussian, many": ("auto", "lattice"),
    "laplace, one step": FINITE,
    "laplace, two steps": FINITE,
    "discrete laplace": FINITE,
    "discrete gaussian": FINITE,
    "randomized response": FINITE,
    "generic": FINITE,
    "probability vectors": FINITE,
    "mixture": FINITE,
}
