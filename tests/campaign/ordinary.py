"""Users' questions: ordinary parameters, up to 10^6 steps of every mechanism, and mixtures.

Noise from 0.3 to 20, rates from 1e-5 to 1, levels from 1e-9 on. Nearly all their truths take too
long for a campaign, so it mainly looks for refusals, and for answers that take too much time or
memory.
"""

from __future__ import annotations

import random
from typing import Any

from campaign.steps import between, text_of, vectors

__all__ = ["ORDINARY", "argument", "steps"]

ORDINARY = "ordinary"  # prefix of the names of such campaigns
Step = dict[str, Any]
KINDS = (
    "gaussian",
    "gaussian",
    "gaussian",
    "laplace",
    "discrete_gaussian",
    "discrete_laplace",
    "response",
    "generic",
    "pair",
)


def _rounded(rng: random.Random, low: float, high: float) -> str:
    """A number of four digits, as people write them."""
    return text_of(min(max(float(f"{between(rng, low, high):.4g}"), low), high))


def _of(rng: random.Random, kind: str) -> Step:
    if kind in ("gaussian", "laplace"):
        return {"noise": _rounded(rng, 0.3, 20.0)}
    if kind in ("discrete_gaussian", "discrete_laplace"):
        return {"noise": _rounded(rng, 0.3, 20.0), "sensitivity": rng.choice((1, 1, 2, 3))}
    if kind == "response":
        return {"truth": _rounded(rng, 0.3, 0.99), "categories": rng.choice((2, 2, 3, 10, 100))}
    if kind == "generic":
        return {"epsilon": _rounded(rng, 0.01, 5.0), "delta": _rounded(rng, 1e-12, 1e-3)}
    return vectors(rng, rng.choice((2, 3, 4)))


def _step(rng: random.Random) -> Step:
    kind, sampling = rng.choice(KINDS), None
    way = rng.random()
    if way < 0.45:
        sampling = {"p": _rounded(rng, 1e-5, 1.0)}
    elif way < 0.6 and kind != "pair":
        size = int(between(rng, 100.0, 1e6))
        sampling = {"batch": rng.randrange(1, max(2, size // 10)), "size": size}
    number = 1 if rng.random() < 0.2 else int(between(rng, 1.0, 1e6))
    return {"kind": kind, "of": _of(rng, kind), "sampling": sampling, "steps": number}


def steps(rng: random.Random) -> tuple[str, list[Step]]:
    """Return a family's name and the steps of a mechanism."""
    chosen = [_step(rng) for _ in range(rng.choice((1, 1, 1, 2, 3)))]
    if len(chosen) > 1:
        return "mixture", chosen
    how = "one step" if chosen[0]["steps"] == 1 else "many"
    return f"{chosen[0]['kind'].replace('_', ' ')}, {how}", chosen


def argument(rng: random.Random, question: str) -> float:
    """Return an ordinary argument of a question."""
    if question == "delta":
        return between(rng, 1e-2, 30.0)
    if question == "trade_off":
        return rng.random() if rng.random() < 0.5 else between(rng, 1e-9, 0.5)
    return between(rng, 1e-9, 0.5)
