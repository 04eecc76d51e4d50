"""Conversion from and to objects of other libraries, and accountants for other libraries.

The questions of `pyengine` accept all of these directly: events, accountants and privacy loss
distributions of dp_accounting; privacy engines, accountants and histories of Opacus; riskcal's
CTDAccountant; privacy random variables and accountants of prv_accountant; callable privacy
profiles; sampled trade-off functions.  Another library is imported only when one of its objects is
made here.

Other libraries accept `HistoryAccountant` (riskcal) and the accountants of the modules ``opacus``,
``dp_accounting``, ``prv_accountant`` and ``pfl`` in the place of their own.  Import these modules
explicitly.
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
