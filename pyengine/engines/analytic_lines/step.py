"""One step of analytic densities at a tilt, in the form that lines use."""

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

LEFT_AT_SIDES = 1e-9  # relative quadrature error of all steps together at tilts of alias bounds


class AnalyticStep(NodeStep):
    """A step of analytic densities at a tilt.

    Parameters
    ----------
    shape, tilt, nodes, left
        As for a `NodeStep`.
    steps : int
        Number of steps of all kinds.
    """

    shape: AnalyticShape

    def __init__(
        self, shape: AnalyticShape, tilt: float, nodes: StepNodes, left: float, steps: int
    ) -> None:
        super().__init__(shape, tilt, nodes, left)
        self._steps = steps

    @cached_property
    def decay(self) -> Decay:
        """Bounds of the transform at large frequencies."""
        log_mean = float(self.log_mean)
        doubt = self.log_error + 2.0 * UNIT * abs(log_mean)
        return self.shape.decay(self.tilt, log_mean, doubt, self._steps)

    @property
    def at_ends(self) -> float:
        """The tilted mass of flat cells."""
        return self.decay.flat

    def mass_at_ends(self, pole: float) -> float:
        """The mass of flat cells under A (pole 0) or B (pole 1)."""
        return self.decay.flat_masses[int(pole)]

    def bound_at(self, tilt: float) -> float:
        """Upper bound of log E_A e^(tilt L), by a rule chosen for that tilt."""
        guess = cumulants_at(self.shape, tilt)[0]
        rule = self.shape.least_rule(tilt, guess, 0.0, LEFT_AT_SIDES / self._steps)
        if rule is None:
            return math.inf
        nodes = self.shape.nodes(rule.rule, rule.counts)
        log = log_mean_at(nodes, wide_log(nodes.mass, nodes.power), tilt)
        return log.most + float(fn.log1p(rule.left * fn.exp(min(guess - log.about, 600.0))))

    def largest_from(self, frequency: FloatArray, modulus: float) -> float:
        """By the decay on cells; at least the flat part, which it contains."""
        del modulus
        return max(float(self.decay.largest(frequency)[0]), self.decay.flat)
