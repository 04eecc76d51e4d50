"""Area under the curve of an attack: one number that says whether its scores tell anything."""

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
        The share of pairs of a run with the record and one without it in which the former has the
        larger score; ties count half.
    lower, upper : float
        Bounds on the probability of that.
    is_reversed : bool
        Whether the probability is below 1/2, significantly: small scores speak for the record.
    confidence : float
        Of the bounds.
    """

    value: float
    lower: float
    upper: float
    is_reversed: bool
    confidence: float


def auroc(null: npt.ArrayLike, alternative: npt.ArrayLike, *, confidence: float = 0.95) -> Auroc:
    """Area under the ROC curve of an attack's scores, with bounds for every law.

    Parameters
    ----------
    null, alternative : array_like, one-dimensional
        Scores of independent runs without and with the record, as in `empirical_trade_off`.
    confidence : float
        Level of the bounds, in (0, 1).

    Returns
    -------
    Auroc
        1/2 says nothing, 1 tells all.  What small false positive rates give is not in it: a leak of
        few records hardly moves it, so it must not stand for the audit.

    Raises
    ------
    ValueError
        For empty samples, NaN scores or a level outside (0, 1).

    Notes
    -----
    The bounds are the areas of the staircases that the simultaneous bands of `empirical_trade_off`
    leave below and above the true curve.

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
    """Area under all increasing curves that pass left of and above the points (x, y)."""
    order = np.argsort(x)
    reached = np.maximum.accumulate(y[order])
    return float(reached @ np.diff(x[order], append=1.0))


def _area_above(x: FloatArray, y: FloatArray) -> float:
    """Area under which all increasing curves stay that pass right of and below the points."""
    order = np.argsort(x)
    most = np.minimum.accumulate(y[order][::-1])[::-1]  # of the points to the right
    return float(most @ np.diff(x[order], prepend=0.0) + (1.0 - x[order][-1]))
