"""One step of analytic densities at a tilt, as lines take it."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import cached_property
from pyengine.engines.vertical_lines.decay import Decay
from pyengine.engines.vertical_lines.nodes import StepNodes
from pyengine.engines.vertical_lines.shapes import cumulants_at
from pyengine.engines.vertical_lines.tilted import NodeStep, log_mean_at
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT
from pyengine.numerics.wide import wide_log

if TYPE_CHECKING:
    from pyengine.engines.analytic_lines.shape import AnalyticShape

__all__ = ["AnalyticStep"]

FloatArray = npt.NDArray[np.float64]

LEFT_AT_SIDES = 1e-9  # what nodes of all steps may leave out where they bound aliases


class AnalyticStep(NodeStep):
    """A step of analytic densities at a tilt.

    Parameters
    ----------
    shape, tilt, nodes, left
        As of a `NodeStep`.
    steps : int
        How many there are of all kinds.
    """

    shape: AnalyticShape

    def __init__(
        self, shape: AnalyticShape, tilt: float, nodes: StepNodes, left: float, steps: int
    ) -> None:
        super().__init__(shape, tilt, nodes, left)
        self._steps = steps

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

    def bound_at(self, tilt: float) -> float:
        """By nodes that serve there."""
        guess = cumulants_at(self.shape, tilt)[0]
        rule = self.shape.least_rule(tilt, guess, 0.0, LEFT_AT_SIDES / self._steps)
        if rule is None:
            return math.inf
        nodes = self.shape.nodes(rule.rule, rule.counts)
        log = log_mean_at(nodes, wide_log(nodes.mass, nodes.power), tilt)
        return log.most + float(fn.log1p(rule.left * fn.exp(min(guess - log.about, 600.0))))

    def largest_from(self, frequency: FloatArray, modulus: float) -> float:
        """As its cells say; not below the flat part, which is a part of it."""
        del modulus
        return max(float(self.decay.largest(frequency)[0]), self.decay.flat)
