"""Base class of steps that cannot be sampled, and say why."""

from __future__ import annotations

from typing import ClassVar

from pyengine._support import checks
from pyengine.mechanisms.core import Mechanism, Step

__all__ = ["UnsampledStep"]


class UnsampledStep(Step):
    """Base class of steps that cannot be sampled; `refusal` begins the error message."""

    refusal: ClassVar[str]

    def poisson_sampled(self, probability: checks.NumberLike) -> Step:
        """Raise ValueError: the step cannot be sampled."""
        raise ValueError(f"{self.refusal}; got sampling probability {checks.said(probability)}")

    def sampled_without_replacement(self, *, batch_size: int, dataset_size: int) -> Step:
        """Raise ValueError: the step cannot be sampled."""
        sizes = f"{checks.shown(batch_size)} of {checks.shown(dataset_size)} records"
        raise ValueError(f"{self.refusal}; got batches of {sizes}")

    def randomly_allocated(self, steps: int, selected: int = 1) -> Mechanism:
        """Raise ValueError: the step cannot be sampled."""
        raise ValueError(
            f"{self.refusal}; got {checks.shown(selected)} of {checks.shown(steps)} steps"
        )
