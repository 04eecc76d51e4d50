"""C sources as shared libraries, for the audits of this folder and their tests."""

from __future__ import annotations

import ctypes
import subprocess
from collections.abc import Iterable
from pathlib import Path

__all__ = ["CERTIFIED", "FLAGS", "ROOT", "compiled"]

ROOT = Path(__file__).resolve().parent.parent
FLAGS = ("-O2", "-std=c11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math")
# The sources of the core that certified rows need.
CERTIFIED = (
    *("pair", "spectral", "strips", "contour", "contour_rows", "node_sums"),
    *("loss_nodes", "noise_nodes"),
    *("chebyshev", "proven", "certified", "divided", "envelope", "taper"),
    *("tilted", "tilted_lines", "tilted_windows"),
    *("shifted", "shifted_height", "shifted_nodes", "real_nodes"),
    *("plane_nodes", "shifted_values"),
    *("normals", "normal", "cpu", "functionals"),
)


def compiled(
    library: Path,
    files: Iterable[Path],
    headers: Path = ROOT / "csrc",
    flags: Iterable[str] = FLAGS,
) -> ctypes.CDLL:
    """Compile files to a library that is made anew, and load it."""
    command = ["gcc", *flags, "-shared", "-fPIC", f"-I{headers}", *map(str, files)]
    subprocess.run([*command, "-o", str(library), "-lm"], check=True)
    return ctypes.CDLL(str(library))
