"""Answers of ``method="lattice"`` that a smaller engine once lost, each against another method.

One transform for all steps, with one tilt, had no proof of the first two and refused groups.  What
nobody can answer is refused before many points are composed.
"""

from __future__ import annotations

import pytest
from scipy import stats

import pyengine as pe
from pyengine.caches import clear_cache
from pyengine.engines.lattice import tilt_grid
from pyengine.engines.lattice.coarse_cumulants import Part
from pyengine.engines.lattice.compose import PlaceComposition
from pyengine.engines.lattice.plan import Layout

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


REFUSED: dict[str, tuple[Question, int]] = {
    # 12,582,912 points and 11 s, though 196,608 tell nothing either
    "at the end of the loss": (
        (
            pe.from_distributions(stats.laplace(), stats.laplace(0.07642)).composed(2),
            "delta",
            0.15284,
            "add",
        ),
        2**18,
    ),
    # two terms on 2^20 points each, and twice so many where 2^24 points are 200 times too coarse
    "far beyond all lattices": ((pe.dp_sgd(1.0, 1e-8, 10**9), "epsilon", 1e-300, "remove"), 2**21),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals_compose_little(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    (mechanism, question, argument, adjacency), most = REFUSED[name]
    points = []
    compose = tilt_grid.compose_on

    def counted(parts: tuple[Part, ...], layout: Layout) -> PlaceComposition:
        points.append(sum(plan.points for plan in layout.plans))
        return compose(parts, layout)

    monkeypatch.setattr(tilt_grid, "compose_on", counted)
    clear_cache()
    with pytest.raises(pe.AccuracyError, match="ask for a level further from the ends"):
        getattr(pe, question)(
            mechanism, argument, adjacency=adjacency, method="lattice", bounds="estimated"
        )
    assert 0 < sum(points) <= most
