"""The four questions, answered from masses above and below a threshold of the loss.

A trade-off function T is enclosed from both sides: a test is an upper bound of T (and the chord of
two tests, because T is convex), and a supporting line is a lower bound.  For a threshold e^c of
dB/dA the test has level ``a_above`` and error ``b_below``, and the line of slope -e^c has the
height ``b_below + e^c a_above`` at level 0.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

from flint import arb, ctx

from campaign.truth.law import Law, Parts, Reversed

__all__ = ["Curve", "NoTruthError", "curve", "epsilon", "hull", "profile", "touching"]

STEPS = 400  # steps of a search
LARGEST_SHIFT = arb(10) ** -9  # relative change of an answer by the rounding of its argument


class NoTruthError(ArithmeticError):
    """The truth of a question was not found; the engines may still be right."""


class Curve(NamedTuple):
    """Enclosures of β = T(α) and γ = 1 - T(α), and log of minus the slope there."""

    beta: arb
    gamma: arb
    c: arb


def enclosure(lower: arb, upper: arb) -> arb:
    """Ball around two balls of which one is a lower bound and one an upper bound."""
    return lower.union(upper)


def excess(law: Law, epsilon: arb) -> arb:
    """H_{e^epsilon}(A‖B) of one order."""
    parts = law.at(-epsilon)
    value = parts.a_below - epsilon.exp() * parts.b_below
    return value if value.mid() > 0 or value.contains(0) else value.union(arb(0))


def profile(laws: list[Law], epsilon: arb | None) -> arb:
    """δ(ε): the largest H_{e^ε}(A‖B) of the laws; epsilon None is infinity."""
    if epsilon is None:
        return _largest([law.infinite()[0] for law in laws])
    return _largest([excess(law, epsilon) for law in laws])


def _largest(values: list[arb]) -> arb:
    found = values[0]
    for value in values[1:]:
        found = found.max(value)
    return found.max(arb(0))


def _level(parts: Parts, alpha: arb, rest: arb) -> arb:
    """Level of a test less alpha, from the side on which less cancels."""
    if alpha.mid() <= 0.5:
        return parts.a_above - alpha
    return rest - parts.a_below


def _lines(parts: Parts, c: arb, over: arb) -> tuple[arb, arb]:
    """Lower bound of β and upper bound of γ by the line of slope -e^c."""
    height = c.exp() * over
    return parts.b_below + height, parts.b_above - height


def curve(law: Law, alpha: arb) -> Curve:
    """T(A, B) at a level in [0, 1]."""
    rest = 1 - alpha
    low, high = law.span()
    margin = 1 + (abs(low) + abs(high)) / 1000
    c_low, c_high = (low - margin).mid(), (high + margin).mid()
    at_low, at_high = law.at(c_low), law.at(c_high)
    over_low, over_high = _level(at_low, alpha, rest), _level(at_high, alpha, rest)
    if over_low.mid() <= 0:  # every finite loss is rejected, and some level is left
        none = enclosure(arb(0), at_low.b_below)
        return Curve(none, enclosure(at_low.b_above, arb(1)), c_low)
    if over_high.mid() >= 0:
        # the level is that of the losses beyond, or less: 0, or masses below every double
        beyond = law.infinite()[1]
        return Curve(
            enclosure(at_high.b_below, 1 - beyond), enclosure(beyond, at_high.b_above), c_high
        )
    tiny = arb(2) ** (-ctx.prec // 2)
    for step in range(STEPS):
        width = c_high - c_low
        if width.mid() <= (tiny * (1 + abs(c_low) + abs(c_high))).mid():
            break
        share = arb(0.5)
        if step % 3:  # regula falsi on the logarithm of the level, or of the rest of it
            share = _share(at_low, at_high, alpha, rest)
        c = (c_low + width * share).mid()
        parts = law.at(c)
        over = _level(parts, alpha, rest)
        if over.mid() > 0:
            c_low, at_low, over_low = c, parts, over
        else:
            c_high, at_high, over_high = c, parts, over
    gap = over_low - over_high
    weight = over_low / gap if gap > 0 else arb(0.5, 0.5)
    weight = weight.intersection(arb(0.5, 0.5)) if weight.overlaps(arb(0.5, 0.5)) else weight
    betas, gammas = zip(
        _lines(at_low, c_low, over_low), _lines(at_high, c_high, over_high), strict=True
    )
    test_beta = at_low.b_below + weight * (at_high.b_below - at_low.b_below)
    test_gamma = at_low.b_above + weight * (at_high.b_above - at_low.b_above)
    return Curve(
        enclosure(betas[0].max(betas[1]), test_beta),
        enclosure(test_gamma, gammas[0].min(gammas[1])),
        ((c_low + c_high) / 2).mid(),
    )


def _share(low: Parts, high: Parts, alpha: arb, rest: arb) -> arb:
    half = alpha.mid() <= 0.5
    x, y, goal = (low.a_above, high.a_above, alpha) if half else (low.a_below, high.a_below, rest)
    if not (x > 0 and y > 0 and goal > 0) or x.overlaps(y):
        return arb(0.5)
    share = ((x / goal).log() / (x / y).log()).mid()
    # a little to the other side, so that both ends move
    tilt = arb(2) ** -40
    return share.max(tilt).min(1 - tilt).mid()


def hull(law: Law, alpha: arb) -> Curve:
    """Lower convex hull of T(A, B) and T(B, A) at a level."""
    other = Reversed(law)
    one, two = curve(law, alpha), curve(other, alpha)

    def heights(c: arb) -> tuple[arb, arb, Parts, Parts]:
        first, second = law.at(c), other.at(c)
        t = c.exp()
        return first.b_below + t * first.a_above, second.b_below + t * second.a_above, first, second

    def lower_first(c: arb) -> bool:
        """Whether the line of slope -e^c that touches the first curve lies below the other's."""
        first, second, _, _ = heights(c)
        return bool((first - second).mid() <= 0)

    if lower_first(one.c) or not one.beta.is_finite():
        return one
    if not lower_first(two.c):
        return two
    # a line touches both curves between the two slopes
    c_one, c_two = one.c, two.c
    tiny = arb(2) ** (-ctx.prec // 2)
    for _ in range(STEPS):
        if abs(c_one - c_two).mid() <= (tiny * (1 + abs(c_one) + abs(c_two))).mid():
            break
        c = ((c_one + c_two) / 2).mid()
        if lower_first(c):
            c_two = c
        else:
            c_one = c
    found: list[tuple[arb, arb]] = []
    tests: list[tuple[arb, Parts]] = []
    rest = 1 - alpha
    for c in (c_one, c_two):
        _, _, *both = heights(c)
        overs = [_level(parts, alpha, rest) for parts in both]
        lines = [_lines(parts, c, over) for parts, over in zip(both, overs, strict=True)]
        found.append((lines[0][0].min(lines[1][0]), lines[0][1].max(lines[1][1])))
        tests += zip(overs, both, strict=True)
    above = [test for test in tests if test[0] >= 0]
    below = [test for test in tests if test[0] <= 0]
    chords = [(one.beta, one.gamma), (two.beta, two.gamma)]
    for over_low, low in above:
        for over_high, high in below:
            gap = over_low - over_high
            if not gap > 0:
                continue
            w = over_low / gap
            chords.append(
                (
                    low.b_below + w * (high.b_below - low.b_below),
                    low.b_above + w * (high.b_above - low.b_above),
                )
            )
    beta = min((chord[0] for chord in chords), key=_by_mid)
    gamma = max((chord[1] for chord in chords), key=_by_mid)
    return Curve(
        enclosure(max((line[0] for line in found), key=_by_mid), beta),
        enclosure(gamma, min((line[1] for line in found), key=_by_mid)),
        c_one,
    )


class _by_mid:  # noqa: N801 - a key function that orders balls by their midpoints
    def __init__(self, value: arb) -> None:
        self.value = value.mid()

    def __lt__(self, other: _by_mid) -> bool:
        return bool(self.value < other.value)


def touching(laws: list[Law], c: arb) -> tuple[Parts, arb]:
    """Test on the curve, or on the hull of two, at the slope -e^c; and c."""
    found = [law.at(c) for law in laws]
    t = c.exp()
    heights = [parts.b_below + t * parts.a_above for parts in found]
    best = min(range(len(found)), key=lambda i: _by_mid(heights[i]))
    return found[best], c


def near(parts: Parts, c: arb, alpha: arb) -> Curve:
    """T at a level that differs from that of a test only by rounding, by the tangent."""
    over = _level(parts, alpha, 1 - alpha)
    shift = c.exp() * over
    found = []
    for value, moved in ((parts.b_below, shift), (parts.b_above, -shift)):
        if not abs(moved) <= LARGEST_SHIFT * value:
            raise NoTruthError("rounding the level moves the answer too far")
        # the second order: the slope changes by no more, relatively, than 10^6 times the level
        spare = abs(moved) * arb(10) ** -10
        found.append(value + moved + arb(0, spare.abs_upper()))
    return Curve(found[0], found[1], c)


def epsilon(laws: list[Law], delta: arb) -> arb | None:
    """The smallest ε >= 0 whose δ is at most the given one; None is infinity."""
    at_infinity = profile(laws, None)
    if delta < at_infinity:
        return None
    if delta == 0:
        lowest = [law.ends()[0] for law in laws]
        return None if None in lowest else _largest([-x for x in lowest if x is not None])
    at_zero = profile(laws, arb(0))
    if at_zero <= delta or (at_zero - delta).contains(0):
        return arb(0)
    end = max((-law.span()[0] for law in laws), key=_by_mid).mid() + 1
    # where balls do not decide which is larger, each search takes its own side
    low, last = _halved(lambda x: bool(profile(laws, x) > delta), arb(0), end)
    if profile(laws, last) <= delta:
        return low.union(last)
    return low.union(_halved(lambda x: not profile(laws, x) <= delta, last, end)[1])


def _halved(above: Callable[[arb], bool], low: arb, high: arb) -> tuple[arb, arb]:
    """Bracket of the point where a profile falls to a level."""
    tiny = arb(2) ** (-ctx.prec // 2)
    for _ in range(STEPS):
        if (high - low).mid() <= (tiny * high).mid():
            break
        middle = ((low + high) / 2).mid()
        if above(middle):
            low = middle
        else:
            high = middle
    return low, high
