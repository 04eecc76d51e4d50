"""Opacus: its PRV, RDP and Gaussian-DP accountants."""

from __future__ import annotations

from typing import Any

from pyengine.accounting.conformance.grid import Setting

__all__ = ["Opacus"]


class Opacus:
    """Adapter; see `pyengine.conformance.adapters.Adapter`."""

    distribution = "opacus"
    methods = {"prv": ("epsilon",), "rdp": ("epsilon",), "gdp": ("epsilon",)}  # noqa: RUF012

    def __init__(self) -> None:
        from opacus.accountants import GaussianAccountant, PRVAccountant, RDPAccountant

        self._accountants: dict[str, Any] = {
            "prv": PRVAccountant,
            "rdp": RDPAccountant,
            "gdp": GaussianAccountant,
        }

    def answer(self, method: str, setting: Setting, question: str, at: float) -> float:  # noqa: ARG002
        """Hand over the history that as many steps would have written."""
        accountant = self._accountants[method]()
        accountant.history = [
            (setting.noise_multiplier, setting.sampling_probability, setting.steps)
        ]
        return float(accountant.get_epsilon(delta=at))
