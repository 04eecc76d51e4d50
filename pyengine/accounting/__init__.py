"""Runs that adapt: steps chosen in view of what was released, filters and odometers."""

from pyengine.accounting.filters import Filter, Odometer
from pyengine.accounting.runs import AdaptiveRun, Strategy, adaptive

__all__ = ["AdaptiveRun", "Filter", "Odometer", "Strategy", "adaptive"]
