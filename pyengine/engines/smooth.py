"""Steps whose sides are mixtures of normals: rows of lines, proven if their numbers are exact.

They are Gaussian mixtures, sampled steps under substitution, truncated Poisson samples, and
compositions of these with Gaussian steps.
"""

from __future__ import annotations

import math
from fractions import Fraction
from functools import partial
from typing import TYPE_CHECKING, Any

from pyengine._core import lib
from pyengine._support.caches import Cache, cached_property
from pyengine.engines.answers import Triple
from pyengine.engines.certified_epochs import NodesOrTable, TabulatedEpoch
from pyengine.engines.few_steps import FewSteps
from pyengine.engines.functionals import FloatArray
from pyengine.engines.pairs import GaussianPair
from pyengine.engines.row_sides import EstimatedSide, estimated_threshold, first_found
from pyengine.engines.spectral import KeptLines, Spectral
from pyengine.laws.base import StepLaw
from pyengine.laws.normals import STANDARD, Alternatives, ExactAlternatives, LossNodes
from pyengine.numerics.rounding import UNIT

if TYPE_CHECKING:
    from pyengine.engines.sector import SectorLaws

__all__ = ["SmoothPair", "SmoothSide", "estimated_side", "smooth_pair"]

SmoothPair = tuple[tuple[StepLaw, int], ...]


def smooth_pair(laws: list[tuple[StepLaw, int]]) -> SmoothPair | None:
    """Return the laws of several steps if the spectral engine takes each of them."""
    if sum(number for _, number in laws) < 2:
        return None  # one step is an integral up to a threshold, without a transform
    return tuple(laws) if all(_is_taken(*step) for step in laws) else None


def _is_taken(law: StepLaw, number: int) -> bool:
    """Whether the spectral engine takes ``number`` steps of a law, as mixtures or by nodes."""
    pairs = law.mixtures()
    return law.nodes(number) is not None if pairs is None else len(pairs) <= lib.PE_ALTERNATIVES


def _sampled_gaussian(found: Alternatives) -> tuple[float, float, bool] | None:
    """Noise and rate of a sampled or plain Gaussian step, and whether it is reversed."""
    if len(found) > 1:
        return None
    pair = found[0]
    for a, b, is_reversed in ((pair.a, pair.b, False), (pair.b, pair.a, True)):
        if a != STANDARD or b.shifts[-1] <= 0.0:
            continue
        if len(b.shifts) == 1 or (len(b.shifts) == 2 and b.shifts[0] == 0.0):
            return 1.0 / b.shifts[-1], b.weights[-1], is_reversed
    return None


def _estimating(pair: SmoothPair) -> Spectral:
    """The spectral engine of a pair with rounded numbers, whose rows are estimates."""
    rows: list[tuple[float, float, bool, int]] = []
    others: list[tuple[Alternatives, int]] = []
    nodes: list[tuple[LossNodes, int]] = []
    for law, number in pair:
        found = law.mixtures()
        if found is None:
            table = law.nodes(number)
            assert table is not None
            nodes.append((table, number))
            continue
        gaussian = _sampled_gaussian(found)
        if gaussian is None or (rows and gaussian[2] != rows[0][2] and gaussian[1] < 1.0):
            others.append((found, number))
        else:
            rows.append((*gaussian, number))
    noise, probability, orders, steps = zip(*rows, strict=True) if rows else ((), (), (), ())
    plain = GaussianPair(noise, probability, steps, reversed=any(orders))
    return Spectral(plain, tuple(others), nodes=tuple(nodes))


class _Kept:
    """Both engines of one pair, each made on first use."""

    def __init__(self, pair: SmoothPair) -> None:
        self._pair = pair
        self._lines: dict[bool, KeptLines] = {}

    def lines(self, *, proving: bool) -> KeptLines:
        """The engine with exact numbers if ``proving``, else that with rounded ones."""
        found = self._lines.get(proving)
        if found is None:
            make = _proving if proving else _estimating
            found = self._lines.setdefault(proving, KeptLines(make(self._pair)))
        return found

    def bytes(self) -> int:
        """Memory of both, in bytes."""
        return sum(lines.bytes() for lines in tuple(self._lines.values()))


_engines: Cache[_Kept] = Cache(64, lambda kept: kept.bytes(), grows=True)


def _lines(pair: SmoothPair, *, proving: bool) -> KeptLines:
    return _engines.get_or_make(pair, lambda: _Kept(pair)).lines(proving=proving)


def _proving(pair: SmoothPair) -> Spectral:
    """The spectral engine of a pair with exact numbers, which proves its rows."""
    plain: list[tuple[float, int]] = []
    others: list[tuple[Alternatives, int]] = []
    exact: list[ExactAlternatives | None] = []
    for law, number in pair:
        terms, found = law.exact_mixtures(), law.mixtures()
        assert terms is not None
        assert found is not None
        gaussian = _sampled_gaussian(found)
        if gaussian is not None and gaussian[1] == 1.0 and _is_plain(terms, gaussian[0]):
            plain.append((gaussian[0], number))
        else:
            others.append((found, number))
            exact.append(terms)
    noise, steps = zip(*plain, strict=True) if plain else ((), ())
    gaussians = GaussianPair(noise, (1.0,) * len(noise), steps, reversed=False)
    return Spectral(gaussians, tuple(others), tuple(exact))


def _is_plain(terms: ExactAlternatives, noise: float) -> bool:
    """Whether a step is the Gaussian mechanism with exactly that noise."""
    shifts = [abs(shift) for shift in terms[0].terms if shift != 0]
    return len(terms) == 1 and len(shifts) == 1 and shifts[0] * Fraction(noise) == 1


class SmoothSide(FewSteps):
    """Certified rows of one pair of laws with exact numbers."""

    def __init__(self, pair: SmoothPair) -> None:
        self._pair = pair  # the memo is kept with the lines

    @classmethod
    def of(cls, pair: SmoothPair) -> SmoothSide | None:
        """Return the side of a pair; None if a step has no exact numbers."""
        known = all(law.exact_mixtures() is not None for law, _ in pair)
        return cls(pair) if known else None

    @cached_property
    def laws(self) -> SectorLaws:
        """Laws of the loss, for sampled Gaussian steps of which some are of groups."""
        from pyengine.engines.sampled import sampled_steps
        from pyengine.engines.sector import SectorLaws

        found = sampled_steps(self._pair)
        serves = found is not None and not found.others
        return (
            SectorLaws(found.kinds, found.is_reversed)
            if found and serves
            else SectorLaws((), False)
        )

    def threshold(self, functional: int, log_target: FloatArray) -> FloatArray:
        """Estimated thresholds; where there are none, those of the proven lines."""
        lines = _lines(self._pair, proving=False).spectral
        ways = (
            partial(estimated_threshold, lines),
            self.laws.threshold,
            self.laws.farthest,
            self.prover().certified_threshold,
        )
        return first_found(ways, functional, log_target)

    @property
    def memo(self) -> dict[Any, Any]:  # type: ignore[override]
        """The memo that is kept with the lines."""
        return _lines(self._pair, proving=True).memo

    def prover(self) -> Spectral:
        """The spectral engine with exact numbers."""
        return _lines(self._pair, proving=True).spectral

    @cached_property
    def ends(self) -> Triple:  # type: ignore[override]
        """The largest loss, with bounds that include the rounding of weights."""
        parts = [-number * law.limits()[0] for law, number in self._pair]
        if math.inf in parts:
            return math.inf, math.inf, math.inf
        value = math.fsum(parts)
        off = math.fsum(number * law.support_error() for law, number in self._pair)
        off = (off + 4.0 * UNIT * abs(value)) * (1.0 + 2.0**-40)
        return value, max(value - off, 0.0), value + off


def estimated_side(pair: SmoothPair, epochs: TabulatedEpoch | None = None) -> EstimatedSide:
    """Rows of a pair with rounded numbers and estimated errors; ``epochs`` adds their table."""

    def lines() -> Spectral:
        return _lines(pair, proving=False).spectral

    ends = SmoothSide(pair).ends
    if epochs is None:
        return EstimatedSide(lines, Spectral.name, ends)
    rows = NodesOrTable(lines, epochs)
    return EstimatedSide(lambda: rows, rows.name, ends)
