"""Accountants of Poisson samples: gdpnum, riskcal, Opacus and Microsoft's prv_accountant."""

from __future__ import annotations

from typing import Any

from pyengine.accounting.conformance.grid import Setting

__all__ = ["GdpNum", "Opacus", "PrvAccountant", "RiskCal"]

EPS_ERROR = 0.1  # eps_error, typical by prv_accountant's documentation
DELTA_SHARE = 1e-3  # delta_error over δ for ε(δ), likewise
DELTA_ERROR = 1e-10  # delta_error for δ(ε)


def _stepped(accountant: Any, setting: Setting) -> Any:
    """The accountant, given the history of the setting's steps."""
    accountant.history = [(setting.noise_multiplier, setting.sampling_probability, setting.steps)]
    return accountant


class GdpNum:
    """Adapter for gdpnum: type-II errors from a privacy loss distribution."""

    distribution = "gdpnum"
    methods = {"ctd": ("gamma",)}  # noqa: RUF012

    def __init__(self) -> None:
        from gdpnum import CTDAccountant

        self._accountant = CTDAccountant

    def answer(self, method: str, setting: Setting, question: str, at: float) -> float:  # noqa: ARG002
        """γ(κ) = 1 - β(κ)."""
        return 1.0 - float(_stepped(self._accountant(), setting).get_beta(alpha=at))


class RiskCal:
    """Adapter for riskcal: type-II errors from two privacy loss distributions."""

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


class Opacus:
    """Adapter for Opacus' PRV, RDP and Gaussian-DP accountants."""

    distribution = "opacus"
    methods = {"prv": ("epsilon",), "rdp": ("epsilon",), "gdp": ("epsilon",)}  # noqa: RUF012

    def __init__(self) -> None:
        from opacus.accountants import GaussianAccountant, PRVAccountant, RDPAccountant

        accountants = PRVAccountant, RDPAccountant, GaussianAccountant
        self._accountants: dict[str, Any] = dict(zip(self.methods, accountants, strict=True))

    def answer(self, method: str, setting: Setting, question: str, at: float) -> float:  # noqa: ARG002
        """ε(δ)."""
        return float(_stepped(self._accountants[method](), setting).get_epsilon(delta=at))


class PrvAccountant:
    """Adapter for prv_accountant: the upper ends of its intervals."""

    distribution = "prv-accountant"
    methods = {"prv": ("delta", "epsilon")}  # noqa: RUF012

    def __init__(self) -> None:
        import prv_accountant

        self._module = prv_accountant

    def answer(self, method: str, setting: Setting, question: str, at: float) -> float:  # noqa: ARG002
        """Return the upper one of lower bound, estimate and upper bound."""
        accountant = self._module.PRVAccountant(
            prvs=self._module.PoissonSubsampledGaussianMechanism(
                sampling_probability=setting.sampling_probability,
                noise_multiplier=setting.noise_multiplier,
            ),
            max_self_compositions=setting.steps,
            eps_error=EPS_ERROR,
            delta_error=DELTA_ERROR if question == "delta" else DELTA_SHARE * at,
        )
        ask = accountant.compute_delta if question == "delta" else accountant.compute_epsilon
        _, _, upper = ask(at, [setting.steps])
        return float(upper)
