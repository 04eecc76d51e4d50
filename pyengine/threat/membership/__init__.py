"""Membership inference privacy: bounds on attacks that tell whether a record was used in training.

Leemann, Pawelczyk and Kasneci (2023), "Gaussian Membership Inference Privacy".  The attacker sees
the mean gradient of each batch and knows the record and the law of the gradients, but neither
chooses nor knows the other records.
"""

from pyengine.threat.membership.composition import composed_mu, sgd_mu, step_mu
from pyengine.threat.membership.conversion import (
    NoiseLevels,
    gdp_of_gmip,
    gmip_of_gdp,
    noise_for_gmip,
)
from pyengine.threat.membership.family import ConvexTradeOff, GaussianTradeOff, TradeOffFunction
from pyengine.threat.membership.step import NoisySGDStep
from pyengine.threat.membership.stochastic import (
    stochastic_composition,
    stochastic_composition_over,
    worst_case,
)

__all__ = [
    "ConvexTradeOff",
    "GaussianTradeOff",
    "NoiseLevels",
    "NoisySGDStep",
    "TradeOffFunction",
    "composed_mu",
    "gdp_of_gmip",
    "gmip_of_gdp",
    "noise_for_gmip",
    "sgd_mu",
    "step_mu",
    "stochastic_composition",
    "stochastic_composition_over",
    "worst_case",
]
