"""Objects of other libraries, and other descriptions of a mechanism, in both directions.

The questions of `pyengine` accept all of these as they are: events, accountants and privacy loss
distributions of dp_accounting; privacy engines, accountants and histories of Opacus, and riskcal's
CTDAccountant; privacy random variables and accountants of prv_accountant; callable privacy
profiles; sampled trade-off functions.  No other library is imported before one of its objects is
made here.

Accountants that other libraries take in the place of their own are `HistoryAccountant`, for
riskcal, and those of the modules ``opacus``, ``dp_accounting``, ``prv_accountant`` and ``pfl``,
which are imported by themselves.
"""

from pyengine.accounting.interop.flower import from_flower
from pyengine.accounting.interop.history_accountant import HistoryAccountant
from pyengine.accounting.interop.riskcal import (
    find_noise_multiplier_for_advantage,
    find_noise_multiplier_for_err_rates,
    get_advantage_for_dpsgd,
    get_beta_for_dpsgd,
)
from pyengine.api.distributions import to_privacy_loss_distribution
from pyengine.api.dp_events import from_dp_event, to_dp_event
from pyengine.api.histories import from_history, to_history
from pyengine.api.profiles import Profile
from pyengine.api.prvs import from_prvs, to_prvs
from pyengine.api.recognise import recognise
from pyengine.api.sampled import SampledTradeOff

__all__ = [
    "HistoryAccountant",
    "Profile",
    "SampledTradeOff",
    "find_noise_multiplier_for_advantage",
    "find_noise_multiplier_for_err_rates",
    "from_dp_event",
    "from_flower",
    "from_history",
    "from_prvs",
    "get_advantage_for_dpsgd",
    "get_beta_for_dpsgd",
    "recognise",
    "to_dp_event",
    "to_history",
    "to_privacy_loss_distribution",
    "to_prvs",
]
