"""DP-SGD as a mechanism."""

from __future__ import annotations

from pyengine import _checks
from pyengine.mechanisms.additive import GaussianMechanism
from pyengine.mechanisms.core import Composition

__all__ = ["dp_sgd"]


def dp_sgd(
    noise_multiplier: _checks.NumberLike, sampling_probability: _checks.NumberLike, steps: int
) -> Composition:
    """DP-SGD: the Poisson-subsampled Gaussian mechanism, composed.

    Parameters
    ----------
    noise_multiplier : float, or exact number as str, Fraction or Decimal
        Standard deviation of the noise divided by the clipping norm, in (0, ∞).
    sampling_probability : float, or exact number as str, Fraction or Decimal
        Probability with which each record enters a batch, in [0, 1].
    steps : int
        Number of steps, >= 0.

    Returns
    -------
    Composition
        Equal to
        ``GaussianMechanism(noise_multiplier).poisson_sampled(sampling_probability).composed(steps)``.

    Examples
    --------
    >>> import pyengine as pe
    >>> round(pe.gamma_bound(pe.dp_sgd(1.0, 0.01, 1000), kappa=1e-3), 12)
    0.004068447881
    """
    noise = _checks.positive("noise_multiplier", noise_multiplier)
    probability = _checks.probability("sampling_probability", sampling_probability)
    return GaussianMechanism(noise).poisson_sampled(probability).composed(steps)
