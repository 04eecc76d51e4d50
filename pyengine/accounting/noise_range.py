"""Steps of one kind whose noise and rate lie in a range: the worst one is at its end."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction

from pyengine._support import checks
from pyengine.mechanisms import GaussianMechanism, LaplaceMechanism, Mechanism, in_words

__all__ = ["NoiseRange"]

FAMILIES = {"gaussian": GaussianMechanism, "laplace": LaplaceMechanism}


@dataclass(frozen=True)
class NoiseRange:
    """All steps whose noise and rate lie in a range, as one entry of the menu of `adaptive`.

    Parameters
    ----------
    noise : (float, float) or exact numbers
        Least and largest noise multiplier, or scale, > 0.
    rate : (float, float), float or exact numbers
        Least and largest probability that a record is in a batch, in [0, 1]; 1 for all records.
    family : {"gaussian", "laplace"}
        The noise.

    Raises
    ------
    ValueError
        For an argument outside its domain.

    Notes
    -----
    The step of the least noise and the largest rate dominates all others under both orders of
    neighbours (docs, theory/adaptive), so a range costs what that step costs.

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
        """The step that dominates all of them."""
        least, largest = self.noise[0], _ends("rate", self.rate)[1]
        step = FAMILIES[self.family](least)
        return step if largest == 1 else step.poisson_sampled(largest)

    @property
    def label(self) -> str:
        """What may be chosen, in words."""
        return f"{' and '.join(in_words(self.worst))}, or more noise or a smaller rate"


def _ends(name: str, given: object) -> tuple[Fraction, Fraction]:
    ends = [Fraction(checks.non_negative(name, end)) for end in checks.listed(name, given)]
    if len(ends) != 2 or ends[0] > ends[1]:
        raise ValueError(f"{name} must have a least and a largest value, got {checks.shown(given)}")
    return ends[0], ends[1]
