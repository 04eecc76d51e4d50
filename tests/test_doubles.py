"""Elementary functions of doubles within the errors that docs/theory/arithmetic.md has.

Ball arithmetic at random and at hard points; the proof itself is ``tools/prove_arithmetic.py``,
that of ``erfc`` ``tools/prove_normal.py``.
"""

from __future__ import annotations

import math
import re
import subprocess
import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt
import prove_arithmetic as prove
import pytest
from compiling import ROOT
from flint import arb, ctx
from thorough import ALL

from pyengine.numerics import functions

Array = npt.NDArray[np.float64]
COUNT = 300_000 if ALL else 3_000
# Largest error, in units in the last place; erfc's in units of 2^-52 of itself.
PROVEN = {
    "exp": 1.3,
    "expm1": 1.8,
    "log": 2.0,
    "log1p": 2.0,
    "sin": 1.0,
    "cos": 1.0,
    "arctan2": 4.0,
    "hypot": 1.6,
    "power": 2.0,
    "erfc": 7.0,
}
TRUTHS: dict[str, Callable[..., Any]] = {
    "exp": lambda x: x.exp(),
    "expm1": lambda x: x.expm1(),
    "log": lambda x: x.log(),
    "log1p": lambda x: x.log1p(),
    "sin": lambda x: x.sin(),
    "cos": lambda x: x.cos(),
    "erfc": lambda x: x.erfc(),
    "arctan2": lambda y, x: arb.atan2(y, x),
    "hypot": lambda x, y: (x * x + y * y).sqrt(),
    "power": lambda x, y: x**y,
}


@pytest.fixture(autouse=True)
def _precision(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(ctx, "prec", 400)


def scattered(rng: np.random.Generator, least: float, most: float) -> Array:
    """Numbers of both signs, of all sizes and evenly spread."""
    sizes = np.exp(rng.uniform(np.log(least), np.log(most), COUNT // 2))
    even = rng.uniform(0.0, min(most, 4.0), COUNT // 2)
    return np.concatenate((sizes, even)) * rng.choice((-1.0, 1.0), 2 * (COUNT // 2))


def beside(points: Any) -> Array:
    """Some points with their neighbours."""
    at = np.asarray(points, dtype=float)
    return np.concatenate([at, np.nextafter(at, -np.inf), np.nextafter(at, np.inf)])


def arguments(name: str) -> tuple[Array, ...]:
    """Random ones, and those next to which a function changes its formula."""
    rng = np.random.default_rng(len(name))
    halves = (np.arange(-1020, 1020) + 0.5) * np.log(2.0)
    quarters = rng.integers(-(2**48), 2**48, 400) * (np.pi / 4)
    if name in ("exp", "expm1"):
        x = np.concatenate((scattered(rng, 1e-300, 708.0), beside(halves[::7])))
        return (x[(x > -708.0) & (x < 709.7)],)
    if name == "log":
        roots = math.sqrt(0.5) * 2.0 ** np.arange(-1000, 1000, 7.0)
        x = np.abs(scattered(rng, 1e-320, 1e308))
        return (np.concatenate((x, beside(roots), 1.0 + scattered(rng, 1e-16, 0.5))),)
    if name == "log1p":
        edges = beside((-0.29, 0.41, math.sqrt(0.5) - 1.0, math.sqrt(2.0) - 1.0, 1.0, -0.5))
        x = np.concatenate((scattered(rng, 1e-320, 1e308), edges))
        return (x[x > -1.0],)
    if name in ("sin", "cos"):
        return (np.concatenate((scattered(rng, 1e-300, 2.0**49.9), beside(quarters))),)
    if name == "erfc":
        x = np.concatenate((scattered(rng, 1e-20, 26.5), beside((0.49, 6.0 / math.sqrt(2.0)))))
        return (x[x < 26.5],)
    first, second = scattered(rng, 1e-150, 1e150), scattered(rng, 1e-150, 1e150)
    if name == "power":
        base = np.abs(np.concatenate((first, 1.0 + scattered(rng, 1e-15, 0.3))))
        y = rng.uniform(-700.0, 700.0, base.size) / np.log(np.where(base == 1.0, 2.0, base))
        return base, y
    ratio = math.tan(math.pi / 8) * first
    return np.concatenate((first, first)), np.concatenate((second, ratio))


def errors(name: str, given: tuple[Array, ...], found: Array) -> Array:
    """Errors, in what is counted of a function."""
    exact = [[arb(float(x)) for x in each] for each in given]
    truths = [TRUTHS[name](*at) for at in zip(*exact, strict=True)]
    near = np.array([float(t) for t in truths])
    unit = np.abs(near) * 2.0**-52 if name == "erfc" else np.spacing(np.abs(near))
    off = [float(abs(arb(float(x)) - t)) for x, t in zip(found, truths, strict=True)]
    return np.asarray(np.array(off) / unit)


@pytest.mark.parametrize("name", PROVEN)
def test_errors(name: str) -> None:
    function, given = getattr(functions, name), arguments(name)
    found = function(*given)
    assert errors(name, given, found).max() <= PROVEN[name]
    # the loop's bits are those of one number
    some = slice(None, None, 17)
    one = [function(*map(float, at)) for at in zip(*(x[some] for x in given), strict=True)]
    assert np.array_equal(one, found[some])


def test_subnormal_results() -> None:
    x = np.linspace(-745.1, -708.4, 300)
    truths = np.array([float(arb(float(at)).exp()) for at in x])
    assert np.abs(functions.exp(x) - truths).max() <= 5e-324
    a = np.linspace(26.55, 27.2, 300)
    truths = np.array([float(arb(float(at)).erfc()) for at in a])
    assert (np.abs(functions.erfc(a) - truths) <= 1e-323 + truths * 16.0 * 2.0**-53).all()


def test_values_that_are_exact_or_none() -> None:
    inf, nan = math.inf, math.nan
    none = ((nan,), nan)
    cases: dict[str, list[tuple[tuple[float, ...], float]]] = {
        "exp": [none, ((-inf,), 0.0), ((inf,), inf), ((710.0,), inf), ((-746.0,), 0.0)],
        "expm1": [none, ((-inf,), -1.0), ((inf,), inf), ((5e-324,), 5e-324), ((-50.0,), -1.0)],
        "log": [
            none,
            ((0.0,), -inf),
            ((inf,), inf),
            ((-1.0,), nan),
            ((1.0,), 0.0),
            ((-0.0,), -inf),
        ],
        "log1p": [none, ((-1.0,), -inf), ((inf,), inf), ((-1.5,), nan), ((0.0,), 0.0)],
        "sin": [none, ((0.0,), 0.0), ((inf,), nan), ((2.0**50,), nan), ((-(2.0**51),), nan)],
        "cos": [none, ((0.0,), 1.0), ((-inf,), nan), ((2.0**50,), nan)],
        "erfc": [none, ((0.0,), 1.0), ((inf,), 0.0), ((-inf,), 2.0), ((28.0,), 0.0)],
        "arctan2": [
            *(((0.0, 1.0), 0.0), ((0.0, -1.0), math.pi), ((1.0, 0.0), math.pi / 2)),
            *(((-1.0, 0.0), -math.pi / 2), ((1.0, inf), 0.0), ((1.0, -inf), math.pi)),
            *(((nan, 1.0), nan), ((1.0, nan), nan)),
        ],
        "hypot": [
            *(((0.0, 0.0), 0.0), ((3.0, -4.0), 5.0), ((inf, 1.0), inf), ((nan, 1.0), nan)),
            *(((1.0, nan), nan), ((5e-324, 0.0), 5e-324), ((6e307, 8e307), 1e308)),
        ],
        "power": [
            *(((0.0, 2.0), 0.0), ((2.0, 10.0), 1024.0), ((2.0, 2000.0), inf), ((7.0, 0.0), 1.0)),
            *(((2.0, -2000.0), 0.0), ((nan, 1.0), nan), ((-1.0, 2.0), nan)),
        ],
    }
    for name, pairs in cases.items():
        function = getattr(functions, name)
        for given, truth in pairs:
            assert function(*given) == truth or (math.isnan(truth) and math.isnan(function(*given)))
            whole = function(*(np.full(9, x) for x in given))
            assert np.array_equal(whole, np.full(9, function(*given)), equal_nan=True)


def test_doors_keep_shapes() -> None:
    assert isinstance(functions.exp(0.5), float)
    assert functions.exp(np.zeros((2, 3))).shape == (2, 3)
    assert functions.exp([]).shape == (0,)
    assert functions.log(np.float64(2.0)) == functions.log(2)
    assert functions.arctan2(np.zeros((2, 1)), np.ones(3)).shape == (2, 3)
    strided = np.arange(1.0, 21.0)[::2]
    assert np.array_equal(functions.log(strided), functions.log(strided.copy()))
    assert functions.logaddexp(-np.inf, -np.inf) == -np.inf
    sums = functions.logaddexp(np.array([0.0, np.inf]), np.array([1.0, 0.0]))
    assert np.allclose(sums, [math.log(1.0 + math.e), np.inf], rtol=1e-15)


def test_the_page_states_what_is_counted() -> None:
    header = (ROOT / "csrc" / "doubles.h").read_text(encoding="utf-8")
    counted = dict(re.findall(r"#define PE_ULP_(\w+) (\d+)", header))
    elementary, curved, erfc = (int(counted[x]) for x in ("ELEMENTARY", "CURVED", "ERFC"))
    assert max(PROVEN[x] for x in ("exp", "expm1", "log", "log1p")) <= elementary
    assert max(PROVEN[x] for x in ("sin", "cos", "arctan2", "hypot", "power")) <= curved
    assert PROVEN["erfc"] <= erfc


PROOFS = (
    ("double_turns", "sin", "1.0 / 362880.0", "1.0 / 362881.0"),
    ("double_angles", "atan2", "0.07692183087342026", "0.07692184087342026"),
    ("double_logarithms", "log", "6.666666666666735130e-01", "6.666666666766735130e-01"),
    ("double_exponentials", "exp", "2.480158732558584e-05", "2.480159732558584e-05"),
)


@pytest.mark.parametrize(("proof", "name", "right", "wrong"), PROOFS[: 4 if ALL else 1])
def test_errors_are_proven(proof: str, name: str, right: str, wrong: str) -> None:
    """And a wrong digit of a coefficient shows."""
    text = "".join(source.read_text(encoding="utf-8") for source in prove.SOURCES)
    ctx.prec, ctx.cap = 300, prove.ORDER
    proven = prove.PROOFS[proof](text)
    assert all(float(error) <= prove.PLACES[each] for each, error in proven.items())
    assert right in text
    off = prove.PROOFS[proof](text.replace(right, wrong))
    assert float(off[f"pe_d_{name}"]) > 10.0 * prove.PLACES[f"pe_d_{name}"]


def test_erfc_is_proven() -> None:
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / "prove_normal.py")], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stdout + done.stderr
    assert re.search(r"^erfc +proven +[\d.]+ +used +16\.0$", done.stdout, re.M)
