"""The special functions as ufuncs: the same bits whatever the arrays, threads and processors."""

from __future__ import annotations

import math
import multiprocessing
import os
import shutil
import subprocess
import sys
import threading
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from compiling import FLAGS, linked

from pyengine import special

ROOT = Path(__file__).parents[1]
UFUNCS = [name for name in special.__all__ if isinstance(getattr(special, name), np.ufunc)]
NCX2 = ["ncx2_cdf", "ncx2_sf", "ncx2_logcdf", "ncx2_logsf", "ncx2_pdf", "ncx2_logpdf"]


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
    if name.endswith(("_inv_a", "_inv_a_exp")):
        tail = special.marcum_q if "_q_" in name else special.marcum_p
        p = tail(df / 2, np.sqrt(nc), np.sqrt(df + nc))  # so that there is an answer
        return [df / 2, np.sqrt(df + nc), np.log(p) if "exp" in name else p]
    if name.startswith(("ncx2_nc", "ncx2_df")):
        x = df + nc * (1 + rng.uniform(-0.1, 0.1, n) / (1 + np.sqrt(nc)))
        p = (special.ncx2_sf if "_sf" in name else special.ncx2_cdf)(x, df, nc)
        return [np.log(p) if "exp" in name else p, x, df if "_nc" in name else nc]
    if "marcum" in name:
        last = np.sqrt(x) if "inv" not in name else np.log(p) if "exp" in name else p
        return [df / 2, np.sqrt(nc), last]
    assert function.nin == 3
    first = x if name in NCX2 else np.log(p) if name.endswith("exp") else p
    return [first, df, nc]


def same_bits(a: Any, b: Any) -> bool:
    return np.array_equal(np.asarray(a).view(np.int64), np.asarray(b).view(np.int64))


def test_all_are_ufuncs() -> None:
    assert len(UFUNCS) == 38
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
    assert same_bits(wide[5, 2], function(args[0][5], *[a[2] for a in args[1:]]))
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
    for huge in (10**400, -(10**400), 10**10_000):
        for place, function in enumerate((f, special.marcum_q, special.relaxed_alpha)):
            args = [1.0, 1.0, 1.0]
            args[place] = huge
            rule = f"argument {place + 1} of {function.__name__} must be at most 1.798e.308 in size"
            with pytest.raises(
                ValueError, match=rf"{rule}.*an integer of {huge.bit_length()} bits"
            ):
                function(*args)
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
    with pytest.raises(ValueError, match="workers must be an integer >= 1, got 0"):
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
    names = ("ncx2_core", "ncx2", "ncx2_quantile", "ncx2_parameter", "marcum", "normal")
    sources = [*(ROOT / "csrc" / f"{n}.c" for n in names), ROOT / "tests" / "c" / "bits" / "ncx2.c"]
    outputs = []
    for i, level in enumerate([None, *levels]):
        program = tmp_path / f"bits{i}"
        alone = [] if level is None else ["-DPE_SANITIZED", *level]  # no runtime dispatch
        linked(program, sources, ("-O3", *FLAGS[1:], *alone))
        outputs.append(subprocess.run([str(program)], check=True, capture_output=True).stdout)
    assert len(outputs[0]) > 10_000
    assert all(o == outputs[0] for o in outputs)
