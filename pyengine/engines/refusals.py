"""Refusals of answers whose bounds are too wide, with advice that is true."""

from __future__ import annotations

import math
import re
from collections.abc import Callable

from pyengine.errors import AccuracyError

__all__ = ["LOOSEST", "crossed", "followed", "too_wide"]

LOOSEST = 1e-2  # relative width of bounds that are an answer where none narrower are had
ADVICE = re.compile(r"tolerance=(\S+) (or more gives this answer|would do)")
MOST_TRIED = 4  # tolerances of an advice, each of at least twice the one before
OTHERWISE = "method='reference' answers in arbitrary precision"


def too_wide(
    what: str, lower: float, upper: float, width: float, *, only_bounds: bool = False
) -> AccuracyError:
    """Return the refusal of an answer whose bounds are wider than asked, with what would help.

    The width is the relative one; ``only_bounds`` says that no engine knows more than bounds.
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
    """Two digits of a positive number, rounded up."""
    digit = 10.0 ** (math.floor(math.log10(x)) - 1)
    return f"{math.ceil(x / digit) * digit:.2g}"


def followed(refusal: AccuracyError, ask: Callable[[float], object]) -> AccuracyError:
    """Return a refusal whose advice is true, by asking the same with the tolerance that it names.

    Engines name a tolerance for the bounds that they had when they refused; another part of the
    answer, or a coarser lattice, may need a larger one.
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
    """Return the refusal of an answer whose bounds no number lies between: a defect shows."""
    return AccuracyError(
        f"the bounds {lower!r} and {upper!r} of {what} have no number between them, so one of them "
        "is wrong; method='reference' answers in arbitrary precision"
    )
