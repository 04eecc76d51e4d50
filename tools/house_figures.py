"""Figures of the package: files, lines, layers, imports, and code that should exist only once.

    python tools/house_figures.py [ROOT]

ROOT is a checkout, by default this one, so that an old commit in another work tree can be compared.
Everything is read as text; nothing of the package is imported.
"""

from __future__ import annotations

import ast
import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

FOUND_BY_HALVES = re.compile(r"0\.5 \* \((\w*low\w*|\w*high\w*|lo|hi|a|b|least|most|upper)\b")


def trees(package: Path) -> dict[str, ast.Module]:
    """Syntax trees of a package by the names of its files."""
    return {
        str(path.relative_to(package)): ast.parse(path.read_text(encoding="utf-8"))
        for path in sorted(package.rglob("*.py"))
    }


def room(name: str) -> str:
    """Top-level folder or module of the package."""
    return name.split("/")[0].removesuffix(".py")


def arrows(package: Path, modules: dict[str, ast.Module]) -> set[tuple[str, str]]:
    """Pairs of rooms of which the first imports from the second, other than for types."""
    found = set()
    rooms = {room(name) for name in modules}
    for name, tree in modules.items():
        types = {
            id(inner)
            for node in ast.walk(tree)
            if isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)
            for inner in ast.walk(node)
        }
        for node in ast.walk(tree):
            if not isinstance(node, ast.ImportFrom) or id(node) in types or not node.module:
                continue
            parts = node.module.split(".")
            if parts[0] != package.name:
                continue
            targets = parts[1:2] or [alias.name for alias in node.names]
            found |= {(room(name), other) for other in targets if other in rooms}
    return {(one, other) for one, other in found if one != other}


def mechanisms(modules: dict[str, ast.Module]) -> set[str]:
    """Names of the classes of mechanisms."""
    names = {"Mechanism"}
    classes = [
        node
        for name, tree in modules.items()
        if room(name) == "mechanisms"
        for node in ast.walk(tree)
        if isinstance(node, ast.ClassDef)
    ]
    for _ in range(5):
        names |= {each.name for each in classes if {ast.unparse(b) for b in each.bases} & names}
    return names


def asked_types(modules: dict[str, ast.Module]) -> Iterator[str]:
    """Files of every ``isinstance`` that names a mechanism, outside the room of mechanisms."""
    names = mechanisms(modules)
    for file, tree in modules.items():
        if room(file) == "mechanisms":
            continue
        for node in ast.walk(tree):
            if not isinstance(node, ast.Call) or len(node.args) < 2:
                continue
            if ast.unparse(node.func) in ("isinstance", "issubclass"):
                asked = {ast.unparse(each).split(".")[-1] for each in ast.walk(node.args[1])}
                if asked & names:
                    yield file


def halvings(modules: dict[str, ast.Module]) -> Iterator[str]:
    """Functions with a loop that halves an interval."""
    for file, tree in modules.items():
        for node in ast.walk(tree):
            if not isinstance(node, ast.FunctionDef):
                continue
            loops = [each for each in ast.walk(node) if isinstance(each, ast.While | ast.For)]
            if any(FOUND_BY_HALVES.search(ast.unparse(each)) for each in loops):
                yield f"{file}:{node.name}"


def hulls(modules: dict[str, ast.Module]) -> Iterator[str]:
    """Functions and classes with hull in their names, or for both orders."""
    for file, tree in modules.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef) and re.search(r"Hull|BothOrders$", node.name):
                bases = ", ".join(map(ast.unparse, node.bases)) or "nothing"
                yield f"{file}:{node.name}({bases})"
            elif isinstance(node, ast.FunctionDef) and re.search(r"hull", node.name):
                yield f"{file}:{node.name}"


def doubled(modules: dict[str, ast.Module]) -> dict[str, list[str]]:
    """Names that several classes share."""
    places = defaultdict(list)
    for file, tree in modules.items():
        for node in ast.walk(tree):
            if isinstance(node, ast.ClassDef):
                places[node.name].append(file)
    return {name: files for name, files in places.items() if len(files) > 1}


def main(root: Path) -> None:
    """Print all figures of a checkout."""
    package = root / "pyengine"
    modules = trees(package)
    lines = sum(len((package / name).read_text(encoding="utf-8").splitlines()) for name in modules)
    core = [path for path in (root / "csrc").glob("*.[ch]") if path.name != "ncx2_nodes.h"]
    show("files of Python", len(modules))
    show("lines of Python", lines)
    show("files of C, tables left out", len(core))
    show("lines of C", sum(len(path.read_text().splitlines()) for path in core))
    rules = (root / "tests" / "test_package.py").read_text(encoding="utf-8")
    floors = re.search(r"^FLOORS = \((.*?)^\)", rules, re.M | re.S)
    if floors:
        entries = ast.literal_eval(f"({floors[1]})")
        show("floors", f"{len(entries)} in {len(floors[1].strip().splitlines())} lines of rules")
    found = arrows(package, modules)
    show("arrows between rooms", f"{len(found)} between {len({room(name) for name in modules})}")
    files = list(asked_types(modules))
    show("isinstance of mechanisms, elsewhere", f"{len(files)} in {len(set(files))} files")
    twice = doubled(modules)
    show("class names that occur twice", f"{len(twice)}: {', '.join(sorted(twice))}")
    for title, places in (("hulls", hulls(modules)), ("loops that halve", halvings(modules))):
        listed = list(places)
        show(title, len(listed))
        print(*(f"    {place}" for place in listed), sep="\n")


def show(what: str, figure: object) -> None:
    """Print a figure."""
    print(f"{what:38} {figure}")


if __name__ == "__main__":
    main(Path(sys.argv[1]) if len(sys.argv) > 1 else Path(__file__).parents[1])
