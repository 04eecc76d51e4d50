"""Functions of riskcal, answered by pyengine; each batch must be a Poisson sample.

How batches are drawn cannot be checked here; `pyengine.errors.SamplingWarning` says so once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine.api.histories import assume_poisson
from pyengine.engines.registry import questions
from pyengine.mechanisms import dp_sgd

if TYPE_CHECKING:
    from pyengine.calibration.targets import Target

__all__ = [
    "find_noise_multiplier_for_advantage",
    "find_noise_multiplier_for_err_rates",
    "get_advantage_for_dpsgd",
    "get_beta_for_dpsgd",
]


def _asked(noise_multiplier: float, sample_rate: float, num_steps: int) -> Any:
    run = dp_sgd(noise_multiplier, sample_rate, num_steps)
    assume_poisson("riskcal's call", run)
    how: dict[str, Any] = {"method": "auto", "threat_model": "dp", "tolerance": None}
    return questions(run, adjacency="add_remove", **how)


def get_beta_for_dpsgd(
    noise_multiplier: float, sample_rate: float, num_steps: int, alpha: npt.ArrayLike
) -> Any:
    """Smallest false negative rate at a false positive rate, as ``riskcal`` names it.

    Parameters
    ----------
    noise_multiplier, sample_rate, num_steps
        As of `pyengine.dp_sgd`.
    alpha : array_like
        False positive rates, in [0, 1].

    Returns
    -------
    float or ndarray of the shape of ``alpha``
        β(α) of adjacency ``add_remove``; the value of `pyengine.trade_off`, without bounds.

    Examples
    --------
    >>> from pyengine.accounting.interop import get_beta_for_dpsgd
    >>> round(get_beta_for_dpsgd(0.8, 0.001, 10_000, alpha=0.05), 6)
    0.925864
    """
    array = checks.real_array("alpha", alpha, 0.0, 1.0)
    beta = _asked(noise_multiplier, sample_rate, num_steps).trade_off(array.ravel()).beta
    return beta.value.reshape(array.shape) if array.shape else float(beta.value[0])


def get_advantage_for_dpsgd(noise_multiplier: float, sample_rate: float, num_steps: int) -> float:
    """Largest difference of true and false positive rate, as ``riskcal`` names it.

    Parameters
    ----------
    noise_multiplier, sample_rate, num_steps
        As of `pyengine.dp_sgd`.

    Returns
    -------
    float
        δ(0) of adjacency ``add_remove``; the value of `pyengine.delta`, without bounds.

    Examples
    --------
    >>> from pyengine.accounting.interop import get_advantage_for_dpsgd
    >>> round(get_advantage_for_dpsgd(1.0, 0.01, 1000), 9)
    0.16101762
    """
    asked = _asked(noise_multiplier, sample_rate, num_steps)
    return float(asked.profile(np.zeros(1)).value[0])


def _noise(target: Target, sample_rate: float, num_steps: int) -> float:
    from pyengine.calibration import calibrate

    assume_poisson("riskcal's call", dp_sgd(1.0, sample_rate, num_steps))
    return float(calibrate(lambda s: dp_sgd(s, sample_rate, num_steps), target))


def find_noise_multiplier_for_advantage(
    advantage: float, sample_rate: float, num_steps: int
) -> float:
    """Smallest noise multiplier whose advantage is at most a given one, as ``riskcal`` names it.

    Parameters
    ----------
    advantage : float
        Largest difference of true and false positive rate, in (0, 1).
    sample_rate, num_steps
        As of `pyengine.dp_sgd`.

    Returns
    -------
    float
        On the safe side, as that of `pyengine.calibrate`.

    Raises
    ------
    ValueError
        For an argument outside its domain, or a target out of reach.

    Examples
    --------
    >>> from pyengine.accounting.interop import find_noise_multiplier_for_advantage
    >>> round(find_noise_multiplier_for_advantage(0.1, sample_rate=0.01, num_steps=1000), 6)
    1.42244
    """
    from pyengine.calibration.targets import Advantage

    return _noise(Advantage(advantage), sample_rate, num_steps)


def find_noise_multiplier_for_err_rates(
    alpha: float, beta: float, sample_rate: float, num_steps: int
) -> float:
    """Smallest noise multiplier for a least false negative rate, as ``riskcal`` names it.

    Parameters
    ----------
    alpha, beta : float
        False positive rate, and the least false negative rate of a test with it, in (0, 1).
    sample_rate, num_steps
        As of `pyengine.dp_sgd`.

    Returns
    -------
    float
        On the safe side, as that of `pyengine.calibrate`.

    Raises
    ------
    ValueError
        For an argument outside its domain, or a target out of reach.

    Examples
    --------
    >>> from pyengine.accounting.interop import find_noise_multiplier_for_err_rates
    >>> noise = find_noise_multiplier_for_err_rates(0.01, 0.9, sample_rate=0.01, num_steps=1000)
    >>> round(noise, 6)
    0.633281
    """
    from pyengine.calibration.targets import TradeOff

    return _noise(TradeOff(alpha, beta), sample_rate, num_steps)
