"""Answers of ``method="lattice"`` that a smaller engine once lost, each against another method.

One transform for all steps, with one tilt, had no proof of the first two, and refused the others or
took twenty times as long to refuse them.
"""

from __future__ import annotations

import pytest

import pyengine as pe

Question = tuple[pe.Mechanism, str, float, str]

RARE = pe.dp_sgd(2.735684109967758, 1.0656845208512873e-5, 1172)
KEPT: dict[str, Question] = {
    "one large step beside many small ones, 200 nats below the peak": (
        RARE,
        "delta",
        0.014493210264481525,
        "remove",
    ),
    "the same, inverted": (RARE, "epsilon", 3e-89, "remove"),
    "a group": (pe.dp_sgd(2.5, 0.01, 200, group_size=3), "delta", 0.7, "add"),
    "a group, inverted": (pe.dp_sgd(1.2, 0.003, 900, group_size=3), "epsilon", 1e-5, "add"),
    "a pair of group and single record": (
        pe.compose(pe.dp_sgd(2.0, 0.01, 50, group_size=2), pe.dp_sgd(2.0, 0.01, 50)),
        "gamma_bound",
        0.01,
        "add_remove",
    ),
}


@pytest.mark.parametrize("name", KEPT)
def test_kept(name: str) -> None:
    mechanism, question, argument, adjacency = KEPT[name]
    ask = getattr(pe, question)
    found = ask(mechanism, argument, adjacency=adjacency, method="lattice", bounds=True)
    truth = ask(mechanism, argument, adjacency=adjacency, bounds="estimated")
    assert found.lower <= truth.upper * (1.0 + 1e-13)
    assert truth.lower * (1.0 - 1e-13) <= found.upper
    assert 0.0 < found.upper - found.lower <= 1e-4 * found.upper
