"""riskcal: type-II errors of DP-SGD from two privacy loss distributions."""

from __future__ import annotations

from pyengine.accounting.conformance.grid import Setting

__all__ = ["RiskCal"]


class RiskCal:
    """Adapter; see `pyengine.conformance.adapters.Adapter`."""

    distribution = "riskcal"
    methods = {"direct": ("gamma",)}  # noqa: RUF012

    def __init__(self) -> None:
        from riskcal.calibration.dpsgd import get_beta_for_dpsgd

        self._beta = get_beta_for_dpsgd

    def answer(self, method: str, setting: Setting, question: str, at: float) -> float:  # noqa: ARG002
        """γ(κ) = 1 - β(κ)."""
        beta = self._beta(
            noise_multiplier=setting.noise_multiplier,
            sample_rate=setting.sampling_probability,
            num_steps=setting.steps,
            alpha=at,
        )
        return 1.0 - float(beta)
