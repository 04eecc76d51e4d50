"""Inverses in the noncentrality, in df and in Marcum's a; and no degrees of freedom."""

from __future__ import annotations

import csv
import gzip
import math
import random
from functools import partial
from pathlib import Path
from typing import Any

import mpmath
import numpy as np
import pytest
from error_budget import check
from test_special_ncx2 import ABOVE, DF, EPS, NC, POINTS, X, pick

from pyengine import special

mp = mpmath.MPContext()
mp.dps = 80
DATA = Path(__file__).parent / "data" / "ncx2_compositions.csv.gz"
INVERSES = ["ncx2_nc", "ncx2_df", "marcum_p_inv_a"]


def unit_of(condition: float, log_tail: float) -> float:
    """As of quantiles: half a unit of the answer, and what rounding does to the tail."""
    return EPS / 2 + EPS * max(1.0, -log_tail) / abs(condition)


def test_inverses_at_the_points_of_the_reference() -> None:
    """At the double next to the log of a tail: the tail's slope says by how much that is off."""
    goal = np.array([float(p.log_tail) for p in POINTS])
    log_tail = pick(special.ncx2_logsf, special.ncx2_logcdf, X, DF, NC)
    sign = np.where(ABOVE, 1.0, -1.0)
    by_nc = sign * NC * np.exp(special.ncx2_logpdf(X, DF + 2.0, NC) - log_tail)
    h = 1e-6
    ends = [pick(special.ncx2_logsf, special.ncx2_logcdf, X, DF * (1 + s), NC) for s in (h, -h)]
    by_df = (ends[0] - ends[1]) / (2 * h)
    for name, found, truth, slope in (
        ("nc", pick(special.ncx2_nc_sf_exp, special.ncx2_nc_exp, goal, X, DF), NC, by_nc),
        ("df", pick(special.ncx2_df_sf_exp, special.ncx2_df_exp, goal, X, NC), DF, by_df),
    ):
        worst, number = 0.0, 0
        for p, q, value, at, c in zip(POINTS, goal, found, truth, slope, strict=True):
            if at == 0.0 or abs(c) < 1e-8:  # the answer does not depend on the digits of p
                continue
            shift = float(mp.mpf(q) - p.log_tail)
            exact = mp.mpf(at) * (1 + mp.mpf(shift) / c)
            error = float(abs(mp.mpf(value) / exact - 1)) / unit_of(c, float(q))
            assert error <= 6, (name, q, at)
            worst, number = max(worst, error), number + 1
        assert number > 8000
        check(f"ncx2.{name}_units", worst)


def test_marcum_a() -> None:
    worst, number = 0.0, 0
    with gzip.open(DATA, "rt", encoding="ascii") as file:
        rows = [r for r in csv.DictReader(file) if r["kind"] == "marcum"]
    for r in rows:
        order, a, b = (float(r[k]) for k in ("p", "a", "b"))
        letter, sign = ("q", 1.0) if r["side"] == "sf" else ("p", -1.0)
        truth = mp.mpf(r["log_value"])
        goal = float(truth)
        density = float(special.ncx2_logpdf(b * b, 2.0 * order + 2.0, a * a))
        condition = 2.0 * a * a * math.exp(density - goal) * sign
        if a == 0.0 or abs(condition) < 1e-8:
            continue
        found = getattr(special, f"marcum_{letter}_inv_a_exp")(order, b, goal)
        exact = mp.mpf(a) * (1 + (mp.mpf(goal) - truth) / condition)
        worst = max(worst, float(abs(mp.mpf(found) / exact - 1)) / unit_of(condition, goal))
        number += 1
    assert number >= 0.5 * len(rows)
    check("ncx2.marcum_a_units", worst)


def tails_with_an_atom(x: float, nc: float) -> tuple[Any, Any]:
    """Poisson mixture of central laws, the incomplete gamma functions by their recurrence."""
    y, half = mp.mpf(x) / 2, mp.mpf(nc) / 2
    size = max(float(y), float(half))
    last = int(size + 25 * math.sqrt(size) + 70)
    term = mp.exp(-y + last * mp.log(y) - mp.loggamma(last + 1))
    p, more = mp.mpf(0), term
    for k in range(1, 300):
        p += more
        more *= y / (last + k)
    weight = mp.exp(-half + last * mp.log(half) - mp.loggamma(last + 1))
    lower = upper = mp.mpf(0)
    for j in range(last, 0, -1):
        lower += weight * p
        upper += weight * (1 - p)
        weight *= j / half
        term *= j / y
        p += term
    return lower + mp.exp(-half), upper


def test_no_degrees_of_freedom() -> None:
    random_, worst, worst_log = random.Random(1), 0.0, 0.0
    for k in range(60):
        nc = math.exp(random_.uniform(-12, 6.5))
        x = math.exp(random_.uniform(-15, 6))
        if k % 2:
            x = max(nc + random_.uniform(-6, 10) * math.sqrt(4 * nc + 1), 1e-8)
        lower, upper = tails_with_an_atom(x, nc)
        root = mp.sqrt(mp.mpf(nc) * x)
        density = mp.exp(-(mp.mpf(x) + nc) / 2) * mp.sqrt(mp.mpf(nc) / x) * mp.besseli(1, root) / 2
        logs = [mp.log(lower) if lower < 0.5 else mp.log1p(-upper)]
        logs += [mp.log(upper) if upper < 0.5 else mp.log1p(-lower), mp.log(density)]
        truths = (lower, upper, density)
        for name, truth, log_truth in zip(("cdf", "sf", "pdf"), truths, logs, strict=True):
            value = getattr(special, f"ncx2_{name}")(x, 0.0, nc)
            worst = max(worst, float(abs(mp.mpf(value) / truth - 1)) / EPS)
            log_value = getattr(special, f"ncx2_log{name}")(x, 0.0, nc)
            size = max(1, abs(log_truth)) if name == "pdf" else abs(log_truth)
            worst_log = max(worst_log, float(abs(mp.mpf(log_value) - log_truth) / size) / EPS)
            if name != "pdf":
                letter = "p" if name == "cdf" else "q"
                b, a = math.sqrt(x), math.sqrt(nc)
                here = getattr(special, f"marcum_{letter}")(0.0, a, b)
                assert here == pytest.approx(value, rel=1e-12 * (1 + abs(float(log_truth))))
    check("ncx2.atom_eps", worst)
    check("ncx2.atom_log_eps", worst_log)


def test_the_atom_and_its_quantiles() -> None:
    nc, atom = 3.0, math.exp(-1.5)
    assert special.ncx2_cdf([0.0, -1.0, math.inf], 0.0, nc).tolist() == [atom, 0.0, 1.0]
    assert special.ncx2_sf([0.0, -1.0, math.inf], 0.0, nc).tolist() == [1.0 - atom, 1.0, 0.0]
    assert special.ncx2_logcdf(0.0, 0.0, 1e5) == -5e4
    assert special.ncx2_logsf(0.0, 0.0, 1e-300) == pytest.approx(math.log(5e-301))
    assert special.ncx2_pdf([0.0, 1.0], 0.0, 0.0).tolist() == [math.inf, 0.0]
    assert special.ncx2_cdf([-1.0, 0.0, 1.0], 0.0, 0.0).tolist() == [0.0, 1.0, 1.0]
    assert special.ncx2_ppf([0.0, 0.1, atom, 1.0], 0.0, nc).tolist() == [0.0, 0.0, 0.0, math.inf]
    assert special.ncx2_isf([1.0, 0.9, 0.0], 0.0, nc).tolist() == [0.0, 0.0, math.inf]
    assert special.ncx2_ppf([0.0, 0.5, 1.0], 0.0, 0.0).tolist() == [0.0, 0.0, 0.0]
    random_ = random.Random(4)
    for _ in range(300):
        nc, log_p = math.exp(random_.uniform(-20, 20)), -math.exp(random_.uniform(-30, 6))
        x = float(special.ncx2_isf_exp(log_p, 0.0, nc))
        if x == 0.0:
            assert special.ncx2_logsf(0.0, 0.0, nc) <= log_p * (1 - 8 * EPS)
        else:
            ends = special.ncx2_logsf([x * (1 + 4 * EPS), x * (1 - 4 * EPS)], 0.0, nc)
            room = 16 * EPS * max(1.0, -log_p)
            assert ends[0] - room <= log_p <= ends[1] + room
            root = special.marcum_q_inv_exp(0.0, math.sqrt(nc), log_p)
            assert root**2 == pytest.approx(x, rel=1e-9)
    assert special.ncx2_isf_exp(-1e30, 0.0, 1e80) == pytest.approx(1e80, rel=1e-15)
    assert special.marcum_q(0.0, 2.0, [0.0, 1e-200]).tolist() == [-math.expm1(-2.0)] * 2
    assert special.log_marcum_p(0.0, 1e100, 1e-200) == -5e199


def evaluated(tail: str, x: float, other: float, swap: bool, y: float) -> float:
    """A tail at a parameter y."""
    arguments = (x, y, other) if swap else (x, other, y)
    return float(getattr(special, tail)(*arguments))


def test_inverse_pairs_at_random() -> None:
    """What a tail gives back, over the whole range of doubles that the inverses take."""
    random_, number = random.Random(8), 0
    for _ in range(1500):
        x = math.exp(random_.uniform(-100, 100) * random_.random())
        other = math.exp(random_.uniform(-60, 100) * random_.random())
        log_p = -math.exp(random_.uniform(-20, 30) * random_.random())
        for inverse, tail, swap in (
            ("ncx2_nc_exp", "ncx2_logcdf", False),
            ("ncx2_nc_sf_exp", "ncx2_logsf", False),
            ("ncx2_df_exp", "ncx2_logcdf", True),
            ("ncx2_df_sf_exp", "ncx2_logsf", True),
        ):
            at = partial(evaluated, tail, x, other, swap)
            y = float(getattr(special, inverse)(log_p, x, other))
            rises = "sf" in inverse
            if math.isnan(y):  # no parameter >= 0 has it
                assert (at(0.0) > log_p) if rises else (at(0.0) < log_p)
                continue
            low, high = y * (1 - 8 * EPS), y * (1 + 8 * EPS)
            ends = (at(low), at(high)) if rises else (at(high), at(low))
            room = 32 * EPS * max(1.0, -log_p)
            assert ends[0] - room <= log_p <= ends[1] + room, (inverse, log_p, x, other, y)
            number += 1
    assert number > 2000


def test_ends() -> None:
    assert special.ncx2_nc(0.0, 3.0, 2.0) == special.ncx2_nc_sf(1.0, 3.0, 2.0) == math.inf
    assert special.ncx2_df(0.0, 3.0, 1.0) == special.ncx2_df_sf(1.0, 3.0, 1.0) == math.inf
    # the largest lower tail is that at 0; what is above has no parameter
    for exact, inverse in (
        (float(special.ncx2_cdf(3.0, 2.0, 0.0)), lambda p: special.ncx2_nc(p, 3.0, 2.0)),
        (float(special.ncx2_cdf(3.0, 0.0, 1.5)), lambda p: special.ncx2_df(p, 3.0, 1.5)),
    ):
        assert inverse(exact) < 1e-14
        assert inverse(math.nextafter(exact, 1.0)) == 0.0  # the same number, rounded
        assert math.isnan(inverse(exact * (1 + 1e-12)))
        assert 0.0 < inverse(exact * (1 - 1e-12)) < 1e-10
        assert math.isnan(inverse(1.0))
    assert special.ncx2_df(1.0, 3.0, 0.0) == special.ncx2_df_sf(0.0, 3.0, 0.0) == 0.0
    assert special.ncx2_nc(1.0, 3.0, 0.0) == 0.0
    assert special.ncx2_nc(0.3, 0.0, 0.0) == pytest.approx(-2 * math.log(0.3), rel=EPS)
    nc = special.ncx2_nc(0.3, 5.0, 0.0)
    assert special.ncx2_cdf(5.0, 0.0, nc) == pytest.approx(0.3, rel=1e-14)
    a = special.marcum_p_inv_a(0.0, 2.0, 0.3)
    assert special.marcum_p(0.0, a, 2.0) == pytest.approx(0.3, rel=1e-14)
    # far out the exponent decides
    assert special.ncx2_nc_exp(-1e300, 1.0, 3.0) == pytest.approx(2e300, rel=1e-15)
    df = float(special.ncx2_df_exp(-1e300, 1.0, 3.0))
    assert 0.5 * df * (math.log(df) - 1.0) == pytest.approx(1e300, rel=1e-14)
    assert special.marcum_p_inv_a_exp(2.0, 3.0, -1e300) == pytest.approx(
        math.sqrt(2e300), rel=1e-15
    )


@pytest.mark.parametrize("name", INVERSES)
@pytest.mark.parametrize(
    "bad",
    [
        (math.nan, 1.0, 1.0),
        (0.5, math.nan, 1.0),
        (0.5, 1.0, math.nan),
        (-0.1, 1.0, 1.0),
        (1.1, 1.0, 1.0),
        (0.5, -1.0, 1.0),
        (0.5, 0.0, 1.0),
        (0.5, 1.0, -1.0),
        (0.5, math.inf, 1.0),
        (0.5, 1.0, math.inf),
        (0.5, 2.0**201, 1.0),
        (0.5, 1.0, 2.0**201),
    ],
)
def test_nan_for_arguments_outside_the_domain(name: str, bad: tuple[float, ...]) -> None:
    arguments = (bad[2], bad[1], bad[0]) if name.startswith("marcum") else bad
    assert math.isnan(getattr(special, name)(*arguments))
    several = getattr(special, name)(*(np.full(40, value) for value in arguments))
    assert np.isnan(several).all()


def test_strides_and_threads() -> None:
    p = np.linspace(0.01, 0.4, 300)[::3]
    found = special.ncx2_nc(p, 30.0, 5.0)
    assert found.tolist() == [float(special.ncx2_nc(float(each), 30.0, 5.0)) for each in p]
    many = np.linspace(0.01, 0.4, 20_000)
    assert (
        special.threaded(special.ncx2_df, many, 30.0, 5.0) == special.ncx2_df(many, 30.0, 5.0)
    ).all()
