"""Accountants of the shapes of Opacus and of dp_accounting take part without an adapter."""

from __future__ import annotations

import importlib.metadata
from collections.abc import Callable, Mapping
from typing import Any

from pyengine._version import DISTRIBUTION
from pyengine.accounting.conformance.adapters.events import event, takes
from pyengine.accounting.conformance.grid import Setting

__all__ = ["Events", "adapted"]

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
            return _ByEvents(thing, made)
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


class Events:
    """What asks dp_accounting's accountants: the event of a run is composed."""

    _last: tuple[Any, Any] | None = None  # the run that was composed last, and its accountant

    def made(self, method: str, setting: Setting) -> Any:
        """A fresh accountant for the setting's neighbours."""
        raise NotImplementedError

    def supports(self, method: str, setting: Setting) -> bool:
        """As the accountant itself says of the event, for its own relation of neighbours."""
        return takes(self.made(method, setting), setting)

    def answer(self, method: str, setting: Setting, question: str, at: float) -> float:
        """Compose the event of the run and ask its accountant."""
        self._last = None
        return self.answer_again(method, setting, question, at)

    def answer_again(self, method: str, setting: Setting, question: str, at: float) -> float:
        """As `answer`, but of the run that was asked about last nothing is composed again."""
        if self._last is None or self._last[0] != (method, setting):
            accountant = self.made(method, setting)
            accountant.compose(event(setting))
            self._last = (method, setting), accountant
        return float(getattr(self._last[1], ANSWERS[question])(at))


class _ByEvents(Events, _Made):
    """Of the shape of dp_accounting's."""

    def made(self, method: str, setting: Setting) -> Any:  # noqa: ARG002
        """What the class or function makes."""
        return self._make()


def _distribution(cls: type) -> str:
    """Name under which pip knows what a class comes with; that of its module if pip does not."""
    module = cls.__module__.partition(".")[0]
    if module == "pyengine":
        return DISTRIBUTION  # also of a checkout that is not installed
    known = importlib.metadata.packages_distributions().get(module)
    return known[0] if known else module
