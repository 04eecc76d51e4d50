"""Which kinds of steps are composed by themselves first, on a finer lattice than the others.

Where many steps of tiny loss meet a few of large loss, a lattice fine enough for the former is as
long as the latter need.  The sum of the small ones is narrow: it is composed on a fine lattice of
its own and then put on the coarser one of all as if it were one step (`regrid`).  All numbers here
come from the survey and are guesses; what they lead to is certified.
"""

from __future__ import annotations

import itertools
import math
from dataclasses import dataclass
from typing import NamedTuple, NoReturn

import numpy as np
import numpy.typing as npt

from pyengine.engines.lattice.coarse_cumulants import ROOT_TWO_PI, CoarseCumulants, Part
from pyengine.engines.lattice.large_steps import Term
from pyengine.laws.base import Law
from pyengine.numerics import functions as fn

__all__ = ["Scales", "SmallSteps", "by_scales"]

FloatArray = npt.NDArray[np.float64]

LONG = 2.0**18  # points up to which one lattice is short enough
GAIN = 3.0  # how many times fewer points two lattices must have
MANY = 1000  # steps that are worth a composition of their own
WIDE = 30.0  # standard deviations of the window of a sum
MATTERS = 1e-5  # of the variance
COARSER = 0.7  # of what makes the errors of both lattices the same


@dataclass(frozen=True, eq=False)
class SmallSteps(Law):
    """The sum of many small steps, in the place of one step.

    Parameters
    ----------
    parts : tuple of (StepLaw, int)
        The steps.
    found : CoarseCumulants
        Their survey.
    """

    parts: tuple[Part, ...]
    found: CoarseCumulants

    def support(self) -> tuple[float, float]:
        """Unbounded, as far as a lattice is concerned."""
        return -math.inf, math.inf

    def infinite(self) -> tuple[float, float]:
        """None: they are counted with the steps."""
        return 0.0, 0.0

    def cells(self, edges: FloatArray) -> NoReturn:
        """Not from a law: they are composed."""
        raise AssertionError(
            f"the masses of {len(self.parts)} kinds are composed, not cut at {edges.size} losses"
        )


class Scales(NamedTuple):
    """A term whose last kind of step is the sum of its small steps, and both spacings."""

    term: Term
    fine: float
    coarse: float


def by_scales(term: Term, width: float, spacing: float) -> Scales | None:
    """The term with its small steps as one, which come last, and the spacings that both need.

    Parameters
    ----------
    term : Term
        What is composed.
    width : float
        Width of its window.
    spacing : float
        Spacing that it needs on one lattice.

    Returns
    -------
    Scales or None
        None where one lattice serves as well.
    """
    if width / spacing < LONG or len(term.parts) < 2:
        return None
    found = term.survey
    variances = [
        CoarseCumulants((loss,), (log_mass,), (1,)).cumulants(term.tilt)[2]
        for loss, log_mass in zip(found.loss, found.log_mass, strict=True)
    ]
    order = np.argsort(variances, kind="stable").tolist()
    total = math.fsum(n * v for n, v in zip(found.steps, variances, strict=True))
    best: tuple[float, list[int], float, float] = (width / spacing / GAIN, [], 0.0, 0.0)
    for last in range(1, len(order)):
        small, others = order[:last], order[last:]
        number = sum(found.steps[i] for i in small)
        deviation = math.sqrt(max(math.fsum(found.steps[i] * variances[i] for i in small), 0.0))
        if number < MANY or not deviation > 0.0:
            continue
        rest = 1 + sum(found.steps[i] for i in others)
        # cells wider than the law of a step merge nearly all of it, and widen the sum
        narrow = [
            [
                0.5 * math.sqrt(variances[i])
                for i in kinds
                if found.steps[i] * variances[i] > MATTERS * whole
            ]
            for kinds, whole in ((small, deviation**2), (others, total))
        ]
        fine = min(spacing, *narrow[0])
        limits = [COARSER * fine * math.sqrt((number + rest) / rest), 0.5 * deviation]
        limits += [0.25 * math.sqrt(total), 0.25 / (1.0 + abs(term.tilt))]
        coarse = min(*limits, *narrow[1])
        cost = width / coarse + WIDE * deviation / fine
        if coarse > fine and cost < best[0]:
            best = cost, small, fine, coarse
    _, small, fine, coarse = best
    return Scales(_joined(term, sorted(small)), fine, coarse) if small else None


def _joined(term: Term, small: list[int]) -> Term:
    """The term with some of its kinds as one step, which comes last."""
    found = term.survey
    own = CoarseCumulants(
        tuple(found.loss[i] for i in small),
        tuple(found.log_mass[i] for i in small),
        tuple(found.steps[i] for i in small),
    )
    law = SmallSteps(tuple(term.parts[i] for i in small), own)
    loss, log_mass = _saddle_points(own)
    others = [i for i in range(len(term.parts)) if i not in small]
    whole = CoarseCumulants(
        (*(found.loss[i] for i in others), loss),
        (*(found.log_mass[i] for i in others), log_mass),
        (*(found.steps[i] for i in others), 1),
    )
    parts = (*(term.parts[i] for i in others), (law, 1))
    return term._replace(parts=parts, survey=whole)


def _saddle_points(found: CoarseCumulants) -> tuple[FloatArray, FloatArray]:
    """Losses of a composition and logs of the masses around them, by the saddle point method."""
    tilts = np.unique(found.table[1])
    total, mean, variance = found.many(tilts)
    rising = np.append(True, np.diff(np.maximum.accumulate(mean)) > 0.0)
    tilts, total, mean, variance = (x[rising] for x in (tilts, total, mean, variance))
    density = total - tilts * mean - fn.log(ROOT_TWO_PI * np.sqrt(np.maximum(variance, 1e-300)))
    ends = np.array([0.5 * (a + b) for a, b in itertools.pairwise(mean.tolist())])
    widths = np.diff(np.concatenate([mean[:1], ends, mean[-1:]]))
    return mean, density + fn.log(np.maximum(widths, 1e-300))
