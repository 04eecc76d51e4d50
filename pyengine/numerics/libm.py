"""What proofs assume of functions that are not the package's own, and whether it holds here.

The functions of the C library in C, and NumPy's own in doubles, are compared with stored values
when the package is imported: 0.1 ms.  Where one errs by more than is assumed, questions are
refused; see docs/theory/arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine.errors import AccuracyError

__all__ = ["ALLOWED", "NUMPY", "MeasuredFunction", "measured", "refuse_where_off"]

FloatArray = npt.NDArray[np.float64]
Function = Callable[[FloatArray, FloatArray], FloatArray]

_INDEX: dict[str, int] = {
    ffi.string(lib.pe_libm_name(i)).decode(): i for i in range(lib.pe_libm_functions())
}
# Largest errors that are assumed, in units in the last place; also of NumPy's functions.
ALLOWED: dict[str, float] = {name: lib.pe_libm_allowed(i) for name, i in _INDEX.items()}
# NumPy's own, by the names that C has for them; in extended precision it calls the C library.
NUMPY: dict[str, Function] = {
    "exp": lambda x, _: np.exp(x),
    "expm1": lambda x, _: np.expm1(x),
    "log": lambda x, _: np.log(x),
    "log1p": lambda x, _: np.log1p(x),
    "sin": lambda x, _: np.sin(x),
    "cos": lambda x, _: np.cos(x),
    "atan2": lambda x, y: np.arctan2(x, y),
    "hypot": lambda x, y: np.hypot(x, y),
}


class MeasuredFunction(NamedTuple):
    """One function at the stored points; errors in units in the last place."""

    library: str  # "libm" or "numpy"
    name: str
    error: float
    allowed: float

    @property
    def holds(self) -> bool:
        """Whether it errs by no more than is assumed."""
        return self.error <= self.allowed


def points(name: str) -> tuple[FloatArray, ...]:
    """Arguments x and y, and the high and low parts of the true values."""
    found = ffi.new("const pe_libm_point **")
    count = lib.pe_libm_points(_INDEX[name], found)
    buffer = ffi.buffer(found[0], count * ffi.sizeof("pe_libm_point"))
    return tuple(np.frombuffer(buffer).reshape(count, 4).T.copy())


def numpy_error(name: str) -> float:
    """Largest error of one of NumPy's functions at the stored points."""
    x, y, high, low = points(name)
    with np.errstate(all="ignore"):
        off = np.abs((NUMPY[name](x, y) - high) - low) / np.spacing(np.abs(high))
    worst = float(off.max())  # NaN where one is
    return worst if worst >= 0.0 else np.inf


def measured() -> list[MeasuredFunction]:
    """All functions of which proofs assume something, as they are here."""
    of_c = [
        MeasuredFunction("libm", name, lib.pe_libm_error(i), ALLOWED[name])
        for name, i in _INDEX.items()
    ]
    return of_c + [
        MeasuredFunction("numpy", name, numpy_error(name), ALLOWED[name]) for name in NUMPY
    ]


def refusal(found: Iterable[MeasuredFunction]) -> str | None:
    """What to say where a function errs by more than is assumed."""
    wrong = [f"{each.library} {each.name} by {each.error:.3g}" for each in found if not each.holds]
    if not wrong:
        return None
    return (
        "bounds hold only where the C library and NumPy are as accurate as proofs assume, and here "
        f"these err by more units in the last place: {', '.join(wrong)}; `pyengine doctor` shows "
        "what is assumed, and pyengine.reference answers without them"
    )


class _Here:
    refusal = refusal(measured())


def refuse_where_off() -> None:
    """Raise AccuracyError where a function errs by more than proofs assume."""
    if _Here.refusal is not None:
        raise AccuracyError(_Here.refusal)
