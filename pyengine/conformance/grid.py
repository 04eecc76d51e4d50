"""Settings and questions whose answers are known."""

from __future__ import annotations

import importlib.resources
import json
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Case", "Setting", "load"]


@dataclass(frozen=True)
class Setting:
    """A DP-SGD run: the doubles that an accountant is called with.

    Parameters
    ----------
    name : str
        Short name.
    noise_multiplier, sampling_probability : float
        As in `pyengine.dp_sgd`.
    steps : int
        Number of steps.
    """

    name: str
    noise_multiplier: float
    sampling_probability: float
    steps: int


@dataclass(frozen=True)
class Case:
    """A question with its answer.

    Parameters
    ----------
    setting : Setting
        The run.
    question : {"gamma", "delta", "epsilon"}
        γ at κ, δ at ε, or ε at δ.
    at : str
        κ, ε or δ; the double nearest to it is meant.
    truth : str
        The answer to 16 digits.  γ has H0 without the record; δ and ε are the larger ones of both
        orders.
    """

    setting: Setting
    question: str
    at: str
    truth: str


def load() -> list[Case]:
    """All questions, in the order of the settings."""
    file = importlib.resources.files("pyengine.conformance").joinpath("grid.json")
    content = json.loads(file.read_text(encoding="utf-8"))
    settings = {
        name: Setting(name, float(row["noise"]), float(Fraction(row["p"])), row["steps"])
        for name, row in content["settings"].items()
    }
    return [
        Case(settings[row["setting"]], row["question"], row["at"], row["truth"])
        for row in content["truths"]
    ]
