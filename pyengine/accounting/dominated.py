"""Choices of a menu that are never needed: their profile lies below a mixture of two others."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from itertools import combinations

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import kept
from pyengine.accounting.kernels import StepProfile, values_below
from pyengine.accounting.recursion import StatePlan
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["NEGLIGIBLE", "least_variation", "without_dominated"]

FloatArray = npt.NDArray[np.float64]
NEGLIGIBLE = 1e-290  # by how much V of a left-out choice may exceed that of the others
GROWTH, WIDEST = 1.0 + 1.0 / 128.0, 0.02  # ratio of neighbouring cells; largest cell, in log k
NONE = 0.125  # variation that is used where no choice releases anything
GLANCES = 40  # points on each side of 0 at which pairs are preselected
LEAST_RANGE = 0.02  # least length of the interval of mixture weights that work at these points


def without_dominated(menu: Sequence[StepProfile], plan: StatePlan) -> tuple[list[int], StatePlan]:
    """Indices of the choices that may be best somewhere, and the plan restricted to them."""
    moves = []
    for way in plan.moves:
        alike: dict[int, list[int]] = {}
        for choice, then in way:
            alike.setdefault(then, []).append(choice)
        left = {
            (some[i], then)
            for then, some in alike.items()
            for i in _undominated(tuple(menu[choice] for choice in some))
        }
        moves.append(tuple(move for move in way if move in left))
    used = sorted({choice for way in moves for choice, _ in way})
    number = {choice: i for i, choice in enumerate(used)}
    return used, StatePlan(
        tuple(tuple((number[choice], then) for choice, then in way) for way in moves), plan.depth
    )


def least_variation(menu: Iterable[StepProfile]) -> float:
    """Return the smallest total variation distance of choices that release anything at all."""
    return min((x for x in (profile.variation for profile in menu) if x > 0.0), default=NONE)


# Map: choices below a mean of two others | test_dominated | theory/adaptive
@kept(64)
def _undominated(menu: tuple[StepProfile, ...]) -> tuple[int, ...]:
    """Indices of the choices that are not shown to lie below one other or a mixture of two."""
    left = list(range(len(menu)))
    if len(menu) < 2:
        return tuple(left)
    down, up = (max(profile.end(NEGLIGIBLE, side) for profile in menu) for side in (-1, 1))
    least = least_variation(menu)
    near = 0.1 * least
    glances = np.concatenate([-np.geomspace(down, near, GLANCES), np.geomspace(near, up, GLANCES)])
    seen = [profile.at(glances)[1] for profile in menu]
    for choice in range(len(menu)):
        others = [other for other in left if other != choice]
        pairs = [(other, other) for other in others] + list(combinations(others, 2))
        widths = []
        for one, two in pairs:
            low, high = _shares(seen[choice], seen[one], seen[two])
            widths.append(high - low)
        if not widths or max(widths) < LEAST_RANGE:
            continue
        one, two = pairs[int(np.argmax(widths))]
        if _is_below(menu[choice], menu[one], menu[two], (down, up)):
            left.remove(choice)
    return tuple(left)


def _shares(value: FloatArray, one: FloatArray, two: FloatArray) -> tuple[float, float]:
    """Smallest and largest weight s with s one + (1 - s) two >= value, at all points."""
    apart, needed = one - two, value - two
    with np.errstate(divide="ignore", invalid="ignore", over="ignore"):
        share = needed / apart
    low = float(share[apart > 0.0].max(initial=0.0))
    high = float(share[apart < 0.0].min(initial=1.0))
    return (1.0, 0.0) if (needed[apart == 0.0] > NEGLIGIBLE).any() else (low, high)


def _is_below(
    choice: StepProfile, one: StepProfile, two: StepProfile, ends: tuple[float, float]
) -> bool:
    """Whether upper bounds of a V lie below a mixture of lower bounds of two others everywhere."""
    nodes = _nodes(least_variation((choice, one, two)) / 16.0, ends)
    value = choice.at(nodes)[1]
    below = [values_below(each, nodes) * (1.0 - 8.0 * UNIT) for each in (one, two)]
    if max(float(value[0]), float(value[-1])) > NEGLIGIBLE:
        return False
    inner = slice(1, -1)
    low, high = _shares(*(each[inner] for each in (value, *below)))
    share = 0.5 * (max(low, 0.0) + min(high, 1.0))
    mean = share * below[0] + (1.0 - share) * below[1]
    return bool((value <= mean + NEGLIGIBLE)[inner].all())


def _nodes(least: float, ends: tuple[float, float]) -> FloatArray:
    """Values of log k from one end to the other, with the smallest cells about 0."""
    sides = []
    for end in ends:
        count = max(int(fn.log(WIDEST / least) / fn.log(GROWTH)), 0) + 1
        far = least * fn.expm1(fn.log(GROWTH) * np.arange(count)) / (GROWTH - 1.0)
        more = np.arange(far[-1] + WIDEST, end + 2.0 * WIDEST, WIDEST)
        sides.append(np.concatenate([far[far < end + WIDEST], more]))
    return np.concatenate([-sides[0][:0:-1], sides[1]])
