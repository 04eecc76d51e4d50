"""The engines of Poisson-subsampled Gaussian steps, with answers only where errors are small."""

from __future__ import annotations

from pyengine.caches import Cache
from pyengine.engines.functionals import FloatArray, Limits, RowEngine, Rows, row_errors
from pyengine.engines.row_engines import RowEngines
from pyengine.engines.spectral import Spectral
from pyengine.errors import AccuracyError
from pyengine.pairs import GaussianPair

__all__ = ["Solver", "solver"]


# Of steps, each of which takes a convolution some 20 ms: many of them are proven sooner.
MOST_KINDS = 24


class Solver(RowEngines):
    """All engines on one ordered pair of laws."""

    def __init__(self, pair: GaussianPair) -> None:
        super().__init__()
        self.pair = pair
        self.convolves = len(pair.steps) <= MOST_KINDS

    def _made(self, name: str) -> RowEngine:
        if name == "spectral":
            return Spectral(self.pair)
        from pyengine.engines.convolution import Convolution, bounded_steps

        return Convolution(bounded_steps(self.pair), reversed=self.pair.reversed)

    def at(self, functional: int, c: FloatArray, method: str, limits: Limits) -> Rows:
        """Rows at thresholds of the loss, all of them good."""
        return self._judged(super().at(functional, c, method, limits), functional, method, limits)

    def solve(self, functional: int, log_target: FloatArray, method: str, limits: Limits) -> Rows:
        """Rows at the thresholds where the log of a functional has given values, all good."""
        found = super().solve(functional, log_target, method, limits)
        return self._judged(found, functional, method, limits)

    def _judged(self, found: Rows, functional: int, method: str, limits: Limits) -> Rows:
        errors, good = row_errors(found.table, functional, limits)
        if not good.all():
            self._refuse(float(errors[~good].max()), method, limits)
        return found

    def _refuse(self, error: float, method: str, limits: Limits) -> None:
        pair = self.pair
        if error < 0.1:
            advice = f"for this value, tolerance={2.2 * error:.1e} would do"
        elif method != "auto":
            advice = "method='auto' may find an engine that can"
        else:
            advice = "method='lattice' may bracket what this engine does not resolve"
        raise AccuracyError(
            f"no answer within the error limit of {limits.ordinary:.3g} ({limits.tiny:.3g} below "
            f"1e-30): estimated relative error {error:.1e} with method={method!r} for "
            f"noise_multiplier={pair.noise[0]:g}, sampling_probability={pair.probability[0]:g}, "
            f"steps={pair.steps[0]}{' and further phases' if len(pair.steps) > 1 else ''}; {advice}"
        )


_solvers: Cache[Solver] = Cache(128, lambda kept: kept.bytes(), grows=True)


def solver(pair: GaussianPair) -> Solver:
    """Return the solver of a pair; the most recently used ones are kept with their contours."""
    return _solvers.get_or_make(pair, lambda: Solver(pair))
