"""The audit of the sums behind certified rows: some lines of each kind, none outside of a bound."""

from __future__ import annotations

import ctypes
import random

import audit_sums as tool
import pytest
from audits import core
from error_terms import Claim


@pytest.mark.parametrize(("family", "seed"), [(None, 5), ("group", 7), ("truncated", 4)])
def test_sums_are_within_their_bounds(family: str | None, seed: int) -> None:
    """And some are not within a hundredth of them."""
    random_ = random.Random(seed)
    for _ in range(20):
        line = tool.drawn(random_, family, 2)
        found = list(tool.judge(core().library, line, tool.truth_of(line)))
        claims = [claim for claim in found if isinstance(claim, Claim)]
        if claims:
            break
    assert len(claims) == 32
    assert not [claim for claim in claims if claim.is_outside]
    assert 0.01 < max(claim.error / claim.bound for claim in claims) < 1.0


@pytest.mark.parametrize(("power", "refused"), [(-7.607055815321963, True), (-7.5, False)])
def test_a_power_whose_complement_is_no_double_is_refused(power: float, refused: bool) -> None:
    """Transforms at powers below one half are taken of the reversed pair, at 1 less the power."""
    numbers = [ctypes.c_double(x) for x in (2.0, 0.1)]
    rest = [ctypes.c_double(x) for x in (power, 0.01)]
    out, conjugate = (ctypes.c_double * (4 + 3 * 16))(), ctypes.c_int()
    found = (ctypes.byref(conjugate), out)
    status = core().library.audit_sums(*numbers, 0, *rest, ctypes.c_size_t(1), 0, *found)
    assert (status != 0) == refused
