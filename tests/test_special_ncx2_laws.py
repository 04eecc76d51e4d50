"""The noncentral chi-squared functions: edges of the domain, and laws of distributions."""

from __future__ import annotations

import math

import fuzz_ncx2
import mpmath
import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pyengine import special

EPS = 2.0**-52
mp = mpmath.MPContext()
mp.dps = 40
NCX2 = ["ncx2_cdf", "ncx2_sf", "ncx2_logcdf", "ncx2_logsf", "ncx2_pdf", "ncx2_logpdf"]
QUANTILES = ["ncx2_ppf", "ncx2_isf", "ncx2_ppf_exp", "ncx2_isf_exp"]


@pytest.mark.parametrize("x", [0.0, -0.0, -1.0, -5e-324, -math.inf])
@pytest.mark.parametrize(("df", "nc"), [(0.5, 0.0), (2.0, 3.0), (1e10, 1e13), (1e-3, 0.0)])
def test_left_of_the_support(x: float, df: float, nc: float) -> None:
    assert special.ncx2_cdf(x, df, nc) == 0.0
    assert special.ncx2_sf(x, df, nc) == 1.0
    assert special.ncx2_logcdf(x, df, nc) == -math.inf
    assert special.ncx2_logsf(x, df, nc) == 0.0
    if x < 0:
        assert special.ncx2_pdf(x, df, nc) == 0.0
        assert special.ncx2_logpdf(x, df, nc) == -math.inf


def test_density_at_zero() -> None:
    assert special.ncx2_pdf(0.0, 1.0, 3.0) == math.inf
    assert special.ncx2_pdf(0.0, 2.0, 3.0) == pytest.approx(0.5 * math.exp(-1.5), rel=EPS)
    assert special.ncx2_logpdf(0.0, 2.0, 3000.0) == pytest.approx(-1500 - math.log(2), rel=EPS)
    assert special.ncx2_pdf(0.0, 3.0, 3.0) == 0.0


def test_infinity() -> None:
    for df, nc in [(0.5, 0.0), (1e10, 1e13)]:
        assert special.ncx2_cdf(math.inf, df, nc) == 1.0
        assert special.ncx2_sf(math.inf, df, nc) == 0.0
        assert special.ncx2_logcdf(math.inf, df, nc) == 0.0
        assert special.ncx2_logsf(math.inf, df, nc) == -math.inf
        assert special.ncx2_pdf(math.inf, df, nc) == 0.0
        assert special.ncx2_logpdf(math.inf, df, nc) == -math.inf


@pytest.mark.parametrize("df", [0.5, 0.7, 1.0, 3.0, 20.0, 20.5])
def test_central_quantile(df: float) -> None:
    """Across w = (p Gamma(a + 1))^(1/a) = 0.3, where the start changes, and far from it."""
    a, worst, number = mp.mpf(df) / 2, 0.0, 0
    for w in (1e-30, 1e-5, 0.01, 0.07, 0.2, 0.29999, 0.30001, 0.31, 0.6):
        p = float(mp.power(w, a) / mp.gamma(a + 1))
        if not 1e-300 < p < 1.0:
            continue
        x = float(special.ncx2_ppf(p, df, 0.0))
        y = mp.mpf(x) / 2
        tail = mp.gammainc(a, 0, y, regularized=True)
        rate = mp.power(y, a) * mp.exp(-y) / mp.gamma(a) / tail  # d log tail / d log x
        missed = abs(mp.log(tail / mp.mpf(p)) / rate)
        unit = EPS / 2 + EPS * max(1.0, -math.log(p)) / rate
        worst = max(worst, float(missed / unit))
        number += 1
    assert number >= 6
    assert 0.0 < worst < 2.0


BAD = [
    (math.nan, 1.0, 1.0), (1.0, math.nan, 1.0), (1.0, 1.0, math.nan), (1.0, -5e-324, 1.0),
    (1.0, -1.0, 1.0), (1.0, 1.0, -1e-300), (1.0, math.inf, 1.0), (1.0, 1.0, math.inf),
    (-1.0, -1.0, 1.0), (math.inf, -2.0, 1.0),
]  # fmt: skip


@pytest.mark.parametrize("name", NCX2)
@pytest.mark.parametrize("bad", BAD)
def test_invalid_gives_nan(name: str, bad: tuple[float, float, float]) -> None:
    assert math.isnan(getattr(special, name)(*bad))
    assert np.isnan(getattr(special, name)(np.full(3, bad[0]), bad[1], bad[2])).all()


@pytest.mark.parametrize("name", QUANTILES)
@pytest.mark.parametrize("bad", BAD[1:8])
def test_invalid_parameters_of_quantiles(name: str, bad: tuple[float, float, float]) -> None:
    for p in (-0.5, 0.5) if name.endswith("exp") else (0.5, 0.0, 1.0):
        assert math.isnan(getattr(special, name)(p, bad[1], bad[2]))


def test_quantile_edges() -> None:
    assert special.ncx2_ppf([0.0, -0.0, 1.0], 3.0, 2.0).tolist() == [0.0, 0.0, math.inf]
    assert special.ncx2_isf([0.0, 1.0], 3.0, 2.0).tolist() == [math.inf, 0.0]
    assert special.ncx2_ppf_exp([-math.inf, 0.0], 3.0, 2.0).tolist() == [0.0, math.inf]
    assert special.ncx2_isf_exp([-math.inf, 0.0], 3.0, 2.0).tolist() == [math.inf, 0.0]
    for p in (-1e-300, 1 + EPS, math.nan, math.inf, -math.inf):
        assert math.isnan(special.ncx2_ppf(p, 3.0, 2.0))
        assert math.isnan(special.ncx2_isf(p, 3.0, 2.0))
    for log_p in (1e-300, math.nan, math.inf):
        assert math.isnan(special.ncx2_ppf_exp(log_p, 3.0, 2.0))
    # below the smallest double, and far beyond any table
    assert special.ncx2_ppf(1e-300, 0.5, 0.0) == 0.0
    assert special.ncx2_ppf_exp(-1e300, 2.0, 1.0) == 0.0
    assert special.ncx2_isf_exp(-1e300, 2.0, 1.0) == pytest.approx(2e300, rel=1e-15)
    assert special.ncx2_ppf(5e-324, 2.0, 0.0) == pytest.approx(2 * 5e-324, rel=0, abs=0)


def test_quantiles_of_huge_noncentralities() -> None:
    """No double lies between the start and the answer: the search went astray, to 4.4e45."""
    for log_p in (-125.0, -3e3):
        for nc in (4e33, 1e60):
            for quantile in (special.ncx2_ppf_exp, special.ncx2_isf_exp):
                assert quantile(log_p, 2.0, nc) == pytest.approx(nc, rel=1e-14)


def test_subnormal_arguments() -> None:
    x = 5e-324
    # F = (x/2)^{1/2} / Gamma(3/2) for df = 1
    truth = mp.sqrt(mp.mpf(x) / 2) / mp.gamma(mp.mpf(3) / 2)
    assert special.ncx2_cdf(x, 1.0, 0.0) == pytest.approx(float(truth), rel=4 * EPS)
    assert special.ncx2_cdf(3.0, 2.0, x) == special.ncx2_cdf(3.0, 2.0, 0.0)
    assert special.ncx2_cdf(x, 2.0, 0.0) in (0.0, x)  # the truth is half-way
    assert special.ncx2_logcdf(x, 2.0, 0.0) == pytest.approx(float(mp.log(mp.mpf(x) / 2)), rel=EPS)


@pytest.mark.parametrize("df", [2.0, 4.0, 20.0])
def test_central_even_is_a_poisson_sum(df: float) -> None:
    for x in [1e-8, 0.3, 2.0, 25.0, 90.0, 1400.0]:
        half, k = mp.mpf(x) / 2, int(df) // 2
        truth = mp.exp(-half) * mp.fsum(half**j / mp.factorial(j) for j in range(k))
        assert special.ncx2_sf(x, df, 0.0) == pytest.approx(float(truth), rel=6 * EPS)


# ---- laws ----------------------------------------------------------------------------------------

dfs = st.floats(math.log(0.5), math.log(1e10)).map(math.exp)
ncs = st.one_of(st.just(0.0), st.floats(math.log(1e-12), math.log(1e13)).map(math.exp))
spreads = st.floats(-30, 30)


def at(df: float, nc: float, spread: float) -> float:
    return max(df + nc + spread * math.sqrt(2 * (df + 2 * nc)), 1e-300)


@given(df=dfs, nc=ncs, spread=spreads)
def test_tails_add_up(df: float, nc: float, spread: float) -> None:
    x = at(df, nc, spread)
    assert abs(special.ncx2_cdf(x, df, nc) + special.ncx2_sf(x, df, nc) - 1) <= EPS


@given(df=dfs, nc=ncs, spread=spreads)
def test_recurrence_in_df(df: float, nc: float, spread: float) -> None:
    """SF(df + 2) = SF(df) + 2 f(df + 2), where nothing cancels."""
    x = at(df, nc, spread)
    left = special.ncx2_sf(x, df + 2, nc)
    right = special.ncx2_sf(x, df, nc) + 2 * special.ncx2_pdf(x, df + 2, nc)
    assume(left > 1e-300)
    # df + 2 is rounded: the tail moves by half an ulp of df times its derivative in df
    slope = abs(special.ncx2_sf(x, (df + 2) * (1 + 1e-6), nc) / left - 1) / 1e-6
    assert left == pytest.approx(right, rel=EPS * (10 + slope))


@given(df=dfs, nc=ncs, spread=st.floats(-20, 20))
def test_density_is_the_derivative(df: float, nc: float, spread: float) -> None:
    x = at(df, nc, spread)
    tail = special.ncx2_logsf if spread > 0 else special.ncx2_logcdf
    # a complex step is not at hand: Richardson on steps that are exact differences of doubles
    rate = math.exp(special.ncx2_logpdf(x, df, nc) - tail(x, df, nc))
    h = min(2e-3 / rate, 1e-2 * x)

    def slope(h: float) -> float:
        a, b = x - h, x + h
        return float((tail(b, df, nc) - tail(a, df, nc)) / (b - a))

    estimate = (4 * slope(h / 2) - slope(h)) / 3
    noise = 40 * EPS * max(1, abs(tail(x, df, nc))) / (h * rate)
    assert abs(estimate) == pytest.approx(rate, rel=1e-9 + noise)


@given(df=dfs, nc=ncs, log_p=st.floats(-3e4, -1e-10))
def test_quantile_and_tail_are_inverse(df: float, nc: float, log_p: float) -> None:
    for quantile, tail in (
        (special.ncx2_ppf_exp, special.ncx2_logcdf),
        (special.ncx2_isf_exp, special.ncx2_logsf),
    ):
        x = float(quantile(log_p, df, nc))
        if x < 1e-300:
            assert special.ncx2_logcdf(1e-300, df, nc) >= log_p - 1e-9
            continue
        steps = [x * (1 - 8 * EPS), x * (1 + 8 * EPS)]
        ends = sorted(float(tail(v, df, nc)) for v in steps)
        slack = 16 * EPS * max(1.0, -log_p)
        assert ends[0] - slack <= log_p <= ends[1] + slack


@given(df=dfs, nc=ncs, spread=spreads, shift=st.integers(1, 2**20))
def test_monotone(df: float, nc: float, spread: float, shift: int) -> None:
    x = at(df, nc, spread)
    y = x * (1 + shift * EPS)
    assert special.ncx2_cdf(y, df, nc) >= special.ncx2_cdf(x, df, nc) * (1 - 8 * EPS)
    assert special.ncx2_sf(y, df, nc) <= special.ncx2_sf(x, df, nc) * (1 + 8 * EPS)


def test_random_bits() -> None:
    fuzz_ncx2.run(200_000, seed=7)
