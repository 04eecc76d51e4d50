"""Values that err by more than they are, to the power of many steps, prove nothing.

No mechanism is known whose values err so much: an error is put into them, and into its bound.  The
bound of such a power passes the largest double, which it may not do unnoticed.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from audit_terms import ERRORS, rows
from audits import core
from thorough import sampled

VALUES, FUNCTIONALS = 2, 5
QUESTIONS = [
    {"noise": [noise], "p": [p], "steps": [steps], "c": c}
    for noise, p, steps, c in (
        (1.0, 0.001, 1e5, 0.4),
        (0.6, 1e-4, 1e8, 3.0),
    )
]


@sampled(2)
@pytest.mark.parametrize("question", QUESTIONS, ids=lambda asked: f"{asked['steps'][0]:g} steps")
@pytest.mark.parametrize("backward", [False, True])
def test_rows_hold_whatever_values_err_by(question: dict[str, Any], backward: bool) -> None:
    """From errors that leave digits to those whose power is beyond all doubles."""
    plain = rows(core().library, question, backward)
    known = np.nanmin(plain[:, ERRORS : ERRORS + FUNCTIONALS], axis=0) < 1e-9
    assert known.any()
    truth = plain[np.nanargmin(plain[:, ERRORS], axis=0), VALUES : VALUES + FUNCTIONALS]
    steps, refused = question["steps"][0], 0
    # logs of what the errors grow to; the bound's own is about twice that, as both err
    for power in (1e-3, 1.0, 350.0, 700.0, 800.0, 1000.0, 1500.0, 1e4):
        with core().set_to({"put in": math.expm1(power / steps)}) as library:
            found = rows(library, question, backward)
        for row in found:
            for which in np.flatnonzero(known):
                error = row[ERRORS + which]
                assert not error < 0.0
                if not error < 1.0:  # nothing is claimed, or from 0 on
                    refused += 1
                    continue
                off = abs(math.expm1(row[VALUES + which] - truth[which]))
                assert off <= error + 2e-9, (power, which, row)
    assert refused > 20
