"""A finite pair that dominates a selection among runs, from the proven profile of one run."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from pyengine._support.caches import Cache
from pyengine.engines.answers import Answer, FloatArray
from pyengine.errors import AccuracyError
from pyengine.laws.profile import placed_values, raised_points
from pyengine.mechanisms import FinitePair, Mechanism, Step, from_probabilities
from pyengine.mechanisms.general import symmetric_masses
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT
from pyengine.numerics.selection import repeat_and_select

__all__ = ["selected_pair"]

DEEPEST = 1e-17  # profile at the last ε; the rest counts as mass at infinite loss
PLACES = 500  # values of ε in a table
LARGEST = 700.0  # largest ε: e^700 is a double
APART = 1e-6  # relative distance of two e^ε above which a chord is used between them
SLACK = 1e-9  # error of such a chord from rounding of e^ε, relative to the larger value

_pairs: Cache[FinitePair] = Cache(64, lambda pair: 400 * len(pair.p))


def selected_pair(step: Step, ask: Callable[[Mechanism, FloatArray], Answer]) -> FinitePair:
    """Return a pair that dominates the best of a random number of runs.

    Raises AccuracyError unless the profile of a run, for both orders together, is proven.
    """
    return _pairs.get_or_make(step, lambda: _made(step, ask))


def _made(step: Step, ask: Callable[[Mechanism, FloatArray], Answer]) -> FinitePair:
    found = step.repeated
    assert found is not None
    base, law = found

    def one(epsilon: FloatArray) -> FloatArray:
        answer = ask(base, epsilon)
        if not answer.certified.all():
            raise AccuracyError(
                "a selection among runs needs proven bounds of a run, and here they are estimates: "
                "give the run by densities or noise that have proven bounds"
            )
        return np.minimum(answer.upper, 1.0)

    run = _Chords(*_values(one, DEEPEST))

    def best(epsilon: FloatArray) -> FloatArray:
        return np.array([repeat_and_select(run, e, **law) for e in epsilon.tolist()])

    epsilon, delta = _values(best, DEEPEST)
    with_record, without = zip(*symmetric_masses(raised_points(epsilon, delta)), strict=True)
    return from_probabilities(without, with_record)


def _values(
    profile: Callable[[FloatArray], FloatArray], deepest: float
) -> tuple[FloatArray, FloatArray]:
    """Values of ε from 0 to where the profile is tiny or constant, and upper bounds there."""
    end, last = 0.5, 1.0
    while end < LARGEST:
        now = float(profile(np.array([end]))[0])
        if now <= deepest or (now == last and now < 1.0):
            break
        end, last = min(2.0 * end, LARGEST), now
    epsilon, delta = placed_values(
        lambda e: (profile(e), e), lambda e, _, __: profile(e), end, deepest, places=PLACES
    )
    return epsilon, np.minimum.accumulate(delta)  # profiles do not increase


class _Chords:
    """Upper bounds of a profile by chords in e^ε, in which it is convex and decreasing."""

    def __init__(self, epsilon: FloatArray, delta: FloatArray) -> None:
        self._t, self._delta = fn.exp(epsilon), delta

    def __call__(self, epsilon: FloatArray) -> FloatArray:
        """Upper bounds at ε >= 0."""
        t = fn.exp(epsilon) * (1.0 - (ELEMENTARY + 4.0) * UNIT)
        at = np.clip(np.searchsorted(self._t, t, side="right") - 1, 0, self._t.size - 1)
        after = np.minimum(at + 1, self._t.size - 1)
        before, width = self._delta[at], self._t[after] - self._t[at]
        wide = width > APART * self._t[at]
        share = np.where(wide, (t - self._t[at]) / np.where(wide, width, 1.0), 0.0)
        value = before - np.clip(share, 0.0, 1.0) * (before - self._delta[after]) + SLACK * before
        return np.asarray(np.minimum(value, 1.0))
