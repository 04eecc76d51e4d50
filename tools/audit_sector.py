"""Audit of laws with proven errors: rows against other engines, and their error terms.

Draws random compositions of one to three kinds of steps, and thresholds over the whole law. Rows of
all five functionals are compared with a convolution (`convolution_rows.py`), whose own errors are
allowed for. Terms (``sector_switches.py``, ``sector_terms.py``): sums of two steps are compared
with an integral of closed forms, densities and rows of one step with closed forms.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
from compiling import ROOT, doubles
from convolution_rows import DEEP, bounded_steps, composed_law, rows_at
from error_terms import Change, Claim, Rows, claims_of, kernel
from random_mechanisms import evenly

from pyengine.engines.functionals import ERRORS, call_kernel
from pyengine.engines.pairs import GaussianPair
from pyengine.engines.sector import _composed, _law_of
from pyengine.errors import AccuracyError
from pyengine.numerics.exact_numbers import in_two_doubles, log_of_rest

from pyengine._core import lib  # isort: skip

DOORS = ROOT / "tools" / "audit_sector.c"
WIDTH, VALUES = 12, slice(2, 7)
FUNCTIONALS = ("A above", "A below", "B above", "B below", "profile")
GRID = 2.0**-44
SOURCES = (
    *(
        "sector_cells",
        "sector_group",
        "sector_laws",
        "sector_panels",
        "sector_pieces",
        "sector_rows",
        "sector_sums",
    ),
    "normal",
)
REACHED = -330.0  # log values down to which the convolution's deep law leaves nothing out
Array = np.ndarray[Any, Any]
Kinds = tuple[tuple[float, float, int], ...]


# ---- rows of whole compositions ----------------------------------------------------------------


def drawn(rng: np.random.Generator) -> Kinds:
    """One to three kinds of steps, 2 to 300 in all."""
    number = int(rng.integers(1, 4))
    steps = evenly(rng, max(2, number), 300)
    return tuple(
        (evenly(rng, 0.2, 60.0), evenly(rng, 1e-7, 0.5), max(1, int(steps / number)))
        for _ in range(number)
    )


def rows_of(law: Any, backward: bool, c: Array) -> Array:
    """Rows of a law on pieces."""
    return call_kernel(lib.pe_sector_at, c, law, backward)


def places(law: Any, floor: float, rng: np.random.Generator, number: int) -> Array:
    """Random losses over the range where a law has rows."""
    w = np.linspace(-200.0, 6.5, 2000)
    within = np.isfinite(rows_of(law, False, floor + np.exp(w))[:, 0])
    if not within.any():
        return np.zeros(0)
    ends = w[within].min() - 0.1, w[within].max() + 0.1
    found: Array = floor + np.exp(rng.uniform(*ends, number))
    return found


def compared(kinds: Kinds, depth: float, c: Array, backward: bool) -> tuple[Array, Array, Array]:
    """Values, errors and truths of the five functionals; the truth's errors are added."""
    pair = GaussianPair(*zip(*kinds, strict=True), False)
    own = rows_of(_law_of(_composed, kinds, depth), backward, c)
    other = rows_at(composed_law(bounded_steps(pair), DEEP), backward, c)
    log_value, unsure = other[:, VALUES], other[:, ERRORS:]
    for large, small in ((0, 1), (1, 0), (2, 3), (3, 2)):  # both add up to 1
        known = log_value[:, small] < -2.0
        log_value[known, large] = np.log1p(-np.exp(log_value[known, small]))
    log_value[~((log_value > REACHED) & (unsure < 1e-3))] = np.nan
    return own[:, VALUES], own[:, ERRORS:] + np.nan_to_num(unsure, nan=np.inf), log_value


def campaign(seed: int, each: int = 50) -> Iterator[tuple[Kinds, Rows | None]]:
    """Random compositions with their rows beside the truth; None where the law is refused."""
    rng = np.random.default_rng(seed)
    while True:
        kinds, depth = drawn(rng), -760.0 if rng.random() < 0.2 else -200.0
        law = _law_of(_composed, kinds, depth)
        if law is None:
            yield kinds, None
            continue
        floor = math.fsum(n * math.log1p(-p) for _, p, n in kinds)
        with suppress(AccuracyError):
            found = []
            for backward in (False, True):
                c = places(law, floor, rng, each)
                found.append(compared(kinds, depth, -c if backward else c, backward))
            yield kinds, found


def claims(seed: int) -> Iterator[Claim | str]:
    """Claims about random compositions."""
    for kinds, found in campaign(seed):
        if found is None:
            yield "refused"
        else:
            yield from claims_of(found, FUNCTIONALS, f"{kinds}")


# ---- the kernel by itself ----------------------------------------------------------------------


def build(folder: Path, changes: Sequence[Change] = ()) -> Any:
    """Compile the kernel with changed texts, each of which must occur in it."""
    library = kernel(folder, SOURCES, [DOORS], sizes=changes).library
    typed(library)
    return library


def typed(kernel: Any) -> None:
    """Declare which functions of the library return doubles, and which sizes."""
    for name in ("audit_sector_growth", "audit_sector_slope", "audit_sector_edge"):
        getattr(kernel, name).restype = ctypes.c_double
    kernel.pe_sector_error.restype = ctypes.c_double
    kernel.pe_sector_panels.restype = ctypes.c_size_t
    kernel.pe_sector_pieces_new.restype = ctypes.c_void_p


class Law:
    """A law of a kernel; ValueError where it is refused."""

    def __init__(self, kernel: Any, make: Callable[..., int], *arguments: Any) -> None:
        self.kernel, self.pointer = kernel, ctypes.c_void_p()
        if make(*arguments, ctypes.byref(self.pointer)):
            raise ValueError("refused")

    def __del__(self) -> None:
        self.kernel.pe_sector_free(self.pointer)

    @property
    def ends(self) -> tuple[float, ...]:
        """Low and high end, slope below, logs of both tails above, and the largest argument."""
        out = (ctypes.c_double * 6)()
        self.kernel.audit_sector_ends(self.pointer, out)
        return tuple(out)

    def density(self, w: float) -> list[float]:
        """Log F, its error, its bound by cells, and kappa."""
        out = (ctypes.c_double * 4)()
        self.kernel.audit_sector_density(self.pointer, ctypes.c_double(w), out)
        return list(out)

    @property
    def edges(self) -> Array:
        """Ends of panels."""
        number = self.kernel.pe_sector_panels(self.pointer)
        at = self.kernel.audit_sector_edge
        return np.array([at(self.pointer, ctypes.c_size_t(i)) for i in range(number + 1)])

    def growth(self, w: float) -> float:
        """Upper bound of kappa up to w."""
        return float(self.kernel.audit_sector_growth(self.pointer, ctypes.c_double(w)))

    def slope(self, w: float) -> float:
        """Lower bound of the slope of log F up to w."""
        return float(self.kernel.audit_sector_slope(self.pointer, ctypes.c_double(w)))

    def rows(self, backward: bool, c: Array) -> Array:
        """Rows of all functionals."""
        out = (ctypes.c_double * (WIDTH * c.size))()
        n, asked = ctypes.c_size_t(c.size), doubles(c)
        self.kernel.pe_sector_at(self.pointer, int(backward), n, asked, out)
        return np.array(out).reshape(c.size, WIDTH)


def step(kernel: Any, noise: float, rate: float, deepest: float, steps: int = 2) -> Law:
    """Law of one step."""
    p = Fraction(rate)
    parts = (in_two_doubles(1 / Fraction(noise)), in_two_doubles(p / (1 - p)), log_of_rest(rate))
    numbers = (ctypes.c_double(x) for x in (rate, deepest, deepest, float(steps), -math.inf))
    return Law(kernel, kernel.pe_sector_step, *map(doubles, parts), *numbers)


def joined(one: Law, other: Law, how: Callable[..., int]) -> Law:
    """Law of a sum, by nodes chosen for it."""
    pieces = ctypes.c_void_p(one.kernel.pe_sector_pieces_new())
    try:
        return Law(one.kernel, how, one.pointer, other.pointer, pieces)
    finally:
        one.kernel.pe_sector_pieces_free(pieces)


def added(one: Law, other: Law) -> Law:
    """Law of a sum of losses beyond the smallest one, or of ratios."""
    return joined(one, other, one.kernel.pe_sector_convolve)


def summed(one: Law, other: Law, w: float, of_losses: bool = False) -> list[float]:
    """Log F of a sum at a multiple of GRID, its error, and the truncation of ends and lines."""
    out = (ctypes.c_double * 3)()
    at = one.kernel.audit_sector_sum
    if at(one.pointer, other.pointer, int(of_losses), ctypes.c_double(w), out):
        return [math.nan] * 3
    return list(out)


def composed(kernel: Any, kinds: Kinds, deepest: float) -> Law:
    """Law of all steps."""
    steps = sum(number for _, _, number in kinds)
    found: Law | None = None
    for noise, rate, number in kinds:
        one = power = step(kernel, noise, rate, deepest, steps)
        for bit in bin(number)[3:]:
            power = added(power, power)
            power = added(power, one) if bit == "1" else power
        found = power if found is None else added(found, power)
    assert found is not None
    return found
