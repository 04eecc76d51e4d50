"""What proofs assume of the C library and NumPy, and that nothing is answered where it is false."""

from __future__ import annotations

import json
import os
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import flint
import numpy as np
import pytest

import pyengine as pe
from pyengine.caches import clear_cache
from pyengine.cli import main
from pyengine.numerics import libm
from pyengine.numerics.rounding import ERFC, LIBM

ROOT = Path(__file__).parents[1]
needs_gcc = pytest.mark.skipif(
    shutil.which("gcc") is None or sys.platform != "linux", reason="needs gcc on Linux"
)
OF_ONE = ("exp", "expm1", "log", "log1p", "erfc", "sin", "cos")
OF_TWO = ("atan2", "hypot")
WIDE = ("exp", "log", "log1p", "sin", "cos")


def shared(folder: Path, text: str, *flags: str) -> Path:
    """A shared library of a C text."""
    source, library = folder / "made.c", folder / "made.so"
    source.write_text(text, encoding="utf-8")
    command = ["gcc", "-std=gnu11", "-O1", "-fno-builtin", "-fPIC", "-shared", *flags]
    subprocess.run([*command, str(source), "-o", str(library), "-ldl", "-lm"], check=True)
    return library


def wrong_libm() -> str:
    """A library whose functions all err by 20 units or more."""
    text = "#define _GNU_SOURCE\n#include <dlfcn.h>\n#define NEXT(name) dlsym(RTLD_NEXT, #name)\n"
    for name in OF_ONE:
        text += (
            f"double {name}(double x) {{ double (*f)(double) = NEXT({name});"
            f" return f(x) * (1.0 + 0x1p-48); }}\n"
        )
    for name in OF_TWO:
        text += (
            f"double {name}(double x, double y) {{ double (*f)(double, double) = NEXT({name});"
            f" return f(x, y) * (1.0 + 0x1p-48); }}\n"
        )
    for name in WIDE:
        text += (
            f"long double {name}l(long double x) {{ long double (*f)(long double) = NEXT({name}l);"
            f" return f(x) * (1.0L + 0x1p-58L); }}\n"
        )
    text += (
        "long double atan2l(long double x, long double y) {"
        " long double (*f)(long double, long double) = NEXT(atan2l);"
        " return f(x, y) * (1.0L + 0x1p-58L); }\n"
        "void sincos(double x, double *s, double *c) { *s = sin(x); *c = cos(x); }\n"
        "void sincosl(long double x, long double *s, long double *c)"
        " { *s = sinl(x); *c = cosl(x); }\n"
    )
    return text


def test_libraries_here_are_as_accurate_as_is_assumed() -> None:
    found = libm.measured()
    assert len(found) == 15 + len(libm.NUMPY)
    for each in found:
        assert 0.2 < each.error <= each.allowed, each
    assert 2 * libm.ALLOWED["exp"] == LIBM
    assert 2 * libm.ALLOWED["erfc"] == ERFC


def test_erfc_has_room_for_its_known_error() -> None:
    """Of 4.034 units, at one of the stored points; 4 were assumed once."""
    error = next(each.error for each in libm.measured() if each.name == "erfc")
    assert error < 0.6 * libm.ALLOWED["erfc"]
    assert float.fromhex("0x1.3f820a2e4a3eap+0") in libm.points("erfc")[0]


def test_stored_points_are_those_of_the_tool() -> None:
    before, tool = flint.ctx.prec, runpy.run_path(str(ROOT / "tools" / "libm_errors.py"))
    written = tool["header"]()
    flint.ctx.prec = before
    assert written == (ROOT / "csrc" / "libm_points.h").read_text(encoding="utf-8")


PROGRAM = """
import pyengine as pe
for bounds in (True, False):
    try:
        print(pe.delta(pe.dp_sgd(1.0, 0.01, 10), 1.0, bounds=bounds))
    except pe.AccuracyError as error:
        print(error)
print(float(pe.reference.delta(pe.dp_sgd(1.0, 0.01, 10), 1, digits=12, adjacency="remove")) > 0)
"""


@needs_gcc
def test_nothing_is_answered_with_a_library_that_errs(tmp_path: Path) -> None:
    library = shared(tmp_path, wrong_libm())
    environment = {**os.environ, "LD_PRELOAD": str(library)}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM], env=environment, capture_output=True, text=True, check=True
    )
    lines = done.stdout.splitlines()
    assert len(lines) == 3
    for line in lines[:2]:
        assert line.startswith("bounds hold only where the C library and NumPy are as accurate")
        for name in libm.ALLOWED:
            assert f"libm {name} by" in line
    assert lines[2] == "True"
    doctor = [sys.executable, "-m", "pyengine", "doctor"]
    done = subprocess.run(
        [*doctor, "--json"], env=environment, capture_output=True, text=True, check=False
    )
    assert done.returncode == 1
    functions = json.loads(done.stdout)["functions"]
    assert not any(each["right"] for each in functions if each["library"] == "libm")
    done = subprocess.run(doctor, env=environment, capture_output=True, text=True, check=False)
    assert done.returncode == 1
    assert done.stdout.count("refused") == 9


@pytest.mark.parametrize("wrong", [1.0 + 2.0**-50, float("nan")])
def test_numpy_is_measured_too(
    wrong: float, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(libm.NUMPY, "log1p", lambda x, _: np.log1p(x) * wrong)
    found = libm.measured()
    assert [each.name for each in found if not each.holds] == ["log1p"]
    monkeypatch.setattr(libm._Here, "refusal", libm.refusal(found))
    clear_cache()  # what was answered before
    with pytest.raises(pe.AccuracyError, match=r"numpy log1p by ([4-9]|inf)"):
        pe.gamma_bound(pe.GaussianMechanism(1.25), 0.1)
    assert main(["doctor"]) == 1
    printed = capsys.readouterr().out
    assert printed.count("WRONG") == 1 + 9
