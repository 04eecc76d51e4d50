"""Orders of steps beside few losses that are no lines: sums in closed form, and laws on pieces."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property
from pyengine.engines.exact import FEW_RANGES, closed_sum
from pyengine.engines.exact.laplace import MAX_RATIO, LaplaceSum, laplace_composition
from pyengine.engines.exact.levels import ClosedLaw
from pyengine.engines.exact.single import SingleStep
from pyengine.engines.functionals import A_ABOVE, A_BELOW, B_ABOVE, B_BELOW, PROFILE, WIDTH
from pyengine.engines.gaussian import GaussianSide
from pyengine.engines.pairs import GaussianPair, largest_epsilon
from pyengine.engines.row_bounds import LogBounds
from pyengine.engines.row_sides import CLOSE
from pyengine.engines.sector import SectorLaws
from pyengine.engines.spectral import SOON
from pyengine.engines.vertical_lines.ordered import Inner
from pyengine.laws.base import StepLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = [
    "ClosedOrder",
    "PiecesOrder",
    "RowsOrder",
    "closed_order",
    "gaussian_pair",
    "pieces_order",
    "rows_order",
]

FloatArray = npt.NDArray[np.float64]
Laws = tuple[tuple[StepLaw, int], ...]

TAILS = (A_ABOVE, A_BELOW, B_ABOVE, B_BELOW)
FALLING = (A_ABOVE, B_ABOVE)
DEEPEST = np.array([-30.0, -120.0, -650.0])  # logs of masses beyond places that bound others
OPEN = 1e-12  # relative width of bounds that places further inside may narrow
OPEN_BESIDE = 1e-14  # of the largest of several masses that are summed
UNKNOWN = 0.5  # the same of what has no row
SLACK = 1.0 + 1e-15
ROUNDED = 4.0 * UNIT  # of expm1


class ClosedOrder(Inner):
    """One order whose masses are in closed form.

    Parameters
    ----------
    law : ClosedLaw
        The steps.
    """

    def __init__(self, law: ClosedLaw) -> None:
        self._law = law

    @cached_property
    def jumps(self) -> FloatArray:
        """Both ends, where noise of bounded loss has its atoms."""
        return np.unique(np.array(self._law.support()))

    def lowest(self) -> tuple[float, float]:
        """As the law says."""
        return self._law.lowest()

    def masses(self, c: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """Masses as of `Tails`, each with a bound on its absolute error."""
        found = self._law.tails(c)
        return [(mass, mass * found.error) for mass in found[:4]]

    def shift(self, c: FloatArray) -> FloatArray:
        """By how much thresholds may be moved."""
        return self._law.tails(c).shift

    def profile(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The profile of the first law against the second one, and a bound on absolute errors."""
        return self._law.profile(epsilon)


def closed_order(laws: Laws) -> ClosedOrder | None:
    """Return the order of steps that have a closed sum or of one step; None of others.

    Those are equal steps of Laplace noise on all data, or of bounded range.
    """
    if len(laws) != 1:
        return None
    (law, number), found = laws[0], closed_sum(laws[0][0])
    if found is not None and found[0] <= MAX_RATIO:
        ratio, has_atoms = found
        if not has_atoms and number >= FEW_RANGES:  # whose lines are closer
            return None
        if LaplaceSum.available(float(ratio), number, has_atoms=has_atoms):
            return ClosedOrder(laplace_composition(ratio, number, has_atoms))
        return None
    if number > 1 or not law.has_cells or law.infinite() != (0.0, 0.0):
        return None
    return ClosedOrder(SingleStep(law))


class RowsOrder(Inner):
    """One order of sampled Gaussian steps, by rows of what answers questions on them alone.

    Parameters
    ----------
    pair : GaussianPair
        The steps.
    """

    has_atoms = False
    jumps = np.zeros(0)

    def __init__(self, pair: GaussianPair) -> None:
        self._side, self._is_reversed = GaussianSide(pair), pair.reversed
        # the loss of the order without exchange is at least minus this
        self._end = largest_epsilon(pair._replace(reversed=False), pair.probability)

    def lowest(self) -> tuple[float, float]:
        """Numbers not above and not below the smallest loss; -inf where there is none."""
        if self._is_reversed:
            return -math.inf, -math.inf
        return -self._end[2], -self._end[1]

    def _beyond(self, c: FloatArray) -> npt.NDArray[np.bool_]:
        """Whether thresholds are below all losses or, in the other order, above them."""
        return c > self._end[2] if self._is_reversed else c < -self._end[2]

    @cached_property
    def _far(self) -> FloatArray:
        """Thresholds far out on both sides, rising."""
        found = np.concatenate([self._threshold(which, DEEPEST) for which in TAILS[:2]])
        return np.sort(found[np.isfinite(found)])

    @cached_property
    def _far_tails(self) -> FloatArray:
        return self._tails(self._far)

    @cached_property
    def _far_profiles(self) -> FloatArray:
        return self._profiles(self._far)

    @cached_property
    def _middle(self) -> float:
        """The median of the loss under A; 0 where it is not found."""
        found = float(self._threshold(A_ABOVE, fn.log([0.5]))[0])
        return found if math.isfinite(found) else 0.0

    def _threshold(self, functional: int, log_target: FloatArray) -> FloatArray:
        return self._side.threshold(functional, log_target)

    def _rows(self, functional: int, c: FloatArray, depths: int | None = None) -> LogBounds:
        """Rows at thresholds: estimates where few laws are enough, else quick ones first.

        Rows that take long are asked where quick ones leave more open than others have digits.
        """
        lines = self._side.prover()
        if depths is not None:
            return LogBounds.of_rows(c, lines.at(functional, c))
        table = lines.certify(functional, c, lines=SOON)
        low, high = LogBounds.of_rows(c, table).values(functional)
        weak = ~(high - low <= OPEN_BESIDE * high.max(initial=0.0))
        if weak.any():
            table[weak] = self._side.table(functional, c[weak])
        return LogBounds.of_rows(c, table)

    def masses(self, c: FloatArray) -> list[tuple[FloatArray, FloatArray]]:
        """Masses as of `Tails`, each with a bound on its absolute error."""
        found = self._tails(c)
        if _is_open(found):
            for which, x, far in zip(TAILS, found, self._far_tails, strict=True):
                _sharpen(c, x, self._far, far, falls=which in FALLING)
        return [_between(*x) for x in found]

    def _tails(self, c: FloatArray, depths: int | None = None) -> FloatArray:
        """Bounds of all masses, from the rows of the smaller tail of A at each threshold."""
        parts = np.empty((len(TAILS), 2, c.size))
        is_above = c >= self._middle
        for functional, at in ((A_ABOVE, is_above), (A_BELOW, ~is_above)):
            if at.any():
                rows = self._rows(functional, c[at], depths)
                for part, which in zip(parts, TAILS, strict=True):
                    part[0, at], part[1, at] = rows.values(which)
        for part, which in zip(parts, TAILS, strict=True):
            part[:, self._beyond(c)] = (which in FALLING) != self._is_reversed
        return parts

    def profile(self, epsilon: FloatArray) -> tuple[FloatArray, FloatArray]:
        """The profile of the first law against the second one, and a bound on absolute errors."""
        found = self._profiles(-epsilon)
        if _is_open(found):
            _sharpen(-epsilon, found, self._far, self._far_profiles, falls=False)
        return _between(*found)

    def _profiles(self, c: FloatArray, depths: int | None = None) -> FloatArray:
        found = np.array(self._rows(PROFILE, c, depths).values(PROFILE))
        beyond = self._beyond(c)
        whole = -fn.expm1(-c[beyond]) if self._is_reversed else np.zeros(beyond.sum())
        off = ROUNDED * self._is_reversed
        found[0, beyond], found[1, beyond] = whole * (1.0 - off), whole * (1.0 + off)
        return found

    def rough_masses(self, c: FloatArray) -> FloatArray:
        """About the masses, of shape (4, n), by the shortest law; beyond its ends none or all."""
        low, high = self._tails(c, 1).transpose(1, 0, 2)
        falls = np.array([which in FALLING for which in TAILS])[:, None]
        return np.asarray(
            np.where(high - low > UNKNOWN, falls != (c >= self._middle), 0.5 * (low + high))
        )

    def rough_profile(self, epsilon: FloatArray) -> FloatArray:
        """About the profile, by the shortest law; beyond its ends none or all."""
        low, high = self._profiles(-epsilon, 1)
        beyond = np.where(-epsilon >= self._middle, -fn.expm1(np.minimum(epsilon, 0.0)), 0.0)
        return np.where(high - low > UNKNOWN, beyond, 0.5 * (low + high))


class PiecesOrder(RowsOrder):
    """One order of few or rare sampled Gaussian steps, by laws on pieces.

    Parameters
    ----------
    pair : GaussianPair
        The steps.
    laws : SectorLaws
        Of them.
    """

    def __init__(self, pair: GaussianPair, laws: SectorLaws) -> None:
        super().__init__(pair)
        self._laws = laws

    def _threshold(self, functional: int, log_target: FloatArray) -> FloatArray:
        return self._laws.threshold(functional, log_target)

    def _rows(self, functional: int, c: FloatArray, depths: int | None = None) -> LogBounds:
        table = np.full((c.size, WIDTH), np.nan)
        self._laws.improve(functional, c, table, CLOSE, depths)
        return LogBounds.of_rows(c, table)


def _is_open(bounds: FloatArray) -> bool:
    """Whether bounds, lower and upper ones next to last, are far apart anywhere."""
    low, high = bounds[..., 0, :], bounds[..., 1, :]
    return bool((high - low > OPEN * high).any())


def _between(low: FloatArray, high: FloatArray) -> tuple[FloatArray, FloatArray]:
    """The middle of bounds, and how far they are from it."""
    middle = 0.5 * (low + high)
    return middle, np.maximum(high - middle, middle - low) * SLACK


def _sharpen(
    c: FloatArray, bounds: FloatArray, far: FloatArray, known: FloatArray, *, falls: bool
) -> None:
    """Let bounds, of shape (2, n), be as close as those at rising places ``far`` say."""
    if falls:  # the same of minus the thresholds
        c, far, known = -c, -far[::-1], known[:, ::-1]
    below = np.maximum.accumulate(np.append(0.0, known[0]))
    above = np.minimum.accumulate(np.append(1.0, known[1, ::-1]))[::-1]
    bounds[0] = np.maximum(bounds[0], below[np.searchsorted(far, c, side="right")])
    bounds[1] = np.minimum(bounds[1], above[np.searchsorted(far, c, side="left")])


def pieces_order(laws: Laws) -> PiecesOrder | None:
    """Return the order of few or rare sampled Gaussian steps whose numbers are doubles."""
    known = gaussian_pair(laws)
    if known is None or known[1]:
        return None
    made = SectorLaws(known[0])
    return PiecesOrder(known[0], made) if made.serves and not made.are_costly else None


def rows_order(laws: Laws) -> RowsOrder | None:
    """Return the order of any sampled Gaussian steps, by the rows that they have alone."""
    known = gaussian_pair(laws)
    return None if known is None or known[1] else RowsOrder(known[0])


def gaussian_pair(laws: Laws) -> tuple[GaussianPair, Laws] | None:
    """Return the sampled Gaussian steps whose numbers are doubles, and all other steps.

    None where there are none, or of both orders.
    """
    steps = [(_sampled_gaussian(law), law, number) for law, number in laws]
    known = [(*found, number) for found, _, number in steps if found is not None]
    if not known:
        return None
    noise, rate, orders, number = zip(*known, strict=True)
    if len(set(orders)) > 1:
        return None
    others = tuple((law, number) for found, law, number in steps if found is None)
    return GaussianPair(noise, rate, number, orders[0]), others


def _sampled_gaussian(law: StepLaw) -> tuple[float, float, bool] | None:
    """Noise and rate of a sampled Gaussian step, and whether A is the law with the record.

    None of other steps, and where the numbers are no doubles.
    """
    found = law.exact_mixtures()
    if found is None or len(found) > 1:
        return None
    terms = {shift: sides for shift, sides in found[0].terms.items() if any(sides)}
    moved = [(shift, sides) for shift, sides in terms.items() if shift]
    if len(moved) != 1 or len(terms) != 2:
        return None
    ((shift, (of_a, of_b)),) = moved
    if (of_a and of_b) or 1 in (of_a, of_b):
        return None
    # a shift down is the same pair as one up
    noise, rate = 1 / abs(shift), of_a or of_b
    if Fraction(float(noise)) != noise or Fraction(float(rate)) != rate:
        return None
    return float(noise), float(rate), bool(of_a)
