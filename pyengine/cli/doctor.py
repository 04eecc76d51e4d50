"""``pyengine doctor``: versions of the installation, and a check that it computes correctly."""

from __future__ import annotations

import argparse
import os
import platform
from collections.abc import Iterator
from decimal import Decimal
from typing import Any

from pyengine._support import toml
from pyengine._support.decimals import written
from pyengine._version import __version__
from pyengine.cli.output import RED, paint, print_json, print_lines, print_table
from pyengine.cli.parsers import command, switch

__all__ = ["register"]

DESCRIPTION = """\
Print versions, the vector instructions in use, threads and optional packages, and compare ten
answers with values in arbitrary precision that come with the package."""
EPILOG = """\
examples:
  pyengine doctor
  pyengine doctor --json

exit codes: 0 all ten values are right; 1 one is not"""

LEVELS = {
    4: "x86-64-v4 (AVX-512)",
    3: "x86-64-v3 (AVX2)",
    1: "x86-64 baseline",
    0: "as compiled: no clones on this platform",
}
REQUIRED = ("numpy", "cffi")
OPTIONAL = (
    *("matplotlib", "scipy", "mpmath", "python-flint", "numba"),
    *("dp-accounting", "gdpnum", "opacus", "prv-accountant", "riskcal"),
)
TOLERANCE = 1e-11  # relative error allowed against the gold values


def run(arguments: argparse.Namespace) -> int:
    """Examine the installation; returns 1 if a value is wrong."""
    facts, tests = _facts(), list(_tests())
    wrong = sum(not test["right"] for test in tests)
    if arguments.json:
        print_json({**facts, "tests": tests})
    else:
        _print(facts, tests, wrong)
    return 1 if wrong else 0


def _facts() -> dict[str, Any]:
    from pyengine._core import lib
    from pyengine.workbench.tables.pools import processors

    return {
        "python": platform.python_version(),
        "platform": platform.platform(),
        "processors": os.cpu_count(),
        "usable_processors": processors(),
        "threads": os.cpu_count() or 1,  # of pyengine.special.threaded
        "vector_instructions": LEVELS[lib.pe_simd_level()],
        "packages": {name: _version(name) for name in (*REQUIRED, *OPTIONAL)},
    }


def _version(distribution: str) -> str | None:
    import importlib.metadata  # slow

    try:
        return importlib.metadata.version(distribution)
    except importlib.metadata.PackageNotFoundError:
        return None


def _tests() -> Iterator[dict[str, Any]]:
    """Compare each gold value with the value computed here."""
    import importlib.resources

    text = importlib.resources.files("pyengine.cli").joinpath("gold.toml").read_text("utf-8")
    for gold in toml.loads(text)["value"]:
        value = _compute(gold)
        truth = Decimal(gold["truth"])
        error = None if value is None else float(abs(Decimal(value) / truth - 1))
        name = {key: gold[key] for key in gold if key not in ("truth", "source")}
        right = error is not None and error <= TOLERANCE
        found = {"value": value, "truth": gold["truth"], "relative_error": error, "right": right}
        yield {**name, **found}


def _compute(gold: dict[str, Any]) -> float | None:
    """The computed value; None if it is refused."""
    from pyengine import api, special
    from pyengine.errors import AccuracyError
    from pyengine.mechanisms import dp_sgd

    at = float(gold["at"])
    if gold["what"] == "ncx2_logcdf":
        return float(special.ncx2_logcdf(at, float(gold["df"]), float(gold["nc"])))
    mechanism = dp_sgd(float(gold["noise"]), float(gold["p"]), gold["steps"])
    try:
        return float(getattr(api, gold["what"])(mechanism, at, adjacency=gold["adjacency"]))
    except AccuracyError:
        return None


def _print(facts: dict[str, Any], tests: list[dict[str, Any]], wrong: int) -> None:
    packages = facts["packages"]
    processors = f"{facts['processors']}, usable: {facts['usable_processors']}"
    found = [f"{name} {packages[name]}" for name in OPTIONAL if packages[name]]
    absent = [name for name in OPTIONAL if not packages[name]]
    print_lines(
        (
            f"pyengine {__version__}, Python {facts['python']}, {facts['platform']}",
            f"vector instructions: {facts['vector_instructions']}",
            f"processors: {processors}; threads for large arrays: {facts['threads']}",
            f"packages: {', '.join(f'{name} {packages[name]}' for name in REQUIRED)}",
            f"optional: {', '.join(found) or 'none'}",
            f"not installed: {', '.join(absent) or 'none'}",
        )
    )
    print()
    rows = []
    for test in tests:
        numbers = ["refused", ""]
        if test["value"] is not None:
            numbers = [
                written(test["value"], ".12g"),
                written(test["relative_error"], ".1e"),
            ]
        rows.append([_name(test), *numbers, "ok" if test["right"] else paint("WRONG", RED)])
    print_table(["question", "value", "error", ""], rows)
    print()
    right = len(tests) - wrong
    print(f"{right} of {len(tests)} values are right within {written(TOLERANCE)}, relative")


def _name(test: dict[str, Any]) -> str:
    if test["what"] == "ncx2_logcdf":
        return f"ncx2_logcdf({test['at']}, {test['df']}, {test['nc']})"
    run = f"noise {test['noise']}, p {test['p']}, {test['steps']:,} steps"
    return f"{test['what']}({test['at']}), {run}, {test['adjacency']}"


register = command(
    "doctor",
    "versions, processor, threads, and a self-test against ten gold values",
    DESCRIPTION,
    EPILOG,
    run,
    switch("--json", "JSON instead of a table"),
)
