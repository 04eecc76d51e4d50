"""The C drivers, compiled with the flags of the package and cached by their sources."""

from __future__ import annotations

import hashlib
import os
import re
import runpy
import subprocess
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from .valgrind import CountError

__all__ = ["ROOT", "Driver", "build", "compiler_of", "kernel_files"]

ROOT = Path(__file__).parents[2]
HERE = Path(__file__).parent / "c"
KEPT = ROOT / "build" / "icount"


class Driver(NamedTuple):
    """A driver, and the kernel files that do not compile against the core."""

    path: Path
    failed: dict[str, str]


def kernel_files() -> list[Path]:
    """Return the files with the pieces of work, about one for each source of the core."""
    return sorted((HERE / "kernels").glob("*.c"))


def compiler_of(binary: Path) -> str:
    """Return the compiler that a binary names."""
    found = re.search(rb"(?:GCC: \([^)]*\) |clang version )[0-9][\w.+~-]*", binary.read_bytes())
    return found[0].decode() if found else "unknown"


def _compiler() -> list[str]:
    return os.environ.get("CC", "cc").split()


def _flags(csrc: Path) -> list[str]:
    """Return the flags that the package is built with."""
    settings = runpy.run_path(str(csrc / "build_ffi.py"))
    flags: list[str] = settings["FLAGS"]
    return [*flags, "-Werror=implicit-function-declaration", "-D_GNU_SOURCE"]


def _key(files: Sequence[Path], words: Sequence[str]) -> str:
    digest = hashlib.sha256("\0".join(words).encode())
    for path in files:
        digest.update(path.name.encode() + b"\0" + path.read_bytes())
    version = subprocess.run([*_compiler(), "--version"], capture_output=True, check=True).stdout
    digest.update(version)
    return digest.hexdigest()[:16]


def _compile(source: Path, target: Path, flags: Sequence[str]) -> str:
    """Compile one file; return the compiler's errors, or nothing."""
    command = [*_compiler(), *flags, "-c", str(source), "-o", str(target)]
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    errors = [line for line in run.stderr.splitlines() if "error" in line] or [run.stderr]
    return errors[0] if run.returncode else ""


def build(
    csrc: Path = ROOT / "csrc",
    kernels: Sequence[Path] | None = None,
    *,
    main: str = "driver.c",
    flags: Sequence[str] = (),
    link: Sequence[str] = (),
) -> Driver:
    """Compile a driver of ``c`` with kernels, by default all, of the core of any commit.

    A kernel that does not compile is left out and named; `CountError` where the core does
    not.  The driver is kept under ``build/icount`` until a source or the compiler changes.
    """
    kernels = kernel_files() if kernels is None else kernels
    core = sorted(csrc.glob("*.c"))
    if not core:
        raise CountError(f"no C sources in {csrc}")
    frame = [HERE / "kernel.c", HERE / main]
    words = [*_flags(csrc), *flags]
    headers = [*csrc.glob("*.h"), *HERE.glob("*.h")]
    key = _key([*core, *sorted(headers), *frame, *kernels], [*words, *link])
    directory = KEPT / key
    target, notes = directory / "driver", directory / "failed"
    if not target.exists():
        directory.mkdir(parents=True, exist_ok=True)
        objects, failed = [], []
        for k, source in enumerate([*core, *frame, *kernels]):
            made = directory / f"{k}.o"
            trouble = _compile(source, made, [*words, f"-I{csrc}", f"-I{HERE}"])
            if not trouble:
                objects.append(str(made))
            elif source in kernels:
                failed.append(f"{source.stem}\t{trouble}")
            else:
                raise CountError(f"{source.name} does not compile: {trouble}")
        notes.write_text("\n".join(failed), encoding="utf-8")
        fresh = directory / f"driver.{os.getpid()}"
        command = [*_compiler(), *objects, "-o", str(fresh), *link, "-lm", "-ldl"]
        run = subprocess.run(command, capture_output=True, text=True, check=False)
        if run.returncode:
            raise CountError(f"the driver does not link: {run.stderr[-2000:]}")
        fresh.replace(target)
        for made in objects:
            Path(made).unlink()
    lines = notes.read_text(encoding="utf-8").splitlines()
    return Driver(target, dict(line.split("\t", 1) for line in lines))
