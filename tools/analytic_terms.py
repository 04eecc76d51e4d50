"""Error terms of analytic densities, each made to carry the error alone, then dropped.

For ``tools/audit_analytic.py --terms``.  A `Term` is a text of a function of the engine, beside
choices that are made coarse or operations that are made to err so that it matters; what is claimed
then is held against the integrals of ``audit_analytic.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any, NamedTuple

import numpy as np
from audit_analytic import (
    Claim,
    Pair,
    above,
    changed,
    flat_cells,
    flat_intervals,
    of_flat_part,
    of_mean,
    of_moduli,
    of_rule,
    of_shape,
    of_transform,
    truth_of,
)
from flint import arb, ctx

from pyengine.caches import clear_cache
from pyengine.engines.analytic_lines import cells, shape, step, strips
from pyengine.engines.analytic_lines.balls import at_point, evaluator_on_line
from pyengine.engines.analytic_lines.cells import LossCells
from pyengine.engines.analytic_lines.shape import AnalyticShape, Ellipses
from pyengine.engines.analytic_lines.step import AnalyticStep
from pyengine.engines.analytic_lines.strips import Strips
from pyengine.engines.vertical_lines import decay, line, tilted
from pyengine.engines.vertical_lines.line import LossLine, Side
from pyengine.engines.vertical_lines.mixed import MixedOrder
from pyengine.engines.vertical_lines.nodes import PanelRule, StepNodes
from pyengine.engines.vertical_lines.tilted import NodeStep

__all__ = ["TERMS", "Tally", "Term", "judged", "main_of_terms"]

LOUD = 1e-6  # a relative error that is put in
LOGISTIC = Pair("logistic", "0.5")
SHIFTED = Pair("normal", "0.7")
STRETCHED = Pair("normal", "0.3", "1.2")
STUDENT = Pair("student", "1")
SAMPLED = Pair("secant", "1", rate="0.2")
UNIFORM = Pair("uniform", "0")
SHORT = Pair("normal", "0.7", ends=(-1.0, 1.5))
Judge = Callable[[], Iterator[Claim]]


# ---- judges --------------------------------------------------------------------------------------


EVERY = [LOGISTIC, STRETCHED, STUDENT, SAMPLED]  # fewer serve where time is short
LEVEL = (UNIFORM,)  # one panel, on which a rule misses nearly what its bound says


def rules_of(
    pairs: Sequence[Pair], sizes: Sequence[int], frequencies: Sequence[float], parts: int = 1
) -> Judge:
    """What rules of so many nodes miss up to some frequencies."""

    def judge() -> Iterator[Claim]:
        for pair in pairs:
            made = pair.shape()
            for tilt in (-3.0, 0.5, 4.0):
                for n in sizes:
                    for t in frequencies:
                        yield of_rule(made, truth_of(pair, tilt), t, PanelRule(parts, n, 0.0))

    return judge


def beyond_ends_of(pairs: Sequence[Pair]) -> Judge:
    """Masses beyond the ends of laws."""

    def judge() -> Iterator[Claim]:
        for pair in pairs:
            claims = of_shape(pair.shape(), pair, np.zeros(0))
            yield from (claim for claim in claims if claim.kind.startswith("removed"))

    return judge


NEAR = (
    Pair("logistic", "0.5", ends=(-24.0, 25.0)),
    Pair("normal", "0.3", "1.1", ends=(-7.0, 8.0)),
    Pair("secant", "1", rate="0.2", ends=(-22.0, 23.0)),
)
NEARER = [
    Pair(family, "0.4", rate=rate, ends=(-far, far + 0.5))
    for family, rate, far in (
        ("logistic", "1", 6.0),
        ("normal", "1", 3.0),
        ("normal", "0.2", 2.5),
        ("secant", "0.2", 4.0),
    )
]


def losses_inside() -> Iterator[Claim]:
    """Losses at places between the ends."""
    for pair in EVERY:
        low, high = pair.interval
        inside = np.linspace(max(low, -8.0), min(high, 8.0), 161)
        claims = of_shape(pair.shape(), pair, np.append(inside, [low, high]))
        yield from (claim for claim in claims if claim.kind == "losses")


def log_means() -> Iterator[Claim]:
    """Bounds of log means."""
    for pair in (*EVERY, *LEVEL):
        made = pair.shape()
        for tilt in (-20.0, -6.0, -3.0, 0.5, 4.0, 8.0, 20.0):
            bound = made.log_mean_bound(tilt)
            yield above("bound of the log mean", bound, truth_of(pair, tilt).log_mean)


def steps_of(size: int, guess: float = 0.0) -> Iterator[tuple[AnalyticStep, Pair, float]]:
    """Steps at tilts whose rules are coarse, by a guess of the log mean that is off; how far up."""
    for pair in (*EVERY, *LEVEL):
        made = pair.shape()
        highest = 4.0 * size if pair in LEVEL else 3.0
        for tilt in (-3.0, 0.5, 4.0, 9.0, 16.0):
            mean = float(truth_of(pair, tilt).log_mean.mid()) + guess
            left = float(made.missed(tilt, mean, highest, 1, np.array([size]))[0])
            found = AnalyticStep(made, tilt, made.nodes(PanelRule(1, size, 0.0)), left, 10)
            assert step.reached(found, mean, highest)
            yield found, pair, highest


def light_panels() -> Iterator[Claim]:
    """Means and transforms without panels of a little mass."""
    for pair in EVERY:
        made = pair.shape()
        for tilt in (-3.0, 0.5, 4.0):
            truth = truth_of(pair, tilt)
            found = tilted.tilted_step(made, tilt, float(truth.log_mean.mid()), 3.0, 1e-2, 10)
            assert isinstance(found, AnalyticStep)
            yield of_mean(found, truth)
            yield from of_transform(found, truth, np.array([0.3, 1.2, 2.97]), None)


LOGS = ("log of the transform", "modulus where hardly known")


def coarse_transforms_of(size: int, guess: float = 0.0, *kinds: str) -> Judge:
    """Transforms of such steps, or what else is named."""

    def judge() -> Iterator[Claim]:
        for found, pair, highest in steps_of(size, guess):
            truth = truth_of(pair, found.tilt)
            claims = [of_mean(found, truth)]
            if "log mean" not in kinds:
                claims += of_transform(found, truth, highest * np.array([0.1, 0.4, 0.99]), None)
            yield from (claim for claim in claims if claim.kind in (kinds or ("transform",)))

    return judge


def coarse_bounds() -> Iterator[Claim]:
    """Bounds of log means at other tilts, by coarse rules."""
    for found, pair, _ in steps_of(4):
        for other in (-8.0, 2.0, 11.0):
            truth = truth_of(pair, other)
            yield above("bound at another tilt", found.bound_at(other), truth.log_mean)


def erring_of(kind: str, put: Callable[[StepNodes], StepNodes]) -> Judge:
    """Transforms, or log means, of steps whose nodes err by what is said of them."""

    def judge() -> Iterator[Claim]:
        for pair in EVERY:
            made = pair.shape()
            for tilt in (0.02, 6.0):
                nodes = put(made.nodes(PanelRule(2, 40, 0.0)))
                found = AnalyticStep(made, tilt, nodes, 1e-17, 10)
                truth = truth_of(pair, tilt)
                claims = [of_mean(found, truth)]
                claims += of_transform(found, truth, np.array([0.3, 1.0, 2.9]), None)
                yield from (claim for claim in claims if claim.kind == kind)

    return judge


def _turned(nodes: StepNodes) -> StepNodes:
    """More mass where losses are above their middle one, less below."""
    side = np.sign(nodes.loss - np.average(nodes.loss.astype(float), weights=nodes.mass))
    return nodes._replace(mass=nodes.mass * (1 + LOUD * side), mass_error=LOUD)


def _heavier(nodes: StepNodes) -> StepNodes:
    """More mass everywhere."""
    return nodes._replace(mass=nodes.mass * (1 + LOUD), mass_error=LOUD)


def _apart(nodes: StepNodes) -> StepNodes:
    """Losses further from their middle one."""
    side = np.sign(nodes.loss - np.average(nodes.loss.astype(float), weights=nodes.mass))
    return nodes._replace(loss=nodes.loss + LOUD * side, loss_error=LOUD)


def _higher(nodes: StepNodes) -> StepNodes:
    """All losses larger."""
    return nodes._replace(loss=nodes.loss + LOUD, loss_error=LOUD)


def decays_of(
    kind: str,
    cases: Sequence[tuple[Pair, float]],
    times: Sequence[float],
    steps: int = 4,
    doubt: float = 0.0,
) -> Judge:
    """Bounds of transforms far out, at multiples of one over the deviation of the loss."""

    def judge() -> Iterator[Claim]:
        for pair, tilt in cases:
            made, truth = pair.shape(), truth_of(pair, tilt)
            spread = math.sqrt(float(made.cumulants(np.array([tilt]))[2][0]))
            for off in (-doubt, doubt) if doubt else (0.0,):
                with flat_cells() as noted:
                    log_mean = float(truth.log_mean.mid()) + off
                    found = made.decay(tilt, log_mean, 1.0001 * doubt + 1e-14, steps)
                flat = flat_intervals(made, noted[-1], shape.CELLS)
                for t in (x / spread for x in times):
                    claims = []
                    if kind.startswith("modulus"):
                        claims = of_moduli(found, truth, t, (1.1, 1.3))
                    elif flat or kind.startswith("beside"):
                        claims = of_flat_part(found, truth, t, flat)
                    yield from (claim for claim in claims if claim.kind == kind)

    return judge


# near enough ends that what lies beyond them matters in rows
CUT = Pair("normal", "0.3", ends=(-6.4, 6.6))
STEPS = 30


def rows() -> Iterator[Claim]:
    """Masses and profiles of many steps against the normal law without ends."""
    size = 0.3 * math.sqrt(STEPS)
    found = MixedOrder(((CUT.shape(), STEPS),), False)
    losses = np.linspace(-4.0, 4.0, 33) * size
    with ctx.workprec(120):

        def upper_tail(x: Any) -> Any:
            return (x / arb(2).sqrt()).erfc() / 2

        width = arb("0.3") * arb(STEPS).sqrt()
        for law, part in zip((-1, 1), found._masses(losses, (0, 1)), strict=True):
            for c, high, low, off_high, off_low in zip(losses.tolist(), *part, strict=True):
                x = (c - law * width * width / 2) / width
                yield Claim("mass", float(abs(upper_tail(x) - high).abs_lower()), float(off_high))
                yield Claim("mass", float(abs(upper_tail(-x) - low).abs_lower()), float(off_low))
        epsilon = np.linspace(0.1, 4.0, 20)
        for each, value, off in zip(epsilon.tolist(), *found.profile(epsilon), strict=True):
            first, second = (
                upper_tail(each / width - width / 2),
                upper_tail(each / width + width / 2),
            )
            truth = first - arb(each).exp() * second
            yield Claim("profile", float(abs(truth - value).abs_lower()), float(off))


def line_of(
    made: AnalyticShape, tilt: float, steps: int, period: float, highest: float
) -> LossLine:
    """A line with its nodes so far apart and up to so high."""
    mean = float(made.cumulants(np.array([tilt]))[0][0])
    one = tilted.tilted_step(made, tilt, mean, 1.01 * highest, 1e-17, steps)
    assert one is not None
    spacing = float(np.float32(2.0 * math.pi / period))
    sides = tuple(Side(x, steps * one.bound_at(x)) for x in (tilt - 5.0, tilt + 5.0))
    return LossLine([(one, steps)], tilt, spacing, int(highest / spacing) + 1, (sides[0], sides[1]))


def lines_of(
    pair: Pair, tilt: float, steps: int, period: float, highest: float, far: float
) -> Judge:
    """Sums of a line whose nodes are few against those of one with many, at the same tilt."""

    def judge() -> Iterator[Claim]:
        made = pair.shape()
        spread = math.sqrt(steps * float(made.cumulants(np.array([tilt]))[2][0]))
        coarse = line_of(made, tilt, steps, period * spread, highest / spread)
        fine = line_of(pair.shape(), tilt, steps, 60.0 * spread, far / spread)
        c = float(coarse._centre) + spread * np.linspace(-0.5, 0.5, 21)
        both = [(each.sums(c, slice(0, 3)), each.errors(c, slice(0, 3))) for each in (coarse, fine)]
        (first, off), (second, rest) = both
        for error, bound in zip(abs(first - second).ravel(), (off + rest).ravel(), strict=True):
            yield Claim("sums of a line", float(error), float(bound))

    return judge


# ---- terms ---------------------------------------------------------------------------------------


class Term(NamedTuple):
    """A text of a function, what stands in its place with a factor, and what makes it matter.

    Parameters
    ----------
    name : str
        What the term is.
    owner, method : object, str
        Where its text is.
    text, part : str
        The text, and that with ``{f}`` for the factor.
    judge : callable
        Yields what is claimed.
    coarse : tuple of (module, str, object)
        Constants that are set.
    puts : tuple of (owner, str, str, str)
        Texts that are changed so that an operation errs.
    """

    name: str
    owner: Any
    method: str
    text: str
    part: str
    judge: Judge
    coarse: tuple[tuple[Any, str, Any], ...] = ()
    puts: tuple[tuple[Any, str, str, str], ...] = ()


class Tally(NamedTuple):
    """How many claims there were, and how many were outside."""

    asked: int
    outside: int


def _times(before: str, text: str) -> tuple[str, str]:
    """A text behind another one, and a part of it there."""
    return before + text, before + "{f} * (" + text + ")"


WIDE = ((shape, "LEAST", -4.0), (shape, "PROBED", 8), (shape, "SIZES", np.array([12, 40, 80])))
LARGE = ((cells, "LIGHT", 1e-3),)
SHRUNK = (
    "middle, edges = 0.5 * (low + high), self.program; "
    "raise_ = sides(self); "
    "return raise_[0] - {f} * (raise_[0] - float(low)), raise_[1] + {f} * (float(high) - raise_[1])"
)
LINEAR = ((SHIFTED, 0.5), (SHIFTED, 2.0), (Pair("normal", "0.2"), -1.0))
SMOOTH = (*LINEAR, (STRETCHED, 0.5))
TURNED = (
    (Pair("normal", "0", "1.5", ends=(-1.0, 1.0)), 0.5),
    (STRETCHED, 0.5),
    (Pair("normal", "0.05", "1.25"), 1.5),
    (STUDENT, 0.5),
)
ABRUPT = ((UNIFORM, 0.001), (UNIFORM, -0.3), (SHORT, 0.5))
LATE = (4.0, 9.0, 17.0, 33.0)
DECAY = LossCells, "decay"
CORPUT = "CORPUT / np.sqrt(bend) * (most + mass * (self.fall + abs(tilt) * steepest))"
HEAVIER = "mass = half * weight * log_p.exp()"
TERMS = (
    Term("rules: the remainder", Ellipses, "missed",
         *_times("bounded = ", "np.exp(np.clip(found, LEAST_LOG, MOST_LOG))"),
         rules_of(LEVEL, (3, 4, 6), (8.0, 12.0, 16.0, 24.0))),
    Term("rules: the remainder of parts", Ellipses, "missed",
         *_times("bounded = ", "np.exp(np.clip(found, LEAST_LOG, MOST_LOG))"),
         rules_of(LEVEL, (3, 4), (12.0, 24.0, 32.0), 2)),
    Term("rules: turns on ellipses", Ellipses, "log_missed",
         *_times("most = most + ", "frequency * self.turn"),
         rules_of((STRETCHED,), (16, 20), (30.0, 60.0, 120.0))),
    Term("rules: roundings of exponents", Ellipses, "log_missed",
         *_times("most = most + ", "4.0 * UNIT * (off + abs(log_mean))"),
         rules_of(LEVEL, (3, 4, 6), (8.0, 12.0, 16.0, 24.0)), ((shape, "UNIT", 0.25),),
         ((Ellipses, "log_missed", "most = np.where(np.isnan", "most = most - 0.9 * (off + "
           "abs(log_mean)); most = np.where(np.isnan"),)),
    Term("rules: panels of next to no mass", AnalyticShape, "rule_at",
         *_times("left = ellipses.missed(tilt, log_mean, frequency, SIZES)[counts].sum(axis=0) + ",
                 "dropped"), light_panels),
    Term("rules: radii of masses", AnalyticShape, "_made",
         *_times("4.0 * EXTENDED + ", "2.0 * mass_error"), rules_of((SHIFTED,), (40,), (0.3,)), (),
         ((AnalyticShape, "_at_nodes", HEAVIER, f"{HEAVIER} * (1 + arb(0, 4e-13)); "
           "mass = mass + mass.rad()"),)),
    Term("rules: radii of losses", AnalyticShape, "_made",
         "loss_error += EXTENDED * largest", "loss_error = {f} * loss_error + EXTENDED * largest",
         rules_of((SHIFTED,), (40,), (0.3,)), (),
         ((AnalyticShape, "_at_nodes", HEAVIER, f"{HEAVIER}; loss = loss + arb(0, 4e-13); "
           "loss = loss + loss.rad()"),)),
    Term("masses beyond the ends", AnalyticShape, "removed",
         "return max(upper(1 - of_a), 0.0), max(upper(1 - of_b), 0.0)",
         "return {f} * max(upper(1 - of_a), 0.0), {f} * max(upper(1 - of_b), 0.0)",
         beyond_ends_of(NEAR)),
    Term("masses beyond the ends: the remainder", AnalyticShape, "removed",
         *_times("found[law] += ", "arb(0, 1) * arb(log_of).exp() * SLACK"), beyond_ends_of(NEARER),
         (*WIDE[:2], (shape, "MANY_SIZES", np.array([9])), (shape, "LACKING", 1.0))),
    Term("masses beyond the ends, of rows", LossLine, "__init__",
         *_times("sum(", "n * step.removed[law]"), rows, ((shape, "LACKING", 1e-3),)),
    Term("masses beyond the ends, of poles", line, "_mass_at_ends",
         *_times("lacking += ", "number * step.removed[int(pole)]"),
         lines_of(Pair("normal", "0.3", ends=(-4.0, 4.3)), 0.3, 30, 7.0, 9.0, 9.0),
         ((shape, "LACKING", 1e-3),)),
    Term("losses: beside those at edges", AnalyticShape, "losses",
         "return float(low), float(high)", SHRUNK, losses_inside, WIDE),
    Term("log mean: the remainder", AnalyticShape, "log_mean_bound",
         *_times("found + ", "math.log1p(left)"), log_means, (*WIDE[:1], (shape, "PROBED", 4))),
    Term("log mean: roundings", AnalyticShape, "log_mean_bound",
         *_times("math.log1p(left) + ", "rounded"), log_means, (),
         ((AnalyticShape, "log_mean_bound", "exponent = weight + tilt * loss",
           "exponent = weight + tilt * loss; "
           "exponent = exponent - 9e-10 * (np.abs(weight).max() + np.abs(tilt * loss).max())"),)),
    Term("log mean at another tilt: the remainder", AnalyticStep, "bound_at",
         *_times("log.most + ",
                 "float(np.log1p(rule.left * math.exp(min(guess - log.about, 600.0))))"),
         coarse_bounds, (*WIDE[:2], (shape, "SIZES", np.array([4])), (step, "LEFT_AT_SIDES", 8.0))),
    Term("transform: the remainder", NodeStep, "transform",
         *_times("frequency * known + ", "2.0 * self.left"), coarse_transforms_of(4)),
    Term("transform: the remainder, of its log", NodeStep, "transform",
         *_times("frequency * known + ", "2.0 * self.left"),
         coarse_transforms_of(4, 0.0, *LOGS)),
    Term("transform: guess of the log mean", step, "reached",
         "max(1.0, float(np.exp(log_mean - float(step.log_mean))))",
         "max(1.0, {f} * float(np.exp(log_mean - float(step.log_mean))))",
         coarse_transforms_of(4, 30.0)),
    Term("transform: masses of nodes", NodeStep, "transform",
         *_times("UNIT + ", "self.share_error"), erring_of("transform", _turned)),
    Term("transform: losses of nodes", NodeStep, "transform",
         *_times("self._of_moments + ", "2.0 * self.nodes.loss_error"),
         erring_of("transform", _apart)),
    Term("log mean of nodes: the remainder", NodeStep, "log_error",
         *_times("self.share_error + ", "self.left"), coarse_transforms_of(4, 0.0, "log mean")),
    Term("log mean of nodes: masses", NodeStep, "log_error",
         *_times("1.01 * (", "self.share_error"), erring_of("log mean", _heavier)),
    Term("log mean of nodes: losses", NodeStep, "__init__",
         *_times("of_masses\n        + ", "2.0 * abs(tilt) * nodes.loss_error"),
         erring_of("log mean", _higher)),
    Term("decay: by parts on cells", *DECAY,
         *_times("by_parts = ", "mass * ((self.fall + bent / slope) / slope + abs(tilt))"),
         decays_of("beside the flat part", SMOOTH, (0.5, 1.0, 1.5, 2.0))),
    Term("decay: falls of densities", *DECAY, *_times("mass * ((", "self.fall"),
         decays_of("beside the flat part", LINEAR, (0.5, 1.0, 1.5, 2.0))),
    Term("decay: ends of runs", *DECAY,
         *_times("variation += ", "float(ends_of[starts].sum() + ends_of[stops].sum())"),
         decays_of("beside the flat part", ABRUPT, LATE)),
    Term("decay: where the loss turns", *DECAY, *_times("turning = ", CORPUT),
         decays_of("beside the flat part", TURNED[:1], (100.0, 200.0, 300.0))),
    Term("decay: flat mass", *DECAY,
         *_times("flat = ", "float(mass[is_flat].sum())"),
         decays_of("flat part, tilted", SMOOTH, (1.0,)), LARGE),
    Term("decay: flat mass of A", *DECAY,
         *_times("masses = ", "float(of_a[is_flat].sum())"),
         decays_of("flat part of A", SMOOTH, (1.0,)), LARGE),
    Term("decay: flat mass of B", *DECAY,
         *_times("* SLACK, ", "float(of_b[is_flat].sum())"),
         decays_of("flat part of B", SMOOTH, (1.0,)), LARGE),
    Term("decay: doubt of the log mean, above", *DECAY,
         *_times("np.maximum(*ends) - log_mean + ", "off"),
         decays_of("flat part, tilted", SMOOTH, (1.0,), doubt=0.8),
         (*LARGE, (shape, "CELLS", 16))),
    Term("decay: doubt of the log mean, below", *DECAY,
         *_times("np.minimum(*ends) - log_mean - ", "off"),
         decays_of("modulus by uniform", SMOOTH, (1.0, 2.0, 3.0), doubt=0.2),
         ((shape, "CELLS", 16),)),
    Term("decay: roundings of exponents", *DECAY,
         "off = doubt + 4.0 * UNIT * (", "off = doubt + {f} * 4.0 * UNIT * (",
         decays_of("flat part, tilted", SMOOTH, (1.0,)),
         (*LARGE, (cells, "UNIT", 0.05), (shape, "CELLS", 16)),
         ((*DECAY, "np.maximum(*ends) - log_mean", "np.maximum(*ends) - 0.18 * (largest + "
           "np.maximum(np.abs(ends[0]), np.abs(ends[1])) + abs(log_mean)) - log_mean"),)),
    Term("decay: errors of losses at edges", cells, "_layers",
         *_times("(abs(place) + abs(begin)) + ", "2.0 * off"),
         decays_of("modulus by uniform", LINEAR, (0.5, 1.0, 2.0)), (),
         ((LossCells, "of", "points = [at_point(on, arb(x))[1] for x in edges]",
           "points = [at_point(on, arb(x))[1] for x in edges]; "
           "middle = points[len(points) // 2].mid(); "
           "points = [x + arb(0, 0.2) for x in points]; "
           "points = [x + (x.rad() if x > middle else -x.rad()) for x in points]"),)),
    Term("decay: least densities of cells", *DECAY,
         "np.where(rises, least / steepest, 0.0)",
         "np.where(rises, least / steepest + (1.0 - {f}) * (most / slope - least / steepest), 0.0)",
         decays_of("modulus by uniform", ((Pair("secant", "1.2"), 2.0),), (2.0,)),
         ((shape, "CELLS", 2), *WIDE[:2])),
    Term("decay: lobes of uniform laws", decay.Decay, "largest",
         *_times("inner, np.minimum(", "LOBE"),
         decays_of("modulus by uniform", ABRUPT[:2], (2.3, 2.6, 2.9))),
    Term("strips: beside the real line", Strips, "at",
         *_times("weight = ", "(size * width)[first:last]"),
         decays_of("modulus by strip", LINEAR, (0.5, 1.0, 2.0, 3.0))),
    Term("strips: roundings of exponents", strips, "_size",
         *_times("np.exp(exponent + ", "off"),
         decays_of("modulus by strip", LINEAR, (0.5, 1.0, 2.0, 3.0)), ((strips, "UNIT", 0.25),),
         ((strips, "_size", "exponent = log_density", "exponent = -0.9 * (np.abs(log_density) + "
           "largest + abs(log_mean)) + log_density"),)),
    Term("strips: where the integral stays", Strips, "at",
         *_times("beside = ", "float(real[:first].sum() + real[last:].sum())"),
         decays_of("modulus by strip", TURNED[1:], (17.0,))),
    Term("strips: ways up and down", Strips, "at",
         *_times("up_down = ", "height * float(ways[[first, last - 1]].sum())"),
         decays_of("modulus by strip", ABRUPT, (*LATE, 65.0, 129.0))),
    Term("lines: beyond the last node", LossLine, "_weights",
         *_times("beyond_all = ", "rest * np.array([1.0, 1.0, 1.0 / both])"),
         lines_of(UNIFORM, 1.5, 3, 12.0, 20.0, 300.0)),
)  # fmt: skip


def sides(made: AnalyticShape) -> tuple[float, float]:
    """The least and the largest loss at edges of panels."""
    with ctx.workprec(100):
        on = evaluator_on_line(made.program)
        found = [float(at_point(on, arb(x))[1].mid()) for x in made.panels.tolist()]
    return min(found), max(found)


@contextmanager
def arranged(term: Term, factor: str | None) -> Iterator[None]:
    """The engine with a term's coarse choices, and with a part of the term.

    Choices come first: functions that are compiled again take what is known then.
    """
    kept = [(module, name, getattr(module, name)) for module, name, _ in term.coarse]
    try:
        for module, name, value in term.coarse:
            setattr(module, name, value)
        with ExitStack() as stack:
            for owner, name, old, new in term.puts:
                stack.enter_context(changed(owner, name, [(old, new)]))
            if factor is not None:
                new = term.part.replace("{f}", factor)
                changes = [(term.text, new)]
                stack.enter_context(changed(term.owner, term.method, changes, sides=sides))
            clear_cache()
            yield
    finally:
        for module, name, value in kept:
            setattr(module, name, value)
        clear_cache()


def judged(term: Term, factor: str | None) -> Tally:
    """What was asked, and what was outside; with the whole term where no factor is given."""
    with arranged(term, factor):
        claims = [claim for claim in term.judge() if not math.isnan(claim.error)]
    return Tally(len(claims), sum(claim.is_outside for claim in claims))


def main_of_terms(only: str) -> int:
    """Print the table; 1 where something is outside with its term, or nothing without it."""
    failed = 0
    print("| term | asked | outside with it | dropped | a hundredth of it |")
    print("|---|---|---|---|---|")
    for term in TERMS:
        if only not in term.name:
            continue
        found = [judged(term, factor) for factor in (None, "0.0", "0.01")]
        failed += found[0].outside > 0 or not found[1].outside
        outside = " | ".join(str(each.outside) for each in found)
        asked = max(each.asked for each in found)
        print(f"| {term.name} | {asked} | {outside} |", flush=True)
    return int(failed > 0)
