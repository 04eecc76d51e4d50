"""Accountants of the shapes of Opacus and of dp_accounting take part without an adapter."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Mapping
from typing import Any

from pyengine._version import DISTRIBUTION
from pyengine.accounting.conformance.adapters.events import event, takes
from pyengine.accounting.conformance.grid import Setting

__all__ = ["adapted"]

ANSWERS = {"epsilon": "get_epsilon", "delta": "get_delta", "gamma": "get_gamma"}


def adapted(thing: Any) -> Any:
    """Adapter of an accountant: an adapter itself, or what makes one or an accountant.

    An accountant of Opacus or riskcal has ``step``, ``history`` and ``get_epsilon``, one of
    dp_accounting ``compose`` and ``get_epsilon``; ValueError for anything else.
    """
    made = thing() if callable(thing) else thing
    if hasattr(made, "methods") and hasattr(made, "answer"):
        return made
    if callable(thing) and hasattr(made, "get_epsilon"):
        if hasattr(made, "step") and hasattr(made, "history"):
            return _Histories(thing, made)
        if hasattr(made, "compose"):
            return _Events(thing, made)
    raise ValueError(
        "accountant must be an adapter, or a class or function that makes an accountant of the "
        f"shape of Opacus' or dp_accounting's, got {thing!r}"
    )


class _Made:
    """What both shapes share: which questions there are answers to, and who answers."""

    def __init__(self, make: Callable[[], Any], made: Any) -> None:
        self._make = make
        self.distribution = _distribution(type(made))
        name = getattr(make, "__name__", type(made).__name__)
        self.methods: Mapping[str, tuple[str, ...]] = {name: self._questions(made)}

    def _questions(self, made: Any) -> tuple[str, ...]:
        return tuple(question for question, call in ANSWERS.items() if hasattr(made, call))


class _Histories(_Made):
    """Of Opacus and riskcal: a history of noise multiplier, sampling rate and steps."""

    def _questions(self, made: Any) -> tuple[str, ...]:
        found = super()._questions(made)
        return (*found, "gamma") if hasattr(made, "get_beta") and "gamma" not in found else found

    def answer(self, method: str, setting: Setting, question: str, at: float) -> float:  # noqa: ARG002
        """Hand over the history that as many steps would have written."""
        accountant = self._make()
        accountant.history = [
            (setting.noise_multiplier, setting.sampling_probability, setting.steps)
        ]
        if question == "epsilon":
            return float(accountant.get_epsilon(delta=at))
        if hasattr(accountant, ANSWERS[question]):
            return float(getattr(accountant, ANSWERS[question])(at))
        return 1.0 - float(accountant.get_beta(alpha=at))


class _Events(_Made):
    """Of dp_accounting: an event is composed."""

    def supports(self, method: str, setting: Setting) -> bool:  # noqa: ARG002
        """As the accountant itself says of the event, for its own relation of neighbours."""
        return takes(self._make(), setting)

    def answer(self, method: str, setting: Setting, question: str, at: float) -> float:  # noqa: ARG002
        """Compose the event of the run."""
        accountant = self._make()
        accountant.compose(event(setting))
        return float(getattr(accountant, ANSWERS[question])(at))


def _distribution(cls: type) -> str:
    """Name under which pip knows what a class comes with; that of its module if pip does not."""
    module = cls.__module__.partition(".")[0]
    if module == "pyengine":
        return DISTRIBUTION  # also of a checkout that is not installed
    known = importlib.metadata.packages_distributions().get(module)
    return known[0] if known else module
