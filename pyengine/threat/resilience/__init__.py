"""Guarantees against the adversary of the relaxed threat model, compared with those of DP."""

from pyengine.threat.resilience.certificates import Certificate, certificate
from pyengine.threat.resilience.comparison import Resilience, detection_resilience
from pyengine.threat.resilience.equivalence import EquivalentNoise, equivalent_noise
from pyengine.threat.resilience.functions import asymptotic_mu, log_trade_off, power

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
