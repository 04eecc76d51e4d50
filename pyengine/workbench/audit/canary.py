"""Audits in gradient space: worst-case canary, magnitude test, offline likelihood ratio."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine.special import log_ndtr
from pyengine.workbench.audit._inputs import FloatArray, finite_array

__all__ = ["dirac_canary", "magnitude_scores", "offline_scores"]


def dirac_canary(dimension: int, norm: float, *, index: int = 0) -> FloatArray:
    """Canary gradient with its whole norm in a single coordinate, to be inserted for an audit.

    Parameters
    ----------
    dimension : int
        Number of parameters d, >= 1.
    norm : float
        Clipping norm, in (0, ∞).
    index : int
        Index of the coordinate, in [0, d).

    Returns
    -------
    ndarray, shape (d,)
        ``norm`` at ``index``, 0 elsewhere.
    """
    size = checks.count("dimension", dimension, least=1)
    position = checks.count("index", index)
    if position >= size:
        raise ValueError(f"index must be below dimension = {size}, got {checks.shown(index)}")
    canary = np.zeros(size)
    canary[position] = float(checks.positive("norm", norm))
    return canary


def magnitude_scores(
    releases: npt.ArrayLike, *, noise: float, known: npt.ArrayLike | None = None
) -> FloatArray:
    """Squared norms of releases in units of the noise: the test statistic of the relaxed model.

    Parameters
    ----------
    releases : array_like, shape (m, d) or (m, T, d)
        Noisy gradient sums of m independent trials, of one or of T steps each.
    noise : float
        Standard deviation of the noise in each entry, in (0, ∞).
    known : array_like, shape (d,) or (T, d), optional
        The releases without the record and without noise, which are subtracted; 0 if not given.

    Returns
    -------
    ndarray, shape (m,)
        Σ_t ‖release - known‖²/σ²: chi-squared with d T degrees of freedom without the record,
        noncentral with it.

    References
    ----------
    G. Kaissis, A. Ziller, S. Kolek Martinez de Azagra, D. Rueckert, on the relaxed threat model
    (2023), Lemma 4 and Lemma 8.
    """
    values = finite_array("releases", releases, (2, 3))
    deviation = float(checks.positive("noise", noise))
    if known is not None:
        centre = finite_array("known", known, (1, 2))
        if centre.shape not in (values.shape[-1:], values.shape[1:]):
            raise ValueError(
                f"known must have the shape of one trial, {values.shape[1:]}, or of one "
                f"release, got {centre.shape}"
            )
        values = values - centre
    flat = (
        values.reshape(len(values), -1) / deviation
    )  # scaled first, since the squares of the releases may overflow
    return np.asarray(np.einsum("ij,ij->i", flat, flat))


def offline_scores(observed: npt.ArrayLike, shadow: npt.ArrayLike) -> FloatArray:
    """Scores of the offline likelihood ratio attack: how unusual a run is without the record.

    Parameters
    ----------
    observed : array_like, shape (m,)
        Statistic of the attacked runs, which tends to be larger with the record.
    shadow : array_like, shape (k,)
        The statistic in runs known to be without the record, k >= 2, not all equal.

    Returns
    -------
    ndarray, shape (m,)
        -log P(Z >= observed) for a normal Z with mean and variance of the shadow runs: large values
        indicate the record.

    Raises
    ------
    ValueError
        For numbers that are not finite, fewer than two shadow runs or equal ones.

    References
    ----------
    N. Carlini et al., Membership inference attacks from first principles (2022), Section IV.C and
    the offline variant of Algorithm 1.
    """
    values = finite_array("observed", observed, (1,))
    without = finite_array("shadow", shadow, (1,))
    if without.size < 2:
        raise ValueError(f"shadow must hold at least 2 runs, got {without.size}")
    deviation = float(np.std(without, ddof=1))
    if not deviation > 0.0:
        raise ValueError("shadow must not hold equal values only: they have no variance")
    return np.asarray(-log_ndtr(-(values - without.mean()) / deviation))
