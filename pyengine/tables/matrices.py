"""Matrix mechanisms of the command line and of tables: C comes from a file."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Mapping
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyengine import _checks
from pyengine.kinds import kind_of_step
from pyengine.mechanisms import Mechanism, Step, matrix_mechanism, steps_of
from pyengine.mechanisms.names import renamed
from pyengine.tables.numbers import number_text

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt

__all__ = ["MATRIX", "MATRIX_KEYS", "matrix_of", "plain_tables", "read_matrix"]

MATRIX = "matrix"
COUNTS = ("times", "separation", "bins", "classes")
MATRIX_KEYS = (MATRIX, "participation", *COUNTS)
SUFFIXES = (".npy", ".csv")
LARGEST = 1 << 31  # bytes of a file


def matrix_of(keys: Mapping[str, str]) -> Mechanism:
    """Mechanism of a phase with the key ``matrix``.

    Parameters
    ----------
    keys : mapping of str to str
        ``noise``, ``matrix``, the name of a file, and what else `pyengine.matrix_mechanism` takes.

    Raises
    ------
    ValueError
        For other keys, a file that holds no matrix, and all that `pyengine.matrix_mechanism`
        refuses.
    """
    for key in keys:
        if key not in (*MATRIX_KEYS, "noise"):
            allowed = ", ".join(("noise", *MATRIX_KEYS))
            raise ValueError(f"a matrix takes no {key!r}: all steps are in it; keys: {allowed}")
    if "noise" not in keys:
        raise ValueError("a matrix needs noise")
    words: dict[str, Any] = {key: _count(key, keys[key]) for key in COUNTS if key in keys}
    if "participation" in keys:
        words["participation"] = keys["participation"]
    return matrix_mechanism(keys["noise"], read_matrix(Path(keys[MATRIX])), **words)


def plain_tables(
    table: Mapping[str, object], directory: Path
) -> tuple[list[dict[str, object]], dict[str, str]]:
    """Tables without a matrix that say what a table with one does, and the hash of its file.

    Parameters
    ----------
    table : mapping
        A phase of a specification; one without the key ``matrix`` stays as it is.
    directory : Path
        Where the name of the file starts.

    Returns
    -------
    list of dict, dict of str to str
        One table for each step of `pyengine.matrix_mechanism`, with exact noise, and the SHA-256 of
        the file under the name that the table gives it.

    Raises
    ------
    ValueError
        As in `matrix_of`, and for lists: the noise that stands in the rows is not the one given.
    """
    if MATRIX not in table:
        return [dict(table)], {}
    keys = {}
    for key, value in renamed(table, {"noise_multiplier": "noise"}).items():
        number = key in ("noise", *COUNTS)
        if key in (MATRIX, "participation") and not isinstance(value, str):
            raise ValueError(f"{key} must be a word where there is a matrix, got {value!r}")
        keys[key] = number_text(key, value) if number else str(value)
    name = keys[MATRIX]
    made = steps_of(matrix_of({**keys, MATRIX: str(directory / name)}))
    digest = hashlib.sha256((directory / name).read_bytes()).hexdigest()
    return [_plain(step, number) for step, number in made], {name: digest}


def _plain(step: Step, number: int) -> dict[str, object]:
    kind = kind_of_step(step)
    assert kind is not None  # what `matrix_mechanism` makes can be named
    said: dict[str, object] = {"mechanism": kind.name, "steps": number}
    for name in kind.parameters:
        value: Any = step.multiplier if name == "noise_multiplier" else getattr(step, name)
        said[name] = str(Fraction(value))
    said["words"] = step.words  # `workflows.WORDS`: a matrix is not in the parameters
    return said


def _count(key: str, text: str) -> int:
    value = _checks.exact(key, text)
    if value.denominator != 1:
        raise ValueError(f"{key} must be an integer, got {text}")
    return int(value)


def read_matrix(path: Path) -> npt.NDArray[np.float64]:
    """Matrix of a file: ``.npy`` of NumPy, or ``.csv`` with numbers between commas.

    Parameters
    ----------
    path : Path
        The file; its name says what it is.

    Raises
    ------
    ValueError
        If it cannot be read, or holds anything but a matrix of real numbers.
    """
    import numpy as np

    suffix = path.suffix.lower()
    if suffix not in SUFFIXES:
        raise ValueError(f"matrix must be a file {' or '.join(SUFFIXES)}, got {str(path)!r}")
    try:
        if os.path.getsize(path) > LARGEST:
            raise ValueError(f"it has more than {LARGEST:,} bytes")
        if suffix == ".npy":
            found = np.load(path, allow_pickle=False)  # no code of others
        else:
            text = path.read_text(encoding="utf-8-sig")
            rows = [line.split(",") for line in text.splitlines() if line.strip()]
            found = np.array([[_real(cell) for cell in row] for row in rows])
    except OSError as error:
        raise ValueError(f"matrix {path}: {error.strerror or error}") from None
    except (ValueError, EOFError) as error:
        raise ValueError(f"matrix {path}: {error}") from None
    if found.ndim != 2 or not found.size or found.dtype.kind not in "biuf":
        raise ValueError(
            f"matrix {path}: expected numbers in rows and columns, got {found.dtype} of shape "
            f"{found.shape}"
        )
    matrix: npt.NDArray[np.float64] = found.astype(np.float64)
    return matrix


def _real(cell: str) -> float:
    try:
        return float(cell)
    except ValueError:
        raise ValueError(f"{cell.strip()!r} is no number") from None
