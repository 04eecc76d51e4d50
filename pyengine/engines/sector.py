"""Laws of few sampled Gaussian steps with proven errors, by sums of positive terms.

For few steps, or rare large losses: where a transform decays slowly or cancels, and certified lines
prove little (docs/theory/sector_laws).  A law is built at some 10 to 50 ms for each convolution.
"""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine.caches import kept
from pyengine.engines.functionals import FloatArray, Limits, call_kernel, row_errors
from pyengine.errors import AccuracyError
from pyengine.numerics.exact_numbers import in_two_doubles, log_of_rest
from pyengine.pairs import GaussianPair
from pyengine.status import finished

__all__ = ["SectorLaws"]

MOST_STEPS = 1000
# Log densities where laws end.  Each sum loses some of it on the left, so that values down to about
# e^-75 are served by the first; the second takes ten times as long.
DEPTHS = (-200.0, -760.0)
TOO_SHALLOW = Limits(1e-9, 1e-9)  # of what rows then miss by more than this

# Logs of values below are left to lines: where one order's profile is next to nothing beside the
# other one's, Chernoff's bound says all that is asked, and a law would be made for nothing.
SMALLEST = -160.0

Kinds = tuple[tuple[float, float, int], ...]  # noise, sampling probability and number of the steps


def _law(status: int, out: Any) -> Any:
    law = ffi.gc(out[0], lib.pe_sector_free)
    if not finished(status, "a law with proven errors"):
        raise AccuracyError("no law of these steps is proven; method='lattice' may bracket it")
    return law


def _step(noise: float, probability: float, number: int, deepest: float) -> Any:
    p = Fraction(probability)
    out = ffi.new("pe_sector **")
    status = lib.pe_sector_step(
        in_two_doubles(1 / Fraction(noise)),
        in_two_doubles(p / (1 - p)),
        log_of_rest(probability),
        probability,
        deepest,
        float(number),
        out,
    )
    return _law(status, out)


def _convolve(a: Any, b: Any) -> Any:
    out = ffi.new("pe_sector **")
    return _law(lib.pe_sector_convolve(a, b, out), out)


def _composed(kinds: Kinds, deepest: float) -> Any:
    """Law of all steps: powers by squaring, and their sum."""
    result = None
    steps = sum(number for _, _, number in kinds)
    for noise, probability, number in kinds:
        one = power = _step(noise, probability, steps, deepest)
        for bit in bin(number)[3:]:
            power = _convolve(power, power)
            if bit == "1":
                power = _convolve(power, one)
        result = power if result is None else _convolve(result, power)
    return result


def _bytes(found: Any) -> int:
    return len(found) if isinstance(found, str) else int(lib.pe_sector_bytes(found))


@kept(64, _bytes)
def _law_or_refusal(kinds: Kinds, deepest: float) -> Any:
    """Law of the composed loss, or why there is none: to find that out takes time, too."""
    try:
        return _composed(kinds, deepest)
    except AccuracyError as error:
        return str(error)


class SectorLaws:
    """Proven rows of one ordered pair of few steps.

    Parameters
    ----------
    pair : GaussianPair
        The ordered pair, as it is in doubles.
    """

    def __init__(self, pair: GaussianPair) -> None:
        kinds = tuple(zip(pair.noise, pair.probability, pair.steps, strict=True))
        self._kinds: Kinds = kinds
        self._reversed = pair.reversed
        few = 0 < sum(pair.steps) <= MOST_STEPS
        self.serves = few and 1.0 not in pair.probability

    def improve(
        self, functional: int, c: FloatArray, table: FloatArray, enough: Limits
    ) -> npt.NDArray[np.bool_]:
        """Put rows into a table of proven ones where their errors are smaller.

        Parameters
        ----------
        functional : int
            Which one is asked.
        c : ndarray of shape (n,)
            Thresholds; nothing is done where they are NaN or infinite.
        table : ndarray of shape (n, 12)
            Rows at the thresholds, to be written to.
        enough : Limits
            Rows of at most these relative errors stay.

        Returns
        -------
        ndarray of bool, shape (n,)
            Which rows were put.
        """
        put = np.zeros(c.size, dtype=np.bool_)
        if not self.serves:
            return put
        for depth, limits in zip(DEPTHS, (enough, TOO_SHALLOW), strict=True):
            errors, good = row_errors(table, functional, limits)
            weak = np.isfinite(c) & ~good & ~(table[:, 2 + functional] < SMALLEST)
            if not weak.any():
                break
            law = _law_or_refusal(self._kinds, depth)
            if isinstance(law, str):
                continue
            found = call_kernel(self._rows, law, functional, c[weak])
            better = row_errors(found, functional, limits)[0] < errors[weak]
            own = table[weak]
            own[better] = found[better]
            table[weak] = own
            put[weak] |= better
        return put

    def _rows(self, law: Any, _: int, n: int, x: Any, rows: Any) -> None:
        lib.pe_sector_at(law, self._reversed, n, x, rows)
