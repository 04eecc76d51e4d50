"""A bracket of the zero of an increasing function with ball values."""

from __future__ import annotations

from collections.abc import Callable

from flint import arb

__all__ = ["bracket"]

# first and largest overshoot beyond the estimated zero, over its distance from the nearer end
FIRST, MOST = 1 / 64, 1 / 8
STEPS = 400  # most evaluations


def bracket(
    gap: Callable[[arb], arb], low: arb, high: arb, digits: float, near: arb | None = None
) -> tuple[arb, arb] | None:
    """Return two exact points around the zero of an increasing function, by false position.

    Each step overshoots the estimated zero by about the last error of the estimate, so that both
    ends close in; after a step that does not halve the interval, it is bisected.  The points differ
    by less than 10^-digits of their size.  Points next to ``near`` are tried first.  None if a
    value is not finite, or the balls are too wide to tell the signs.
    """
    low, high = low.mid(), high.mid()
    width, share, fine = high - low, arb(FIRST), arb(10) ** -arb(digits)
    at_low = at_high = before = None
    away = abs(near) * fine.sqrt() if near is not None else width
    trials = [(near + sign * away).mid() for sign in (-1, 1)] if near is not None else []
    slow = False
    for _ in range(STEPS):
        span = high - low
        if trials and low < trials[-1] < high:
            middle = trials.pop()
        elif at_low is None or at_high is None or slow:
            middle, before, slow = ((low + high) / 2).mid(), None, False
        else:
            root = (low - at_low * span / (at_high - at_low)).mid()
            if before is not None:
                share = (4 * abs(root - before) / away).min(arb(MOST))
            upwards, before = root - low < high - root, root
            away = root - low if upwards else high - root
            beyond = (share * away).max(abs(root) * fine / 4)
            middle = (root + beyond if upwards else root - beyond).mid()
        value = gap(middle)
        if value < 0:
            low, at_low = middle, value.mid()
        elif value > 0:
            high, at_high = middle, value.mid()
        else:
            return None if not value.is_finite() else _around(gap, middle, width, digits)
        slow = before is not None and high - low > span / 2
        if high - low < abs(middle).max(width / 1000) * fine:
            return low, high
    return None


def _around(
    gap: Callable[[arb], arb], middle: arb, width: arb, digits: float
) -> tuple[arb, arb] | None:
    """Return points on both sides of ``middle``, where the ball of the value holds 0; or None."""
    away = (width / 1000 * arb(10) ** -arb(digits)).mid()
    low, high = (middle - away).mid(), (middle + away).mid()
    return (low, high) if gap(low) < 0 < gap(high) else None
