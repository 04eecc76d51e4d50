"""Which of the things that describe a mechanism an object is."""

from __future__ import annotations

from typing import Any

import numpy as np

from pyengine.answers import Questions
from pyengine.interop.distributions import from_privacy_loss_distribution
from pyengine.interop.dp_events import from_dp_event
from pyengine.interop.histories import from_history
from pyengine.interop.profiles import Profile
from pyengine.interop.prvs import from_prv
from pyengine.interop.sampled import SampledTradeOff
from pyengine.mechanisms import Mechanism

__all__ = ["recognise"]


def recognise(thing: Any, adjacency: str) -> Mechanism | Questions:
    """Mechanism that an object is, or what answers for it.

    Parameters
    ----------
    thing : object
        Event or privacy loss distribution of dp_accounting; accountant of Opacus, riskcal or
        gdpnum, or its history; privacy random variable of prv_accountant; callable privacy
        profile; array of shape (n, 2) of samples of a trade-off function.
    adjacency : {"add", "remove", "add_remove"}
        Of the question.

    Returns
    -------
    Mechanism or Questions
        The latter for profiles, distributions and samples.

    Raises
    ------
    ValueError
        For anything else.
    """
    base = _base(thing)
    if base == ("dp_accounting", "DpEvent"):
        return from_dp_event(thing)
    if base == ("dp_accounting", "PrivacyLossDistribution"):
        return from_privacy_loss_distribution(thing)
    if base == ("prv_accountant", "PrivacyRandomVariable"):
        return from_prv(thing)
    if base[1] in ("IAccountant", "CTDAccountant"):
        return from_history(thing.history)
    if isinstance(thing, list | tuple | np.ndarray) and len(thing):
        return _sequence(thing, adjacency)
    if callable(thing) and not isinstance(thing, type):
        return Profile(thing)
    raise ValueError(
        "mechanism must be a Mechanism or describe one (see pyengine.interop), got "
        f"{thing if isinstance(thing, type) else repr(thing)}"
    )


def _base(thing: Any) -> tuple[str, str]:
    """Library and class that tell what an object is; no library is imported for it."""
    known = {
        "dp_accounting": ("DpEvent", "PrivacyLossDistribution"),
        "gdpnum": ("CTDAccountant",),
        "opacus": ("IAccountant",),
        "prv_accountant": ("PrivacyRandomVariable",),
        "riskcal": ("CTDAccountant",),
    }
    for cls in type(thing).__mro__:
        library = cls.__module__.partition(".")[0]
        if cls.__name__ in known.get(library, ()):
            return library, cls.__name__
    return "", ""


def _sequence(thing: Any, adjacency: str) -> Mechanism | Questions:
    """A history has rows of three numbers, samples have rows of two."""
    widths = {np.size(row) for row in thing}
    if widths == {3} and not isinstance(thing, np.ndarray):
        return from_history(thing)
    if widths == {2}:
        return SampledTradeOff(thing, adjacency)
    raise ValueError(
        "mechanism must have rows (α, β) of a trade-off function or rows (noise_multiplier, "
        f"sample_rate, num_steps) of a history, got {type(thing).__name__} with rows of "
        f"{', '.join(map(str, sorted(widths)))} numbers"
    )
