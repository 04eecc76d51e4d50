"""Functions of the relaxed threat model beside the questions of `pyengine.api`."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy.typing as npt

from pyengine._support import checks
from pyengine.api import gamma_bound
from pyengine.engines.relaxed.gaussian import GaussianDistance
from pyengine.engines.relaxed.parts import magnitude_parts
from pyengine.engines.relaxed.questions import relaxed_log_beta
from pyengine.mechanisms import Mechanism, checked_mechanism
from pyengine.mechanisms.threat_models import ThreatModel
from pyengine.threat.resilience.arguments import relaxed_model

if TYPE_CHECKING:
    from pyengine.api.typing import Adjacency, Array, Scalar, ThreatModelWord

__all__ = ["asymptotic_mu", "log_trade_off", "power"]


def log_trade_off(
    mechanism: Mechanism,
    alpha: float | npt.ArrayLike,
    *,
    adjacency: Adjacency = "add_remove",
    threat_model: ThreatModelWord | ThreatModel = "relaxed",
) -> Any:
    """Logarithm of the smallest type-II error in the relaxed threat model.

    Parameters
    ----------
    mechanism : Mechanism
        Gaussian steps, or one step with Gaussian or Laplace noise, plain or on a Poisson sample.
    alpha : array_like
        Levels in [0, 1].
    adjacency : {"add_remove", "add", "remove"}
        ``add`` is the paper's j, ``remove`` its inverse, ``add_remove`` J = C(j, j⁻¹).
    threat_model : "relaxed" or Relaxed
        The adversary.

    Returns
    -------
    float or ndarray of the shape of ``alpha``
        log β(α), also where β underflows; an estimate with an absolute error below 1e-12 for
        effects up to 40 (measured: docs/relaxed).

    Examples
    --------
    >>> import pyengine as pe
    >>> mechanism = pe.GaussianMechanism(noise_multiplier=0.02)
    >>> round(pe.resilience.log_trade_off(mechanism, 0.1, adjacency="add"), 6)
    -1173.908029
    """
    model = relaxed_model(threat_model)
    levels = checks.real_array("alpha", alpha, 0.0, 1.0)
    flat = relaxed_log_beta(
        checked_mechanism(mechanism), levels.ravel(), model=model, adjacency=adjacency
    )
    value = flat.reshape(levels.shape)
    return value if levels.shape else float(value)


def power(
    mechanism: Mechanism,
    alpha: Scalar | Array,
    *,
    adjacency: Adjacency = "add",
    threat_model: ThreatModelWord | ThreatModel = "relaxed",
) -> Any:
    """Power 1 - β(α) of the adversary's best test of level α.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.
    alpha : array_like
        Levels in [0, 1].
    adjacency, threat_model
        As in `pyengine.gamma_bound`, which is the same function by its name in reconstruction.

    Returns
    -------
    float or ndarray of the shape of ``alpha``
        1 - β(α), accurate in relative terms.

    Examples
    --------
    >>> import pyengine as pe
    >>> mechanism = pe.GaussianMechanism(noise_multiplier=1.0)
    >>> round(pe.resilience.power(mechanism, 1e-3), 6)
    0.011004
    >>> round(pe.resilience.power(mechanism, 1e-3, threat_model="dp"), 6)
    0.018298
    """
    return gamma_bound(mechanism, alpha, adjacency=adjacency, threat_model=threat_model)


def asymptotic_mu(
    mechanism: Mechanism, threat_model: ThreatModelWord | ThreatModel = "relaxed"
) -> float:
    """Parameter of the Gaussian trade-off function that j and its inverse tend to as d grows.

    Parameters
    ----------
    mechanism : Mechanism
        Gaussian steps without sampling.
    threat_model : Relaxed
        The adversary, with the dimension d.

    Returns
    -------
    float
        μ²/√(2d), μ² = Σ 1/noise²: an approximation for μ² << d (Theorem 3, equation 7, right, in
        which the paper prints N√(μ/(2d))).

    Examples
    --------
    >>> import pyengine as pe
    >>> mechanism = pe.GaussianMechanism(noise_multiplier=5.0).composed(150)
    >>> model = pe.threat_models.Relaxed(dimension=300)
    >>> round(pe.resilience.asymptotic_mu(mechanism, model), 6)
    0.244949
    """
    model = relaxed_model(threat_model)
    parts = magnitude_parts(checked_mechanism(mechanism), model)
    if not parts:
        return 0.0
    if len(parts) > 1 or not isinstance(parts[0][0], GaussianDistance):
        raise ValueError(
            f"mechanism must be Gaussian steps without sampling, got {checks.shown(mechanism)}"
        )
    return parts[0][0].effect ** 2 / math.sqrt(2.0 * model.dimension)
