"""Conformance: accountants beside the truth, on settings whose answers are known to 16 digits."""

from pyengine.conformance.grid import Case, Setting, load
from pyengine.conformance.run import Result, run

__all__ = ["Case", "Result", "Setting", "load", "run"]
