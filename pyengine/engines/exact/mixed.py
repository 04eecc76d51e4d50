"""Composition of a finite law with a law in closed form: averages over the finite losses."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine._support.caches import cached_property
from pyengine.engines.exact.levels import (
    NO_LOW_PARTS,
    SUBNORMAL,
    Calls,
    ClosedLaw,
    ComposedLaw,
    KnownProfile,
    LawTests,
    Tails,
    low_parts,
    masses_from,
    profile_from,
)
from pyengine.engines.functionals import array
from pyengine.numerics.rounding import UNIT

__all__ = ["FEW", "Mixed", "Weights"]

FloatArray = npt.NDArray[np.float64]

FEW = 2048  # losses that take little memory
KERNELS = [ffi.addressof(lib, f"pe_mixed_law_{x}") for x in ("tails", "profile", "roughly")]


class Weights:
    """Finite losses with masses of both laws, and the relative error of the masses.

    ``digits`` returns the low parts of the losses and a bound of the error of double and low part
    together.  ``lowest`` is a lower and an upper bound of the infimum of all losses, some of which
    may be left out.
    """

    def __init__(
        self,
        loss: FloatArray,
        a: FloatArray,
        b: FloatArray,
        error: float,
        digits: Callable[[], tuple[FloatArray, float]] | None = None,
        lowest: tuple[float, float] | None = None,
    ) -> None:
        self._keep = (a > 0.0) | (b > 0.0)
        self.loss, self.a, self.b = loss[self._keep], a[self._keep], b[self._keep]
        self.error, self._digits = error, digits
        least = float(self.loss.min())
        self.lowest = (least, least) if lowest is None else lowest

    @property
    def left_out(self) -> float:
        """Bound of the masses at losses below the kept ones, which are below all doubles."""
        least = float(self.loss.min())
        room = 2.0 * self.error + 8.0 * UNIT * (1.0 + float(np.abs(self.loss).max()))
        return SUBNORMAL if self.lowest[0] < least - room else 0.0

    @property
    def are_fine(self) -> bool:
        """Whether low parts are known."""
        return self._digits is not None

    @cached_property
    def low(self) -> tuple[FloatArray, float] | None:
        """Low parts of the kept losses, and the error bound."""
        if self._digits is None:
            return None
        low, error = self._digits()
        return low[self._keep], error


class Mixed(ComposedLaw):
    """Composition of finite weights with another law; see `ComposedLaw`."""

    def __init__(self, weights: Weights, law: ClosedLaw) -> None:
        self._weights, self._law = weights, law
        self.is_light = law.is_light and weights.loss.size <= FEW
        self.is_narrowed = law.is_narrowed

    def support(self) -> tuple[float, float]:
        """Sums of the smallest and of the largest losses."""
        low, high = self._law.support()
        loss = self._weights.loss
        return low + float(loss.min()), high + float(loss.max())

    def lowest(self) -> tuple[float, float]:
        """Lower and upper bound of the infimum of all losses."""
        low, high = self._law.lowest()
        least, most = self._weights.lowest
        size = 1.0 + abs(low) + float(np.abs(self._weights.loss).max())
        off = 2.0 * self._weights.error + 8.0 * UNIT * size
        return low + least - off, high + most + off

    @cached_property
    def _core(self) -> Any:
        w, law = self._weights, self._law.calls
        largest = float(np.abs(w.loss).max())
        known = w.error, self.lowest()[0], largest, low_parts(w) if w.are_fine else NO_LOW_PARTS
        given = w.loss.size, array(w.loss), array(w.a), array(w.b), *known, *law[:3]
        self._kept = given  # what the struct points to
        return ffi.new("pe_mixed_law *", given)

    @property
    def calls(self) -> Calls:
        """Functions of this law for the C core."""
        return Calls(self._core, *KERNELS)

    @property
    def tests(self) -> LawTests:
        """Tests {S > c} for the C core, which finds the thresholds where the other law's are."""
        if not self.is_narrowed:
            return LawTests(self, self.calls._replace(roughly=ffi.NULL))
        jumps = np.unique(np.add.outer(self._law.jumps, self._weights.loss))
        room = 8.0 * UNIT * (1.0 + max(map(abs, self.support())))
        return LawTests(self, self.calls, jumps, has_atoms=jumps.size > 0, room=room)

    def tails(self, c: FloatArray) -> Tails:
        """Masses of both laws above c and at most c."""
        return masses_from(lib.pe_mixed_law_tails, self._core, c)

    def profile(self, epsilon: FloatArray) -> KnownProfile:
        """H_{e^ε}(A‖B), the other law's profile at ε + loss averaged over A."""
        return profile_from(lib.pe_mixed_law_profile, self._core, epsilon)
