"""The audit of rows beside few losses, in balls: nothing is outside, and what is planted is."""

from __future__ import annotations

import audit_products as tool
import numpy as np
import pytest
from flint import ctx

from pyengine.engines import product


@pytest.fixture(autouse=True)
def balls(monkeypatch: pytest.MonkeyPatch) -> None:
    """Few rows of each composition, in precise balls."""
    monkeypatch.setattr(ctx, "prec", tool.BITS)
    monkeypatch.setattr(tool, "THRESHOLDS", 2)


def audited(first: int, last: int) -> tool.Audit:
    audit = tool.Audit(silent=True)
    for index in range(first, last):
        tool.ask(np.random.default_rng([1, index]), audit)
    return audit


def test_sums_and_what_stands_behind_them_are_within_their_bounds() -> None:
    """And some are not within a hundredth of them."""
    audit = audited(0, 10)
    assert audit.sums.sums > 500
    assert audit.parts.sums > 2000
    assert audit.sums.outside == audit.parts.outside == 0
    assert 0.01 < max(audit.sums.shares) < 1.0
    assert 0.01 < max(audit.parts.shares) < 1.0


@pytest.mark.parametrize("planted", ["mass", "loss", "threshold", "sum"])
def test_an_error_that_is_planted_is_found(planted: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Of 1e-9, in one place of the rows."""
    side = product.ProductSide
    if planted == "threshold":
        asked = side._asked
        monkeypatch.setattr(side, "_asked", lambda self, c, sign: asked(self, c, sign) + 1e-9)
    elif planted == "sum":
        mean = side._mean
        monkeypatch.setattr(side, "_mean", lambda self, which, logs: mean(self, which, logs) + 1e-9)
    else:
        begin = side.__init__

        def altered(self: product.ProductSide, few: object, smooth: object) -> None:
            begin(self, few, smooth)  # type: ignore[arg-type]
            if planted == "mass":
                self._log_a = self._log_a + 1e-9
            else:
                self._low = self._low + 1e-9

        monkeypatch.setattr(side, "__init__", altered)
    audit = audited(0, 2)
    assert audit.sums.outside + audit.parts.outside > 10
    assert (audit.parts.outside > 0) == (planted != "sum")
