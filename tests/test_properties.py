"""What is true of every trade-off function and privacy profile, at random parameters."""

from __future__ import annotations

import math

import numpy as np
from comparing import compared, comparing, left_out
from drawing import log_uniform, mechanisms
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from random_mechanisms import Draw, sgd
from thorough import ALL

import pyengine as pe

COMMON = settings(
    max_examples=20 if ALL else 8,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.too_slow],
)


def phases(d: Draw) -> str:
    """One or two phases, sampled or not."""
    return " + ".join(
        sgd(d, (0.4, 100), d.one_of((1e-6, 1), (1, 1)), (1, 1e7)) for _ in range(d.one_of(1, 2))
    )


ADJACENCY = st.sampled_from(["add", "remove", "add_remove"])
LEVELS = np.concatenate([np.geomspace(1e-80, 0.4, 12), np.linspace(0.45, 0.999, 6)])


@comparing(0.9)
@COMMON
@given(mechanisms(phases), ADJACENCY)
def test_trade_off_function(mechanism: pe.Mechanism, adjacency: str) -> None:
    try:
        beta = pe.trade_off(mechanism, LEVELS, adjacency=adjacency, bounds=True)
        gamma = pe.gamma_bound(mechanism, LEVELS, adjacency=adjacency, bounds=True)
    except pe.AccuracyError:
        left_out()
        return
    compared()
    for found in (beta, gamma):
        assert np.all((found.lower <= found.value) & (found.value <= found.upper))
    assert np.all(np.diff(beta.value) <= 1e-12 * beta.value[:-1])
    assert np.all(np.diff(gamma.value) >= -1e-12 * gamma.value[1:])
    assert np.allclose(beta.value + gamma.value, 1.0, rtol=0, atol=1e-12)
    slopes = np.diff(gamma.value) / np.diff(LEVELS)
    assert np.all(np.diff(slopes) <= 1e-9 * np.abs(slopes[:-1]) + 1e-12)  # gamma is concave


@comparing(0.6)  # the profile of many a mechanism is 0 everywhere but at 0
@COMMON
@given(mechanisms(phases), ADJACENCY, st.floats(0.01, 20.0))
def test_profile_and_its_inverse(mechanism: pe.Mechanism, adjacency: str, top: float) -> None:
    epsilon = np.linspace(0.0, top, 7)
    try:
        delta = pe.delta(mechanism, epsilon, adjacency=adjacency, bounds=True)
        inside = (delta.value > 1e-290) & (epsilon > 0)
        back = pe.epsilon(mechanism, delta.value[inside], adjacency=adjacency, bounds=True)
    except pe.AccuracyError:
        left_out()
        return
    (compared if inside.any() else left_out)()
    assert np.all((delta.lower <= delta.value) & (delta.value <= delta.upper))
    assert np.all(np.diff(delta.value) <= 1e-12 * delta.value[:-1])
    # the smallest epsilon is returned, and delta is rounded: compare where the profile is steep
    again = pe.delta(mechanism, back.value, adjacency=adjacency)
    assert np.allclose(again, delta.value[inside], rtol=1e-9, atol=1e-9)


@comparing(0.3)  # of many a mechanism δ is below all digits of γ
@COMMON
@given(mechanisms(phases), st.floats(0.0, 8.0))
def test_conjugacy(mechanism: pe.Mechanism, epsilon: float) -> None:
    """The conjugate of T_add is the profile of remove: no test beats it, one touches it."""
    slope = math.exp(epsilon)
    try:
        delta = pe.delta(mechanism, epsilon, adjacency="remove", bounds=True)
        kappa = np.geomspace(1e-30, 0.99, 60)
        gamma = pe.gamma_bound(mechanism, kappa, adjacency="add")
        # the best level, between the neighbours of the best one of the grid
        best = int(np.argmax(gamma - slope * kappa))
        near = np.geomspace(kappa[max(best - 1, 0)], kappa[min(best + 1, 59)], 100)
        touching = pe.gamma_bound(mechanism, near, adjacency="add") - slope * near
    except pe.AccuracyError:
        left_out()
        return
    assert np.all(gamma <= (slope * kappa + delta.upper) * (1 + 1e-12))
    if delta.value < 1e-12:  # the difference has no digits
        left_out()
        return
    compared()
    assert touching.max() >= delta.lower * (1 - 1e-2) - 1e-13


@comparing(0.9)
@COMMON
@given(mechanisms(phases), st.floats(0.0, 10.0))
def test_profile_of_remove_is_the_larger_one(mechanism: pe.Mechanism, epsilon: float) -> None:
    """Seen everywhere for this mechanism, proven nowhere: the hull of both curves rests on it."""
    try:
        add = pe.delta(mechanism, epsilon, adjacency="add")
        remove = pe.delta(mechanism, epsilon, adjacency="remove")
    except pe.AccuracyError:
        left_out()
        return
    compared()
    assert add <= remove * (1 + 1e-9)


@comparing(0.9)
@COMMON
@given(mechanisms(phases), st.sampled_from([1e-40, 1e-7, 1e-2, 0.3, 0.9]))
def test_hull_lies_below_both_curves(mechanism: pe.Mechanism, alpha: float) -> None:
    try:
        hull = pe.trade_off(mechanism, alpha)
        add = pe.trade_off(mechanism, alpha, adjacency="add")
        remove = pe.trade_off(mechanism, alpha, adjacency="remove")
    except pe.AccuracyError:
        left_out()
        return
    compared()
    assert hull <= min(add, remove) * (1 + 1e-11)
    # and no lower than the hull is: it is the highest of the lines that profiles allow
    ends = np.concatenate([[0.0], np.geomspace(1e-6, 690.0, 400)])
    try:
        best = int(np.argmax(lines_of(mechanism, ends, alpha)))
        near = np.linspace(ends[max(best - 1, 0)], ends[min(best + 1, 400)], 1000)
        highest = lines_of(mechanism, near, alpha).max()
    except pe.AccuracyError:
        return
    assert hull >= highest - 1e-13
    assert hull <= highest + 1e-4 or ends[best] == ends[-1]


def lines_of(mechanism: pe.Mechanism, epsilon: np.ndarray, alpha: float) -> np.ndarray:
    """The two lines of each (ε, δ) below which no trade-off function lies, at a level."""
    slope, rest = np.exp(epsilon), 1 - pe.delta(mechanism, epsilon)
    return np.maximum(0.0, np.maximum(rest - slope * alpha, (rest - alpha) / slope))


@comparing(0.9)
@COMMON
@given(log_uniform(0.4, 50.0), log_uniform(1e-6, 1.0), st.integers(1, 3000))
def test_more_steps_and_less_noise_tell_more(noise: float, p: float, steps: int) -> None:
    try:
        base = pe.gamma_bound(pe.dp_sgd(noise, p, steps), 1e-3)
        more = pe.gamma_bound(pe.dp_sgd(noise, p, 2 * steps), 1e-3)
        louder = pe.gamma_bound(pe.dp_sgd(noise * 0.9, p, steps), 1e-3)
    except pe.AccuracyError:
        left_out()
        return
    compared()
    assert more >= base * (1 - 1e-12)
    assert louder >= base * (1 - 1e-12)
