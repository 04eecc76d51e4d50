"""Laws of a distance as the lattice sees them: cells against tails in arbitrary precision."""

from __future__ import annotations

from itertools import pairwise

import mpmath as mp
import numpy as np
import pytest

from pyengine.engines.relaxed.gaussian import (
    FoldedGaussianLaw,
    GaussianDistance,
    SquaredLengthLaw,
)
from pyengine.engines.relaxed.laplace import FoldedLaplaceLaw, LaplacePair
from pyengine.engines.relaxed.sampled import SampledPair
from pyengine.laws.base import PoissonSampledLaw, StepLaw

mp.mp.dps = 40


def true_masses(law: StepLaw, edges: np.ndarray) -> tuple[list[mp.mpf], list[mp.mpf]]:
    """Masses of the cells from distribution functions at the distances of the losses."""
    mu = mp.mpf(law.effect)  # type: ignore[attr-defined]

    def laplace(x: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
        return 1 - mp.exp(-x), mp.exp(-mu) * mp.sinh(x)

    def gaussian(x: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
        root = mp.sqrt(2)
        return mp.erf(x / root), (mp.erf((x - mu) / root) + mp.erf((x + mu) / root)) / 2

    below = []
    for edge in edges:
        loss = mp.mpf(float(edge))
        if isinstance(law, FoldedLaplaceLaw):
            if loss >= mp.log(mp.cosh(mu)):
                below.append((mp.mpf(1), mp.mpf(1)))
            else:
                square = 2 * mp.exp(loss + mu) - 1
                below.append(laplace(mp.log(square) / 2) if square > 1 else (mp.mpf(0),) * 2)
        elif isinstance(law, FoldedGaussianLaw):
            ratio = mp.exp(loss + mu * mu / 2)
            below.append(gaussian(mp.acosh(ratio) / mu) if ratio > 1 else (mp.mpf(0),) * 2)
        else:  # χ²_4: Bessel functions in closed form
            below.append(four_dimensions(mu, loss))
    below.append((mp.mpf(1), mp.mpf(1)))
    pairs = [(mp.mpf(0), mp.mpf(0)), *below]
    return tuple(  # type: ignore[return-value]
        [later[i] - earlier[i] for earlier, later in pairwise(pairs)] for i in range(2)
    )


def four_dimensions(mu: mp.mpf, loss: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
    def at(x: mp.mpf) -> mp.mpf:
        return mp.log(mp.hyp0f1(2, mu * mu * x / 4)) - mu * mu / 2 - loss

    if at(mp.mpf(0)) >= 0:
        return mp.mpf(0), mp.mpf(0)
    high = mp.mpf(1)
    while at(high) < 0:
        high *= 2
    x = mp.findroot(at, (mp.mpf(0), high), solver="anderson", tol=1e-60)
    first = mp.gammainc(2, 0, x / 2, regularized=True)
    second = mp.nsum(
        lambda k: (
            mp.exp(-mu * mu / 2)
            * (mu * mu / 2) ** k
            / mp.factorial(k)
            * mp.gammainc(2 + k, 0, x / 2, regularized=True)
        ),
        [0, 60],
    )
    return first, second


@pytest.mark.parametrize(
    "law",
    [
        FoldedLaplaceLaw(0.1),
        FoldedLaplaceLaw(1.0),
        FoldedLaplaceLaw(9.0),
        FoldedGaussianLaw(0.1),
        FoldedGaussianLaw(1.0),
        FoldedGaussianLaw(6.0),
        SquaredLengthLaw(4, 0.8),
    ],
    ids=repr,
)
def test_cells(law: StepLaw) -> None:
    lowest, highest = law.support()
    top = highest + 0.5 if np.isfinite(highest) else -lowest + 4.0
    edges = np.linspace(lowest - 0.3, top, 23)
    cells = law.cells(edges)
    for logs, truth in zip((cells.log_a, cells.log_b), true_masses(law, edges), strict=True):
        for found, mass, error in zip(logs, truth, cells.error, strict=True):
            if mass < mp.mpf(10) ** -35:
                assert found < -80 or found == -np.inf
            else:
                # an edge may lie a shift away: far inside the error of such wide cells
                assert abs(mp.exp(mp.mpf(float(found))) / mass - 1) <= error + 1e-13
    assert np.logaddexp.reduce(cells.log_a) == pytest.approx(0.0, abs=1e-12)
    assert np.logaddexp.reduce(cells.log_b) == pytest.approx(0.0, abs=1e-12)


def test_law_of_each_pair() -> None:
    gaussian = GaussianDistance(1, 0.5)
    assert gaussian.law() == FoldedGaussianLaw(0.5)
    assert GaussianDistance(7, 0.5).law() == SquaredLengthLaw(7, 0.5)
    assert LaplacePair(2.0).law() == FoldedLaplaceLaw(2.0)
    sampled = SampledPair(gaussian, 0.25).law()
    assert sampled == PoissonSampledLaw(FoldedGaussianLaw(0.5), 0.25)


@pytest.mark.parametrize("dimension", [2, 30, 10**6, 10**9])
def test_ratio_of_the_masses_is_the_loss(dimension: int) -> None:
    """In each cell the masses' ratio lies between those at its edges."""
    law = SquaredLengthLaw(dimension, 1.5)
    edges = np.linspace(-0.5, 1.0, 31) * min(1.0, 20.0 * dimension**-0.5)
    cells = law.cells(edges)
    inner = slice(1, -1)
    ratio = (cells.log_b - cells.log_a)[inner]
    seen = cells.error[inner] < 1e-6
    assert seen.sum() > 5
    slack = (2.0 * cells.error + 1e-12)[inner]
    assert np.all((ratio >= edges[:-1] - slack)[seen])
    assert np.all((ratio <= edges[1:] + slack)[seen])
