"""All bounds on reconstruction beside the exact γ(κ)."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine.api import epsilon, gamma_bound
from pyengine.mechanisms import Mechanism
from pyengine.threat.baselines.guarantees import advantage, dp_gamma, mse_lower_bound
from pyengine.threat.baselines.information import fano_success
from pyengine.threat.baselines.renyi import (
    renyi_divergence,
    renyi_gamma_bound,
    substitution_cost,
)

__all__ = ["Comparison", "compare"]


class Comparison(NamedTuple):
    """Bounds on the success probability of a reconstruction at one κ.

    Parameters
    ----------
    kappa : float
        Success probability without the release.
    exact : float
        γ(κ).
    exact_advantage : float
        The advantage (γ - κ)/(1 - κ).
    renyi : float
        From the Rényi divergences, at the best order.
    dp : float
        From (ε, δ) at the given δ.
    pure_dp : float
        From (ε, 0); 1 if no ε is finite.
    fano : float
        Fano's inequality for 1/κ equally likely candidates; NaN if 1/κ is not an integer > 1.
    mse : float
        Lower bound on the mean squared error of unbiased reconstruction, per coordinate and in
        units of its squared range; the same for every κ, inf if nothing is released.
    """

    kappa: float
    exact: float
    exact_advantage: float
    renyi: float
    dp: float
    pure_dp: float
    fano: float
    mse: float


def compare(
    mechanism: Mechanism, kappa: float | npt.ArrayLike, *, delta: float = 1e-5
) -> list[Comparison]:
    """Every bound on reconstruction beside the exact γ(κ).

    Parameters
    ----------
    mechanism : Mechanism
        Composition of Gaussian and Laplace steps, with or without Poisson sampling.
    kappa : array_like
        Success probabilities of the adversary without the release, in (0, 1).
    delta : float
        δ of the (ε, δ) bound, in [0, 1].

    Returns
    -------
    list of Comparison
        One for each κ.  ``renyi``, ``dp`` and ``pure_dp`` are upper bounds of γ(κ); ``fano`` bounds
        the success of every attack on that prior, and may lie below γ(κ); ``mse`` bounds an error.

    Notes
    -----
    Fano's inequality uses the Kullback-Leibler divergence of the law with the record from that
    without as a bound on the mutual information, which holds for any candidates.  The ε of ``dp``
    and ``pure_dp`` is that of adjacency ``remove``, which bounds γ(κ) of ``add``.  ``mse`` uses
    Rényi differential privacy of order 2 under substitution, `substitution_cost`.

    Examples
    --------
    >>> import pyengine as pe
    >>> for row in pe.baselines.compare(pe.dp_sgd(1.0, 0.1, 30), [0.1, 0.01]):
    ...     print(f"{row.exact:.4f} {row.renyi:.4f} {row.dp:.4f} {row.pure_dp:.4f} {row.fano:.4f}")
    0.2772 0.3835 1.0000 1.0000 0.3441
    0.0590 0.0875 0.6525 1.0000 0.1288
    """
    array = np.atleast_1d(checks.real_array("kappa", kappa, 0.0, 1.0)).ravel()
    if np.any((array == 0.0) | (array == 1.0)):
        raise ValueError(f"kappa must lie in (0, 1), got {checks.shown(kappa)}")
    slack = float(checks.probability("delta", delta))
    exact = gamma_bound(mechanism, array)
    renyi = renyi_gamma_bound(mechanism, array)
    # Q(E) <= e^ε P(E) + δ with Q the law with the record is the profile of `remove`
    cost, pure = (float(epsilon(mechanism, d, adjacency="remove")) for d in (slack, 0.0))
    information = float(renyi_divergence(mechanism, 1.0))
    error = float(mse_lower_bound(substitution_cost(mechanism)))
    rows = []
    for i, k in enumerate(array):
        prior = float(k)
        size = round(min(1.0 / prior, 2.0**53))
        whole = size >= 2 and math.isclose(size * prior, 1.0, rel_tol=1e-9)
        cells: dict[str, Any] = {
            "kappa": prior,
            "exact": float(exact[i]),
            "exact_advantage": advantage(float(exact[i]), prior),
            "renyi": float(renyi[i]),
            "dp": dp_gamma(prior, cost, slack),
            "pure_dp": dp_gamma(prior, pure),
            "fano": fano_success(size, information) if whole else math.nan,
            "mse": error,
        }
        rows.append(Comparison(**cells))
    return rows
