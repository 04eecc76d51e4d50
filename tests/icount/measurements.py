"""The two measurements, each with the versions that its counts depend on."""

from __future__ import annotations

import importlib.util
import platform
import sys
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from . import valgrind
from .build import ROOT, build, compiler_of
from .valgrind import CountError, Counts

__all__ = ["count_kernels", "count_questions"]

PYTHON = Path(__file__).parent / "python"


def _machine(binary: Path) -> dict[str, str]:
    return {
        "compiler": compiler_of(binary),
        "libc": " ".join(platform.libc_ver()),
        "machine": platform.machine(),
        "valgrind": valgrind.version(),
    }


def count_kernels(csrc: Path = ROOT / "csrc") -> tuple[Counts, dict[str, str]]:
    """Return the counts of the kernels of a core, and versions."""
    driver = build(csrc)
    counts = valgrind.measure([str(driver.path)])
    counts.failed.update(driver.failed)
    return counts, _machine(driver.path)


def count_questions(
    questions: Path = PYTHON / "questions.py", names: Sequence[str] = ()
) -> tuple[Counts, dict[str, str]]:
    """Return the counts of all or of the named questions, and versions.

    The questions go to the package that this interpreter imports.
    """
    core = importlib.util.find_spec("pyengine._core")
    if core is None or core.origin is None:
        raise CountError("pyengine is not installed")
    driver = [sys.executable, "-s", str(PYTHON / "driver.py")]
    counts = valgrind.measure([*driver, str(questions), *names])
    return counts, {
        **_machine(Path(core.origin)),
        "python": f"{platform.python_implementation()} {platform.python_version()}",
        "numpy": version("numpy"),
        "cffi": version("cffi"),
    }
