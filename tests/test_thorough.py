"""Samples of cases: the same in each run, as many as asked for, all in a thorough run."""

from __future__ import annotations

from typing import Any, NamedTuple

import pytest
import thorough


class Item(NamedTuple):
    """What is collected."""

    nodeid: str
    every: int | None

    def get_closest_marker(self, name: str) -> Any:
        assert name == "sampled"
        return thorough.sampled(self.every).mark if self.every else None


class Config:
    """Where left out cases are reported."""

    def __init__(self) -> None:
        self.hook, self.left_out = self, []

    def pytest_deselected(self, items: list[Item]) -> None:
        self.left_out += items


def chosen(items: list[Item]) -> list[Item]:
    config, left = Config(), list(items)
    thorough.pytest_collection_modifyitems(config, left)
    assert sorted(left + config.left_out) == sorted(items)
    return left


CASES = [Item(f"test_a.py::test_long[{i}]", 3) for i in range(31)]
OTHERS = [Item(f"test_a.py::test_quick[{i}]", None) for i in range(5)]


@pytest.fixture(autouse=True)
def _ordinary(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thorough, "ALL", False)
    monkeypatch.delenv("PYENGINE_EXAMPLES", raising=False)


def test_a_random_part_stays_and_the_order_with_it() -> None:
    left = chosen(OTHERS + CASES)
    assert left[:5] == OTHERS
    part = left[5:]
    assert len(part) == 11
    assert part == sorted(part, key=CASES.index) != CASES[::3]
    assert chosen(CASES[::-1]) == part[::-1]


def test_a_case_that_is_asked_for_alone_is_run() -> None:
    assert all(chosen([case]) == [case] for case in CASES)


def test_fresh_examples_are_others(monkeypatch: pytest.MonkeyPatch) -> None:
    part = chosen(CASES)
    monkeypatch.setenv("PYENGINE_EXAMPLES", "fresh")
    assert chosen(CASES) != part
    assert len(chosen(CASES)) == 11


def test_a_thorough_run_has_all(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(thorough, "ALL", True)
    assert chosen(CASES) == CASES


@pytest.mark.parametrize(
    ("kept", "digits", "is_same"),
    [
        ("0.123456", None, True),
        ("0.1234561", None, False),
        ("0.1234561", 6, True),
        ("0.123457", 6, True),
        ("0.123459", 6, False),
        ("0.123459", 5, True),
    ],
)
def test_truths_are_computed_anew(
    kept: str, digits: int | None, is_same: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where all is asked; they are then the kept ones, as far as these are known."""
    monkeypatch.setattr(thorough, "_entries", lambda: {"known": {"value": kept}})

    def ask(key: str) -> str:
        return thorough.stored(key, lambda: "0.123456", digits)

    assert ask("known") == kept
    with pytest.raises(AssertionError, match="no stored truth of 'unknown'"):
        ask("unknown")
    monkeypatch.setattr(thorough, "ALL", True)
    assert ask("unknown") == "0.123456"
    if is_same:
        assert ask("known") == "0.123456"
    else:
        with pytest.raises(AssertionError, match="known"):
            ask("known")
