"""A second program for the worst strategy of menus of mixed kinds, which shares no code.

V(x) = W(e^x) - (e^x - 1)+ is represented by cubic splines in x between its corners, which come from
one or two losses that are atoms. Means of W are sums over atoms and Gauss-Legendre panels of the
noise. Values are estimates; their error is the difference of two spacings.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.interpolate import CubicSpline
from scipy.special import ndtr

import pyengine as pe

FloatArray = npt.NDArray[np.float64]
FARTHEST = 8.5  # standard deviations of the noise
KINDS = ("gaussian", "sampled gaussian", "laplace", "response")
SORTS = ("no limits", "uses", "costs", "uses of two", "order of the menu")
MANY = ("no limits", "order of the menu")  # for many steps: few states


@dataclass(frozen=True)
class Choice:
    """A step: its kind, the noise or the probability of a true response, and the rate."""

    kind: str
    noise: float
    rate: float

    @property
    def mechanism(self) -> pe.Mechanism:
        """The same for pyengine."""
        if self.kind == "response":
            step: Any = pe.RandomizedResponse(self.noise)
        else:
            make = pe.LaplaceMechanism if self.kind == "laplace" else pe.GaussianMechanism
            step = make(self.noise)
        return step if self.rate == 1.0 else step.poisson_sampled(self.rate)  # type: ignore[no-any-return]


@dataclass(frozen=True)
class Case:
    """A menu, its limits, and the question."""

    menu: tuple[Choice, ...]
    steps: int
    sort: str
    most: tuple[int, ...]  # of each choice; of both of the first two for "uses of two"
    costs: tuple[int, ...]
    budget: int
    epsilon: float
    order: Any

    @property
    def run(self) -> Any:
        """The run for pyengine."""
        words: dict[str, Any] = {}
        if self.sort == "uses":
            words["most"] = dict(enumerate(self.most))
        elif self.sort == "uses of two":
            words["most"] = {(0, 1): self.most[0]}
        elif self.sort == "costs":
            words |= {"costs": self.costs, "budget": self.budget}
        elif self.sort == "order of the menu":
            words["order"] = "menu"
        return pe.adaptive([choice.mechanism for choice in self.menu], self.steps, **words)

    def allows(self, made: tuple[int, ...], choice: int) -> bool:
        """Whether a choice may follow so many uses of each."""
        after = tuple(k + (i == choice) for i, k in enumerate(made))
        if self.sort == "uses":
            return after[choice] <= self.most[choice]
        if self.sort == "uses of two":
            return sum(after[:2]) <= self.most[0]
        if self.sort == "costs":
            return sum(k * cost for k, cost in zip(after, self.costs, strict=True)) <= self.budget
        return self.sort == "no limits" or not any(made[choice + 1 :])

    def alike(self, made: tuple[int, ...]) -> tuple[int, ...]:
        """Numbers of uses after which the same choices remain, as one representative."""
        if self.sort not in MANY:
            return made
        last = max((i for i, k in enumerate(made) if k), default=0)
        place = last if self.sort == "order of the menu" else 0
        return tuple(sum(made) if i == place else 0 for i in range(len(made)))


def releases(choice: Choice, panels: int) -> tuple[FloatArray, FloatArray]:
    """Logs of the density with the record over that without it, and masses without it."""
    node, weight = np.polynomial.legendre.leggauss(8)
    low, high = (0.0, 1.0) if choice.kind == "laplace" else (-FARTHEST, FARTHEST)
    edges = np.linspace(low, high, panels + 1)
    middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
    z = (middle[:, None] + half[:, None] * node).ravel()
    mass = (half[:, None] * weight).ravel()
    if choice.kind == "response":
        p = choice.noise
        loss = np.array([math.log(p / (1.0 - p)), math.log((1.0 - p) / p)])
        mass = np.array([1.0 - p, p])
    elif choice.kind == "laplace":  # noise at z; its two ends have one loss each
        b = choice.noise
        loss = np.concatenate([(2.0 * z - 1.0) / b, [-1.0 / b, 1.0 / b]])
        mass = np.concatenate([mass * np.exp(-z / b) / (2.0 * b), [0.5, 0.5 * math.exp(-1.0 / b)]])
    else:
        mu = 1.0 / choice.noise
        loss = mu * z - 0.5 * mu * mu
        mass = mass * np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    return np.asarray(np.log1p(choice.rate * np.expm1(loss))), mass


def profile(choice: Choice, x: FloatArray, order: str) -> FloatArray:
    """H_k - (1 - k)+ of one step at k = e^x."""
    if order == "add":  # V_add(k) = k V_remove(1/k)
        return np.asarray(np.exp(x) * profile(choice, -x, "remove"))
    p = choice.rate
    inner = 1.0 + np.expm1(x) / p
    alive = inner > 0.0
    log = np.log(np.where(alive, inner, 1.0))
    far = np.abs(log)
    if choice.kind == "response":
        true = choice.noise
        value = np.maximum(true - np.exp(far) * (1.0 - true), 0.0)
    elif choice.kind == "laplace":
        value = np.maximum(-np.expm1(0.5 * (far - 1.0 / choice.noise)), 0.0)
    else:
        mu = 1.0 / choice.noise
        value = ndtr(0.5 * mu - far / mu) - np.exp(far) * ndtr(-0.5 * mu - far / mu)
    value = np.where(log < 0.0, np.exp(log) * value, value)
    return np.asarray(np.where(alive, p * np.maximum(value, 0.0), 0.0))


def largest_delta(case: Case, spacing: float, panels: int, least: int = 3) -> float:
    """δ(ε) of the worst strategy, with at least a given number of cells between corners."""
    moves, reach, corners = [], 0.0, [0.0]
    for choice in case.menu:
        loss, mass = releases(choice, panels)
        shift, law = (loss, mass) if case.order == "remove" else (-loss, mass * np.exp(loss))
        moves.append((shift, law))
        spread = 6.5 * math.sqrt(case.steps * float((mass * loss * loss).sum()))
        reach = max(reach, spread + float(np.abs(loss[mass > 1e-11]).max()))
        if choice.kind in ("laplace", "response"):
            corners += [float(-shift[-2]), float(-shift[-1])]
    end = case.epsilon + reach + spacing
    breaks = np.unique(np.round(np.add.outer(corners, corners), 12))
    breaks = np.concatenate([[-end], breaks[np.abs(breaks) < end], [end]])
    pieces = [
        np.linspace(a, b, max(math.ceil((b - a) / spacing), least) + 1) for a, b in pairwise(breaks)
    ]
    x = np.concatenate([pieces[0][:1], *(piece[1:] for piece in pieces)])
    starts = np.concatenate([[0], np.cumsum([piece.size - 1 for piece in pieces])])
    stopped = np.maximum(np.expm1(x), 0.0)
    known: dict[tuple[int, ...], FloatArray] = {}

    def value(made: tuple[int, ...], at: FloatArray = x) -> FloatArray:
        if made in known:
            return known[made]
        best = np.maximum(np.expm1(at), 0.0)
        for i, (shift, law) in enumerate(moves):
            if sum(made) == case.steps or not case.allows(made, i):
                continue
            then = case.alike(tuple(k + (j == i) for j, k in enumerate(made)))
            if is_last(then):  # W_0 has a corner: in closed form
                total = np.maximum(np.expm1(at), 0.0)
                total += np.exp(at) * profile(case.menu[i], -at, case.order)
            else:
                after, total = worth(value(then)), np.zeros(at.size)
                for start in range(0, shift.size, 64):
                    part = slice(start, start + 64)
                    total += after(at[:, None] + shift[part]) @ law[part]
            np.maximum(best, total, out=best)
        known[made] = best
        return best

    def is_last(made: tuple[int, ...]) -> bool:
        return sum(made) == case.steps or not any(case.allows(made, i) for i in range(len(moves)))

    def worth(w: FloatArray) -> Callable[[FloatArray], FloatArray]:
        v = w - stopped
        parts = [
            CubicSpline(x[i : j + 1], v[i : j + 1], extrapolate=False) for i, j in pairwise(starts)
        ]
        rows = np.concatenate([part.c.T for part in parts])

        def at(y: FloatArray) -> FloatArray:
            cell = np.clip(np.searchsorted(x, y, side="right") - 1, 0, x.size - 2)
            a, b, c, d = rows[cell].transpose(-1, *range(y.ndim))
            u = y - x[cell]
            found = np.where(np.abs(y) <= end, ((a * u + b) * u + c) * u + d, 0.0)
            return np.asarray(found + np.maximum(np.expm1(y), 0.0))

        return at

    found = value((0,) * len(moves), np.array([-case.epsilon]))
    return float(math.exp(case.epsilon) * found[0])


def drawn(rng: np.random.Generator, *, many: bool = False) -> Case:
    """A random menu of one to three choices, one kind of limits, ε and an order of neighbours.

    Up to 4 steps, or 5 to 80 if these have few states. Menus of randomized response alone have
    exact policy trees (test_adaptive).
    """
    steps = round(5.0 * 16.0 ** rng.random()) if many else int(rng.integers(1, 5))
    size = int(rng.integers(1, 4))
    menu: list[Choice] = []
    while len(menu) < size or all(choice.kind == "response" for choice in menu):
        menu = menu if len(menu) < size else []
        kind = str(rng.choice(KINDS, p=[0.15, 0.55, 0.15, 0.15]))
        rate = round(math.exp(rng.uniform(math.log(0.02), math.log(0.3))), 4)
        if kind == "gaussian" or (kind != "sampled gaussian" and rng.random() < 0.3):
            rate = 1.0
        scale = 4.0 if rate == 1.0 and kind != "response" else 1.0
        noise = round(scale * math.exp(rng.uniform(math.log(0.8), math.log(4.0))), 3)
        if kind == "response":
            noise = round(rng.uniform(0.52, 0.6 if rate == 1.0 else 0.9), 3)
        menu.append(Choice(kind, noise, rate))
    sort = str(rng.choice(MANY if many else SORTS[: 5 if size > 1 else 3]))
    most = tuple(int(k) for k in rng.integers(1, steps + 1, size))
    costs = tuple(int(k) for k in rng.integers(1, 4, size))
    budget = int(rng.integers(min(costs), steps * max(costs) + 1))
    order: Any = str(rng.choice(["add", "remove"]))
    delta = 10.0 ** -rng.uniform(1.5, 5.0)
    run: Any = menu[0].mechanism.composed(max(steps // 2, 1))
    epsilon = round(float(pe.epsilon(run, delta, adjacency=order)), 3)
    return Case(tuple(menu), steps, sort, most, costs, budget, epsilon, order)


def judged(case: Case, tolerance: float) -> tuple[Any, float, float]:
    """Proven bounds of pyengine, the second program's value, and its approximate error."""
    value, error = value_and_error(case)
    return bounds_of(case, tolerance), value, error


def bounds_of(case: Case, tolerance: float) -> Any:
    """Proven bounds of pyengine."""
    return pe.delta(case.run, case.epsilon, adjacency=case.order, bounds=True, tolerance=tolerance)


def value_and_error(case: Case) -> list[float]:
    """The second program's value, and its approximate error."""
    deviation = min(profile(c, np.zeros(1), "remove")[0] for c in case.menu)
    spacing = min(0.4 * float(deviation), 0.04)
    # two grids may have the same error where a mean has a corner
    values = [
        largest_delta(case, spacing * part, panels, least)
        for part, panels, least in ((1.0, 12, 3), (0.5, 24, 6), (0.25, 48, 12))
    ]
    return [values[-1], max(values) - min(values)]


def is_outside(found: Any, value: float, error: float) -> bool:
    """Whether a value is certainly outside the bounds: by more than 8 times its estimated error."""
    doubt = 8.0 * error + 1e-8 * value + 1e-15
    return bool(value + doubt < found.lower or value - doubt > found.upper)
