"""Poisson-subsampled Gaussian steps: questions answered from the rows of the engines."""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyengine.answers import ErrorCurve, Triple
from pyengine.caches import Epoch, cached_property
from pyengine.engines.functionals import FloatArray, Limits, Rows
from pyengine.engines.gaussian_engines import Solver, solver
from pyengine.engines.row_questions import RowQuestions
from pyengine.numerics.rounding import UNIT
from pyengine.pairs import GaussianPair

if TYPE_CHECKING:
    from fractions import Fraction

    from pyengine.engines.lattice.uncomposed import Uncomposed
    from pyengine.laws.base import StepLaw

__all__ = ["GaussianPairQuestions"]

LEAST = 2.0**-1074  # the smallest positive double
TELLING = 0.15  # noise from which on a step no longer shows a record for certain


class GaussianPairQuestions(RowQuestions):
    """Questions on one ordered pair; ``method`` names an engine or is "auto"."""

    has_proven_ends = True

    def __init__(
        self,
        pair: GaussianPair,
        method: str,
        tolerance: float | None = None,
        wanted: str | None = None,
        rates: Sequence[float | Fraction] | None = None,
    ) -> None:
        self.pair = pair
        self._rates = pair.probability if rates is None else rates  # before they were rounded
        self.is_trivial = not pair.steps
        # where the record shows for certain or not at all there may be answers without an engine
        self.is_telling = method == "auto" and bool(pair.steps) and min(pair.noise) <= TELLING
        self._wanted = wanted  # "beta" or "gamma" where only one error is to be narrow
        self.method = method
        # contours belong to the cache alone: what it drops is to be freed
        self._kept: tuple[object, Callable[[], Solver | None]] = (None, lambda: None)
        self.tolerance = tolerance
        self.limits = Limits.of(tolerance)

    def _solver(self) -> Solver:
        epoch, kept = self._kept
        found = kept()
        if found is None or epoch is not Epoch.current:
            epoch, found = Epoch.current, solver(self.pair)
            self._kept = (epoch, weakref.ref(found))
        return found

    @cached_property
    def _uncomposed(self) -> Uncomposed | None:
        """Proven answers where the record shows for certain or not at all; None for more noise.

        The engines' laws are then so wide that a composition takes minutes.
        """
        if not self.is_telling:
            return None
        from pyengine.engines.lattice.uncomposed import Uncomposed

        return Uncomposed(_laws_of(self.pair), 2.0 * self.limits.ordinary, self._wanted)

    def _at(self, functional: int, c: FloatArray) -> Rows:
        return self._solver().at(functional, c, self.method, self.limits)

    def _solve(self, functional: int, log_target: FloatArray) -> Rows:
        return self._solver().solve(functional, log_target, self.method, self.limits)

    def _row(self, functional: int, x: float, *, by_value: bool) -> Any:
        epoch, kept = self._kept  # as `_solver`, in line: floats come this way
        found = kept()
        if found is None or epoch is not Epoch.current:
            found = self._solver()
        return found.one(functional, x, self.method, self.limits, by_value=by_value)

    def _memo(self) -> dict[Any, Any]:
        memo: dict[Any, Any] = self._solver().memo.setdefault((self.method, self.limits), {})
        return memo

    @property
    def is_estimated(self) -> bool:
        """Whether every answer between the ends of the domain is estimated."""
        return not self.is_trivial and not self.is_telling

    def _simple(self, alpha: FloatArray) -> tuple[ErrorCurve, npt.NDArray[np.bool_]] | None:
        return None if self._uncomposed is None else self._uncomposed.trade_off(alpha)

    @cached_property
    def ends(self) -> Triple:
        """The largest ε of all, between its bounds."""
        return (0.0, 0.0, 0.0) if self.is_trivial else largest_epsilon(self.pair, self._rates)


def _laws_of(pair: GaussianPair) -> tuple[tuple[StepLaw, int], ...]:
    """The same pair as laws of steps."""
    from pyengine.engines.lattice.uncomposed import reverse
    from pyengine.laws.base import PoissonSampledLaw
    from pyengine.laws.gaussian import GaussianLaw

    laws = []
    for noise, probability, steps in zip(pair.noise, pair.probability, pair.steps, strict=True):
        plain = GaussianLaw(noise)
        law = plain if probability == 1.0 else PoissonSampledLaw(plain, probability)
        laws.append((reverse(law) if pair.reversed else law, steps))
    return tuple(laws)


def largest_epsilon(pair: GaussianPair, rates: Sequence[float | Fraction]) -> Triple:
    """The ε at which the profile vanishes, between bounds: the supremum of the loss of A against B.

    That is -Σ n log(1 - p), of rates p as they were given: one that only rounds to 1 has a largest
    loss.  A logarithm within 2 ulp is assumed of the C library (theory/certified).
    """
    if pair.reversed or any(rate == 1 for rate in rates):
        return math.inf, math.inf, math.inf
    value = -math.fsum(n * _log_of_rest(p) for p, n in zip(rates, pair.steps, strict=True))
    off = 16.0 * UNIT * value + sum(pair.steps) * LEAST
    return value, value - off, value + off


def _log_of_rest(rate: float | Fraction) -> float:
    """log(1 - rate), within 2 ulp."""
    if isinstance(rate, float):
        return math.log1p(-rate)
    from pyengine.numerics.exact_numbers import log_of_rest

    return log_of_rest(rate)[0]
