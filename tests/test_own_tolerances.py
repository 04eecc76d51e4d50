"""Tolerances that tests fix themselves: small ones by rule, all others by name with a reason.

What is measured against truth is held by the error budget (`check`), which knows how large the
error was.  A fixed tolerance is for other things:

- up to 1e-12, two ways to one number, a few roundings apart;
- up to 1e-9, what the public docstrings promise (1e-11 and 1e-9 of values, 1e-10 of calibrations),
  which is to hold whatever was measured;
- beyond that, numbers that are known no better: each test is listed in
  ``tests/data/own_tolerances.toml`` with the reason.
"""

from __future__ import annotations

import ast
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

TESTS = Path(__file__).parent
WORDS = {"rel", "abs", "rtol", "atol"}
PROMISED = 1e-9
LISTED = tomllib.loads((TESTS / "data" / "own_tolerances.toml").read_text(encoding="utf-8"))


def size(node: ast.expr) -> float:
    """A tolerance that is written down; of an expression the largest number in it, 0 for units."""
    if isinstance(node, ast.UnaryOp):
        return size(node.operand)
    if isinstance(node, ast.Constant):
        return abs(float(node.value)) if isinstance(node.value, int | float) else 0.0
    names = {each.id for each in ast.walk(node) if isinstance(each, ast.Name)}
    return 0.0 if names & {"EPS", "UNIT"} else 1.0


def loose(tree: ast.Module) -> Iterator[tuple[str, float]]:
    """Functions with a tolerance of their own above what is promised, and how large it is."""
    for function in ast.walk(tree):
        if not isinstance(function, ast.FunctionDef):
            continue
        for node in ast.walk(function):
            if not isinstance(node, ast.Call) or ast.unparse(node.func) == "pe.calibrate":
                continue
            sizes = [size(word.value) for word in node.keywords if word.arg in WORDS]
            if sizes and max(sizes) > PROMISED:
                yield function.name, max(sizes)


def test_every_loose_tolerance_has_a_reason() -> None:
    found = {
        f"{path.stem}::{name}"
        for path in sorted(TESTS.glob("test_*.py"))
        for name, _ in loose(ast.parse(path.read_text(encoding="utf-8")))
    }
    named = {name for names in LISTED.values() for name in names["tests"]}
    assert named >= found, f"use check(), or say why not: {sorted(found - named)}"
    assert named <= found, f"no longer there: {sorted(named - found)}"
    for kind, entry in LISTED.items():
        assert len(entry["why"].split()) > 5, kind


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("def f(): approx(x, rel=1e-8)", ["f"]),
        ("def f(): allclose(x, y, rtol=0, atol=0.5)", ["f"]),
        ("def f(): approx(x, rel=1e-9)", []),
        ("def f(): approx(x, rel=4 * EPS)", []),
        ("def f(): approx(x, rel=error)", ["f"]),
        ("def f(): approx(x, abs=-1e-3)", ["f"]),
        ("def f(): pe.calibrate(make, target, rtol=1e-3)", []),
    ],
)
def test_loose_tolerances_are_seen(code: str, expected: list[str]) -> None:
    assert [name for name, _ in loose(ast.parse(code))] == expected
