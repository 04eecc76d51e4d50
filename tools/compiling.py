"""C sources as shared libraries, for the audits of this folder and their tests."""

from __future__ import annotations

import ctypes
import hashlib
import os
import re
import shutil
import subprocess
import tempfile
from collections.abc import Iterable, Sequence
from functools import cache
from pathlib import Path
from typing import Any

__all__ = ["CERTIFIED", "FLAGS", "ROOT", "compiled", "doubles", "linked"]

ROOT = Path(__file__).resolve().parent.parent
FLAGS = ("-O2", "-std=c11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
# The sources of the core that certified rows need.
CERTIFIED = (
    *("pair", "spectral", "strips", "contour", "contour_rows", "node_sums"),
    *("loss_nodes", "noise_nodes"),
    *("chebyshev", "proven", "certified", "divided", "small_losses", "envelope", "taper"),
    *("tilted", "tilted_lines", "tilted_windows"),
    *("shifted", "shifted_height", "shifted_nodes", "real_nodes"),
    *("plane_nodes", "shifted_values"),
    *("normals", "normal", "cpu", "functionals"),
)


OBJECTS = ROOT / "build" / "objects"
INCLUDED = re.compile(rb'^#\s*include\s*"([^"]+)"', re.MULTILINE)


@cache
def _compiler() -> bytes:
    """Version of the compiler."""
    return subprocess.run(["gcc", "-dumpfullversion"], check=True, capture_output=True).stdout


def _texts(source: Path, headers: Path, seen: dict[Path, bytes]) -> dict[Path, bytes]:
    """Texts of a source and of all our headers that it includes, directly or not."""
    if source not in seen:
        seen[source] = source.read_bytes()
        for name in INCLUDED.findall(seen[source]):
            for folder in (source.parent, headers):
                if (header := folder / name.decode()).exists():
                    _texts(header, headers, seen)
                    break
    return seen


def _object(source: Path, headers: Path, flags: Sequence[str]) -> Path:
    """Object file of a source; one is cached for each text of the source and its headers."""
    key = repr((_compiler(), *flags, *_texts(source, headers, {}).values())).encode()
    kept = OBJECTS / f"{hashlib.sha256(key).hexdigest()}.o"
    if not kept.exists():
        OBJECTS.mkdir(parents=True, exist_ok=True)
        with tempfile.TemporaryDirectory(dir=OBJECTS) as place:
            made = Path(place) / "made.o"
            # relative paths, so that ccache recognises the same text in any folder
            path = os.path.relpath(source, headers)
            gcc = ["ccache", "gcc"] if shutil.which("ccache") else ["gcc"]
            command = [*gcc, *flags, "-fPIC", "-I.", "-c", path, "-o", str(made)]
            subprocess.run(command, check=True, cwd=headers)
            made.replace(kept)
    return kept


def linked(
    made: Path,
    files: Iterable[Path],
    flags: Sequence[str],
    headers: Path = ROOT / "csrc",
    link: Sequence[str] = (),
) -> None:
    """Compile what changed, and link to a program, or as the options say."""
    objects = [str(_object(source, headers, flags)) for source in files]
    subprocess.run(["gcc", *flags, *link, *objects, "-o", str(made), "-lm"], check=True)


def compiled(
    library: Path,
    files: Iterable[Path],
    headers: Path = ROOT / "csrc",
    flags: Iterable[str] = FLAGS,
) -> ctypes.CDLL:
    """The same for a library, which is loaded."""
    linked(library, files, tuple(flags), headers, ("-shared",))
    return ctypes.CDLL(str(library))


def doubles(values: Iterable[Any]) -> Any:
    """An array for C."""
    numbers = [float(value) for value in values]
    return (ctypes.c_double * len(numbers))(*numbers)
