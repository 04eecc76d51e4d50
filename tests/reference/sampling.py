"""The points of the domain: what is drawn, stratum by stratum, from one seed."""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np

from .model import Phase, Point
from .saddle import Cumulants

STRATA = {
    "domain": 1200,
    "few_steps": 260,
    "small_noise": 130,
    "near_full_batch": 150,
    "full_batch": 50,
    "seams": 180,
    "centre": 100,
    "ordinary": 160,
    "phases": 80,
    "many_phases": 8,
}
FEW = (1, 2, 3, 4, 5, 8, 16, 30)
MOST_STEPS = 10**8


@dataclass(frozen=True)
class Draw:
    """A composition and the tail that its threshold is to have, before the threshold is solved."""

    stratum: str
    phases: tuple[Phase, ...]
    measure: str
    log10_tail: float
    threshold: float | None = None


def order() -> list[tuple[str, int]]:
    """Return all (stratum, index) pairs, interleaved so that any prefix is a fair sample."""
    pairs = [
        ((k + 0.5) / count, stratum, k) for stratum, count in STRATA.items() for k in range(count)
    ]
    return [(stratum, k) for _, stratum, k in sorted(pairs)]


def draw(seed: int, stratum: str, index: int) -> Draw:
    """Return one draw; it depends on the seed, the stratum and the index only."""
    rng = np.random.default_rng([seed, list(STRATA).index(stratum), index])
    phases = _phases(rng, stratum)
    measure, log10_tail = _tail(rng, stratum)
    threshold = None
    if stratum == "centre" and index % 2 == 0:
        threshold = _central_threshold(rng, phases)
    return Draw(stratum, phases, measure, log10_tail, threshold)


def neighbours(point: Point) -> list[Point]:
    """Return the point at one lower and one higher threshold that its transform serves too."""
    cumulants = Cumulants(point.phases)
    offset = float(point.offset_threshold())
    sd = math.sqrt(cumulants.mean_variance(cumulants.saddle(offset))[1])
    bounded = not any(phase.full_batch for phase in point.phases)
    step = min(0.8 * sd, 0.3 * offset) if bounded else 0.8 * sd
    near = [point.at(point.threshold + step * factor) for factor in (-1.0, 0.9)]
    return [p for p in near if p.threshold != point.threshold]


def place(drawn: Draw) -> Point | None:
    """Solve for the threshold and round it; None if no double is just above the infimum."""
    if drawn.threshold is not None:
        return _checked(drawn, drawn.threshold)
    log_tail = drawn.log10_tail * math.log(10)
    steps = sum(phase.steps for phase in drawn.phases)
    cut = math.sqrt(2 * (10 + math.log(steps) - log_tail))
    if drawn.measure.startswith("q"):
        cut += max(1 / float(phase.noise) for phase in drawn.phases)
    cumulants = Cumulants(drawn.phases, cut)
    offset = cumulants.threshold(drawn.measure, log_tail)
    return _checked(drawn, offset + cumulants.shift)


def _checked(drawn: Draw, threshold: float) -> Point | None:
    bounded = not any(phase.full_batch for phase in drawn.phases)
    cumulants = Cumulants(drawn.phases)
    for _ in range(4):
        point = Point(drawn.phases, threshold, drawn.stratum)
        if not bounded or _lower_tail_is_normal(point, cumulants):
            return point
        threshold = math.nextafter(threshold, math.inf)
    return None


def _lower_tail_is_normal(point: Point, cumulants: Cumulants) -> bool:
    """Whether rounding left P(S <= c) representable: S has a finite infimum."""
    offset = point.offset_threshold()
    if not offset > 0:
        return False
    return cumulants.log_tail("p_below", cumulants.saddle(float(offset))) > -690


def _log_uniform(rng: np.random.Generator, low: float, high: float) -> float:
    return float(np.exp(rng.uniform(math.log(low), math.log(high))))


def _any_noise(rng: np.random.Generator) -> float:
    return _log_uniform(rng, 0.2, 100.0)


def _any_probability(rng: np.random.Generator) -> float:
    return _log_uniform(rng, 1e-7, 1.0)


def _any_steps(rng: np.random.Generator) -> int:
    kind = rng.random()
    if kind < 0.75:
        return round(_log_uniform(rng, 1, MOST_STEPS))
    if kind < 0.95:
        return int(rng.choice([*FEW, 100]))
    return int(rng.choice([MOST_STEPS, MOST_STEPS - 1, 10**7]))


def _near_one(rng: np.random.Generator) -> float:
    return 1.0 - _log_uniform(rng, 1.2e-16, 0.5)


def _phases(rng: np.random.Generator, stratum: str) -> tuple[Phase, ...]:
    if stratum == "many_phases":
        p, n = _log_uniform(rng, 1e-3, 0.3), int(rng.integers(1, 50))
        first, last = sorted((_log_uniform(rng, 0.6, 3.0), _log_uniform(rng, 0.6, 3.0)))
        return tuple(Phase(float(x), p, n) for x in np.linspace(first, last, 200))
    if stratum == "phases":
        return tuple(
            Phase(
                _log_uniform(rng, 0.3, 30.0),
                _log_uniform(rng, 1e-6, 1.0),
                round(_log_uniform(rng, 1, 1e6)),
            )
            for _ in range(int(rng.integers(2, 4)))
        )
    noise, probability, steps = _any_noise(rng), _any_probability(rng), _any_steps(rng)
    if stratum == "few_steps":
        steps = int(rng.choice(FEW))
        if rng.random() < 0.5:
            noise = _log_uniform(rng, 0.2, 3.0)
    elif stratum == "small_noise":
        noise = _log_uniform(rng, 0.2, 0.6)
    elif stratum == "near_full_batch":
        probability = _near_one(rng)
    elif stratum == "full_batch":
        probability = 1.0
    elif stratum == "seams":
        which = rng.integers(1, 8)
        if which & 1:
            noise = float(rng.choice([0.2, 1.0, 100.0]))
        if which & 2:
            probability = float(rng.choice([1e-7, 0.5, 1 - 2.0**-53]))
        if which & 4:
            steps = int(rng.choice([2, MOST_STEPS]))
    elif stratum == "ordinary":
        noise = _log_uniform(rng, 0.5, 5.0)
        probability = _log_uniform(rng, 1e-4, 0.1)
        steps = round(_log_uniform(rng, 100, 1e5))
    return (Phase(noise, probability, steps),)


def _tail(rng: np.random.Generator, stratum: str) -> tuple[str, float]:
    if stratum == "ordinary":
        measure = str(rng.choice(["p_above", "p_above", "q_below"]))
        return measure, float(rng.uniform(-9, -0.3))
    if stratum == "centre":
        return "p_above", math.log10(0.5) + float(rng.uniform(-1e-3, 1e-3))
    kind = rng.random()
    if kind < 0.2:
        return str(rng.choice(["p_below", "q_above"])), float(rng.uniform(-16, -0.3))
    measure = str(rng.choice(["p_above", "p_above", "q_below"]))
    return measure, float(rng.uniform(-300 if kind < 0.6 else -20, -0.3))


def _central_threshold(rng: np.random.Generator, phases: tuple[Phase, ...]) -> float:
    if rng.random() < 0.4:
        return 0.0
    cumulants = Cumulants(phases)
    variance = cumulants.mean_variance(0.5)[1]
    return float(rng.normal()) * math.sqrt(variance) * _log_uniform(rng, 1e-12, 1.0)
