"""Settings of one run on the page: checked against limits, and converted into a mechanism."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from pyengine._support import checks
from pyengine.mechanisms import GaussianMechanism, Mechanism, dp_sgd, dp_sgd_allocated
from pyengine.mechanisms.threat_models import THREAT_MODELS
from pyengine.workbench.statement import ADJACENCIES

__all__ = ["CHOICES", "RANGES", "SettingError", "Settings"]

# least and largest value of a number, and whether it is an integer; steps are those of all epochs
RANGES: dict[str, tuple[float, float, bool]] = {
    "noise_multiplier": (0.01, 10_000.0, False),
    "sampling_probability": (1e-9, 1.0, False),
    "steps": (1, 10**8, True),
    "batch_size": (1, 10**9, True),
    "dataset_size": (1, 10**10, True),
    "epochs": (1e-3, 10**6, False),
    "dimension": (1, 10**9, True),
    "delta": (1e-300, 0.999, False),
    "false_positive_rate": (1e-300, 0.999, False),
    "kappa": (1e-300, 0.999, False),
    "prior": (1e-300, 0.999, False),
}
CHOICES: dict[str, tuple[str, ...]] = {
    "size": ("batch", "rate"),
    "sampling": ("poisson", "without_replacement", "shuffle", "allocation", "none"),
    "adjacency": ADJACENCIES,
    "threat_model": THREAT_MODELS,
}


class SettingError(ValueError):
    """An invalid setting: its name, and a message with the rule and the value."""

    def __init__(self, name: str, message: str) -> None:
        super().__init__(message)
        self.name = name


@dataclass(frozen=True)
class Settings:
    """The settings of one run: a value for each name in `RANGES` and `CHOICES`."""

    numbers: dict[str, float]
    words: dict[str, str]
    proven: bool

    @classmethod
    def read(cls, given: Any) -> Settings:
        """Make settings from JSON; SettingError for missing ones, or values outside the limits."""
        if not isinstance(given, Mapping):
            raise SettingError("", "settings must be an object of names and values")
        unknown = sorted(set(given) - {*RANGES, *CHOICES, "proven"}, key=str)
        if unknown:
            raise SettingError(str(unknown[0]), f"there is no setting {unknown[0]!r}")
        proven = given.get("proven", False)
        if not isinstance(proven, bool):
            raise SettingError("proven", f"proven must be true or false, got {proven!r}")
        return cls(
            {name: _number(name, given.get(name)) for name in RANGES},
            {name: _word(name, given.get(name)) for name in CHOICES},
            proven,
        )

    def mechanism(self) -> Mechanism:
        """The mechanism of the run; SettingError if settings contradict each other."""
        numbers, sampling = self.numbers, self.words["sampling"]
        noise = numbers["noise_multiplier"]
        if self.words["size"] == "rate":
            steps = int(numbers["steps"])
            if sampling == "none":
                return GaussianMechanism(noise).composed(steps)
            if sampling != "poisson":
                what = "these batches need a batch size and a number of records, not a probability"
                raise SettingError("sampling", what)
            return dp_sgd(noise, numbers["sampling_probability"], steps)
        batch, records = int(numbers["batch_size"]), int(numbers["dataset_size"])
        epochs, most = numbers["epochs"], RANGES["steps"][1]
        if batch > records:
            raise SettingError(
                "batch_size", f"batch size must be at most the number of records; got {batch:,}"
            )
        if epochs * records / batch > most:
            raise SettingError("epochs", f"that makes more than {most:,} steps")
        if sampling == "allocation":
            if epochs != math.floor(epochs):
                what = f"random allocation needs whole epochs; got {epochs:g}"
                raise SettingError("epochs", what)
            return dp_sgd_allocated(noise, max(1, records // batch), int(epochs))
        run = dp_sgd(
            noise,
            batch_size=batch,
            dataset_size=records,
            epochs=epochs,
            sampling="poisson" if sampling == "none" else sampling,
        )
        return GaussianMechanism(noise).composed(run.steps) if sampling == "none" else run


def _number(name: str, value: Any) -> float:
    low, high, whole = RANGES[name]
    what = name.replace("_", " ")
    rule = f"{what} must be a {'whole ' if whole else ''}number in [{low:g}, {high:g}]"
    if isinstance(value, bool) or not isinstance(value, int | float) or not math.isfinite(value):
        raise SettingError(name, f"{rule}, got {_short(value)}")
    if not low <= value <= high or (whole and value != math.floor(value)):
        raise SettingError(name, f"{rule}, got {_short(value)}")
    return int(value) if whole else float(value)


def _word(name: str, value: Any) -> str:
    words = CHOICES[name]
    if not isinstance(value, str) or value not in words:
        hint = checks.did_you_mean(str(value)[:40], words)
        rule = f"{name.replace('_', ' ')} must be one of {', '.join(words)}"
        raise SettingError(name, f"{rule}; got {_short(value)}{hint}")
    return value


def _short(value: Any) -> str:
    if value is None:
        return "nothing"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:40]}…"
