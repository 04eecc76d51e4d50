"""Optional packages: every import says which extra brings it; every target finds its own."""

from __future__ import annotations

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

import pyengine
from pyengine._support.extras import MissingPackageError, needed

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PACKAGE = Path(pyengine.__file__).parent
ROOT = Path(__file__).parents[1]
OPTIONAL = {
    "distributed": "distributed",
    "dp_accounting": "dp-accounting",
    "flint": "python-flint",
    "gdpnum": "gdpnum",
    "jinja2": "jinja2",
    "matplotlib": "matplotlib",
    "mpmath": "mpmath",
    "numba": "numba",
    "opacus": "opacus",
    "prv_accountant": "prv-accountant",
    "pyarrow": "pyarrow",
    "riskcal": "riskcal",
    "scipy": "scipy",
    "shtab": "shtab",
    "sklearn": "scikit-learn",
    "starlette": "starlette",
    "uvicorn": "uvicorn",
    "yaml": "pyyaml",
}
# Elsewhere: the reference asks for its extra before its parts are imported, accountants that are
# not installed take no part in `pyengine conformance`, and these get numbers of the reference.
# These are imported by others, which name the extra: the package, and constructors of mechanisms.
NAMED_BEFORE = ("reference/", "accounting/conformance/adapters/", "engines/analytic_lines/")
AFTER_THE_REFERENCE = ("cli/output.py", "workbench/tables/cells.py")


def unguarded(path: Path) -> set[str]:
    """Optional packages that a module imports without saying which extra brings them."""
    found: set[str] = set()
    pending: list[ast.AST] = [ast.parse(path.read_text(encoding="utf-8"))]
    while pending:
        node = pending.pop()
        if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test):
            continue
        if isinstance(node, ast.With) and "needed(" in ast.unparse(node.items[0]):
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name.partition(".")[0] for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and not node.level:
            found.add((node.module or "").partition(".")[0])
        pending.extend(ast.iter_child_nodes(node))
    return found & set(OPTIONAL)


def test_every_optional_import_names_its_extra() -> None:
    for path in PACKAGE.rglob("*.py"):
        name = path.relative_to(PACKAGE).as_posix()
        if name.startswith(NAMED_BEFORE) or name in AFTER_THE_REFERENCE:
            continue
        assert not unguarded(path), f"{name}: put the import into `with needed(...)`"


def extras() -> dict[str, str]:
    content = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {name: " ".join(v) for name, v in content["project"]["optional-dependencies"].items()}


def test_extras_bring_what_they_are_named_for() -> None:
    """Each ``needed(what, extra)`` of the sources, against pyproject.toml."""
    brought, seen = extras(), 0
    for path in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if not (isinstance(node, ast.With) and "needed(" in ast.unparse(node.items[0])):
                continue
            call = node.items[0].context_expr
            assert isinstance(call, ast.Call)
            extra = ast.literal_eval(call.args[1])
            for inner in node.body:
                for name in OPTIONAL:
                    if re.match(rf"(from|import) {name}\b", ast.unparse(inner)):
                        seen += 1
                        assert OPTIONAL[name] in brought[extra], (path, extra, name)
    assert seen >= 10
    assert all(name in brought["reference"] for name in ("python-flint", "mpmath"))


CALLS = {
    "import pyengine.reference": "pyengine.reference needs (flint|mpmath): .*[reference]",
    "pe.reference.gamma_bound(run, '0.1')": "reference needs (flint|mpmath): .*[reference]",
    "from pyengine.reference.special import ncx2_cdf": "needs (flint|mpmath): .*[reference]",
    "pe.gamma_bound(run, 0.1, method='reference')": "needs (flint|mpmath): .*[reference]",
    "pe.plots.gamma_figure({'run': run})": "a picture needs matplotlib: .*[plots]",
    "pe.report.privacy_report(whole, 1e-5, group_sizes=[]).html()": "needs jinja2: .*[report]",
    "pe.audit.clopper_pearson(1, 10)": "pyengine.audit needs scipy: .*[audit]",
    "pe.audit.GradientDistribution.estimated([[1.0], [2.0]])": "needs sklearn: .*[audit]",
    "from pyengine.analytic import z; pe.from_analytic_densities(-z * z, -z * z)": (
        "from_analytic_densities needs flint: .*[reference]"
    ),
    "pe.interop.to_dp_event(run)": "a DpEvent needs dp_accounting: .*[peers]",
    "pe.interop.to_privacy_loss_distribution(run)": "needs dp_accounting: .*[peers]",
    "pe.interop.to_prvs(run)": "needs prv_accountant: .*[peers]",
    "from pyengine.tables.files import parquet_bytes; parquet_bytes([], [], set(), set())": (
        "table.parquet needs pyarrow: .*[parquet]"
    ),
    "from pyengine.tables.pools import Dask; Dask('tcp://127.0.0.1:1')": (
        "a dask cluster needs distributed: .*[dask]"
    ),
}


def test_without_any_optional_package() -> None:
    """One process without them all asks for each."""
    lines = ["import sys, pyengine as pe", "run = pe.dp_sgd(1.0, 0.5, 2)"]
    lines += ["whole = pe.GaussianMechanism(1.0)"]  # all figures of its report are formulas
    lines += [f"sys.modules[{name!r}] = None" for name in OPTIONAL]
    for call in CALLS:
        lines += ["try:", f"    {call}", "    print('nothing was missing')"]
        lines += ["except ImportError as error:", "    print(error)"]
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", "\n".join(lines)],
        capture_output=True,
        text=True,
        check=True,
    )
    printed = run.stdout.splitlines()
    assert len(printed) == len(CALLS)
    for line, expected in zip(printed, CALLS.values(), strict=True):
        assert re.search(expected.replace("[", r"'pyengine-dp\[").replace("]", r"\]'"), line), line


def test_errors_of_our_own_modules_stay_as_they_are() -> None:
    with (
        pytest.raises(ModuleNotFoundError, match=r"No module named 'pyengine\.nonsense'") as caught,
        needed("nobody", "nothing"),
    ):
        import pyengine.nonsense  # type: ignore[import-not-found]  # noqa: F401
    assert not isinstance(caught.value, MissingPackageError)


def make_targets() -> set[str]:
    (line,) = re.findall(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)
    return set(line.split())


def test_documented_targets_exist() -> None:
    found = 0
    for page in (ROOT / "README.md", ROOT / "CONTRIBUTING.md", *(ROOT / "docs").rglob("*.md")):
        text = page.read_text(encoding="utf-8")
        inline = re.findall(r"`(?:[A-Z_]+=\S+ )*make ([a-z-]+)[^`\n]*`", text)
        blocks = re.findall(r"^make ([a-z-]+) *(?:#.*)?$", text, re.M)
        found += len(inline) + len(blocks)
        for target in (*inline, *blocks):
            assert target in make_targets(), f"{page.name}: make {target}"
    assert found >= 20


def test_every_target_is_proved_in_a_clone_of_its_own() -> None:
    run = subprocess.run(
        ["bash", str(ROOT / ".ci" / "targets"), "--list"],
        capture_output=True,
        text=True,
        check=True,
    )
    assert set(run.stdout.split()) == make_targets()


def test_what_decides_whether_a_change_goes_in_runs_every_target() -> None:
    """But those that write what is committed, and the tests once more with their coverage."""
    again = {"coverage"}
    written = {"accuracy", "bench-history", "format", "icount-record"}
    implied = {"bench-check"}  # by bench
    text = (ROOT / ".ci" / "run").read_text(encoding="utf-8")
    steps = re.findall(r'^step "[^"]+" (?:make|\.ci/targets)((?: [a-z-]+)+)(?= |$)', text, re.M)
    names = [name for step in steps for name in step.split()]
    assert len(names) == len(set(names)) >= 16
    assert set(names) == make_targets() - again - written - implied - {"clean"}


def test_workflows_call_what_there_is() -> None:
    """What runs on every change, what runs at night, and what builds a release."""
    workflows = sorted((ROOT / ".github" / "workflows").glob("*.yml"))
    assert [path.name for path in workflows] == [
        "checks.yml",
        "hosts.yml",
        "long.yml",
        "wheels.yml",
    ]
    text = "".join(path.read_text(encoding="utf-8") for path in workflows)
    assert "- run: .ci/run\n" in text
    assert "- run: python -m cibuildwheel" in text
    assert re.search(r"schedule:\n *- cron:", text)
    called = re.findall(r"\bmake ([a-z-]+)", text)
    assert set(called) == {"accuracy", "bits", "campaign", "peers"} <= make_targets()
