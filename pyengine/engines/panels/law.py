"""Laws on panels: atoms at integers and a density that is a polynomial on each panel of a row.

All norms are total variations.  A law stands for a true one, from which it differs by at most
``error``.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from pyengine.engines.panels.blocks import multiplied
from pyengine.engines.panels.legendre import halves
from pyengine.numerics.rounding import UNIT

__all__ = ["PanelLaw", "merged", "norms", "trimmed"]

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class PanelLaw:
    """A law on the line, between a true one less and more ``error``.

    Parameters
    ----------
    level : int
        Panels have the length 2^``level``, and begin at its multiples.
    first : int
        Index of the first panel.
    series : ndarray of shape (panels, size)
        Coefficients of the density on each panel, of the orthonormal polynomials of the part of the
        way; the first one is the mass.
    lowest : int
        Place of the first atom.
    atoms : ndarray
        Masses at the integers from there; none where the level is above 0.
    mass : float
        Bound on the mass of the true law.
    error : float
        Bound on the total variation between both laws.
    """

    level: int
    first: int
    series: FloatArray
    lowest: int
    atoms: FloatArray
    mass: float
    error: float


def norms(series: FloatArray) -> FloatArray:
    """Return bounds on the total variation of the density on each panel, by Cauchy and Schwarz."""
    size = series.shape[1]
    return np.asarray(np.sqrt((series * series).sum(axis=1)) * (1.0 + 2.0 * size * UNIT) + 1e-300)


def trimmed(law: PanelLaw, tolerance: float) -> PanelLaw:
    """Return a law without what is lighter than a tolerance: high degrees, panels and atoms."""
    series, first, lost = law.series, law.first, 0.0
    if series.size:
        moduli = np.abs(series)
        rest = np.cumsum(moduli[:, ::-1], axis=1)[:, ::-1]  # of each panel, from a degree on
        light = rest <= 0.25 * tolerance / len(series)
        lost += float(moduli[light].sum()) * (1.0 + 1e-12)
        series = np.where(light, 0.0, series)
        series = series[:, : max(1, int((~light).any(axis=0).sum()))]
        weight = norms(series)
        low, high = _ends(weight, 0.125 * tolerance)
        lost += float(weight[:low].sum() + weight[high:].sum()) * (1.0 + 1e-12)
        series, first = series[low:high], first + low
    low, high = _ends(law.atoms, 0.125 * tolerance)
    lost += float(law.atoms[:low].sum() + law.atoms[high:].sum()) * (1.0 + 1e-12)
    return replace(
        law,
        first=first,
        series=series,
        lowest=law.lowest + low,
        atoms=law.atoms[low:high],
        error=law.error + lost,
    )


def _ends(weight: FloatArray, tolerance: float) -> tuple[int, int]:
    """Where to cut a row so that what lies beyond either end is lighter than a tolerance."""
    low = int(np.searchsorted(np.cumsum(weight), tolerance, side="right"))
    high = weight.size - int(np.searchsorted(np.cumsum(weight[::-1]), tolerance, side="right"))
    return (low, high) if low < high else (0, 0)


def merged(law: PanelLaw, size: int) -> PanelLaw | None:
    """Return a law on panels of twice the length; None where atoms lie inside of those.

    What that loses is measured: the distance of the density on each half from the polynomial of
    ``size`` coefficients.
    """
    if law.level >= 0 and law.atoms.size:
        return None
    panels, own = law.series.shape
    before = law.first % 2
    after = (before + panels) % 2
    rows = np.pad(law.series, ((before, after), (0, size - own))).reshape(-1, 2, size)
    table, off = halves(size)
    whole = multiplied(rows[:, 0], table[0].T) + multiplied(rows[:, 1], table[1].T)
    back = 0.5 * np.stack([multiplied(whole, half) for half in table], axis=1)
    lost = float(norms((rows - back).reshape(-1, size)).sum())
    # of the way back, which is all that counts: the coefficients are what they are
    moduli = np.abs(whole).sum(axis=0)
    rounding = float((moduli * (off + (size + 4.0) * UNIT)).sum()) + UNIT * float(
        np.abs(rows).sum()
    )
    return replace(
        law,
        level=law.level + 1,
        first=law.first // 2,
        series=whole,
        error=law.error + lost + rounding,
    )
