"""Whether batches that an optimizer of Opacus had can be Poisson samples, by their sizes."""

from __future__ import annotations

import math
from typing import Any

__all__ = ["SeenBatches"]

UNLIKELY = 1e-9  # probability under Poisson sampling below which sizes are not those of samples


class SeenBatches:
    """Sizes of the batches that a hook has seen, and how many of each.

    ``mode`` is the largest probability that Poisson sampling gives to any size; ``added`` counts
    steps whose gradients are those of several batches, added up, ``hidden`` those whose batch was
    run in parts, so that its size is not known.
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
        """The parameters, for a checkpoint."""
        return {**vars(self), "sizes": dict(self.sizes)}

    def see(self, optimizer: Any, sample_rate: float) -> None:
        """Note the batch of a step, in the hook of the optimizer, which still has its gradients."""
        if getattr(optimizer, "accumulated_iterations", 1) > 1:
            self.added += 1
            return
        # a batch that is run in parts shows the last of them only
        size = None if getattr(optimizer, "_is_last_step_skipped", False) else _size_of(optimizer)
        expected = getattr(optimizer, "expected_batch_size", None)
        if size is None or not expected or not 0.0 < sample_rate <= 1.0:
            self.hidden += 1
            return
        self.sizes[size] = self.sizes.get(size, 0) + 1
        self.mode = max(self.mode, _largest_mass(expected / sample_rate, sample_rate))

    def are_not_poisson(self) -> bool:
        """Whether no Poisson samples are like this, but with a probability below 1e-9.

        k batches have at most d different sizes if those that are no first of their size have one
        of d sizes: with a probability of at most C(k, d) (d p)^(k - d), p being the largest
        probability of any size.  Gradients of several batches are added up only where Opacus does
        not draw Poisson samples.
        """
        if self.added:
            return True
        if self.hidden or not self.sizes:  # batches that are whole are small ones: no fair part
            return False
        total, sizes = sum(self.sizes.values()), len(self.sizes)
        if sizes * self.mode >= 1.0:
            return False
        ways = math.lgamma(total + 1) - math.lgamma(sizes + 1) - math.lgamma(total - sizes + 1)
        return ways + (total - sizes) * math.log(sizes * self.mode) < math.log(UNLIKELY)

    def are_told(self) -> bool:
        """Whether there are more sizes than a loader has that cuts a data set into batches."""
        return not self.hidden and len(self.sizes) > 2

    def in_words(self) -> str:
        """What was seen, for messages."""
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
    """Number of samples whose gradients an optimizer holds; None where it does not say."""
    try:
        return len(optimizer.grad_samples[0])
    except (AttributeError, IndexError, TypeError, ValueError):
        return None


def _largest_mass(records: float, rate: float) -> float:
    """Largest binomial probability of a number of records, each at the rate, from above.

    The mode has at most the mass 1/√(2e np(1-p)) (Herzog, 1947).
    """
    variance = max(records, 1.0) * rate * (1.0 - rate)
    return min(1.0, 1.0 / math.sqrt(2.0 * math.e * variance)) if variance > 0.0 else 1.0
