"""Adapters made for accountants that have the methods of Opacus' or of dp_accounting's."""

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
    """Return the adapter for an adapter, or for a callable that makes an adapter or an accountant.

    An accountant like those of Opacus and riskcal has ``step``, ``history`` and ``get_epsilon``,
    one like dp_accounting's has ``compose`` and ``get_epsilon``; ValueError for anything else.
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
    """An adapter of accountants that ``make`` makes, of which ``made`` is one."""

    def __init__(self, make: Callable[[], Any], made: Any) -> None:
        self._make = make
        self.distribution = _distribution(type(made))
        name = getattr(make, "__name__", type(made).__name__)
        self.methods: Mapping[str, tuple[str, ...]] = {name: self._questions(made)}

    def _questions(self, made: Any) -> tuple[str, ...]:
        return tuple(question for question, call in ANSWERS.items() if hasattr(made, call))


class _Histories(_Made):
    """Adapter for accountants like Opacus': a history of noise multiplier, rate and steps."""

    def _questions(self, made: Any) -> tuple[str, ...]:
        found = super()._questions(made)
        return (*found, "gamma") if hasattr(made, "get_beta") and "gamma" not in found else found

    def answer(self, method: str, setting: Setting, question: str, at: float) -> float:  # noqa: ARG002
        """Ask an accountant with the history of the setting's steps."""
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
    """Adapter for accountants like dp_accounting's, which compose the event of a run."""

    _last: tuple[Any, Any] | None = None  # the run that was composed last, and its accountant

    def made(self, method: str, setting: Setting) -> Any:
        """A new accountant for the setting's neighbours."""
        raise NotImplementedError

    def supports(self, method: str, setting: Setting) -> bool:
        """Whether the accountant has the setting's neighbours and supports its event."""
        return takes(self.made(method, setting), setting)

    def answer(self, method: str, setting: Setting, question: str, at: float) -> float:
        """Compose the event of the run and ask its accountant."""
        self._last = None
        return self.answer_again(method, setting, question, at)

    def answer_again(self, method: str, setting: Setting, question: str, at: float) -> float:
        """As `answer`, but the run of the last question is not composed again."""
        if self._last is None or self._last[0] != (method, setting):
            accountant = self.made(method, setting)
            accountant.compose(event(setting))
            self._last = (method, setting), accountant
        return float(getattr(self._last[1], ANSWERS[question])(at))


class _ByEvents(Events, _Made):
    """Adapter of accountants like dp_accounting's that ``make`` makes."""

    def made(self, method: str, setting: Setting) -> Any:  # noqa: ARG002
        """A new accountant, with its default neighbours."""
        return self._make()


def _distribution(cls: type) -> str:
    """Name of the distribution of a class for pip; its top module if pip has none."""
    module = cls.__module__.partition(".")[0]
    if module == "pyengine":
        return DISTRIBUTION  # also of a checkout that is not installed
    known = importlib.metadata.packages_distributions().get(module)
    return known[0] if known else module
