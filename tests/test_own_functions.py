"""What enters a bound takes the package's own elementary functions, none of the C library or NumPy.

Modules that take others are named here, each with a reason.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import mpmath
import numpy as np
import pytest

from pyengine.numerics import functions as fn

ROOT = Path(__file__).parents[1]
NAMES = (
    *("exp", "exp2", "expm1", "log", "log2", "log10", "log1p", "pow", "sin", "cos", "tan", "asin"),
    *("acos", "atan", "atan2", "sinh", "cosh", "tanh", "asinh", "acosh", "atanh", "hypot", "cbrt"),
    *("erf", "erfc", "tgamma", "lgamma"),
)
OF_C = re.compile(rf"(?<![\w.])(?:{'|'.join(NAMES)})[fl]?\s*\(|\blong double\b")
OF_PYTHON = {
    *NAMES, "arctan2", "arcsin", "arccos", "arctan", "arcsinh", "arccosh", "arctanh", "logaddexp",
    "logaddexp2", "sinc", "angle", "longdouble", "clongdouble", "gamma",
}  # fmt: skip
ESTIMATE = "an estimate, and called so"
CHOICE = "a choice, which makes a bound wide or narrow and never wrong"
SHOWN = "what is printed or drawn"
OF_PAPERS = "a formula of a paper as it stands there"
SAMPLED = "random samples, whose intervals are of confidence"
# Modules that take others all the same, or folders, and why.
EXCEPTED = {
    "reference": "arb and mpmath decide; doubles say where they look",
    "workbench/papers": OF_PAPERS,
    "workbench/plots/ticks.py": SHOWN,
    "workbench/report/noise_curve.py": CHOICE,
    "workbench/tables/summary.py": SHOWN,
    "cli/questions.py": SHOWN,
    "accounting/interop/batches.py": "a significance, which is no guarantee",
    "calibration/search.py": CHOICE,
    "engines/allocated_samples.py": SAMPLED,
    "engines/chebyshev_panels.py": ESTIMATE,
    "engines/edgeworth.py": ESTIMATE,
    "engines/intervals.py": ESTIMATE,
    "engines/inverse_cdf.py": ESTIMATE,
    "engines/lattice/coarse_cumulants.py": CHOICE,
    "engines/lattice/plan.py": CHOICE,
    "engines/lattice/refine.py": CHOICE,
    "engines/loss_quadrature.py": ESTIMATE,
    "engines/monte_carlo.py": SAMPLED,
    "engines/shifted_samples.py": SAMPLED,
    "engines/refusals.py": SHOWN,
    "laws/analytic.py": ESTIMATE,
    "laws/kinds.py": ESTIMATE,
}


@pytest.mark.skipif(not (ROOT / "csrc").exists(), reason="the sources are not here")
def test_c_code_takes_none() -> None:
    found = {}
    for source in [*(ROOT / "csrc").glob("*.[ch]"), *(ROOT / "csrc" / "python").glob("*.[ch]")]:
        text = source.read_text(encoding="utf-8")
        code = re.sub(r'/\*.*?\*/|//[^\n]*|"[^"\n]*"', " ", text, flags=re.S)
        if names := OF_C.findall(code):
            found[source.name] = set(names)
    assert found == {}


def taken(path: Path) -> set[str]:
    """Names of functions of NumPy and of `math` that a module takes."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    named = [node for node in ast.walk(tree) if isinstance(node, ast.Attribute)]
    found = {
        node.attr
        for node in named
        if isinstance(node.value, ast.Name) and node.value.id in ("np", "numpy", "math", "cmath")
    }
    for node in ast.walk(tree):
        if isinstance(node, ast.ImportFrom) and node.module in ("math", "cmath", "numpy"):
            found |= {name.name for name in node.names}
    return found & OF_PYTHON


def test_python_code_takes_none() -> None:
    package = ROOT / "pyengine"
    found = {path.relative_to(package).as_posix() for path in package.rglob("*.py") if taken(path)}
    excepted = {
        name: {one for one in found if one == name or one.startswith(f"{name}/")}
        for name in EXCEPTED
    }
    assert found - set().union(*excepted.values()) == set()
    assert [name for name, modules in excepted.items() if not modules] == []


def test_powers_of_subnormal_numbers_and_of_enormous_exponents() -> None:
    """One was off by a factor of 5e6, the other infinite where it is 0."""
    rng = np.random.default_rng(7)
    x = np.ldexp(rng.random(500), -1022 - rng.integers(0, 51, 500)) + 5e-324
    y = rng.uniform(-0.9, 0.9, 500)
    with mpmath.workdps(40):
        truth = [mpmath.power(mpmath.mpf(a), mpmath.mpf(b)) for a, b in zip(x, y, strict=True)]
        off = [
            abs(mpmath.mpf(float(v)) / t - 1) for v, t in zip(fn.power(x, y), truth, strict=True)
        ]
    assert max(off) <= 2.0**-51
    assert fn.power(0.9, 1.7e308) == 0.0
    assert fn.power(1.0 - 2.0**-53, 1.7e308) == 0.0
    assert fn.power(1.5, -1.7e308) == 0.0
    assert fn.power(1.5, 1.7e308) == np.inf
