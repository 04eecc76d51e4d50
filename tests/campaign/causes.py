"""Questions around the causes of past wrong bounds: one campaign for each cause.

A seed that begins with the name of a cause asks only such questions: some ten thousand in each
region where answers were once outside their bounds, with truths that take milliseconds.
``closed-forms`` has the whole domain of one Gaussian step and of plain noise. For few steps there
is ``tools/campaigns.py few-steps``.
"""

from __future__ import annotations

import math
import random
from collections.abc import Callable
from typing import Any

from campaign.steps import between, text_of, vectors

__all__ = ["CAUSES", "cause_of", "pose_cause"]

Step = dict[str, Any]
Question = dict[str, Any]


def _rounded(rng: random.Random, value: float, low: float, high: float) -> float:
    """The value, or a nearby number of few digits."""
    return (
        min(max(float(f"{value:.{rng.randrange(1, 5)}g}"), low), high)
        if rng.random() < 0.4
        else value
    )


def _sampled(rng: random.Random, noise: tuple[float, float]) -> tuple[Step, float]:
    """A sampled Gaussian step, and its sampling probability."""
    value = _rounded(rng, between(rng, *noise), *noise)
    if rng.random() < 0.75:
        p = _rounded(rng, between(rng, 1e-6, 0.999), 1e-6, 0.999)
        sampling: Step = {"p": text_of(p)}
    else:
        size = int(between(rng, 3.0, 1e6))
        batch = rng.randrange(1, size)
        sampling, p = {"batch": batch, "size": size}, batch / size
    of = {"noise": text_of(value)}
    return {"kind": "gaussian", "of": of, "sampling": sampling, "steps": 1}, p


def _small_noise_epsilon(rng: random.Random) -> Question:
    step, p = _sampled(rng, (1e-3, 0.1))
    share = rng.random() if rng.random() < 0.6 else between(rng, 1e-12, 1.0)
    return _question([step], "add", "epsilon", min(p * share, 1.0))


def _small_noise_delta(rng: random.Random) -> Question:
    step, p = _sampled(rng, (1e-3, 0.1))
    kind = rng.random()
    share = 0.0 if kind < 0.2 else rng.random() if kind < 0.7 else 1.0 - between(rng, 1e-9, 1.0)
    return _question([step], "add", "delta", -math.log1p(-p) * share)


def _largest_loss(rng: random.Random) -> Question:
    kind, most = rng.random(), 12
    if kind < 0.5:
        of: Step = {
            "truth": text_of(rng.uniform(0.05, 0.99)),
            "categories": rng.choice((2, 2, 3, 10)),
        }
        if rng.random() < 0.3:
            of["truth"] = rng.choice(("3/4", "1/3", "2/3", "9/10", "99/100"))
        name = "response"
    elif kind < 0.75:
        name, most = "generic", 6
        of = {"epsilon": text_of(between(rng, 1e-3, 8.0)), "delta": "0x0.0p+0"}
    else:
        name, of = "pair", vectors(rng, rng.choice((2, 3)))
    sampling = {"p": text_of(between(rng, 1e-5, 0.99))} if rng.random() < 0.3 else None
    step = {"kind": name, "of": of, "sampling": sampling, "steps": rng.randrange(1, most)}
    adjacency = rng.choice(("add", "remove", "add_remove"))
    delta = rng.choice((0.0, 0.0, 5e-324, 1e-300, between(rng, 1e-30, 1e-3)))
    question = _question([step], adjacency, "epsilon", delta)
    question["method"] = rng.choice(("lattice", "lattice", "auto"))
    return question


def _tiny_approximation(rng: random.Random) -> Question:
    step, p = _sampled(rng, (0.4, 20.0))
    step["sampling"] = {"p": text_of(p)}
    if rng.random() < 0.3:
        step = {**step, "sampling": None, "steps": int(between(rng, 1.0, 1e4))}
    tiny = between(rng, 1e-300, 1e-4)
    asked = rng.choice(("gamma_bound", "trade_off"))
    question = _question([step], rng.choice(("add", "remove")), asked, tiny)
    question["method"] = rng.choice(("edgeworth", "clt"))
    return question


def _closed_form(rng: random.Random) -> Question:
    """From the whole domain of the closed forms, half of them next to an end or a seam."""
    noise, kind = between(rng, 1e-4, 1e3), rng.randrange(5)
    sampling: Step | None = None
    mu, p, steps = 1.0 / noise, 1.0, 1
    if kind < 2:
        rate = rng.choice([between(rng, 1e-12, 1.0), 1.0 - between(rng, 1e-16, 1.0)])
        if 0.0 < rate < 1.0:
            sampling, p = {"p": text_of(rate)}, rate
    elif kind < 4:
        size = rng.randint(1, 10 ** rng.randint(1, 12))
        batch = rng.randint(1, max(1, min(size, 10 ** rng.randint(0, 12))))
        if batch < size:
            sampling = {"batch": batch, "size": size}
            mu, p = 2.0 * mu, batch / size
    else:
        steps = rng.randint(1, 10 ** rng.randint(0, 6))
        mu *= math.sqrt(steps)
    step = {"kind": "gaussian", "of": {"noise": text_of(noise)}, "sampling": sampling}
    adjacency = rng.choice(("add", "remove", "add_remove"))
    asked = rng.choice(("delta", "epsilon", "gamma_bound", "trade_off"))
    argument = (_some_loss if asked == "delta" else _some_level)(rng, mu, p)
    return _question([{**step, "steps": steps}], adjacency, asked, argument)


def _some_loss(rng: random.Random, mu: float, p: float) -> float:
    """An ε: tiny or huge, next to the largest loss of ``add``, or that of an outcome."""
    kind = rng.randrange(6)
    if kind == 0:
        return rng.choice([0.0, between(rng, 1e-300, 1e-3)])
    if kind == 1:
        return between(rng, 1e-3, 1e4)
    if kind == 2 and p < 1.0:
        near = rng.choice([-1, 1]) * between(rng, 1e-17, 1.0)
        return max(-math.log1p(-p) * (1.0 - near), 0.0)
    z = rng.uniform(-10.0, 38.0) if kind < 5 else rng.gauss(0.0, 1.0)
    s = max(mu * (z + 0.5 * mu), 0.0)
    return abs(s + math.log(p) if s > 600.0 else math.log1p(p * math.expm1(s)))


def _some_level(rng: random.Random, mu: float, p: float) -> float:
    """A δ or a level: tiny, next to 1, anywhere, or next to a seam."""
    near = rng.choice([-1, 1]) * between(rng, 1e-17, 0.5)
    places = [
        0.0,
        1.0,
        between(rng, 1e-320, 1e-280),
        between(rng, 1e-300, 1.0),
        between(rng, 1e-6, 1.0),
        1.0 - between(rng, 1e-17, 1.0),
        rng.random(),
        p * math.erf(mu / math.sqrt(8.0)) * (1.0 + near),  # the largest δ
        (1.0 - p) * (1.0 + near),  # where the mixture's parts meet
        0.5 * math.erfc(mu / math.sqrt(8.0)) * (1.0 + near),  # slope -1
        p * (1.0 + near),
    ]
    return min(max(rng.choice(places), 0.0), 1.0)


def _question(steps: list[Step], adjacency: str, asked: str, argument: float) -> Question:
    return {
        "steps": steps,
        "adjacency": adjacency,
        "question": asked,
        "method": "auto",
        "form": "scalar",
        "argument": text_of(argument),
    }


CAUSES: dict[str, Callable[[random.Random], Question]] = {
    "small-noise-epsilon": _small_noise_epsilon,
    "small-noise-delta": _small_noise_delta,
    "largest-loss": _largest_loss,
    "tiny-approximation": _tiny_approximation,
    "closed-forms": _closed_form,
}


def cause_of(seed: str) -> str | None:
    """Name of the cause that a seed asks about, if any."""
    return next((name for name in CAUSES if seed.startswith(name)), None)


def pose_cause(name: str, rng: random.Random) -> Question:
    """A question around a cause."""
    return {"family": name, **CAUSES[name](rng)}
