"""Matrices and votes in files that a run file refers to."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

    from pyengine.mechanisms import Mechanism

__all__ = ["matrix_of_file", "read_matrix", "votes_of_file"]

SUFFIXES = (".npy", ".csv")
LARGEST = 1 << 31  # most bytes of a file


def matrix_of_file(
    noise_multiplier: Any,
    matrix: Path,
    participation: str = "single",
    times: Any = None,
    separation: Any = None,
    bins: Any = None,
    classes: Any = None,
) -> Mechanism:
    """Return `pyengine.matrix_mechanism` of the matrix in a file."""
    from pyengine._support import checks
    from pyengine.mechanisms import matrix_mechanism

    numbers = {"times": times, "separation": separation, "bins": bins, "classes": classes}
    whole = {
        name: None if value is None else checks.count(name, value)
        for name, value in numbers.items()
    }
    return matrix_mechanism(noise_multiplier, read_matrix(matrix), participation, **whole)


def votes_of_file(
    votes: Path, noise_multiplier: Any, threshold: Any = None, threshold_noise: Any = None
) -> Mechanism:
    """Return `pyengine.pate_votes` of the votes in a file."""
    from pyengine.mechanisms import pate_votes

    rows = read_matrix(votes, "votes")
    return pate_votes(rows, noise_multiplier, threshold=threshold, threshold_noise=threshold_noise)


def read_matrix(path: Path, name: str = "matrix") -> npt.NDArray[np.float64]:
    """Read a matrix from a file: NumPy's ``.npy``, or ``.csv`` with comma-separated numbers.

    ValueError if it cannot be read, or holds anything but a matrix of real numbers.
    """
    import numpy as np

    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"{name} must be a file {' or '.join(SUFFIXES)}, got {str(path)!r}")
    try:
        if os.path.getsize(path) > LARGEST:
            raise ValueError(f"it has more than {LARGEST:,} bytes")
        if suffix == ".npy":
            found = np.load(path, allow_pickle=False)  # a pickle could run code
        else:
            text = path.read_text(encoding="utf-8-sig")
            rows = [line.split(",") for line in text.splitlines() if line.strip()]
            found = np.array([[_real(cell) for cell in row] for row in rows])
    except OSError as error:
        raise ValueError(f"{name} {path}: {error.strerror or error}") from None
    except (ValueError, EOFError) as error:
        raise ValueError(f"{name} {path}: {error}") from None
    if found.ndim != 2 or not found.size or found.dtype.kind not in "biuf":
        raise ValueError(
            f"{name} {path}: expected numbers in rows and columns, got {found.dtype} of shape "
            f"{found.shape}"
        )
    matrix: npt.NDArray[np.float64] = found.astype(np.float64)
    return matrix


def _real(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise ValueError(f"{cell.strip()!r} is no number") from None
