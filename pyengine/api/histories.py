"""Histories of Opacus: ``[(noise_multiplier, sample_rate, num_steps), ...]``."""

from __future__ import annotations

import warnings
from collections.abc import Iterable, Mapping
from typing import Any

from pyengine._support import checks
from pyengine.errors import SamplingWarning
from pyengine.mechanisms import (
    Composition,
    Mechanism,
    compose,
    dp_sgd,
    label_of,
    steps_of,
)

__all__ = ["ASSUMED", "assume_poisson", "assumed", "composed_history", "from_history", "to_history"]

ASSUMED = (
    "each batch must be a Poisson sample: each record joins it independently, with the sampling "
    "probability of the step"
)
_said: set[type[Warning]] = set()  # warnings already given in this process


def assumed(mechanism: Mechanism) -> str:
    """Return how batches must have been drawn for answers about a mechanism to hold."""
    return "; ".join(dict.fromkeys(each.batches for each in label_of(mechanism)))


def assume_poisson(who: str, mechanism: Mechanism) -> None:
    """Warn, once in a process, that batches are assumed to be Poisson samples."""
    sampled = any(step.scheme == "poisson" for step, _ in steps_of(mechanism))
    if not sampled or SamplingWarning in _said:
        return
    _said.add(SamplingWarning)
    warnings.warn(
        f"{who} cannot see how batches are drawn; {ASSUMED}. For a loader that shuffles, its "
        "answers are no guarantee: ask about pyengine.dp_sgd(..., sampling='shuffle') (see the "
        "docs, how batches are chosen)",
        SamplingWarning,
        stacklevel=3,
    )


# Names of the three numbers of an entry that is a mapping.
NAMES = (("noise_multiplier",), ("sample_rate", "sampling_probability"), ("num_steps", "steps"))


def from_history(history: Iterable[Any]) -> Composition:
    """Make the mechanism of an Opacus history.

    Parameters
    ----------
    history : iterable of (float, float, int)
        Noise multiplier, sampling probability and number of steps of each phase: the attribute
        ``history`` of an accountant of Opacus, or of riskcal's ``CTDAccountant``.  It may be an
        array of three columns, or a mapping with such a ``history``, like an accountant's
        ``state_dict``; entries may be mappings with ``noise_multiplier``, ``sample_rate`` and
        ``num_steps`` (or ``sampling_probability`` and ``steps``).

    Returns
    -------
    Composition
        Exact.

    Raises
    ------
    ValueError
        For entries outside their domains.

    Warns
    -----
    SamplingWarning
        Once in a process: a history does not say how batches were drawn.

    Notes
    -----
    Opacus records the noise multiplier of each step.  Its accountants assume Poisson samples,
    whatever the data loader does.

    Examples
    --------
    >>> import pyengine as pe
    >>> from pyengine.accounting.interop import from_history
    >>> from_history([(2.0, 0.01, 100), (1.0, 0.01, 900)]) == (
    ...     pe.dp_sgd(2.0, 0.01, 100) + pe.dp_sgd(1.0, 0.01, 900)
    ... )
    True
    """
    found = composed_history(history)
    assume_poisson("a history", found)
    return found


def composed_history(history: Iterable[Any]) -> Composition:
    """As `from_history`, without the warning, for batches that are known to be Poisson samples."""
    if isinstance(history, Mapping):
        if "history" not in history:
            names = ", ".join(map(str, history)) or "nothing"
            raise ValueError(f"history must be a list, or a mapping that holds one, got {names}")
        history = history["history"]
    entries = [_entry(entry) for entry in checks.listed("history", history)]
    return compose(*(dp_sgd(noise, rate, steps) for noise, rate, steps in entries))


def _entry(entry: Any) -> list[Any]:
    """The three numbers of an entry, by position or by name."""
    if isinstance(entry, Mapping):
        found = [entry[name] for names in NAMES for name in names if name in entry]
        if len(found) != 3 or len(entry) != 3:
            names = ", ".join(names[0] for names in NAMES)
            raise ValueError(f"history must hold entries with {names}, got {checks.shown(entry)}")
        return found
    found = checks.listed("history", entry)
    if len(found) != 3:
        raise ValueError(
            f"history must hold noise multiplier, sample rate and steps, got {checks.shown(entry)}"
        )
    return found


def to_history(mechanism: Mechanism) -> list[tuple[float, float, int]]:
    """Return the history that Opacus would have recorded.

    Parameters
    ----------
    mechanism : Mechanism
        Gaussian steps, Poisson-sampled or not, composed.

    Returns
    -------
    list of (float, float, int)
        For the attribute ``history`` of an accountant of Opacus.

    Raises
    ------
    ValueError
        For any other step, by its name.

    Examples
    --------
    >>> import pyengine as pe
    >>> from pyengine.accounting.interop import to_history
    >>> to_history(pe.dp_sgd(1.0, 0.01, 1000))
    [(1.0, 0.01, 1000)]
    """
    history = []
    for step, number in steps_of(mechanism):
        # an error names the sampling, if Opacus has no such sampling, else the mechanism
        named = step.inner if step.scheme == "poisson" else step
        noise = named.noise
        if noise is None or noise.family != "gaussian":
            raise ValueError(f"mechanism must have Gaussian steps, got {type(named).__name__}")
        history.append((float(noise.multiplier), float(step.share), number))
    return history
