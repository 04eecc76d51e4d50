"""Recognises objects that describe a mechanism: of other libraries, profiles, samples."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from pyengine._support import checks
from pyengine.api.distributions import from_privacy_loss_distribution
from pyengine.api.dp_events import from_dp_event
from pyengine.api.histories import from_history
from pyengine.api.profiles import Profile
from pyengine.api.prvs import from_prv, from_prvs
from pyengine.api.relations import ADJACENCY, mechanism_under
from pyengine.api.sampled import SampledTradeOff
from pyengine.engines.answers import Answering, Questions
from pyengine.mechanisms import Mechanism, as_mechanism

__all__ = ["mechanism_of", "recognise"]


def recognise(thing: Any, adjacency: str) -> Mechanism | Questions:
    """Mechanism that an object is, or what answers for it: a profile, a distribution or samples.

    Known are events, accountants and privacy loss distributions of dp_accounting; privacy engines
    of Opacus; accountants of Opacus, riskcal or gdpnum, or their histories; privacy random
    variables and accountants of prv_accountant; accountants of `pyengine.interop`; callable privacy
    profiles; arrays of shape (n, 2) of samples of a trade-off function.  A ValueError tells of
    anything else, and of an accountant of another neighbouring relation.
    """
    known = _described(thing, adjacency)
    if known is not None:
        return known
    if _base(thing) == ("dp_accounting", "PrivacyLossDistribution"):
        return from_privacy_loss_distribution(thing)
    if _is_sequence(thing):
        return _sequence(thing, adjacency)
    if callable(thing) and not isinstance(thing, type):
        return Profile(thing)
    raise _unknown(thing)


def mechanism_of(thing: Any) -> Mechanism:
    """Mechanism that an object is, to be composed with others; profiles have no steps."""
    found = _described(thing, None)
    if found is None and _is_sequence(thing):
        found = as_mechanism(_sequence(thing, "add_remove"))
    if found is None:
        raise _unknown(thing)
    return found


def _is_sequence(thing: Any) -> bool:
    """Whether an object is a list or an array that is not empty."""
    if isinstance(thing, np.ndarray):
        return thing.ndim > 0 and thing.size > 0
    return isinstance(thing, list | tuple) and len(thing) > 0


def _unknown(thing: Any) -> ValueError:
    if isinstance(thing, Answering):
        return ValueError(
            "mechanism must have fixed steps here, got a run that adapts: questions and "
            "pyengine.statement.privacy_statement take it alone"
        )
    hint = "; the mechanism is the first argument" if isinstance(thing, int | float) else ""
    if isinstance(thing, str):
        hint = "; pyengine.load_run reads run files, pyengine.from_json what to_json wrote"
    elif hasattr(thing, "to_dict") and hasattr(thing, "columns"):  # a table of pandas
        hint = "; a history is its rows, .to_dict('records')"
    return ValueError(
        "mechanism must be a Mechanism or describe one (see pyengine.interop), got "
        f"{thing if isinstance(thing, type) else checks.shown(thing)}{hint}"
    )


def _described(thing: Any, adjacency: str | None) -> Mechanism | None:
    """Mechanism of an object that has steps; None for any other object."""
    if isinstance(thing, Mapping) and "history" in thing:  # such as an accountant's state_dict
        return from_history(thing)
    library, name = _base(thing)
    if library == "pyengine":
        own: Mechanism = thing.composition()
        return own
    if name == "DpEvent":
        return from_dp_event(thing)
    if name == "PrivacyAccountant":
        return _ledger(thing, adjacency)
    if name == "PrivacyRandomVariable":
        return from_prv(thing)
    if (library, name) == ("prv_accountant", "PRVAccountant"):
        return from_prvs(list(thing.prvs), list(thing.max_self_compositions))
    if name == "PrivacyEngine":
        return _described(thing.accountant, adjacency)
    if name in ("IAccountant", "CTDAccountant"):
        return from_history(thing.history)
    return None


def _ledger(accountant: Any, adjacency: str | None) -> Mechanism:
    """What an accountant of dp_accounting has seen, if it is asked about the same neighbours."""
    relation = accountant.neighboring_relation.name
    meant = ADJACENCY[relation]
    if (adjacency == "substitute") != (meant == "substitute"):
        raise ValueError(
            f"adjacency must be {meant!r} for an accountant of {relation}, got {adjacency!r}"
            if adjacency is not None
            else f"an accountant of {relation} cannot be composed as it is: compose its ledger, "
            f"and ask with adjacency={meant!r}"
        )
    return mechanism_under(accountant.ledger, relation)


def _base(thing: Any) -> tuple[str, str]:
    """Library and class that tell what an object is; no library is imported for it."""
    known = {
        "dp_accounting": ("DpEvent", "PrivacyAccountant", "PrivacyLossDistribution"),
        "gdpnum": ("CTDAccountant",),
        "opacus": ("IAccountant", "PrivacyEngine"),
        "prv_accountant": ("PrivacyRandomVariable", "PRVAccountant"),
        "riskcal": ("CTDAccountant",),
    }
    # the classes of this package that stand for others' need the questions, which ask here
    known["pyengine"] = (
        "HistoryAccountant",
        "PRVAccountant",
        "PyengineJointPrivacyAccountant",
        "PyenginePrivacyAccountant",
    )
    for cls in type(thing).__mro__:
        library = cls.__module__.partition(".")[0]
        if cls.__name__ in known.get(library, ()):
            return library, cls.__name__
    return "", ""


def _sequence(thing: Any, adjacency: str) -> Mechanism | Questions:
    """A history has rows of three numbers, samples have rows of two."""
    if all(isinstance(row, Mapping) for row in thing):
        return from_history(thing)
    if any(as_mechanism(row) is not None for row in thing):
        raise ValueError(
            "mechanism must be one mechanism here, got a list of them; pyengine.compose takes each "
            "as an argument of its own: compose(*mechanisms)"
        )
    widths = {len(row) if isinstance(row, list | tuple) else np.size(row) for row in thing}
    if widths == {3}:
        return from_history(thing)
    if widths == {2}:
        return SampledTradeOff(thing, adjacency)
    raise ValueError(
        "mechanism must have rows (α, β) of a trade-off function or rows (noise_multiplier, "
        f"sample_rate, num_steps) of a history, got {type(thing).__name__} with rows of "
        f"{', '.join(map(str, sorted(widths)))} numbers"
    )
