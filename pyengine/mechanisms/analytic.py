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
        """Label: two densities, and neighbours are the pair."""
        words, hidden = super().own_words(), ("log_p", "log_q", "support")
        return words._replace(name="two analytic densities", neighbours="pair", hidden=hidden)


def from_analytic_densities(
    log_p: Expression, log_q: Expression, *, support: Any = (-math.inf, math.inf)
) -> AnalyticPair:
    """Make a mechanism from two analytic densities, with proven bounds.

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
        For arguments that are not expressions, and a support that is not an interval; when a
        question is asked, for a density whose integral provably exceeds 1 or is more than 1e-9
        below it.

    Notes
    -----
    Accuracy: bounds are proven under two hypotheses: the expressions are the densities, and they
    integrate to 1.  Compositions of these steps, of Poisson samples of them and of Gaussian steps
    have bounds about 1e-13 apart, relatively, down to values of 1e-300, if there are enough steps
    (2 to 15, depending on the densities); fewer steps, and adjacency ``substitute``, have estimates
    (docs/theory, analytic densities).  Needs the extra ``reference``.

    Examples
    --------
    The logistic distribution, shifted by a tenth:

    >>> import pyengine as pe
    >>> from pyengine.mechanisms.expressions import exp, log, z
    >>> log_p = -z - 2 * log(1 + exp(-z))
    >>> step = pe.from_analytic_densities(log_p, log_p.at(z - "0.1"))
    >>> found = pe.delta(step.composed(100), 1.0, bounds=True)
    >>> (found.upper - found.lower) / found.value < 1e-11
    True
    """
    with needed("from_analytic_densities", "reference"):
        import flint  # noqa: F401 the ball arithmetic of the bounds
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
