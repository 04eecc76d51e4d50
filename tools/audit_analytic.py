"""Audit of lines of analytic densities, against integrals in ball arithmetic.

Draws random tilted steps (logistic, hyperbolic secant, normal of another scale, Student's law of 3
degrees of freedom; on all data or on Poisson samples). The engine's claims about them are compared
with integrals in ball arithmetic of densities that are written down here: transforms and their
logarithms, log means and their bounds, errors of Gauss's rules, masses beyond the ends, losses, and
the three bounds of a transform from some t on, each by itself. Error terms are in
``analytic_terms.py``.
"""

from __future__ import annotations

import itertools
import math
from collections import deque
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from fractions import Fraction
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
from error_terms import Claim, Patched, Switch
from flint import acb, arb, ctx, fmpq
from random_mechanisms import evenly

from pyengine.analytic import Expression, cosh, exp, log, number, pi, sqrt, z
from pyengine.engines.analytic_lines.shape import CELLS, PARTS, SIZES, AnalyticShape
from pyengine.engines.analytic_lines.step import AnalyticStep
from pyengine.engines.vertical_lines.decay import Decay
from pyengine.engines.vertical_lines.gauss import EXTENDED
from pyengine.engines.vertical_lines.nodes import PanelRule
from pyengine.engines.vertical_lines.shapes import At
from pyengine.laws.analytic import NOTHING

BITS = 128  # of truths
CLOSE = 2.0**-80  # of integrals, relative
Array = Any


# ---- truths --------------------------------------------------------------------------------------


def ball(value: Any) -> arb:
    """An exact number as a ball."""
    exact = Fraction(value)
    return arb(fmpq(exact.numerator, exact.denominator))


class Pair(NamedTuple):
    """Two densities: the family, shift and scale of the second, and the rate.

    The numbers are text or doubles, and exact.
    """

    family: str
    shift: Any
    scale: Any = 1
    rate: Any = 1
    ends: tuple[float, float] | None = None

    @property
    def interval(self) -> tuple[float, float]:
        """The ends of the law."""
        far = {"logistic": 60.0, "secant": 40.0, "normal": 16.0, "student": 1e8, "uniform": 1.0}[
            self.family
        ]
        if self.family == "uniform":
            return self.ends or (0.0, 1.0)
        room = float(Fraction(self.scale)) * far + float(Fraction(self.shift))
        return self.ends or (-max(far, room), max(far, room))

    def shape(self) -> AnalyticShape:
        """The engine's version of it."""
        log_p = EXPRESSIONS[self.family]
        if self.family == "uniform":
            log_q = z - log(exp(number(1)) - 1)
            return AnalyticShape(log_p, log_q, self.interval, Fraction(1), NOTHING)
        scale = Fraction(self.scale)
        log_q = log_p.at((z - Fraction(self.shift)) / scale) - log(number(scale))
        return AnalyticShape(log_p, log_q, self.interval, Fraction(self.rate), NOTHING)

    def density(self, x: acb) -> acb:
        """The first density."""
        if self.family == "logistic":
            return (x / 2).sech() ** 2 / 4
        if self.family == "secant":
            return x.sech() / acb.pi()
        if self.family == "normal":
            return (-x * x / 2).exp() / (2 * acb.pi()).sqrt()
        if self.family == "uniform":
            return acb(1)
        return 2 / (acb.pi() * acb(3).sqrt()) / (1 + x * x / 3) ** 2

    def plain_ratio(self, x: acb) -> acb:
        """The second density over the first one."""
        scale = ball(self.scale)
        y = (x - ball(self.shift)) / scale
        if self.family == "logistic":
            return ((x / 2).cosh() * (y / 2).sech()) ** 2 / scale
        if self.family == "secant":
            return x.cosh() * y.sech() / scale
        if self.family == "normal":
            return ((x * x - y * y) / 2).exp() / scale
        return ((1 + x * x / 3) / (1 + y * y / 3)) ** 2 / scale

    def loss(self, x: acb, is_analytic: bool = False) -> acb:
        """The loss; NaN where it may be near a cut of the logarithm."""
        if self.family == "uniform":
            return x - (acb(1).exp() - 1).log()
        scale, rate = ball(self.scale), ball(self.rate)
        if self.family == "normal" and Fraction(self.rate) == 1:
            y = (x - ball(self.shift)) / scale
            return (x * x - y * y) / 2 - acb(scale).log()
        return (1 + rate * (self.plain_ratio(x) - 1)).log(analytic=is_analytic)

    def mean(self, s: acb, log_mean: float = 0.0, places: Sequence[float] | None = None) -> acb:
        """Mean of e^(s loss) over e^``log_mean`` between the ends, or over a part of that range."""

        def integrand(x: acb, is_analytic: bool) -> acb:
            return self.density(x) * (s * self.loss(x, is_analytic) - log_mean).exp()

        total, bounds = acb(0), (cut(self.interval) if places is None else places)
        for left, right in itertools.pairwise(bounds):
            total += acb.integral(
                integrand, acb(left), acb(right), rel_tol=CLOSE, abs_tol=CLOSE * 1e-3
            )
        return total

    def beyond(self) -> tuple[float, float]:
        """The masses of both laws beyond the ends, by closed forms."""
        with ctx.workprec(2000):
            low, high = map(arb, self.interval)
            middle, scale = ball(self.shift), ball(self.scale)
            of_p = self._above(high) + self._above(-low)
            of_q = self._above((high - middle) / scale) + self._above((middle - low) / scale)
            rate = ball(self.rate)
            return float(of_p), float(rate * of_q + (1 - rate) * of_p)

    def _above(self, x: arb) -> arb:
        """The first law's mass above a number."""
        if self.family == "logistic":
            return 1 / (1 + x.exp())
        if self.family == "secant":
            return 2 * (-x).exp().atan() / arb.pi()
        if self.family == "normal":
            return (x / arb(2).sqrt()).erfc() / 2
        root = arb(3).sqrt()
        rest = root * x / (3 + x * x) + (x / root).atan()
        return arb(1) / 2 - rest / arb.pi()


EXPRESSIONS: dict[str, Expression] = {
    "logistic": -z - 2 * log(1 + exp(-z)),
    "secant": -log(pi * cosh(z)),
    "normal": -z * z / 2 - log(2 * pi) / 2,
    "student": log(2 / (pi * sqrt(number(3)))) - 2 * log(1 + z * z / 3),
    "uniform": 0 * z,
}


def cut(interval: tuple[float, float]) -> list[float]:
    """Breakpoints between which integrals over all scales are computed."""
    low, high = interval
    inner = [sign * 4.0**k for sign in (-1, 1) for k in range(14)] + [0.0, 0.37]
    return sorted({low, high, *(x for x in inner if low < x < high)})


class Truth:
    """Means of e^(s loss) of a pair at a tilt, between its ends."""

    def __init__(self, pair: Pair, tilt: float) -> None:
        self.pair, self.tilt = pair, tilt
        with ctx.workprec(BITS):
            self._scale = self._about()
            self._mean: acb = pair.mean(acb(tilt), self._scale).real
            self.log_mean: arb = self._mean.log() + self._scale

    def _about(self) -> float:
        """Approximate logarithm of the mean, relative to which the error of integrals is set."""
        places, found = cut(self.pair.interval), -math.inf
        for left, right in itertools.pairwise(places):
            for x in np.linspace(left, right, 25).tolist():
                log = self.pair.density(acb(x)).log() + self.tilt * self.pair.loss(acb(x))
                found = max(found, float(log.real.mid()) + math.log(right - left))
        return found

    def transform(self, t: float, places: Sequence[tuple[float, float]] | None = None) -> acb:
        """The tilted law's transform, or that of its part on some intervals."""
        with ctx.workprec(BITS):
            s, pair = acb(self.tilt, t), self.pair
            if places is None:
                return pair.mean(s, self._scale) / self._mean
            total = sum((pair.mean(s, self._scale, part) for part in places), acb(0))
            return total / self._mean


@lru_cache(512)
def truth_of(pair: Pair, tilt: float) -> Truth:
    """A cached `Truth`."""
    return Truth(pair, tilt)


@lru_cache(4096)
def transform_of(pair: Pair, tilt: float, t: float) -> acb:
    """A cached transform."""
    return truth_of(pair, tilt).transform(t)


def size(x: Any) -> float:
    """A lower bound of the modulus, so that a value outside is certainly outside."""
    return float(x.abs_lower())


# ---- what is claimed of one step -----------------------------------------------------------------


def exactly(values: Array) -> list[arb]:
    """Sums of two doubles as balls."""
    return [arb(one) + arb(rest) for one, rest in values.T.tolist()]


def of_rule(made: AnalyticShape, truth: Truth, t: float, rule: PanelRule) -> Claim:
    """Error of a rule for the mean, without the rounding of its nodes."""
    log_mean = float(truth.log_mean.mid())
    nodes = made.nodes(rule)
    with ctx.workprec(BITS):
        s = acb(truth.tilt, t)
        total, moduli = acb(0), arb(0)
        parts = zip(exactly(nodes.loss), exactly(nodes.mass), nodes.power.tolist(), strict=True)
        for loss, mass, power in parts:
            term = (s * loss - log_mean).exp() * mass * arb(2) ** int(power)
            total += term
            moduli += abs(term)
        exact = (truth.log_mean - log_mean).exp() * transform_of(truth.pair, truth.tilt, t)
        error = size(total - exact)
    missed = made.missed(truth.tilt, log_mean, t, rule.panels, np.array([rule.size]))
    rounding = nodes.mass_error + abs(complex(truth.tilt, t)) * nodes.loss_error
    return Claim("rule", error, float(missed[0]) + 2.0 * float(moduli.mid()) * rounding)


def above(kind: str, bound: float, log: arb) -> Claim:
    """A logarithm and its claimed upper bound."""
    with ctx.workprec(BITS):
        least = (log - bound).exp()
    return Claim(kind, float(least.mid() - least.rad()) if math.isfinite(bound) else 0.0, 1.0)


def of_transform(found: AnalyticStep, truth: Truth, t: Array, spacing: float | None) -> list[Claim]:
    """The transform and its logarithm, at numbers that may be multiples of a spacing."""
    value = found.transform(t, spacing)
    claims = []
    with ctx.workprec(BITS):
        for i, each in enumerate(t.tolist()):
            turned = acb(0, -each * arb(found.centre)).exp()
            exact = transform_of(truth.pair, truth.tilt, each) * turned
            about = value.modulus[i] * acb(0, value.angle[i]).exp()
            # the modulus is rounded beside what was summed, the transform less 1
            rounded = 2.0**-51 * (1.0 + float(value.modulus[i]))
            bound = float(value.error[i]) + rounded
            claims.append(Claim("transform", size(about - exact), bound))
            off = float(value.log_error[i])
            if math.isfinite(value.log[i]):
                about = acb(value.log[i], value.angle[i]).exp()
                claims.append(Claim("log of the transform", size((exact / about).log()), off))
            else:
                claims.append(above("modulus where hardly known", off, abs(exact).log()))
    return claims


def of_mean(found: AnalyticStep, truth: Truth) -> Claim:
    """The log mean."""
    with ctx.workprec(BITS):
        (about,) = exactly(found.log_mean.parts[:, None])
        error = size(about - truth.log_mean)
    return Claim("log mean", error, found.log_error + 4.0 * EXTENDED * abs(float(found.log_mean)))


PACKAGES = ("pyengine.engines.analytic_lines", "pyengine.engines.vertical_lines")
FLAT = "is_flat = ~rises & ~turns"
NOTED = Switch(
    "flat cells", deque(maxlen=0), (("cells.py", FLAT, f"{FLAT}; {{x}}.append(is_flat)"),)
)


@contextmanager
def flat_cells(engine: Patched) -> Iterator[list[Array]]:
    """Record which cells are flat, whenever cells are used to bound a transform."""
    noted: list[Array] = []
    engine.values[NOTED.name] = noted
    try:
        yield noted
    finally:
        engine.values[NOTED.name] = NOTED.plain


def flat_intervals(made: AnalyticShape, is_flat: Array, parts: int) -> list[tuple[float, float]]:
    """The intervals that flat cells cover."""
    edges = made.cut(parts)
    change = np.flatnonzero(np.diff(np.concatenate([[0], is_flat.astype(int), [0]])))
    return [(float(edges[i]), float(edges[j])) for i, j in change.reshape(-1, 2).tolist()]


def parts_of(found: Decay) -> dict[str, Decay]:
    """The bounds of a modulus, each by itself."""
    nothing = np.zeros(0)
    alone = {
        "uniform laws": found._replace(variation=math.inf, strips=()),
        "flat and variation": found._replace(mass=nothing, length=nothing, strips=()),
    }
    for i, strip in enumerate(found.strips):
        alone[f"strip {i}"] = found._replace(
            mass=nothing, length=nothing, variation=math.inf, strips=(strip,)
        )
    return alone


def of_moduli(found: Decay, truth: Truth, t: float, later: Sequence[float]) -> list[Claim]:
    """Bounds of the modulus from some t on, at that t and beyond."""
    claims = []
    for each in (t, *(t * x for x in later)):
        exact = size(transform_of(truth.pair, truth.tilt, each))
        for name, alone in parts_of(found).items():
            bound = float(alone.largest(np.array([t]))[0])
            if bound < 0.999:
                claims.append(Claim(f"modulus by {name.split()[0]}", exact, bound))
    return claims


def of_flat_part(
    found: Decay, truth: Truth, t: float, flat: list[tuple[float, float]]
) -> list[Claim]:
    """The transform without its flat part, and the masses of that part."""
    pair, claims = truth.pair, []
    rest = transform_of(pair, truth.tilt, t) - truth.transform(t, flat)
    bound = found.variation / t + found.root / math.sqrt(t)
    claims.append(Claim("beside the flat part", size(rest), bound))
    with ctx.workprec(BITS):
        tilted = size(truth.transform(0.0, flat))
        claims.append(Claim("flat part, tilted", tilted, found.flat))
        for law, most in zip((0, 1), found.flat_masses, strict=True):
            mass = sum((pair.mean(acb(law), 0.0, part) for part in flat), acb(0))
            claims.append(Claim(f"flat part of {'AB'[law]}", size(mass), most))
    return claims


def of_shape(made: AnalyticShape, pair: Pair, places: Array) -> list[Claim]:
    """Losses at given points, and the masses beyond the ends."""
    low, high = made.ends
    claims = []
    with ctx.workprec(BITS):
        for x in places.tolist():
            off = size(pair.loss(acb(x)).real - (arb(low) + arb(high)) / 2)
            claims.append(Claim("losses", off, 0.5 * (high - low) * (1.0 + 1e-15)))
    for name, mass, most in zip("AB", pair.beyond(), made.removed, strict=True):
        claims.append(Claim(f"removed of {name}", mass * (1.0 - 1e-15), most))
    return claims


# ---- random steps --------------------------------------------------------------------------------


def drawn(rng: np.random.Generator) -> Pair:
    """A random pair."""
    family = ("logistic", "secant", "normal", "student")[int(rng.integers(4))]
    scale = f"{evenly(rng, 0.8, 1.25):.4g}" if family == "normal" and rng.random() < 0.5 else "1"
    rate = "1" if rng.random() < 0.4 else f"{evenly(rng, 1e-3, 0.9):.4g}"
    return Pair(family, f"{evenly(rng, 0.02, 2.0):.4g}", scale, rate)


def claims_of(
    engine: Patched, pair: Pair, tilts: Sequence[float], rng: np.random.Generator
) -> Iterator[Claim]:
    """Claims about a random pair at tilts; `OverflowError` where that is not supported."""
    made = pair.shape()
    low, high = pair.interval
    inner = rng.standard_normal(12) * 3.0
    yield from of_shape(made, pair, np.array([low, high, *inner]))
    for tilt in tilts:
        mean, _, variance = (float(x[0]) for x in made.cumulants(np.array([tilt])))
        steps = int(float(f"{evenly(rng, 2, 1e4):.4g}"))
        reach = math.sqrt(66.0 / (steps * variance)) * rng.uniform(0.3, 2.5)
        truth = truth_of(pair, tilt)
        yield above("bound of the log mean", made.log_mean_bound(tilt), truth.log_mean)
        rule = PanelRule(int(rng.choice(PARTS[:2])), int(rng.choice([6, 8, *SIZES[:4]])), 0.0)
        claim = of_rule(made, truth, float(rng.uniform(0.0, reach)), rule)
        if claim.bound < 1.0:
            yield claim
        found = made.tilted(At(tilt, mean + rng.uniform(-1.0, 1.0), steps), reach, 1e-15, 0.0)
        if found is None:
            continue
        assert isinstance(found, AnalyticStep)
        yield of_mean(found, truth)
        yield from of_transform(found, truth, np.append(0.0, rng.uniform(0.0, reach, 3)), None)
        spacing = float(np.float32(reach / 3.1))
        yield from of_transform(found, truth, spacing * np.arange(4.0), spacing)
        other = tilt + float(rng.uniform(-1.0, 1.0))
        yield above("bound at another tilt", found.bound_at(other), truth_of(pair, other).log_mean)
        with flat_cells(engine) as noted:
            of_cells = found.decay
        t = reach * 10.0 ** float(rng.uniform(-0.5, 1.4))
        yield from of_moduli(of_cells, truth, t, rng.uniform(1.0, 3.0, 2).tolist())
        yield from of_flat_part(of_cells, truth, t, flat_intervals(made, noted[-1], CELLS))


def claims(engine: Patched, seed: int) -> Iterator[Claim]:
    """Claims about random pairs at random tilts."""
    rng = np.random.default_rng(seed)
    while True:
        pair = drawn(rng)
        tilts = [round(float(x), 3) for x in rng.uniform(-30.0, 30.0, 2)]
        tilts += [round(float(rng.uniform(-2.0, 3.0)), 3)]
        for claim in claims_of(engine, pair, tilts, rng):
            yield claim._replace(where=f"{pair}, {tilts}")
