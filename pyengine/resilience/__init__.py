"""Guarantees against the adversary of the relaxed threat model, beside those of DP."""

from pyengine.resilience.certificates import Certificate, certificate
from pyengine.resilience.comparison import Resilience, detection_resilience
from pyengine.resilience.equivalence import EquivalentNoise, equivalent_noise
from pyengine.resilience.functions import asymptotic_mu, log_trade_off, power

__all__ = [
    "Certificate",
    "EquivalentNoise",
    "Resilience",
    "asymptotic_mu",
    "certificate",
    "detection_resilience",
    "equivalent_noise",
    "log_trade_off",
    "power",
]
