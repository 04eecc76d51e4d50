"""Hundreds of noise multipliers of one rate: few kinds of steps in the place of many."""

from __future__ import annotations

import math

import numpy as np
import pytest
from drawing import log_uniform
from error_budget import check
from hypothesis import given, settings
from hypothesis import strategies as st
from thorough import ALL

import pyengine as pe
from pyengine._core import ffi, lib
from pyengine.engines.functionals import A_ABOVE, ERRORS, PROFILE, FloatArray, call_kernel
from pyengine.engines.spectral import THOROUGH

KINDS = 200


@pytest.mark.parametrize(
    ("low", "high", "p"),
    [
        (2.0, 4.0, 0.05),
        (0.8, 1.6, 0.01),
        (0.5, 3.0, 0.01),
        (3.0, 3.0 + 1e-13, 0.2),
        (9.0, 80.0, 0.9),
    ],
)
@pytest.mark.parametrize("backward", [False, True])
def test_rows_are_those_of_all_kinds(low: float, high: float, p: float, backward: bool) -> None:
    # certified lines know each kind by itself, and share no interpolation with estimates
    noise, worst = np.linspace(low, high, KINDS).tolist(), 0.0
    pair = _pair(noise, p, [1.0] * KINDS, backward)
    for kappa in (0.3, 1e-3, 1e-8):
        many = call_kernel(lib.pe_pair_solve, _one(math.log(kappa)), pair, A_ABOVE)
        proven = call_kernel(lib.pe_pair_certify, many[:, 0].copy(), pair, A_ABOVE, THOROUGH)
        tails = slice(2 + A_ABOVE, 2 + PROFILE)
        distance = abs(np.expm1(many[0, tails] - proven[0, tails]))
        assert (distance <= (many[0, ERRORS:] + proven[0, ERRORS:])[:PROFILE]).all()
        worst = max(worst, float(distance.max()))
    check("noise_families.beside_proven_rows", worst)


def _pair(noise: list[float], p: float, steps: list[float], backward: bool = False) -> object:
    """A pair of the C core with the kinds of steps as they are."""
    out = ffi.new("pe_pair **")
    n = len(noise)
    assert lib.pe_pair_new(n, noise, [p] * n, steps, backward, 3e7, out) == lib.PE_OK
    return ffi.gc(out[0], lib.pe_pair_free)


@settings(max_examples=60 if ALL else 12)
@given(
    low=log_uniform(0.4, 30.0),
    ratio=st.floats(1.0, 4.0),
    p=log_uniform(1e-4, 0.9),
    seed=st.integers(0, 2**32),
    depth=st.floats(0.5, 60.0),
)
def test_errors_cover_the_distance_to_all_kinds(
    low: float, ratio: float, p: float, seed: int, depth: float
) -> None:
    rng = np.random.default_rng(seed)
    noise = np.sort(low * rng.uniform(1.0, ratio, size=70))
    steps = rng.integers(1, 6, size=70).astype(float)
    for functional, x in ((A_ABOVE, -depth), (PROFILE, -depth)):
        many = call_kernel(
            lib.pe_pair_solve, _one(x), _pair(noise.tolist(), p, steps.tolist()), functional
        )
        c = many[0, 0]
        if math.isnan(c) or not many[0, ERRORS + functional] < 1e-6:
            continue
        # what it is compared with is a certified line, made of each kind by itself
        alone = _pair(noise.tolist(), p, steps.tolist())
        proven = call_kernel(lib.pe_pair_certify, _one(c), alone, functional, THOROUGH)
        if not proven[0, ERRORS + functional] < 1e-6:
            continue
        distance = abs(many[0, 2 + functional] - proven[0, 2 + functional])
        allowed = many[0, ERRORS + functional] + proven[0, ERRORS + functional]
        assert distance <= 1.01 * allowed


def _one(x: float) -> FloatArray:
    return np.array([x])


def test_order_and_grouping_of_steps_do_not_matter() -> None:
    steps = [pe.dp_sgd(float(s), 0.05, 1) for s in np.linspace(2.0, 4.0, KINDS)]
    value = pe.gamma_bound(pe.compose(*steps), 1e-3)
    assert pe.gamma_bound(pe.compose(*steps[::-1]), 1e-3) == value
    halves = pe.compose(*steps[: KINDS // 2]) + pe.compose(*steps[KINDS // 2 :])
    assert pe.gamma_bound(halves, 1e-3) == value


def test_kinds_of_many_steps_stand_for_themselves() -> None:
    # an error of one transform is multiplied by the number of its steps
    many = pe.compose(*(pe.dp_sgd(float(s), 0.001, 100) for s in np.linspace(2.0, 4.0, 80)))
    value = pe.gamma_bound(many, 1e-3)
    bounds = pe.gamma_bound(many, 1e-3, method="certified", bounds=True)
    assert bounds.lower * (1.0 - 1e-12) <= value <= bounds.upper * (1.0 + 1e-12)


def test_a_schedule_is_nearly_the_law_of_its_middle() -> None:
    # 201 kinds within 1e-13 of one noise
    split = pe.compose(*(pe.dp_sgd(2.0 + k * 2.0**-51, 0.05, 1) for k in range(-100, 101)))
    plain = pe.dp_sgd(2.0, 0.05, 201)
    for kappa in (0.3, 1e-3, 1e-9):
        assert pe.gamma_bound(split, kappa) == pytest.approx(
            pe.gamma_bound(plain, kappa), rel=3e-12
        )
