"""Epochs of random allocation, and Poisson samples truncated to a largest batch."""

from __future__ import annotations

import math
from collections import Counter
from dataclasses import dataclass
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

from pyengine._support import checks
from pyengine.mechanisms.core import (
    Composition,
    Mechanism,
    Places,
    Scheme,
    Stage,
    Step,
    compose,
    only_single,
)
from pyengine.mechanisms.unsampled import UnsampledStep
from pyengine.mechanisms.words import Words, neighbours_on_batches, number_in_words

if TYPE_CHECKING:
    from pyengine.mechanisms.gaussian import GaussianMechanism

__all__ = ["RandomlyAllocated", "TruncatedPoissonSampled"]


@dataclass(frozen=True, init=False, repr=False)
class RandomlyAllocated(UnsampledStep):
    """One epoch of random allocation; see `Step.randomly_allocated`.

    Parameters
    ----------
    mechanism : Step
        What each step runs; not sampled.
    steps_per_epoch : int
        Number of steps t of the epoch, >= 1.
    selected : int
        Number k of steps in which each record takes part, in [1, t]: the set of them is drawn
        uniformly and independently for each record.

    Notes
    -----
    For Gaussian steps a pair that dominates all neighbours in both orders is N(0, σ²Iₜ) without the
    record and, with it, the mean of N(1_S, σ²Iₜ) over the sets S of k steps.  If (A, B) dominates
    any other step, Aᵗ and the mean over S of ∏ B (i in S) × ∏ A (i not in S) dominate its epoch.

    References
    ----------
    L. Chua et al., Balls-and-Bins Sampling for DP-SGD (2024), arXiv:2412.16802; V. Feldman, M.
    Shenfeld, Privacy amplification by random allocation (2025), arXiv:2502.08202; V. Feldman, M.
    Shenfeld, Efficient Privacy Loss Accounting for Subsampling and Random Allocation (2026),
    arXiv:2602.17284, for other mechanisms.
    """

    scheme: ClassVar[Scheme] = "allocated"
    refusal: ClassVar[str] = (
        "random allocation already samples the records and cannot be sampled again"
    )
    mechanism: Step
    steps_per_epoch: int
    selected: int = 1

    def __init__(self, mechanism: Any, steps_per_epoch: Any, selected: Any = 1) -> None:
        only_single(mechanism)
        if type(mechanism).poisson_sampled is not Step.poisson_sampled:
            raise ValueError(
                f"mechanism must be one that can run on a sample, got {mechanism.words.name}"
            )
        size = checks.count("steps_per_epoch", steps_per_epoch, least=1)
        number = checks.count("selected", selected, 1, size, "the number of steps, ")
        vars(self).update(mechanism=mechanism, steps_per_epoch=size, selected=number)

    # Map: k of t steps, by blocks | test_blocks | theory/allocation
    def blocks(self) -> Composition:
        """Return k epochs of ⌈t/k⌉ or ⌊t/k⌋ steps with the record in one of each: they dominate."""
        size, longer = divmod(self.steps_per_epoch, self.selected)
        parts = (
            self.mechanism.randomly_allocated(size).composed(self.selected - longer),
            self.mechanism.randomly_allocated(size + 1).composed(longer),
        )
        return compose(*parts)

    def _pairs(self) -> Mechanism:
        """As `blocks`, with pairs of blocks joined: the record is in two steps of each pair."""
        size, longer = divmod(self.steps_per_epoch, self.selected)
        lengths = [size] * (self.selected - longer) + [size + 1] * longer
        odd = self.selected % 2
        numbers = Counter(map(sum, zip(lengths[odd::2], lengths[odd + 1 :: 2], strict=True)))
        parts = [
            self.mechanism.randomly_allocated(n, 2).composed(k)
            if n > 2
            else self.mechanism.composed(2 * k)
            for n, k in numbers.items()
        ]
        return compose(*parts, *(self.mechanism.randomly_allocated(n) for n in lengths[:odd]))

    @property
    def enclosing(self) -> tuple[Mechanism, tuple[Step, ...]] | None:
        """Blocks, which dominate, and two dominated steps; None for k = 1 or other noise.

        Dominated are the sum of the epoch's releases, which moves by k at noise σ√t, and the epoch
        with the record in fewer steps (two, or one for k = 2).
        """
        found = self.summed
        if self.selected == 1 or found is None:
            return None
        fewer = RandomlyAllocated(self.mechanism, self.steps_per_epoch, min(self.selected - 1, 2))
        return self._pairs() if self.selected > 2 else self.blocks(), (found, fewer)

    @property
    def summed(self) -> Step | None:
        """The sum of Gaussian releases, which moves by k at noise σ√t; None for other noise."""
        found = self.places
        if found is None:
            return None
        noise = float(found.noise_multiplier) * math.sqrt(self.steps_per_epoch)
        noise *= (1.0 + 2.0**-50) / self.selected  # rounded up
        return self.mechanism.with_multiplier(noise)

    @property
    def stage(self) -> Stage:
        """What each step runs, the share k/t of steps with the record, and t."""
        share = Fraction(self.selected, self.steps_per_epoch)
        return Stage(self.mechanism, share, self.steps_per_epoch)

    @property
    def places(self) -> Places | None:
        """Noise, t and k of an epoch with Gaussian noise; None for other noise."""
        noise = self.mechanism.noise
        if noise is None or noise.family != "gaussian":
            return None
        return Places(noise.multiplier, self.steps_per_epoch, self.selected)

    def described(self) -> dict[str, Any]:
        """Parameters of the mechanism and of the epoch; ``selected`` only if it is not 1."""
        own = {"mechanism": type(self).__name__, "steps_per_epoch": self.steps_per_epoch}
        several = {"selected": self.selected} if self.selected > 1 else {}
        run = self.mechanism.described()
        if self.places is None:
            run = {"base": ({**run, "steps": 1},)}
        return {**run, **own, **several}

    def own_words(self) -> Words:
        """Label: each record draws its batches anew in each epoch."""
        batches = f"of the {self.steps_per_epoch:,} batches of each epoch"
        if self.selected == 1:
            joins, size = f"one {batches}, drawn uniformly", "one"
            known = self.mechanism.words.known
        else:
            joins = f"{self.selected:,} {batches}, a set drawn uniformly"
            size, known = f"{self.selected:,}", "upper bound"
        inner = self.mechanism.words
        return Words(
            self.mechanism.on_batches,
            f"each record joins {joins} for each record by itself and anew in each epoch "
            "(random allocation)",
            f" of {self.steps_per_epoch:,} batches, each record in {size} of them",
            inner.unit,
            neighbours_on_batches(inner.neighbours),
            counted="epoch",
            hidden=inner.hidden if self.places else ("base",),
            known=known,
        )


@dataclass(frozen=True, init=False, repr=False)
class TruncatedPoissonSampled(UnsampledStep):
    """Gaussian mechanism on truncated samples: `GaussianMechanism.truncated_poisson_sampled`.

    Parameters
    ----------
    mechanism : GaussianMechanism
        What runs on the batch.
    probability : float or exact number
        Probability p with which a record enters the sample, in [0, 1].
    batch_size : int
        Largest size B of a batch, in [1, ``dataset_size``].
    dataset_size : int
        Number n of records, including the one that neighbours differ in, >= 1.
    """

    scheme: ClassVar[Scheme] = "truncated_poisson"
    refusal: ClassVar[str] = "truncated Poisson samples cannot be sampled again"
    mechanism: GaussianMechanism
    probability: checks.Number
    batch_size: int
    dataset_size: int

    def __init__(
        self, mechanism: Any, probability: Any, batch_size: Any, dataset_size: Any
    ) -> None:
        _only_gaussian(mechanism)
        batch, size = checks.batch(batch_size, dataset_size, least=1)
        rate = checks.rate("probability", probability)
        vars(self).update(
            mechanism=mechanism, probability=rate, batch_size=batch, dataset_size=size
        )

    @property
    def share(self) -> checks.Number:
        """Probability that a record enters the sample, before truncation."""
        return self.probability

    @property
    def stage(self) -> Stage:
        """One batch, at the sampling rate before truncation."""
        return Stage(self.mechanism, self.probability, 1)

    def described(self) -> dict[str, Any]:
        """Parameters of the noise, the probability and both sizes."""
        cut = {
            "sampling_probability": self.probability,
            "truncated_batch_size": self.batch_size,
            "dataset_size": self.dataset_size,
        }
        return {**self.mechanism.described(), **cut}

    def own_words(self) -> Words:
        """Label: a Poisson sample from which records are dropped at random if it is too large."""
        rate = number_in_words(self.probability)
        return Words(
            self.mechanism.on_batches,
            f"each record joins each batch independently with probability {rate}; of a batch that "
            f"has more than {self.batch_size:,} records, {self.batch_size:,} are kept at random "
            "(truncated Poisson sampling)",
            f" at rate {rate}, of at most {self.batch_size:,} of {self.dataset_size:,} records",
            f"one record of {self.dataset_size:,}",
            rate=rate,
            known="upper bound",
        )


def _only_gaussian(mechanism: Any) -> None:
    noise = mechanism.noise if isinstance(mechanism, Step) else None
    if noise is None or noise.family != "gaussian":
        raise ValueError(f"mechanism must be a GaussianMechanism, got {checks.shown(mechanism)}")
