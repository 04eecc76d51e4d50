"""Functions made of noncentral chi-squared ones: trade-off functions and Marcum's Q."""

from __future__ import annotations

import csv
import gzip
import math
from pathlib import Path

import mpmath
import pytest
from error_budget import check

from pyengine import special

DATA = Path(__file__).parent / "data"
EPS = 2.0**-52
mp = mpmath.MPContext()
mp.dps = 40


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
