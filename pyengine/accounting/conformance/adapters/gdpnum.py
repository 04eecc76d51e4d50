"""gdpnum: type-II errors of DP-SGD from a privacy loss distribution."""

from __future__ import annotations

from pyengine.accounting.conformance.grid import Setting

__all__ = ["GdpNum"]


class GdpNum:
    """Adapter; see `pyengine.conformance.adapters.Adapter`."""

    distribution = "gdpnum"
    methods = {"ctd": ("gamma",)}  # noqa: RUF012

    def __init__(self) -> None:
        from gdpnum import CTDAccountant

        self._accountant = CTDAccountant

    def answer(self, method: str, setting: Setting, question: str, at: float) -> float:  # noqa: ARG002
        """γ(κ) = 1 - β(κ), from the history that as many steps would have written."""
        accountant = self._accountant()
        accountant.history = [
            (setting.noise_multiplier, setting.sampling_probability, setting.steps)
        ]
        return 1.0 - float(accountant.get_beta(alpha=at))
