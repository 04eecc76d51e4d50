"""Masses of two or three sampled Laplace steps by nested Gauss rules, for audits and tests.

Shares no code with the package. A step is given by its density of v, the logarithm of the ratio of
noise densities; a sum of steps is an integral over all but the last one, which has closed forms. In
doubles, good to 1e-13.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np

__all__ = ["NestedLaw", "log_mean", "nested"]


class NestedLaw:
    """One step, by its density of v, with losses counted from the least one; in doubles."""

    def __init__(self, noise: float, p: float) -> None:
        self.noise, self.p = noise, p
        self.low = math.log1p(p * math.expm1(-1.0 / noise))
        self.length = math.log1p(p * math.expm1(1.0 / noise)) - self.low
        self.span = 2.0 / noise
        self.rate = 1.0 / (1.0 + (1.0 - p) / p * math.exp(1.0 / noise))
        self.atoms = ((0.0, 0.5), (self.length, 0.5 * math.exp(-1.0 / noise)))

    def place(self, loss: Any) -> Any:
        """The v of a loss."""
        return np.log1p(np.expm1(loss) / self.rate)

    def above(self, x: Any) -> Any:
        """A's mass above given losses."""
        inside = (x >= 0.0) & (x < self.length)
        mass = 0.5 * np.exp(-0.5 * self.place(np.where(inside, x, 0.0)))
        return np.where(x < 0.0, 1.0, np.where(inside, mass, 0.0))

    def below(self, x: Any) -> Any:
        """A's mass at or below given losses."""
        inside = (x >= 0.0) & (x < self.length)
        mass = 0.5 - 0.5 * np.expm1(-0.5 * self.place(np.where(inside, x, 0.0)))
        return np.where(x < 0.0, 0.0, np.where(inside, mass, 1.0))

    def above_of_b(self, x: Any) -> Any:
        """The integral of e^loss above given losses: B's mass, with losses counted from 0."""
        v = self.place(np.clip(x, 0.0, self.length))
        end = self.span
        part = (1.0 - self.rate) * (np.exp(-0.5 * v) - math.exp(-0.5 * end))
        part = part + self.rate * (math.exp(0.5 * end) - np.exp(0.5 * v))
        top = self.atoms[1][1] * math.exp(self.length)
        mass = 0.5 * part + np.where(x < self.length, top, 0.0)
        return mass + np.where(x < 0.0, self.atoms[0][1], 0.0)

    def below_of_b(self, x: Any) -> Any:
        """The same at or below given losses."""
        v = self.place(np.clip(x, 0.0, self.length))
        part = -(1.0 - self.rate) * np.expm1(-0.5 * v) + self.rate * np.expm1(0.5 * v)
        top = self.atoms[1][1] * math.exp(self.length)
        mass = 0.5 * part + np.where(x >= self.length, top, 0.0)
        return np.where(x < 0.0, 0.0, mass + self.atoms[0][1])


def nested(
    law: NestedLaw, rest: Callable[[Any], Any], x: Any, cuts: list[float], *, of_b: bool = False
) -> Any:
    """A's mass above x of a step and of others, whose own mass ``rest`` has breaks at ``cuts``.

    By Gauss's rules on panels that are short next to the breaks. In general it returns the mean of
    ``rest`` at x minus the loss of the step, with the weight e^loss for B.
    """
    node, weight = np.polynomial.legendre.leggauss(16)
    half = np.concatenate([[0.0], 2.0 ** -np.arange(32.0, 0.0, -1.0)])
    part = np.concatenate([half, 1.0 - half[-2::-1]])
    total = sum(
        mass * (math.exp(loss) if of_b else 1.0) * rest(x - loss) for loss, mass in law.atoms
    )
    ends = [law.place(np.clip(x - cut, 0.0, law.length)) for cut in cuts]
    edge = np.sort(np.stack([0.0 * x, *ends, 0.0 * x + law.span], axis=-1), axis=-1)
    for i in range(edge.shape[-1] - 1):
        first, width = edge[..., i, None, None], np.diff(edge, axis=-1)[..., i, None, None]
        v = first + width * (part[:-1, None] + np.diff(part)[:, None] * (0.5 + 0.5 * node))
        loss = np.log1p(law.rate * np.expm1(v))
        value = np.exp(-0.5 * v + (loss if of_b else 0.0)) * rest(x[..., None, None] - loss)
        step = 0.125 * width * np.diff(part)[:, None] * weight
        total = total + (value * step).sum(axis=(-1, -2))
    return total


def log_mean(law: NestedLaw, tilt: float) -> Any:
    """The logarithm of the mean of e^(tilt loss) under A, by mpmath."""
    noise, p = mpmath.mpf(str(law.noise)), mpmath.mpf(str(law.p))
    low = mpmath.log1p(p * mpmath.expm1(-1 / noise))
    high = mpmath.log1p(p * mpmath.expm1(1 / noise))
    rate = 1 / (1 + (1 - p) / p * mpmath.exp(1 / noise))

    def term(v: Any) -> Any:
        return mpmath.exp(-v / 2 + tilt * (low + mpmath.log1p(rate * mpmath.expm1(v)))) / 4

    cuts = [2 / noise * i / 8 for i in range(9)]
    atoms = mpmath.exp(tilt * low) / 2 + mpmath.exp(tilt * high - 1 / noise) / 2
    return mpmath.log(atoms + mpmath.quad(term, cuts))
