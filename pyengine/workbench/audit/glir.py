"""Gradient likelihood ratio attack: a test whether a gradient was part of a released mean."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine.special import ncx2_logcdf
from pyengine.workbench.audit._inputs import FloatArray, finite_array
from pyengine.workbench.audit.gradients import GradientDistribution, _same_dimension

__all__ = ["glir_log_p_values"]


def glir_log_p_values(
    means: npt.ArrayLike,
    gradients: npt.ArrayLike,
    distribution: GradientDistribution | Sequence[GradientDistribution],
    *,
    batch_size: float,
    noise_ratio: float = 0.0,
) -> FloatArray:
    """Log p-values of the hypothesis that a record was not in the batches.

    Parameters
    ----------
    means : array_like, shape (d,), (T, d) or (T, q, d)
        Released mean gradient of each step; with three dimensions one for each tested record, from
        q independent runs.
    gradients : array_like, shape (q, d) or (T, q, d)
        Gradients of the q tested records, the same at each step or one array for each step.
    distribution : GradientDistribution, or a sequence of T of them
        The distribution of gradients known to the attacker, one for all steps or one for each.
    batch_size : float
        Number n of gradients in each mean, > 1.
    noise_ratio : float
        Standard deviation τ̂ of the noise added to the mean, in units of Σ^{1/2}; >= 0.

    Returns
    -------
    ndarray, shape (q,)
        Sum over the steps of log F(Ŝ), F the noncentral chi-squared distribution function with d
        degrees of freedom and noncentrality n_eff K; -∞ < value <= 0.  Small values indicate
        membership: ``-glir_log_p_values(...)`` is a score for `empirical_trade_off`.

    Raises
    ------
    ValueError
        For mismatched shapes, numbers that are not finite, or parameters outside their domain.

    Notes
    -----
    With n_eff = n + τ̂²n² and l = (m - μ) + (n_eff/n)(μ - θ), Ŝ = (n²/n_eff) ‖Σ^{-1/2} l‖² has this
    distribution for a record that was not in the batch, if m is normal, as it nearly is for large
    n.  For τ̂ = 0, Ŝ = n (m - θ)ᵀ Σ⁻¹ (m - θ).  The test at level α has the errors of eq. 8.
    A gradient equal to the mean has K = 0 and a central distribution.

    The paper's Algorithm 1 prints the factor n - 1, which belongs to members, and an inverse F⁻¹
    where F is meant; this function follows the proof (docs/errata).

    References
    ----------
    T. Leemann, M. Pawelczyk, G. Kasneci, Gaussian membership inference privacy (2023), Algorithm 1,
    eq. 8 and 61 to 76.
    """
    released = np.atleast_2d(finite_array("means", means, (1, 2, 3)))
    points = finite_array("gradients", gradients, (2, 3))
    steps = released.shape[0]
    laws = _laws(distribution, steps)
    if points.ndim == 3 and points.shape[0] != steps:
        raise ValueError(
            f"gradients must have one array for each of the {steps} steps, got shape {points.shape}"
        )
    size = checks.real("batch_size", batch_size)
    if not 1.0 < size < math.inf:
        raise ValueError(f"batch_size must be above 1 and finite, got {batch_size!r}")
    if released.ndim == 3 and released.shape[1] != points.shape[-2]:
        raise ValueError(
            f"means must have one row for each of the {points.shape[-2]} records, got shape "
            f"{released.shape}"
        )
    ratio = float(checks.non_negative("noise_ratio", noise_ratio))
    effective = size + (ratio * size) ** 2
    total = np.zeros(points.shape[-2])
    for step, (mean, law) in enumerate(zip(released, laws, strict=True)):
        own = points if points.ndim == 2 else points[step]
        _same_dimension("means", mean, law.dimension)
        _same_dimension("gradients", own, law.dimension)
        away = law.whiten(law.mean - own)
        moved = law.whiten(mean - law.mean) + (effective / size) * away
        statistic = size**2 / effective * np.sum(moved**2, axis=-1)
        susceptibility = np.sum(away**2, axis=-1)
        total += ncx2_logcdf(statistic, float(law.dimension), effective * susceptibility)
    return total


def _laws(distribution: Any, steps: int) -> Sequence[GradientDistribution]:
    laws = (
        [distribution] * steps if isinstance(distribution, GradientDistribution) else distribution
    )
    if not isinstance(laws, Sequence) or not all(
        isinstance(law, GradientDistribution) for law in laws
    ):
        raise ValueError(
            "distribution must be a GradientDistribution or a sequence of them, got "
            f"{distribution!r}"
        )
    if len(laws) != steps:
        raise ValueError(
            f"distribution must be one for each of the {steps} steps, got {len(laws)} of them"
        )
    return laws
