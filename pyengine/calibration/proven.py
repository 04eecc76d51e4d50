"""Proven bounds, even if the fastest engine only estimates its error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from pyengine import api
from pyengine.api import Bounds
from pyengine.calibration import calibrate
from pyengine.calibration.targets import EpsilonDelta
from pyengine.errors import AccuracyError
from pyengine.mechanisms import Mechanism

__all__ = ["proven_bounds", "proven_noise"]

LOOSE = (1e-2, 0.1)  # relative widths of bounds tried if those of the default are out of reach
Found = TypeVar("Found")


def proven_bounds(
    name: str,
    mechanism: Mechanism,
    argument: npt.ArrayLike,
    *,
    adjacency: str = "add_remove",
    tolerance: float | None = None,
) -> Bounds:
    """Proven bounds of a question, rounding included.

    Without a tolerance they are those of ``bounds=True`` or, if these cannot be proven, have
    a relative width of up to 0.1.  If none can be proven, the AccuracyError contains the estimate.
    """
    widths = (None, *LOOSE) if tolerance is None else (tolerance,)
    words: dict[str, Any] = {"adjacency": adjacency, "bounds": True}
    ask = getattr(api, name)

    def between(width: float | None) -> Bounds:
        found: Bounds = ask(mechanism, argument, tolerance=width, **words)
        return found

    try:
        return _first(between, widths)
    except AccuracyError as error:
        try:
            values = np.ravel(ask(mechanism, argument, adjacency=adjacency))
        except AccuracyError:
            raise error from None
        numbers = ", ".join(f"{value:.10g}" for value in values[:3])
        raise AccuracyError(f"{error} (an estimate without proof: {numbers})") from error


def proven_noise(
    make: Callable[[float], Mechanism],
    epsilon: float,
    delta: float,
    *,
    adjacency: str = "add_remove",
) -> float:
    """Noise for which a mechanism is (ε, δ)-differentially private by a proven bound, δ > 0.

    As by `pyengine.calibrate` with ``bounds=True``, but with wider bounds, as in `proven_bounds`,
    if narrower ones cannot be proven.  ``make`` makes the mechanism from the noise.
    """
    target = EpsilonDelta(epsilon, delta, adjacency=adjacency, bounds=True)

    def found(width: float | None) -> float:
        return float(calibrate(make, replace(target, tolerance=width)))

    return _first(found, (None, *LOOSE))


def _first(ask: Callable[[float | None], Found], widths: tuple[float | None, ...]) -> Found:
    """The result for the first width that is not refused; otherwise the first refusal is raised."""
    refused: list[AccuracyError] = []
    for width in widths:
        try:
            return ask(width)
        except AccuracyError as error:
            refused.append(error)
    raise refused[0]
