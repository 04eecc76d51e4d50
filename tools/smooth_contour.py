"""Random answers with bounds about densities, batches under substitution, and epochs.

    python tools/campaigns.py smooth --seed 1 --minutes 5

Steps are pairs of analytic densities (logistic, hyperbolic secant, normal of another scale) from
SciPy, 12 to 2,000 times; such pairs and Student's law as expressions, on Poisson samples or on all
data, 2 to 100,000 times; one batch of fixed size with a record substituted; and one to five epochs
of random allocation. Truths share no code with the engines: lines of ``tools/second_contour.py`` on
nodes of the densities in long double, normal tails in 40 digits at the threshold of the one step,
and `pyengine.reference`. Estimates are counted as such.
"""

from __future__ import annotations

import ctypes
import math
from collections.abc import Callable
from decimal import Decimal
from fractions import Fraction
from typing import Any, NamedTuple

import mpmath
import numpy as np
from bounds_tally import Truth
from contour_truths import LD, PI
from mixture_contour import MixtureLine
from random_mechanisms import evenly
from scipy import stats
from second_contour import asked_on, referred, second_contour

import pyengine as pe
from pyengine.analytic import Expression, cosh, exp, log, number, pi, sqrt, z

HALF_LOG_2PI = np.log(2 * PI) / 2
DEEPEST = 11_000.0  # logs of the range of weights in long double


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(f"{evenly(rng, low, high):.4g}")


def _logistic(x: Any) -> Any:
    far = np.abs(x)
    return -far - 2 * np.log1p(np.exp(-far))


def _secant(x: Any) -> Any:
    far = np.abs(x)
    return np.log(2 / PI) - far - np.log1p(np.exp(-2 * far))


def _normal(x: Any) -> Any:
    return -x * x / 2 - HALF_LOG_2PI


def _student(x: Any) -> Any:
    return np.log(2 / (PI * np.sqrt(LD(3)))) - 2 * np.log1p(x * x / 3)


class Shape(NamedTuple):
    """A density: its name in SciPy, its log, and half the width of the strip without a pole.

    And the log as an expression.
    """

    name: str
    log: Callable[[Any], Any]
    strip: float
    expression: Expression


SHAPES = (
    Shape("logistic", _logistic, math.pi, -z - 2 * log(1 + exp(-z))),
    Shape("hypsecant", _secant, math.pi / 2, -log(pi * cosh(z))),
    Shape("norm", _normal, 6.0, -z * z / 2 - log(2 * pi) / 2),
)
STUDENT = Shape(
    "t", _student, math.sqrt(3), log(2 / (pi * sqrt(number(3)))) - 2 * log(1 + z * z / 3)
)


class DensityKind(NamedTuple):
    """Steps of a pair of densities: one about 0, the other shifted, and normal ones stretched."""

    shape: Shape
    shift: float
    scale: float
    steps: int
    rate: float = 1.0
    pairs: tuple[None, ...] = (None, None)  # transforms of bounded losses oscillate

    def mechanism(self) -> pe.Mechanism:
        """The mechanism under test, by SciPy's densities."""
        law = getattr(stats, self.shape.name)
        return pe.from_distributions(law(0.0, 1.0), law(self.shift, self.scale)).composed(
            self.steps
        )

    def expressed(self) -> pe.Mechanism:
        """The same by expressions."""
        log_p, scale = self.shape.expression, Fraction(self.scale)
        log_q = log_p.at((z - Fraction(self.shift)) / scale) - log(number(scale))
        step: pe.Mechanism = pe.from_analytic_densities(log_p, log_q)
        return (step if self.rate == 1.0 else step.poisson_sampled(self.rate)).composed(self.steps)

    def _turned(self, fine: float) -> tuple[Any, Any]:
        """Student's law by Gauss's rules in the arc tangent."""
        panels = round(24 / fine)
        edges = np.linspace(-np.pi / 2, np.pi / 2, panels + 1).astype(LD)
        place, weight = np.polynomial.legendre.leggauss(24)
        half = np.diff(edges)[:, None] / 2
        theta = (edges[:-1, None] + half + half * place.astype(LD)).ravel()
        x, share = np.sqrt(LD(3)) * np.tan(theta), (half * weight.astype(LD)).ravel()
        return x, np.log(share * np.sqrt(LD(3))) - 2 * np.log(np.cos(theta))

    def nodes(self, lam: float, fine: float, reach: float) -> tuple[Any, Any]:
        """Logs of weights under A, and losses, at equally spaced points."""
        # the middle and the scale of a normal tilted density, else its tails
        if self.shape.name == "t":
            x, log_weight = self._turned(fine)
            return self._at(lam, x, log_weight)
        precision = (1.0 - lam) + lam / self.scale**2
        if self.shape.name == "norm":
            if not precision > 0.1:
                raise OverflowError
            middle = lam * self.shift / self.scale**2 / precision
            half = reach / math.sqrt(min(precision, 1.0, self.scale**-2))
        else:
            middle, half = 0.5 * self.shift, reach * reach / 2.0 + 2.0 * abs(self.shift)
        ends = (min(middle, 0.0) - half, max(middle, self.shift) + half)
        strip = min(self.shape.strip, 0.9 * math.pi / self.shift if self.rate < 1.0 else 99.0)
        spacing = fine * 0.06 * strip * min(1.0, self.scale)
        count = math.ceil((ends[1] - ends[0]) / spacing)
        if count > 40_000:
            raise OverflowError
        x = LD(ends[0]) + (np.arange(count).astype(LD) + LD(0.5)) * LD(spacing)
        return self._at(lam, x, np.log(LD(spacing)))

    def _at(self, lam: float, x: Any, log_weight: Any) -> tuple[Any, Any]:
        """Logs of weights and losses at weighted points."""
        shift, scale, rate = LD(self.shift), LD(self.scale), LD(self.rate)
        log_a = self.shape.log(x)
        loss = self.shape.log((x - shift) / scale) - np.log(scale) - log_a
        if self.rate < 1.0:
            loss = np.where(
                np.abs(loss) < 1,
                np.log1p(rate * np.expm1(loss)),
                np.log(1 - rate + rate * np.exp(loss)),
            )
        if abs(lam) * float(np.abs(loss).max()) > DEEPEST:
            raise OverflowError
        return log_weight + log_a, loss


class DensityLine(MixtureLine):
    """Functionals on the vertical line through a tilt."""

    def _given(self, fine: float, reach: float) -> tuple[list[Any], list[Any]]:
        kind = self._kinds[0]
        weights, losses = kind.nodes(self._lam, fine, reach)  # type: ignore[attr-defined]
        arrays = [
            np.array([weights.size], dtype=np.int64),
            weights.astype(LD),
            losses.astype(LD),
            np.array([kind.steps], dtype=np.float64),
        ]
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]
        return [1, *pointers, ctypes.c_double(self._lam)], arrays


def densities(rng: np.random.Generator) -> tuple[pe.Mechanism, list[Truth]]:
    """Equal steps of a pair of analytic densities."""
    shape = SHAPES[rng.integers(len(SHAPES))]
    scale = float(f"{rng.uniform(0.8, 1.25):.3g}") if shape.name == "norm" else 1.0
    steps = int(_log_uniform(rng, 12.0, 2000.0))
    kind = DensityKind(shape, _log_uniform(rng, 0.05, 2.0), scale, steps)
    found = asked_on(lambda lam: DensityLine(second_contour(), [kind], lam), rng)  # type: ignore[list-item]
    return kind.mechanism(), found[:: max(1, len(found) // 60)]


def expressions(rng: np.random.Generator) -> tuple[pe.Mechanism, list[Truth]]:
    """Equal steps of a pair of densities that are expressions, on samples or on all data."""
    shapes = (*SHAPES, STUDENT)
    shape = shapes[rng.integers(len(shapes))]
    scale = float(f"{rng.uniform(0.8, 1.25):.3g}") if shape.name == "norm" else 1.0
    rate = _log_uniform(rng, 1e-3, 1.0) if rng.random() < 0.5 else 1.0
    steps = int(_log_uniform(rng, 2.0, 1e5))
    kind = DensityKind(shape, _log_uniform(rng, 0.02, 2.0), scale, steps, rate)
    found = asked_on(lambda lam: DensityLine(second_contour(), [kind], lam), rng)  # type: ignore[list-item]
    return kind.expressed(), found[:: max(1, len(found) // 60)]


def batches(rng: np.random.Generator) -> tuple[pe.Mechanism, list[Truth]]:
    """One batch of fixed size under substitution, by the threshold of its only step."""
    noise, records = _log_uniform(rng, 0.4, 30.0), int(_log_uniform(rng, 4.0, 1e5))
    batch = int(rng.integers(1, max(2, records // 2)))
    run = pe.GaussianMechanism(noise).sampled_without_replacement(
        batch_size=batch, dataset_size=records
    )
    asked: list[Truth] = []
    with mpmath.workdps(40):
        mu, rate = 2 / mpmath.mpf(noise), mpmath.mpf(batch) / records
        for _ in range(40):
            epsilon = _log_uniform(rng, 1e-6, 30.0)
            rest = mpmath.expm1(epsilon) + rate
            z = mpmath.log(rest / rate) / mu + mu / 2
            level = mpmath.ncdf(-z)
            moved = rate * mpmath.ncdf(mu - z)
            values = level, (1 - rate) * level + moved, moved - rest * level
            if not min(values) > mpmath.mpf(10) ** -280 or values[2] < values[0] * 10**-8 * rest:
                continue
            p, q, h = (Decimal(mpmath.nstr(value, 30)) for value in values)
            asked += _of_one_test(p, q, h, epsilon)
    return run, asked


def _of_one_test(level: Decimal, power: Decimal, profile: Decimal, epsilon: float) -> list[Truth]:
    """Questions that one test answers, corrected for the rounding of arguments."""
    kappa, delta = float(level), float(profile)
    slope = Decimal(epsilon).exp()
    gamma = power + slope * (Decimal(kappa) - level)
    moved = Decimal(epsilon) + (profile - Decimal(delta)) / (slope * level)
    return [
        Truth("gamma_bound", kappa, "substitute", gamma, 1e-15),
        Truth("trade_off", kappa, "substitute", 1 - gamma, 1e-15),
        Truth("delta", epsilon, "substitute", profile, 1e-18),
        Truth("epsilon", delta, "substitute", moved, 1e-15),
    ]


def epochs(rng: np.random.Generator, seconds: float) -> tuple[pe.Mechanism, list[Truth]]:
    """One to five epochs of random allocation; the truth is the reference, as far as it reaches."""
    steps = int(_log_uniform(rng, 2.0, 1e4))
    run = pe.GaussianMechanism(_log_uniform(rng, 0.6, 6.0)).randomly_allocated(steps)
    run = run.composed(int(rng.integers(1, 6)))
    return run, referred(run, rng, seconds)
