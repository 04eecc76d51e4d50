"""A test whether batches of an Opacus optimizer can be Poisson samples, by their sizes."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["SeenBatches"]

UNLIKELY = 1e-9  # sizes less probable than this under Poisson sampling are not Poisson samples'


class SeenBatches:
    """Numbers of batches that a hook has seen, by size.

    ``mode`` bounds the probability of any one size under Poisson sampling; ``added`` counts steps
    that added up the gradients of several batches, ``hidden`` steps whose batch was run in parts,
    so that its size is unknown.
    """

    def __init__(
        self,
        sizes: dict[int, int] | None = None,
        mode: float = 0.0,
        added: int = 0,
        hidden: int = 0,
    ) -> None:
        self.sizes, self.mode, self.added, self.hidden = dict(sizes or {}), mode, added, hidden

    def as_dict(self) -> dict[str, Any]:
        """The arguments of the constructor, for a checkpoint."""
        return {**vars(self), "sizes": dict(self.sizes)}

    def see(self, optimizer: Any, sample_rate: float) -> None:
        """Record a step's batch, in the optimizer's hook, which still has the gradients."""
        if getattr(optimizer, "accumulated_iterations", 1) > 1:
            self.added += 1
            return
        # of a batch that is run in parts only the last part is seen
        size = None if getattr(optimizer, "_is_last_step_skipped", False) else _size_of(optimizer)
        expected = getattr(optimizer, "expected_batch_size", None)
        if size is None or not expected or not 0.0 < sample_rate <= 1.0:
            self.hidden += 1
            return
        self.sizes[size] = self.sizes.get(size, 0) + 1
        self.mode = max(self.mode, _largest_mass(expected / sample_rate, sample_rate))

    def are_not_poisson(self) -> bool:
        """Whether Poisson samples have so few different sizes with probability below 1e-9 only.

        If k batches have at most d different sizes, then for some d of them the other k - d repeat
        one of their sizes.  The probability of this is at most C(k, d) (d p)^(k - d), p the largest
        probability of any size.  Steps that added up gradients are not Poisson samples, either:
        Opacus adds them up only with other samplers.
        """
        if self.added:
            return True
        if self.hidden or not self.sizes:  # the sizes seen are those of small batches: biased
            return False
        total, sizes = sum(self.sizes.values()), len(self.sizes)
        if sizes * self.mode >= 1.0:
            return False
        ways = math.lgamma(total + 1) - math.lgamma(sizes + 1) - math.lgamma(total - sizes + 1)
        return ways + (total - sizes) * math.log(sizes * self.mode) < math.log(UNLIKELY)

    def are_told(self) -> bool:
        """Whether more than the two sizes occur that a loader of shuffled batches has."""
        return not self.hidden and len(self.sizes) > 2

    def in_words(self) -> str:
        """The sizes seen, in words for messages."""
        if self.added:
            return f"{self.added:,} steps added up the gradients of several batches"
        if self.hidden:
            return f"the sizes of {self.hidden:,} batches were not seen"
        if not self.sizes:
            return "no batches were seen"
        size, number = max(self.sizes.items(), key=lambda item: item[1])
        total = sum(self.sizes.values())
        return f"{number:,} of {total:,} batches have {size:,} records"


def _size_of(optimizer: Any) -> int | None:
    """Number of samples whose gradients an optimizer holds; None if unknown."""
    try:
        return len(optimizer.grad_samples[0])
    except (AttributeError, IndexError, TypeError, ValueError):
        return None


def _largest_mass(records: float, rate: float) -> float:
    """Upper bound of the probabilities of the binomial law Bin(n, p).

    n is ``records`` and p ``rate``; the bound is 1/√(2e np(1-p)) (Herzog, 1947).
    """
    variance = max(records, 1.0) * rate * (1.0 - rate)
    return min(1.0, 1.0 / math.sqrt(2.0 * math.e * variance)) if variance > 0.0 else 1.0
