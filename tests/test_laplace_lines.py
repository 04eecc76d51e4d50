"""Many Laplace steps on vertical lines, of one kind or several."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import mpmath
import numpy as np
import pytest
from error_budget import check
from laplace_checks import (
    against_the_reference,
    agrees,
    known_masses,
    laplace,
    mean_of,
    within_the_lattice,
)
from thorough import some, stored

import pyengine as pe
from pyengine._core import lib
from pyengine.engines.functionals import array
from pyengine.engines.vertical_lines import build
from pyengine.engines.vertical_lines.choice import choice_of
from pyengine.engines.vertical_lines.decay import Decay, decay_of
from pyengine.engines.vertical_lines.deformation import DeformedOrder
from pyengine.engines.vertical_lines.laplace_shapes import LaplaceShape, StepShape, SubstitutedShape
from pyengine.engines.vertical_lines.line import KERNELS, LossLine, Side
from pyengine.engines.vertical_lines.nodes import (
    SIZES,
    PanelRule,
    StepNodes,
    edges_of,
    remainder,
    step_nodes,
)
from pyengine.engines.vertical_lines.order import LineOrder
from pyengine.engines.vertical_lines.shapes import Kinds, cumulants
from pyengine.engines.vertical_lines.tilted import laplace_step

SHAPES: dict[str, StepShape] = {
    "sampled": LaplaceShape(Fraction(1), Fraction(1, 10)),
    "plain": LaplaceShape(Fraction(1, 2), Fraction(1)),
    "close": LaplaceShape(Fraction(10, 3), Fraction(1, 1000)),
    "rare": LaplaceShape(Fraction(1, 5), Fraction(1, 10**5)),
    "substituted": SubstitutedShape(Fraction(2), Fraction(1, 5)),
}


def means(shape: StepShape, places: list[Any]) -> list[list[str]]:
    """Both parts of such means, to 30 digits."""
    with mpmath.workdps(30):
        found = [mean_of(shape, s) for s in places]
        return [[mpmath.nstr(part, 30) for part in (x.real, x.imag)] for x in found]


def mean_of_nodes(nodes: StepNodes, s: Any) -> Any:
    """The mean of e^(s loss) that nodes give."""
    parts = (nodes.loss.T.tolist(), nodes.mass.T.tolist(), nodes.power.tolist())
    with mpmath.workdps(30):
        return mpmath.fsum(
            mpmath.fsum(mass) * mpmath.mpf(2) ** power * mpmath.exp(s * mpmath.fsum(loss))
            for loss, mass, power in zip(*parts, strict=True)
        )


@pytest.mark.parametrize("name", list(SHAPES))
@pytest.mark.parametrize(("tilt", "frequency"), [(0.0, 0.0), (1.7, 9.0), (-3.0, 40.0)])
def test_nodes_are_within_their_remainder(name: str, tilt: float, frequency: float) -> None:
    """Of few nodes as well, where what they leave out is far above rounding."""
    shape = SHAPES[name]
    frequency = frequency / float(shape.length)
    tilt = tilt / float(shape.length)
    seen = 0.0
    with mpmath.workdps(30):
        mean = mpmath.re(mean_of(shape, mpmath.mpf(tilt)))
        truth = mean_of(shape, mpmath.mpc(tilt, frequency)) / mean
    log_mean = float(mpmath.log(mean))
    for panels, steep in ((1, 0.0), (2, 0.0), (2, 0.5), (4, 0.0), (4, 8.0)):
        for i in (0, 2):
            rule = PanelRule(panels, int(SIZES[i]), steep)
            nodes = step_nodes(shape, rule)
            bound = remainder(shape, tilt, log_mean, frequency, edges_of(shape, rule), SIZES)[i]
            found = mean_of_nodes(nodes, mpmath.mpc(tilt, frequency)) / mean
            off = abs(complex(truth - found))
            assert off <= bound + 1e-14
            seen = max(seen, off)
    if frequency > 0.0 and shape.distance >= 1:
        assert seen > 1e-14  # so that a bound of 0 would fail


@pytest.mark.parametrize("name", list(SHAPES))
@pytest.mark.parametrize("tilt", [0.0, 2.5, -6.0])
def test_transform_and_its_decay(name: str, tilt: float) -> None:
    shape = SHAPES[name]
    d = float(shape.length)
    tilt = tilt / d
    frequency = np.array([float(f"{t:.6g}") for t in np.geomspace(1e-3, 300.0, 40) / d])
    log_mean = float(cumulants(((shape, 1),), np.array([tilt]))[0][0])
    step = laplace_step(shape, tilt, log_mean, float(frequency[-1]), 1e-18)
    assert step is not None
    found = step.transform(frequency)
    decay = decay_of(shape, tilt, log_mean)
    most = decay.largest(frequency)
    assert (np.maximum.accumulate(found.modulus[::-1])[::-1] <= most + found.error).all()
    assert (most < 1.0).any()
    assert most[-1] < 1.0 - 0.3 * (1.0 - step.at_ends)
    places = [float(t) for t in frequency[::8]]
    key = f"means of e^(s loss) of the Laplace step '{name}' at {tilt} + it, t in {places}"
    mean_and_turned = stored(key, lambda: means(shape, [mpmath.mpc(tilt, t) for t in [0, *places]]))
    for i, t, known in zip(range(0, frequency.size, 8), places, mean_and_turned[1:], strict=True):
        with mpmath.workdps(30):
            mean = mpmath.mpf(mean_and_turned[0][0])
            turned = mpmath.exp(-1j * mpmath.mpf(t) * mpmath.mpf(step.centre))
            truth = mpmath.mpc(*known) * turned / mean
            assert abs(mpmath.log(mean) - mpmath.mpf(str(step.log_mean))) <= step.log_error
            log = mpmath.log(truth)
            off = abs(log - mpmath.mpc(float(found.log[i]), float(found.angle[i])))
        assert off <= found.log_error[i]
        # near the axis as small as the distance from 1
        assert found.error[i] <= 1e-13 * t * d
        density = abs(complex(truth)) - step.at_ends
        assert density <= decay.variation / t


KINDS: dict[str, Kinds] = {
    "sampled": ((SHAPES["sampled"], 300),),
    "plain": ((SHAPES["plain"], 2000),),
    "substituted": ((SHAPES["substituted"], 250),),
    "close": ((SHAPES["close"], 2000),),
}


@pytest.mark.parametrize("known", known_masses(few=False))
def test_lines_agree_with_laws_on_panels(known: Any) -> None:
    agrees(LineOrder(known.kinds, known.exchanged), known, 1e-10)


def rough_line(kinds: Kinds, index: int, sparse: float, low: float) -> LossLine:
    """A line whose nodes are farther apart, and end earlier, than they should."""
    choice = choice_of(kinds)
    tilt, goal = float(choice.line[index]), build.GOALS[0]
    lost = build._log_lost(choice, index)
    beside = build._sides(kinds, choice, index, goal.alias, lost)
    highest = build._highest(kinds, tilt, goal.beyond, lost)
    assert highest is not None
    assert beside is not None
    spacing = build._short(2.0 * np.pi / max(side.period for side in beside) * sparse)
    count = int(low * highest / spacing) + 1
    steps = []
    for shape, number in kinds:
        mean = float(cumulants(((shape, 1),), np.array([tilt]))[0][0])
        step = laplace_step(shape, tilt, mean, 1.01 * count * spacing, 1e-20)
        assert step is not None
        steps.append((step, number))
    sides = [Side(x, sum(n * step.bound_at(x) for step, n in steps)) for x, _ in beside]
    return LossLine(steps, tilt, spacing, count, (sides[0], sides[1]))


@pytest.mark.parametrize("name", list(KINDS))
@pytest.mark.parametrize(("sparse", "low"), [(1.0, 1.0), (2.2, 1.0), (1.0, 0.06), (2.0, 0.1)])
def test_bounds_of_rough_lines(name: str, sparse: float, low: float) -> None:
    """Too few nodes lose digits, and the bounds say how many: aliases, and what lies beyond."""
    kinds = KINDS[name]
    choice, lost = choice_of(kinds), 0.0
    middle = int(np.searchsorted(choice.line, 0.0))
    for index in (middle - 2, middle - 1, middle, choice.line.size // 2 + 2):
        fine = build.line_at(kinds, index)
        assert fine is not None
        rough = rough_line(kinds, index, sparse, low)
        first, last = build._window(choice, index)
        c = np.linspace(first, last, 9)
        (truth, error), (found, off) = fine.at(c), rough.at(c)
        assert (np.abs(truth - found) <= error + off).all()
        lost = max(lost, float(np.abs(truth - found).max()))
    if sparse > 1.0 or low < 1.0:
        assert lost > 1e-11  # so that bounds without a term would fail


def residues(line: LossLine, c: Any) -> Any:
    """What is taken off the sums of all kernels."""
    found = np.zeros((KERNELS, c.size))
    for row, poles in zip(found, line._poles(), strict=True):
        for pole in poles:
            row += pole.sign * np.exp(pole.constant + pole.apart * c)
    return found


@pytest.mark.parametrize("name", list(KINDS))
def test_what_poles_add_is_taken_off(name: str) -> None:
    """Lines beside poles are short of no digit where those alone would take ten."""
    kinds = KINDS[name]
    choice, most = choice_of(kinds), 0.0
    middle = int(np.searchsorted(choice.line, 0.0))
    for index in (middle - 1, middle, int(np.searchsorted(choice.line, 1.0))):
        fine, rough = build.line_at(kinds, index), rough_line(kinds, index, 1.1, 1.0)
        assert fine is not None
        c = np.linspace(*build._window(choice, index), 9)
        (one, error), (other, unknown) = fine.at(c), rough.at(c)
        off = np.abs(one - other)
        assert (off <= error + unknown).all()
        added = residues(rough, c)
        taken = np.abs(added) > 1e4 * (unknown + error)
        most = max(most, float(np.abs(added[taken]).max(initial=0.0)))
    assert most > 1e-8


def test_residues_beyond_the_reach_of_doubles_prove_nothing() -> None:
    kinds = KINDS["sampled"]
    choice = choice_of(kinds)
    line = build.line_at(kinds, int(np.searchsorted(choice.line, 1.0)))
    assert line is not None
    for c in (-1e4, 1e4):
        assert np.isinf(line.at(np.array([c]), slice(0, 1))[1]).all()


@pytest.mark.parametrize("size", [1, 7, 8, 9, 30])
def test_kernel_of_transforms(size: int) -> None:
    """Angles from 1e-9 to the last that it takes, against mpmath and the bound of its interface."""
    draws = np.random.default_rng(size)
    apart = draws.normal(size=size) * 10.0 ** draws.integers(-6, 3, size)
    share = draws.random(size) / size
    frequency = np.array([0.0, 1e-3, 0.3, 4.0, 1e3, 0.99e8 / np.abs(apart).max()])
    real, imag = np.empty(6), np.empty(6)
    lib.pe_loss_transform(
        6, array(frequency), size, array(apart), array(share), array(real), array(imag)
    )
    seen = 0.0
    with mpmath.workdps(40):
        for t, x, y in zip(frequency.tolist(), real.tolist(), imag.tolist(), strict=True):
            truth, unit = mpmath.mpc(0), 0.0
            for z, w in zip(apart.tolist(), share.tolist(), strict=True):
                truth += w * mpmath.expm1(mpmath.mpc(0, mpmath.mpf(t) * z))
                unit += w * abs(t * z) * 2.0**-53
            off = float(abs(truth - mpmath.mpc(x, y)))
            assert off <= (size / 8 + 20) * unit
            seen = max(seen, off / unit if unit else 0.0)
    assert seen > 0.05


COMPOSITIONS = {
    "one": laplace(1.3, 0.07, 500),
    "two rates": laplace(1.0, 0.1, 300) + laplace(1.0, 0.02, 400),
    "two noises": laplace(0.8, 0.2, 150) + laplace(1.7, 0.1, 500),
    "with plain": laplace(2.0, None, 300) + laplace(1.0, 0.3, 60) + laplace(1.5, 0.01, 7),
}


@pytest.mark.parametrize("name", list(COMPOSITIONS))
@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
def test_several_kinds_against_the_reference(name: str, adjacency: str) -> None:
    deltas = some([0.4, 1e-3, 0.03, 1e-6, 1e-12], 2)
    width = against_the_reference(COMPOSITIONS[name], adjacency, deltas, 3, 18, "0")
    check("laplace_lines.width_of_several_kinds", width)


@pytest.mark.parametrize("name", list(COMPOSITIONS))
def test_several_kinds_lie_within_the_lattice(name: str) -> None:
    questions = [("gamma_bound", 1e-4), ("trade_off", 0.3), ("epsilon", 1e-5), ("delta", 3.0)]
    within_the_lattice(COMPOSITIONS[name], questions, ["add", "add_remove"], 1e-9)


def test_arrays_are_floats_one_by_one() -> None:
    mechanism, levels = COMPOSITIONS["two rates"], np.geomspace(1e-40, 0.9, 7)
    together = pe.gamma_bound(mechanism, levels, bounds=True)
    for level, low, high in zip(levels, together.lower, together.upper, strict=True):
        alone = pe.gamma_bound(mechanism, float(level), bounds=True)
        assert max(low, alone.lower) <= min(high, alone.upper)


@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_ends_of_the_losses(adjacency: str) -> None:
    """Thresholds far from all lines are left to others; outside of the support all is known."""
    mechanism = laplace(1.3, 0.07, 500)
    most = pe.epsilon(mechanism, 0.0, adjacency=adjacency)
    assert pe.delta(mechanism, most * 1.0001, adjacency=adjacency, bounds=True).upper == 0.0
    found = pe.delta(mechanism, 0.0, adjacency=adjacency, bounds=True)
    assert found.upper - found.lower <= 1e-9 * found.upper
    for level in (1e-280, 1.0 - 1e-12):
        found = pe.gamma_bound(mechanism, level, adjacency=adjacency, bounds=True)
        assert 0.0 < found.lower <= found.value <= found.upper <= 1.0


def test_what_lines_do_not_serve() -> None:
    """Epochs of random allocation beside Laplace steps."""
    mechanism = laplace(1.0, 0.1, 500) + pe.dp_sgd_allocated(3.0, 10, epochs=1)
    _, engines, proven = pe.api.answers("delta", mechanism, [0.5], adjacency="add")
    assert engines == ["lattice"]
    assert proven == [True]


def test_losses_at_the_ends_of_all_steps_are_in_the_bounds() -> None:
    """At the atoms of few steps, where a sum has the middle of a jump that it need not know."""
    shape, number = SHAPES["sampled"], 6
    d, low = float(shape.length), number * float(shape.ends[0])
    tilt, spacing = 1.5 / d, float(np.float32(2.0 * np.pi / (20.0 * d)))
    count = int(900.0 / d / spacing)
    log_mean = float(cumulants(((shape, 1),), np.array([tilt]))[0][0])
    step = laplace_step(shape, tilt, log_mean, 1.01 * count * spacing, 1e-17)
    assert step is not None
    sides = [Side(x, number * step.bound_at(x)) for x in (0.5 * tilt, 20.0 * tilt)]
    line = LossLine([(step, number)], tilt, spacing, count, (sides[0], sides[1]))
    deformed = DeformedOrder(((shape, number),), False)
    c = low + d * np.array([2.0, 3.0, 4.0, 5.0])
    log, _ = line.log_scale(c)
    (found,), (error,) = line.at(c, slice(0, 1))
    truth = deformed.tails(c - 1e-9 * d).a_above / np.exp(log)
    off = np.abs(found - truth)
    assert (off <= error).all()
    assert off.max() > 0.01  # far more than what lies beyond the last node


def test_scales_of_lines_are_within_their_errors() -> None:
    """The factor of all sums, against mpmath."""
    kinds = KINDS["sampled"]
    ((shape, number),) = kinds
    choice = choice_of(kinds)
    for index in range(0, choice.line.size, 5):
        line = build.line_at(kinds, index)
        if line is None:
            continue
        c = np.linspace(*build._window(choice, index), 6)
        log, error = line.log_scale(c)
        assert error.max() < 1e-12
        with mpmath.workdps(40):
            tilt = mpmath.mpf(line.tilt)
            mean = number * mpmath.log(mpmath.re(mean_of(shape, tilt)))
            offs = [
                float(abs(mean - tilt * mpmath.mpf(x) - mpmath.mpf(y)))
                for x, y in zip(c.tolist(), log.tolist(), strict=True)
            ]
        assert (np.array(offs) <= error).all()
        assert max(offs) > 0.0  # so that a bound of 0 would fail


def test_remainders_are_not_far_above_what_is_left_out() -> None:
    """Of an integrand that oscillates, so that bounds a hundred times as small would fail."""
    shape, tilt = SHAPES["plain"], 0.0
    frequency, least = 60.0, np.inf
    with mpmath.workdps(40):
        truth = complex(mean_of(shape, mpmath.mpc(tilt, frequency)))
    for panels, i in ((1, 2), (1, 3), (2, 0), (2, 1)):
        rule = PanelRule(panels, int(SIZES[i]), 0.0)
        nodes = step_nodes(shape, rule)
        bound = remainder(shape, tilt, 0.0, frequency, edges_of(shape, rule), SIZES)[i]
        off = abs(complex(mean_of_nodes(nodes, mpmath.mpc(0.0, frequency))) - truth)
        assert off <= bound
        if off > 1e-13:
            least = min(least, bound / off)
    assert least < 100.0


def test_uniform_laws_bound_all_frequencies_beyond() -> None:
    """The transform of one uniform law, which the bound is made of."""
    t = np.linspace(1e-3, 60.0, 6001)
    modulus = np.abs(np.sin(0.5 * t) / (0.5 * t))
    beyond = np.maximum.accumulate(modulus[::-1])[::-1]
    bound = Decay(np.array([1.0]), np.array([1.0]), 2.0).largest(t)
    assert (beyond <= bound + 1e-8).all()
    assert (bound <= 4.0 * beyond + 1e-8).all()
