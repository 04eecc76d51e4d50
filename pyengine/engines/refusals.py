"""Refusals of answers whose bounds are too wide, with checked advice."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from pyengine.errors import AccuracyError

__all__ = ["LOOSEST", "crossed", "followed", "too_wide"]

LOOSEST = 1e-2  # largest relative width of bounds that is accepted if none narrower are found
ADVICE = re.compile(r"tolerance=(\S+) (or more gives this answer|would do)")
MOST_TRIED = 4  # tolerances tried for advice, each at least twice the previous one
OTHERWISE = "method='reference' answers in arbitrary precision"


def too_wide(
    what: str, lower: float, upper: float, width: float, *, only_bounds: bool = False
) -> AccuracyError:
    """Return the refusal of an answer whose bounds are wider than asked, with advice.

    ``width`` is relative; ``only_bounds`` tells that no engine has more than these bounds.
    """
    if width < (math.inf if only_bounds else 1.0):
        advice = f"tolerance={_rounded_up(1.05 * width)} or more gives this answer"
    elif only_bounds:
        advice = "no more is known; without tolerance= they are returned"
    else:
        advice = OTHERWISE
    return AccuracyError(
        f"the bounds {lower!r} and {upper!r} of {what} are wider than asked; {advice}"
    )


def _rounded_up(x: float) -> str:
    """A positive number rounded up to two significant digits."""
    digit = 10.0 ** (math.floor(math.log10(x)) - 1)
    return f"{math.ceil(x / digit) * digit:.2g}"


def followed(refusal: AccuracyError, ask: Callable[[float], object]) -> AccuracyError:
    """Return the refusal with advice that is checked by asking again with the tolerance it names.

    Engines name a tolerance for the bounds at hand when they refused; another part of the answer,
    or a coarser lattice, may need a larger one.
    """
    said = ADVICE.search(str(refusal))
    if said is None:
        return refusal
    wanted = said[1]
    for _ in range(MOST_TRIED):
        try:
            ask(float(wanted))
        except AccuracyError as again:
            said = ADVICE.search(str(again))
            if said is None:
                break
            wanted = max(said[1], _rounded_up(2.0 * float(wanted)), key=float)
        else:
            return AccuracyError(ADVICE.sub(rf"tolerance={wanted} \2", str(refusal)))
    return AccuracyError(ADVICE.sub(OTHERWISE, str(refusal)))


def crossed(what: str, lower: float, upper: float) -> AccuracyError:
    """Return the error for an answer whose lower bound exceeds the upper one: a defect."""
    return AccuracyError(
        f"the bounds {lower!r} and {upper!r} of {what} have no number between them, so one of them "
        "is wrong; method='reference' answers in arbitrary precision"
    )
