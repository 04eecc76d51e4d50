"""A second program for the worst strategy of sampled Gaussian menus, which shares no code.

V(x) = W(e^x) - (e^x - 1)+ is kept as cubic splines in x on both sides of 0, and means of W, which
has no corner there, are sums of Gauss-Legendre panels over the noise.  Values are estimates: two
spacings say how good.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
from scipy.interpolate import CubicSpline
from scipy.special import ndtr

import pyengine as pe

FloatArray = npt.NDArray[np.float64]
FARTHEST = 10.0  # standard deviations of the noise


@dataclass(frozen=True)
class Choice:
    """A sampled Gaussian step, and how often it may be made."""

    noise: float
    rate: float
    most: int


Case = tuple[list[Choice], int, float, str]  # menu, steps, ε and order


def log_ratio(choice: Choice, z: FloatArray) -> FloatArray:
    """Log of the density with the record over that without it, at z noises from the latter."""
    mu = 1.0 / choice.noise
    return np.asarray(np.log1p(choice.rate * np.expm1(mu * z - 0.5 * mu * mu)))


def profile(choice: Choice, x: FloatArray, order: str) -> FloatArray:
    """H_k - (1 - k)+ of one step at k = e^x."""
    if order == "add":  # V_add(k) = k V_remove(1/k)
        return np.asarray(np.exp(x) * profile(choice, -x, "remove"))
    mu, p = 1.0 / choice.noise, choice.rate
    inner = 1.0 + np.expm1(x) / p
    alive = inner > 0.0
    log = np.log(np.where(alive, inner, 1.0))
    far = np.abs(log) / mu
    value = ndtr(0.5 * mu - far) - np.exp(np.abs(log)) * ndtr(-0.5 * mu - far)
    value = np.where(log < 0.0, np.exp(log) * value, value)
    return np.asarray(np.where(alive, p * np.maximum(value, 0.0), 0.0))


def largest_delta(
    menu: list[Choice], steps: int, epsilon: float, order: str, spacing: float, panels: int
) -> float:
    """δ(ε) of the worst strategy of so many steps."""
    edges = np.linspace(-FARTHEST, FARTHEST, panels + 1)
    node, weight = np.polynomial.legendre.leggauss(8)
    middle, half = 0.5 * (edges[1:] + edges[:-1]), 0.5 * np.diff(edges)
    z = (middle[:, None] + half[:, None] * node).ravel()
    mass = (half[:, None] * weight).ravel() * np.exp(-0.5 * z * z) / math.sqrt(2.0 * math.pi)
    reach = 0.0
    moves = []
    for choice in menu:
        loss = log_ratio(choice, z)
        shift, law = (loss, mass) if order == "remove" else (-loss, mass * np.exp(loss))
        moves.append((shift, law))
        spread = 6.5 * math.sqrt(steps * float((mass * loss * loss).sum()))
        reach = max(reach, spread + float(np.abs(loss[np.abs(z) < 6.5]).max()))
    side = np.arange(0.0, epsilon + reach + spacing, spacing)
    x = np.concatenate([-side[:0:-1], side])
    zero = side.size - 1
    stopped = np.maximum(np.expm1(x), 0.0)
    first = [stopped + np.exp(x) * profile(choice, -x, order) for choice in menu]
    known: dict[tuple[int, tuple[int, ...]], FloatArray] = {}

    def value(left: int, uses: tuple[int, ...]) -> FloatArray:
        uses = tuple(min(k, left) for k in uses)
        if (left, uses) in known:
            return known[left, uses]
        best = stopped.copy()
        for i, (shift, law) in enumerate(moves):
            if left == 0 or uses[i] == 0:
                continue
            rest = tuple(k - (j == i) for j, k in enumerate(uses))
            after = value(left - 1, rest)
            if left == 1 or not any(rest):  # W_0 has a corner: in closed form
                total = first[i]
            else:
                total = worth(after)(x[:, None] + shift) @ law
            np.maximum(best, total, out=best)
        known[left, uses] = best
        return best

    def worth(w: FloatArray) -> Callable[[FloatArray], FloatArray]:
        v = w - stopped
        low, high = CubicSpline(x[: zero + 1], v[: zero + 1]), CubicSpline(x[zero:], v[zero:])

        def at(y: FloatArray) -> FloatArray:
            inside = np.clip(y, x[0], x[-1])
            found = np.where(inside < 0.0, low(inside), high(inside))
            found = np.where(inside == y, found, 0.0)
            return np.asarray(found + np.maximum(np.expm1(y), 0.0))

        return at

    found = value(steps, tuple(choice.most for choice in menu))
    return float(math.exp(epsilon) * worth(found)(np.array([-epsilon]))[0])


def drawn(rng: np.random.Generator) -> Case:
    """A random menu of one to three choices, a number of steps, ε and an order of neighbours."""
    steps = int(rng.integers(1, 9))
    menu = []
    for _ in range(int(rng.integers(1, 4))):
        noise = round(math.exp(rng.uniform(math.log(0.8), math.log(4.0))), 3)
        rate = round(math.exp(rng.uniform(math.log(0.005), math.log(0.3))), 4)
        limit = int(rng.integers(1, steps + 1)) if rng.random() < 0.3 else steps
        menu.append(Choice(noise, rate, limit))
    order = str(rng.choice(["add", "remove"]))
    one = pe.GaussianMechanism(menu[0].noise).poisson_sampled(menu[0].rate)
    run, delta = one.composed(menu[0].most), 10.0 ** -rng.uniform(1.5, 6.0)
    return menu, steps, round(float(pe.epsilon(run, delta, adjacency=order)), 3), order


def judged(case: Case, tolerance: float) -> tuple[Any, float, float]:
    """Proven bounds of pyengine, the second program's value, and its error, about."""
    menu, steps, epsilon, order = case
    run = pe.adaptive(
        [pe.GaussianMechanism(c.noise).poisson_sampled(c.rate) for c in menu],
        steps,
        most={i: c.most for i, c in enumerate(menu)},
    )
    found = pe.delta(run, epsilon, adjacency=order, bounds=True, tolerance=tolerance)
    deviation = min(c.rate * math.sqrt(math.expm1(c.noise**-2)) for c in menu)
    spacing = min(deviation / 4.0, 0.04)
    coarse = largest_delta(menu, steps, epsilon, order, spacing, 24)
    fine = largest_delta(menu, steps, epsilon, order, spacing / 2.0, 48)
    return found, fine, abs(fine - coarse)


def is_outside(found: Any, value: float, error: float) -> bool:
    """Whether a value is surely outside of the bounds, its error at most 8 times that estimate."""
    doubt = 8.0 * error + 1e-8 * value
    return bool(value + doubt < found.lower or value - doubt > found.upper)
