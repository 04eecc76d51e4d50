"""Adapters, the small classes by which accountants take part in the conformance tests."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Protocol, cast

from pyengine.accounting.conformance.adapters.classes import adapted
from pyengine.accounting.conformance.grid import Setting

__all__ = ["KNOWN", "Adapter", "find", "supports"]


class Adapter(Protocol):
    """An accountant and the questions that it answers.

    ``distribution`` is the name for pip.  ``methods`` maps each way of computing to the questions
    (``gamma``, ``delta``, ``epsilon``) to which it gives upper bounds.  Optional are
    ``supports(method, setting) -> bool``, for settings other than Poisson samples of records (see
    `supports`), and ``answer_again``, which has the parameters of ``answer``, may reuse the run of
    the last question, and is called where no time is measured.
    """

    distribution: str
    methods: Mapping[str, tuple[str, ...]]

    def answer(self, method: str, setting: Setting, question: str, at: float) -> float:
        """Answer one question without cached results, with the accountant's own defaults."""


def supports(adapter: Adapter, method: str, setting: Setting) -> bool:
    """Whether an accountant answers for a setting; if it does not say, for Poisson samples only."""
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
    """Return the adapter for a name or a path ``module:Class``; ValueError if there is none.

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
