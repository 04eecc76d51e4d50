"""What thresholds beside atoms are shifted by covers the errors of the atoms' places.

A threshold is above or below an atom by the line's own place of it.  Where that is off, the masses
are those of another threshold, no further away than the shift, by which slopes are moved.
"""

from __future__ import annotations

from collections.abc import Iterator
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest

from pyengine.engines.vertical_lines.deformation import DeformedOrder
from pyengine.engines.vertical_lines.laplace_shapes import LaplaceShape

CONTEXT = Context(prec=60)
Steps = tuple[tuple[LaplaceShape, int], ...]
SEEDS = range(60)


def _random(seed: int) -> Steps:
    """One or two kinds of a few steps each."""
    rng = np.random.default_rng([20261124, seed])
    kinds = []
    for _ in range(int(rng.integers(1, 3))):
        noise = Fraction(float(np.exp(rng.uniform(np.log(0.2), np.log(5.0)))))
        rate = Fraction(float(np.exp(rng.uniform(np.log(1e-6), 0.0))))
        kinds.append((LaplaceShape(1 / noise, rate), int(rng.integers(1, 9))))
    return tuple(kinds)


def _lines(steps: Steps) -> Iterator[tuple[DeformedOrder, Any]]:
    """The lines of a composition."""
    order = DeformedOrder(steps, exchanged=False)
    for index in range(order.choice.line.size):
        line = order.line_at(index)
        if line is not None:
            yield order, line


def _exact(steps: Steps, row: np.ndarray) -> Decimal:
    """A sum of least and largest losses, to some 55 digits."""
    total = Decimal(0)
    for (shape, number), top in zip(steps, row, strict=True):
        low, high = shape.ends
        part = CONTEXT.add(
            CONTEXT.multiply(low, Decimal(number - int(top))),
            CONTEXT.multiply(high, Decimal(int(top))),
        )
        total = CONTEXT.add(total, part)
    return total


def _decimal(x: Any) -> Decimal:
    """A sum of two doubles, exactly."""
    return CONTEXT.add(*map(Decimal, x.tolist()))


@pytest.mark.parametrize("seed", SEEDS)
def test_a_shift_covers_what_places_may_be_off_by(seed: int) -> None:
    steps, asked = _random(seed), 0
    for order, line in _lines(steps):
        places = line._places
        off = [
            float(abs(CONTEXT.subtract(_decimal(place), _exact(steps, top))))
            for place, top in zip(places.place.T, places.row.T, strict=True)
        ]
        shift = order.shift(places.place[0])
        assert max(off) <= line._off_place  # which the line counts in the weights of atoms
        assert (line._off_place <= shift).all()
        asked += 1
    assert asked > 0


def test_places_are_off() -> None:
    """So that the bounds above are for something."""
    for seed in SEEDS:
        steps = _random(seed)
        for _, line in _lines(steps):
            pairs = zip(line._places.place.T, line._places.row.T, strict=True)
            if any(_decimal(place) != _exact(steps, top) for place, top in pairs):
                return
    pytest.fail("no place is off")
