"""Closed forms: one subsampled step, and the Gaussian under any composition.

The Gaussian's trade-off function is Φ(Φ⁻¹(1 − α) − μ) and its profile
Φ(μ/2 − ε/μ) − e^ε Φ(−μ/2 − ε/μ) (Dong, Roth and Su 2022, eq. 6 and Corollary 2.13); one sampled
step is the same with the mixture in the place of the second Gaussian.
"""

from __future__ import annotations

from pyengine._core import ffi, lib
from pyengine.engines.rows import FloatArray, call_kernel
from pyengine.pairs import GaussianPair

__all__ = ["ClosedForm"]


class ClosedForm:
    """Closed forms on one pair; `available` says whether the pair has one."""

    name = "closed_form"

    def __init__(self, pair: GaussianPair) -> None:
        mu = pair.gaussian_mu
        if mu is None:
            mu, probability = 1.0 / pair.noise[0], pair.probability[0]
        else:
            probability = 1.0
        self._step = ffi.new("pe_step *", {"mu": mu, "p": probability, "reversed": pair.reversed})

    @staticmethod
    def available(pair: GaussianPair) -> bool:
        """Whether the pair has a closed form."""
        return pair.gaussian_mu is not None or pair.steps == (1,)

    def at(self, functional: int, c: FloatArray) -> FloatArray:
        """Rows at thresholds of the loss."""
        return call_kernel(lib.pe_step_at, self._step, None, c)

    def solve(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Rows at the thresholds where the log of a functional has given values."""
        return call_kernel(lib.pe_step_solve, self._step, functional, log_target)
