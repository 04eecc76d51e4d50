"""Questions about many mechanisms: shapes broadcast; each answer is that of a single question."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine.engines.answers import FloatArray
from pyengine.engines.many import AskedTogether, answered_together
from pyengine.errors import AccuracyError

if TYPE_CHECKING:
    from pyengine.api import Question
    from pyengine.mechanisms.many import Mechanisms

__all__ = ["answers_of_many"]


def answers_of_many(
    name: str,
    question: Question,
    mechanisms: Mechanisms | npt.NDArray[np.object_],
    argument: Any,
    ask: Callable[[Any, float], Any],
    words: tuple[str, str] | None,
    *,
    bounds: bool | str,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Values with lower and upper bounds, of the broadcast shape.

    ``ask`` answers for one mechanism at one float.  ``words`` are adjacency and method if runs of
    equal steps may be answered together; None if each is asked alone.  An error names the index of
    its mechanism.
    """
    given = checks.real_array(question.argument, argument, 0.0, question.upper) + 0.0
    try:
        shape = np.broadcast_shapes(mechanisms.shape, given.shape)
    except ValueError:
        raise ValueError(
            f"mechanisms of shape {mechanisms.shape} and {question.argument} of shape "
            f"{given.shape} must broadcast against each other"
        ) from None
    places = np.arange(mechanisms.size).reshape(mechanisms.shape)
    which, x = np.broadcast_to(places, shape).ravel(), np.broadcast_to(given, shape).ravel()
    if words is None:
        found, answered = np.empty((x.size, 3)), np.zeros(x.size, dtype=np.bool_)
    else:
        asked = AskedTogether(name, mechanisms, which, x)
        found, answered = answered_together(asked, *words)
        low: Any = x[:, None] if name == "gamma_bound" else 0.0
        np.clip(found[:, 1:], low, question.ceiling, out=found[:, 1:])
        answered &= found[:, 1] <= found[:, 2]
    last, mechanism = -1, None
    for i in np.flatnonzero(~answered).tolist():
        if which[i] != last:
            last = int(which[i])
            mechanism = _at(mechanisms, last)
        try:
            one = ask(mechanism, float(x[i]))
        except (AccuracyError, ValueError) as error:
            index = ", ".join(str(j) for j in np.unravel_index(last, mechanisms.shape))
            raise type(error)(f"mechanism [{index}]: {error}") from error
        found[i] = (one.value, one.lower, one.upper) if bounds else one
    value, lower, upper = (np.ascontiguousarray(part).reshape(shape) for part in found.T)
    return value, lower, upper


def _at(mechanisms: Mechanisms | npt.NDArray[np.object_], place: int) -> Any:
    """The mechanism at an index of the flattened array."""
    return mechanisms.flat[place] if isinstance(mechanisms, np.ndarray) else mechanisms.at(place)
