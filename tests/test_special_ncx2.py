"""The noncentral chi-squared functions: accuracy, edges, laws, and behaviour as ufuncs."""

from __future__ import annotations

import csv
import gzip
import json
import math
import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any, NamedTuple

import fuzz_ncx2
import mpmath
import numpy as np
import pytest
from error_budget import check
from hypothesis import assume, given
from hypothesis import strategies as st

from pyengine import special

DATA = Path(__file__).parent / "data"
ROOT = Path(__file__).parents[1]
EPS = 2.0**-52
mp = mpmath.MPContext()
mp.dps = 40

UFUNCS = [name for name in special.__all__ if isinstance(getattr(special, name), np.ufunc)]
NCX2 = ["ncx2_cdf", "ncx2_sf", "ncx2_logcdf", "ncx2_logsf", "ncx2_pdf", "ncx2_logpdf"]
QUANTILES = ["ncx2_ppf", "ncx2_isf", "ncx2_ppf_exp", "ncx2_isf_exp"]


class Point(NamedTuple):
    stratum: str
    side: str
    tail: Any
    log_tail: Any
    log_pdf: Any


def load() -> tuple[list[Point], np.ndarray, np.ndarray, np.ndarray]:
    with gzip.open(DATA / "ncx2_reference.csv.gz", "rt", encoding="ascii") as file:
        rows = list(csv.DictReader(file))
    points = [
        Point(
            r["stratum"], r["side"], mp.mpf(r["tail"]), mp.mpf(r["log_tail"]), mp.mpf(r["log_pdf"])
        )
        for r in rows
    ]
    x, df, nc = (np.array([float(r[k]) for r in rows]) for k in ("x", "df", "nc"))
    return points, x, df, nc


POINTS, X, DF, NC = load()
ABOVE = np.array([p.side == "sf" for p in POINTS])


def pick(upper: np.ufunc, lower: np.ufunc, *args: np.ndarray) -> np.ndarray:
    return np.where(ABOVE, upper(*args), lower(*args))


def group(stratum: str) -> str:
    if stratum.startswith("depth"):
        return "depth"
    return stratum.replace(" ", "_")


class Worst:
    """The largest error by group of strata."""

    def __init__(self) -> None:
        self.values: dict[str, float] = {}

    def add(self, point: Point, error: float) -> None:
        assert not math.isnan(error)
        key = group(point.stratum)
        self.values[key] = max(self.values.get(key, 0.0), error)

    def check(self, name: str) -> None:
        for key, value in self.values.items():
            check(f"ncx2.{name}_{key}", value)


# ---- accuracy ------------------------------------------------------------------------------------


def test_reference_is_large_enough() -> None:
    assert len(POINTS) >= 10_000
    assert min(p.tail for p in POINTS) < mp.mpf("1e-12000")


def test_small_tail() -> None:
    """Relative error in units of 2^-52, whatever the depth: the tails go to 1e-300."""
    worst = Worst()
    values = pick(special.ncx2_sf, special.ncx2_cdf, X, DF, NC)
    for p, value in zip(POINTS, values, strict=True):
        if p.tail > mp.mpf("1e-300"):
            error = float(abs(mp.mpf(value) / p.tail - 1)) / EPS
            assert error <= 8  # required: 8 max(1, |log p|)
            worst.add(p, error)
    worst.check("tail_eps")


def test_large_tail() -> None:
    worst = Worst()
    values = pick(special.ncx2_cdf, special.ncx2_sf, X, DF, NC)
    for p, value in zip(POINTS, values, strict=True):
        worst.add(p, float(abs(mp.mpf(value) / (1 - p.tail) - 1)) / EPS)
    worst.check("other_tail_eps")


def test_log_of_small_tail() -> None:
    worst = Worst()
    values = pick(special.ncx2_logsf, special.ncx2_logcdf, X, DF, NC)
    for p, value in zip(POINTS, values, strict=True):
        error = float(abs(mp.mpf(value) / p.log_tail - 1)) / EPS
        assert error * EPS <= 1e-14
        worst.add(p, error)
    worst.check("log_tail_eps")


def test_log_of_large_tail() -> None:
    worst = Worst()
    values = pick(special.ncx2_logcdf, special.ncx2_logsf, X, DF, NC)
    for p, value in zip(POINTS, values, strict=True):
        if p.tail > mp.mpf("1e-300"):
            worst.add(p, float(abs(mp.mpf(value) / mp.log1p(-p.tail) - 1)) / EPS)
    worst.check("log_other_tail_eps")


def test_density() -> None:
    worst, worst_log = Worst(), Worst()
    values, logs = special.ncx2_pdf(X, DF, NC), special.ncx2_logpdf(X, DF, NC)
    for p, value, log_value in zip(POINTS, values, logs, strict=True):
        worst_log.add(p, float(abs(mp.mpf(log_value) - p.log_pdf) / max(1, abs(p.log_pdf))) / EPS)
        if -690 < p.log_pdf < 700:
            worst.add(p, float(abs(mp.mpf(value) / mp.exp(p.log_pdf) - 1)) / EPS)
    worst.check("pdf_eps")
    worst_log.check("logpdf_eps")


def quantile_errors(logarithm: bool) -> Worst:
    """Error over u/2 + eps max(1, |log p|)/cond, at the double next to the tail of a point."""
    if logarithm:
        target = np.array([float(p.log_tail) for p in POINTS])
        values = pick(special.ncx2_isf_exp, special.ncx2_ppf_exp, target, DF, NC)
    else:
        target = np.array([float(p.tail) for p in POINTS])
        values = pick(special.ncx2_isf, special.ncx2_ppf, target, DF, NC)
    worst = Worst()
    for p, q, x, value in zip(POINTS, target, X, values, strict=True):
        if not logarithm and q < 1e-300:
            continue
        cond = mp.mpf(x) * mp.exp(p.log_pdf - p.log_tail)
        if cond < 1e-13:  # the quantile does not depend on the digits of p there
            continue
        shift = (mp.mpf(q) if logarithm else mp.log(mp.mpf(q))) - p.log_tail
        # one Newton step from x, whose tail is known: the rest is below 1e-20
        truth = mp.mpf(x) * (1 + (shift if p.side == "cdf" else -shift) / cond)
        unit = EPS / 2 + EPS * max(1, abs(p.log_tail)) / cond
        error = float(abs(mp.mpf(value) / truth - 1) / unit)
        assert error <= 4
        worst.add(p, error)
    return worst


def test_quantile() -> None:
    quantile_errors(logarithm=False).check("quantile_units")


def test_quantile_from_log() -> None:
    quantile_errors(logarithm=True).check("quantile_exp_units")


def test_known_points() -> None:
    """Values that came with the project, made by another program."""
    known = json.loads((DATA / "ncx2_known.json").read_text(encoding="utf-8"))
    worst = worst_log = worst_quantile = 0.0
    for p in known["points"]:
        args = float(p["x"]), float(p["d"]), float(p["lam"])
        log_truth, truth = mp.mpf(p["log_small"]), mp.mpf(p[p["small"]])
        log_value = getattr(special, f"ncx2_log{p['small']}")(*args)
        worst_log = max(worst_log, float(abs(mp.mpf(log_value) / log_truth - 1)) / EPS)
        if truth > mp.mpf("1e-300"):
            value = getattr(special, f"ncx2_{p['small']}")(*args)
            worst = max(worst, float(abs(mp.mpf(value) / truth - 1)) / EPS)
    for q in known["quantiles"]:
        name, tail = ("ncx2_ppf", "cdf") if q["tail"] == "cdf" else ("ncx2_isf", "sf")
        args = float(q["d"]), float(q["lam"])
        x, p = getattr(special, name)(float(q["p"]), *args), float(q["p"])
        cond = x * special.ncx2_pdf(x, *args) / getattr(special, f"ncx2_{tail}")(x, *args)
        unit = EPS / 2 + EPS * max(1, -math.log(p)) / cond
        error = float(abs(mp.mpf(x) / mp.mpf(q["x"]) - 1)) / unit
        worst_quantile = max(worst_quantile, error)
    check("ncx2.known_tail_eps", worst)
    check("ncx2.known_log_tail_eps", worst_log)
    check("ncx2.known_quantile_units", worst_quantile)


# ---- Marcum's Q and the compositions -------------------------------------------------------------


def compositions(kind: str) -> list[dict[str, str]]:
    with gzip.open(DATA / "ncx2_compositions.csv.gz", "rt", encoding="ascii") as file:
        return [r for r in csv.DictReader(file) if r["kind"] == kind]


def test_one_step_sgd() -> None:
    worst = worst_value = 0.0
    for r in compositions("sgd"):
        args = [float(r[k]) for k in ("p", "a", "b", "c")]
        truth = mp.mpf(r["log_value"])
        error = float(abs(mp.mpf(special.log_one_step_sgd_beta(*args)) / truth - 1))
        assert error <= 1e-14
        worst = max(worst, error / EPS)
        if truth > -690:
            value = special.one_step_sgd_beta(*args)
            worst_value = max(worst_value, float(abs(mp.mpf(value) / mp.exp(truth) - 1)) / EPS)
            power = special.one_step_sgd_power(*args)
            log_power = special.log_one_step_sgd_power(*args)
            assert power == pytest.approx(-math.expm1(truth), rel=1e-13)
            assert log_power == pytest.approx(float(mp.log(-mp.expm1(truth))), rel=1e-13)
    check("ncx2.log_one_step_sgd_eps", worst)
    check("ncx2.one_step_sgd_eps", worst_value)


def test_relaxed() -> None:
    worst = 0.0
    for r in compositions("relaxed"):
        alpha, d, mu = (float(r[k]) for k in ("p", "a", "b"))
        truth = mp.mpf(r["log_value"])
        error = float(abs(mp.mpf(special.log_relaxed_beta(alpha, d, mu)) / truth - 1))
        assert error <= 1e-14
        worst = max(worst, error / EPS)
        beta = special.relaxed_beta(alpha, d, mu)
        if 1e-290 < beta < 0.9:  # the inverse is well-posed
            back = special.relaxed_alpha(beta, d, mu)
            # alpha moves by cond(alpha)/cond(beta) roundings of beta
            assert back == pytest.approx(alpha, rel=2e-12)
            assert special.log_relaxed_alpha(beta, d, mu) == pytest.approx(
                math.log(back), rel=1e-13, abs=1e-15
            )
    check("ncx2.log_relaxed_eps", worst)


def test_marcum() -> None:
    worst = worst_log = worst_inverse = 0.0
    for r in compositions("marcum"):
        order, a, b = (float(r[k]) for k in ("p", "a", "b"))
        letter = "q" if r["side"] == "sf" else "p"
        log_truth = mp.mpf(r["log_value"])
        log_value = getattr(special, f"log_marcum_{letter}")(order, a, b)
        worst_log = max(worst_log, float(abs(mp.mpf(log_value) / log_truth - 1)) / EPS)
        if log_truth > -690:
            value = getattr(special, f"marcum_{letter}")(order, a, b)
            worst = max(worst, float(abs(mp.mpf(value) / mp.exp(log_truth) - 1)) / EPS)
        # the inverse at the double nearest to the log: b moves by its error over b f/p
        back = getattr(special, f"marcum_{letter}_inv_exp")(order, a, float(log_truth))
        density = 2 * b * b * special.ncx2_pdf(b * b, 2 * order, a * a)
        cond = float(mp.mpf(density) / mp.exp(log_truth)) if density > 1e-290 else math.inf
        if cond > 1e-10:
            unit = EPS / 2 + EPS * max(1.0, -float(log_truth)) / cond
            worst_inverse = max(worst_inverse, abs(back / b - 1) / unit)
    check("ncx2.marcum_eps", worst)
    check("ncx2.log_marcum_eps", worst_log)
    check("ncx2.marcum_inverse_units", worst_inverse)


def test_marcum_edges() -> None:
    q, p = special.marcum_q, special.marcum_p
    assert q(1.0, 2.0, 0.0) == 1.0
    assert p(1.0, 2.0, 0.0) == 0.0
    assert q(1.0, 2.0, math.inf) == 0.0
    assert special.log_marcum_q(1.0, 2.0, math.inf) == -math.inf
    for bad in [
        (0.0, 1.0, 1.0),
        (-1.0, 1.0, 1.0),
        (1.0, -1.0, 1.0),
        (1.0, 1.0, -1.0),
        (math.inf, 1.0, 1.0),
        (1.0, math.inf, 1.0),
        (math.nan, 1.0, 1.0),
    ]:
        assert math.isnan(q(*bad))
        assert math.isnan(special.log_marcum_p(*bad))
    # b^2 underflows: P = b^2/2 e^{-a^2/2} for order 1
    b = 1e-200
    assert special.log_marcum_p(1.0, 1.0, b) == pytest.approx(
        2 * math.log(b) - math.log(2) - 0.5, rel=1e-15
    )
    # beyond the range of the squares
    assert q(1.0, 1e200, 1e201) == 0.0
    assert q(1.0, 1e201, 1e200) == 1.0
    assert special.log_marcum_q(1.0, 0.0, 1e150) == pytest.approx(-0.5e300, rel=1e-15)
    assert special.marcum_q_inv_exp(2.0, 3.0, -1.5e308) == pytest.approx(
        math.sqrt(2) * math.sqrt(1.5e308), rel=1e-15
    )
    assert special.marcum_q_inv(2.0, 3.0, 1.0) == 0.0
    assert special.marcum_q_inv(2.0, 3.0, 0.0) == math.inf
    assert math.isnan(special.marcum_q_inv(2.0, 3.0, 1.5))


def test_order_one_half_is_the_normal_distribution() -> None:
    for a, b in [(0.0, 1.0), (0.5, 3.0), (2.0, 30.0), (5.0, 5.5), (0.1, 1e-8)]:
        truth = (mp.erfc((mp.mpf(b) - a) / mp.sqrt(2)) + mp.erfc((mp.mpf(b) + a) / mp.sqrt(2))) / 2
        assert special.marcum_q(0.5, a, b) == pytest.approx(float(truth), rel=4 * EPS)


# ---- edges ---------------------------------------------------------------------------------------


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


BAD = [
    (math.nan, 1.0, 1.0), (1.0, math.nan, 1.0), (1.0, 1.0, math.nan), (1.0, 0.0, 1.0),
    (1.0, -1.0, 1.0), (1.0, 1.0, -1e-300), (1.0, math.inf, 1.0), (1.0, 1.0, math.inf),
    (-1.0, -1.0, 1.0), (math.inf, 0.0, 1.0),
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
    assert abs(estimate) == pytest.approx(rate, rel=1e-6 + noise)


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


# ---- behaviour as ufuncs -------------------------------------------------------------------------


def sample(name: str, n: int, seed: int = 3) -> list[np.ndarray]:
    """Arguments in the domain of a ufunc."""
    rng = np.random.default_rng(seed)
    function = getattr(special, name)
    df = np.exp(rng.uniform(-0.5, 12, n))
    nc = np.exp(rng.uniform(-5, 15, n)) * (rng.random(n) > 0.1)
    x = np.abs(df + nc + np.sqrt(2 * df + 4 * nc) * rng.uniform(-9, 9, n))
    p = rng.random(n)
    if "sgd" in name:
        return [p, df, 2 + 100 * rng.random(n), df]
    if "relaxed" in name:
        return [p, df, np.sqrt(nc)]
    if "marcum" in name:
        last = np.sqrt(x) if "inv" not in name else np.log(p) if "exp" in name else p
        return [df / 2, np.sqrt(nc), last]
    assert function.nin == 3
    first = x if name in NCX2 else np.log(p) if name.endswith("exp") else p
    return [first, df, nc]


def same_bits(a: Any, b: Any) -> bool:
    return np.array_equal(np.asarray(a).view(np.int64), np.asarray(b).view(np.int64))


def test_all_are_ufuncs() -> None:
    assert len(UFUNCS) == 26
    for name in UFUNCS:
        function = getattr(special, name)
        assert function.__name__ == name
        assert function.nout == 1
        assert set(function.types) == {"d" * function.nin + "->d"}
        assert "Parameters" in function.__doc__


@pytest.mark.parametrize("name", UFUNCS)
def test_same_bits_one_by_one(name: str) -> None:
    """Scalar call, array call, array of any length and stride: the same bits."""
    function = getattr(special, name)
    args = sample(name, 200)
    whole = function(*args)
    assert not np.isnan(whole).any()
    one = np.array([function(*map(float, row)) for row in zip(*args, strict=True)])
    assert same_bits(one, whole)
    for n in (0, 1, 2, 3, 7, 31, 32, 33, 65):
        assert same_bits(function(*[a[:n] for a in args]), whole[:n])
    assert same_bits(function(*[a[::-3] for a in args]), whole[::-3].copy())
    assert same_bits(function(*[a.reshape(10, 20).T for a in args]), whole.reshape(10, 20).T.copy())


@pytest.mark.parametrize("name", UFUNCS)
def test_out_where_and_broadcasting(name: str) -> None:
    function = getattr(special, name)
    args = sample(name, 12)
    out = np.full(12, -7.0)
    mask = np.arange(12) % 3 == 0
    result = function(*args, out=out, where=mask)
    assert result is out
    assert same_bits(out[mask], function(*args)[mask])
    assert (out[~mask] == -7.0).all()
    wide = function(args[0][:, None], *[a[None, :4] for a in args[1:]])
    assert wide.shape == (12, 4)
    assert wide[5, 2] == function(args[0][5], *[a[2] for a in args[1:]])
    aliased = args[0].copy()
    function(aliased, *args[1:], out=aliased)
    assert same_bits(aliased, function(*args))


def test_types_of_arguments() -> None:
    f = special.ncx2_cdf
    expected = f(3.0, 2.0, 1.0)
    for args in [
        (3, 2, 1),
        (np.float64(3), 2, True),
        (np.float32(3), np.int8(2), 1),
        (np.array(3.0), 2.0, 1),
    ]:
        value = f(*args)
        assert value == expected
        assert isinstance(value, np.float64)
    assert f([3, 3], 2, 1).dtype == np.float64
    assert f(10**400 > 0, 2, 1) == f(1.0, 2.0, 1.0)
    with pytest.raises((TypeError, OverflowError)):
        f(10**400, 2, 1)
    for bad in [("3", 2, 1), (None, 2, 1), (3j, 2, 1)]:
        with pytest.raises(TypeError):
            f(*bad)
    with pytest.raises(TypeError):
        f(1.0, 2.0)
    with pytest.raises(ValueError, match="broadcast"):
        f(np.ones(2), np.ones(3), 1.0)


def test_no_warnings() -> None:
    """Flags raised in discarded lanes stay inside, also with errors turned on."""
    values = [0.0, 5e-324, 1e-300, 1e-5, 1.0, 700.0, 1e10, 1e300, math.inf, -1.0, math.nan]
    with warnings.catch_warnings(), np.errstate(all="raise"):
        warnings.simplefilter("error")
        for name in UFUNCS:
            function = getattr(special, name)
            grid = np.meshgrid(*[values] * function.nin)
            function(*grid)
            np.add(1.0, 1.0)
    with np.errstate(all="raise"):  # scalar calls leave no flags behind either
        special.ncx2_sf(1e4, 1.0, 0.0)
        assert np.add(np.ones(3), 1.0).sum() == 6.0


# ---- threads -------------------------------------------------------------------------------------


@pytest.mark.parametrize("workers", [None, 1, 2, 5])
def test_threaded_gives_the_same_bits(workers: int | None) -> None:
    x, df, nc = sample("ncx2_cdf", 60_000)
    expected = special.ncx2_cdf(x, df, nc)
    assert same_bits(special.threaded(special.ncx2_cdf, x, df, nc, workers=workers), expected)
    out = np.empty((60, 1000))
    shaped = [a.reshape(60, 1000) for a in (x, df, nc)]
    assert special.threaded(special.ncx2_cdf, *shaped, out=out, workers=workers) is out
    assert same_bits(out.ravel(), expected)


def test_threaded_on_small_and_scalar_arguments() -> None:
    assert special.threaded(special.ncx2_cdf, 3.0, 2.0, 1.0) == special.ncx2_cdf(3.0, 2.0, 1.0)
    assert special.threaded(special.ncx2_cdf, np.empty(0), 2.0, 1.0).shape == (0,)


def test_threaded_rejects_bad_arguments() -> None:
    with pytest.raises(ValueError, match="workers must be at least 1, got 0"):
        special.threaded(special.ncx2_cdf, np.ones(3), 2.0, 1.0, workers=0)
    with pytest.raises(ValueError, match="out must be a float64 array of shape"):
        special.threaded(special.ncx2_cdf, np.ones(3), 2.0, 1.0, out=np.empty(4))


def test_many_threads_at_once() -> None:
    args = sample("ncx2_ppf", 5000)
    expected = special.ncx2_ppf(*args)
    results: list[np.ndarray] = []

    def work() -> None:
        results.append(special.ncx2_ppf(*args))

    threads = [threading.Thread(target=work) for _ in range(8)]
    for t in threads:
        t.start()
    for t in threads:
        t.join()
    assert len(results) == 8
    assert all(same_bits(r, expected) for r in results)


def _in_child(queue: Any) -> None:
    x, df, nc = sample("ncx2_cdf", 60_000)
    queue.put(float(np.sum(special.threaded(special.ncx2_cdf, x, df, nc, workers=2))))


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:This process:DeprecationWarning")
def test_threaded_after_fork() -> None:
    x, df, nc = sample("ncx2_cdf", 60_000)
    expected = float(np.sum(special.threaded(special.ncx2_cdf, x, df, nc, workers=2)))
    context = multiprocessing.get_context("fork")
    queue = context.Queue()
    child = context.Process(target=_in_child, args=(queue,))
    child.start()
    try:
        assert queue.get(timeout=60) == expected
    finally:
        child.join(timeout=60)
    assert child.exitcode == 0


# ---- the same bits whatever the processor --------------------------------------------------------


@pytest.mark.skipif(
    shutil.which("gcc") is None or sys.platform != "linux", reason="needs gcc on Linux"
)
def test_same_bits_on_every_path(tmp_path: Path) -> None:
    """The kernels compiled for one level at a time agree with the dispatched build."""
    flags_of_cpu = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="ignore")
    levels = [[]]
    if " avx2 " in flags_of_cpu and " fma " in flags_of_cpu:
        levels.append(["-march=x86-64-v3"])
    if " avx512vl " in flags_of_cpu and " avx512dq " in flags_of_cpu:
        levels.append(["-march=x86-64-v4"])
    sources = [
        str(ROOT / "csrc" / f"{n}.c")
        for n in ("ncx2_core", "ncx2", "ncx2_quantile", "marcum", "normal")
    ]
    driver = ROOT / "tests" / "c" / "bits" / "ncx2.c"
    outputs = []
    for i, level in enumerate([None, *levels]):
        program = tmp_path / f"bits{i}"
        command = [
            "gcc",
            "-O3",
            "-std=c11",
            "-ffp-contract=off",
            "-fno-math-errno",
            "-fno-trapping-math",
            f"-I{ROOT / 'csrc'}",
            *sources,
            str(driver),
            "-o",
            str(program),
            "-lm",
        ]
        if level is not None:
            command += ["-DPE_SANITIZED", *level]  # no runtime dispatch
        subprocess.run(command, check=True)
        outputs.append(subprocess.run([str(program)], check=True, capture_output=True).stdout)
    assert len(outputs[0]) > 10_000
    assert all(o == outputs[0] for o in outputs)
