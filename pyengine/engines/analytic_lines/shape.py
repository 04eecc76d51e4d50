"""One step of two analytic densities as nodes of Gauss's rules, with bounded quadrature errors.

The real line is cut into panels, about each of which both densities are analytic on ellipses.
Bounds of density and loss on these, in ball arithmetic, bound the quadrature error of E e^(s L) for
any number of nodes and any s (docs/theory/analytic_densities, Lemma 2).
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from fractions import Fraction
from itertools import pairwise
from typing import NamedTuple

import numpy as np
import numpy.typing as npt
from flint import acb, arb

from pyengine._support.caches import cached_property
from pyengine.engines.analytic_lines.balls import (
    BITS,
    BOUND_BITS,
    WIDE,
    enclosed,
    evaluator_at_points,
    evaluator_on_plane,
    lower,
    on_plane,
    precision,
    upper,
    values_of,
)
from pyengine.engines.analytic_lines.cells import LossCells
from pyengine.engines.analytic_lines.panel_nodes import Interval, MadeNodes, PanelNodes
from pyengine.engines.analytic_lines.step import AnalyticStep
from pyengine.engines.analytic_lines.strips import Strips
from pyengine.engines.vertical_lines.decay import Decay
from pyengine.engines.vertical_lines.gauss import EXTENDED
from pyengine.engines.vertical_lines.nodes import PanelRule, StepNodes
from pyengine.engines.vertical_lines.shapes import At, Fall, LossShape
from pyengine.errors import AccuracyError
from pyengine.laws.log_sums import exponential
from pyengine.mechanisms.expressions import Evaluator, Expression, Program, exp, log
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT
from pyengine.numerics.wide import wide_log

__all__ = ["CELLS", "PARTS", "PROBED", "SIZES", "AnalyticShape", "TiltedRule"]

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.intp]
SPARE_BITS = 72  # bits of masses beyond those that the faintest one needs
CELLS = 8  # per panel, for `LossCells`
STRIP_CELLS = 4  # per panel, for `Strips`
STRIP_HEIGHTS = np.array([0.125, 0.25, 0.5, 1.0])  # of lines, relative to the highest
HIGHEST_STRIP = 1.0  # height of the highest line, relative to the median length of a panel by mass
FEW = 64  # steps up to which `Strips` are used
LOG_FLAT = -42.0  # log of N Z^(N - 1) for N steps with the flat mass Z
HEIGHTS = np.array([0.5, 1.0, 2.0])  # of ellipses, in half-lengths of the panel
WIDENED = fn.hypot(HEIGHTS, 1.0)  # half-axes on the real line, in half-lengths
LOG_RHO = fn.log(HEIGHTS + WIDENED)  # logs of their parameters ρ
LOG_REST = fn.log(-fn.expm1(-LOG_RHO))
LOG_2 = float(fn.log(2.0))
STRIPS = 3  # boxes that cover the upper half of an ellipse
PLACES = np.linspace(-1.0, 1.0, STRIPS + 1)  # their ends, in half-axes
LEAST = -50.0  # log of the quadrature error of `PROBED` nodes below which a panel is not halved
PROBED = 20  # nodes of the rule by which panels are chosen
MOST_NODES = 100_000  # of a step
MOST_PANELS = 4096
DEEPEST = 1060  # most halvings of the interval
SIZES = np.array([12, 16, 20, 24, 32, 40, 56, 80])  # numbers of nodes of rules
PARTS = (1, 2, 4, 8)  # equal parts into which panels are cut
LACKING = 1e-9  # mass beyond the interval above which a density counts as a mistake
DIGITS = 53  # bits of a double
ROUNDED = 2.0**-DIGITS
TINY = 1e-300  # above the underflow of a loss
FAINTEST = -16_000  # smallest power of 2 of a mass
SHORTEST = 1e-290  # half-length of a panel
FAINT = 45.0  # -log of a term, relative to the largest, that is left out in estimates
NEGLIGIBLE_MASS = 80.0  # -log of the mass of a panel that is not cut for bounds of the decay
_SIDE = 0.25 * fn.power(2.0, 0.5 * np.arange(37.0))
TILTS = np.concatenate([-_SIDE[::-1], [0.0, 1.0], 1.0 + _SIDE])
REMAINDER_MARGIN = 20.0  # -log of quadrature errors of total masses, relative to the faintest mass
PANEL_MARGIN = 100.0  # log of the allowed quadrature error of a panel, relative to that mass
MANY_SIZES = np.array([20, 28, 40, 56, 80, 112, 160, 224, 320, 448, 640])  # nodes for total masses
LEAST_LOG, MOST_LOG = -700.0, 600.0  # range of logs of bounds kept as doubles
DROPPED_SHARE = 0.25  # share of the allowed error for panels that are left out
SLACK = 1.0 + 1e-6  # factor for the rounding of bounds


class Box(NamedTuple):
    """Bounds on a rectangle of the plane.

    Parameters
    ----------
    log_density : float
        Upper bound of the real part of log p.
    low, high : float
        Bounds of the real part of the loss.
    turn : float
        Upper bound of the modulus of its imaginary part.
    """

    log_density: float
    low: float
    high: float
    turn: float


NOWHERE = Box(math.inf, -math.inf, math.inf, math.inf)


class TiltedRule(NamedTuple):
    """A rule for one tilt.

    Parameters
    ----------
    rule : PanelRule
        The rule on all panels.
    counts : ndarray of bool
        Panels with enough mass at that tilt; the others are left out.
    left : float
        Bound on the quadrature error plus the mass of panels left out, relative to the mean.
    """

    rule: PanelRule
    counts: npt.NDArray[np.bool_]
    left: float

    @property
    def size(self) -> int:
        """Number of nodes."""
        return int(self.counts.sum()) * self.rule.size


class Ellipses(NamedTuple):
    """Bounds on boxes that cover the ellipses about panels, of shape (panels, heights, strips).

    ``half`` are the half-lengths of the panels; the other fields are those of `Box`.
    """

    half: FloatArray
    log_density: FloatArray
    low: FloatArray
    high: FloatArray
    turn: FloatArray

    def log_missed(
        self, tilt: float, log_mean: float, frequency: float, sizes: IntArray
    ) -> FloatArray:
        """Logs of bounds on quadrature errors of E e^(s L), relative to e^log_mean.

        For Re s = ``tilt`` and |Im s| <= ``frequency``; of shape (panels, sizes).
        """
        with np.errstate(invalid="ignore", over="ignore"):
            most = self.log_density + np.maximum(tilt * self.low, tilt * self.high)
            most = most + frequency * self.turn
            # rounding of the terms of the exponent, which may be large
            largest = np.maximum(np.abs(self.low), np.abs(self.high))
            off = np.abs(self.log_density) + np.abs(tilt) * largest + frequency * self.turn
            most = most + 4.0 * UNIT * (off + abs(log_mean)) - log_mean
            most = np.where(np.isnan(most), np.inf, most).max(axis=2)
            # 8 w M rho^-2n/(1 - 1/rho), as of the panels of Laplace steps
            rule = 2.0 * sizes[:, None] * LOG_RHO + LOG_REST
            least = (most[:, None, :] - rule).min(axis=2)
            # add logs: the length may be below 1e-250, and the density as large as its inverse
            return np.asarray(least + fn.log(8.0 * SLACK * self.half)[:, None])

    def missed(self, tilt: float, log_mean: float, frequency: float, sizes: IntArray) -> FloatArray:
        """The bounds themselves; infinite above e^`MOST_LOG`."""
        found = self.log_missed(tilt, log_mean, frequency, sizes)
        # an upper bound must not underflow to 0
        bounded = fn.exp(np.clip(found, LEAST_LOG, MOST_LOG))
        return np.asarray(np.where(found < MOST_LOG, bounded, np.inf))

    def log_mass(self, tilt: float, log_mean: float) -> FloatArray:
        """Logs of bounds on the tilted masses of panels, relative to e^log_mean."""
        low, high = self.low[:, 0], self.high[:, 0]
        with np.errstate(invalid="ignore"):
            most = self.log_density[:, 0] + np.maximum(tilt * low, tilt * high)
            largest = np.abs(tilt) * np.maximum(np.abs(low), np.abs(high))
            off = np.abs(self.log_density[:, 0]) + largest + abs(log_mean)
            most = most + 4.0 * UNIT * off - log_mean
            most = np.where(np.isnan(most), np.inf, most).max(axis=1)
            return np.asarray(most + fn.log(2.0 * SLACK * self.half))


def _ellipses(panels: list[Interval], boxes: list[list[list[Box]]]) -> Ellipses:
    """The ellipses about panels."""
    half = [0.5 * (right - left) for left, right in panels]
    return Ellipses(np.array(half), *np.moveaxis(np.array(boxes), 3, 0))


def _joined(parts: Iterable[Ellipses]) -> Ellipses:
    return Ellipses(*(np.concatenate(each) for each in zip(*parts, strict=True)))


# Map: nodes of analytic densities | test_analytic_densities | theory/analytic_densities
@dataclass(frozen=True)
class AnalyticShape(LossShape):
    """One kind of step; A is the law without the record.

    Parameters
    ----------
    log_p, log_q : Expression
        Logarithms of the densities.
    interval : pair of float
        Ends at which the law is truncated.
    probability : Fraction
        Sampling probability, in (0, 1].
    faintest : float
        Log of the smallest mass that counts: about that beyond the ends.
    """

    log_p: Expression
    log_q: Expression
    interval: tuple[float, float]
    probability: Fraction
    faintest: float
    __hash__ = LossShape.__hash__

    @cached_property
    def program(self) -> Program:
        """Program of log p and the loss."""
        loss = self.log_q - self.log_p
        if self.probability != 1:
            loss = log((1 - self.probability) + self.probability * exp(loss))
        return values_of(self.log_p, loss)

    @cached_property
    def _densities(self) -> Program:
        """Program of both densities, without sampling."""
        return Expression("pair", exponential(self.log_p), exponential(self.log_q)).program

    @cached_property
    def _panels(self) -> tuple[FloatArray, Ellipses]:
        """Ends of panels on which `PROBED` nodes suffice at the tilts 0 and 1, and their bounds."""
        low, high = self.interval
        ahead: list[tuple[float, float, int]] = [(low, high, 0)]
        edges, found = [low], list[list[list[Box]]]()
        with precision(BOUND_BITS):
            on = evaluator_on_plane(self.program)
            while ahead:
                left, right, depth = ahead.pop()
                boxes = self._boxes(on, left, right, is_probed=True)
                if not self._misses(boxes, 0.5 * (right - left)):
                    edges.append(right)
                    found.append(boxes)
                    continue
                middle = 0.5 * left + 0.5 * right
                if depth == DEEPEST or len(ahead) + len(found) > MOST_PANELS:
                    raise AccuracyError(
                        f"the densities cannot be proven to be analytic near {middle:g}, or need "
                        "too many panels: bounds='estimated' and method='lattice' do without that"
                    )
                ahead += [(middle, right, depth + 1), (left, middle, depth + 1)]
        return np.array(edges), _ellipses(list(pairwise(edges)), found)

    @cached_property
    def panels(self) -> FloatArray:
        """Ends of the panels."""
        return self._panels[0]

    def _box(self, on: Evaluator, origin: arb, low: float, high: float, height: float) -> Box:
        """Bounds on a rectangle on top of the real line, from origin + low to origin + high."""
        middle, half = 0.5 * (low + high), 0.5 * (high - low) * SLACK
        ball = acb(origin + arb(middle, half), arb(0.5 * height, 0.5 * height * SLACK))
        log_p, loss = on_plane(on, ball, WIDE)
        if not log_p[0].is_finite() or not loss[0].is_finite():
            return NOWHERE
        apart = ball - acb(ball.real.mid(), ball.imag.mid())
        density, value = enclosed(log_p, apart), enclosed(loss, apart)
        turn = max(upper(value.imag), -lower(value.imag))
        found = Box(upper(density.real), lower(value.real), upper(value.real), turn)
        return found if all(map(math.isfinite, found)) else NOWHERE

    def _boxes(
        self, on: Evaluator, left: float, right: float, *, is_probed: bool = False
    ) -> list[list[Box]]:
        """Bounds on the ellipses about a panel, by height.

        With ``is_probed``, stops as soon as they show that `PROBED` nodes do not suffice.
        """
        half = 0.5 * (right - left)
        if not half > SHORTEST:
            raise AccuracyError(f"panels next to {left:g} would be too short for doubles")
        # in ball arithmetic: far from 0 the middle of a short panel is no double
        middle = (arb(left) + arb(right)) / 2
        found = [[NOWHERE] * STRIPS for _ in HEIGHTS]
        seen: list[list[Box]] = [[] for _ in HEIGHTS]
        higher = [(j, k) for k in range(STRIPS) for j in range(1, HEIGHTS.size)]
        for j, k in [(0, k) for k in range(STRIPS)] + higher:
            if NOWHERE in seen[j]:
                continue
            low, high = (half * WIDENED[j] * SLACK * PLACES[i] for i in (k, k + 1))
            found[j][k] = self._box(on, middle, low, high, float(HEIGHTS[j]) * half * SLACK)
            seen[j].append(found[j][k])
            if is_probed and all(seen) and self._misses(seen, half):
                break
        return found

    def _misses(self, boxes: list[list[Box]], half: float) -> bool:
        """Whether the error of `PROBED` nodes may be too large for either law on a panel.

        By the boxes of all heights; those of the lowest height must be complete.
        """
        log_half = float(fn.log(half))
        mass = max(box.log_density + max(box.high, 0.0) for box in boxes[0]) + log_half
        enough = max(LEAST + min(mass + LOG_2, 0.0), self.faintest + PANEL_MARGIN)
        missed = 2.0 * PROBED * LOG_RHO + LOG_REST - log_half - 3.0 * LOG_2
        most = (enough + missed).tolist()
        return any(
            all(
                any(box.log_density + (box.high if law else 0.0) > left for box in each)
                for each, left in zip(boxes, most, strict=True)
            )
            for law in (0, 1)
        )

    @cached_property
    def _cut(self) -> dict[int, dict[int, Ellipses]]:
        """Ellipses about parts of panels, by the number of parts and the panel."""
        return {}

    def edges(self, parts: int) -> FloatArray:
        """Ends of the parts of all panels, each cut into equal parts."""
        edges = self.panels
        within = np.arange(parts) / parts
        cut = edges[:-1, None] + np.diff(edges)[:, None] * within
        return np.append(cut.ravel(), edges[-1])

    def cut(self, parts: int) -> FloatArray:
        """Ends of the panels, where those that may count at some tilt are cut into equal parts."""
        edges = self.edges(parts)
        kept = np.repeat(self._may_count, parts)
        kept[::parts] = True
        return np.append(edges[:-1][kept], edges[-1])

    @cached_property
    def _may_count(self) -> npt.NDArray[np.bool_]:
        """Mask of panels with a relative mass above e^-`NEGLIGIBLE_MASS` at one of `TILTS`."""
        log_mean = self.cumulants(TILTS)[0]
        of_tilts = [
            self._panels[1].log_mass(tilt, mean) > -NEGLIGIBLE_MASS
            for tilt, mean in zip(TILTS.tolist(), log_mean.tolist(), strict=True)
        ]
        return np.asarray(np.any(of_tilts, axis=0))

    def divides(self, parts: int) -> bool:
        """Whether parts of all panels are long enough; next to an end they may be too short."""
        return bool(np.diff(self.edges(parts)).min() > 2.0 * SHORTEST)

    def ellipses(self, parts: int, panels: IntArray) -> Ellipses:
        """Ellipses about the parts of given panels, each cut into equal parts."""
        if parts == 1:
            return Ellipses(*(each[panels] for each in self._panels[1]))
        edges, made = self.edges(parts).tolist(), self._cut.setdefault(parts, {})
        with precision(BOUND_BITS):
            on = evaluator_on_plane(self.program)
            for panel in panels.tolist():
                if panel not in made:
                    numbers = range(panel * parts, (panel + 1) * parts)
                    ends = [(edges[i], edges[i + 1]) for i in numbers]
                    made[panel] = _ellipses(ends, [self._boxes(on, *each) for each in ends])
        return _joined(made[panel] for panel in panels.tolist())

    def missed(
        self,
        tilt: float,
        log_mean: float,
        frequency: float,
        parts: int,
        sizes: IntArray,
    ) -> FloatArray:
        """Bounds on quadrature errors of E e^(s L), relative to e^log_mean, for each of sizes."""
        panels = np.arange(self.panels.size - 1)
        found = self.ellipses(parts, panels).missed(tilt, log_mean, frequency, sizes)
        return np.asarray(found.sum(axis=0) * SLACK)

    def least_rule(
        self, tilt: float, log_mean: float, frequency: float, enough: float
    ) -> TiltedRule | None:
        """The rule with the fewest nodes and an error of at most ``enough``; None if too many.

        Only panels with enough mass are cut into parts.
        """
        best: TiltedRule | None = None
        panels, beside = np.arange(self.panels.size - 1), 0.0
        for parts in PARTS:
            if not self.divides(parts):
                break
            if best is not None and best.rule.size <= 2 * SIZES[0]:
                break  # twice as many panels need no fewer nodes
            ellipses = self.ellipses(parts, panels)
            log_mass = ellipses.log_mass(tilt, log_mean)
            order = np.argsort(log_mass)
            mass = fn.exp(np.clip(log_mass[order], LEAST_LOG, MOST_LOG))
            light = order[:-1][beside + np.cumsum(mass[:-1]) <= DROPPED_SHARE * enough]
            kept = np.ones(log_mass.size, dtype=np.bool_)
            kept[light] = False
            dropped = beside + float(mass[: light.size].sum())
            left = ellipses.missed(tilt, log_mean, frequency, SIZES)[kept].sum(axis=0) + dropped
            good = np.flatnonzero(left * SLACK <= enough)
            if good.size:
                counts = np.zeros((self.panels.size - 1, parts), dtype=np.bool_)
                counts[panels] = kept.reshape(-1, parts)
                rule = PanelRule(parts, int(SIZES[good[0]]), 0.0)
                found = TiltedRule(rule, counts.ravel(), float(left[good[0]]) * SLACK)
                if best is not None and found.size >= best.size:
                    break
                best = found
            if parts == 1:
                panels, beside = panels[kept], dropped
        return None if best is None or best.size > MOST_NODES else best

    def tilted(
        self, at: At, frequency: float, enough: float, spacing: float
    ) -> AnalyticStep | None:
        """A step at a tilt for frequencies up to ``frequency``; None if it needs too many nodes."""
        del spacing
        best = self.least_rule(at.tilt, at.log_mean, frequency, enough)
        if best is None:
            return None
        nodes = self.nodes(best.rule, best.counts)
        step = AnalyticStep(self, at.tilt, nodes, best.left, at.steps)
        return step.reaching(at.log_mean, frequency)

    @cached_property
    def _nodes(self) -> dict[PanelRule, PanelNodes]:
        return {}

    def nodes(self, rule: PanelRule, counts: npt.NDArray[np.bool_] | None = None) -> StepNodes:
        """Nodes of a rule on ``rule.panels`` parts of each panel, or on parts of a mask."""
        found = self._nodes.get(rule)
        if found is None:
            made = PanelNodes(rule, self.edges(rule.panels), self._made)
            found = self._nodes.setdefault(rule, made)
        return found.on(counts)

    def _at_nodes(self, panels: Iterable[Interval], size: int) -> Iterator[tuple[arb, arb]]:
        """Losses and A's masses of the nodes of a rule on panels, at the working precision."""
        gauss, at = _gauss(size), evaluator_at_points(self.program)
        for left, right in panels:
            half, middle = (arb(right) - arb(left)) / 2, (arb(right) + arb(left)) / 2
            for place, weight in gauss:
                log_p, loss = at(middle + half * place)
                mass = half * weight * log_p.exp()
                if not (loss.is_finite() and mass.is_finite()):
                    raise AccuracyError(f"log_p or log_q is not finite next to {float(middle):g}")
                yield loss, mass

    def _made(self, panels: list[Interval], rule: PanelRule) -> MadeNodes:
        """Compute nodes on panels, with bounds on the errors for each panel."""
        losses, masses = [], []
        of_losses, of_masses = [], []
        with precision(BITS):
            for loss, mass in self._at_nodes(panels, rule.size):
                losses.append(_two_doubles(loss))
                masses.append(_two_doubles(mass))
                of_losses.append(float(loss.rad()) + TINY)
                of_masses.append(upper(mass.rad() / mass.lower()))
        shape = len(panels), rule.size
        (of_loss, raised), (of_mass, power) = (
            (
                np.moveaxis(np.array([x[:2] for x in each]).reshape(*shape, 2), 2, 1),
                np.array([x[2] for x in each]).reshape(shape),
            )
            for each in (losses, masses)
        )
        found = np.ldexp(of_loss, raised[:, None])
        loss_error, mass_error = (np.reshape(x, shape).max(axis=1) for x in (of_losses, of_masses))
        largest = np.abs(found[:, 0]).max(axis=1)
        if not ((mass_error <= 1e-12) & (loss_error <= 1e-12 * (1.0 + largest))).all():
            raise AccuracyError("log_p or log_q loses its digits to cancellation")
        loss_error += EXTENDED * largest
        return MadeNodes(
            found,
            of_mass,
            power.astype(np.float64),
            2.0 * loss_error,
            4.0 * EXTENDED + 2.0 * mass_error,
        )

    @cached_property
    def removed(self) -> tuple[float, float]:
        """Upper bounds of the masses of A and of B beyond the ends.

        Raises
        ------
        ValueError
            If a density is proven to have more mass than 1, or may lack `LACKING`.
        """
        edges, ellipses = self._panels
        enough = self.faintest - REMAINDER_MARGIN - fn.log(edges.size)
        log_left = np.array([ellipses.log_missed(x, 0.0, 0.0, MANY_SIZES) for x in (0.0, 1.0)])
        # each panel takes the smallest sufficient rule, or the largest one
        is_enough = log_left.max(axis=0) <= enough
        is_enough[:, -1] = True
        chosen = np.argmax(is_enough, axis=1)
        log_mass = np.maximum(*(ellipses.log_mass(x, 0.0) for x in (0.0, 1.0)))
        of_p, of_q = arb(0), arb(0)
        beyond = [arb(0), arb(0)]  # balls with the quadrature errors
        for i, size in enumerate(MANY_SIZES.tolist()):
            panels = np.flatnonzero(chosen == i)
            found = self._integrals(panels, log_mass[panels], size)
            with precision(self._bits(0.0)):
                for p, q in found:
                    of_p, of_q = of_p + p, of_q + q
                for law in (0, 1):
                    for log_of in log_left[law, panels, i].tolist():
                        beyond[law] += arb(0, 1) * arb(log_of).exp() * SLACK
        with precision(self._bits(0.0)):
            rate = arb(self.probability.numerator) / self.probability.denominator
            of_a, of_b = of_p + beyond[0], (1 - rate) * of_p + rate * of_q + beyond[1]
            for name, mass in (("p", of_a), ("q", (of_b - (1 - rate) * of_a) / rate)):
                self._check_mass(name, mass)
            return max(upper(1 - of_a), 0.0), max(upper(1 - of_b), 0.0)

    def _integrals(
        self, panels: IntArray, log_mass: FloatArray, size: int
    ) -> list[tuple[arb, arb]]:
        """Rule sums of both densities on panels, with a precision that fits their mass."""
        found: list[tuple[arb, arb]] = []
        if not panels.size:
            return found
        with precision(self._bits(float(log_mass.max()))):
            gauss, at = _gauss(size), evaluator_at_points(self._densities)
        ends = self.panels[panels].tolist(), self.panels[panels + 1].tolist()
        for left, right, log_of in zip(*ends, log_mass.tolist(), strict=True):
            with precision(self._bits(log_of)):
                half, middle = (arb(right) - arb(left)) / 2, (arb(right) + arb(left)) / 2
                of_p, of_q = arb(0), arb(0)
                for place, weight in gauss:
                    p, q = at(middle + half * place)
                    of_p += weight * p
                    of_q += weight * q
                found.append((half * of_p, half * of_q))
        return found

    def _bits(self, log_mass: float) -> int:
        """Precision in bits at which roundings of a mass are far below the faintest one."""
        above = min(log_mass, MOST_LOG) - self.faintest
        return SPARE_BITS + max(int(above / fn.log(2.0)), 0)

    def _check_mass(self, name: str, mass: arb) -> None:
        """Raise an error for a density that does not integrate to 1."""
        if mass > 1:
            raise ValueError(
                f"{name} must integrate to 1, but is proven to exceed that, by "
                f"{lower(mass - 1):.3g} at least: constants given as text or fractions, such as "
                '"0.1", and pi are exact'
            )
        lacking = upper(1 - mass)
        if not lacking <= LACKING:
            raise ValueError(
                f"{name} must integrate to 1, but has {lacking:.3g} less between "
                f"{self.interval[0]:g} and {self.interval[1]:g}, or its integral is not known"
            )

    def cumulants(self, tilt: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Estimates of log E e^(tilt L), tilted mean and variance of the loss; for choices only."""
        loss, weight = self._rough
        found = np.empty((3, tilt.size))
        for i, each in enumerate(tilt.tolist()):
            exponent = weight + each * loss
            top = exponent.max()
            near = np.flatnonzero(exponent > top - FAINT)
            share, part = fn.exp(exponent[near] - top), loss[near]
            total = share.sum()
            share /= total
            mean = float(share @ part)
            spread = float(share @ (part - mean) ** 2)
            found[:, i] = top + fn.log(total), mean, max(spread, 1e-300)
        return found[0], found[1], found[2]

    @cached_property
    def _rough(self) -> tuple[FloatArray, FloatArray]:
        """Losses and logs of masses of `PROBED` nodes per panel, in doubles."""
        nodes = self.nodes(PanelRule(1, PROBED, 0.0))
        return nodes.loss[0], wide_log(nodes.mass, nodes.power)[0]

    def log_mean_bound(self, tilt: float) -> float:
        """Upper bound of log E e^(``tilt`` L) between the ends."""
        loss, weight = self._rough
        exponent = weight + tilt * loss
        top = float(exponent.max())
        # underflow is far below the allowance for rounding
        with np.errstate(under="ignore"):
            found = top + fn.log(float(fn.exp(exponent - top).sum()))
        left = float(self.missed(tilt, found, 0.0, 1, np.array([PROBED]))[0])
        rounded = 1e-9 * (1.0 + float(np.abs(weight).max() + np.abs(tilt * loss).max()))
        return found + fn.log1p(left) + rounded

    @cached_property
    def cells(self) -> LossCells:
        """Bounds on short cells of the real line."""
        return LossCells.of(self.program, self.cut(CELLS))

    @cached_property
    def _strips(self) -> Strips:
        """Bounds on lines beside the real line."""
        lengths, nodes = np.diff(self.panels), self.nodes(PanelRule(1, PROBED, 0.0))
        mass = np.ldexp(nodes.mass[0], nodes.power.astype(np.intp))
        mass = mass.reshape(lengths.size, PROBED).sum(axis=1)
        order = np.argsort(lengths)
        usual = lengths[order][int(np.searchsorted(np.cumsum(mass[order]), 0.5 * mass.sum()))]
        reach = HIGHEST_STRIP * float(usual)
        return Strips.of(self.program, self.cut(STRIP_CELLS), reach * STRIP_HEIGHTS)

    def decay(self, tilt: float, log_mean: float, doubt: float, steps: int) -> Decay:
        """Decay of the transform of the tilted law of one of ``steps`` steps.

        ``doubt`` bounds the error of ``log_mean``.  Up to `FEW` steps use `Strips` as well: their
        bounds have to decay farther.
        """
        spare = fn.exp((LOG_FLAT - fn.log(steps)) / max(steps - 1, 1))
        strips = self._strips if steps <= FEW else None
        return self.cells.decay(tilt, log_mean, doubt, spare, strips)

    def fall(self, at: At, variance: float, frequency: FloatArray) -> Fall:
        """Expected decay of the transform along a line."""
        del variance
        decay = self.decay(at.tilt, at.log_mean, 0.0, at.steps)
        return Fall(np.maximum(decay.largest(frequency), decay.flat), decay.tail(frequency))

    def log_at_ends(self, at: At) -> float:
        """Logarithm of the tilted mass of flat cells."""
        return fn.log(max(self.decay(at.tilt, at.log_mean, 0.0, at.steps).flat, 1e-300))

    @cached_property
    def ends(self) -> tuple[float, float]:
        """Bounds of the losses on the interval."""
        ellipses = self._panels[1]
        known = ellipses.log_density.max(axis=2) < math.inf
        low = np.where(known, ellipses.low.min(axis=2), -np.inf).max(axis=1).min()
        high = np.where(known, ellipses.high.max(axis=2), np.inf).min(axis=1).max()
        return float(low), float(high)

    def expected_nodes(self, frequency: float) -> float:
        """Estimated number of nodes of a step for frequencies up to ``frequency``."""
        low, high = self.ends
        return 16.0 * self._heavy_panels + 0.5 * frequency * (high - low)

    @cached_property
    def _heavy_panels(self) -> int:
        """Number of panels with an A-mass above e^-`FAINT`."""
        return int((self._panels[1].log_mass(0.0, 0.0) > -FAINT).sum())


def _gauss(size: int) -> list[tuple[arb, arb]]:
    """Nodes, decreasing, and weights of Gauss's rule on (-1, 1), at the working precision."""
    found = [arb.legendre_p_root(size, k, weight=True) for k in range((size + 1) // 2)]
    return found + [(-place, weight) for place, weight in reversed(found[: size // 2])]


def _two_doubles(x: arb) -> tuple[float, float, int]:
    """The midpoint of a ball as (high + low) 2^power, with high near 1 and low its low part.

    The relative error is 2^-105.  It uses integers, as densities may be below all doubles where the
    tilted law has its mass.
    """
    mantissa, exponent = (int(part) for part in x.mid().man_exp())
    size = abs(mantissa)
    if not size:
        return 0.0, 0.0, 0
    excess = size.bit_length() - 2 * DIGITS
    size = size >> excess if excess > 0 else size << -excess
    high = float(size >> DIGITS)
    power = exponent + excess + 2 * DIGITS
    if power < FAINTEST:
        raise AccuracyError("log_p or log_q is so small that no number holds it")
    low = float(size & (2**DIGITS - 1)) * ROUNDED
    unit, both = math.copysign(ROUNDED, mantissa), high + low
    return unit * both, unit * (low - (both - high)), power
