"""Ground truth in arbitrary precision, independent of the fast engines.

It shares with the rest of the package the definitions of the mechanisms and nothing else, and needs
the extra ``reference`` (python-flint and mpmath).
"""

from pyengine._support.extras import needed

with needed("pyengine.reference", "reference"):
    from pyengine.reference import membership, relaxed, special
    from pyengine.reference.questions import delta, epsilon, gamma_bound, trade_off
    from pyengine.reference.value import Value

__all__ = [
    "Value",
    "delta",
    "epsilon",
    "gamma_bound",
    "membership",
    "relaxed",
    "special",
    "trade_off",
]
