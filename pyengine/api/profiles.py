"""Mechanisms of which only the privacy profile is known.

For any pair of laws with profile δ, and every c >= 0 (Dong, Roth, Su 2022, Proposition 2.5 and
equation 5; both bounds are tangents, so every c is valid):

    γ(κ) <= κ e^c + δ(c)                  and      γ(κ) <= 1 - e^{-c} (1 - κ - δ(c)).

The first is min over E of {Q(E) - e^c P(E) <= δ(c)}, the second the same for the complement of E.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._objects import Guarded
from pyengine.engines.answers import Answer, ErrorCurve, Questions, names
from pyengine.numerics import functions as fn
from pyengine.numerics.bracketing import bisected
from pyengine.numerics.golden_section import lowest
from pyengine.numerics.rounding import UNIT

__all__ = ["Profile"]

FloatArray = npt.NDArray[np.float64]
# values of c that are tried before the best one is refined, and indices at which to stop early
GRID = np.concatenate([[0.0], np.geomspace(1e-4, 700.0, 200)])
STOPS = [int(np.searchsorted(GRID, c)) for c in (1.0, 5.0, 25.0, 125.0)] + [GRID.size]
REFINE = 60  # golden-section steps: the bracket shrinks by 1e-12
ROUNDING = 1 + 2.0**-49  # factor that covers the rounding of a tangent


class Profile(Questions):
    """Answers from a privacy profile δ(ε) that holds for both orders of the laws.

    Parameters
    ----------
    function : callable
        δ(ε) for ε >= 0, as a float for a float; if it takes arrays, it is called with arrays.
    name : str
        Name of the engine in answers.

    Notes
    -----
    Values are the safe ends of the bounds: γ, δ and ε from above, β from below.  They are as safe
    as the profile.  The other ends are trivial, because a profile may be any bound.  If the profile
    is exact and its pair symmetric, γ is exact up to the minimisation.

    Threads may share it if its function is thread-safe.
    """

    def __init__(self, function: Callable[[Any], Any], name: str = "profile") -> None:
        self._function = Guarded(function)
        self._name = name
        self._takes_arrays: bool | None = None

    def __call__(self, epsilon: FloatArray) -> FloatArray:
        """δ(ε), checked."""
        if self._takes_arrays is None:
            self._takes_arrays = self._try_arrays()
        if self._takes_arrays:
            found = np.asarray(self._function(epsilon), dtype=float)
        else:
            found = np.array([self._at(float(x)) for x in epsilon])
        wrong = ~((found >= -1e-12) & (found <= 1.0 + 1e-12))
        if wrong.any():
            at = int(np.flatnonzero(wrong)[0])
            raise ValueError(
                f"a privacy profile must lie in [0, 1], got {found[at]!r} at {epsilon[at]!r}"
            )
        clipped: FloatArray = np.clip(found, 0.0, 1.0)
        return clipped

    def _at(self, epsilon: float) -> float:
        try:
            return float(self._function(epsilon))
        except (TypeError, ValueError) as error:
            raise ValueError(
                "mechanism is a function, which is taken for a privacy profile δ(ε) and refused "
                f"ε = {epsilon:g}: {error}"
            ) from error

    def _try_arrays(self) -> bool:
        probe = np.array([0.5, 1.0, 2.0])
        try:
            found = np.asarray(self._function(probe), dtype=float)
        except (TypeError, ValueError):
            return False  # a function of floats; other errors will show with them
        return found.shape == probe.shape

    def profile(self, epsilon: FloatArray) -> Answer:
        """δ(ε): the profile itself, from above."""
        finite = np.isfinite(epsilon)
        value = np.zeros(epsilon.size)
        value[finite] = self(epsilon[finite])
        return Answer(value, np.zeros(value.size), value.copy(), names(self._name, value.size))

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """β from below and γ from above."""
        on_grid = np.empty(0)
        gamma = np.empty(alpha.size)
        for index, kappa in enumerate(alpha.tolist()):
            gamma[index], on_grid = self._gamma(kappa, on_grid)
        engine = names(self._name, alpha.size)
        beta = np.maximum(1.0 - gamma - UNIT, 0.0)  # rounded down
        return ErrorCurve(
            Answer(beta, beta.copy(), 1.0 - alpha, engine),
            Answer(gamma, alpha.copy(), gamma.copy(), engine.copy()),
        )

    def _gamma(self, kappa: float, on_grid: FloatArray) -> tuple[float, FloatArray]:
        """γ(κ), and the profile on the part of the grid that was needed so far."""
        best = 1.0
        for bound in (_first, _second):
            for stop in STOPS:
                # at large ε a profile may be hard to compute: evaluate it only if needed
                if on_grid.size < stop:
                    on_grid = np.append(on_grid, self(GRID[on_grid.size : stop]))
                values = bound(kappa, GRID[:stop], on_grid[:stop])
                at = int(values.argmin())
                if bound(kappa, GRID[stop - 1], 0.0) >= values[at]:
                    break  # larger c give no smaller bound, even with δ = 0
            low, high = GRID[max(at - 1, 0)], GRID[min(at + 1, stop - 1)]
            best = min(best, float(values[at]), self._refine(bound, kappa, float(low), float(high)))
        return max(min(best * ROUNDING, 1.0), kappa), on_grid

    def _refine(self, bound: Callable[..., Any], kappa: float, low: float, high: float) -> float:
        """Golden section: the bounds are convex in e^c, and any point gives a valid one."""
        _, least = lowest(
            lambda c: np.asarray(bound(kappa, c, self(c))),
            np.array([low]),
            np.array([high]),
            rounds=REFINE,
            # flat at the minimum: the error is of the order of the square
            is_close=lambda first, second: second - first <= 1e-9 * (1.0 + second),
        )
        return float(least[0])

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε with δ(ε) <= δ, from above; inf beyond 700."""
        value = np.array([self._epsilon(float(d)) for d in delta])
        return Answer(value, np.zeros(value.size), value.copy(), names(self._name, value.size))

    def _epsilon(self, delta: float) -> float:
        def meets(epsilon: float) -> bool:
            return bool(self(np.array([epsilon]))[0] <= delta)

        if meets(0.0):
            return 0.0
        high = 1.0
        while not meets(high):
            if high >= 700.0:
                return math.inf
            high = min(2.0 * high, 700.0)
        _, end = bisected(
            lambda epsilon: not meets(float(epsilon)),
            0.0 if high == 1.0 else high / 2.0,
            high,
            is_close=lambda first, second: second - first <= 1e-13 * second,
        )
        return float(end)


def _first(kappa: float, c: Any, delta: Any) -> Any:
    return kappa * fn.exp(c) + delta


def _second(kappa: float, c: Any, delta: Any) -> Any:
    return 1.0 - fn.exp(-c) * (1.0 - kappa - delta)
