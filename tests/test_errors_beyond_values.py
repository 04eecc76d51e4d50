"""Values that err by more than they are, to the power of many steps, prove nothing.

No mechanism is known whose values err so much: an error is put into them, and into its bound.  The
bound of such a power passes the largest double, which it may not do unnoticed.
"""

from __future__ import annotations

import ctypes
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from audit_certificate import ERRORS, build, rows

VALUES, FUNCTIONALS = 2, 5
CHANGES = (
    ("shifted_values.c", "#define U 0x1p-53", "#define U 0x1p-53\nextern double put_in;"),
    ("shifted_values.c", "error[k] = bound;", "error[k] = bound + put_in, re[k] += put_in;"),
)
QUESTIONS = [
    {"noise": [noise], "p": [p], "steps": [steps], "c": c}
    for noise, p, steps, c in (
        (1.0, 0.001, 1e5, 0.4),
        (0.6, 1e-4, 1e8, 3.0),
    )
]


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Any:
    """The kernel with an error of all values, which is none at first."""
    folder = tmp_path_factory.mktemp("errors")
    for file, old, _ in CHANGES:
        assert old in (Path(__file__).parents[1] / "csrc" / file).read_text(encoding="utf-8")
    door = folder / "put_in.c"
    door.write_text("double put_in = 0.0;\n", encoding="utf-8")
    return build(folder, CHANGES, [door])


@pytest.mark.parametrize("question", QUESTIONS, ids=lambda asked: f"{asked['steps'][0]:g} steps")
@pytest.mark.parametrize("backward", [False, True])
def test_rows_hold_whatever_values_err_by(
    question: dict[str, Any], backward: bool, kernel: Any
) -> None:
    """From errors that leave digits to those whose power is beyond all doubles."""
    put_in = ctypes.c_double.in_dll(kernel, "put_in")
    put_in.value = 0.0
    plain = rows(kernel, question, backward)
    known = np.nanmin(plain[:, ERRORS : ERRORS + FUNCTIONALS], axis=0) < 1e-9
    assert known.any()
    truth = plain[np.nanargmin(plain[:, ERRORS], axis=0), VALUES : VALUES + FUNCTIONALS]
    steps, refused = question["steps"][0], 0
    # logs of what the errors grow to; the bound's own is about twice that, as both err
    for power in (1e-3, 1.0, 350.0, 700.0, 800.0, 1000.0, 1500.0, 1e4):
        put_in.value = math.expm1(power / steps)
        for row in rows(kernel, question, backward):
            for which in np.flatnonzero(known):
                error = row[ERRORS + which]
                assert not error < 0.0
                if not error < 1.0:  # nothing is claimed, or from 0 on
                    refused += 1
                    continue
                off = abs(math.expm1(row[VALUES + which] - truth[which]))
                assert off <= error + 2e-9, (power, which, row)
    assert refused > 20
