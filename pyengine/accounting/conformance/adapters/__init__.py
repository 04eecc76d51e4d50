"""What an accountant must be told to take part: one small class each."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Protocol, cast

from pyengine.accounting.conformance.adapters.classes import adapted
from pyengine.accounting.conformance.grid import Setting

__all__ = ["KNOWN", "Adapter", "find", "supports"]


class Adapter(Protocol):
    """An accountant and the questions that it answers.

    ``distribution`` is the name for pip.  ``methods`` are its ways of computing, each with the
    questions (``gamma``, ``delta``, ``epsilon``) that it answers with what it calls an upper bound.
    One that answers for other settings than Poisson samples of records has ``supports(method,
    setting) -> bool``, too; see `supports`.  One that need not compute a run anew for each question
    has ``answer_again``, which is called as ``answer`` is where no time is taken.
    """

    distribution: str
    methods: Mapping[str, tuple[str, ...]]

    def answer(self, method: str, setting: Setting, question: str, at: float) -> float:
        """Answer one question from nothing, with the accountant's own defaults."""


def supports(adapter: Adapter, method: str, setting: Setting) -> bool:
    """Whether an accountant has an answer for a setting; without its word, for Poisson samples."""
    asked = getattr(adapter, "supports", None)
    return setting.scheme == "poisson" if asked is None else bool(asked(method, setting))


KNOWN = {
    "pyengine": "pyengine.conformance.adapters.own:Pyengine",
    "dp_accounting": "pyengine.conformance.adapters.dp_accounting:DpAccounting",
    "gdpnum": "pyengine.conformance.adapters.peers:GdpNum",
    "opacus": "pyengine.conformance.adapters.peers:Opacus",
    "prv_accountant": "pyengine.conformance.adapters.peers:PrvAccountant",
    "riskcal": "pyengine.conformance.adapters.peers:RiskCal",
}


def find(name: str) -> Adapter:
    """Return the adapter of a name or of a path ``module:Class``; ValueError if there is none.

    The class is an adapter or an accountant; see `pyengine.conformance.adapters.classes.adapted`.
    """
    module, colon, attribute = KNOWN.get(name, name).partition(":")
    if not colon:
        raise ValueError(
            f"accountant must be one of {', '.join(KNOWN)} or module:Class, got {name!r}"
        )
    try:
        made = getattr(importlib.import_module(module), attribute)
    except AttributeError:
        raise ValueError(f"module {module} has no class {attribute}") from None
    return cast(Adapter, adapted(made))
