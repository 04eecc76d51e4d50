"""From a mechanism and an adjacency to an ordered pair of laws (A, B).

The trade-off function asked for is T(A, B) and the privacy profile is H(A‖B):

==============  ======================  ======================
adjacency       A                       B
==============  ======================  ======================
``add``         without the record      with the record
``remove``      with the record         without the record
==============  ======================  ======================
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

from pyengine.mechanisms import Mechanism, describe

__all__ = ["GaussianPair", "ordered_pair"]


@dataclass(frozen=True)
class GaussianPair:
    """Composition of Poisson-subsampled Gaussian steps as a pair of laws.

    Per step the law without the record is N(0, 1) and the law with it
    (1 - p) N(0, 1) + p N(1/noise, 1): the dominating pair of the sampled mechanism.

    Parameters
    ----------
    noise, probability, steps : tuple of float
        One entry per kind of step; probabilities in (0, 1], steps >= 1.
    reversed : bool
        Whether A is the law with the record.
    """

    noise: tuple[float, ...]
    probability: tuple[float, ...]
    steps: tuple[int, ...]
    reversed: bool

    @property
    def gaussian_mu(self) -> float | None:
        """Mean shift of the equivalent single Gaussian, if every step is unsampled."""
        if any(p != 1.0 for p in self.probability):
            return None
        # hypot of the steps' shifts; few kinds of steps, so no scaling is needed
        total = sum(n / (s * s) for s, n in zip(self.noise, self.steps, strict=True))
        return float(total**0.5)

    @property
    def is_trivial(self) -> bool:
        """Whether the two laws are equal: nothing that depends on the record is released."""
        return not self.steps


@lru_cache(maxsize=4096)
def ordered_pair(mechanism: Mechanism, adjacency: str) -> GaussianPair:
    """Return the pair of a mechanism for adjacency ``add`` or ``remove``."""
    kept = [row for row in describe(mechanism) if row["sampling_probability"] > 0.0]
    return GaussianPair(
        noise=tuple(row["noise_multiplier"] for row in kept),
        probability=tuple(row["sampling_probability"] for row in kept),
        steps=tuple(row["steps"] for row in kept),
        reversed=adjacency == "remove",
    )
