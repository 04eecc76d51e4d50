"""The transform of a step with finitely many losses, for compositions with smooth steps.

It is a sum over the losses that are finite, and does not decay along a vertical line.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
from flint import acb, arb, ctx

from pyengine.reference.atomic.finite import Masses
from pyengine.reference.atomic.sums import FiniteSource
from pyengine.reference.balls import log_magnitude, precision
from pyengine.reference.cumulants import WeightedLosses
from pyengine.reference.inversion.line import LineNodes, Modulus, turned_sums
from pyengine.reference.recent import Recent

__all__ = ["FinitePart"]

SPARE = 60  # bits beyond those of the truncated normal tails
KEPT = 4  # precisions


@dataclass(frozen=True)
class FiniteAtoms:
    """Masses of a step and their losses, at a working precision in bits."""

    masses: Masses
    losses: list[arb]
    bits: int

    @property
    def count(self) -> int:
        """Number of losses."""
        return len(self.losses)


class FinitePart:
    """A step, by the function of its masses; see `pyengine.reference.inversion.line.Part`."""

    highest, ratio = math.inf, Fraction(1)

    def __init__(self, make: Callable[[], Masses]) -> None:
        self._make = make
        self._kept: Recent[FiniteAtoms] = Recent(KEPT)

    def atoms(self, bits: int) -> FiniteAtoms:
        """Return the atoms at a precision."""
        return self._kept.get(bits, lambda: self._made(bits))

    def _made(self, bits: int) -> FiniteAtoms:
        with precision(bits):
            one = self._make()
            losses = [(q / p).log() for p, q in zip(one.p, one.q, strict=True)]
            return FiniteAtoms(one, losses, bits)

    def ends(self) -> tuple[arb, arb]:
        """Return the infimum and the supremum of the finite losses."""
        return FiniteSource([(self._make, 1)]).ends()

    def measure(self, cut: float, span: float) -> WeightedLosses:  # noqa: ARG002 - it has no span
        """Return the law of the loss in doubles; ``cut`` sets the precision of the masses."""
        atoms = self.atoms(_bits(cut))
        log_p = [log_magnitude(p) for p in atoms.masses.p]
        return WeightedLosses(np.array(log_p), np.array([float(x.mid()) for x in atoms.losses]))

    def sizes(self, *_: Any) -> _FiniteSizes:
        """Return sizes on a line."""
        return _FiniteSizes(self)

    def nodes(self, *given: Any) -> FiniteAtoms:
        """Return the atoms."""
        *_, cut = given
        return self.atoms(_bits(cut))


def _bits(cut: float) -> int:
    """Return a precision, in bits, at which less mass is lost than a normal law has above a cut."""
    return 64 * math.ceil((cut * cut / 2 / math.log(2) + SPARE) / 64)


class _FiniteSizes:
    """Sizes of the transform on one line, bounded by M(tilt): it need not decay."""

    def __init__(self, step: FinitePart) -> None:
        self.step = step

    def best(self, t: float) -> tuple[float, None]:  # noqa: ARG002 - the same everywhere
        """Return the log of the bound on |M(tilt + i t)| / M(tilt)."""
        return 0.0, None

    def placed(self, nodes: FiniteAtoms, line: LineNodes) -> _PlacedFinite:
        """Return the transform at the nodes of a line."""
        return _PlacedFinite(self.step.atoms(max(nodes.bits, ctx.prec)), line)


class _PlacedFinite:
    """See `pyengine.reference.inversion.line.PlacedPart`."""

    def __init__(self, atoms: FiniteAtoms, line: LineNodes) -> None:
        self.losses, self.masses, self.line = atoms.losses, atoms.masses, line

    @property
    def lost(self) -> tuple[arb, arb]:
        """Bounds on the masses left out under P and Q."""
        return self.masses.lost, self.masses.lost

    def _tilted(self, theta: arb) -> list[arb]:
        rows = zip(self.masses.p, self.losses, strict=True)
        return [p * (theta * loss).exp() for p, loss in rows]

    def values(self) -> list[acb]:
        """Return balls that enclose M at the nodes."""
        line = self.line
        return turned_sums(self.losses, self._tilted(line.tilt), line.spacing, line.count)

    def log_above(self, theta: arb) -> arb:
        """Return a ball with log M at a real theta."""
        return sum(self._tilted(theta), arb(0)).log()

    def modulus(self, log_goal: float) -> Modulus:  # noqa: ARG002 - it is at most M(tilt)
        """Return M(tilt), which |M| may come near again and again, and no 1/t bound."""
        return Modulus(sum(self._tilted(self.line.tilt), arb(0)).upper(), arb("inf"))
