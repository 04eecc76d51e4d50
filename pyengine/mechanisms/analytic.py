"""Mechanisms given by two analytic densities, for which bounds are proven."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Any, ClassVar

from pyengine._support import checks
from pyengine._support.extras import needed
from pyengine.mechanisms.core import Step
from pyengine.mechanisms.expressions import Expression
from pyengine.mechanisms.words import Words

__all__ = ["AnalyticPair", "from_analytic_densities"]


@dataclass(frozen=True, repr=False)
class AnalyticPair(Step):
    """Two analytic densities on an interval; made by `from_analytic_densities`.

    Parameters
    ----------
    log_p, log_q : Expression
        Logarithms of the densities without and with the record.
    support : pair of float
        The interval on which both are positive.
    """

    is_analytic: ClassVar[bool] = True

    log_p: Expression
    log_q: Expression
    support: tuple[float, float] = (-math.inf, math.inf)

    def own_words(self) -> Words:
        """Two laws, and no more."""
        words, hidden = super().own_words(), ("log_p", "log_q", "support")
        return words._replace(name="two analytic densities", neighbours="pair", hidden=hidden)


def from_analytic_densities(
    log_p: Expression, log_q: Expression, *, support: Any = (-math.inf, math.inf)
) -> AnalyticPair:
    """Make a mechanism of two analytic densities, whose bounds are proven.

    Parameters
    ----------
    log_p, log_q : Expression
        Logarithms of the densities of what is released without and with the record, as functions
        of `pyengine.analytic.z`.  Both integrate to 1 over the support.
    support : pair of float
        Where both densities are positive and analytic; an end where one of them is 0 or infinite is
        allowed.

    Returns
    -------
    AnalyticPair
        A single step, to be sampled and composed.

    Raises
    ------
    ValueError
        For what are no expressions, and supports that are no intervals; when a question is asked,
        for densities that do not integrate to 1: what is proven to exceed 1, or lacks more than
        1e-9 of it.

    Notes
    -----
    Accuracy: bounds are proven, with these two hypotheses alone: that the expressions are the
    densities, and that they integrate to 1.  Compositions of these steps with each other, with
    Poisson samples of them and with Gaussian steps have them some 1e-13 apart where steps are many
    (2 to 15 and more), down to 1e-300; fewer steps, and adjacency ``substitute``, have estimates
    (docs/theory, analytic densities).  Needs the extra ``reference``.

    Examples
    --------
    The logistic law, moved by a tenth:

    >>> import pyengine as pe
    >>> from pyengine.mechanisms.expressions import exp, log, z
    >>> log_p = -z - 2 * log(1 + exp(-z))
    >>> step = pe.from_analytic_densities(log_p, log_p.at(z - "0.1"))
    >>> found = pe.delta(step.composed(100), 1.0, bounds=True)
    >>> (found.upper - found.lower) / found.value < 1e-11
    True
    """
    with needed("from_analytic_densities", "reference"):
        import flint  # noqa: F401 what bounds are proven with
    for name, given in (("log_p", log_p), ("log_q", log_q)):
        if not isinstance(given, Expression):
            raise ValueError(
                f"{name} must be an expression in pyengine.analytic.z, got {given!r}; densities "
                "of scipy.stats are taken by from_distributions"
            )
    ends = checks.real_array("support", checks.listed("support", support), -math.inf, math.inf)
    if ends.shape != (2,) or not ends[0] < ends[1]:
        raise ValueError(f"support must be two increasing numbers, got {checks.shown(support)}")
    return AnalyticPair(log_p, log_q, (float(ends[0]), float(ends[1])))
