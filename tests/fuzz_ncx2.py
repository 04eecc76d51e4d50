"""Random bit patterns as arguments of the noncentral chi-squared functions.

``python tests/fuzz_ncx2.py 10000000`` prints what it found and how long the slowest block took; the
test of the same name in test_special_ncx2_laws.py runs a smaller number.
"""

from __future__ import annotations

import sys
import time

import numpy as np

from pyengine import special

BLOCK = 20000


def arguments(rng: np.random.Generator, n: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Three arrays of doubles: any bits, or any bits with a valid sign, or the stated domain."""
    kind = rng.integers(0, 4, n)
    bits = rng.integers(0, 2**64, (3, n), dtype=np.uint64)
    raw = bits.view(np.float64)
    positive = (bits & np.uint64(0x7FFFFFFFFFFFFFFF)).view(np.float64)
    df = np.exp(rng.uniform(np.log(0.5), np.log(1e10), n))
    nc = np.exp(rng.uniform(np.log(1e-15), np.log(1e13), n)) * (rng.random(n) > 0.1)
    x = np.abs(df + nc + np.sqrt(2 * (df + 2 * nc)) * rng.standard_cauchy(n) * 3)
    x = np.where(rng.random(n) < 0.2, positive[0], x)
    out = []
    for i, domain in enumerate((x, df, nc)):
        out.append(np.where(kind == 0, raw[i], np.where(kind == 1, positive[i], domain)))
    # a share has small degrees of freedom
    out[1] = np.where(kind == 2, 10.0 ** rng.uniform(-12, 0, n), out[1])
    out[1] = np.where(rng.random(n) < 0.02, 0.0, out[1])
    return out[0], out[1], out[2]


def check_block(x: np.ndarray, df: np.ndarray, nc: np.ndarray, rng: np.random.Generator) -> None:
    """Raise AssertionError where values violate a property of distributions."""
    valid = (df >= 0) & (df < np.inf) & (nc >= 0) & (nc < np.inf) & ~np.isnan(x)
    cdf, sf = special.ncx2_cdf(x, df, nc), special.ncx2_sf(x, df, nc)
    log_cdf, log_sf = special.ncx2_logcdf(x, df, nc), special.ncx2_logsf(x, df, nc)
    pdf, log_pdf = special.ncx2_pdf(x, df, nc), special.ncx2_logpdf(x, df, nc)

    def require(ok: np.ndarray, what: str) -> None:
        if not ok.all():
            i = int(np.argmin(ok))
            raise AssertionError(
                f"{what}: x={x[i]!r}, df={df[i]!r}, nc={nc[i]!r}: cdf {cdf[i]!r}, sf {sf[i]!r}, "
                f"logcdf {log_cdf[i]!r}, logsf {log_sf[i]!r}, pdf {pdf[i]!r}, "
                f"logpdf {log_pdf[i]!r}"
            )

    for values in (cdf, sf, log_cdf, log_sf, pdf, log_pdf):
        require(np.isnan(values) == ~valid, "NaN exactly for invalid arguments")
    with np.errstate(all="ignore"):
        require(~valid | ((cdf >= 0) & (cdf <= 1) & (sf >= 0) & (sf <= 1)), "in [0, 1]")
        require(~valid | (np.abs(cdf + sf - 1) <= 2**-52), "cdf + sf = 1")
        require(~valid | ((log_cdf <= 0) & (log_sf <= 0) & (pdf >= 0)), "signs")
        for value, log_value in ((cdf, log_cdf), (sf, log_sf)):
            back = np.exp(log_value)
            tolerance = 1e-15 * (2 + np.abs(log_value))
            near = np.abs(back - value) <= tolerance * value + 1e-322
            require(~valid | (log_value == -np.inf) | near, "log form")
            require(~valid | (log_value > -np.inf) | (value < 1e-300), "log of a positive number")
        # the next doubles upwards must not go down by more than rounding
        up = np.where(x < 1e308, x * (1 + 2.0 ** -rng.integers(5, 52, x.size)), x)
        cdf_up, sf_up = special.ncx2_cdf(up, df, nc), special.ncx2_sf(up, df, nc)
        # for df < 1/2 the tail that is computed can be the larger one, up to nearly 1
        slack = 8 * 2.0**-52
        floor = np.where(df < 0.5, 2.0**-51, 5e-324)
        ok = (cdf_up >= cdf * (1 - slack) - floor) & (sf_up <= sf * (1 + slack) + floor)
        require(~valid | (x <= 0) | ok, "monotone")


def check_quantiles(p: np.ndarray, df: np.ndarray, nc: np.ndarray) -> None:
    """Quantiles are nonnegative, or NaN exactly for invalid arguments."""
    valid = (df >= 0) & (df < np.inf) & (nc >= 0) & (nc < np.inf)
    for function, good in (
        (special.ncx2_ppf, (p >= 0) & (p <= 1)),
        (special.ncx2_isf, (p >= 0) & (p <= 1)),
        (special.ncx2_ppf_exp, p <= 0),
        (special.ncx2_isf_exp, p <= 0),
    ):
        x = function(p, df, nc)
        ok = np.where(valid & good, x >= 0, np.isnan(x))
        if not ok.all():
            i = int(np.argmin(ok))
            raise AssertionError(f"quantile of p={p[i]!r}, df={df[i]!r}, nc={nc[i]!r}: {x[i]!r}")


def check_others(p: np.ndarray, a: np.ndarray, b: np.ndarray, c: np.ndarray) -> None:
    """Marcum's Q and the compositions: in range, consistent, NaN exactly for invalid arguments."""

    def require(ok: np.ndarray, what: str) -> None:
        if not ok.all():
            i = int(np.argmin(ok))
            raise AssertionError(f"{what}: p={p[i]!r}, a={a[i]!r}, b={b[i]!r}, c={c[i]!r}")

    def unit(values: np.ndarray, valid: np.ndarray, what: str) -> None:
        require(np.where(valid, (values >= 0) & (values <= 1), np.isnan(values)), what)

    finite = (a >= 0) & (a < np.inf) & (b >= 0) & (b < np.inf)
    valid = finite & (c >= 0)
    q, q1 = special.marcum_q(a, b, c), special.marcum_p(a, b, c)
    unit(q, valid, "marcum_q")
    unit(q1, valid, "marcum_p")
    require(~valid | (np.abs(q + q1 - 1) <= 2**-52), "marcum_q + marcum_p = 1")
    for log_form, value in ((special.log_marcum_q, q), (special.log_marcum_p, q1)):
        log_value = log_form(a, b, c)
        require(np.where(valid, log_value <= 0, np.isnan(log_value)), "log of marcum")
        near = (
            np.abs(np.exp(log_value) - value)
            <= 1e-14 * (1 + np.minimum(np.abs(log_value), 1e3)) * value + 1e-300
        )
        require(~valid | near, "log of marcum agrees")
    small = (a < 2.0**298) & (b < 2.0**149)
    inside = (p >= 0) & (p <= 1)
    inverse = special.marcum_q_inv(a, b, p)
    valid = finite & small & inside
    require(np.where(valid, inverse >= 0, np.isnan(inverse)), "marcum_q_inv")
    log_p = np.where(np.isnan(p), -1.0, -np.abs(p))
    for function in (special.marcum_q_inv_exp, special.marcum_p_inv_exp):
        inverse = function(a, b, log_p)
        require(np.where(finite & small, inverse >= 0, np.isnan(inverse)), "marcum inverse, log")
    for unknown in (special.ncx2_nc, special.ncx2_df, special.ncx2_nc_sf, special.ncx2_df_sf):
        found = unknown(p, a, b)  # NaN also where there is no answer
        domain = inside & (a >= 0) & (a <= 2.0**200) & (b >= 0) & (b <= 2.0**200)
        require(np.isnan(found) | (domain & (found >= 0)), "an inverse outside its domain")
    valid = inside & (a > 0) & (a < 2.0**200) & (b >= 0) & (b < 2.0**100)
    unit(special.relaxed_beta(p, a, b), valid, "relaxed_beta")
    unit(special.relaxed_alpha(p, a, b), valid, "relaxed_alpha")
    valid &= (c > 1) & (c < 2.0**100)
    beta, power = special.one_step_sgd_beta(p, a, c, b), special.one_step_sgd_power(p, a, c, b)
    unit(beta, valid, "one_step_sgd_beta")
    unit(power, valid, "one_step_sgd_power")
    require(~valid | (np.abs(beta + power - 1) <= 2**-52), "beta + power = 1")


def run(total: int, seed: int) -> float:
    """Check `total` argument triples; return the seconds of the slowest block."""
    rng = np.random.default_rng(seed)
    slowest = 0.0
    for start in range(0, total, BLOCK):
        n = min(BLOCK, total - start)
        x, df, nc = arguments(rng, n)
        clock = time.perf_counter()
        check_block(x, df, nc, rng)
        if start % (10 * BLOCK) == 0:
            p = np.where(
                rng.random(n) < 0.5,
                rng.random(n),
                rng.integers(0, 2**64, n, dtype=np.uint64).view(np.float64),
            )
            p = np.where(rng.random(n) < 0.4, -np.abs(p), p)
            check_quantiles(p, df, nc)
            with np.errstate(all="ignore"):
                check_others(p, df, nc, np.where(rng.random(n) < 0.7, np.abs(x), x))
        slowest = max(slowest, time.perf_counter() - clock)
    return slowest


if __name__ == "__main__":
    count = int(sys.argv[1]) if len(sys.argv) > 1 else 10**6
    print(f"{count} triples: no failure; slowest block of {BLOCK}: {run(count, 1):.3f} s")
