"""The audit of the sums behind certified rows: some lines of each kind, none outside of a bound."""

from __future__ import annotations

import ctypes
import random
from typing import Any

import audit_sums as tool
import pytest
from flint import ctx

BITS = 160


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> object:
    """The kernel of the certified lines, which the tool compiles by a list of its own."""
    return tool.kernel_of_sums(tmp_path_factory.mktemp("sums"))


@pytest.mark.parametrize(("family", "seed"), [(None, 5), ("group", 7), ("truncated", 4)])
def test_sums_are_within_their_bounds(
    kernel: object, family: str | None, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And some are not within a hundredth of them."""
    monkeypatch.setattr(ctx, "prec", BITS)
    monkeypatch.setattr(tool, "VALUES", 32)
    monkeypatch.setattr(tool, "RUNS", 2)
    random_, counts = random.Random(seed), tool.Counts()
    for _ in range(20):
        tool.ask(kernel, random_, counts, family)
        if counts.lines:
            break
    assert counts.sums == 32
    assert counts.outside == 0
    assert 0.01 < max(counts.shares) < 1.0


@pytest.mark.parametrize(("power", "refused"), [(-7.607055815321963, True), (-7.5, False)])
def test_a_power_whose_complement_is_no_double_is_refused(
    kernel: Any, power: float, refused: bool
) -> None:
    """Transforms at powers below one half are taken of the reversed pair, at 1 less the power."""
    numbers = [ctypes.c_double(x) for x in (2.0, 0.1)]
    rest = [ctypes.c_double(x) for x in (power, 0.01)]
    out, conjugate = (ctypes.c_double * (4 + 3 * 16))(), ctypes.c_int()
    found = (ctypes.byref(conjugate), out)
    status = kernel.audit_sums(*numbers, 0, *rest, ctypes.c_size_t(1), 0, *found)
    assert (status != 0) == refused
