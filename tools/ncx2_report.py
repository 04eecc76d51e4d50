"""Measure the noncentral chi-squared functions against the truth and against SciPy.

``python tools/ncx2_report.py accuracy``  table of the largest errors, stratum by stratum
``python tools/ncx2_report.py speed``     both libraries in one run, nanoseconds a value
``python tools/ncx2_report.py plot``      docs/special/ncx2_accuracy.svg (needs matplotlib)

The tables are in docs/special/ncx2.md.  To measure one instruction set instead of the one that the
loader picks, build without dispatch, for example for AVX2
``PYENGINE_CFLAGS="-DPE_SANITIZED -march=x86-64-v3" pip install --target DIR .`` and set PYTHONPATH.
"""

from __future__ import annotations

import csv
import gzip
import math
import sys
import time
from pathlib import Path

import mpmath
import numpy as np
import scipy.special
import scipy.stats

from pyengine import special

ROOT = Path(__file__).parents[1]
mpmath.mp.dps = 40


def reference():
    path = ROOT / "tests" / "data" / "ncx2_reference.csv.gz"
    with gzip.open(path, "rt", encoding="ascii") as file:
        return list(csv.DictReader(file))


def scipy_tail(side, x, df, nc):
    """SciPy's answer, or None where it raises."""
    try:
        with np.errstate(all="ignore"):
            return float(getattr(scipy.stats.ncx2, side)(x, df, nc))
    except (OverflowError, ZeroDivisionError, FloatingPointError):
        return None


def errors():
    """Per point: stratum, log tail, relative errors of pyengine and of SciPy (inf: none)."""
    for row in reference():
        tail, side = mpmath.mpf(row["tail"]), row["side"]
        args = float(row["x"]), float(row["df"]), float(row["nc"])
        if tail < mpmath.mpf("1e-300"):
            continue
        ours = getattr(special, f"ncx2_{side}")(*args)
        theirs = scipy_tail(side, *args)
        bad = theirs is None or not math.isfinite(theirs)
        yield (
            row["stratum"],
            float(mpmath.log10(tail)),
            float(abs(mpmath.mpf(ours) / tail - 1)),
            math.inf if bad else float(abs(mpmath.mpf(theirs) / tail - 1)),
        )


def accuracy():
    groups = {}
    for stratum, _, ours, theirs in errors():
        groups.setdefault(stratum, []).append((ours, theirs))
    print("| stratum | points | largest error | median | SciPy: median | no digit right |")
    print("|---|---|---|---|---|---|")
    for stratum, values in groups.items():
        ours, theirs = (np.array(v) for v in zip(*values, strict=True))
        print(
            f"| {stratum} | {len(ours)} | {ours.max():.1e} | {np.median(ours):.1e} "
            f"| {np.median(theirs):.1e} | {(theirs > 0.5).sum()} |"
        )


def best(call, size, repeat=7):
    call()
    low = math.inf
    for _ in range(repeat):
        start = time.perf_counter()
        call()
        low = min(low, time.perf_counter() - start)
    return low / size * 1e9


def speed():
    rng = np.random.default_rng(1)
    print("| (df, nc) | cdf | SciPy | ratio | ppf | SciPy | ratio |")
    print("|---|---|---|---|---|---|---|")
    for df, nc in [(1, 0.36), (2, 2), (4, 4), (0.5, 0), (10, 10), (30, 2.25), (100, 100),
                   (1e4, 1e4), (650, 3.25e5), (7.96e5, 7.96e8), (1e9, 1e10)]:  # fmt: skip
        x = np.abs(df + nc + math.sqrt(2 * df + 4 * nc) * rng.uniform(-2, 4, 2000))
        p = rng.random(2000)
        few, fewer = (2000, 200) if df + nc < 1e5 else (40, 6) if df + nc < 1e8 else (20, 2)
        central = nc == 0
        their_cdf = scipy.special.gammainc if central else scipy.special.chndtr
        ours = best(lambda: special.ncx2_cdf(x, df, nc), 2000)  # noqa: B023
        if central:
            theirs = best(lambda: their_cdf(df / 2, x[:few] / 2), few, 3)  # noqa: B023
        else:
            theirs = best(lambda: their_cdf(x[:few], df, nc), few, 3)  # noqa: B023
        quantile = best(lambda: special.ncx2_ppf(p, df, nc), 2000, 3)  # noqa: B023
        if central:
            scipy_q = best(lambda: scipy.special.gammaincinv(df / 2, p[:fewer]), fewer, 5)  # noqa: B023
        else:
            scipy_q = best(lambda: scipy.special.chndtrix(p[:fewer], df, nc), fewer, 5)  # noqa: B023
        print(
            f"| ({df:g}, {nc:g}) | {ours:.0f} | {theirs:.0f} | {theirs / ours:.2f} "
            f"| {quantile:.0f} | {scipy_q:.0f} | {scipy_q / quantile:.1f} |",
            flush=True,
        )
    for name, call in [
        ("pyengine", lambda: special.ncx2_cdf(3.0, 2.0, 1.0)),
        ("SciPy", lambda: scipy.special.chndtr(3.0, 2.0, 1.0)),
    ]:
        times = [best(lambda: [call() for _ in range(1000)], 1000) for _ in range(9)]  # noqa: B023
        print(f"scalar call, {name}: {min(times):.0f} ns")


def plot():
    import matplotlib as mpl

    mpl.use("svg")
    mpl.rcParams["svg.hashsalt"] = "pyengine"
    import matplotlib.pyplot as plt

    depth, ours, theirs = np.array([row[1:] for row in errors()]).T
    figure, axis = plt.subplots(figsize=(7, 4))
    top = 1e2
    for values, color, label in [(theirs, "0.6", "SciPy"), (ours, "C0", "pyengine")]:
        shown = np.clip(values, 1e-18, top)
        axis.scatter(-depth, shown, s=2, color=color, label=label, rasterized=True)
    axis.set_yscale("log")
    axis.set_xlabel("$-\\log_{10}$ of the tail")
    axis.set_ylabel("relative error (top: no number)")
    axis.legend(markerscale=4)
    figure.tight_layout()
    out = ROOT / "docs" / "special" / "ncx2_accuracy.svg"
    out.parent.mkdir(exist_ok=True)
    figure.savefig(out, metadata={"Date": None}, dpi=150)
    print(out.relative_to(ROOT))


if __name__ == "__main__":
    {"accuracy": accuracy, "speed": speed, "plot": plot}[sys.argv[1]]()
