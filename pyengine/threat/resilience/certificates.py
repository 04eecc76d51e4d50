"""The relaxed guarantee and that of differential privacy in one table."""

from __future__ import annotations

from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine._support.decimals import number, written
from pyengine.api import epsilon, trade_off
from pyengine.mechanisms import Mechanism
from pyengine.mechanisms.threat_models import Relaxed, ThreatModel
from pyengine.threat.resilience.arguments import FloatArray, relaxed_model

__all__ = ["Certificate", "certificate"]


class Certificate(NamedTuple):
    """Error rates of both adversaries.

    Parameters
    ----------
    alpha : ndarray
        Levels of the tests.
    dp, relaxed : ndarray
        Smallest type-II errors of the adversary of DP and of the relaxed one.
    epsilon, delta : float
        Differential privacy of the mechanism.
    threat_model : Relaxed
        The relaxed adversary.
    """

    alpha: FloatArray
    dp: FloatArray
    relaxed: FloatArray
    epsilon: float
    delta: float
    threat_model: Relaxed

    def __str__(self) -> str:
        """Return a table with the assumptions."""
        lines = [
            f"differential privacy: epsilon = {number(self.epsilon, 6, ROUND_CEILING)} at "
            f"delta = {written(self.delta)}",
            f"relaxed threat model: record unknown, dimension {self.threat_model.dimension};",
            "  no differential privacy, and void once the record is learnt elsewhere",
            f"{'alpha':>12} {'beta (DP)':>14} {'beta (relaxed)':>14}",
        ]
        lines += [
            f"{written(float(a)):>12} {number(b, 8, ROUND_FLOOR):>14} "
            f"{number(c, 8, ROUND_FLOOR):>14}"
            for a, b, c in zip(self.alpha, self.dp, self.relaxed, strict=True)
        ]
        return "\n".join(lines)


def certificate(
    mechanism: Mechanism,
    alpha: npt.ArrayLike = (1e-3, 1e-2, 0.05, 0.1),
    *,
    delta: float = 1e-5,
    threat_model: str | ThreatModel = "relaxed",
) -> Certificate:
    """Report the relaxed guarantee together with the one of differential privacy.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.
    alpha : array_like, one-dimensional
        Levels in [0, 1].
    delta : float
        δ of the differential privacy to report, in (0, 1).
    threat_model : "relaxed" or Relaxed
        The adversary.

    Returns
    -------
    Certificate
        Prints as a table.

    Examples
    --------
    >>> import pyengine as pe
    >>> print(pe.resilience.certificate(pe.GaussianMechanism(1.0), [0.01, 0.1]))
    differential privacy: epsilon = 4.37718 at delta = 1e-5
    relaxed threat model: record unknown, dimension 1;
      no differential privacy, and void once the record is learnt elsewhere
           alpha      beta (DP) beta (relaxed)
            0.01     0.90763775     0.94229286
             0.1      0.6108563     0.73640266
    """
    model = relaxed_model(threat_model)
    chance = checks.scalar("delta", delta, 0.0, 1.0)
    levels = np.atleast_1d(checks.real_array("alpha", alpha, 0.0, 1.0)).ravel()
    return Certificate(
        levels,
        trade_off(mechanism, levels),
        trade_off(mechanism, levels, threat_model=model),
        epsilon(mechanism, chance),
        chance,
        model,
    )
