"""Rows of many rarely sampled steps whose losses are all small: guards of lines once refused them.

Truths have 20 digits of ``pyengine.reference``, which inverts on contours of its own.
"""

from __future__ import annotations

from decimal import Decimal

import pytest

import pyengine as pe
from pyengine.api import answers

CASES = [
    # powers of the likelihood ratio below all numbers, at nodes that stand for a Gaussian
    ("delta", (0.7144309392182866, 9.101097295635858e-07, 1923), 0.0005371239007449714, "add",
     "1.5220519186577487037e-19"),
    ("epsilon", (0.4189043149707068, 3.250005222551326e-06, 1251), 8.3e-21, "add",
     "0.0029536510860744067807"),
    ("delta", (0.3299313371077289, 3.963395862702898e-05, 1698), 0.0583, "add",
     "2.7547991434833330815e-20"),
    ("gamma_bound", (0.3567262434065544, 6.995358252539673e-07, 8918), 1.85e-26, "remove",
     "1.8579340725197649536e-26"),
    # such nodes have losses that are large, and t is long
    ("delta", (0.21515706506686408, 3.5331440728668553e-07, 46284), 0.0155, "add",
     "2.3247077658218371421e-24"),
    ("delta", (0.3765622765629546, 2.951759057904813e-05, 708), 0.015, "add",
     "5.2701668603686610158e-9"),
    # next to no place of the whole law: one that ends serves
    ("gamma_bound", (2.740349599825223, 5.513770137792534e-07, 116219), 3.4712261693612134e-09,
     "add", "3.4726980799656164953e-9"),
    ("delta", (1.830959669782128, 1.0537939643819514e-06, 16339), 0.0004, "remove",
     "4.9769299975827449147e-12"),
    # one large loss decides, and its tilt makes several of them likely
    ("gamma_bound", (0.25931301085733693, 5.71632342690034e-07, 14132), 3.020643041763904e-22,
     "add", "9.15624663313834323298166e-14"),
    # a threshold that the fast engines found, and a row of a sector law there
    ("gamma_bound", (1.629885826949912, 0.00011562619945564178, 240), 5.28766184092756e-17, "add",
     "5.41957073028546493712295990574e-17"),
]  # fmt: skip


@pytest.mark.parametrize(("question", "step", "x", "adjacency", "truth"), CASES)
def test_rows_are_close_and_hold_the_truth(
    question: str, step: tuple[float, float, int], x: float, adjacency: str, truth: str
) -> None:
    bounds, engines, proven = answers(question, pe.dp_sgd(*step), [x], adjacency=adjacency)
    assert proven[0]
    assert engines[0] == "certified"
    lower, upper = Decimal(float(bounds.lower[0])), Decimal(float(bounds.upper[0]))
    assert lower <= Decimal(truth) <= upper
    assert upper - lower < Decimal("5e-10") * upper


@pytest.mark.parametrize(
    ("question", "step", "x", "adjacency"),
    [
        ("gamma_bound", (0.41348781775256976, 1.4638368006648825e-07, 2552110), 8.73e-30, "remove"),
        ("gamma_bound", (0.4996903238848634, 1.4986912170149232e-06, 3686), 9.92e-26, "remove"),
        ("epsilon", (0.5800765418523902, 3.303670577274925e-07, 2896546), 1.54e-18, "add"),
        ("epsilon", (0.3202353789348488, 2.5504869144577185e-07, 1829141), 1.78e-21, "add"),
        ("trade_off", (1.7166590296467463, 8.6797508629387e-06, 254622), 1.29e-19, "add"),
    ],
)
def test_where_the_lattice_answered(
    question: str, step: tuple[float, float, int], x: float, adjacency: str
) -> None:
    bounds, engines, proven = answers(question, pe.dp_sgd(*step), [x], adjacency=adjacency)
    assert proven[0]
    assert engines[0] == "certified"
    assert bounds.upper[0] - bounds.lower[0] < 1e-11 * bounds.upper[0]
