"""Epochs with each record in two random steps: bounds against truths of other code."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from scipy.special import ndtr
from test_blocks import two_of_three
from thorough import ALL, sampled

import pyengine as pe
from pyengine._core import ffi, lib
from pyengine.laws import epoch_bounds
from pyengine.laws import state_bounds as module
from pyengine.laws.ratios import RatioLaw
from pyengine.laws.state_bounds import state_bounds


def profile_of(law: Any, epsilon: float, adjacency: str) -> float:
    """δ(ε) of atoms, of what is left out nothing."""
    k = math.exp(epsilon)
    if adjacency == "remove":
        return float((law.mass * np.maximum(law.ratio - k, 0.0)).sum())
    return float((law.mass * np.maximum(1.0 - k * law.ratio, 0.0)).sum())


def two_of_four(noise: float, epsilon: float, adjacency: str, size: int = 161) -> float:
    """δ(ε) over a cube of three normals, the fourth in closed form."""
    mu = 1.0 / noise
    x = np.linspace(-8.0, 8.0 + mu, size)
    phi = np.exp(-0.5 * x * x) * (x[1] - x[0]) / math.sqrt(2.0 * math.pi)
    y = np.exp(mu * x - 0.5 * mu * mu)
    a, b, c = np.meshgrid(y, y, y, indexing="ij", sparse=True)
    pairs, total = a * b + a * c + b * c, a + b + c
    k = math.exp(epsilon if adjacency == "remove" else -epsilon)
    left = 6.0 * k - pairs
    edge = np.log(np.maximum(left, 1e-300) / total) / mu + 0.5 * mu
    edge = np.where(left > 0.0, edge, -np.inf)
    if adjacency == "remove":
        inner = total * ndtr(mu - edge) - left * ndtr(-edge)
    else:
        inner = left * ndtr(edge) - total * ndtr(edge - mu)
    found = float(np.einsum("ijk,i,j,k->", inner, phi, phi, phi)) / 6.0
    return found if adjacency == "remove" else found / k


def random_case(seed: int) -> tuple[float, float, str]:
    rng = np.random.default_rng(seed)
    noise = math.exp(rng.uniform(math.log(0.4), math.log(8.0)))
    return noise, float(rng.uniform(0.0, 2.5)) / noise, str(rng.choice(["add", "remove"]))


@pytest.mark.parametrize("seed", range(400 if ALL else 4))
def test_two_of_three_steps(seed: int) -> None:
    noise, epsilon, adjacency = random_case(seed)
    truth = two_of_three(noise, epsilon, adjacency)
    law = state_bounds(noise, 3, 256, 12)
    below, above = (profile_of(each, epsilon, adjacency) for each in law)
    assert below <= truth * (1.0 + 1e-9) + 1e-14
    assert truth * (1.0 - 1e-9) - 1e-14 <= above
    assert above - below <= 0.05 * truth + 1e-9


@pytest.mark.parametrize("seed", range(30 if ALL else 1))
def test_two_of_four_steps(seed: int) -> None:
    noise, epsilon, adjacency = random_case(1000 + seed)
    noise = max(noise, 0.7)  # of less the cube has not enough points
    truth = two_of_four(noise, epsilon, adjacency)
    law = state_bounds(noise, 4, 256, 12)
    below, above = (profile_of(each, epsilon, adjacency) for each in law)
    assert below <= truth * (1.0 + 1e-6) + 1e-12
    assert truth * (1.0 - 1e-6) - 1e-12 <= above


@pytest.mark.parametrize("seed", range(60 if ALL else 2))
def test_samples_of_more_steps(seed: int) -> None:
    """Plain means of the ratio, e₂ from all products, within five standard errors."""
    rng = np.random.default_rng(seed)
    noise, steps = math.exp(rng.uniform(-0.3, 1.5)), int(rng.integers(5, 40))
    z = rng.standard_normal((100_000, steps))
    y = np.exp(z / noise - 0.5 / noise**2)
    e2 = sum((y[:, i] * y[:, :i].sum(axis=1) for i in range(1, steps)), np.zeros(len(y)))
    ratio = e2 / math.comb(steps, 2)
    law = state_bounds(noise, steps, 128, 12)
    spread = float(ratio.std())
    for epsilon in (0.0, 0.5 * spread, spread):
        for adjacency in ("add", "remove"):
            k = math.exp(epsilon)
            term = np.maximum(ratio - k if adjacency == "remove" else 1.0 - k * ratio, 0.0)
            truth, error = float(term.mean()), float(term.std()) / math.sqrt(len(y))
            below, above = (profile_of(each, epsilon, adjacency) for each in law)
            assert below - 5.0 * error <= truth <= above + 5.0 * error


@pytest.mark.parametrize(("noise", "steps"), [(0.15, 5), (0.6, 19), (30.0, 200)])
def test_laws_come_together(noise: float, steps: int) -> None:
    apart = []
    for lines, shares in ((48, 8), (96, 16)):
        below, above = state_bounds(noise, steps, lines, shares)
        for law in (below, above):
            assert isinstance(law, RatioLaw)
            assert abs(math.log(law.mass.sum())) <= law.error
            assert abs(math.log((law.mass * law.ratio).sum())) <= law.error + law.ratio_error
        for epsilon in np.linspace(-2.0, 2.0, 41) / noise:
            low, high = (profile_of(law, epsilon, "remove") for law in (below, above))
            assert low <= high * (1.0 + 4.0 * (below.error + above.error)) + 1e-300
        apart.append(profile_of(above, 0.0, "add") / profile_of(below, 0.0, "add") - 1.0)
    assert 0.0 < apart[1] < 0.5 * apart[0]


def by_definition(
    first: np.ndarray, second: np.ndarray, slope: float, line: np.ndarray, node: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Masses on nodes, and masses with integrals of cells, state by state."""
    lines, rows = node.shape
    out = np.zeros((lines, rows))
    cells = np.zeros((3, lines - 1, max(rows - 1, 1)))
    for x, p, a in first.T:
        for y, q, b in second.T:
            total, products = x + y, p + q + 2.0 * x * y
            place = products + slope * total
            i = max(int(np.searchsorted(line, place)) - 1, 0)
            part = (place - line[i]) / (line[i + 1] - line[i])
            share = slope * total / place
            for at, weight in ((i, 1.0 - part), (i + 1, part)):
                if rows == 1:
                    out[at, 0] += weight * a * b
                    continue
                k = min(max(int(np.searchsorted(node[at], share)) - 1, 0), rows - 2)
                up = (share - node[at, k]) / (node[at, k + 1] - node[at, k])
                out[at, k : k + 2] += weight * a * b * np.array([1.0 - up, up])
            k = 0
            if rows > 1:
                k = min(max(int(np.searchsorted(node[i], share)) - 1, 0), rows - 2)
            cells[:, i, k] += np.array([1.0, total, products]) * a * b
    return out, cells


@pytest.mark.parametrize("slope", [0.0, 3.0])
@pytest.mark.parametrize("is_square", [False, True])
def test_the_kernel(slope: float, is_square: bool) -> None:
    rng = np.random.default_rng(int(slope) + is_square)
    first = np.array([rng.uniform(0.2, 3.0, 9), rng.uniform(0.0, 4.0, 9), rng.random(9)])
    second = first if is_square else rng.uniform(0.1, 2.0, (3, 5))
    line = np.array([0.01, 1.0, 2.5, 9.0, 20.0, 60.0, 200.0])
    inner = np.sort(rng.uniform(0.05, 0.95, (line.size, 3)), axis=1)
    outer = np.zeros((line.size, 1))
    node = np.ascontiguousarray(np.hstack([outer, inner, outer + 1.0]) if slope else outer + 1.0)
    lines, rows = node.shape
    size = (lines - 1) * max(rows - 1, 1)
    nodes, cells = by_definition(first, second, slope, line, node)
    for is_apart, truth in ((True, nodes), (False, cells)):
        out, count = np.zeros(nodes.size if is_apart else 3 * size), np.zeros(lines)
        groups = [np.ascontiguousarray(group) for group in (first, second)]
        lib.pe_state_cells(
            *(x for group in groups for x in (group.shape[1], ffi.from_buffer("double[]", group))),
            is_square,
            slope,
            lines,
            ffi.from_buffer("double[]", line),
            rows,
            ffi.from_buffer("double[]", node),
            is_apart,
            ffi.from_buffer("double[]", out, require_writable=True),
            ffi.from_buffer("double[]", count, require_writable=True),
        )
        assert out == pytest.approx(truth.ravel(), rel=1e-12, abs=1e-15)
        assert count.sum() == 45  # pairs of states, or of 9 and 5


LARGE = 2.0**-36  # the unit of rounding in the place of 2^-53


class Erring:
    """The C core, whose sums err by so many roundings of each."""

    def __init__(self, mass: float) -> None:
        self.mass = mass

    def pe_state_cells(self, *given: Any) -> None:
        lib.pe_state_cells(*given)
        lines, out, count = given[6], given[11], given[12]
        counts = np.frombuffer(ffi.buffer(count, 8 * lines))
        most = float((counts + np.append(0.0, counts[:-1])).max()) + 8.0
        size = given[8] * lines if given[10] else (lines - 1) * max(given[8] - 1, 1)
        np.frombuffer(ffi.buffer(out, 8 * size))[:] *= 1.0 + self.mass * most * LARGE


@pytest.mark.parametrize("mass", [0.99, -0.99])
def test_terms_of_rounding(mass: float, monkeypatch: pytest.MonkeyPatch) -> None:
    """The term of the sums is enough, and an eighth of it is not."""
    monkeypatch.setattr(module, "lib", Erring(mass))
    monkeypatch.setattr(module, "LAST", 64)
    monkeypatch.setattr(epoch_bounds, "UNIT", LARGE)
    monkeypatch.setattr(module, "UNIT", LARGE)

    def excess() -> float:
        laws = state_bounds(1.0, 11, 32, 8)
        return max(abs(math.log(law.mass.sum())) / law.error for law in laws)

    assert excess() <= 1.0
    monkeypatch.setattr(epoch_bounds, "UNIT", LARGE / 8.0)
    monkeypatch.setattr(module, "UNIT", LARGE / 8.0)
    assert excess() > 1.0


def test_what_lies_beyond_the_ends_of_a_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is mass that either law has alone: without it the law above would have too little."""
    monkeypatch.setattr(module, "DEPTH", 3.0)
    monkeypatch.setattr(module, "EVEN", 2.0)
    above: Any = state_bounds(1.0, 3, 256, 16).above
    for epsilon in (0.5, 2.0):
        inside = profile_of(above, epsilon, "remove")
        truth = two_of_three(1.0, epsilon, "remove")
        assert inside < truth < inside + above.alone
    missing = 1.0 - float(above.mass.sum()), 1.0 - float((above.mass * above.ratio).sum())
    assert 0.1 * above.alone < max(missing) < above.alone


def test_answers() -> None:
    """Bounds of the case that was [.0772, .1198], and what is asked of them."""
    run = pe.GaussianMechanism(1.0).randomly_allocated(12, selected=2)
    found = pe.delta(run, 0.5, bounds=True)
    assert found.lower < found.value == found.upper < 1.003 * found.lower
    assert pe.delta(run, 0.5) == found.value
    blocks = pe.delta(run, 0.5, method="blocks")
    assert found.upper < blocks < 1.05 * found.upper
    epsilon = pe.epsilon(run, found.upper, bounds=True)
    assert epsilon.lower <= 0.5 <= epsilon.upper * (1.0 + 1e-9)
    gamma, beta = (ask(run, 0.02, bounds=True) for ask in (pe.gamma_bound, pe.trade_off))
    assert beta.value == beta.lower
    assert 1.0 - beta.lower == pytest.approx(gamma.upper, rel=1e-12)
    assert gamma.upper < 1.01 * gamma.lower
    beside = pe.delta(run + pe.LaplaceMechanism(2.0), 0.5, bounds=True)
    assert found.lower < beside.lower < beside.upper < 1.01 * beside.lower


def test_a_tolerance_is_kept_or_refused() -> None:
    run = pe.GaussianMechanism(3.0).randomly_allocated(5, selected=2)
    found = pe.delta(run, 0.2, bounds=True, tolerance=2e-3)
    assert found.upper <= found.lower * (1.0 + 2e-3)
    with pytest.raises(pe.AccuracyError, match=r"tolerance=\S+ or more gives this answer"):
        pe.delta(run, 0.2, tolerance=1e-7)


@sampled(1)
@pytest.mark.parametrize(("steps", "selected"), [(8, 3), (9, 4), (11, 5)])
def test_more_steps_are_blocks_of_two(steps: int, selected: int) -> None:
    """Narrower than blocks of one step, and above a mean over all sets of steps."""
    noise = 1.5
    run = pe.GaussianMechanism(noise).randomly_allocated(steps, selected=selected)
    rng = np.random.default_rng(steps)
    y = np.exp(rng.standard_normal((200_000, steps)) / noise - 0.5 / noise**2)
    sums = np.zeros((selected + 1, len(y)))  # of products of so many of the steps so far
    sums[0] = 1.0
    for i in range(steps):
        sums[1:] += sums[:-1] * y[:, i]
    ratio = sums[-1] / math.comb(steps, selected)
    term = np.maximum(ratio - math.exp(1.0), 0.0)
    truth, error = float(term.mean()), float(term.std()) / math.sqrt(len(y))
    found = pe.delta(run, 1.0, adjacency="remove", bounds=True)
    one = pe.delta(run, 1.0, adjacency="remove", method="blocks", bounds="estimated")
    assert one.lower <= found.lower < truth + 5.0 * error
    assert truth - 5.0 * error < found.upper < one.upper


def test_where_two_of_a_step_have_no_laws() -> None:
    """Little noise: the blocks of one step are left."""
    run = pe.GaussianMechanism(0.12).randomly_allocated(6, selected=2)
    blocks = pe.delta(run, 30.0, method="blocks")
    assert pe.delta(run, 30.0) == pytest.approx(blocks, rel=1e-9)
