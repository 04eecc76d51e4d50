"""The normal distribution against 60-digit arithmetic, its edges and its properties."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Iterable
from typing import Any

import mpmath
import numpy as np
import pytest
from error_budget import check
from hypothesis import given
from hypothesis import strategies as st
from thorough import ALL, some

from pyengine import special

mp = mpmath.MPContext()  # a context of its own: other tests set the precision of the shared one
mp.dps = 60
Real = Any

FUNCTIONS = ["normal_pdf", "ndtr", "log_ndtr", "ndtri", "ndtri_exp"]
SMALLEST = 5e-324


def pdf(x: float) -> Real:
    return mp.exp(-(mp.mpf(x) ** 2) / 2) / mp.sqrt(2 * mp.pi)


def ndtr(x: float) -> Real:
    return mp.erfc(-mp.mpf(x) / mp.sqrt(2)) / 2


def log_ndtr(x: float | Real) -> Real:
    x = mp.mpf(x)
    if x > 0:
        return mp.log1p(-mp.erfc(x / mp.sqrt(2)) / 2)
    if x > -1e4:
        return mp.log(mp.erfc(-x / mp.sqrt(2)) / 2)
    term = total = mp.mpf(1)  # asymptotic series of Mills' ratio: 12 terms give 80 digits
    for k in range(1, 12):
        term *= -(2 * k - 1) / x**2
        total += term
    return -(x**2) / 2 - mp.log(-x) - mp.log(2 * mp.pi) / 2 + mp.log(total)


def ndtri_exp(y: float | Real) -> Real:
    """Newton's method on log_ndtr in 60 digits; the start does not enter the result."""
    y = mp.mpf(y)
    if y < -1e40:
        return -mp.sqrt(-2 * y)
    if abs(y + mp.log(2)) < mp.mpf(10) ** -25:
        return mp.sqrt(2 * mp.pi) * mp.expm1(y + mp.log(2)) / 2
    x = mp.mpf(special.ndtri_exp(float(y)))
    for _ in range(8):
        slope = -x if x < -1e4 else pdf(x) / ndtr(x)
        step = (log_ndtr(x) - y) / slope
        x -= step
        if abs(step) < abs(x) * mp.mpf(10) ** -28:
            return x
    raise AssertionError(f"no quantile of exp({y})")


def ndtri(p: float) -> Real:
    p = mp.mpf(p)
    return ndtri_exp(mp.log(p)) if p < 0.5 else -ndtri_exp(mp.log1p(-p))


def worst_ulp(
    function: Callable[[float], float],
    truth: Callable[[float], Real],
    arguments: Iterable[float],
) -> float:
    worst = 0.0
    for x in arguments:
        true = truth(x)
        error = abs(mp.mpf(function(x)) - true) / mp.mpf(math.ulp(float(true)))
        worst = max(worst, float(error))
    return worst


def around(points: Iterable[float], width: float, rng: random.Random) -> list[float]:
    return [c + rng.uniform(-width, width) for c in points for _ in range(60)]


def real_line(rng: random.Random) -> list[float]:
    return [
        *(rng.uniform(-1, 1) for _ in range(500)),
        *(rng.uniform(-7, 7) for _ in range(1500)),
        *(rng.uniform(-38.4, 38.4) for _ in range(1500)),
        *(rng.choice([-1, 1]) * 10 ** rng.uniform(-300, 0) for _ in range(300)),
        *around((-0.7, 0.7, -6, 6, -37.416573867739416, 37.416573867739416), 1e-3, rng),
        *around((-38.0, 38.0), 0.4, rng),
    ]


def logarithms(rng: random.Random) -> list[float]:
    log2 = math.log(2)
    return [
        *(-(10 ** rng.uniform(-300, 300)) for _ in range(1500)),
        *(-(10 ** rng.uniform(-3, 4)) for _ in range(2500)),
        *(-log2 * (1 + rng.choice([-1, 1]) * 10 ** rng.uniform(-16, -1)) for _ in range(500)),
        *around((-2.590267165445827, -0.07796154146971185, -log2 / 2, -2 * log2), 1e-6, rng),
        *around((-800.0, -745.0, -10000.0), 1e-2, rng),
        *(-1e20 * (1 + rng.uniform(-1e-6, 1e-6)) for _ in range(60)),
        -log2,
        -SMALLEST,
        -1e-300,
        -1e300,
        -1.7e308,
    ]


def probabilities(rng: random.Random) -> list[float]:
    return [
        *(rng.random() for _ in range(1500)),
        *(10 ** rng.uniform(-323, 0) for _ in range(1500)),
        *(1 - 10 ** rng.uniform(-15.9, -1) for _ in range(500)),
        *(0.5 + rng.choice([-1, 1]) * 10 ** rng.uniform(-16, -0.31) for _ in range(500)),
        *around((0.075, 0.925, 0.25, 0.75), 1e-6, rng),
        SMALLEST,
        2 * SMALLEST,
        1 - 2**-53,
        0.5 + 2**-53,
        0.5 - 2**-54,
    ]


@pytest.mark.parametrize(
    ("name", "truth", "sample"),
    [
        ("normal_pdf", pdf, real_line),
        ("ndtr", ndtr, real_line),
        ("log_ndtr", log_ndtr, real_line),
        ("ndtri", ndtri, probabilities),
        ("ndtri_exp", ndtri_exp, logarithms),
    ],
)
def test_error_in_ulp(
    name: str,
    truth: Callable[[float], Real],
    sample: Callable[[random.Random], list[float]],
) -> None:
    arguments = [x for x in sample(random.Random(name)) if x != 0.5 or name != "ndtri"]
    assert len(arguments) > 4000
    worst = worst_ulp(getattr(special, name), truth, some(arguments, 4))
    check(f"special.{name}_ulp", worst, whole=ALL)


def test_log_ndtr_far_left() -> None:
    rng = random.Random(7)
    arguments = [-(10 ** rng.uniform(1, 154)) for _ in range(1000)] + [-1e8, -1e16, -1e150]
    check("special.log_ndtr_far_left_ulp", worst_ulp(special.log_ndtr, log_ndtr, arguments))


@pytest.mark.parametrize(
    ("name", "argument", "expected"),
    [
        ("normal_pdf", math.inf, 0.0),
        ("normal_pdf", -math.inf, 0.0),
        ("normal_pdf", 1e308, 0.0),
        ("ndtr", -math.inf, 0.0),
        ("ndtr", math.inf, 1.0),
        ("ndtr", 0.0, 0.5),
        ("ndtr", -0.0, 0.5),
        ("ndtr", -1e308, 0.0),
        ("ndtr", -38.45, SMALLEST * 2),
        ("ndtr", 9.0, 1.0),
        ("log_ndtr", -math.inf, -math.inf),
        ("log_ndtr", math.inf, -0.0),
        ("log_ndtr", 0.0, -math.log(2)),
        ("log_ndtr", 1e300, -0.0),
        ("log_ndtr", -1e308, -math.inf),
        ("ndtri", 0.0, -math.inf),
        ("ndtri", -0.0, -math.inf),
        ("ndtri", 1.0, math.inf),
        ("ndtri", 0.5, 0.0),
        ("ndtri", -SMALLEST, math.nan),
        ("ndtri", 1.0000000000000002, math.nan),
        ("ndtri", -math.inf, math.nan),
        ("ndtri", math.inf, math.nan),
        ("ndtri_exp", 0.0, math.inf),
        ("ndtri_exp", -0.0, math.inf),
        ("ndtri_exp", -math.inf, -math.inf),
        ("ndtri_exp", SMALLEST, math.nan),
        ("ndtri_exp", math.inf, math.nan),
    ],
)
def test_edges(name: str, argument: float, expected: float) -> None:
    value = getattr(special, name)(argument)
    assert type(value) is float
    np.testing.assert_equal(value, expected)


@pytest.mark.parametrize("name", FUNCTIONS)
def test_scalars_and_arrays_agree(name: str) -> None:
    function = getattr(special, name)
    sample = {"ndtri": probabilities, "ndtri_exp": logarithms}.get(name, real_line)
    arguments = np.array([*sample(random.Random(3)), math.nan])
    expected = np.array([function(float(x)) for x in arguments])
    np.testing.assert_array_equal(function(arguments), expected)
    np.testing.assert_array_equal(function(arguments[::-3]), expected[::-3])
    np.testing.assert_array_equal(function(arguments.tolist()), expected)
    block = arguments[: arguments.size // 6 * 6].reshape(2, -1, 3)
    np.testing.assert_array_equal(function(block).ravel(), expected[: block.size])
    np.testing.assert_array_equal(function(np.asfortranarray(block)), function(block))
    np.testing.assert_array_equal(function(arguments.astype(">f8")), expected)
    assert math.isnan(function(math.nan))


@pytest.mark.parametrize("name", FUNCTIONS)
def test_shapes_and_types(name: str) -> None:
    function = getattr(special, name)
    for scalar in (0, -0.0, False, np.float64(0.0), np.float32(0.0), np.int8(0), np.array(0.0)):
        assert type(function(scalar)) is float
        assert function(scalar) == function(0.0)
    for shape in ((0,), (0, 3), (1,), (2, 1, 2)):
        assert function(np.zeros(shape)).shape == shape
    before = np.zeros(3)
    function(before)
    assert not before.any()


@pytest.mark.parametrize("name", FUNCTIONS)
@pytest.mark.parametrize("wrong", ["0.5", 1j, [None], [object()], ["a", "b"], [[1.0], [1.0, 2.0]]])
def test_wrong_input(name: str, wrong: object) -> None:
    with pytest.raises(ValueError, match=r"must be real numbers|inhomogeneous"):
        getattr(special, name)(wrong)


@given(st.floats(min_value=-38.0, max_value=38.0))
def test_reflection(x: float) -> None:
    assert special.ndtr(x) + special.ndtr(-x) == pytest.approx(1.0, rel=0.0, abs=4e-16)
    assert special.normal_pdf(x) == special.normal_pdf(-x)


@given(st.floats(min_value=0.0, max_value=1.0))
def test_quantile_is_odd(p: float) -> None:
    mirrored = 1.0 - p
    if 1.0 - mirrored == p:  # only then is p mirrored without rounding
        assert special.ndtri(p) == -special.ndtri(mirrored)


@given(st.floats(max_value=-1e-300, allow_infinity=False))
def test_quantile_inverts_log(y: float) -> None:
    x = special.ndtri_exp(y)
    if x < 8.0:  # further right, x determines log Phi(x) only to x^2 ulp
        assert special.log_ndtr(x) == pytest.approx(y, rel=1e-13, abs=0.0)


@given(
    st.floats(allow_nan=False, allow_infinity=False),
    st.floats(min_value=1e-12, max_value=1e6),
    st.sampled_from([0, 1]),
)
def test_monotone(x: float, gap: float, which: int) -> None:
    function = (special.ndtr, special.log_ndtr)[which]
    further = x + gap * max(1.0, abs(x))
    assert function(x) <= function(further)
