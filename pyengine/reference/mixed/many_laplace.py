"""The transform of many Laplace steps of any kinds, sampled or not.

The transform of a step is alpha + G, of its atoms and of its density.  Along a vertical line alpha
does not decay, and G decays like 1/t only.  So the terms with fewer than `FEWEST` factors G are
left out of the product over all steps, unless other steps make the whole decay.  Their mass, the
probability that so few steps have a loss that is not an atom, widens the answer.

On a piece the density times exp(tilt L), h, is log-convex, so its variation is at most h(0) + h(1),
and integration by parts gives |G| <= 2 (h(0) + h(1))/(t width).
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any, Generic

import numpy as np
from flint import acb, arb

from pyengine._support.caches import cached_property
from pyengine.reference.atomic.legendre_pieces import PiecesSource
from pyengine.reference.balls import Ball, log_magnitude, precision, spread
from pyengine.reference.cumulants import Cumulants, StepCumulants, WeightedLosses
from pyengine.reference.inversion.line import LineNodes, Modulus, NotFeasibleError, turned_sums

__all__ = ["ManyLaplace"]

FEWEST = 4  # factors G of the terms that are kept, which decay like 1/t^FEWEST
PLANNED = 256  # Gauss nodes on a piece for cumulants in doubles
MOST_ORDER = 1500  # Gauss nodes on a piece
ARCS = 64  # parts of the upper half of an ellipse, on each of which a density is bounded


class ManyLaplace:
    """All Laplace steps as one; see `pyengine.reference.inversion.line.Part`.

    ``others``: whether there are other steps whose transform decays, so that no terms are left out.
    """

    highest, ratio = math.inf, Fraction(1)

    def __init__(self, parts: list[PiecesSource], *, others: bool = False) -> None:
        self.parts, self.fewest = parts, 0 if others else FEWEST

    def ends(self) -> tuple[arb, arb]:
        """Return the smallest and the largest loss."""
        ends = [part.ends() for part in self.parts]
        low, high = (sum((end[k] for end in ends), arb(0)) for k in (0, 1))
        return low, high

    @cached_property
    def _measure(self) -> Cumulants:
        rows: list[tuple[StepCumulants, int]] = []
        for part in self.parts:
            with precision(100):
                atoms, nodes = _nodes(part, PLANNED)
            losses = np.array([float(loss.mid()) for loss, _ in atoms + nodes])
            log_masses = np.array([log_magnitude(mass) for _, mass in atoms + nodes])
            rows.append((WeightedLosses(log_masses, losses), part.steps))
        return Cumulants(rows)

    def measure(self, *_: float) -> Cumulants:
        """Return the law of the loss in doubles; there is no normal law to truncate."""
        return self._measure

    def sizes(self, measure: Cumulants, tilt: float) -> _LaplaceSizes:
        """Return sizes on a line."""
        return _LaplaceSizes(self, tilt, measure.log_moment(tilt))

    def nodes(self, *given: Any) -> _Rules:
        """Choose a Gauss rule for each kind."""
        _, _, reach, depth, _ = given
        return _Rules([_rule(part, reach, depth) for part in self.parts])


@dataclass(frozen=True)
class _Rules:
    """The Gauss rule of each kind: its order, and the parameter of the Bernstein ellipse."""

    rules: list[tuple[int, float]]

    @property
    def count(self) -> int:
        return sum(order for order, _ in self.rules)


def _rule(part: PiecesSource, reach: float, depth: float) -> tuple[int, float]:
    """Return an order and a Bernstein ellipse for errors of about exp(-depth), in doubles."""
    with precision(100):
        width = float(part.step().width)
    nearest = part.nearest()
    best = math.inf, 1.0
    for k in range(1, 40):
        ellipse = 1.12**k
        away = (ellipse + 1 / ellipse) / 4 - 0.5
        height = (ellipse - 1 / ellipse) / 4
        if away > 0.8 * nearest or height * width > 1.5:
            break
        near = -1.5 * math.log(1 - away / nearest)
        order = (depth + near + reach * width * height + 6) / (2 * math.log(ellipse)) + 2
        best = min(best, (order, ellipse))
    if best[0] > MOST_ORDER:
        raise NotFeasibleError(f"Gauss's rule of {best[0]:.3g} nodes would be needed")
    return int(best[0]), best[1]


class _LaplaceSizes:
    """Sizes of the transform on the line Re lambda = tilt, where log M is ``log_moment``."""

    def __init__(self, many: ManyLaplace, tilt: float, log_moment: float) -> None:
        self.many, self.tilt, self._log_moment = many, tilt, log_moment

    def best(self, t: float) -> tuple[float, None]:
        """Return the log of the bound on |M(tilt + i t)| / M(tilt)."""
        with precision(100 + int(4 * abs(self._log_moment))):
            size = _many(self.many, arb(self.tilt), arb(t))
            return log_magnitude(size.upper()) - self._log_moment, None

    def placed(self, nodes: _Rules, line: LineNodes) -> _PlacedLaplace:
        """Return the transform at the nodes of a line, at the working precision."""
        return _PlacedLaplace(self.many, nodes, line)


class _PlacedLaplace:
    """See `pyengine.reference.inversion.line.PlacedPart`."""

    def __init__(self, many: ManyLaplace, nodes: _Rules, line: LineNodes) -> None:
        self.many, self.line = many, line
        self.rows = [
            (part, rule, *_nodes(part, rule[0]))
            for part, rule in zip(many.parts, nodes.rules, strict=True)
        ]

    @property
    def lost(self) -> tuple[arb, arb]:
        """The probabilities under P and Q that fewer than `FEWEST` losses are not atoms."""
        found = []
        for law in (0, 1):
            few = _FewFactors(self.many.fewest, arb(1))
            for part, _, atoms, _ in self.rows:
                mass = sum((m * (loss.exp() if law else 1) for loss, m in atoms), arb(0))
                few.times(mass, 1 - mass, part.steps)
            found.append(few.total)
        return found[0], found[1]

    def values(self) -> list[acb]:
        """Return balls that enclose M at the nodes of the line."""
        line, count = self.line, self.line.count
        power = [acb(1)] * count
        few = [_FewFactors(self.many.fewest, acb(1)) for _ in power]
        for part, rule, *sides in self.rows:
            atoms, nodes = (
                turned_sums(
                    [loss for loss, _ in rows],
                    [mass * (line.tilt * loss).exp() for loss, mass in rows],
                    line.spacing,
                    count,
                )
                for rows in sides
            )
            error = spread(_error(part, rule, line.tilt, line.reach))
            wide = acb(error, error)
            nodes = [x + wide for x in nodes]
            power = [x * (a + b) ** part.steps for x, a, b in zip(power, atoms, nodes, strict=True)]
            for x, a, b in zip(few, atoms, nodes, strict=True):
                x.times(a, b, part.steps)
        return [x - y.total for x, y in zip(power, few, strict=True)]

    def log_above(self, theta: arb) -> arb:
        """Return a ball whose upper end is at least log M at a real theta."""
        total = arb(0)
        for part, rule, *sides in self.rows:
            one = sum((m * (theta * loss).exp() for rows in sides for loss, m in rows), arb(0))
            total += part.steps * (one + _error(part, rule, theta, arb(0))).log()
        return total

    def modulus(self, log_goal: float) -> Modulus:  # noqa: ARG002 - it is in closed form
        """Return bounds on |M| beyond the nodes, where each G decays like 1/t."""
        size = _many(self.many, self.line.tilt, self.line.reach)
        far = (size * self.line.reach).upper() if self.many.fewest else arb("inf")
        return Modulus(size.upper(), far)


def _nodes(part: PiecesSource, order: int) -> tuple[list[tuple[arb, arb]], list[tuple[arb, arb]]]:
    """Return (loss, P-mass) of the atoms of a step, and of Gauss nodes for its density."""
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


def _error(part: PiecesSource, rule: tuple[int, float], tilt: arb, reach: arb) -> arb:
    """Bound the error of Gauss's rule for all |t| <= reach.

    Trefethen, Approximation Theory and Approximation Practice, Theorem 19.3, with the largest
    modulus on the ellipse, bounded on arcs of its upper half; the bound is symmetric.
    """
    order, size = rule
    step, ellipse = part.step(), arb(size)
    height = (ellipse - 1 / ellipse) / 4
    largest = arb(0)
    for piece in range(len(step.atoms) - 1):
        top = arb(0)
        for k in range(ARCS):
            middle, half = (2 * k + 1) * arb.pi() / (2 * ARCS), arb.pi() / (2 * ARCS)
            angle = middle + spread(half)
            wide, high = (ellipse + 1 / ellipse) / 4, height
            s = acb(arb(0.5) + wide * angle.cos(), high * angle.sin())
            loss = step.low + (piece + s.real) * step.width
            value = abs(step.density(piece, s)) * (tilt * loss).exp()
            top = top.max((value * (reach * step.width * s.imag).exp()).upper())
        largest += top
    return largest * 32 / 15 * ellipse ** (2 - 2 * order) / (1 - ellipse ** (-2))


def _sizes(part: PiecesSource, tilt: arb, t: arb) -> tuple[arb, arb]:
    """Return bounds on |alpha|, and on |G| for all imaginary parts >= t."""
    step = part.step()
    atoms = density = arb(0)
    for k, mass in enumerate(step.atoms):
        atoms += mass * (tilt * (step.low + k * step.width)).exp()
    for piece in range(len(step.atoms) - 1):
        for s in (0, 1):
            end = (tilt * (step.low + (piece + s) * step.width)).exp()
            density += 2 * step.density(piece, arb(s)) * end / (t * step.width)
    return atoms, density


def _many(many: ManyLaplace, tilt: arb, t: arb) -> arb:
    """Bound |M| for all imaginary parts >= t."""
    power, few = arb(1), _FewFactors(many.fewest, arb(1))
    for part in many.parts:
        atom, density = _sizes(part, tilt, t)
        power *= (atom + density) ** part.steps
        few.times(atom, density, part.steps)
    return power - few.total


class _FewFactors(Generic[Ball]):
    """The terms with fewer than ``most`` densities of a product of powers (atom + density)^steps.

    ``one`` is the number 1 of the wanted type.
    """

    def __init__(self, most: int, one: Ball) -> None:
        self._most = most
        self._zero: Ball = one * 0
        self._terms: list[Ball] = [one][:most]

    @property
    def total(self) -> Ball:
        """The sum of these terms."""
        total: Ball = sum(self._terms, self._zero)
        return total

    def times(self, atom: Ball, density: Ball, steps: int) -> None:
        """Multiply the product by (atom + density)^steps."""
        new = [
            math.comb(steps, m) * atom ** (steps - m) * density**m
            for m in range(min(self._most, steps + 1))
        ]
        old = self._terms
        self._terms = [
            sum(
                (old[j] * new[m - j] for j in range(m + 1) if j < len(old) and m - j < len(new)),
                self._zero,
            )
            for m in range(min(self._most, len(old) + len(new) - 1))
        ]
