"""Google's dp-accounting: privacy loss distributions (connect the dots) and Rényi divergences."""

from __future__ import annotations

from typing import Any

from pyengine.conformance.grid import Setting

__all__ = ["DpAccounting"]


class DpAccounting:
    """Adapter; see `pyengine.conformance.adapters.Adapter`."""

    distribution = "dp-accounting"
    methods = {"pld": ("delta", "epsilon"), "rdp": ("delta", "epsilon")}  # noqa: RUF012

    def __init__(self) -> None:
        import dp_accounting
        from dp_accounting import pld, rdp

        self._events = dp_accounting
        self._accountants = {"pld": pld.PLDAccountant, "rdp": rdp.RdpAccountant}

    def answer(self, method: str, setting: Setting, question: str, at: float) -> float:
        """Compose the event of the run and ask its accountant."""
        accountant: Any = self._accountants[method]()
        step = self._events.PoissonSampledDpEvent(
            setting.sampling_probability, self._events.GaussianDpEvent(setting.noise_multiplier)
        )
        accountant.compose(self._events.SelfComposedDpEvent(step, setting.steps))
        ask = accountant.get_delta if question == "delta" else accountant.get_epsilon
        return float(ask(at))
