"""What certifies takes the package's own elementary functions: none of the C library or of NumPy.

docs/theory/arithmetic.md says where others are left.
"""

from __future__ import annotations

import ast
import re
from pathlib import Path

import pytest

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
FOLDERS = ("laws", "engines/exact", "engines/lattice", "numerics")
# Choices of grids, and a density's estimates: nothing of these enters a bound.
CHOICES = {
    "laws/analytic.py": {"lgamma", "cosh", "tanh"},
    "engines/lattice/coarse_cumulants.py": {"log10"},
    "engines/lattice/grid_choice.py": {"log2"},
    "engines/lattice/refine.py": {"log10"},
    "laws/kinds.py": {"erf", "expm1"},
    "laws/random_steps.py": {"log2"},
}
# Measures other functions, and profiles that count the errors which it holds them to.
WITH_ERRORS_OF_OTHERS = {"numerics/libm.py", "numerics/renyi.py", "numerics/selection.py"}


@pytest.mark.skipif(not (ROOT / "csrc").exists(), reason="the sources are not here")
def test_c_code_takes_none() -> None:
    found = {}
    for source in [*(ROOT / "csrc").glob("*.[ch]"), *(ROOT / "csrc" / "python").glob("*.[ch]")]:
        text = source.read_text(encoding="utf-8")
        code = re.sub(r'/\*.*?\*/|//[^\n]*|"[^"\n]*"', " ", text, flags=re.S)
        if names := OF_C.findall(code):
            found[source.name] = set(names)
    assert found.keys() == {"assumed_libm.c"}  # which measures them


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
    files = [path for folder in FOLDERS for path in (package / folder).glob("*.py")]
    files.append(package / "engines" / "small_epsilon.py")
    found = {path.relative_to(package).as_posix(): taken(path) for path in files}
    others = {name: names for name, names in found.items() if names}
    assert others.keys() == CHOICES.keys() | WITH_ERRORS_OF_OTHERS
    assert {name: others[name] for name in CHOICES} == CHOICES
    assert len(found) > 50
