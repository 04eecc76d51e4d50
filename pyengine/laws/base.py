"""One step of a composition as the engines see it: masses of both laws between losses.

An ordered pair (A, B) of laws with the loss L = log dB/dA.  Every bound of the lattice engine
follows from the masses of the cells between given losses.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple, Protocol

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property
from pyengine.errors import AccuracyError
from pyengine.laws.laplace_parameters import LaplaceParameters
from pyengine.laws.normals import (
    Alternatives,
    ExactAlternatives,
    LossNodes,
    exactly_sampled,
    exactly_swapped,
    sampled,
    swapped,
)
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT
from pyengine.numerics.sampled_loss import sampled_loss, share_of

if TYPE_CHECKING:
    from pyengine.laws.analytic import AnalyticLaw
    from pyengine.laws.finite import FiniteLaw

__all__ = [
    "AnalyticParts",
    "Cells",
    "EnclosedLaw",
    "Enclosing",
    "Law",
    "PoissonSampledLaw",
    "ReversedLaw",
    "StepLaw",
    "TabulatedLaw",
    "largest_finite",
    "overflow_of",
    "positive",
    "sampled_law",
]

FloatArray = npt.NDArray[np.float64]


class Cells(NamedTuple):
    """Masses of both laws in the cells between n + 1 increasing losses x_0 < ... < x_n.

    Cell 0 is {-inf < L <= x_0}, cell i is {x_{i-1} < L <= x_i}, cell n + 1 is {x_n < L < inf}.  The
    cells are a partition, the same one for A and for B; its edges may differ from the given ones
    by ``shift``, and an atom on an edge may be counted on either side.

    Parameters
    ----------
    log_a, log_b : ndarray of shape (n + 2,)
        Logs of the masses; -inf for an empty cell.
    error : ndarray of shape (n + 2,)
        Bound on the relative error of each mass, both laws.
    shift : ndarray of shape (n + 1,)
        Bound on the distance of each true edge from the given one.  An edge's distance depends on
        the edge alone.
    ratio : ndarray of shape (n + 2,) or None
        Bound on the error of `log_ratio` where that is known better than from ``error``.
    finer : ndarray of shape (n + 2,) or None
        `log_ratio` where that is known better than log_b - log_a: a small loss has more digits than
        the difference of two logs.  Undefined where a mass is 0.
    """

    log_a: FloatArray
    log_b: FloatArray
    error: FloatArray
    shift: FloatArray
    ratio: FloatArray | None = None
    finer: FloatArray | None = None

    @property
    def log_ratio(self) -> FloatArray:
        """Log of the ratio of both masses; undefined where one is 0."""
        if self.finer is not None:
            return self.finer
        with np.errstate(invalid="ignore"):
            return np.asarray(self.log_b - self.log_a)

    @property
    def ratio_error(self) -> FloatArray:
        """Bound on the error of `log_ratio`."""
        return 2.01 * self.error if self.ratio is None else self.ratio


def largest_finite(ends: tuple[float, float]) -> float:
    """Return the largest absolute value of the finite ends, or 0."""
    return max((abs(x) for x in ends if math.isfinite(x)), default=0.0)


def overflow_of(parts: Sequence[tuple[StepLaw, int]]) -> str | None:
    """Return the error message if the losses may add up to more than 2^1022; else None."""
    sizes = [largest_finite(law.support()) for law, _ in parts]
    if math.isfinite(
        4.0 * sum(size * number for size, (_, number) in zip(sizes, parts, strict=True))
    ):
        return None
    return (
        "the losses add up to more than any double that can still be compared with another one, "
        f"2^1022; the largest loss of a step is {max(sizes):.3g}"
    )


class AnalyticParts(NamedTuple):
    """A step of analytic densities on a Poisson sample.

    Parameters
    ----------
    law : AnalyticLaw
        The step on all data.
    probability : Fraction
        The sampling probability; 1 on all data.
    is_reversed : bool
        Whether the pair is (B, A).
    """

    law: AnalyticLaw
    probability: Fraction
    is_reversed: bool


class Enclosing(NamedTuple):
    """Two laws between which another one lies in the order of hockey-stick divergences.

    Parameters
    ----------
    below, above : StepLaw
        For all t >= 0, H_t of the law between is at least that of ``below`` and at most that of
        ``above``, in both orders, and so are those of compositions.
    """

    below: StepLaw
    above: StepLaw


class StepLaw:
    """Ordered pair (A, B) of one step with the loss L = log dB/dA: base of all laws.

    Laws override what they offer besides masses; by default they offer nothing else.  They are
    immutable and hashable, so that engines can cache what they compute.
    """

    @property
    def is_proven(self) -> bool:
        """Whether the errors of masses and ends are proven; else they are estimates."""
        return True

    @property
    def whole(self) -> StepLaw:
        """The law of the whole step; another one only where a law is a part of a step."""
        return self

    @property
    def is_above_cuts(self) -> bool:
        """Whether a law is the part of a step above all cuts."""
        return False

    def support(self) -> tuple[float, float]:
        """Infimum and supremum of the finite losses that matter; infinite where unbounded.

        What lies beyond has a mass below e^-800 under both laws.
        """
        raise NotImplementedError

    def support_error(self) -> float:
        """Bound on the distance of each finite end of the support from the true one."""
        raise NotImplementedError

    def limits(self) -> tuple[float, float]:
        """Infimum and supremum of all finite losses, of whatever mass; errors as in the support."""
        raise NotImplementedError

    def left_out(self) -> float:
        """Bound on the mass of finite losses, under either law, that is in no cell."""
        raise NotImplementedError

    def infinite(self) -> tuple[float, float]:
        """A-mass where B has none (L = -inf) and B-mass where A has none (L = inf).

        Relative error at most 2^-50; 0 is exact.
        """
        raise NotImplementedError

    def cells(self, edges: FloatArray) -> Cells:
        """Masses between increasing finite losses."""
        raise NotImplementedError

    def spacing(self) -> tuple[float, float] | None:
        """Offset and spacing of a lattice that holds every finite loss; None if there is none.

        Only a hint for choosing grids: its rounding costs accuracy, not soundness.
        """
        raise NotImplementedError

    def mixtures(self) -> Alternatives | None:
        """Both sides as mixtures of normals; None for other laws."""
        return None

    def exact_mixtures(self) -> ExactAlternatives | None:
        """The same in exact numbers, for proofs; None if they are not known well enough."""
        return None

    def nodes(self, number: int) -> LossNodes | None:
        """A discrete measure that can stand for the law in ``number`` steps; None if none can."""
        del number
        return None

    def laplace(self) -> LaplaceParameters | None:
        """Parameters of a step of Laplace noise, sampled or not; None for other laws."""
        return None

    def finite(self) -> FiniteLaw | None:
        """The law itself where it has finitely many losses; None for other laws."""
        return None

    def gaussian_noise(self) -> tuple[float, float] | None:
        """Noise multiplier of a Gaussian step on all data, as a sum of two doubles; or None."""
        return None

    def rough_noise(self) -> tuple[float, float] | None:
        """Noise multiplier of a Gaussian step on all data, and its relative error; or None.

        The error is in units of 2^-53.
        """
        return None

    def bounded_range(self) -> Fraction | None:
        """ε of an unsampled step of bounded range; None for other laws."""
        return None

    def analytic(self) -> AnalyticParts | None:
        """Parts of a step of analytic densities; None for other laws."""
        return None

    def exchanged(self) -> StepLaw:
        """The pair (B, A)."""
        return ReversedLaw(self)

    def tabulated(self) -> tuple[TabulatedLaw, bool] | None:
        """A law whose loss has a table, and whether this law is its reversed pair; or None."""
        return None

    @property
    def has_cells(self) -> bool:
        """Whether masses between losses are known; if not, two laws with cells enclose it."""
        return True

    @property
    def is_bracketed(self) -> bool:
        """Whether engines use the two enclosing laws in the place of this one."""
        return False

    def enclosed(self, tolerance: float | None) -> Enclosing:
        """Two laws with cells that enclose this one: itself twice if it has cells.

        ``tolerance`` is the relative width wanted of bounds, or None; a smaller one may give laws
        that are closer to each other.
        """
        del tolerance
        return Enclosing(self, self)


class TabulatedLaw(Protocol):
    """A law whose loss has a table in the C core."""

    @property
    def noise(self) -> float:
        """Noise multiplier."""

    @property
    def low(self) -> float:
        """The noise multiplier minus its double."""

    @property
    def steps(self) -> int:
        """Number of steps."""

    def nodes(self, number: int) -> LossNodes | None:
        """As of a `StepLaw`."""

    def table(self, epochs: int = 1) -> Any:
        """Return density and tail masses of the sum of the losses of ``epochs`` epochs."""


@dataclass(frozen=True)
class Law(StepLaw):
    """Base of the laws whose losses lie on no lattice.

    ``symmetric`` says that (B, A) has the same masses of losses as (A, B).
    """

    symmetric: ClassVar[bool] = False

    def support(self) -> tuple[float, float]:
        """Infimum and supremum of the finite losses; infinite where unbounded."""
        raise NotImplementedError

    def support_error(self) -> float:
        """A few roundings of the larger end."""
        return 32.0 * UNIT * largest_finite(self.support())

    def limits(self) -> tuple[float, float]:
        """The support: nothing is left out."""
        return self.support()

    def left_out(self) -> float:
        """0: nothing is left out."""
        return 0.0

    def infinite(self) -> tuple[float, float]:
        """No infinite losses."""
        return 0.0, 0.0

    def spacing(self) -> tuple[float, float] | None:
        """None: the losses lie on no lattice."""
        return None


@dataclass(frozen=True)
class EnclosedLaw(Law):
    """Base of the laws that are only known to lie between two others, which have cells."""

    @property
    def has_cells(self) -> bool:
        """False: only the enclosing laws have cells."""
        return False

    def cells(self, edges: FloatArray) -> Cells:
        """Refuse: only the enclosing laws have cells."""
        del edges
        raise AccuracyError(
            "the law of this step is known only between two others: ask method='auto' or 'lattice'"
        )


@dataclass(frozen=True)
class ReversedLaw(StepLaw):
    """The pair (B, A) of a pair (A, B).

    Parameters
    ----------
    law : StepLaw
        The pair (A, B).
    """

    law: StepLaw

    @property
    def is_proven(self) -> bool:
        """As the pair's."""
        return self.law.is_proven

    def support(self) -> tuple[float, float]:
        """Support of -L."""
        lowest, highest = self.law.support()
        return -highest, -lowest

    def support_error(self) -> float:
        """As of the pair."""
        return self.law.support_error()

    def limits(self) -> tuple[float, float]:
        """Limits of -L."""
        lowest, highest = self.law.limits()
        return -highest, -lowest

    def left_out(self) -> float:
        """As of the pair."""
        return self.law.left_out()

    def infinite(self) -> tuple[float, float]:
        """Masses at infinite losses, exchanged."""
        below, above = self.law.infinite()
        return above, below

    def cells(self, edges: FloatArray) -> Cells:
        """Cells of the pair at the negated edges."""
        cells = self.law.cells(-edges[::-1])
        ratio = None if cells.ratio is None else cells.ratio[::-1]
        finer = None if cells.finer is None else -cells.finer[::-1]
        return Cells(
            cells.log_b[::-1], cells.log_a[::-1], cells.error[::-1], cells.shift[::-1], ratio, finer
        )

    def spacing(self) -> tuple[float, float] | None:
        """Lattice of -L."""
        found = self.law.spacing()
        return None if found is None else (-found[0], found[1])

    def mixtures(self) -> Alternatives | None:
        """Those of the pair, exchanged."""
        return swapped(self.law.mixtures())

    def exact_mixtures(self) -> ExactAlternatives | None:
        """Those of the pair, exchanged."""
        return exactly_swapped(self.law.exact_mixtures())

    def nodes(self, number: int) -> LossNodes | None:
        """Those of the pair, with losses -L and probabilities under B."""
        found = self.law.nodes(number)
        if found is None:
            return None
        return LossNodes(-found.loss, found.log_weight + found.loss, found.t_max)

    def laplace(self) -> LaplaceParameters | None:
        """Those of the pair, exchanged; a symmetric step stays the same."""
        found = self.law.laplace()
        if found is None or found.is_symmetric:
            return found
        return found._replace(is_reversed=not found.is_reversed)

    def gaussian_noise(self) -> tuple[float, float] | None:
        """That of the pair, which is symmetric."""
        return self.law.gaussian_noise()

    def rough_noise(self) -> tuple[float, float] | None:
        """That of the pair, which is symmetric."""
        return self.law.rough_noise()

    def bounded_range(self) -> Fraction | None:
        """That of the pair, which is symmetric."""
        return self.law.bounded_range()

    def analytic(self) -> AnalyticParts | None:
        """Those of the pair, exchanged."""
        found = self.law.analytic()
        return None if found is None else found._replace(is_reversed=not found.is_reversed)

    def exchanged(self) -> StepLaw:
        """The pair (A, B)."""
        return self.law

    def tabulated(self) -> tuple[TabulatedLaw, bool] | None:
        """That of the pair, exchanged."""
        found = self.law.tabulated()
        return None if found is None else (found[0], not found[1])

    @property
    def has_cells(self) -> bool:
        """As the pair."""
        return self.law.has_cells

    @property
    def is_bracketed(self) -> bool:
        """As the pair."""
        return self.law.is_bracketed

    def enclosed(self, tolerance: float | None) -> Enclosing:
        """Those of the pair, exchanged: the order of all H_t is the same for both orders."""
        below, above = self.law.enclosed(tolerance)
        return Enclosing(below.exchanged(), above.exchanged())


# Map: the dominating pair of Poisson sampling, add and remove | test_laws | theory/adjacency
@dataclass(frozen=True)
class PoissonSampledLaw(Law):
    """The pair (A, (1 - p) A + p B) of a pair (A, B): the mechanism on a Poisson sample.

    This is the dominating pair for adjacency ``add`` when (A, B) is that of the mechanism itself;
    its reverse is the one for ``remove``.

    Parameters
    ----------
    law : StepLaw
        The pair (A, B).
    probability : float or Fraction
        p in (0, 1), exactly.
    """

    law: StepLaw
    probability: float | Fraction

    @property
    def is_proven(self) -> bool:
        """As the inner pair's."""
        return self.law.is_proven

    @property
    def has_cells(self) -> bool:
        """As the inner pair."""
        return self.law.has_cells

    @property
    def is_bracketed(self) -> bool:
        """As the inner pair."""
        return self.law.is_bracketed

    def enclosed(self, tolerance: float | None) -> Enclosing:
        """Those of the pair, sampled: sampling preserves the order of all H_t."""
        below, above = self.law.enclosed(tolerance)
        if below is above is self.law:
            return Enclosing(self, self)
        return Enclosing(*(sampled_law(law, self.probability) for law in (below, above)))

    def _loss(self, inner: float) -> float:
        """log(1 - p + p e^l)."""
        return inner if inner == math.inf else float(sampled_loss(self.probability, inner))

    def support(self) -> tuple[float, float]:
        """log(1 - p + p e^l) of the inner support, and log(1 - p) for the mass of A alone."""
        return self._support

    @cached_property
    def _support(self) -> tuple[float, float]:
        lowest, highest = self.law.support()
        if self.law.infinite()[0] > 0.0:
            lowest = -math.inf
        return self._loss(lowest), self._loss(highest)

    def limits(self) -> tuple[float, float]:
        """As the support, of the inner limits."""
        lowest, highest = self.law.limits()
        if self.law.infinite()[0] > 0.0:
            lowest = -math.inf
        return self._loss(lowest), self._loss(highest)

    def left_out(self) -> float:
        """As of the pair: the mass under the mixture lies between those of both laws."""
        return self.law.left_out()

    def support_error(self) -> float:
        """That of the inner support (the map has slopes of at most 1), and the map's rounding."""
        return self.law.support_error() + 32.0 * UNIT * largest_finite(self.support())

    def infinite(self) -> tuple[float, float]:
        """0 for A, and p times the mass that B has alone."""
        alone = self.law.infinite()[1]
        return 0.0, positive(float(self.probability) * alone, alone > 0.0)

    def mixtures(self) -> Alternatives | None:
        """A itself and its mixture with B."""
        share = share_of(self.probability)
        return sampled(self.law.mixtures(), share.p, share.rest)

    def exact_mixtures(self) -> ExactAlternatives | None:
        """A itself and its mixture with B."""
        return exactly_sampled(self.law.exact_mixtures(), Fraction(self.probability))

    def laplace(self) -> LaplaceParameters | None:
        """Those of the step with the probability, if the step is not sampled yet."""
        found = self.law.laplace()
        is_plain = found is not None and found.is_plain
        return found._replace(probability=self.probability) if found and is_plain else None

    def analytic(self) -> AnalyticParts | None:
        """Those of the step with the probability; a sample of an exchanged pair is another law."""
        found = self.law.analytic()
        if found is None or found.is_reversed:
            return None
        return found._replace(probability=found.probability * Fraction(self.probability))

    def cells(self, edges: FloatArray) -> Cells:
        """Inner cells at the losses that map to the edges.

        The inner edges are rounded, which moves the true edges by ``shift``: the loss moves by
        the slope p e^l/(1 - p + p e^l) <= 1 of the map times the error of l.
        """
        p, rest, log_p, log_rest, log_rest_low = share_of(self.probability)
        with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
            # v = e^x - (1 - p): near log(1 - p) from the exact difference x - log(1 - p), below
            # -0.5 directly, and elsewhere from e^x - 1
            above = (edges - log_rest) - log_rest_low
            near = rest * fn.expm1(above)
            far = np.where(edges < -0.5, fn.exp(edges) - rest, fn.expm1(edges) + p)
            value = np.where(above < 0.5, near, far)
            inner = np.where(
                edges < 30.0,
                fn.log(np.maximum(value, 0.0) / p),
                edges + fn.log1p(-rest * fn.exp(-edges)) - log_p,
            )
            slope = np.where(edges < 30.0, value / (value + rest), 1.0)
        inside = value > 0.0
        first = int(np.argmax(inside)) if inside.any() else edges.size
        # e^l of relative error 16 units, and the last place of l
        size = np.where(inside, np.abs(inner), 0.0)
        shift = UNIT * (
            np.where(inside, slope * (16.0 * ELEMENTARY + 2.0 * size), 0.0) + 4.0 * np.abs(edges)
        )
        # cells below the support, and between edges that share an inner loss, are empty
        log_a = np.full(edges.size + 1, -math.inf)
        log_b = np.full(edges.size + 1, -math.inf)
        error, twice = np.zeros(edges.size + 1), np.zeros(edges.size + 1)
        inner_ratio = np.full(edges.size + 1, math.nan)
        kept = np.flatnonzero(_new(inner[first:])) + first
        if kept.size:
            cells = self.law.cells(inner[kept])
            shift[kept] += slope[kept] * cells.shift
            place = np.append(kept, edges.size)
            log_a[place], log_b[place], error[place] = cells.log_a, cells.log_b, cells.error
            twice[place], inner_ratio[place] = cells.ratio_error, cells.log_ratio
        else:
            cells = self.law.cells(np.zeros(1))
            log_a[-1] = fn.logaddexp(*cells.log_a)
            log_b[-1] = fn.logaddexp(*cells.log_b)
            error[-1] = cells.error.max() + 8.0 * UNIT * ELEMENTARY
            twice[-1], inner_ratio[-1] = 2.01 * error[-1], log_b[-1] - log_a[-1]
        alone = self.law.infinite()[0]
        if alone > 0.0:  # A's mass alone now has loss log(1 - p)
            home = first if first < edges.size else edges.size
            log_a[home] = fn.logaddexp(log_a[home], fn.log(alone))
            inner_ratio[home] = log_b[home] - log_a[home]
        with np.errstate(invalid="ignore", over="ignore"):
            mixed = fn.logaddexp(log_a + log_rest, log_b + log_p)
            # the ratio is 1 - p + p b/a: only its second term has the error of the inner ratio
            known = np.where(np.isfinite(inner_ratio), inner_ratio, 0.0)
            finer = sampled_loss(self.probability, known)
            weight = np.minimum(p * fn.exp(known - finer), 1.0)
        finite = np.where(np.isfinite(log_a), np.abs(log_a), 0.0)
        with np.errstate(over="ignore"):  # an infinite error says that nothing is known
            finite += np.where(np.isfinite(mixed), np.abs(mixed), 0.0)
            error = error + UNIT * (8.0 * ELEMENTARY + 4.0 * (finite + abs(log_p) + abs(log_rest)))
        ratio = weight * (twice + 2.0 * UNIT * np.abs(known)) * (1.0 + 1e-9)
        ratio += 24.0 * UNIT * np.abs(finer)
        return Cells(log_a, mixed, error, shift, ratio, finer)


def sampled_law(law: StepLaw, probability: float | Fraction) -> StepLaw:
    """Return the pair of a mechanism on a Poisson sample; its own pair at probability 1."""
    return law if probability == 1 else PoissonSampledLaw(law, probability)


def positive(x: float | Fraction, above_zero: bool | None = None) -> float:
    """Return a number >= 0 as a double that is 0 only if the number is.

    ``above_zero`` says whether it is positive, for a product that may have underflowed.
    """
    if above_zero is None:
        above_zero = x > 0
    return max(float(x), 5e-324) if above_zero else float(x)


def _new(x: FloatArray) -> npt.NDArray[np.bool_]:
    """Mask of the entries above all earlier ones: the first of each run of equal values."""
    use = np.ones(x.size, dtype=np.bool_)
    use[1:] = x[1:] > np.maximum.accumulate(x)[:-1]
    return use
