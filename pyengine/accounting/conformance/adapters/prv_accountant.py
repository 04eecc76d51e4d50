"""Microsoft's prv_accountant: the upper ends of its intervals."""

from __future__ import annotations

from pyengine.accounting.conformance.grid import Setting

__all__ = ["PrvAccountant"]

EPS_ERROR = 0.1  # what its documentation calls typical
DELTA_SHARE = 1e-3  # of δ, likewise
DELTA_ERROR = 1e-10  # where δ is what is asked


class PrvAccountant:
    """Adapter; see `pyengine.conformance.adapters.Adapter`."""

    distribution = "prv-accountant"
    methods = {"prv": ("delta", "epsilon")}  # noqa: RUF012

    def __init__(self) -> None:
        import prv_accountant

        self._module = prv_accountant

    def answer(self, method: str, setting: Setting, question: str, at: float) -> float:  # noqa: ARG002
        """Compose and ask; the answer is a lower bound, an estimate and an upper bound."""
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
