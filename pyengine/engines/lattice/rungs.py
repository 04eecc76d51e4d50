"""Places on which a composition is kept, and the cache of what was computed there.

Places (rungs) stand at signed roots w = 0, -2, -4, ... of the tilt for lower tails and at odd w
between the means of A and B for the middle, so that answers do not depend on earlier questions.
"""

from __future__ import annotations

import math
import os
from collections import OrderedDict
from functools import cached_property
from threading import Lock

import numpy as np
import numpy.typing as npt

from pyengine.engines.lattice.compose import compose_on
from pyengine.engines.lattice.plan import Place, make_plan
from pyengine.engines.lattice.survey import ROOT_TWO_PI, Part, Survey, scaled_tail, survey
from pyengine.engines.lattice.tails import LowerTails, MiddleTails
from pyengine.errors import AccuracyError

__all__ = ["STEP", "Rungs", "clear_cache", "refined"]

FloatArray = npt.NDArray[np.float64]

STEP = 2.0  # between rungs, in units of w
OVERLAP = 1.5  # how far from its rung an answer may be taken, in units of w
KEPT_BYTES = 64 * 2**20

_kept: OrderedDict[object, LowerTails | MiddleTails] = OrderedDict()
_lock = Lock()


def clear_cache() -> None:
    """Forget all compositions."""
    global _lock
    _lock = Lock()
    _kept.clear()


if hasattr(os, "register_at_fork"):
    os.register_at_fork(after_in_child=clear_cache)


class Rungs:
    """The rungs of one ordered composition.

    Parameters
    ----------
    parts : tuple of (StepLaw, int)
        At least one step.
    """

    def __init__(self, parts: tuple[Part, ...]) -> None:
        self.parts = parts
        self.survey: Survey = survey(parts)
        if not any(loss.size > 1 for loss in self.survey.loss):
            raise AccuracyError(
                "the finite losses of these steps are a single one: method='exact' answers where "
                "the lattice has nothing to resolve"
            )
        self.steps = sum(self.survey.steps)
        self._end = -float(self.survey.table[0][0])
        self.lower_rungs = max(math.ceil((self._end - 0.5 * STEP) / STEP) + 1, 1)

    def place(self, rung: int, outer: bool) -> Place:
        """Place of rung 0, 1, ..."""
        found = self.survey
        if outer:
            root = max(-STEP * rung, -self._end)
            tilt = found.tilt_at(root) if rung else 0.0
            top = math.inf if rung == 0 else self.survey.mean_at(root + OVERLAP)
            low = (
                self.lowest if rung == self.lower_rungs - 1 else self.survey.mean_at(root - OVERLAP)
            )
            return Place(tilt, True, (low, top))
        last = found.root(1.0)
        if last <= STEP:
            return Place(
                0.5, False, (self.survey.mean_at(-OVERLAP), self.survey.mean_at(last + OVERLAP))
            )
        root = min(1.0 + STEP * rung, last - 0.5)
        tilt = min(found.tilt_at(root), 1.0)
        return Place(
            tilt,
            False,
            (self.survey.mean_at(root - OVERLAP - 0.5), self.survey.mean_at(root + OVERLAP + 0.5)),
        )

    @property
    def lowest(self) -> float:
        """The smallest loss with a mass worth mentioning, roughly."""
        survey = self.survey
        return sum(n * float(x[0]) for n, x in zip(survey.steps, survey.loss, strict=True))

    @cached_property
    def marks(self) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Between successive lower rungs: the loss, and roughly logs of A, B and the profile."""
        found = self.survey
        roots = -STEP * (np.arange(max(self.lower_rungs - 1, 1)) + 0.5)
        tilts = np.interp(roots, found.table[0], found.table[1])
        total, mean, variance = found.many(tilts)
        deviation = np.sqrt(np.maximum(variance, 1e-300))
        value = total - tilts * mean
        tails = [
            self._shares(tilt, sd)
            for tilt, sd in zip(tilts.tolist(), deviation.tolist(), strict=True)
        ]
        a, b, profile = (np.log([tail[name] for tail in tails]) for name in ("a", "b", "profile"))
        return mean, value + a, value + mean + b, value + profile

    @staticmethod
    def _shares(tilt: float, deviation: float) -> dict[str, float]:
        """Tails of A and B and the profile at the saddle point, in parts of its value."""
        a = scaled_tail(abs(tilt) * deviation)
        b = scaled_tail(abs(1.0 - tilt) * deviation)
        return {"a": a, "b": b, "profile": max(a - b, b * min(deviation, 1.0) * 0.3)}

    def middle_rungs(self) -> int:
        """Number of rungs between the means."""
        return max(math.ceil((self.survey.root(1.0) - 1.0) / STEP) + 1, 1)

    def first_spacing(self, place: Place, share: str, tolerance: float) -> float:
        """Spacing expected to give a bracket of a relative width.

        The variance of splitting and of merging is N h²/4; it moves the profile by half of it times
        the density of A.
        """
        _, _, variance = self.survey.cumulants(place.tilt)
        deviation = math.sqrt(max(variance, 1e-300))
        tails = self._shares(place.tilt, deviation)
        coefficient = self.steps / (8.0 * ROOT_TWO_PI * deviation * tails[share])
        spacing = math.sqrt(0.5 * tolerance / coefficient)
        # cells wider than the law of a step merge nearly all of it
        narrowest = math.sqrt(max(self._least_variance(place.tilt, variance), 1e-300))
        return min(spacing, 0.25 * deviation, 0.25 / (1.0 + abs(place.tilt)), 0.5 * narrowest)

    def _least_variance(self, tilt: float, variance: float) -> float:
        """Variance of the narrowest of those kinds of steps that matter for that of the sum."""
        found, least = self.survey, variance
        for loss, log_mass, steps in zip(found.loss, found.log_mass, found.steps, strict=True):
            own = Survey((loss,), (log_mass,), (1,)).cumulants(tilt)[2]
            if own * steps > 1e-5 * variance:
                least = min(least, own)
        return least

    def tails(
        self, rung: int, outer: bool, spacing: float, tolerance: float, limit: int
    ) -> LowerTails | MiddleTails:
        """What is computed on a rung with a spacing."""
        key = (self.parts, rung, outer, spacing, tolerance, limit)
        with _lock:
            found = _kept.get(key)
            if found is not None:
                _kept.move_to_end(key)
                return found
        place = self.place(rung, outer)
        plan = make_plan(self.parts, self.survey, place, spacing, tolerance, limit)
        composed = compose_on(self.parts, plan)
        found = (LowerTails if outer else MiddleTails)(composed)
        del composed
        with _lock:
            _kept[key] = found
            while len(_kept) > 1 and sum(x.bytes for x in _kept.values()) > KEPT_BYTES:
                _kept.popitem(last=False)
        return found


def refined(spacing: float, width: float, tolerance: float) -> float:
    """Spacing for another try, after a bracket of a given relative width."""
    wanted = math.sqrt(tolerance / width) if width < math.inf else 0.0
    return spacing * min(max(0.7 * wanted, 1.0 / 64.0), 0.7)
