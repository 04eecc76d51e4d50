"""Masses of many Laplace steps on panels, and beside a sampled Gaussian step, in 60 digits."""

from __future__ import annotations

import math
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
import thorough
from flint import arb, arb_poly, ctx
from random_mechanisms import evenly

import pyengine as pe
from pyengine.engines.vertical_lines import tabled
from pyengine.engines.vertical_lines.deformation import DeformedOrder
from pyengine.engines.vertical_lines.range import deformed_order, order_on_nodes
from pyengine.engines.vertical_lines.tabled import TabledOrder
from pyengine.laws.composition import composition_law

DIGITS, NODES = 70, 24
SEED = 20261127
FAR = 16


class LaplaceSum:
    """A's mass of the sum of N Laplace losses, by its transform's terms, each a gamma law's."""

    def __init__(self, scale: float, number: int) -> None:
        ctx.dps = DIGITS
        self.mu, self.number = 1 / arb(scale), number
        self.terms: list[tuple[arb, arb, arb, arb_poly]] = []
        up, down = arb_poly([1, 1]), arb_poly([1, -1])
        for j in range(number + 1):
            # (1 + y/2)^(N - j) (1 - y/2)^j at y = 2^i for gamma laws of i twofold exponentials
            kappa = (up ** (number - j) * down**j).coeffs()
            whole = sum(kappa, arb(0))
            rest, found, factorial = whole - kappa[0], [], arb(1)
            for m in range(number):
                found.append(rest / factorial)
                rest -= kappa[m + 1] if m + 1 < len(kappa) else 0
                factorial *= m + 1
            weight = arb(math.comb(number, j)) * (-self.mu * j).exp() / arb(2) ** number
            self.terms.append(((2 * j - number) * self.mu, weight, whole, arb_poly(found)))

    @property
    def places(self) -> list[arb]:
        """Corners."""
        return [place for place, *_ in self.terms]

    def below(self, c: arb) -> arb:
        """A's mass up to c."""
        total = arb(0)
        for place, weight, whole, rest in self.terms:
            if c < place:
                break
            x = (c - place) / 2
            total += weight * (whole - (-x).exp() * rest(x))
        return total

    def both(self, c: arb) -> tuple[arb, arb]:
        """Masses of A and B up to c, of symmetric steps."""
        return self.below(c), 1 - self.below(-c)


def _asked(inner: Any, places: np.ndarray) -> list[tuple[np.ndarray, np.ndarray]]:
    """Masses, and profiles of the first law against the second one."""
    order = TabledOrder(inner)
    found: list[tuple[np.ndarray, np.ndarray]] = order.masses(places)
    return [*found, order.profile(-places)]


def _inner(mechanism: pe.Mechanism) -> DeformedOrder:
    order = deformed_order(list(composition_law(mechanism, "add")))
    assert isinstance(order, DeformedOrder)
    return order


def _holds(value: float, error: float, truth: arb) -> bool:
    return not abs(arb(value) - truth) > arb(error)


def _sums(count: int) -> list[tuple[float, int]]:
    rng = np.random.default_rng(SEED)
    return [(round(evenly(rng, 0.4, 12.0), 3), int(rng.integers(30, 81))) for _ in range(count)]


def _outside(scale: float, number: int) -> int:
    """How many values on panels are farther from the truth than they say."""
    truth = LaplaceSum(scale, number)
    end = float(truth.mu * number)
    rng = np.random.default_rng(number)
    corners = np.array([float(place) for place in truth.places[:-1:7]])  # and next to these
    places = np.concatenate([rng.uniform(-end, end, 12), corners + 1e-6])
    found, count = _asked(_inner(pe.LaplaceMechanism(scale).composed(number)), places), 0
    for i, c in enumerate(places.tolist()):
        a, b = truth.both(arb(c))
        known = (1 - a, a, 1 - b, b, a - (-arb(c)).exp() * b)
        pairs = zip(found, known, strict=True)
        count += sum(not _holds(float(v[i]), float(e[i]), each) for (v, e), each in pairs)
    return count


@pytest.mark.parametrize(("scale", "number"), thorough.some(_sums(24), 8))
def test_panels_hold_masses_of_laplace_steps(
    scale: float, number: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Lines are not asked: panels serve however far they are off."""
    monkeypatch.setattr(tabled, "CLOSE", 1e200)
    monkeypatch.setattr(tabled, "SHARE", 1e200)
    assert _outside(scale, number) == 0


@pytest.mark.parametrize("points", [6, 14, 22])
def test_what_polynomials_leave_out_is_enough_and_missed(
    points: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of few points the remainder is all that holds the truth."""
    monkeypatch.setattr(tabled, "CLOSE", 1e200)
    monkeypatch.setattr(tabled, "SHARE", 1e200)
    monkeypatch.setattr(tabled, "EACH", 0.0)
    monkeypatch.setattr(tabled, "POINTS", points)
    assert _outside(0.9, 36) == 0
    monkeypatch.setattr(tabled, "RHO", 1e9)
    monkeypatch.setattr(TabledOrder, "_panels", TabledOrder(_inner(_FEW))._panels)
    assert points > 6 or _outside(0.9, 36) > 0


_FEW = pe.LaplaceMechanism(0.9).composed(36)
MECHANISMS = (
    "pe.LaplaceMechanism(2.0).poisson_sampled(0.1).composed(20)",
    "pe.LaplaceMechanism(0.6).poisson_sampled(0.4).composed(33)",
    "pe.LaplaceMechanism(3.0).composed(8) + pe.LaplaceMechanism(1.1).composed(9)",
    "pe.LaplaceMechanism(0.7).composed(10) + pe.ExponentialMechanism(1.0).composed(3)",
)


@pytest.mark.parametrize("order", ["add", "remove"])
@pytest.mark.parametrize("mechanism", MECHANISMS)
def test_panels_and_lines_meet(mechanism: str, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also of samples, whose orders are two, and of several kinds."""
    monkeypatch.setattr(tabled, "CLOSE", 1e200)
    monkeypatch.setattr(tabled, "SHARE", 1e200)
    law = deformed_order(list(composition_law(eval(mechanism, {"pe": pe}), order)))
    assert isinstance(law, DeformedOrder)
    places = np.random.default_rng(3).uniform(*law.support(), 200)
    lines = [*law.masses(places), law.profile(-places)]
    for (value, error), (other, off) in zip(_asked(law, places), lines, strict=True):
        assert (np.abs(value - other) <= error + off).all()


class Setting:
    """A sampled Gaussian step, Laplace steps, and responses, at a threshold."""

    def __init__(self, seed: int) -> None:
        rng = np.random.default_rng([SEED, seed])
        self.noise, self.rate = evenly(rng, 0.5, 3.0), evenly(rng, 1e-6, 0.2)
        self.scale, self.number = round(evenly(rng, 0.7, 10.0), 3), int(rng.integers(33, 46))
        self.truth, self.responses = (
            round(float(rng.uniform(0.52, 0.9)), 3),
            int(rng.integers(4, 7)),
        )
        self.mechanism: pe.Mechanism = pe.dp_sgd(self.noise, self.rate, 1)
        self.mechanism += pe.LaplaceMechanism(self.scale).composed(self.number)
        if self.responses:
            self.mechanism += pe.RandomizedResponse(self.truth).composed(self.responses)
        self.order = ("add", "remove")[seed % 2]
        spread = math.sqrt(self.number) / self.scale
        self.c = float(rng.uniform(-2.5, 2.5)) * spread

    def masses(self) -> list[arb]:
        """A's mass above c and at most c, and B's, without the record first."""
        law = LaplaceSum(self.scale, self.number)
        mu, p = 1 / arb(self.noise), arb(self.rate)
        high, n = arb(self.truth), self.responses
        unit = (high / (1 - high)).log()
        few = [
            ((2 * k - n) * unit, math.comb(n, k) * (1 - high) ** k * high ** (n - k))
            for k in range(n + 1)
        ]
        rule = [arb.legendre_p_root(NODES, k, weight=True) for k in range(NODES)]
        total = [arb(0), arb(0)]
        for loss, weight in few:
            c = arb(self.c) - loss
            breaks = [arb(k) for k in range(-FAR, FAR + math.ceil(1 / self.noise) + 1)]
            for place in law.places:
                x = ((c - place).exp() - 1 + p) / p
                z = (x.log() + mu * mu / 2) / mu if x > 0 else breaks[0]
                if breaks[0] < z < breaks[-1]:
                    breaks.append(z)
            for left, right in pairwise(sorted(breaks, key=float)):
                half, middle = (right - left) / 2, (right + left) / 2
                for node, share in rule:
                    z = middle + half * node
                    ratio = 1 - p + p * (mu * z - mu * mu / 2).exp()
                    a, b = law.both(c - ratio.log())
                    density = share * half * weight * (-z * z / 2).exp()
                    total[0] += density * a
                    total[1] += density * ratio * loss.exp() * b
        a, b = (each / (2 * arb.pi()).sqrt() for each in total)
        return [1 - a, a, 1 - b, b]


@pytest.mark.parametrize("seed", thorough.some(range(20), 8))
def test_masses_beside_a_sampled_step_hold_the_truth(seed: int) -> None:
    setting = Setting(seed)
    order = order_on_nodes(tuple(composition_law(setting.mechanism, setting.order)))
    assert order is not None
    noded = getattr(order, "inner", None)
    few = getattr(getattr(noded, "_others", None), "inner", None)
    assert isinstance(few, TabledOrder)
    known, backward = setting.masses(), setting.order == "remove"
    found = order.masses(np.array([-setting.c if backward else setting.c]))
    shift = float(order.shift(np.array([setting.c]))[0])
    for (value, error), truth in zip(found, known[::-1] if backward else known, strict=True):
        off = float(error[0]) + 2.0 * shift * float(truth) * setting.number + 1e-22
        assert _holds(float(value[0]), off, truth)
        assert float(error[0]) <= 1e-10 * float(truth)
