"""Recognises objects that describe a mechanism: those of other libraries, profiles, samples."""

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
    """The mechanism that an object describes, or answers from a profile, distribution or samples.

    Recognises events, accountants and privacy loss distributions of dp_accounting; privacy engines
    of Opacus; accountants of Opacus, riskcal or gdpnum, or their histories; privacy random
    variables and accountants of prv_accountant; accountants of `pyengine.interop`; callable privacy
    profiles; and arrays of shape (n, 2) of samples of a trade-off function.  Raises ValueError for
    anything else, and for an accountant of another neighbouring relation.
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
    """The mechanism that an object describes, to be composed; profiles have no steps."""
    found = _described(thing, None)
    if found is None and _is_sequence(thing):
        found = as_mechanism(_sequence(thing, "add_remove"))
    if found is None:
        raise _unknown(thing)
    return found


def _is_sequence(thing: Any) -> bool:
    """Whether an object is a non-empty list or array."""
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
    """The mechanism of an object with steps; None for any other object."""
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
    """The ledger of a dp_accounting accountant, if it has the neighbours of the question."""
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
    """Library and base class by which an object is recognised; no library is imported for it."""
    known = {
        "dp_accounting": ("DpEvent", "PrivacyAccountant", "PrivacyLossDistribution"),
        "gdpnum": ("CTDAccountant",),
        "opacus": ("IAccountant", "PrivacyEngine"),
        "prv_accountant": ("PrivacyRandomVariable", "PRVAccountant"),
        "riskcal": ("CTDAccountant",),
    }
    # by name, as the accountants of this package import the questions, which import this module
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
    """Rows of three numbers are a history, rows of two are samples."""
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
