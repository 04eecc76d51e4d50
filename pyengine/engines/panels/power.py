"""The law of N equal steps from that of one, by products of halves."""

from __future__ import annotations

from pyengine.engines.panels.law import PanelLaw, merged, trimmed
from pyengine.engines.panels.product import convolved, lost_degrees
from pyengine.numerics.rounding import UNIT

__all__ = ["power"]

LEAST = 4.0 * UNIT  # what rounding loses anyway


# Map: laws of equal steps on panels | test_panels | theory/panels
def power(step: PanelLaw, number: int, size: int, budget: float = 4e-13) -> PanelLaw:
    """Return the law of the sum of ``number`` independent numbers of one law.

    Parameters
    ----------
    step : PanelLaw
        The law of one of them.
    number : int
        At least 1.
    size : int
        Coefficients that a panel may have.
    budget : float
        What one trimming or merging may lose of the last law; else as little as it can.
    """
    generations = [{number}]
    while generations[-1] != {1}:
        generations.append(
            {n // 2 or 1 for n in generations[-1]} | {n - n // 2 for n in generations[-1]}
        )
    # degrees that hold rounding only would make each panel one of those with many
    laws = {1: trimmed(step, 0.25 * max(budget / number, LEAST))}
    for wanted in reversed(generations[:-1]):
        # the errors of the last law are those of each factor
        tolerance = max(budget * max(wanted) / number, LEAST)
        laws = {n: _sum(laws, n, size, 0.25 * tolerance) for n in sorted(wanted)}
        laws = _coarsened(laws, size, tolerance)
    return laws[number]


def _sum(laws: dict[int, PanelLaw], number: int, size: int, tolerance: float) -> PanelLaw:
    """The law of a number of steps from those of its halves."""
    if number in laws:
        return laws[number]
    return trimmed(convolved(laws[number // 2], laws[number - number // 2], size), tolerance)


def _coarsened(laws: dict[int, PanelLaw], size: int, tolerance: float) -> dict[int, PanelLaw]:
    """The same laws on the longest panels that lose next to nothing."""
    while True:
        longer = {n: merged(law, size) for n, law in laws.items()}
        found = {n: law for n, law in longer.items() if law is not None}
        if len(found) < len(laws):
            return laws
        found = {n: trimmed(law, 0.25 * tolerance) for n, law in found.items()}
        if any(
            law.error > laws[n].error + tolerance
            or lost_degrees(law.series, law.series, size) > tolerance
            for n, law in found.items()
        ):
            return laws
        laws = found
