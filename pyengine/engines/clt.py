"""The central limit approximation: a subsampled composition as one Gaussian mechanism.

Its distance is μ̃ = √(Σ n p² χ²), χ² the divergence of one step without sampling: for Gaussian
noise p √(n (e^{μ²} - 1)), μ = 1/noise (Bu et al. 2020).  Kaissis et al. 2023 print e^{μ}; their own
footnote has the square.
"""

from __future__ import annotations

import math

from pyengine.engines.loss_quadrature import pearson
from pyengine.errors import AccuracyError
from pyengine.mechanisms import Mechanism

__all__ = ["clt_distance"]


# Map: central limit of Bu et al. (2020) | test_approximations | approximations
def clt_distance(mechanism: Mechanism) -> float:
    """Distance μ̃ of the Gaussian pair in the place of a composition."""
    distance = math.sqrt(pearson(mechanism))
    if not math.isfinite(distance):
        raise AccuracyError(
            "the central limit approximation overflows: a noise_multiplier is too small; "
            "method='auto' is exact"
        )
    return distance
