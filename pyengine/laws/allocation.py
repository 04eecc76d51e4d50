"""The law of the loss of one epoch of random allocation, tabulated.

Without the record x ~ Q = N(0, σ²Iₜ), with it x ~ P, the mean of the t normal laws N(eᵢ, σ²Iₜ), so
that L = log dP/dQ = log(S/t) with a sum S of t independent lognormal numbers.  Its density comes
from the C core, by doubling (docs/theory/allocation).
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine.caches import kept
from pyengine.errors import AccuracyError
from pyengine.status import finished

__all__ = ["AllocatedLaw"]

FloatArray = npt.NDArray[np.float64]

LEAST_NOISE, MOST_STEPS = 0.1, 2**24  # what the estimates of the errors were measured on


@dataclass(frozen=True)
class AllocatedLaw:
    """The pair (Q, P) of one epoch; see `pyengine.GaussianMechanism.randomly_allocated`.

    Parameters
    ----------
    noise : float
        Noise multiplier σ >= 0.1.
    steps : int
        Number t of steps, 2 <= t <= 2²⁴.
    """

    noise: float
    steps: int

    @property
    def is_feasible(self) -> bool:
        """Whether a table can be made of it."""
        return self.noise >= LEAST_NOISE and 2 <= self.steps <= MOST_STEPS

    def table(self) -> Any:
        """Return the density and the masses of both tails, as an object of the C core.

        Raises
        ------
        AccuracyError
            Outside of the domain, and where the density cannot be resolved.
        """
        if not self.is_feasible:
            raise AccuracyError(
                f"random allocation is tabulated for noise_multiplier >= {LEAST_NOISE} and 2 to "
                f"{MOST_STEPS} steps an epoch, got {self.noise:g} and {self.steps}; "
                "method='reference' may answer"
            )
        return _table(self)

    def support(self) -> tuple[float, float]:
        """Losses beyond which both laws have less mass than e^-760."""
        out = ffi.new("double[4]")
        lib.pe_epoch_ends(self.table(), out)
        return out[0], out[1]

    def log_density(self, loss: npt.ArrayLike) -> FloatArray:
        """Return the log of the density of L under Q; -inf outside of the support.

        Parameters
        ----------
        loss : array_like
            Losses.  The density under P is e^L times that under Q.

        Returns
        -------
        ndarray
            Of the shape of ``loss``; an estimate, see docs/theory/allocation for its accuracy.
        """
        x = np.ascontiguousarray(loss, dtype=np.float64)
        found = np.empty(x.shape)
        lib.pe_epoch_log_density(
            self.table(),
            x.size,
            ffi.from_buffer("double[]", x),
            ffi.from_buffer("double[]", found, require_writable=True),
        )
        return found


@kept(64, lib.pe_epoch_bytes)
def _table(law: AllocatedLaw) -> Any:
    out = ffi.new("pe_epoch **")
    status = lib.pe_epoch_new(law.noise, float(law.steps), out)
    table = ffi.gc(out[0], lib.pe_epoch_free)
    if not finished(status, "the law of an epoch"):
        raise AccuracyError(
            "the density of the loss of one epoch of random allocation could not be resolved for "
            f"noise_multiplier={law.noise:g} and {law.steps} steps; method='reference' may answer"
        )
    return table
