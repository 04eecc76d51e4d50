"""Proven bounds, also where a faster engine only estimates its error."""

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

LOOSE = (1e-2, 0.1)  # relative widths of bounds where those of the default are out of reach
Found = TypeVar("Found")


def proven_bounds(
    name: str,
    mechanism: Mechanism,
    argument: npt.ArrayLike,
    *,
    adjacency: str = "add_remove",
    tolerance: float | None = None,
) -> Bounds:
    """Bounds of a question that are proven, floating point included.

    Without a tolerance they are those of ``bounds=True``, and up to 0.1 wide where that cannot be
    proven; else an AccuracyError has the estimate, where there is one.
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
    """Noise whose mechanism is (ε, δ)-differentially private by a proven bound, δ > 0.

    As of `pyengine.calibrate` with ``bounds=True``, whose bounds are as wide as in `proven_bounds`
    where narrower ones cannot be proven.  ``make`` goes from noise to a mechanism, the more noise
    the more private.
    """
    target = EpsilonDelta(epsilon, delta, adjacency=adjacency, bounds=True)

    def found(width: float | None) -> float:
        return float(calibrate(make, replace(target, tolerance=width)))

    return _first(found, (None, *LOOSE))


def _first(ask: Callable[[float | None], Found], widths: tuple[float | None, ...]) -> Found:
    """What the first width gives that is not refused, else the refusal of the first one."""
    refused: list[AccuracyError] = []
    for width in widths:
        try:
            return ask(width)
        except AccuracyError as error:
            refused.append(error)
    raise refused[0]
