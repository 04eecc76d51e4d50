"""Google's dp-accounting: privacy loss distributions (connect the dots) and Rényi divergences."""

from __future__ import annotations

from typing import Any

from pyengine.accounting.conformance.adapters.events import event, relation_of, takes
from pyengine.accounting.conformance.grid import Setting

__all__ = ["DpAccounting"]


class DpAccounting:
    """Adapter; see `pyengine.conformance.adapters.Adapter`."""

    distribution = "dp-accounting"
    methods = {"pld": ("delta", "epsilon"), "rdp": ("delta", "epsilon")}  # noqa: RUF012

    def __init__(self) -> None:
        import dp_accounting
        from dp_accounting import pld, rdp

        self._relations = dp_accounting.NeighboringRelation
        self._accountants = {"pld": pld.PLDAccountant, "rdp": rdp.RdpAccountant}

    def _made(self, method: str, setting: Setting) -> Any:
        relation = self._relations[relation_of(setting)]
        return self._accountants[method](neighboring_relation=relation)

    def supports(self, method: str, setting: Setting) -> bool:
        """As its accountants say of the event."""
        return takes(self._made(method, setting), setting)

    def answer(self, method: str, setting: Setting, question: str, at: float) -> float:
        """Compose the event of the run and ask its accountant."""
        accountant = self._made(method, setting)
        accountant.compose(event(setting))
        ask = accountant.get_delta if question == "delta" else accountant.get_epsilon
        return float(ask(at))
