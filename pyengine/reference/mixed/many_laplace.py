"""Many Laplace steps of any kinds, sampled or not: the transform of what is not nearly all atoms.

A step's transform is alpha + G, that of its atoms and that of its density.  alpha does not fall
along a line and G only like 1/t, so the transform of all steps is taken without the terms of fewer
than `FEWEST` factors G.  Their probability, that so few steps have a loss that is no atom, is what
is left out.
"""

from __future__ import annotations

import math
from typing import TypeVar

import numpy as np
from flint import acb, arb

from pyengine._support.caches import cached_property
from pyengine.errors import AccuracyError
from pyengine.reference.atomic.legendre_pieces import PiecesSource
from pyengine.reference.balls import log_magnitude, precision
from pyengine.reference.cumulants import Array
from pyengine.reference.inversion.two_lines import MOST_TURNS, Measured, RotatedPlan, turned_sums

__all__ = ["ManyLaplace"]

FEWEST = 4
PLANNED, RESOLVED = 256, 180.0  # nodes on a piece that plan, and half turns that they resolve
MOST_ORDER = 1500
Ball = TypeVar("Ball", arb, acb)


class _LaplaceCumulants(Measured):
    """Cumulants of the total loss, in double precision."""

    def __init__(self, parts: list[PiecesSource]) -> None:
        self.shift = 0.0
        self.steps = [part.steps for part in parts]
        self.measures: list[tuple[Array, Array]] = []
        width = 0.0
        for part in parts:
            with precision(100):
                atoms, nodes = _measure(part, PLANNED)
                width = max(width, float(part.step().width))
            rows = atoms + nodes
            losses = np.array([float(loss.mid()) for loss, _ in rows])
            log_masses = np.array([log_magnitude(mass) for _, mass in rows])
            self.measures.append((log_masses, losses))
        self.steepest = MOST_TURNS * width / (2 * RESOLVED)

    def value(self, tilt: float) -> float:
        """Return K(tilt)."""
        return self.log_size(tilt, 0.0)

    def log_size(self, tilt: float, t: float) -> float:
        """Return log |E exp((tilt + i t) S)|."""
        total = 0.0
        for (log_masses, losses), steps in zip(self.measures, self.steps, strict=True):
            exponent = log_masses + tilt * losses
            top = float(exponent.max())
            size = abs(complex(np.sum(np.exp(exponent - top + 1j * t * losses))))
            total += steps * (top + math.log(max(size, 1e-300)))
        return total

    def mean_variance(self, tilt: float) -> tuple[float, float]:
        """Return K'(tilt) and K''(tilt)."""
        mean = variance = 0.0
        for (log_masses, losses), steps in zip(self.measures, self.steps, strict=True):
            exponent = log_masses + tilt * losses
            weight = np.exp(exponent - exponent.max())
            weight /= weight.sum()
            first = float(weight @ losses)
            mean += steps * first
            variance += steps * float(weight @ (losses - first) ** 2)
        return mean, variance


def _measure(part: PiecesSource, order: int) -> tuple[list[tuple[arb, arb]], list[tuple[arb, arb]]]:
    """Return losses and P-masses of the atoms of a step, and of Gauss nodes for its density."""
    step = part.step()
    atoms = [(step.low + k * step.width, mass) for k, mass in enumerate(step.atoms) if mass > 0]
    nodes = []
    for k in range(order):
        x, weight = arb.legendre_p_root(order, k, weight=True)
        s = (1 + x) / 2
        for piece in range(len(step.atoms) - 1):
            mass = step.density(piece, s) * weight / 2
            nodes.append((step.low + (piece + s) * step.width, mass))
    return atoms, nodes


class ManyLaplace:
    """The transform of the total loss; see `pyengine.reference.inversion.two_lines.Transform`.

    Parameters
    ----------
    parts : list of PiecesSource
        Steps by kind.
    """

    def __init__(self, parts: list[PiecesSource]) -> None:
        self.parts = parts

    @cached_property
    def ends(self) -> tuple[arb, arb]:
        """The smallest and the largest loss."""
        with precision(400):
            ends = [part.ends() for part in self.parts]
            low, high = (sum((end[k] for end in ends), arb(0)) for k in (0, 1))
            return low, high

    def cumulants(self) -> Measured:
        """Return cumulants that plan."""
        return _LaplaceCumulants(self.parts)

    def lost(self, plan: RotatedPlan) -> tuple[arb, arb]:
        """Return the probabilities under P and under Q that few losses are no atoms."""
        found = []
        for law in (0, 1):
            few = [arb(1)]
            for part in self.parts:
                step = part.step()
                mass = sum(
                    (
                        mass * ((step.low + k * step.width).exp() if law else 1)
                        for k, mass in enumerate(step.atoms)
                    ),
                    arb(0),
                )
                few = _product(few, _few(mass, 1 - mass, part.steps, plan), plan)
            found.append(sum(few, arb(0)))
        return found[0], found[1]

    def values(self, plan: RotatedPlan) -> list[acb]:
        """Return E exp(lambda S) at the nodes of a line, less the terms of few densities."""
        spacing, tilt = arb(plan.spacing), arb(plan.tilt)
        power = [acb(1)] * plan.count
        few = [[acb(1)]] * plan.count
        for part in self.parts:
            half_turns = plan.reach * float(part.step().width) / 2
            order = part.order(plan.depth / 2.303, plan.variant) + int(1.2 * half_turns)
            if order > MOST_ORDER:
                raise AccuracyError(
                    f"an inversion would need Gauss's rule of {order} nodes; ask for fewer digits"
                )
            plan.check(order)
            atoms, nodes = (
                turned_sums(
                    [loss for loss, _ in rows],
                    [mass * (tilt * loss).exp() for loss, mass in rows],
                    spacing,
                    plan.count,
                )
                for rows in _measure(part, order)
            )
            power = [x * (a + b) ** part.steps for x, a, b in zip(power, atoms, nodes, strict=True)]
            few = [
                _product(x, _few(a, b, part.steps, plan), plan)
                for x, a, b in zip(few, atoms, nodes, strict=True)
            ]
        return [x - sum(y, acb(0)) for x, y in zip(power, few, strict=True)]


def _few(atom: Ball, density: Ball, steps: int, plan: RotatedPlan) -> list[Ball]:
    """Return the terms of (atom + density)^steps with few factors of the second kind."""
    most = min(FEWEST + plan.variant, steps + 1)
    return [math.comb(steps, m) * atom ** (steps - m) * density**m for m in range(most)]


def _product(one: list[Ball], two: list[Ball], plan: RotatedPlan) -> list[Ball]:
    """Return the terms of a product, as few of them."""
    most = min(FEWEST + plan.variant, len(one) + len(two) - 1)
    return [
        sum(
            (one[j] * two[m - j] for j in range(m + 1) if j < len(one) and m - j < len(two)),
            one[0] * 0,
        )
        for m in range(most)
    ]
