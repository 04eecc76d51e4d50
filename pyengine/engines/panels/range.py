"""Which compositions laws on panels serve, decided before any work."""

from __future__ import annotations

import math

from pyengine.caches import kept
from pyengine.engines.panels.shape import StepShape, shape_of
from pyengine.engines.panels.sums import LaplaceOrder, LaplaceSteps
from pyengine.laws.base import StepLaw

__all__ = ["is_served", "order_of"]

LEAST = 3  # steps, of which fewer have exact sums
LEAST_PLAIN = 30  # steps on all data, of which fewer have exact sums that are as quick
MOST = 10**6  # steps
# distance of a density from its singularity, in lengths of the support: the nearer, the shorter the
# panels there; from the first on for all numbers of steps, else for so many
FAR, NEAR, MOST_NEAR = 5e-3, 1e-3, 1000


def is_served(laws: list[tuple[StepLaw, int]]) -> bool:
    """Return whether a composition is equal Laplace steps of a range that panels serve."""
    if len(laws) != 1:
        return False
    law, number = laws[0]
    found = shape_of(law)
    if found is None:
        return False
    shape = found[0]
    if shape.gap == math.inf:
        return LEAST_PLAIN <= number <= MOST
    most = MOST if shape.gap >= FAR else MOST_NEAR if shape.gap >= NEAR else 0
    return LEAST <= number <= most


def order_of(laws: list[tuple[StepLaw, int]]) -> LaplaceOrder:
    """Return one order of a composition that `is_served`."""
    ((law, number),) = laws
    found = shape_of(law)
    assert found is not None
    shape, exchanged = found
    return LaplaceOrder(_steps(shape, number), exchanged)


@kept(64)
def _steps(shape: StepShape, number: int) -> LaplaceSteps:
    return LaplaceSteps(shape, number)
