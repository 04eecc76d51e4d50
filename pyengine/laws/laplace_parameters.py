"""Parameters of Laplace steps, for the engines that are made for them."""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

__all__ = ["LaplaceParameters"]


class LaplaceParameters(NamedTuple):
    """A step of Laplace noise, on a Poisson sample or not.

    Parameters
    ----------
    noise_multiplier : float or Fraction
        Scale of the noise divided by the sensitivity, in (0, ∞), exactly.
    probability : float or Fraction
        Sampling probability in (0, 1], exactly.
    is_substituted : bool
        Whether the neighbour has another record in the place of the one that may be sampled.
    is_reversed : bool
        Whether A is the law with the record.
    """

    noise_multiplier: float | Fraction
    probability: float | Fraction = 1
    is_substituted: bool = False
    is_reversed: bool = False

    @property
    def is_plain(self) -> bool:
        """Whether the step is not sampled."""
        return self.probability == 1

    @property
    def is_symmetric(self) -> bool:
        """Whether both orders have the same masses of losses."""
        return self.is_plain or self.is_substituted

    @property
    def distance(self) -> Fraction:
        """The distance of both laws in units of their scale."""
        return 1 / Fraction(self.noise_multiplier)
