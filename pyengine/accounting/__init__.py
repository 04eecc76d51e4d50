"""Privacy budgets, and runs whose steps are chosen as they go: worst case, filters, odometers."""

from pyengine.accounting.budget import Budget, PlannedRelease
from pyengine.accounting.filters import Filter, Odometer
from pyengine.accounting.hidden_iterates import LastIterate, last_iterate
from pyengine.accounting.ledger import Release
from pyengine.accounting.noise_range import NoiseRange
from pyengine.accounting.records import IndividualLosses, individual
from pyengine.accounting.runs import AdaptiveRun, Strategy, adaptive

__all__ = [
    "AdaptiveRun",
    "Budget",
    "Filter",
    "IndividualLosses",
    "LastIterate",
    "NoiseRange",
    "Odometer",
    "PlannedRelease",
    "Release",
    "Strategy",
    "adaptive",
    "individual",
    "last_iterate",
]
