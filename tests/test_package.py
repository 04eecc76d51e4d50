"""The shape of the package: which module may import which, and what importing it costs."""

from __future__ import annotations

import ast
import importlib
import importlib.metadata
import importlib.resources
import re
import subprocess
import sys
from functools import cache
from graphlib import TopologicalSorter
from pathlib import Path
from types import ModuleType

import pytest

import pyengine
from pyengine._support.lazy import MOVED
from pyengine._version import DISTRIBUTION

PACKAGE = Path(pyengine.__file__).parent

# Imports go down only: a module may import from its own floor and from those above it in this list.
FLOORS = (
    "_core _objects _ufuncs _version errors",
    "_support",
    "special numerics",
    "mechanisms duality",
    "laws",
    "engines reference",
    "api",
    "calibration",
    "accounting threat",
    "workbench",
    "cli __main__",
)
FLOOR_OF_ROOM = {room: i for i, rooms in enumerate(FLOORS) for room in rooms.split()}
FLOOR = {f"pyengine.{room}": i for room, i in FLOOR_OF_ROOM.items()}
# Drop-in replacements of two accountants, each known by that name.
NAMED_TWICE = {"PyengineAccountant"}
# The ground truth shares nothing with what it judges.
REFERENCE_MAY_IMPORT = (
    "pyengine.reference",
    "pyengine.mechanisms",
    "pyengine.errors",
    "pyengine._support.checks",
    "pyengine._support.extras",
    "pyengine._support.caches",
    "pyengine._support.forks",
)
PRIVATE_WORDS = {
    *("rung", "ladder", "sketch", "survey", "bend", "turned", "twice", "six", "knot", "knotted"),
    *("slice", "measure", "transport"),
}
# The workbench asks by what these list as public, and audits count with `numerics`; what it takes
# from engines and laws, and why.
ASKED_BY_WORKBENCH = {
    *("_support", "_version", "accounting", "api", "calibration", "errors", "mechanisms"),
    *("numerics", "reference", "special", "threat", "workbench"),
}
BENEATH = {
    # a figure of the paper is of a pair of laws that no mechanism has
    ("papers.lebeda2024", "engines.problem"),
    ("papers.lebeda2024", "engines.registry"),
    ("papers.lebeda2024", "laws.composition"),
    # the words of files stand where a kind says everything else
    ("runs.makers", "laws.kinds"),
    # the type of what answers for itself: runs that adapt, other accountants
    ("statement", "engines.answers"),
}
# Answers with their engine and proof beside them, and tables of words and of domains.
UNLISTED = {
    ("accounting.conformance.report", "YARDSTICK"),
    ("api", "QUESTIONS"),
    ("api", "answers"),
    ("mechanisms.report", "NEIGHBOURS"),
    ("mechanisms.report", "SAMPLING"),
}
# What works in ball arithmetic, and is imported by what asks for it.
BALLS = ("pyengine.reference", "pyengine.engines.analytic_lines")
# The classes of mechanisms, their bases among them.
MECHANISMS = {
    name
    for name in pyengine.mechanisms.__all__
    if isinstance(made := getattr(pyengine.mechanisms, name), type)
    and issubclass(made, pyengine.mechanisms.Mechanism)
}
HEAVY = {
    "distributed",
    "flint",
    "jinja2",
    "matplotlib",
    "mpmath",
    "numba",
    "pyarrow",
    "scipy",
    "sklearn",
    "starlette",
    "uvicorn",
}


def module_name(path: Path) -> str:
    parts = ["pyengine", *path.relative_to(PACKAGE).with_suffix("").parts]
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


MODULES = {module_name(path): path for path in sorted(PACKAGE.rglob("*.py"))}
INSIDE = {name: path for name, path in MODULES.items() if name != "pyengine"}


def floor(module: str) -> int:
    room = ".".join(module.split(".")[:2])
    assert room in FLOOR, f"{module} has no floor: add it to FLOORS in {Path(__file__).name}"
    return FLOOR[room]


@cache  # shared by the tests, none of which changes a tree
def tree_of(module: str) -> ast.Module:
    return ast.parse(MODULES[module].read_text(encoding="utf-8"))


def is_type_checking(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


@cache
def imports(module: str, *, at_import_time: bool = False) -> frozenset[str]:
    """Names of the modules that a module imports, its type-checking imports left out."""
    path = MODULES[module]
    package = module if path.name == "__init__.py" else module.rpartition(".")[0]
    found: set[str] = set()
    pending: list[ast.AST] = [tree_of(module)]
    while pending:
        node = pending.pop()
        if is_type_checking(node):
            continue
        if at_import_time and isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        if isinstance(node, ast.Import):
            found.update(alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            base = node.module or ""
            if node.level:
                anchor = package.split(".")[: len(package.split(".")) - node.level + 1]
                base = ".".join([*anchor, *([base] if base else [])])
            for alias in node.names:
                inner = f"{base}.{alias.name}"
                found.add(inner if inner in MODULES or inner in FLOOR else base)
        pending.extend(ast.iter_child_nodes(node))
    return frozenset(found)


def own(module: str) -> set[str]:
    return {name for name in imports(module) if name.split(".")[0] == "pyengine"}


def test_imports_go_down() -> None:
    for module in INSIDE:
        upward = {name for name in own(module) if name == "pyengine" or floor(name) > floor(module)}
        assert not upward, f"{module} (floor {floor(module)}) imports upwards: {sorted(upward)}"


def test_few_names_stand_at_the_top() -> None:
    found = {path.stem for path in PACKAGE.iterdir() if path.suffix == ".py"}
    found |= {path.parent.name for path in PACKAGE.glob("*/__init__.py")}
    public = {name for name in found if name[0] != "_"}
    assert public <= set(FLOOR_OF_ROOM), public - set(FLOOR_OF_ROOM)
    assert len(public) <= 14
    assert len(FLOORS) <= 11


def test_no_circle_of_rooms() -> None:
    """Not even between modules of rooms on the same floor."""
    graph: dict[str, set[str]] = {}
    for name in INSIDE:
        rooms = {other.split(".")[1] for other in own(name)}
        graph.setdefault(name.split(".")[1], set()).update(rooms)
    order = TopologicalSorter({room: rooms - {room} for room, rooms in graph.items()})
    assert set(order.static_order()) <= set(FLOOR_OF_ROOM)


def test_workbench_asks_the_public_rooms() -> None:
    """Tables, pictures and reports know questions and values, and nothing of engines or laws."""
    found, unlisted = set(), set()
    for module in INSIDE:
        if not module.startswith("pyengine.workbench."):
            continue
        for other in own(module):
            if other.split(".")[1] not in ASKED_BY_WORKBENCH:
                found.add((module[len("pyengine.workbench.") :], other[len("pyengine.") :]))
        for node in ast.walk(tree_of(module)):
            if isinstance(node, ast.ImportFrom) and (node.module or "").startswith("pyengine."):
                assert node.module is not None
                place = importlib.import_module(node.module)
                names = {alias.name for alias in node.names} - set(getattr(place, "__all__", ()))
                inner = {name for name in names if f"{node.module}.{name}" in MODULES}
                unlisted |= {(node.module[len("pyengine.") :], name) for name in names - inner}
    assert found == BENEATH
    assert {(a, b) for a, b in unlisted if not a.startswith(("workbench", "_version"))} == UNLISTED


@pytest.mark.parametrize("name", MOVED)
def test_old_names_are_the_same_modules(name: str) -> None:
    module = importlib.import_module(f"pyengine.{name}")
    assert module is importlib.import_module(f"pyengine.{MOVED[name]}")
    assert module.__spec__ is not None
    assert module.__spec__.name == module.__name__ == f"pyengine.{MOVED[name]}"
    if "." not in name:
        assert getattr(pyengine, name) is module


def test_old_names_in_a_new_process() -> None:
    """Programs and pickles that know modules by their old names."""
    code = """
import pickle
import pyengine.tables.run as first, pyengine.workbench.tables.run as second
from pyengine.interop.profiles import Profile
from pyengine import audit
import pyengine
assert first is second and pyengine.audit is audit and pyengine.interop.profiles.Profile is Profile
assert pyengine.threat_models.Relaxed is pickle.loads(b"cpyengine.threat_models\\nRelaxed\\n.")
assert pickle.loads(b"cpyengine.composing\\ncompose\\n.") is pyengine.compose
try:
    import pyengine.audit.nonsense
except ModuleNotFoundError as error:
    assert "nonsense" in str(error)
"""
    subprocess.run([sys.executable, "-W", "error", "-c", code], check=True)


def test_old_names_run_as_programs() -> None:
    command = [sys.executable, "-W", "error", "-m", "pyengine.conformance.worker"]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    assert "No module named" not in run.stderr
    assert "pyengine/accounting/conformance/worker.py" in run.stderr.replace("\\", "/")


def test_no_import_cycles() -> None:
    graph = {name: own(name) - {name} for name in INSIDE}
    assert set(TopologicalSorter(graph).static_order()) >= set(INSIDE)


def test_class_names_exist_once() -> None:
    """Whoever searches for a class finds the one place."""
    places: dict[str, list[str]] = {}
    for name in INSIDE:
        for node in ast.walk(tree_of(name)):
            if isinstance(node, ast.ClassDef):
                places.setdefault(node.name, []).append(name)
    twice = {name: found for name, found in places.items() if len(found) > 1}
    assert set(twice) == NAMED_TWICE, twice


def test_modules_and_classes_have_the_words_of_the_field() -> None:
    """What a reader can look up: contour, tilt, grid, window, and no words of our own for them."""
    names = [name.rpartition(".")[2] for name in INSIDE]
    for module in INSIDE:
        names += [node.name for node in ast.walk(tree_of(module)) if isinstance(node, ast.ClassDef)]
    words = {word.lower() for name in names for word in re.findall(r"[A-Z]?[a-z0-9]+", name)}
    words |= {word.removesuffix("s") for word in words}
    assert not words & PRIVATE_WORDS, words & PRIVATE_WORDS


def test_nothing_asks_which_mechanism_it_is() -> None:
    """A step says what is asked of it, and the registries say the rest: a new one needs no more.

    Counted is every ``isinstance`` or ``issubclass`` that names a mechanism, the base of all of
    them included, and every comparison of a step's type.  Not counted: the room of mechanisms,
    which checks its parts and tells all others what is a mechanism (`as_mechanism`); types that the
    reference looks up in sets of its own, because it shares no registry with what it judges.
    """
    for module in INSIDE:
        if not module.startswith(("pyengine.mechanisms", "pyengine.reference")):
            nodes = list(ast.walk(tree_of(module)))
            found = [ast.unparse(x) for x in nodes if names_a_mechanism(x) or compares_types(x)]
            assert not found, f"{module}: {found}"


def names_a_mechanism(node: ast.AST) -> bool:
    if not isinstance(node, ast.Call) or ast.unparse(node.func) not in ("isinstance", "issubclass"):
        return False
    named = {ast.unparse(name).split(".")[-1] for name in ast.walk(node.args[1])}
    return bool(named & MECHANISMS)


def compares_types(node: ast.AST) -> bool:
    if not isinstance(node, ast.Compare):
        return False
    return bool(re.match(r"type\([\w.]*(step|inner|mechanism)\)$", ast.unparse(node.left)))


@pytest.mark.parametrize(
    ("code", "asks"),
    [
        ("isinstance(x, Mechanism)", True),
        ("isinstance(x, (int, mechanisms.PoissonSampled))", True),
        ("isinstance(x, int | GaussianMechanism)", True),
        ("type(step) in KINDS", True),
        ("type(row.mechanism) is GaussianMechanism", True),
        ("isinstance(x, float)", False),
        ("type(value) is float", False),
    ],
)
def test_asking_for_a_type_is_seen(code: str, asks: bool) -> None:
    node = ast.parse(code, mode="eval").body
    assert (names_a_mechanism(node) or compares_types(node)) is asks


def test_reference_stands_apart() -> None:
    for module in (m for m in INSIDE if m.startswith("pyengine.reference")):
        foreign = {name for name in own(module) if not name.startswith(REFERENCE_MAY_IMPORT)}
        assert not foreign, f"{module} shares code with what it judges: {sorted(foreign)}"


def test_heavy_imports_are_lazy() -> None:
    for module in (m for m in INSIDE if not m.startswith(BALLS)):
        heavy = {name.split(".")[0] for name in imports(module, at_import_time=True)} & HEAVY
        assert not heavy, f"{module} imports {sorted(heavy)} when it is imported"


def test_root_holds_names_only() -> None:
    body = tree_of("pyengine").body
    defined = [node for node in body if isinstance(node, ast.FunctionDef | ast.ClassDef)]
    assert {node.name for node in defined} <= {"__dir__"}
    assert sorted(pyengine.__all__) == sorted(set(pyengine.__all__))
    for name in pyengine.__all__:
        assert hasattr(pyengine, name)
    offered = {name for name in dir(pyengine) if not name.startswith("_")}
    assert offered <= {*pyengine.__all__, *pyengine._LAZY.split()}  # no names of its own workings


@pytest.mark.parametrize("package", [pyengine, pyengine.mechanisms])
def test_later_names_are_what_their_modules_hold(package: ModuleType) -> None:
    for place, names in package._LATER.items():
        module = importlib.import_module(f"{package.__name__}.{place}")
        for name in names.split():
            assert name in package.__all__
            assert getattr(package, name) is getattr(module, name)
    with pytest.raises(AttributeError, match=f"module '{package.__name__}' has no attribute 'no'"):
        _ = package.no


def test_lazy_modules() -> None:
    for name in pyengine._LAZY.split():
        assert getattr(pyengine, name) is sys.modules[f"pyengine.{name}"]
        assert name in dir(pyengine)
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = pyengine.nonsense


def test_import_is_light(tmp_path: Path) -> None:
    code = "import sys, pyengine; print(*sorted(sys.modules))"
    run = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=True,
        cwd=tmp_path,  # not the checkout, where the sources would hide an installed package
    )
    loaded = run.stdout.split()
    assert not HEAVY & {name.split(".")[0] for name in loaded}
    assert "logging" not in loaded  # which comes with concurrent.futures
    # laws, targets and what answers for other kinds of mechanisms are loaded when they are asked
    first = ("mechanisms", "engines", "numerics", "api", "errors", "_")
    later = ("lattice", "exact", "smooth", "sector", "estimated_pair", "certified_epochs")
    rooms = [name.split(".")[1:] for name in loaded if name.startswith("pyengine.")]
    assert not [room for room in rooms if not room[0].startswith(first)]
    assert not [
        room for room in rooms if room[0] == "engines" and room[1:2] in ([x] for x in later)
    ]
    assert len(rooms) < 50, "more modules than the first answer needs"


def test_first_answer_imports_nothing() -> None:
    """The package brings what DP-SGD needs, so that no import is hidden in the first answer."""
    code = (
        "import sys, pyengine as pe; before = set(sys.modules); "
        "pe.gamma_bound(pe.dp_sgd(0.8, 0.001, 10_000), 1e-5); print(*set(sys.modules) - before)"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stdout.split() == []


def test_typed() -> None:
    assert importlib.resources.files("pyengine").joinpath("py.typed").is_file()
    stub = importlib.resources.files("pyengine").joinpath("_core.pyi").read_text(encoding="utf-8")
    from pyengine._core import lib

    for name in dir(lib):
        assert name in stub, f"{name} is missing in _core.pyi"


def test_version() -> None:
    assert pyengine.__version__ == importlib.metadata.version(DISTRIBUTION)


def test_citation() -> None:
    """What is cited is what is installed."""
    text = (PACKAGE.parent / "CITATION.cff").read_text(encoding="utf-8")
    fields = dict(re.findall(r"^([a-z-]+): (.+)$", text, re.M))
    about = importlib.metadata.metadata(DISTRIBUTION)
    assert fields["title"] == PACKAGE.name
    assert fields["version"] == pyengine.__version__
    assert fields["license"] == about["License-Expression"]


FIRST = {
    "delta(pe.LaplaceMechanism(1.0), 0.5)": 51,
    "delta(pe.LaplaceMechanism(1.0), 0.5, bounds=True)": 51,
    "delta(pe.RandomizedResponse(0.7, 3), 0.5)": 51,
    "delta(pe.DiscreteGaussianMechanism(2).composed(3), 0.5)": 51,
    "epsilon(pe.GenericMechanism(0.1).composed(9), 1e-3, adjacency='add')": 50,
    "delta(pe.LaplaceMechanism(1.0).composed(5), 0.5)": 90,
}


@pytest.mark.parametrize("question", FIRST)
def test_a_first_question_loads_what_it_needs(question: str) -> None:
    code = f"""
import sys
import pyengine as pe
before = set(sys.modules)
pe.{question}
new = set(sys.modules) - before
print(sum(name.startswith("pyengine") for name in new))
print(*(name for name in new if name.split(".")[0] in ("scipy", "mpmath", "matplotlib")))
"""
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    number, *others = ran.stdout.split()
    assert int(number) <= FIRST[question]
    assert not others


def test_no_engine_asks_which_law_it_has() -> None:
    """Laws say what they offer; the lattice knows the parts of steps that it makes itself."""
    asked = []
    for path in sorted((PACKAGE / "engines").rglob("*.py")):
        if path.name == "large_steps.py":
            continue
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Call) and ast.unparse(node.func) == "isinstance":
                classes = ast.unparse(node.args[1]).split(" | ")
                asked += [f"{path.name}: {name}" for name in classes if name.endswith("Law")]
    assert asked == []


def test_no_number_rests_on_an_assert() -> None:
    """Python -O drops asserts: those that are left tell types."""
    found = [
        f"{module}: {ast.unparse(node)}"
        for module in INSIDE
        for node in ast.walk(tree_of(module))
        if isinstance(node, ast.Assert) and any(map(_compares, ast.walk(node.test)))
    ]
    assert found == []


def _compares(node: ast.AST) -> bool:
    kinds = (ast.Lt, ast.LtE, ast.Gt, ast.GtE, ast.Eq, ast.NotEq)
    return isinstance(node, ast.Compare) and any(isinstance(op, kinds) for op in node.ops)
