"""Privacy loss distributions of dp_accounting."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._support.extras import needed
from pyengine.api.profiles import Profile
from pyengine.engines.answers import Questions
from pyengine.engines.registry import questions
from pyengine.mechanisms import Mechanism
from pyengine.numerics import functions as fn

__all__ = ["from_privacy_loss_distribution", "to_privacy_loss_distribution"]

FloatArray = npt.NDArray[np.float64]
MOST = 4_000_000  # losses of a distribution


def from_privacy_loss_distribution(distribution: Any) -> Profile:
    """Answers from a distribution of dp_accounting, which must be discretised pessimistically.

    They are as safe as the distribution: the rounding errors of its convolutions, about 1e-14
    absolute, are part of its numbers.
    """

    def delta(epsilon: Any) -> Any:
        found = distribution.get_delta_for_epsilon(epsilon)
        return np.maximum(found, 0.0)  # rounding may make it negative

    return Profile(delta, "pld")


def to_privacy_loss_distribution(
    mechanism: Mechanism, *, interval: float = 1e-4, smallest_delta: float = 1e-15
) -> Any:
    """``PrivacyLossDistribution`` of dp_accounting for a mechanism, without its convolutions.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.
    interval : float
        Spacing of the losses, > 0: ``value_discretization_interval``.
    smallest_delta : float
        δ in (0, 1): losses beyond its ε become infinite.

    Returns
    -------
    PrivacyLossDistribution
        Pessimistic: it joins both profiles by chords between multiples of ``interval`` (connect the
        dots), where its δ is that of `pyengine.delta` up to rounding.  It can be composed with
        others of the same interval.

    Raises
    ------
    ImportError
        If dp_accounting is not installed.
    ValueError
        If more than four million losses are needed, or no finite ε has ``smallest_delta``.

    References
    ----------
    V. Doroshenko, B. Ghazi, P. Kamath, R. Kumar, P. Manurangsi, Connect the Dots: Tighter Discrete
    Approximations of Privacy Loss Distributions, PoPETs 2022, Algorithm 1.
    """
    with needed("a PrivacyLossDistribution", "peers"):
        from dp_accounting.pld import pld_pmf
        from dp_accounting.pld import privacy_loss_distribution as pld

    orders = {order: _asked(mechanism, order) for order in ("add", "remove")}
    ends = [asked.epsilon(np.array([smallest_delta])).value[0] for asked in orders.values()]
    if math.isinf(max(ends)):
        raise ValueError(
            f"smallest_delta must be at least the mass of infinite loss, got {smallest_delta!r}"
        )
    if not max(ends) / interval < MOST:
        raise ValueError(
            f"interval must be at least {max(ends) / MOST:.3g} to have {MOST:,} losses at most, "
            f"got {interval!r}"
        )
    last = max(1, math.ceil(max(ends) / interval))
    grid = np.arange(last + 1) * interval
    above = {order: asked.profile(grid).upper for order, asked in orders.items()}
    masses = []
    for order, other in (("remove", "add"), ("add", "remove")):
        # H_{e^-ε}(A‖B) = 1 - e^-ε + e^-ε H_{e^ε}(B‖A)
        below = 1.0 - fn.exp(-grid[:0:-1]) * (1.0 - above[other][:0:-1])
        deltas = np.minimum.accumulate(np.concatenate([below, above[order]]).clip(0.0, 1.0))
        masses.append(
            pld_pmf.create_pmf_pessimistic_connect_dots_fixed_gap(interval, -last, last, deltas)
        )
    return pld.PrivacyLossDistribution(*masses)


def _asked(mechanism: Mechanism, order: str) -> Questions:
    return questions(mechanism, adjacency=order, method="auto", threat_model="dp", tolerance=None)
