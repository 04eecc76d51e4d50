"""Queries with Gaussian noise; truncated samples and epochs are in `batches`."""

from __future__ import annotations

from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pyengine._support import checks
from pyengine.mechanisms.core import Composition, Mechanism, Noise, Step

__all__ = ["GaussianMechanism"]


@dataclass(frozen=True, init=False, repr=False)
class GaussianMechanism(Step):
    """A query of sensitivity 1 with Gaussian noise.

    Parameters
    ----------
    noise_multiplier : float or exact number
        Standard deviation of the noise divided by the sensitivity, in (0, ∞).
    """

    noise_multiplier: checks.Number

    def __init__(self, noise_multiplier: Any) -> None:
        vars(self).update(noise_multiplier=checks.positive("noise_multiplier", noise_multiplier))

    @property
    def noise(self) -> Noise:
        """Gaussian noise."""
        return Noise("gaussian", self.noise_multiplier)

    def truncated_poisson_sampled(
        self, probability: checks.NumberLike, *, batch_size: int, dataset_size: int
    ) -> Step:
        """Run on a Poisson sample from which records are dropped at random above a largest size.

        Parameters
        ----------
        probability : float, or exact number as str, Fraction or Decimal
            Probability p with which each record enters the sample, independently, in [0, 1].
        batch_size : int
            Largest size B of a batch, in [1, ``dataset_size``].
        dataset_size : int
            Number n of records, including the one that neighbours differ in, >= 1.

        Returns
        -------
        Step
            The sampled mechanism; that of `Step.poisson_sampled` if B = n.

        Notes
        -----
        Answers are upper bounds, those of a pair that dominates all neighbours (docs, batch
        selection).  They are hardly above Poisson sampling if B is well above the mean size n p.

        References
        ----------
        L. Chua et al., Scalable DP-SGD: Shuffling vs. Poisson Subsampling (2024),
        arXiv:2411.04205; A. Ganesh (2025), arXiv:2508.15089.

        Examples
        --------
        >>> import pyengine as pe
        >>> noise = pe.GaussianMechanism(1.0)
        >>> step = noise.truncated_poisson_sampled(0.01, batch_size=150, dataset_size=10_000)
        >>> bound, poisson = pe.delta(step, 0.5), pe.delta(noise.poisson_sampled(0.01), 0.5)
        >>> 1.0 < bound / poisson < 1.1
        True
        """
        from pyengine.mechanisms.batches import TruncatedPoissonSampled

        step = TruncatedPoissonSampled(self, probability, batch_size, dataset_size)
        if step.batch_size == step.dataset_size:
            return self.poisson_sampled(step.probability)
        return step

    def sampled_with_replacement(
        self,
        *,
        batch_size: int,
        dataset_size: int | None = None,
        rate: checks.NumberLike | None = None,
    ) -> Composition:
        """Run on a batch drawn with replacement: independent draws from all records.

        Parameters
        ----------
        batch_size : int
            Number B of draws, >= 0.
        dataset_size : int, optional
            Number n of records, including the one that neighbours differ in, >= 1: each draw takes
            each of them with probability 1/n.
        rate : float, or exact number as str, Fraction or Decimal, optional
            Instead of ``dataset_size``: the largest probability of any record in one draw, in
            [0, 1]; for a weighted sampler the largest weight over the sum of all.

        Returns
        -------
        Composition
            One release.  Its pair dominates: the record is drawn a binomial number of times, in the
            place of another one, and each time the sum moves by at most two clipping norms.

        Raises
        ------
        ValueError
            For an argument outside its domain, and if none or both of ``dataset_size`` and
            ``rate`` are given.

        Examples
        --------
        >>> import pyengine as pe
        >>> noise = pe.GaussianMechanism(1.0)
        >>> sizes = {"batch_size": 4, "dataset_size": 100}
        >>> repeated, once = (
        ...     noise.sampled_with_replacement(**sizes), noise.sampled_without_replacement(**sizes)
        ... )
        >>> print(f"{pe.delta(repeated, 0.5):.4f} {pe.delta(once, 0.5):.4f}")
        0.0083 0.0081
        """
        from pyengine.mechanisms.mixture import repeated_draws  # here, as few runs need it

        draws = checks.count("batch_size", batch_size)
        if (dataset_size is None) == (rate is None):
            raise ValueError(
                "one of dataset_size and rate must be given, got "
                f"{'none' if rate is None else 'both'}"
            )
        if dataset_size is not None:
            share = Fraction(1, checks.count("dataset_size", dataset_size, least=1))
        else:
            share = Fraction(checks.rate("rate", rate))
        return repeated_draws(self.noise_multiplier, draws, share, moved=2)

    def randomly_allocated(self, steps: int, selected: int = 1) -> Mechanism:
        """Run once in each step of an epoch, with each record in a random set of the steps.

        Parameters
        ----------
        steps, selected : int
            As in `Step.randomly_allocated`.

        Returns
        -------
        Mechanism
            The epoch, one release of ``steps`` noisy sums; for k = t the composition of t runs.

        Notes
        -----
        For k > 1 values are **upper bounds** of γ, δ and ε, and lower ones of β: k = 2 is enclosed
        between two laws, and larger k leak at most as much as k/2 epochs of 2t/k steps, the record
        in two steps of each.  With ``bounds=True`` the other bound holds for the epoch itself, too.
        ``method="blocks"`` takes k epochs of t/k steps, the record in one step of each, which is
        faster.  ``method="monte_carlo"`` samples the epoch itself (docs, estimates).

        Examples
        --------
        >>> import pyengine as pe
        >>> epoch = pe.GaussianMechanism(1.0).randomly_allocated(100)
        >>> epoch.composed(3) == pe.dp_sgd_allocated(1.0, steps_per_epoch=100, epochs=3)
        True
        >>> thrice = pe.GaussianMechanism(1.0).randomly_allocated(99, selected=3)
        >>> pe.epsilon(thrice, 1e-5) < pe.epsilon(pe.dp_sgd_allocated(1.0, 33, 3), 1e-5)
        True
        """
        return super().randomly_allocated(steps, selected)
