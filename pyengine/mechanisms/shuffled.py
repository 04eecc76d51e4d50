"""Randomizers that users run on their own data, and a shuffler that hides who said what."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, ClassVar

from pyengine._support import checks
from pyengine.mechanisms.unsampled import UnsampledStep
from pyengine.mechanisms.words import Words

__all__ = ["ShuffledRandomizer"]

LARGEST, MOST_USERS = 100, 10**7


@dataclass(frozen=True, init=False, repr=False)
class ShuffledRandomizer(UnsampledStep):
    """Any ε₀-differentially private local randomizer of n users, whose messages are shuffled.

    Its pair dominates all of them (docs, theory/shuffle): answers are upper bounds for any such
    randomizer, and nothing sharper is known without its law.  Neighbours differ in one user's
    input, so all adjacencies are the same.

    Parameters
    ----------
    local_epsilon : float or exact number
        ε₀ of the randomizer, which all users share, in [0, 100].
    users : int
        n, in [1, 10^7].  A pair with more than 2^20 outcomes is replaced by a coarser one that
        dominates it; ε grew by a relative 3e-4 at most in measurements.

    References
    ----------
    V. Feldman, A. McMillan, K. Talwar, Stronger Privacy Amplification by Shuffling for Rényi and
    Approximate Differential Privacy (2022), arXiv:2208.04591; S. Wang et al., Privacy Amplification
    via Shuffling: Unified, Simplified, and Tightened (2023), arXiv:2304.05007.

    Examples
    --------
    >>> import pyengine as pe
    >>> run = pe.ShuffledRandomizer(local_epsilon=1.0, users=1000)
    >>> print(f"{pe.epsilon(run, 1e-6):.4f} {pe.gamma_bound(run, 1e-3):.6f}")
    0.1487 0.001143
    """

    # a user who is not sampled sends no message, which needs another pair
    refusal: ClassVar[str] = "the users of a shuffled randomizer cannot be sampled"
    local_epsilon: checks.Number
    users: int

    def __init__(self, local_epsilon: Any, users: int) -> None:
        value = checks.non_negative("local_epsilon", local_epsilon)
        if value > LARGEST:
            raise ValueError(
                f"local_epsilon must be at most {LARGEST}, got {checks.shown(local_epsilon)}"
            )
        number = checks.count("users", users, least=1, most=MOST_USERS)
        vars(self).update(local_epsilon=value, users=number)

    def own_words(self) -> Words:
        """Label: shuffled messages of all users."""
        return Words(
            "shuffled messages of a local randomizer",
            f"a shuffler that keeps no order passes on the messages of all {self.users:,} users",
            unit="one user's input",
            neighbours="input",
            known="upper bound",
        )
