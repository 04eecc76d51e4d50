"""Bits of random proven answers that other threads give as well.

They are those of ``tools/answer_digest.py --count 210`` that take less than 0.2 s, with GCC 12 and
its clones; Clang's were compared before the core had its own functions of doubles.
"""

from __future__ import annotations

import json
import platform
from pathlib import Path
from typing import Any

import answer_digest as tool
import pytest

KEPT: list[dict[str, Any]] = json.loads(
    (Path(__file__).parent / "data" / "answer_bits.json").read_text(encoding="utf-8")
)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="lines are placed by the C library")
@pytest.mark.parametrize("threads", [1, 2])
def test_bits_are_those_of_the_record(threads: int) -> None:
    found = tool.answers(KEPT, threads)
    other = [row for row, own in zip(KEPT, found, strict=True) if row["bits"] != own]
    assert [row["mechanism"] for row in other] == []


def test_the_record_has_all_families_and_few_refusals() -> None:
    assert {row["family"] for row in KEPT} == set(tool.GAUSSIAN)
    assert len(KEPT) >= 60
    assert sum("refused" in row["bits"] for row in KEPT) <= 3
    floats = {number for row in KEPT for number in row["bits"]}
    assert len(floats) > 5 * len(KEPT)
