"""Earlier bounds on reconstruction, for comparison with γ(κ)."""

from pyengine.threat.baselines.comparison import Comparison, compare
from pyengine.threat.baselines.guarantees import advantage, dp_gamma, mse_lower_bound
from pyengine.threat.baselines.information import (
    fano_success,
    gaussian_information,
    orthogonal_information,
)
from pyengine.threat.baselines.renyi import (
    gaussian_renyi_gamma,
    renyi_divergence,
    renyi_gamma,
    renyi_gamma_bound,
    substitution_cost,
)

__all__ = [
    "Comparison",
    "advantage",
    "compare",
    "dp_gamma",
    "fano_success",
    "gaussian_information",
    "gaussian_renyi_gamma",
    "mse_lower_bound",
    "orthogonal_information",
    "renyi_divergence",
    "renyi_gamma",
    "renyi_gamma_bound",
    "substitution_cost",
]
