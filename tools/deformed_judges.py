"""Truths for deformed lines, and how many numbers lie outside their bounds.

For ``tools/audit_deformed.py``. A judge takes the lines and returns how many numbers it asked for,
and how many of them are outside.
"""

from __future__ import annotations

import itertools
import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any, NamedTuple

import mpmath
import numpy as np
from error_terms import Asked, Patched
from flint import acb, arb, ctx
from nested_steps import NestedLaw, log_mean, nested

from pyengine.engines.vertical_lines import build as package
from pyengine.engines.vertical_lines.laplace_shapes import LaplaceShape
from pyengine.numerics.rounding import UNIT

__all__ = ["Judge", "judges"]

Judge = Callable[[Patched], Asked]
OFF = 1e-11  # of truths in doubles, relative
LEAST_OFF = 1e-13
FROM = (0.004, 0.12, 0.31, 0.50003, 0.57, 0.83, 0.97)  # thresholds, in lengths of the support


class EndCase(NamedTuple):
    """Points on a ray of s for a shape, and P and Q there."""

    shape: LaplaceShape
    s: Any
    angle: float
    truth: Any


PRECISIONS, ENOUGH = (200, 400, 800, 1600, 3200), 60  # bits
SHAPES = ((Fraction(10, 3), Fraction(1, 1000)), (Fraction(1), Fraction(1)),
          (Fraction(5), Fraction(1, 2)))  # fmt: skip
ANGLES = ((0.25 * math.pi, 0.625 * math.pi), (0.75 * math.pi, 0.375 * math.pi))  # of s, and of y


def transform(shape: LaplaceShape, s: complex, *, of_top: bool, start: float = 0.0) -> complex:
    """P, or Q of the top, by hypergeometric functions in ball arithmetic; or from a height on.

    With the powers of e^-y in f, each part of the integral upwards is a fraction.
    """
    for ctx.prec in PRECISIONS:
        slope, length = arb(str(shape.slope)), arb(str(shape.length))
        begin = acb(0, arb(start))
        shrunk, first = (1 - 1 / slope) * (-begin).exp(), acb(0.5) - acb(s.real, s.imag)
        scale = (-first * begin).exp() / (4 * slope.sqrt())
        if of_top:
            shrunk, scale = shrunk * (-length).exp(), scale * (-length / 2).exp()
        found = shrunk.hypgeom_2f1(acb(1.5), first, first + 1) / first * scale
        if found.rel_accuracy_bits() >= ENOUGH:
            return complex(found)
    raise ArithmeticError(f"no digits of the transform at {s}")


def ray_points(low: float, angle: float) -> Any:
    """Points on a ray of s that begins at a height."""
    return 0.3 * low + 1j * low + low * np.geomspace(0.01, 10.0, 16) * np.exp(1j * angle)


def on_ends(least: float) -> Judge:
    """Ask for P and Q on both rays, from a height on."""
    cases = []
    for mu, rate in SHAPES:
        shape = LaplaceShape(mu, rate)
        for angle, inner in ANGLES:
            s = ray_points(max(least, 0.2 * least / float(shape.length)), angle)
            truth = [[transform(shape, x, of_top=top) for x in s] for top in (False, True)]
            cases.append(EndCase(shape, s, inner, np.array(truth)))

    def judge(lines: Patched) -> Asked:
        number = outside = 0
        for case in cases:
            found = lines.ends.end_transforms(case.shape, case.s, case.angle)
            values = np.array([found.low, found.high])
            errors = np.array([found.low_error, found.high_error])
            off = np.abs(values - case.truth)
            outside += int((off > errors + UNIT * np.abs(case.truth)).sum())
            number += off.size
        return Asked(number, outside)

    return judge


def on_ways() -> Judge:
    """Ask for what is left from the ends of rays, back and up."""
    cases = []
    for mu, rate in SHAPES:
        shape = LaplaceShape(mu, rate)
        for _, inner in ANGLES:
            ray = complex(math.cos(inner), math.sin(inner))
            for size, end in ((2.0, 0.9), (6.0, 0.4), (20.0, 0.8), (64.0, 1.0)):
                s = size * np.exp(1j * np.array([0.3, 0.5, 0.7]) * math.pi)
                truth = [[ways(shape, complex(x), end * ray, of_top=top) for x in s]
                         for top in (False, True)]  # fmt: skip
                cases.append((shape, s, ray, np.full(s.size, end), np.array(truth)))

    def judge(lines: Patched) -> Asked:
        number = outside = 0
        for shape, s, ray, end, truth in cases:
            bounds = np.array(lines.ends.ways_left(shape, s, ray, end))
            off = truth > bounds.transpose(2, 1, 0)
            number, outside = number + off.size, outside + int(off.sum())
        return Asked(number, outside)

    return judge


def ways(shape: LaplaceShape, s: complex, end: complex, *, of_top: bool) -> tuple[float, float]:
    """Moduli of the integrals from the end of a ray back, and up from there."""
    slope = mpmath.mpf(str(shape.slope))
    at = mpmath.mpf(str(shape.length)) if of_top else mpmath.mpf(0)

    def term(real: Any) -> Any:
        y = mpmath.mpc(real, end.imag)
        ratio = 1 + slope * mpmath.expm1(at + y)
        return slope * mpmath.exp(at + y + s * y) / (4 * ratio * mpmath.sqrt(ratio))

    with mpmath.workdps(20):
        back = abs(mpmath.quad(term, [end.real, end.real / 8, 0.0]))
    return float(back), abs(transform(shape, s, of_top=of_top, start=end.imag))


def on_bounds() -> Judge:
    """Ask for bounds on P and Q from heights on, at real parts near which they are largest."""
    cases = []
    for mu, rate in SHAPES:
        shape = LaplaceShape(mu, rate)
        for height in (0.1, 1.0, 8.0, 64.0):
            for tilt in (-0.5, 0.25, 0.5, 1.0):
                s = complex(tilt, height)
                truth = [abs(transform(shape, s, of_top=top)) for top in (False, True)]
                cases.append((shape, height, truth))

    def judge(lines: Patched) -> Asked:
        number = outside = 0
        for shape, height, truth in cases:
            bounds = lines.ends.end_bounds(shape, height)
            outside += sum(t > b for t, b in zip(truth, bounds, strict=True))
            number += 2
        return Asked(number, outside)

    return judge


class Composition(NamedTuple):
    """Steps, thresholds, and the integrals of a line left of, between and right of the poles.

    ``truth`` has, for each of these places and each kernel, the integrals at the thresholds.
    """

    kinds: Any
    laws: list[NestedLaw]
    threshold: Any
    truth: Any


def composition(*kinds: tuple[str, str, int]) -> Composition:
    """Noise, rate and number of each kind; two steps in all."""
    laws = [NestedLaw(float(noise), float(p)) for noise, p, n in kinds for _ in range(n)]
    shapes = tuple((LaplaceShape(1 / Fraction(noise), Fraction(p)), n) for noise, p, n in kinds)
    low, length = sum(law.low for law in laws), sum(law.length for law in laws)
    x = length * np.array(FROM)
    return Composition(shapes, laws, x + low, integrals(laws, x))


def integrals(laws: list[NestedLaw], x: Any) -> Any:
    """All kernels on lines at all three places, at thresholds from the least sum, (3, 3, n)."""
    one, other = laws
    cuts = [0.0, one.length]

    def mean(rest: Callable[[Any], Any], *, of_b: bool = False) -> Any:
        return nested(other, rest, x, cuts, of_b=of_b)

    above, below = mean(one.above), mean(one.below)
    above_of_b = np.exp(-x) * mean(one.above_of_b, of_b=True)
    below_of_b = np.exp(-x) * mean(one.below_of_b, of_b=True)
    left = mean(lambda y: one.below(y) - np.exp(-y) * one.below_of_b(y))
    between = mean(lambda y: one.above(y) + np.exp(-y) * one.below_of_b(y))
    right = mean(lambda y: np.exp(-y) * one.above_of_b(y) - one.above(y))
    return np.array([[-below, -below_of_b, left], [above, -below_of_b, -between],
                     [above, above_of_b, right]])  # fmt: skip


def compositions() -> list[Composition]:
    """A small gap, very different kinds, and plain steps."""
    return [
        composition(("0.3", "0.001", 2)),
        composition(("0.2", "0.3", 1), ("0.5", "0.001", 1)),
        composition(("1", "1", 2)),
        composition(("2", "0.05", 2)),
        composition(("0.25", "0.7", 1), ("2.8", "0.04", 1)),
    ]


def side_of(tilt: float) -> int:
    """To the left of the poles, between them, or to the right."""
    return int(tilt > 0.0) + int(tilt > 1.0)


def cumulant(laws: list[NestedLaw], tilt: float) -> Any:
    """K at a tilt, by mpmath."""
    with mpmath.workdps(25):
        return sum(log_mean(law, tilt) for law in laws)


class Lines:
    """Judges lines, and caches the cumulants of tilts."""

    def __init__(self) -> None:
        self.cases = compositions()
        self._known: dict[tuple[int, float], Any] = {}
        self._on_ellipses: dict[int, Any] = {}
        self._terms: dict[tuple[int, int, float], Any] = {}

    def _lines(self, lines: Patched) -> Any:
        for at, case in enumerate(self.cases):
            for index in range(lines.deformation.deformed_choice(case.kinds).line.size):
                line = lines.deformation.deformed_at(case.kinds, index)
                if line is not None:
                    key = at, line.tilt
                    if key not in self._known:
                        self._known[key] = cumulant(case.laws, line.tilt)
                    yield case, line, self._known[key]

    def sums(self, lines: Patched) -> Asked:
        """Integrals, relative to e^(K(λ) - λ c)."""
        number = outside = 0
        for case, line, whole in self._lines(lines):
            c = case.threshold
            scale = np.exp(-(float(whole) - line.tilt * c))
            truth = case.truth[side_of(line.tilt)] * scale
            found, errors = line.at(c)
            off = np.abs(found - truth)
            slack = OFF * np.abs(truth) + LEAST_OFF
            outside += int((off > errors + slack).sum())
            number += off.size
        return Asked(number, outside)

    def scales(self, lines: Patched) -> Asked:
        """K(λ) - λ c."""
        number = outside = 0
        for case, line, whole in self._lines(lines):
            found, errors = line.log_scale(case.threshold)
            for c, value, error in zip(case.threshold, found, errors, strict=True):
                with mpmath.workdps(30):
                    truth = whole - mpmath.mpf(line.tilt) * mpmath.mpf(c)
                    outside += bool(abs(mpmath.mpf(value) - truth) > error)
                number += 1
        return Asked(number, outside)

    def below(self, lines: Patched) -> Asked:
        """Error of rules below the turn for the worst function with the same bound on ellipses."""
        number = outside = 0
        for at, (case, line, whole) in enumerate(self._lines(lines)):
            count, size, width = line.rule
            half = 0.5 * line._height / count
            across = math.hypot(half, width)
            if at not in self._on_ellipses:
                middle = half * (2.0 * np.arange(count)[:, None] + 1.0)
                t = middle + across * ROUND.real + 1j * width * ROUND.imag
                s = line.tilt + 1j * t
                self._on_ellipses[at] = s, _composed(case.laws, s, line.tilt, whole)
            s, value = self._on_ellipses[at]
            rule = left_by_rules(half, (across + width) / half, size)
            left = left_below(line, case.threshold)
            for i, kernel in enumerate((s, s - 1.0, s * (s - 1.0))):
                turned = value[..., None] * np.exp(
                    -(s - line.tilt)[..., None] * (case.threshold - sum(x.low for x in case.laws))
                )
                most = np.abs(turned / kernel[..., None]).max(axis=1).sum(axis=0)
                found = left[i]
                outside += int((rule * most > found).sum())
                number += most.size
        return Asked(number, outside)

    def beyond(self, lines: Patched) -> Asked:
        """The same for rules on both rays, of terms whose exponentials are 1."""
        number = outside = 0
        for at, (case, line, whole) in enumerate(self._lines(lines)):
            for panel in range(PANELS):
                high = line._first * 2.0**panel
                low = 0.5 * high if panel else 0.0
                half = 0.5 * (high - low)
                major, minor = (0.5 * half * (RATIO + sign / RATIO) for sign in (1.0, -1.0))
                tau = low + half + major * ROUND.real + 1j * minor * ROUND.imag
                found = line.left_on(np.array([panel]))
                for angle, _ in ANGLES:
                    s = line.tilt + 1j * line._height + tau * np.exp(1j * angle)
                    key = at, panel, angle
                    if key not in self._terms:
                        self._terms[key] = _terms(case.laws, s, line.tilt, whole)
                    kernels = np.abs([1.0 / s, 1.0 / (s - 1.0), 1.0 / (s * (s - 1.0))])
                    most = (self._terms[key] * kernels).max(axis=1)
                    outside += int((left_by_rules(half, RATIO, NODES) * most > found).sum())
                    number += most.size
        return Asked(number, outside)


RATIO, NODES, PANELS = 4.2, 16, 5
ROUND = np.exp(2j * math.pi * np.arange(16.0) / 16.0)


def left_by_rules(half: float, ratio: float, size: int) -> float:
    """Error of a rule for a function that is at most π on an ellipse."""
    return float(8.0 * half * ratio ** (-2.0 * size) / (1.0 - 1.0 / ratio)) / math.pi


def left_below(line: Any, c: Any) -> Any:
    """Error of rules below the turn, as computed by the core from the sides of a line."""
    *_, errors, sides = line._low
    log, off = line.log_scale(c)
    grown = sum(np.exp(side.log_mean - side.tilt * c - log + off) for side in sides)
    return errors.left[:, None] * grown


def _ends(law: NestedLaw, s: complex) -> tuple[complex, complex]:
    """Terms of the least and the largest loss in a step's transform, without e^(s loss)."""
    shape = LaplaceShape(1 / Fraction(str(law.noise)), Fraction(str(law.p)))
    low = law.atoms[0][1] + transform(shape, s, of_top=False)
    return low, law.atoms[1][1] - transform(shape, s, of_top=True)


def _composed(laws: list[NestedLaw], s: Any, tilt: float, whole: Any) -> Any:
    """The transform without its atoms, over the mean at the tilt; losses start at the least."""
    found, atoms = np.ones((2, *s.shape), dtype=complex)
    for law in laws:
        ends = np.array([_ends(law, complex(x)) for x in s.ravel()]).reshape(*s.shape, 2)
        turn = np.exp((s - tilt) * law.length)
        scales = [
            math.exp(tilt * (law.low + x) - float(whole) / len(laws)) for x in (0, law.length)
        ]
        found *= scales[0] * ends[..., 0] + scales[1] * turn * ends[..., 1]
        atoms *= scales[0] * law.atoms[0][1] + scales[1] * turn * law.atoms[1][1]
    return found - atoms


def _terms(laws: list[NestedLaw], s: Any, tilt: float, whole: Any) -> Any:
    """The sum of the moduli of all terms without their atoms, over the mean at the tilt."""
    known = [np.array([_ends(law, complex(x)) for x in s]).T for law in laws]
    total = 0.0
    for tops in itertools.product((0, 1), repeat=len(laws)):
        log = sum(tilt * (law.low + top * law.length) for law, top in zip(laws, tops, strict=True))
        term = np.prod([ends[top] for ends, top in zip(known, tops, strict=True)], axis=0)
        atom = math.prod(law.atoms[top][1] for law, top in zip(laws, tops, strict=True))
        total = total + math.exp(log - float(whole)) * np.abs(term - atom)
    return total


def on_nodes() -> Judge:
    """Ask for the error of rules of one node for a step's transform."""
    cases = []
    for mu, rate in SHAPES:
        shape = LaplaceShape(mu, rate)
        law = NestedLaw(float(1 / mu), float(rate))
        for tilt in (-5.0, 0.5, 20.0):
            for turns in (0.0, 3.0, 30.0):
                frequency = turns / float(shape.length)
                edges = law.span * np.array([0.0, 0.2, 0.5, 1.0])
                most = worst_of_step(law, tilt, frequency, edges)
                cases.append((shape, tilt, frequency, edges, most))

    def judge(lines: Patched) -> Asked:
        size, outside = np.array([1]), 0
        for shape, tilt, frequency, edges, most in cases:
            found = lines.nodes.remainder(shape, tilt, 0.0, frequency, edges, size)
            outside += int(most > found[0])
        return Asked(len(cases), outside)

    return judge


def worst_of_step(law: NestedLaw, tilt: float, frequency: float, edges: Any) -> float:
    """Error of rules of one node for the worst function with the same bound on ellipses."""
    total = 0.0
    for first, last in itertools.pairwise(edges):
        half, middle, found = 0.5 * (last - first), 0.5 * (last + first), []
        for height in 0.5 * math.pi * np.linspace(0.05, 1.0, 20):
            across = math.hypot(height, half)
            v = middle + across * ROUND.real + 1j * height * ROUND.imag
            loss = law.low + np.log1p(law.rate * np.expm1(v))
            most = 0.0
            for turn in (frequency, -frequency):
                value = 0.25 * np.exp(-0.5 * v + (tilt + 1j * turn) * loss)
                most = max(most, float(np.abs(value).max()))
            found.append(math.pi * left_by_rules(half, (across + height) / half, 1) * most)
        total += min(found)
    return total


STEPS = (("1", "1", 300), ("0.5", "0.5", 200), ("2", "0.1", 2000), ("5", "1", 400))
COUNT = 3  # of lines on either side of the middle, and of thresholds on each


class PlainLines:
    """Judges lines that are not deformed, against the same lines without switches."""

    def __init__(self) -> None:
        self._cases = []
        for noise, p, number in STEPS:
            kinds = ((LaplaceShape(1 / Fraction(noise), Fraction(p)), number),)
            choice = package.choice_of(kinds)
            middle = int(np.searchsorted(choice.line, 0.5))
            for index in range(max(middle - COUNT, 0), min(middle + COUNT, choice.line.size)):
                line = package.line_at(kinds, index)
                if line is not None:
                    c = np.linspace(*package._window(choice, index), COUNT)
                    self._cases.append((kinds, index, c, line.at(c), line.log_scale(c)))

    def sums(self, lines: Patched) -> Asked:
        """Integrals, relative to e^(K(λ) - λ c)."""
        number = outside = 0
        for kinds, index, c, (truth, slack), _ in self._cases:
            line = lines.build.line_at(kinds, index)
            found, errors = line.at(c)
            off = np.abs(found - truth)
            outside += int((off > errors + slack).sum())
            number += off.size
        return Asked(number, outside)

    def scales(self, lines: Patched) -> Asked:
        """K(λ) - λ c."""
        number = outside = 0
        for kinds, index, c, _, (truth, slack) in self._cases:
            found, errors = lines.build.line_at(kinds, index).log_scale(c)
            outside += int((np.abs(found - truth) > errors + slack).sum())
            number += c.size
        return Asked(number, outside)


def judges() -> dict[str, Judge]:
    """Judges by name; truths are computed once."""
    lines, plain = Lines(), PlainLines()
    return {
        "ends": on_ends(64.0),
        "ways": on_ways(),
        "bounds": on_bounds(),
        "sums": lines.sums,
        "scales": lines.scales,
        "below": lines.below,
        "beyond": lines.beyond,
        "nodes": on_nodes(),
        "plain": plain.sums,
        "plain scales": plain.scales,
    }
