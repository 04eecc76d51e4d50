"""One step of analytic densities at a tilt, as lines take it."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property
from pyengine.engines.analytic_lines.shape import PARTS, AnalyticShape, TiltedRule
from pyengine.engines.vertical_lines.choice import cumulants_at, cumulants_of
from pyengine.engines.vertical_lines.decay import Decay
from pyengine.engines.vertical_lines.fall import Fall, fall_of, log_at_ends
from pyengine.engines.vertical_lines.mixed import removed_of
from pyengine.engines.vertical_lines.nodes import StepNodes, expected_nodes
from pyengine.engines.vertical_lines.tilted import (
    NOTHING_LOST,
    NodeStep,
    log_mean_at,
    reached,
    tilted_step,
)
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT
from pyengine.numerics.wide import wide_log

__all__ = ["AnalyticStep"]

FloatArray = npt.NDArray[np.float64]

MOST_NODES = 100_000
LEFT_AT_SIDES = 1e-9  # what nodes of all steps may leave out where they bound aliases


class AnalyticStep(NodeStep):
    """A step of analytic densities at a tilt.

    Parameters
    ----------
    shape : AnalyticShape
        The step.
    tilt, nodes, left
        As of a `NodeStep`.
    steps : int
        How many there are of all kinds.
    """

    def __init__(
        self, shape: AnalyticShape, tilt: float, nodes: StepNodes, left: float, steps: int
    ) -> None:
        super().__init__(tilt, nodes, left)
        self.shape, self._steps = shape, steps

    @cached_property
    def decay(self) -> Decay:
        """Bounds of the transform far out."""
        log_mean = float(self.log_mean)
        doubt = self.log_error + 2.0 * UNIT * abs(log_mean)
        return self.shape.decay(self.tilt, log_mean, doubt, self._steps)

    @property
    def at_ends(self) -> float:
        """The tilted mass of flat cells."""
        return self.decay.flat

    def mass_at_ends(self, pole: float) -> float:
        """The mass of flat cells."""
        return self.decay.flat_masses[int(pole)]

    @property
    def removed(self) -> tuple[float, float]:
        """What lies beyond the ends of the law."""
        return self.shape.removed

    def bound_at(self, tilt: float) -> float:
        """By nodes that serve there."""
        guess = cumulants_at(self.shape, tilt)[0]
        rule = _least_rule(self.shape, tilt, guess, 0.0, LEFT_AT_SIDES / self._steps)
        if rule is None:
            return math.inf
        nodes = self.shape.nodes(rule.rule, rule.counts)
        log = log_mean_at(nodes, wide_log(nodes.mass, nodes.power), tilt)
        return log.most + float(fn.log1p(rule.left * fn.exp(min(guess - log.about, 600.0))))

    def largest_from(self, frequency: FloatArray, modulus: float) -> float:
        """As its cells say; not below the flat part, which is a part of it."""
        del modulus
        return max(float(self.decay.largest(frequency)[0]), self.decay.flat)


@tilted_step.register
def _(
    shape: AnalyticShape,
    tilt: float,
    log_mean: float,
    frequency: float,
    enough: float,
    steps: int,
    log_lost: float = NOTHING_LOST,
    spacing: float = 0.0,
) -> AnalyticStep | None:
    del log_lost, spacing
    best = _least_rule(shape, tilt, log_mean, frequency, enough)
    if best is None:
        return None
    step = AnalyticStep(shape, tilt, shape.nodes(best.rule, best.counts), best.left, steps)
    return step if reached(step, log_mean, frequency) else None


def _least_rule(
    shape: AnalyticShape, tilt: float, log_mean: float, frequency: float, enough: float
) -> TiltedRule | None:
    """The rule with the fewest nodes that serves at a tilt; None where all take too many."""
    best: TiltedRule | None = None
    for parts in PARTS:
        if not shape.divides(parts):
            break
        found = shape.rule_at(tilt, log_mean, frequency, parts, enough)
        if found is None:
            continue
        if best is not None and found.size >= best.size:
            break
        best = found
    return None if best is None or best.size > MOST_NODES else best


@cumulants_of.register
def _(shape: AnalyticShape, tilt: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
    return shape.cumulants(tilt)


@expected_nodes.register
def _(shape: AnalyticShape, frequency: float) -> float:
    return shape.expected_nodes(frequency)


@fall_of.register
def _(
    shape: AnalyticShape,
    tilt: float,
    log_mean: float,
    variance: float,
    frequency: FloatArray,
    steps: int,
    log_lost: float = NOTHING_LOST,
) -> Fall:
    del variance, log_lost
    decay = shape.decay(tilt, log_mean, 0.0, steps)
    return Fall(np.maximum(decay.largest(frequency), decay.flat), decay.tail(frequency))


@removed_of.register
def _(shape: AnalyticShape) -> tuple[float, float]:
    return shape.removed


@log_at_ends.register
def _(shape: AnalyticShape, tilt: float, log_mean: float, steps: int) -> float:
    return fn.log(max(shape.decay(tilt, log_mean, 0.0, steps).flat, 1e-300))
