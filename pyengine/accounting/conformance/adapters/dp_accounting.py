"""Google's dp-accounting: privacy loss distributions (connect the dots) and Rényi divergences."""

from __future__ import annotations

from typing import Any

from pyengine.accounting.conformance.adapters.classes import Events
from pyengine.accounting.conformance.adapters.events import relation_of
from pyengine.accounting.conformance.grid import Setting

__all__ = ["DpAccounting"]


class DpAccounting(Events):
    """Adapter; see `pyengine.conformance.adapters.Adapter`."""

    distribution = "dp-accounting"
    methods = {"pld": ("delta", "epsilon"), "rdp": ("delta", "epsilon")}  # noqa: RUF012

    def __init__(self) -> None:
        import dp_accounting
        from dp_accounting import pld, rdp

        self._relations = dp_accounting.NeighboringRelation
        self._accountants = {"pld": pld.PLDAccountant, "rdp": rdp.RdpAccountant}

    def made(self, method: str, setting: Setting) -> Any:
        """A new accountant for the setting's neighbours."""
        relation = self._relations[relation_of(setting)]
        return self._accountants[method](neighboring_relation=relation)
