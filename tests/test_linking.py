"""Programs in C and Cython that link the library: they build, run, and get the bits of Python."""

from __future__ import annotations

import ctypes
import importlib.machinery
import importlib.util
import os
import re
import shlex
import subprocess
import sys
import sysconfig
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyengine as pe

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples" / "linking"
if os.name != "posix":
    pytest.skip("the library is built on Linux and macOS", allow_module_level=True)

HEADER = Path(pe.get_include(), "libpyengine.h").read_text(encoding="utf-8")
DECLARED = dict(re.findall(r"^PYENGINE_API double pyengine_(\w+)\(([^)]*)\);", HEADER, re.M))
LIBRARY = Path(pe.get_library())


def compile_c(source: Path, *arguments: str, include: str = pe.get_include()) -> None:
    compiler = shlex.split(os.environ.get("CC", "cc"))
    flags = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", f"-I{include}"]
    linked = [f"-L{LIBRARY.parent}", "-lpyengine", f"-Wl,-rpath,{LIBRARY.parent}"]
    subprocess.run([*compiler, *flags, str(source), *arguments, *linked], check=True)


def test_header_declares_all_special_functions() -> None:
    assert set(DECLARED) == set(pe.special.__all__) - {"threaded"}
    for name, parameters in DECLARED.items():
        assert len(parameters.split(",")) == getattr(getattr(pe.special, name), "nin", 1)


def test_library_exports_what_the_header_declares() -> None:
    listed = subprocess.run(
        ["nm", "-D", "--defined-only", str(LIBRARY)], capture_output=True, text=True, check=False
    )
    if listed.returncode:
        pytest.skip("nm cannot list the library")
    exported = set(re.findall(r" T (\w+)", listed.stdout))
    assert exported == {f"pyengine_{name}" for name in [*DECLARED, "api_version"]}


@pytest.mark.parametrize("name", DECLARED)
def test_library_has_the_bits_of_python(name: str) -> None:
    function: Any = getattr(ctypes.CDLL(str(LIBRARY)), f"pyengine_{name}")
    rng = np.random.default_rng(len(name))
    number = len(DECLARED[name].split(","))
    function.restype, function.argtypes = ctypes.c_double, [ctypes.c_double] * number
    for _ in range(50):
        # more than half within all domains, the rest gives NaN on both sides
        first = rng.uniform(-1.0, 0.0) if name.endswith("_exp") else rng.uniform(-0.2, 1.0)
        given = [first, *rng.uniform(1.1, 9.0, number - 1)]
        if "marcum" in name and "inv" in name:
            given = [*given[1:], first]
        found, truth = function(*given), float(getattr(pe.special, name)(*given))
        assert found == truth or found != found != truth


def test_c_example(tmp_path: Path) -> None:
    program = tmp_path / "tails"
    compile_c(EXAMPLES / "tails.c", "-o", str(program))
    done = subprocess.run([str(program)], capture_output=True, text=True, check=True)
    rows = [[float(cell) for cell in line.split()] for line in done.stdout.splitlines()]
    assert len(rows) == 8
    for x, tail, log_tail in rows:
        assert tail == pe.special.ncx2_sf(x, 10.0, 30.0)
        assert log_tail == pe.special.ncx2_logsf(x, 10.0, 30.0)
    assert rows[-1][1] == 0.0 > rows[-1][2]


def test_cython_example(tmp_path: Path) -> None:
    pytest.importorskip("Cython")
    translated, built = tmp_path / "tails.c", tmp_path / "tails.so"
    source = str(EXAMPLES / "tails.pyx")
    subprocess.run(
        [sys.executable, "-m", "cython", "-3", source, "-o", str(translated)], check=True
    )
    compile_c(
        translated,
        "-Wno-error",
        f"-I{sysconfig.get_paths()['include']}",
        "-shared",
        "-fPIC",
        "-o",
        str(built),
    )
    loader = importlib.machinery.ExtensionFileLoader("tails", str(built))
    spec = importlib.util.spec_from_file_location("tails", built, loader=loader)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    loader.exec_module(module)
    b = np.linspace(0.0, 40.0, 1000)
    out = np.empty_like(b)
    module.marcum_q(2.5, 3.0, b, out)
    assert out.tolist() == pe.special.marcum_q(2.5, 3.0, b).tolist()
    for length in (999, 1001):
        with pytest.raises(ValueError, match="same length"):
            module.marcum_q(2.5, 3.0, b, np.empty(length))


def test_a_library_that_is_older_than_the_header_is_told(tmp_path: Path) -> None:
    newer = tmp_path / "newer"
    newer.mkdir()
    text = HEADER.replace("#define PYENGINE_API_MINOR 0", "#define PYENGINE_API_MINOR 1")
    assert text != HEADER
    (newer / "libpyengine.h").write_text(text, encoding="utf-8")
    program = tmp_path / "tails"
    compile_c(EXAMPLES / "tails.c", "-o", str(program), include=str(newer))
    done = subprocess.run([str(program)], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (1, "libpyengine is older than the header\n")
