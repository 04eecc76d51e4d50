"""Detection resilience: comparison of trade-off functions with a reference."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine.api import trade_off, trade_off_function
from pyengine.mechanisms import Mechanism
from pyengine.mechanisms.threat_models import ThreatModel
from pyengine.threat.resilience.arguments import FloatArray, levels_between, relaxed_model

if TYPE_CHECKING:
    from pyengine.api.typing import ThreatModelWord

__all__ = ["Resilience", "detection_resilience"]

Reference = Mechanism | Callable[[FloatArray], npt.ArrayLike]
ROUNDING = 1e-11  # relative error that both functions may have
ZOOMS = 6  # grids, each around the minimum of the one before


class Resilience(NamedTuple):
    """Whether trade-off functions lie on or above a reference.

    Parameters
    ----------
    holds : bool
        Whether J >= λ on the levels that were tried, up to rounding.
    margin : float
        The smallest (J - λ)/min(λ, 1 - λ).
    alpha : float
        The level at which it is attained.
    dp_holds, dp_margin : bool, float
        The same for the trade-off function of differential privacy.
    """

    holds: bool
    margin: float
    alpha: float
    dp_holds: bool
    dp_margin: float


def detection_resilience(
    mechanism: Mechanism,
    reference: Reference,
    *,
    threat_model: ThreatModelWord | ThreatModel = "relaxed",
) -> Resilience:
    """Check λ-detection resilience: J(α) >= λ(α) for all α.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.
    reference : Mechanism or callable
        λ: a function of an array of α, or a mechanism (for its trade-off function under
        differential privacy).
    threat_model : "relaxed" or Relaxed
        The adversary.

    Returns
    -------
    Resilience
        A numerical check, not a proof: 400 levels from 1e-12 to 1 - 1e-12, and finer ones around
        the smallest difference.

    References
    ----------
    G. Kaissis et al., Optimal privacy guarantees for a relaxed threat model, NeurIPS 2023,
    Definition 3 and Lemma 6.

    Examples
    --------
    >>> import pyengine as pe
    >>> wanted = pe.membership.GaussianTradeOff(1.0)
    >>> found = pe.resilience.detection_resilience(pe.GaussianMechanism(0.95), wanted)
    >>> found.holds, found.dp_holds
    (True, False)
    """
    relaxed_model(threat_model)
    of_reference = trade_off_function("reference", reference)
    margin, where = _least(
        lambda alpha: trade_off(mechanism, alpha, threat_model=threat_model), of_reference
    )
    dp_margin, _ = _least(lambda alpha: trade_off(mechanism, alpha), of_reference)
    return Resilience(margin >= -ROUNDING, margin, where, dp_margin >= -ROUNDING, dp_margin)


def _least(
    first: Callable[[FloatArray], FloatArray], second: Callable[[FloatArray], FloatArray]
) -> tuple[float, float]:
    """The smallest difference of two functions, relative to the second, and its level."""
    alpha = levels_between(1e-12, 1.0 - 1e-12, 400)
    for zoom in range(ZOOMS):
        beta = second(alpha)
        # 1 - β has too few digits for β near 1; that part is covered by the inverse function
        seen = (beta > 0.0) & (1.0 - beta > 1e-8)
        scale = np.where(seen, np.minimum(beta, 1.0 - beta), 1.0)
        slack = first(alpha) - beta
        slack = np.where((beta > 0.5) & (np.abs(slack) <= 2.0**-51), 0.0, slack)
        difference = np.where(seen, slack / scale, math.inf)
        best = int(np.argmin(difference))
        result = float(difference[best]), float(alpha[best])
        if zoom == ZOOMS - 1:
            break
        low, high = alpha[max(best - 1, 0)], alpha[min(best + 1, alpha.size - 1)]
        alpha = np.linspace(low, high, 33)
    return result
