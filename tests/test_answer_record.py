"""The record of answers that two checkouts are compared by."""

from __future__ import annotations

import math
from typing import Any

import answer_record as tool
import pytest

import pyengine as pe


def test_questions_are_those_of_the_seed_and_all_can_be_asked() -> None:
    first, second = (list(tool.questions(60, 5)) for _ in range(2))
    assert first == second
    assert list(tool.questions(60, 6)) != first
    assert {each.family for each in first} == {*tool.FAMILIES, "mixed"}
    for each in first:
        assert eval(each.mechanism, {"pe": pe})


def row(lower: float, upper: float, seconds: float = 0.01, **other: Any) -> dict[str, Any]:
    asked = tool.Question("plain", "pe.GaussianMechanism(1.0)", "add", "delta", 1.0)
    return {**asked._asdict(), "lower": lower, "upper": upper, "seconds": seconds, **other}


def refusal() -> dict[str, Any]:
    return {key: x for key, x in row(0.0, 1.0).items() if key not in ("lower", "upper")} | {
        "refused": "why"
    }


def test_each_sort_of_difference_is_found() -> None:
    narrow, wide = row(0.1, 0.1 + 1e-11), row(0.1, 0.1 + 1e-9)
    before = [narrow, narrow, refusal(), narrow, wide, row(0.1, 0.1), row(0.3, 0.4)]
    after = [wide, refusal(), narrow, row(0.1, 0.1, 0.5), narrow, row(0.2, 0.2), row(0.3, math.inf)]
    found = tool.compared(before, after)
    assert found.wider == [0, 6]
    assert found.refused == [1]
    assert found.answered == [2]
    assert found.slower == [3]
    assert found.disjoint == [5]
    with pytest.raises(ValueError, match="row 1"):
        tool.compared([narrow], [narrow | {"at": 2.0}])


def test_answers_are_proven_bounds_or_reasons() -> None:
    asked = tool.Question("plain", "pe.GaussianMechanism(1.0)", "add", "delta", 1.0)
    found = tool.answer(asked)
    assert found["lower"] <= 0.12693673750664397 <= found["upper"]
    assert tool.width(found) < 1e-13
    blocks = "pe.GaussianMechanism(1.0).randomly_allocated(12, selected=2)"
    assert tool.width(tool.answer(asked._replace(mechanism=blocks))) > 1e-3


def test_page_has_percentiles_of_all_families() -> None:
    rows = [
        row(0.1, 0.1) | {"family": name, "least": 0.001 * k}
        for name in tool.FAMILIES
        for k in (1, 2, 9)
    ]
    rows += [
        x | {"family": "mixed", "seconds": 0.3, "least": 7.0} for x in (refusal(), row(0.1, 0.2))
    ]
    made = list(tool.page(rows))
    assert made[2].endswith("| 3 | 0 | 0e+00 | 2 ms | 7.6 ms | 8.9 ms |")
    assert made[-2].split(" | ")[1:4] == ["2", "1", "5e-01"]
    assert made[-2].endswith("0.3 s |")
    kept = tool.SPEED.read_text(encoding="utf-8").splitlines()
    assert [line.split(" | ")[0] for line in kept] == [line.split(" | ")[0] for line in made]
    for line, name in zip(kept[2:], tool.FAMILY_WORDS, strict=True):
        asked, refused = map(int, line.split(" | ")[1:3])
        assert asked >= 30, name
        assert refused <= asked // 20, name
