"""Error terms of analytic densities, each tested where it alone covers the error.

Claims are compared with the integrals of ``audit_analytic.py``.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
from audit_analytic import (
    NOTED,
    PACKAGES,
    Pair,
    above,
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
from error_terms import Asked, Claim, Patched, Term, operation, patched, times
from flint import arb, ctx

from pyengine.engines.analytic_lines.balls import evaluator_at_points
from pyengine.engines.analytic_lines.shape import AnalyticShape
from pyengine.engines.analytic_lines.step import AnalyticStep
from pyengine.engines.vertical_lines.line import LossLine, Side
from pyengine.engines.vertical_lines.nodes import PanelRule, StepNodes
from pyengine.engines.vertical_lines.order import LineOrder
from pyengine.engines.vertical_lines.shapes import At
from pyengine.numerics.wide import Wide

__all__ = ["TERMS", "judged", "switched"]

LOUD = 1e-6  # a relative error that is put in
LOGISTIC = Pair("logistic", "0.5")
SHIFTED = Pair("normal", "0.7")
STRETCHED = Pair("normal", "0.3", "1.2")
STUDENT = Pair("student", "1")
SAMPLED = Pair("secant", "1", rate="0.2")
UNIFORM = Pair("uniform", "0")
SHORT = Pair("normal", "0.7", ends=(-1.0, 1.5))
Judge = Callable[[Patched], Iterator[Claim]]


# ---- judges --------------------------------------------------------------------------------------


EVERY = [LOGISTIC, STRETCHED, STUDENT, SAMPLED]  # fewer serve where time is short
LEVEL = (UNIFORM,)  # one panel, on which a rule misses nearly what its bound says


def rules_of(
    pairs: Sequence[Pair], sizes: Sequence[int], frequencies: Sequence[float], parts: int = 1
) -> Judge:
    """Errors of rules with a given number of nodes, up to some frequencies."""

    def judge(_: Patched) -> Iterator[Claim]:
        for pair in pairs:
            made = pair.shape()
            for tilt in (-3.0, 0.5, 4.0):
                for n in sizes:
                    for t in frequencies:
                        yield of_rule(made, truth_of(pair, tilt), t, PanelRule(parts, n, 0.0))

    return judge


def beyond_ends_of(pairs: Sequence[Pair]) -> Judge:
    """Masses beyond the ends of laws."""

    def judge(_: Patched) -> Iterator[Claim]:
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


def losses_inside(_: Patched) -> Iterator[Claim]:
    """Losses at places between the ends."""
    for pair in EVERY:
        low, high = pair.interval
        inside = np.linspace(max(low, -8.0), min(high, 8.0), 161)
        claims = of_shape(pair.shape(), pair, np.append(inside, [low, high]))
        yield from (claim for claim in claims if claim.kind == "losses")


def log_means(_: Patched) -> Iterator[Claim]:
    """Bounds of log means."""
    for pair in (*EVERY, *LEVEL):
        made = pair.shape()
        for tilt in (-20.0, -6.0, -3.0, 0.5, 4.0, 8.0, 20.0):
            bound = made.log_mean_bound(tilt)
            yield above("bound of the log mean", bound, truth_of(pair, tilt).log_mean)


def steps_of(size: int, guess: float = 0.0) -> Iterator[tuple[AnalyticStep, Pair, float]]:
    """Steps at tilts with coarse rules, by a wrong guess of the log mean; and how far up."""
    for pair in (*EVERY, *LEVEL):
        made = pair.shape()
        highest = 4.0 * size if pair in LEVEL else 3.0
        for tilt in (-3.0, 0.5, 4.0, 9.0, 16.0):
            mean = float(truth_of(pair, tilt).log_mean.mid()) + guess
            left = float(made.missed(tilt, mean, highest, 1, np.array([size]))[0])
            found = AnalyticStep(made, tilt, made.nodes(PanelRule(1, size, 0.0)), left, 10)
            assert found.reaching(mean, highest)
            yield found, pair, highest


def light_panels(_: Patched) -> Iterator[Claim]:
    """Means and transforms without panels of small mass."""
    for pair in EVERY:
        made = pair.shape()
        for tilt in (-3.0, 0.5, 4.0):
            truth = truth_of(pair, tilt)
            found = made.tilted(At(tilt, float(truth.log_mean.mid()), 10), 3.0, 1e-2, 0.0)
            assert isinstance(found, AnalyticStep)
            yield of_mean(found, truth)
            yield from of_transform(found, truth, np.array([0.3, 1.2, 2.97]), None)


LOGS = ("log of the transform", "modulus where hardly known")


def coarse_transforms_of(size: int, guess: float = 0.0, *kinds: str) -> Judge:
    """Transforms of such steps, or another named quantity."""

    def judge(_: Patched) -> Iterator[Claim]:
        for found, pair, highest in steps_of(size, guess):
            truth = truth_of(pair, found.tilt)
            claims = [of_mean(found, truth)]
            if "log mean" not in kinds:
                claims += of_transform(found, truth, highest * np.array([0.1, 0.4, 0.99]), None)
            yield from (claim for claim in claims if claim.kind in (kinds or ("transform",)))

    return judge


def coarse_bounds(_: Patched) -> Iterator[Claim]:
    """Bounds of log means at other tilts, by coarse rules."""
    for found, pair, _ in steps_of(4):
        for other in (-8.0, 2.0, 11.0):
            truth = truth_of(pair, other)
            yield above("bound at another tilt", found.bound_at(other), truth.log_mean)


def erring_of(kind: str, put: Callable[[StepNodes], StepNodes]) -> Judge:
    """Transforms, or log means, of steps whose nodes have the largest error that they claim."""

    def judge(_: Patched) -> Iterator[Claim]:
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
    """More mass where losses are above the middle loss, less below."""
    mass = np.ldexp(nodes.mass[0], nodes.power.astype(np.intp))
    side = np.sign(nodes.loss[0] - np.average(nodes.loss[0], weights=mass))
    return nodes._replace(mass=nodes.mass * (1.0 + LOUD * side), mass_error=LOUD)


def _heavier(nodes: StepNodes) -> StepNodes:
    """More mass everywhere."""
    return nodes._replace(mass=nodes.mass * (1 + LOUD), mass_error=LOUD)


def _apart(nodes: StepNodes) -> StepNodes:
    """Losses moved away from the middle loss."""
    mass = np.ldexp(nodes.mass[0], nodes.power.astype(np.intp))
    side = np.sign(nodes.loss[0] - np.average(nodes.loss[0], weights=mass))
    return nodes._replace(loss=(Wide(*nodes.loss) + LOUD * side).parts, loss_error=LOUD)


def _higher(nodes: StepNodes) -> StepNodes:
    """All losses larger."""
    return nodes._replace(loss=(Wide(*nodes.loss) + LOUD).parts, loss_error=LOUD)


def decays_of(
    kind: str,
    cases: Sequence[tuple[Pair, float]],
    times: Sequence[float],
    steps: int = 4,
    doubt: float = 0.0,
) -> Judge:
    """Bounds of transforms far out, at multiples of one over the deviation of the loss."""

    def judge(engine: Patched) -> Iterator[Claim]:
        for pair, tilt in cases:
            made, truth = pair.shape(), truth_of(pair, tilt)
            spread = math.sqrt(float(made.cumulants(np.array([tilt]))[2][0]))
            for off in (-doubt, doubt) if doubt else (0.0,):
                with flat_cells(engine) as noted:
                    log_mean = float(truth.log_mean.mid()) + off
                    found = made.decay(tilt, log_mean, 1.0001 * doubt + 1e-14, steps)
                flat = flat_intervals(made, noted[-1], engine.shape.CELLS)
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


def rows(_: Patched) -> Iterator[Claim]:
    """Masses and profiles of many steps against the normal law without ends."""
    size = 0.3 * math.sqrt(STEPS)
    found = LineOrder(((CUT.shape(), STEPS),), False)
    losses = np.linspace(-4.0, 4.0, 33) * size
    with ctx.workprec(120):

        def upper_tail(x: Any) -> Any:
            return (x / arb(2).sqrt()).erfc() / 2

        width = arb("0.3") * arb(STEPS).sqrt()
        tails = [(law, side) for law in (-1, 1) for side in (1, -1)]  # A's and B's, above and below
        for (law, side), (mass, off) in zip(tails, found.masses(losses), strict=True):
            for c, value, error in zip(losses.tolist(), mass, off, strict=True):
                x = (c - law * width * width / 2) / width
                apart = abs(upper_tail(side * x) - value)
                yield Claim("mass", float(apart.abs_lower()), float(error))
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
    """A line with a given spacing and height of its nodes."""
    mean = float(made.cumulants(np.array([tilt]))[0][0])
    one = made.tilted(At(tilt, mean, steps), 1.01 * highest, 1e-17, 0.0)
    assert one is not None
    spacing = float(np.float32(2.0 * math.pi / period))
    sides = tuple(Side(x, steps * one.bound_at(x)) for x in (tilt - 5.0, tilt + 5.0))
    return LossLine([(one, steps)], tilt, spacing, int(highest / spacing) + 1, (sides[0], sides[1]))


def lines_of(
    pair: Pair, tilt: float, steps: int, period: float, highest: float, far: float
) -> Judge:
    """Sums of a line with few nodes against those of a line with many, at the same tilt."""

    def judge(_: Patched) -> Iterator[Claim]:
        made = pair.shape()
        spread = math.sqrt(steps * float(made.cumulants(np.array([tilt]))[2][0]))
        coarse = line_of(made, tilt, steps, period * spread, highest / spread)
        fine = line_of(pair.shape(), tilt, steps, 60.0 * spread, far / spread)
        c = float(coarse._centre) + spread * np.linspace(-0.5, 0.5, 21)
        both = [each.at(c) for each in (coarse, fine)]
        (first, off), (second, rest) = both
        for error, bound in zip(abs(first - second).ravel(), (off + rest).ravel(), strict=True):
            yield Claim("sums of a line", float(error), float(bound))

    return judge


# ---- terms ---------------------------------------------------------------------------------------


LOW = {"shape.LEAST": -4.0}
WIDER = {**LOW, "shape.PROBED": 8}
WIDE = {**WIDER, "shape.SIZES": np.array([12, 40, 80])}
LARGE = {"cells.LIGHT": 1e-3}
SHRUNK = (
    "return (float(low), float(high)) if {x} == 1.0 else tuple("
    "side - {x} * (side - float(end)) for side, end in zip(_sides(self), (low, high)))"
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
CORPUT = "CORPUT / np.sqrt(bend) * (most + mass * (self.fall + abs(tilt) * steepest))"
HEAVIER = "mass = half * weight * log_p.exp()"
SHAPE, STEP, CELLS, STRIPS = "shape.py", "step.py", "cells.py", "strips.py"
LINE, TILTED, DECAY = "line.py", "tilted.py", "decay.py"
SWITCHES = (
    operation("rules: roundings of exponents",
              (SHAPE, "(off + abs(log_mean)) - log_mean\n", "(off + abs(log_mean)) - log_mean "
               "- (0.9 * (off + abs(log_mean)) if {x} else 0.0)\n")),
    operation("rules: radii of masses",
              (SHAPE, HEAVIER, HEAVIER + "\n                "
               "mass = mass * (1 + arb(0, 4e-13)) if {x} else mass\n                "
               "mass = mass + mass.rad() if {x} else mass")),
    operation("rules: radii of losses",
              (SHAPE, HEAVIER, HEAVIER + "\n                "
               "loss = loss + arb(0, 4e-13) if {x} else loss\n                "
               "loss = loss + loss.rad() if {x} else loss")),
    operation("log mean: roundings",
              (SHAPE, "exponent = weight + tilt * loss",
         "exponent = weight + tilt * loss - (9e-10 * "
               "(np.abs(weight).max() + np.abs(tilt * loss).max()) if {x} else 0.0)")),
    operation("decay: roundings of exponents",
              (CELLS, "np.maximum(*ends) - log_mean", "np.maximum(*ends) - (0.18 * (largest + "
               "np.maximum(np.abs(ends[0]), np.abs(ends[1])) + abs(log_mean)) if {x} else 0.0) "
               "- log_mean")),
    operation("decay: errors of losses at edges",
              (CELLS, "[at(arb(x))[1] for x in edges]",
               "_moved([at(arb(x))[1] for x in edges], {x})")),
    operation("strips: roundings of exponents",
              (STRIPS, "exponent = log_density",
         "exponent = (-0.9 * (np.abs(log_density) + largest + "
               "abs(log_mean)) if {x} else 0.0) + log_density")),
)  # fmt: skip
TERMS = (
    times("rules: the remainder", SHAPE, "bounded = ",
         "fn.exp(np.clip(found, LEAST_LOG, MOST_LOG))",
         rules_of(LEVEL, (3, 4, 6), (8.0, 12.0, 16.0, 24.0))),
    times("rules: the remainder of parts", SHAPE, "bounded = ",
         "fn.exp(np.clip(found, LEAST_LOG, MOST_LOG))",
         rules_of(LEVEL, (3, 4), (12.0, 24.0, 32.0), 2)),
    times("rules: turns on ellipses", SHAPE, "most = most + ", "frequency * self.turn",
         rules_of((STRETCHED,), (16, 20), (30.0, 60.0, 120.0))),
    times("rules: roundings of exponents", SHAPE, "most = most + ",
         "4.0 * UNIT * (off + abs(log_mean))",
         rules_of(LEVEL, (3, 4, 6), (8.0, 12.0, 16.0, 24.0)),
         {"shape.UNIT": 0.25, "rules: roundings of exponents": 1.0}),
    times("rules: panels of next to no mass", SHAPE, "[kept].sum(axis=0) + ", "dropped",
         light_panels),
    times("rules: radii of masses", SHAPE, "4.0 * EXTENDED + ", "2.0 * mass_error",
         rules_of((SHIFTED,), (40,), (0.3,)), {"rules: radii of masses": 1.0}),
    Term("rules: radii of losses", rules_of((SHIFTED,), (40,), (0.3,)),
         ((SHAPE, "loss_error += EXTENDED * largest",
           "loss_error = {x} * loss_error + EXTENDED * largest"),),
         {"rules: radii of losses": 1.0}),
    Term("masses beyond the ends", beyond_ends_of(NEAR),
         ((SHAPE, "return max(upper(1 - of_a), 0.0), max(upper(1 - of_b), 0.0)",
           "return {x} * max(upper(1 - of_a), 0.0), {x} * max(upper(1 - of_b), 0.0)"),)),
    times("masses beyond the ends: the remainder", SHAPE, "beyond[law] += ",
         "arb(0, 1) * arb(log_of).exp() * SLACK",
         beyond_ends_of(NEARER),
         {**WIDER, "shape.MANY_SIZES": np.array([9]), "shape.LACKING": 1.0}),
    times("masses beyond the ends, of rows", LINE, "sum(", "n * step.removed[law]", rows,
         {"shape.LACKING": 1e-3}),
    times("masses beyond the ends, of poles", LINE, "lacking += ",
         "number * step.removed[int(pole)]",
         lines_of(Pair("normal", "0.3", ends=(-4.0, 4.3)), 0.3, 30, 7.0, 9.0, 9.0),
         {"shape.LACKING": 1e-3}),
    Term("losses: beside those at edges", losses_inside,
         ((SHAPE, "return float(low), float(high)", SHRUNK),), WIDE),
    times("log mean: the remainder", SHAPE, "found + ", "fn.log1p(left)", log_means,
         {**LOW, "shape.PROBED": 4}),
    times("log mean: roundings", SHAPE, "fn.log1p(left) + ", "rounded", log_means,
         {"log mean: roundings": 1.0}),
    times("log mean at another tilt: the remainder", STEP, "log.most + ",
         "float(fn.log1p(rule.left * fn.exp(min(guess - log.about, 600.0))))",
         coarse_bounds, {**WIDER, "shape.SIZES": np.array([4]), "step.LEFT_AT_SIDES": 8.0}),
    times("transform: the remainder", TILTED, "frequency * known + ", "2.0 * self.left",
         coarse_transforms_of(4)),
    times("transform: the remainder, of its log", TILTED, "frequency * known + ", "2.0 * self.left",
         coarse_transforms_of(4, 0.0, *LOGS)),
    Term("transform: guess of the log mean", coarse_transforms_of(4, 30.0),
         ((TILTED, "1.01 * max(1.0, float(fn.exp(",
           "1.01 * max(1.0, {x} * float(fn.exp("),)),
    times("transform: masses of nodes", TILTED, "UNIT + ", "self.share_error",
         erring_of("transform", _turned)),
    times("transform: losses of nodes", TILTED, "self._of_moments + ",
         "2.0 * self.nodes.loss_error",
         erring_of("transform", _apart)),
    times("log mean of nodes: the remainder", TILTED, "self.share_error + ", "self.left",
         coarse_transforms_of(4, 0.0, "log mean")),
    times("log mean of nodes: masses", TILTED, "1.01 * (", "self.share_error",
         erring_of("log mean", _heavier)),
    times("log mean of nodes: losses", TILTED, "of_masses\n            + ",
         "2.0 * abs(tilt) * nodes.loss_error",
         erring_of("log mean", _higher)),
    times("decay: by parts on cells", CELLS, "by_parts = ",
         "mass * ((self.fall + bent / slope) / slope + abs(tilt))",
         decays_of("beside the flat part", SMOOTH, (0.5, 1.0, 1.5, 2.0))),
    times("decay: falls of densities", CELLS, "mass * ((", "self.fall",
         decays_of("beside the flat part", LINEAR, (0.5, 1.0, 1.5, 2.0))),
    times("decay: ends of runs", CELLS, "variation += ",
         "float(ends_of[starts].sum() + ends_of[stops].sum())",
         decays_of("beside the flat part", ABRUPT, LATE)),
    times("decay: where the loss turns", CELLS, "turning = ", CORPUT,
         decays_of("beside the flat part", TURNED[:1], (100.0, 200.0, 300.0))),
    times("decay: flat mass", CELLS, "flat = ", "float(mass[is_flat].sum())",
         decays_of("flat part, tilted", SMOOTH, (1.0,)), LARGE),
    times("decay: flat mass of A", CELLS, "masses = ", "float(of_a[is_flat].sum())",
         decays_of("flat part of A", SMOOTH, (1.0,)), LARGE),
    times("decay: flat mass of B", CELLS, "* SLACK, ", "float(of_b[is_flat].sum())",
         decays_of("flat part of B", SMOOTH, (1.0,)), LARGE),
    times("decay: doubt of the log mean, above", CELLS, "np.maximum(*ends) - log_mean + ", "off",
         decays_of("flat part, tilted", SMOOTH, (1.0,), doubt=0.8), {**LARGE, "shape.CELLS": 16}),
    times("decay: doubt of the log mean, below", CELLS, "np.minimum(*ends) - log_mean - ", "off",
         decays_of("modulus by uniform", SMOOTH, (1.0, 2.0, 3.0), doubt=0.2), {"shape.CELLS": 16}),
    Term("decay: roundings of exponents", decays_of("flat part, tilted", SMOOTH, (1.0,)),
         ((CELLS, "off = doubt + 4.0 * UNIT * (", "off = doubt + {x} * 4.0 * UNIT * ("),),
         {**LARGE, "cells.UNIT": 0.05, "shape.CELLS": 16, "decay: roundings of exponents": 1.0}),
    times("decay: errors of losses at edges", CELLS, "(abs(place) + abs(begin)) + ", "2.0 * off",
         decays_of("modulus by uniform", LINEAR, (0.5, 1.0, 2.0)),
         {"decay: errors of losses at edges": 1.0}),
    Term("decay: least densities of cells",
         decays_of("modulus by uniform", ((Pair("secant", "1.2"), 2.0),), (2.0,)),
         ((CELLS, "np.where(rises, least / steepest, 0.0)",
           "np.where(rises, least / steepest if {x} == 1.0 else {x} * least / steepest "
           "+ (1.0 - {x}) * most / slope, 0.0)"),),
         {"shape.CELLS": 2, **WIDER}),
    times("decay: lobes of uniform laws", DECAY, "inner, np.minimum(", "LOBE",
         decays_of("modulus by uniform", ABRUPT[:2], (2.3, 2.6, 2.9))),
    times("strips: beside the real line", STRIPS, "weight = ",
         "size[first:last] * width[first:last]",
         decays_of("modulus by strip", LINEAR, (0.5, 1.0, 2.0, 3.0))),
    times("strips: roundings of exponents", STRIPS, "fn.exp(exponent + ", "off",
         decays_of("modulus by strip", LINEAR, (0.5, 1.0, 2.0, 3.0)),
         {"strips.UNIT": 0.25, "strips: roundings of exponents": 1.0}),
    times("strips: where the integral stays", STRIPS, "beside = ",
         "float(real[:first].sum() + real[last:].sum())",
         decays_of("modulus by strip", TURNED[1:], (17.0,))),
    times("strips: ways up and down", STRIPS, "up_down = ",
         "height * float(ways[[first, last - 1]].sum())",
         decays_of("modulus by strip", ABRUPT, (*LATE, 65.0, 129.0))),
    times("lines: beyond the last node", LINE, "beyond_all = ",
         "rest * np.array([1.0, 1.0, 1.0 / both])",
         lines_of(UNIFORM, 1.5, 3, 12.0, 20.0, 300.0)),
)  # fmt: skip


def sides(made: AnalyticShape) -> tuple[float, float]:
    """The least and the largest loss at edges of panels."""
    with ctx.workprec(100):
        at = evaluator_at_points(made.program)
        found = [float(at(arb(x))[1].mid()) for x in made.panels.tolist()]
    return min(found), max(found)


def moved(points: list[arb], known: float) -> list[arb]:
    """Losses at edges, moved away from the middle loss where a switch asks for it."""
    if not known:
        return points
    middle = points[len(points) // 2].mid()
    wide = [x + arb(0, 0.2) for x in points]
    return [x + (x.rad() if x > middle else -x.rad()) for x in wide]


@contextmanager
def switched() -> Iterator[Patched]:
    """The engine with all switches."""
    with patched(PACKAGES, [NOTED, *SWITCHES], TERMS, _sides=sides, _moved=moved) as engine:
        yield engine


def judged(engine: Patched, term: Term, part: float) -> Asked:
    """How many were asked and outside, with a part of a term that must cover the error alone."""
    with engine.set_to(term.with_part(part)):
        claims = [claim for claim in term.asks(engine) if not math.isnan(claim.error)]
    return Asked(len(claims), sum(claim.is_outside for claim in claims))
