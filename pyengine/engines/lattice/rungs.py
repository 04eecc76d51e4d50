"""Places on which a composition is kept, and the cache of what was computed there.

Places (rungs) stand at signed roots w = 0, -2, -4, ... of the tilt for lower tails and at odd w
between the means of A and B for the middle, so that answers do not depend on earlier questions.
"""

from __future__ import annotations

import math
import os
from collections import OrderedDict
from threading import Lock

from pyengine.engines.lattice.compose import compose_on
from pyengine.engines.lattice.plan import Place, make_plan
from pyengine.engines.lattice.survey import ROOT_TWO_PI, Part, Survey, scaled_tail, survey
from pyengine.engines.lattice.tails import LowerTails, MiddleTails

__all__ = ["Rungs", "clear_cache", "refined"]

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
        self.steps = sum(self.survey.steps)
        end = -self.survey.root(self.survey.last_tilt(-1.0))
        self.lower_rungs = max(math.ceil((0.9 * end - 0.5 * STEP) / STEP) + 1, 1)
        self._end = end

    def place(self, rung: int, outer: bool) -> Place:
        """Place of rung 0, 1, ..."""
        found = self.survey
        if outer:
            root = max(-STEP * rung, -0.9 * self._end)
            tilt = found.tilt_at(root) if rung else 0.0
            top = math.inf if rung == 0 else self._mean(root + OVERLAP)
            low = self.lowest if rung == self.lower_rungs - 1 else self._mean(root - OVERLAP)
            return Place(tilt, True, (low, top))
        last = found.root(1.0)
        if last <= STEP:
            return Place(0.5, False, (self._mean(-OVERLAP), self._mean(last + OVERLAP)))
        root = min(1.0 + STEP * rung, last - 0.5)
        tilt = min(found.tilt_at(root), 1.0)
        return Place(
            tilt, False, (self._mean(root - OVERLAP - 0.5), self._mean(root + OVERLAP + 0.5))
        )

    @property
    def lowest(self) -> float:
        """The smallest loss with a mass worth mentioning, roughly."""
        survey = self.survey
        return sum(n * float(x[0]) for n, x in zip(survey.steps, survey.loss, strict=True))

    def _mean(self, root: float) -> float:
        return self.survey.cumulants(self.survey.tilt_at(root))[1]

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
        size = abs(place.tilt) * deviation
        tails = {
            "a": scaled_tail(size),
            "b": scaled_tail(abs(1.0 - place.tilt) * deviation),
        }
        tails["profile"] = max(tails["a"] - tails["b"], tails["b"] * min(deviation, 1.0) * 0.3)
        coefficient = self.steps / (8.0 * ROOT_TWO_PI * deviation * tails[share])
        spacing = math.sqrt(0.5 * tolerance / coefficient)
        return min(spacing, 0.25 * deviation, 0.25 / (1.0 + abs(place.tilt)))

    def tails(
        self, rung: int, outer: bool, spacing: float, tolerance: float
    ) -> LowerTails | MiddleTails:
        """What is computed on a rung with a spacing."""
        key = (self.parts, rung, outer, spacing, tolerance)
        with _lock:
            found = _kept.get(key)
            if found is not None:
                _kept.move_to_end(key)
                return found
        composed = compose_on(
            self.parts,
            make_plan(self.parts, self.survey, self.place(rung, outer), spacing, tolerance),
        )
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
