"""What lines ask of the shape of a step, whatever it is made of.

A shape says it by its methods, or functions are registered for it: `cumulants_of` (``cumulants``),
`expected_nodes` (``expected_nodes``), `log_at_ends` (``log_at_ends``), `fall_of` (``fall``) and
`tilted_step` (``tilted``).
"""

from __future__ import annotations

from typing import NamedTuple

__all__ = ["At"]


class At(NamedTuple):
    """A tilt at which steps are asked for, and what they are parts of.

    Parameters
    ----------
    tilt, log_mean : float
        λ, and about the logarithm of the mean of e^(λ loss) of a step.
    steps : int
        How many there are of all kinds.
    log_lost : float
        Logarithm of the probability that the composition may lack of both laws.
    """

    tilt: float
    log_mean: float
    steps: int
    log_lost: float
