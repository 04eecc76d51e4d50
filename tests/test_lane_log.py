"""The logarithms of csrc/lane_log.h within the errors that proofs count with, by mpmath."""

from __future__ import annotations

import ctypes
from collections.abc import Callable
from typing import Any

import mpmath
import numpy as np
import numpy.typing as npt
import pytest
from compiling import ROOT, compiled

Array = npt.NDArray[np.float64]
COUNT = 20_000
UNIT = mpmath.ldexp(1, -53)


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Any:
    door = ROOT / "tests/c/doors/lane_log.c"
    return compiled(tmp_path_factory.mktemp("lanes") / "kernel.so", [door])


def asked(function: Callable[..., None], *given: Array, outs: int = 1) -> list[Array]:
    """What a function over arrays makes of some."""
    arrays = [np.ascontiguousarray(x) for x in given]
    found = [np.empty_like(arrays[0]) for _ in range(outs)]
    function(ctypes.c_size_t(len(arrays[0])), *(x.ctypes for x in (*arrays, *found)))
    return found


def next_to_0(rng: np.random.Generator) -> tuple[Array, Array]:
    """Points of the disc |z| <= 1/4, its edge and its axes, some next to 0 in a part or in both."""
    angle = rng.uniform(-np.pi, np.pi, COUNT)
    radius = 0.25 * np.where(rng.random(COUNT) < 0.3, 1 - 1e-15, 10 ** rng.uniform(-18, 0, COUNT))
    a, b = radius * np.cos(angle), radius * np.sin(angle)
    near = rng.random(COUNT) < 0.4  # where the modulus is next to 1, and its logarithm cancels
    a[near] = -0.5 * b[near] ** 2 * (1 + 10 ** rng.uniform(-16, 0, near.sum()))
    a[rng.random(COUNT) < 0.02] = 0.0
    b[rng.random(COUNT) < 0.02] = 0.0
    inside = a * a + b * b <= 1 / 16
    return a[inside], b[inside]


def test_log_next_to_1(kernel: Any) -> None:
    a, b = next_to_0(np.random.default_rng(3))
    re, im = asked(kernel.log_next_to_1, a, b, outs=2)
    worst_re = worst_im = mpmath.mpf(0)
    with mpmath.workdps(120):
        for x, y, u, v in zip(*(column.tolist() for column in (a, b, re, im)), strict=True):
            truth = mpmath.log(1 + mpmath.mpc(x, y))
            size = 2 * abs(mpmath.mpf(x)) + mpmath.mpf(x) ** 2 + mpmath.mpf(y) ** 2
            if size:
                worst_re = max(worst_re, abs(u - truth.real) / (size * UNIT))
            if y:
                worst_im = max(worst_im, abs(v - truth.imag) / (abs(truth.imag) * UNIT))
    assert 1 < worst_re <= 7
    assert 1 < worst_im <= 8


@pytest.mark.parametrize(
    ("name", "low", "high", "units"),
    [("exp_less_1", -700.0, 690.0, 6), ("log_above_1", -0.999, 1e6, 6)],
)
def test_real_functions(kernel: Any, name: str, low: float, high: float, units: float) -> None:
    rng = np.random.default_rng(5)
    x = np.concatenate(
        [
            rng.uniform(low, high, COUNT // 4),
            rng.uniform(-0.6, 0.6, COUNT // 4),
            np.copysign(10 ** rng.uniform(-300, -1, COUNT // 4), rng.uniform(-1, 1, COUNT // 4)),
        ]
    )
    (found,) = asked(getattr(kernel, name), x)
    truth = mpmath.expm1 if name == "exp_less_1" else mpmath.log1p
    with mpmath.workdps(40):
        for given, value in zip(x.tolist(), found.tolist(), strict=True):
            right = truth(mpmath.mpf(given))
            assert abs(value - right) <= units * UNIT * abs(right), given


def test_arguments(kernel: Any) -> None:
    rng = np.random.default_rng(7)
    x = np.copysign(10 ** rng.uniform(-12, 12, COUNT), rng.uniform(-1, 1, COUNT))
    y = 10 ** rng.uniform(-12, 12, COUNT)
    x[:100] = 0.0
    (found,) = asked(kernel.argument, x, y)
    with mpmath.workdps(40):
        for a, b, value in zip(x.tolist(), y.tolist(), found.tolist(), strict=True):
            right = mpmath.atan2(b, a)
            assert abs(value - right) <= 16 * UNIT * right, (a, b)
