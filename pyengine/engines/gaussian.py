"""Sampled Gaussian steps: proven rows from lines, and from laws of the loss of few steps."""

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
from pyengine.engines.functionals import ERRORS, FloatArray, array
from pyengine.engines.pairs import GaussianPair, largest_epsilon
from pyengine.engines.row_sides import estimated_threshold, first_found
from pyengine.engines.spectral import SOON, KeptLines, Spectral
from pyengine.errors import AccuracyError

if TYPE_CHECKING:
    from pyengine.engines.sector import SectorLaws

__all__ = ["GaussianSide"]

_lines: Cache[KeptLines] = Cache(128, lambda kept: kept.bytes(), grows=True)


def _kept(pair: GaussianPair) -> KeptLines:
    """The cached spectral engine of a pair, with its contours."""
    return _lines.get_or_make(pair, lambda: KeptLines(Spectral(pair)))


class GaussianSide(FewSteps):
    """Certified rows of sampled Gaussian steps; their lines are kept with the pair's contours.

    For few steps, rows that lines do not prove closely come from laws of the loss with proven
    errors.  ``rates`` are the exact sampling probabilities.
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
        """Laws of the loss, for few steps or small rates."""
        from pyengine.engines.sector import SectorLaws, kinds_of

        return SectorLaws(kinds_of(self._pair), self._pair.reversed)

    def _weak_rows(self, functional: int, c: FloatArray, table: FloatArray) -> None:
        """Improve wide rows in place: by more lines, then by lines of divided laws."""
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
        """Replace wide rows of a table by those of other lines if these are closer."""
        weak = np.isfinite(c) & ~(table[:, ERRORS + functional] <= self.laws.left)
        if weak.any():
            found = lines(functional, c[weak], table[weak])
            better = found[:, ERRORS + functional] < table[weak, ERRORS + functional]
            weak[weak] = better
            table[weak] = found[better]

    @property
    def asked(self) -> int:
        """Only lines of little work if laws of few steps are tried before the others."""
        return SOON if self.laws.comes_first else super().asked

    def threshold(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Thresholds by estimates and by laws of few steps; else by the lines."""
        ways = [self._estimated_threshold, self.laws.threshold]
        if self.asked == SOON:
            ways.reverse()
        ways += [self.laws.farthest, self.prover().certified_threshold]
        return first_found(ways, functional, log_target)

    def _estimated_threshold(self, functional: int, log_target: FloatArray) -> FloatArray:
        with contextlib.suppress(AccuracyError):
            return estimated_threshold(self.prover(), functional, log_target)
        return np.full(log_target.size, np.nan)

    def next_to_largest(self, functional: int, log_tail: FloatArray) -> FloatArray | None:
        """β and γ at levels whose tests reject only if almost no step samples the record.

        Their thresholds are closer to the largest loss than doubles resolve, so there are no rows;
        but all likelihood ratios on the test are nearly equal.
        """
        noise, probability, steps, is_reversed = self._pair
        found = np.empty((log_tail.size, 7))
        kinds = len(steps), noise, probability, steps, is_reversed
        given = functional, log_tail.size, array(np.ascontiguousarray(log_tail))
        known = lib.pe_next_to_largest(*kinds, *given, array(found.reshape(-1), writable=True))
        return found if known else None

    @cached_property
    def most_at_zero(self) -> float:  # type: ignore[override]
        """Upper bound of δ(0), the total variation distance of both laws.

        It is at most the sum over steps of p times the distance of two normal laws, and at most the
        probability that any step samples the record.
        """
        noise, probability, steps, _ = self._pair
        return float(lib.pe_most_at_zero(len(steps), noise, probability, steps))

    @property
    def known_largest(self) -> float | None:
        """Upper bound of the loss; None if rates are doubles, as the C core then computes it."""
        return None if list(self._rates) == list(self._pair.probability) else self.largest

    @cached_property
    def ends(self) -> Triple:  # type: ignore[override]
        """The largest loss, with its bounds."""
        return largest_epsilon(self._pair, self._rates)

    @property
    def memo(self) -> dict[Any, Any]:  # type: ignore[override]
        """The memo that is kept with the lines."""
        return _kept(self._pair).memo

    def prover(self) -> Spectral:
        """The spectral engine; a weak reference, so that the cache alone keeps it alive."""
        epoch, kept = self._found
        found = kept()
        if found is None or epoch is not Epoch.current:
            found = _kept(self._pair)
            self._found = Epoch.current, weakref.ref(found)
        return found.spectral
