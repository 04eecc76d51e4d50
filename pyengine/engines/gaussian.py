"""Sampled Gaussian steps: proven rows from lines, and from laws of few steps."""

from __future__ import annotations

import contextlib
import weakref
from collections.abc import Callable, Sequence
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from pyengine._core import lib
from pyengine._support.caches import Cache, Epoch, cached_property
from pyengine.engines.answers import Triple
from pyengine.engines.few_steps import FewSteps
from pyengine.engines.functionals import ERRORS, FloatArray
from pyengine.engines.next_to_largest import NextToLargest
from pyengine.engines.pairs import GaussianPair, largest_epsilon
from pyengine.engines.row_sides import estimated_threshold, first_found
from pyengine.engines.spectral import SOON, KeptLines, Spectral
from pyengine.errors import AccuracyError

if TYPE_CHECKING:
    from pyengine.engines.sector import SectorLaws

__all__ = ["GaussianSide"]

_lines: Cache[KeptLines] = Cache(128, lambda kept: kept.bytes(), grows=True)


def _kept(pair: GaussianPair) -> KeptLines:
    """The spectral engine of a pair; those used last are kept with their contours."""
    return _lines.get_or_make(pair, lambda: KeptLines(Spectral(pair)))


class GaussianSide(FewSteps):
    """Certified rows of sampled Gaussian steps; their lines are kept with the pair's contours.

    What lines do not prove closely about few steps is asked of laws of the loss with proven
    errors.  Rates are sampling probabilities before they were rounded.
    """

    def __init__(
        self,
        pair: GaussianPair,
        rates: Sequence[float | Fraction] | None = None,
    ) -> None:
        self._pair, self._rates = pair, pair.probability if rates is None else rates
        self._found: tuple[object, Callable[[], KeptLines | None]] = (None, lambda: None)

    @cached_property
    def laws(self) -> SectorLaws:
        """Of few or rare steps."""
        from pyengine.engines.sector import SectorLaws, kinds_of

        return SectorLaws(kinds_of(self._pair), self._pair.reversed)

    def _weak_rows(self, functional: int, c: FloatArray, table: FloatArray) -> None:
        """Other lines, those that end before large losses last, for rows that are not close."""
        if self.asked == SOON:
            lines = self.prover()
            self._ask(lambda *of: lines.certify(*of[:2]), functional, c, table)
        if self.laws.serves:
            self._ask(self.prover().certify_divided, functional, c, table)

    def _ask(
        self,
        lines: Callable[[int, FloatArray, FloatArray], FloatArray],
        functional: int,
        c: FloatArray,
        table: FloatArray,
    ) -> None:
        """Ask other lines for the rows of a table that are not close."""
        weak = np.isfinite(c) & ~(table[:, ERRORS + functional] <= self.laws.left)
        if weak.any():
            found = lines(functional, c[weak], table[weak])
            better = found[:, ERRORS + functional] < table[weak, ERRORS + functional]
            weak[weak] = better
            table[weak] = found[better]

    @property
    def asked(self) -> int:
        """Those of little work where a law of few steps comes before others."""
        return SOON if self.laws.comes_first else super().asked

    def threshold(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Thresholds by estimates and by laws of few steps; else those that the lines find."""
        ways = [self._estimated_threshold, self.laws.threshold]
        if self.asked == SOON:
            ways.reverse()
        ways += [self.laws.farthest, self.prover().certified_threshold]
        return first_found(ways, functional, log_target)

    def _estimated_threshold(self, functional: int, log_target: FloatArray) -> FloatArray:
        with contextlib.suppress(AccuracyError):
            return estimated_threshold(self.prover(), functional, log_target)
        return np.full(log_target.size, np.nan)

    @cached_property
    def next_to_largest(self) -> NextToLargest:  # type: ignore[override]
        """Where no step samples the record, or nearly so."""
        return NextToLargest(self._pair)

    @cached_property
    def most_at_zero(self) -> float:  # type: ignore[override]
        """What lies between the laws is at most the sum of what lies between those of the steps.

        A step differs where it samples, by p times the distance of two normal laws; and no more
        than with the probability that any step samples.
        """
        noise, probability, steps, _ = self._pair
        return float(lib.pe_most_at_zero(len(steps), noise, probability, steps))

    @property
    def known_largest(self) -> float | None:
        """None where rates are doubles, of which the C core knows the largest loss itself."""
        return None if list(self._rates) == list(self._pair.probability) else self.largest

    @cached_property
    def ends(self) -> Triple:  # type: ignore[override]
        """The largest loss, between bounds."""
        return largest_epsilon(self._pair, self._rates)

    @property
    def memo(self) -> dict[Any, Any]:  # type: ignore[override]
        """What is kept with the lines."""
        return _kept(self._pair).memo

    def prover(self) -> Spectral:
        """The spectral engine, from the cache: what that drops is to be freed."""
        epoch, kept = self._found
        found = kept()
        if found is None or epoch is not Epoch.current:
            found = _kept(self._pair)
            self._found = Epoch.current, weakref.ref(found)
        return found.spectral
