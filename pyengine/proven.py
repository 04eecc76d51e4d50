"""Bounds that are proven, whichever engine is the fastest one."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine import _checks
from pyengine.api import QUESTIONS, Bounds, Question
from pyengine.calibration import calibrate
from pyengine.engines.registry import questions
from pyengine.errors import AccuracyError
from pyengine.mechanisms import Mechanism
from pyengine.targets import EpsilonDelta

__all__ = ["proven_bounds", "proven_noise"]

FloatArray = npt.NDArray[np.float64]
LOOSE = (1e-2, 0.1)  # relative widths of bounds where those of the default are out of reach
SLACK = 1e-11  # by which noise is enlarged first where a target is not proven yet


def proven_bounds(
    name: str,
    mechanism: Mechanism,
    argument: npt.ArrayLike,
    *,
    adjacency: str = "add_remove",
    tolerance: float | None = None,
) -> Bounds:
    """Values between bounds that are proven, floating point included.

    Parameters
    ----------
    name : {"trade_off", "gamma_bound", "delta", "epsilon"}
        The question.
    mechanism : Mechanism
        What is released.
    argument : array_like
        The second argument of that question.
    adjacency : {"add", "remove", "add_remove", "substitute"}
        As in `pyengine.trade_off`.
    tolerance : float, optional
        Largest relative width of the bounds where ``auto`` does not prove its own.  If not given,
        the default of ``method="certified"``, and up to 0.1 where that cannot be proven.

    Returns
    -------
    Bounds
        Floats for a float, else arrays of the shape of the argument.  The engine that ``auto``
        takes gives the bounds where it proves them, else ``method="certified"`` does; the value is
        that of ``auto`` between them.

    Raises
    ------
    ValueError
        For an argument outside its domain, or an adjacency that the mechanism does not define.
    AccuracyError
        Where no engine can prove a bound; the message has the estimate where there is one.
    """
    question = QUESTIONS[name]
    array = _checks.real_array(question.argument, argument, 0.0, question.upper) + 0.0
    flat = array.ravel()
    wanted = {"trade_off": "beta", "gamma_bound": "gamma"}.get(name)

    def ask(method: str, width: float | None = None) -> Any:
        asked = questions(
            mechanism,
            adjacency=adjacency,
            method=method,
            threat_model="dp",
            tolerance=width,
            wanted=wanted,
        )
        return asked.answer(name, flat)

    try:
        quick = ask("auto")
    except AccuracyError:  # those that prove may know
        quick = None
    if quick is not None and bool(quick.certified.all()):
        return _shaped(name, question, array, quick.lower, quick.value, quick.upper)
    try:
        sure = _first(lambda width: ask("certified", width), tolerance)
    except AccuracyError as error:
        if quick is None:
            raise
        numbers = ", ".join(f"{value:.10g}" for value in quick.value[:3])
        raise AccuracyError(f"{error} (an estimate without proof: {numbers})") from error
    value = sure.value if quick is None else np.clip(quick.value, sure.lower, sure.upper)
    return _shaped(name, question, array, sure.lower, value, sure.upper)


def _first(ask: Callable[[float | None], Any], tolerance: float | None) -> Any:
    """Bounds of the width that was asked for; where none was, the first that can be proven."""
    refused: list[AccuracyError] = []
    for width in (None, *LOOSE) if tolerance is None else (tolerance,):
        try:
            return ask(width)
        except AccuracyError as error:
            refused.append(error)
    raise refused[0]


def _shaped(
    name: str,
    question: Question,
    array: FloatArray,
    lower: FloatArray,
    value: FloatArray,
    upper: FloatArray,
) -> Bounds:
    low: Any = array.ravel() if name == "gamma_bound" else 0.0
    parts = (np.clip(lower, low, question.ceiling), value, np.clip(upper, low, question.ceiling))
    if not array.shape:
        return Bounds(*(float(part[0]) for part in parts))
    return Bounds(*(part.reshape(array.shape) for part in parts))


def proven_noise(
    make: Callable[[float], Mechanism],
    epsilon: float,
    delta: float,
    *,
    adjacency: str = "add_remove",
) -> float:
    """Noise whose mechanism is (ε, δ)-differentially private by a proven bound.

    Parameters
    ----------
    make : callable
        From noise, a positive float, to a mechanism; the more noise, the more private.
    epsilon, delta : float
        The target, δ > 0.
    adjacency : {"add", "remove", "add_remove", "substitute"}
        As in `pyengine.delta`.

    Returns
    -------
    float
        The smallest noise by the fastest engine, enlarged by as little as it takes to prove the
        target, if at all: by 1e-11 of it at first, and three times as much each time.

    Raises
    ------
    ValueError
        For a target that no noise meets.
    AccuracyError
        Where nothing can be proven.
    """
    noise = float(calibrate(make, EpsilonDelta(epsilon, delta, adjacency=adjacency)))
    larger = 0.0
    while proven_bounds("delta", make(noise), epsilon, adjacency=adjacency).upper > delta:
        larger = 3.0 * larger if larger else SLACK
        if larger > 1.0:
            raise AccuracyError(
                f"no proof of ({epsilon:g}, {delta:g}) with up to twice the noise that it takes: "
                f"{noise:g}"
            )
        noise *= 1.0 + larger
    return noise
