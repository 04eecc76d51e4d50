"""Ranges of noise and sampling rate as a choice of `adaptive`: one end of a range is the worst."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from pyengine._support import checks
from pyengine.mechanisms import GaussianMechanism, LaplaceMechanism, Mechanism, in_words

__all__ = ["NoiseRange"]

FAMILIES = {"gaussian": GaussianMechanism, "laplace": LaplaceMechanism}


@dataclass(frozen=True)
class NoiseRange:
    """All steps with noise and sampling rate in given ranges, as one entry of an `adaptive` menu.

    Parameters
    ----------
    noise : (float, float) or exact numbers
        Smallest and largest noise multiplier (Gaussian) or scale (Laplace), > 0.
    rate : (float, float), float or exact numbers
        Smallest and largest probability that a record is in a batch, in [0, 1]; 1 for no sampling.
    family : {"gaussian", "laplace"}
        The distribution of the noise.

    Raises
    ------
    ValueError
        For an argument outside its domain.

    Notes
    -----
    The step with the smallest noise and the largest rate dominates all others for both orders of
    the neighbours (docs, theory/adaptive), so a range is accounted for as that step.

    Examples
    --------
    >>> import pyengine as pe
    >>> between = pe.accounting.NoiseRange((1, 4), (0.01, 0.02))
    >>> run = pe.adaptive([between, pe.LaplaceMechanism(20)], steps=10)
    >>> worst = pe.adaptive([between.worst, pe.LaplaceMechanism(20)], steps=10)
    >>> pe.delta(run, 0.5, tolerance=1e-3) == pe.delta(worst, 0.5, tolerance=1e-3)
    True
    """

    noise: tuple[checks.NumberLike, checks.NumberLike]
    rate: tuple[checks.NumberLike, checks.NumberLike] | checks.NumberLike = 1
    family: str = "gaussian"

    def __post_init__(self) -> None:
        checks.choice("family", self.family, tuple(FAMILIES))
        noise = _ends("noise", self.noise)
        rate = _ends("rate", self.rate if isinstance(self.rate, tuple | list) else (self.rate,) * 2)
        if noise[0] <= 0:
            raise ValueError(f"noise must be positive, got {checks.shown(self.noise)}")
        if rate[1] > 1:
            raise ValueError(f"rate must be in [0, 1], got {checks.shown(self.rate)}")
        object.__setattr__(self, "noise", noise)
        object.__setattr__(self, "rate", rate)

    @property
    def worst(self) -> Mechanism:
        """The step with the smallest noise and the largest rate, which dominates all others."""
        least, largest = self.noise[0], _ends("rate", self.rate)[1]
        step = FAMILIES[self.family](least)
        return step if largest == 1 else step.poisson_sampled(largest)

    @property
    def label(self) -> str:
        """The range in words."""
        return f"{' and '.join(in_words(self.worst))}, or more noise or a smaller rate"


def _ends(name: str, given: object) -> tuple[Fraction, Fraction]:
    ends = [Fraction(checks.non_negative(name, end)) for end in checks.listed(name, given)]
    if len(ends) != 2 or ends[0] > ends[1]:
        raise ValueError(f"{name} must have a least and a largest value, got {checks.shown(given)}")
    return ends[0], ends[1]
