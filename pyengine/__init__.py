"""High-precision numerical engine for differential privacy as hypothesis testing."""

from pyengine import special
from pyengine._version import __version__
from pyengine.errors import AccuracyError

__all__ = ["AccuracyError", "__version__", "special"]
