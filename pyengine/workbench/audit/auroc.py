"""Area under an attack's ROC curve: one number for how well its scores separate both cases."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine.workbench.audit._inputs import FloatArray, scores
from pyengine.workbench.audit.trade_off import empirical_trade_off

__all__ = ["Auroc", "auroc"]


class Auroc(NamedTuple):
    """The area under an attack's ROC curve; made by `auroc`.

    Parameters
    ----------
    value : float
        Share of the pairs of a run with the record and a run without it in which the former has
        the larger score; ties count half.
    lower, upper : float
        Confidence bounds on the probability of this event.
    is_reversed : bool
        Whether the probability is significantly below 1/2: small scores indicate the record.
    confidence : float
        Confidence level of the bounds.
    """

    value: float
    lower: float
    upper: float
    is_reversed: bool
    confidence: float


def auroc(null: npt.ArrayLike, alternative: npt.ArrayLike, *, confidence: float = 0.95) -> Auroc:
    """Area under the ROC curve of an attack's scores, with distribution-free confidence bounds.

    Parameters
    ----------
    null, alternative : array_like, one-dimensional
        Scores of independent runs without and with the record, as in `empirical_trade_off`.
    confidence : float
        Level of the bounds, in (0, 1).

    Returns
    -------
    Auroc
        An area of 1/2 is guessing, 1 is perfect separation.  It hardly depends on small false
        positive rates, at which a leak of few records shows; so it does not replace an audit.

    Raises
    ------
    ValueError
        For empty samples, NaN scores or a level outside (0, 1).

    Notes
    -----
    The bounds are the areas under the staircases below and above the true curve that follow from
    the simultaneous bands of `empirical_trade_off`.

    Examples
    --------
    >>> from pyengine import audit
    >>> audit.auroc([0, 1, 2, 3], [1, 2, 3, 4]).value
    0.71875
    """
    without, with_record = np.sort(scores("null", null)), scores("alternative", alternative)
    below = np.searchsorted(without, with_record, side="left")
    at_most = np.searchsorted(without, with_record, side="right")
    value = float((below + at_most).mean() / (2.0 * without.size))
    curve = empirical_trade_off(without, with_record, confidence=confidence)
    lower = _area_below(curve.alpha_upper, 1.0 - curve.beta_upper)
    upper = _area_above(curve.alpha_lower, 1.0 - curve.beta_lower)
    return Auroc(value, lower, upper, upper < 0.5, curve.confidence)


def _area_below(x: FloatArray, y: FloatArray) -> float:
    """Smallest area under an increasing curve that passes left of and above all points (x, y)."""
    order = np.argsort(x)
    reached = np.maximum.accumulate(y[order])
    return float(reached @ np.diff(x[order], append=1.0))


def _area_above(x: FloatArray, y: FloatArray) -> float:
    """Largest area under an increasing curve that passes right of and below all points (x, y)."""
    order = np.argsort(x)
    most = np.minimum.accumulate(y[order][::-1])[::-1]  # minimum over the points to the right
    return float(most @ np.diff(x[order], prepend=0.0) + (1.0 - x[order][-1]))
