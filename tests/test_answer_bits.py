"""Bits of random proven answers, the same from one thread and from two.

All of them are asked again by ``make bits``; here those of quick mechanisms of some families.
"""

from __future__ import annotations

import answer_digest as tool
import pytest

KEPT = tool.read()
FAST = ("plain", "sgd", "laplace", "exponential", "response", "generic", "vectors")  # families
QUICK = [row for row in KEPT[: len(tool.NAMES)] if row["family"] in FAST]


@pytest.mark.parametrize("threads", [1, 2])
def test_bits_are_those_of_the_record(threads: int) -> None:
    assert list(tool.differing(QUICK, tool.answers(QUICK, threads))) == []


def test_the_record_has_all_families_and_few_refusals() -> None:
    assert {row["family"] for row in KEPT} == set(tool.NAMES)
    assert len(QUICK) == len(FAST)
    assert {row["order"] for row in KEPT} == set(tool.ORDERS)
    digests = [each for row in KEPT for each in row["bits"]]
    assert sum(len(points) for row in KEPT for points in row["at"].values()) >= 5000
    assert digests.count("refused") < 0.02 * len(digests)
    assert len(set(digests)) > 0.5 * len(digests)


def test_what_differs_is_named() -> None:
    row = {**QUICK[0], "bits": ["00000000", *QUICK[0]["bits"][1:]]}
    (said,) = tool.differing([row], [QUICK[0]["bits"]])
    assert said.startswith(f"{row['mechanism']} {row['order']} delta(")
