"""Each error term of the laws that enclose an epoch is enough, and missed where it is dropped.

Arithmetic errs here by as much as a term allows, in units that are made large, and everything else
is exact beside that.  Where a term is taken away, a sum that must be 1 is off by more than what is
left says.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import pyengine as pe
from pyengine._core import ffi, lib
from pyengine.laws import epoch_bounds as module
from pyengine.laws.base import Cells
from pyengine.laws.epoch_bounds import epoch_bounds
from pyengine.laws.gaussian import GaussianLaw
from pyengine.laws.ratios import RatioLaw

LARGE = 2.0**-36  # the unit of rounding in the place of 2^-53


def numbers(pointer: Any, size: int) -> np.ndarray:
    """An array on the memory behind a pointer of the C core."""
    return np.frombuffer(ffi.buffer(pointer, 8 * size))


class Erring:
    """The C core, whose cells of means err by so many units."""

    def __init__(self, mass: float = 0.0, share: float = 0.0, place: float = 0.0) -> None:
        self.mass, self.share, self.place = mass, share, place

    def pe_mean_cells(self, n: int, x: Any, a: Any, m: int, y: Any, b: Any, *rest: Any) -> None:
        p, q, is_square, cells, edge, mass, share = rest
        weights = (number * (1.0 + self.place * LARGE) for number in (p, q))
        lib.pe_mean_cells(n, x, a, m, y, b, *weights, is_square, cells, edge, mass, share)
        terms = (n + m + 4.0) * LARGE
        numbers(mass, cells)[:] *= 1.0 + self.mass * terms
        numbers(share, cells)[:] *= 1.0 + self.share * terms + self.mass * terms


def excess(law: RatioLaw) -> tuple[float, float]:
    """How much masses and their mean are off, in units of what the law says at most."""
    total, mean = float(law.mass.sum()), float((law.mass * law.ratio).sum())
    return abs(math.log(total)) / law.error, abs(math.log(mean / total)) / law.ratio_error


@pytest.mark.parametrize(
    ("erring", "noise", "nodes", "which"),
    [
        (Erring(mass=0.99), 1.0, 256, 0),
        (Erring(mass=-0.99), 1.0, 256, 0),
        (Erring(place=15.0), 1000.0, 1024, 1),
        (Erring(share=0.99), 0.3, 8, 1),
    ],
)
def test_terms_of_rounding(
    erring: Erring, noise: float, nodes: int, which: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Terms are enough, and an eighth of them is not."""
    monkeypatch.setattr(module, "FEW_NODES", min(nodes, 64))
    monkeypatch.setattr(module, "lib", erring)
    monkeypatch.setattr(module, "UNIT", LARGE)
    assert max(excess(law)[which] for law in epoch_bounds(noise, 67, nodes)) <= 1.0
    monkeypatch.setattr(module, "UNIT", LARGE / 8.0)
    assert max(excess(law)[which] for law in epoch_bounds(noise, 67, nodes)) > 1.0


class ErringLaw:
    """The law of a Gaussian step, whose masses, ratios or edges err by as much as it says."""

    def __init__(self, error: float, ratio: float, shift: float, said: float) -> None:
        self.law, self.off, self.said = GaussianLaw(1.0), (error, ratio, shift), said

    def cells(self, edges: np.ndarray) -> Cells:
        error, ratio, shift = self.off
        found = self.law.cells(edges + shift)
        return Cells(
            found.log_a + error,
            found.log_b + error,
            found.error + self.said * error,
            found.shift + self.said * shift,
            found.ratio_error + self.said * ratio,
            found.log_ratio + ratio,
        )


@pytest.mark.parametrize(
    ("off", "which"), [((1e-6, 0.0, 0.0), 0), ((0.0, 1e-6, 0.0), 1), ((0.0, 0.0, 0.05), 1)]
)
def test_terms_of_the_laws_of_a_step(
    off: tuple[float, float, float], which: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for said, is_enough in ((1.0, True), (0.0, False)):
        monkeypatch.setattr(module, "GaussianLaw", lambda _, s=said: ErringLaw(*off, s))
        found = max(excess(law)[which] for law in epoch_bounds(1.0, 16, 512))
        assert (found <= 1.0) is is_enough


def test_what_lies_beyond_the_ends_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without it the law above would have less than the truth."""
    monkeypatch.setattr(module, "DEPTH", 3.0)
    monkeypatch.setattr(module, "EVEN", 2.0)
    _, above = epoch_bounds(1.0, 16, 2048)
    assert isinstance(above, RatioLaw)
    run = pe.dp_sgd_allocated(1.0, 16, 1)
    for epsilon in (0.0, 0.5):
        for adjacency in ("remove", "add"):
            inside = profile_of(above, epsilon, adjacency)
            truth = pe.delta(run, epsilon, adjacency=adjacency)
            assert inside < truth < inside + above.alone
    assert above.infinite() == (above.alone, above.alone)
    missing = 1.0 - float(above.mass.sum()), 1.0 - float((above.mass * above.ratio).sum())
    assert 0.1 * above.alone < max(missing) < above.alone


def test_products_that_are_left_out(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less is missing than is said where small products are left out, as below 2^-1000 they are."""
    least = 2.0**-30

    class Careless(Erring):
        def pe_mean_cells(self, n: int, x: Any, a: Any, m: int, y: Any, b: Any, *rest: Any) -> None:
            p, q, _, cells, edge, mass, share = rest
            value = np.add.outer(p * numbers(x, n), q * numbers(y, m))
            weight = np.multiply.outer(numbers(a, n), numbers(b, m))
            weight[weight < least] = 0.0
            ends = numbers(edge, cells + 1)
            home = np.clip(np.searchsorted(ends, value) - 1, 0, cells - 1)
            above = weight * (value - ends[home]) / np.diff(ends)[home]
            np.add.at(numbers(mass, cells), home, weight)
            np.add.at(numbers(share, cells), home, above)

    monkeypatch.setattr(module, "FEW_NODES", 64)
    monkeypatch.setattr(module, "lib", Careless())
    lost = []
    for said in (least, 0.0):
        monkeypatch.setattr(module, "LEAST_MASS", said)
        above = epoch_bounds(4.0, 8, 128).above
        assert isinstance(above, RatioLaw)
        missing = 1.0 - float(above.mass.sum())
        lost.append((missing, above.alone))
    assert 0.0 < lost[0][0] <= lost[0][1]
    assert lost[1][0] > lost[1][1] + 1e-12


def profile_of(law: RatioLaw, epsilon: float, adjacency: str) -> float:
    """The profile of one order without what either law has alone."""
    t = math.exp(epsilon)
    gain = law.ratio - t if adjacency == "remove" else 1.0 - t * law.ratio
    return float((law.mass * np.maximum(gain, 0.0)).sum())


def test_cells_say_what_the_law_is_off_by() -> None:
    rng = np.random.default_rng(3)
    ratio, mass = np.sort(rng.uniform(0.5, 2.0, 10_000)), rng.uniform(0.0, 1e-4, 10_000)
    law = RatioLaw(ratio, mass, 0.0, 0.0)
    cells = law.cells(np.array([0.0]))
    for log_mass, terms in ((cells.log_a, mass), (cells.log_b, mass * ratio)):
        for k, some in enumerate((np.log(ratio) <= 0.0, np.log(ratio) > 0.0)):
            exact = math.log(math.fsum(terms[some]))
            assert abs(log_mass[k] - exact) <= cells.error[k] <= 1e-11
    # errors of the law come on top
    other = RatioLaw(ratio, mass, 1e-7, 1e-8).cells(np.array([0.0]))
    assert (other.error >= 1.1e-7).all()
    assert (other.shift >= 1e-8).all()
    assert (other.ratio_error >= 1e-8).all()
    assert (cells.shift <= 1e-15).all()
