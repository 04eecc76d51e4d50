"""Sums of two doubles, and functions of them, within the bounds that docs/theory/arithmetic.md has.

Ball arithmetic at random and at hard points; the proof itself is ``tools/prove_arithmetic.py``.
"""

from __future__ import annotations

import ctypes
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from compiling import ROOT, compiled
from flint import arb, ctx
from thorough import ALL

Array = npt.NDArray[np.float64]
COUNT = 1_000_000 if ALL else 6_000
UNIT = 2.0**-63
OPERATION = 2.0**-102


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Any:
    door = ROOT / "tests/c/doors/arithmetic.c"
    return compiled(tmp_path_factory.mktemp("arithmetic") / "door.so", [door])


@pytest.fixture(autouse=True)
def _precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctx, "prec", 240)


def pairs(high: Array, rng: np.random.Generator) -> Array:
    """Sums of two doubles with these upper parts, a tenth of them without a lower one."""
    low = np.spacing(np.abs(high)) * rng.uniform(-0.5, 0.5, len(high))
    low[rng.random(len(high)) < 0.1] = 0.0
    return np.stack((high, low), axis=1)


def asked(function: Callable[..., None], *given: Array, outs: int = 1) -> list[Array]:
    """What a function over arrays of pairs makes of some."""
    arrays = [np.ascontiguousarray(x) for x in given]
    found = [np.empty_like(arrays[0]) for _ in range(outs)]
    function(ctypes.c_size_t(len(arrays[0])), *(x.ctypes for x in (*arrays, *found)))
    return found


def exact(pair: Array) -> Any:
    return arb(float(pair[0])) + arb(float(pair[1]))


def worst(found: Array, truths: Any, sizes: Any) -> float:
    """The largest error over what it is relative to, in units."""
    return max(
        float(abs(exact(own) - truth) / size) / UNIT
        for own, truth, size in zip(found, truths, sizes, strict=True)
        if size != 0
    )


def scattered(rng: np.random.Generator, reach: float, least: float = 1e-60) -> Array:
    """Numbers of all sizes up to one, of both signs, and its ends."""
    sizes = np.exp(rng.uniform(np.log(least), np.log(reach), COUNT // 2))
    even = rng.uniform(0.0, reach, COUNT // 2)
    found = np.concatenate((sizes, even)) * rng.choice((-1.0, 1.0), 2 * (COUNT // 2))
    return np.concatenate((found, (reach, -reach, least)))


def test_operations(kernel: Any) -> None:
    rng = np.random.default_rng(1)
    a, b = (pairs(scattered(rng, 1e60), rng) for _ in range(2))
    near = rng.random(len(a)) < 0.3  # sums that cancel
    b[near, 0] = -a[near, 0] * (1.0 + rng.integers(-3, 4, near.sum()) * 2.0**-52)
    b[near, 1] = np.spacing(np.abs(b[near, 0])) * rng.uniform(-0.5, 0.5, near.sum())
    found = np.empty((len(a), 4, 2))
    kernel.dd_operations(ctypes.c_size_t(len(a)), a.ctypes, b.ctypes, found.ctypes)
    for x, y, row in zip(a, b, found, strict=True):
        u, v = exact(x), exact(y)
        for own, truth in zip(row, (u + v, u - v, u * v, u / v), strict=True):
            assert abs(exact(own) - truth) <= OPERATION * abs(truth)
            assert abs(own[1]) <= 0.5 * np.spacing(abs(own[0]))


def test_exponentials(kernel: Any) -> None:
    rng = np.random.default_rng(2)
    x = pairs(scattered(rng, 689.0), rng)
    halves = (np.arange(-900, 900) + 0.5) * np.log(2.0)  # where the reduced argument is largest
    x = np.concatenate((x, pairs(halves, rng)))
    truths = [exact(p).exp() for p in x]
    assert worst(asked(kernel.dd_exp, x)[0], truths, truths) <= 0.75
    z = pairs(scattered(rng, 0.3466, 1e-120), rng)
    ctx.prec = 900
    truths = [exact(p).exp() - 1 - exact(p) for p in z]
    assert worst(asked(kernel.dd_exp_tail, z)[0], truths, [exact(p) ** 2 / 2 for p in z]) <= 8.0


def test_logarithms(kernel: Any) -> None:
    rng = np.random.default_rng(3)
    x = pairs(np.exp(scattered(rng, 690.0)), rng)
    truths = [exact(p).log() for p in x]
    assert worst(asked(kernel.dd_log, x)[0], truths, [1 + abs(t) * 1e-9 for t in truths]) <= 0.5
    f = scattered(rng, 0.999999, 1e-60)
    edges = np.array((-0.29, 0.41, -0.5, 0.5, 1.0, 1e9))
    f = pairs(np.concatenate((f, edges, np.nextafter(edges, -1.0))), rng)
    ctx.prec = 500
    truths = [(1 + exact(p)).log() for p in f]
    assert worst(asked(kernel.dd_log1p, f)[0], truths, [abs(t) for t in truths]) <= 4.0
    y = pairs(-np.abs(scattered(rng, 600.0)), rng)
    truths = [(1 - exact(p).exp()).log() for p in y]
    sizes = [1 + abs(t) * 1e-9 for t in truths]
    assert worst(asked(kernel.dd_log_1_less_exp, y)[0], truths, sizes) <= 2.0


def test_log_of_exponentials_less_1(kernel: Any) -> None:
    """12 units of 1 + |log y|, which docs/theory/sector_laws.md counts: 8.3 are e^-40."""
    rng = np.random.default_rng(6)
    edges = np.array((0.3, np.nextafter(0.3, 0.0), 40.0, np.nextafter(40.0, 50.0), 650.0))
    y = pairs(np.concatenate((np.abs(scattered(rng, 60.0, 1e-280)), edges)), rng)
    ctx.prec = 2200
    truths = [exact(p).expm1().log() for p in y]
    sizes = [1 + abs(exact(p).log()) for p in y]
    assert worst(asked(kernel.dd_log_expm1, y)[0], truths, sizes) <= 12.0


def test_turns(kernel: Any) -> None:
    rng = np.random.default_rng(4)
    quarters = rng.integers(-600_000, 600_000, COUNT) * (np.pi / 2)  # next to multiples
    x = pairs(np.concatenate((scattered(rng, 2.0**20 - 1.0), quarters)), rng)
    cosine, sine = asked(kernel.dd_turn, x, outs=2)
    one = [arb(1)] * len(x)
    assert worst(cosine, [exact(p).cos() for p in x], one) <= 0.5
    assert worst(sine, [exact(p).sin() for p in x], one) <= 0.5
    z = pairs(scattered(rng, 0.7854, 1e-60), rng)
    ctx.prec = 900
    of_cosine, of_sine = asked(kernel.dd_turn_parts, z, outs=2)
    values = [exact(p) for p in z]
    assert worst(of_cosine, [1 - v.cos() for v in values], [v**2 / 2 for v in values]) <= 3.0
    assert worst(of_sine, [v - v.sin() for v in values], [abs(v) ** 3 / 6 for v in values]) <= 3.0


def test_angles(kernel: Any) -> None:
    rng = np.random.default_rng(5)
    x, y = (scattered(rng, 1e60, 1e-60) for _ in range(2))
    x[::7] = np.abs(x[::7]) + np.abs(y[::7]) * 1e9  # next to 0
    y[::11] = 0.0
    a, b = pairs(x, rng), pairs(y, rng)
    ctx.prec = 900
    truths = [arb.atan2(exact(v), exact(u)) for u, v in zip(a, b, strict=True)]
    assert worst(asked(kernel.dd_angle, a, b)[0], truths, [abs(t) for t in truths]) <= 0.5


def test_numbers_of_the_page() -> None:
    """The page has the bounds that the proof holds."""
    page = (ROOT / "docs" / "theory" / "arithmetic.md").read_text(encoding="utf-8")
    tool = (ROOT / "tools" / "prove_arithmetic.py").read_text(encoding="utf-8")
    used = dict(re.findall(r'"(pe_dd_\w+)": ([\d.]+),', tool))
    assert len(used) == 6
    for name, units in used.items():
        assert re.search(rf"`{name}`[^|]*\|[^|]*\| {float(units):g} \|", page), name


def proved(name: str, source: str, path: Path, *proofs: str) -> tuple[dict[str, float], int]:
    """What proofs say of a changed header, in units, and the exit code."""
    (path / "tools").mkdir(parents=True)
    (path / "csrc").mkdir()
    script = path / "tools" / "prove_arithmetic.py"
    script.write_bytes((ROOT / "tools" / "prove_arithmetic.py").read_bytes())
    for each in ("arithmetic.h", "elementary.h", "doubles.h", "lane_trig.h"):
        (path / "csrc" / each).write_bytes((ROOT / "csrc" / each).read_bytes())
    (path / "csrc" / name).write_text(source, encoding="utf-8")
    run = subprocess.run(
        [sys.executable, script, *proofs], capture_output=True, text=True, check=False
    )
    found = re.findall(r"(\w+) +proven +([\d.]+)", run.stdout)
    return {name: float(units) for name, units in found}, run.returncode


def test_lane_trig(tmp_path: Path) -> None:
    """The chapter says what is proven; a wrong coefficient is found."""
    source = (ROOT / "csrc" / "lane_trig.h").read_text(encoding="utf-8")
    page = (ROOT / "docs" / "theory" / "arithmetic.md").read_text(encoding="utf-8")
    for number in ("1.75u", "(4.9+|b|)u", "(4.9+2.01|b|)u"):
        assert number in page
    proofs = ("lane_exponentials", "lane_turns")
    right, code = proved("lane_trig.h", source, tmp_path / "same", *proofs)
    assert code == 0
    assert 1.0 < right["pe_vexp"] <= 1.75
    assert 3.0 < right["pe_vcosm1_sinmx"] <= 4.9
    for old, new in (("40320.0;", "40321.0;"), ("362880.0;\n    s", "362881.0;\n    s")):
        other = source.replace(old, new)
        assert other != source
        wrong, code = proved("lane_trig.h", other, tmp_path / new[:6], *proofs)
        assert code == 1
        assert wrong["pe_vexp"] > 1.75 or wrong["pe_vcosm1_sinmx"] > 4.9


def test_the_proof_and_a_wrong_coefficient(tmp_path: Path) -> None:
    source = (ROOT / "csrc" / "arithmetic.h").read_text(encoding="utf-8")
    proofs = ("exponentials", "logarithms", "turns")
    right, code = proved("arithmetic.h", source, tmp_path / "same", *proofs)
    assert code == 0
    assert right["pe_dd_exp"] > 0.1
    other = source.replace(
        "1.0 / 40320.0;\n    p = p * x + 1.0 / 5040.0",
        "1.0 / 40321.0;\n    p = p * x + 1.0 / 5040.0",
    )
    other = other.replace("0.2) * x;", "0.2000000001) * x;")
    assert other != source
    wrong, code = proved("arithmetic.h", other, tmp_path / "other", *proofs)
    assert code == 1
    assert wrong["pe_dd_exp_tail"] > right["pe_dd_exp_tail"]
    assert wrong["pe_dd_log"] > 100.0
    assert wrong["pe_dd_turn"] == right["pe_dd_turn"]
