"""Stubs of modules that have a second name, for type checkers, which look for files.

Each is a folder: checkers say of other stubs that there is no source.
"""

import ast
from pathlib import Path

TABLE = "_support/lazy.py"


def write_stubs(package: Path, folder: Path) -> list[Path]:
    """Write a stub for each name that the package finds elsewhere, and return their paths.

    Parameters
    ----------
    package : Path
        The sources, whose table of names is read without an import.
    folder : Path
        Where the package is built; the sources themselves for editable installs, where version
        control is told to ignore what is written.
    """
    written = []
    for path, module in sorted(stubs(package).items()):
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        if folder == package:
            (target.parent / ".gitignore").write_text("*\n", encoding="utf-8")
        target.write_text(f"from {module} import *\n", encoding="utf-8")
        written.append(target)
    return written


def stubs(package: Path) -> dict[str, str]:
    """From paths of stubs to the modules that they stand for."""
    found = {}
    for name, room in moved(package).items():
        old, new = Path(*name.split(".")), Path(*room.split("."))
        # a whole room has more modules than had the name
        nested = (package / new).is_dir() and len(new.parts) > 1
        for module in below(package, new) if nested else [new]:
            stub = old / module.relative_to(new) / "__init__.pyi"
            found[stub.as_posix()] = ".".join(["pyengine", *module.parts])
    return found


def moved(package: Path) -> dict[str, str]:
    """Return the table of second names."""
    tree = ast.parse((package / TABLE).read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "MOVED":
            return dict(ast.literal_eval(node.value))
    raise SystemExit(f"{package / TABLE} has no table MOVED")


def below(package: Path, room: Path) -> list[Path]:
    """Return a package and its modules without a leading underscore."""
    paths = sorted((package / room).rglob("*.py"))
    modules = [path.relative_to(package).with_suffix("") for path in paths]
    named = [m.parent if m.name == "__init__" else m for m in modules]
    return [m for m in named if not any(part[0] == "_" for part in m.parts)]
