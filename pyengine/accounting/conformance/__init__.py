"""Conformance: tests of accountants on settings whose true answers are known to 16 digits."""

from pyengine.accounting.conformance.grid import Case, Setting, load
from pyengine.accounting.conformance.run import Result, run
from pyengine.accounting.conformance.soundness import assert_sound

__all__ = ["Case", "Result", "Setting", "assert_sound", "load", "run"]
