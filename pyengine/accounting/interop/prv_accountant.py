"""The classes and the calibration of prv_accountant, with the same signatures and proven answers.

They do not need prv_accountant, and accept its privacy random variables as well as mechanisms.
Batches of DP-SGD must be Poisson samples.  This cannot be checked here;
`pyengine.errors.SamplingWarning` says so once.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from pyengine._support import checks
from pyengine.api import Bounds, delta
from pyengine.api.histories import assume_poisson, assumed
from pyengine.api.prvs import from_prv
from pyengine.calibration.proven import proven_bounds, proven_noise
from pyengine.errors import AccuracyError
from pyengine.mechanisms import Composition, as_mechanism, compose, dp_sgd, in_words

__all__ = ["Accountant", "DPSGDAccountant", "PRVAccountant", "find_noise_multiplier"]

ATTEMPTS = 3  # tolerances tried for bounds within `eps_error`


class PRVAccountant:
    """``PRVAccountant`` of prv_accountant: bounds on ε and δ of composed mechanisms, proven.

    Parameters
    ----------
    prvs : PrivacyRandomVariable, Mechanism, or sequence of them
        The kinds of steps.
    eps_error : float
        Largest distance of the estimate of ε from its bounds, > 0.
    delta_error : float
        Ignored, > 0; see the Notes.
    max_self_compositions : int or sequence of int, optional
        Largest number of steps of each kind; 1 by default.
    eps_max : float, optional
        Ignored: nothing is truncated.

    Raises
    ------
    ValueError
        For an argument outside its domain, or sequences of different lengths.

    Notes
    -----
    prv_accountant allows an error of ``delta_error`` in δ and of ``eps_error`` in ε.  Here bounds
    of δ are at most 1e-4 apart, relative to δ, usually 1e-10.  Adjacency is ``add_remove``.  The
    questions of `pyengine` accept it as the mechanism with ``max_self_compositions`` steps.

    Threads may share it: it never changes.

    Examples
    --------
    >>> import pyengine as pe
    >>> from pyengine.accounting.interop.prv_accountant import PRVAccountant
    >>> step = pe.GaussianMechanism(0.8).poisson_sampled(0.001)
    >>> accountant = PRVAccountant(
    ...     step, eps_error=0.1, delta_error=1e-10, max_self_compositions=10_000
    ... )
    >>> lower, estimate, upper = accountant.compute_epsilon(1e-5, [10_000])
    >>> print(f"{estimate:.6f}", lower < estimate < upper, upper - lower < 1e-4)
    0.782388 True True
    """

    def __init__(
        self,
        prvs: Any,
        eps_error: float,
        delta_error: float,
        max_self_compositions: Any = None,
        eps_max: float | None = None,
    ) -> None:
        del eps_max
        self.prvs = list(prvs) if isinstance(prvs, Sequence) else [prvs]
        self.eps_error = float(checks.positive("eps_error", eps_error))
        self.delta_error = float(checks.positive("delta_error", delta_error))
        self.max_self_compositions = self._numbers("max_self_compositions", max_self_compositions)
        self._steps = [as_mechanism(prv) or compose(from_prv(prv)) for prv in self.prvs]
        assume_poisson(type(self).__name__, compose(*self._steps))

    def __repr__(self) -> str:
        run = self.composition()
        return f"<{type(self).__name__}: {'; '.join(in_words(run))}. {self.assumption}>"

    @property
    def assumption(self) -> str:
        """How batches must have been drawn for the answers to hold."""
        return assumed(self.composition())

    def _numbers(self, name: str, numbers: Any) -> list[int]:
        if numbers is None:
            return [1] * len(self.prvs)
        several = [numbers] if np.ndim(numbers) == 0 else list(numbers)
        if len(several) != len(self.prvs):
            raise ValueError(
                f"{name} must have as many entries as prvs, {len(self.prvs)}, got {len(several)}"
            )
        return [checks.count(name, number) for number in several]

    def composition(self, num_self_compositions: Any = None) -> Composition:
        """Return the mechanism for given numbers of steps.

        Parameters
        ----------
        num_self_compositions : int or sequence of int, optional
            Number of steps of each kind; ``max_self_compositions`` by default.
        """
        if num_self_compositions is None:
            numbers = self.max_self_compositions
        else:
            numbers = self._numbers("num_self_compositions", num_self_compositions)
        for number, most in zip(numbers, self.max_self_compositions, strict=True):
            if number > most:
                raise ValueError(
                    f"num_self_compositions must be at most max_self_compositions, {most}, got "
                    f"{number}"
                )
        parts = zip(self._steps, numbers, strict=True)
        return compose(*(step.composed(number) for step, number in parts))

    def compute_composition(self, num_self_compositions: Any = None) -> ComposedPRV:
        """Return the composition, as prv_accountant's composed privacy random variable."""
        return ComposedPRV(self._run(num_self_compositions))

    def compute_epsilon(
        self, delta: float, num_self_compositions: Any = None
    ) -> tuple[float, float, float]:
        """Lower bound, estimate and upper bound of ε; the bounds are proven.

        Parameters
        ----------
        delta : float
            In [0, 1].
        num_self_compositions : int or sequence of int, optional
            Number of steps of each kind; 1 by default, as in prv_accountant.

        Returns
        -------
        tuple of float
            The bounds are within ``eps_error`` of the estimate.

        Raises
        ------
        AccuracyError
            If no bounds so close can be proven.
        """
        return _epsilon(self._run(num_self_compositions), delta, self.eps_error)

    def compute_delta(
        self, epsilon: float, num_self_compositions: Any = None
    ) -> tuple[float, float, float]:
        """Lower bound, estimate and upper bound of δ; the bounds are proven.

        Parameters
        ----------
        epsilon : float
            In [0, ∞].
        num_self_compositions : int or sequence of int, optional
            As in `compute_epsilon`.

        Returns
        -------
        tuple of float
            At most 1e-4 apart, relative to δ.

        Raises
        ------
        AccuracyError
            If no bound can be proven.
        """
        return tuple(proven_bounds("delta", self._run(num_self_compositions), epsilon))

    def _run(self, numbers: Any) -> Composition:
        return self.composition([1] * len(self.prvs) if numbers is None else numbers)


class ComposedPRV:
    """The result of `PRVAccountant.compute_composition`: ε and δ of one composition.

    ``composition`` is the mechanism, for the questions of `pyengine`.
    """

    def __init__(self, composition: Composition) -> None:
        self.composition = composition

    def compute_epsilon(
        self, delta: float, delta_error: float, epsilon_error: float
    ) -> tuple[float, float, float]:
        """Proven lower bound, estimate, and proven upper bound of ε, within ``epsilon_error``.

        ``delta_error`` is ignored.
        """
        del delta_error
        return _epsilon(self.composition, delta, checks.positive("epsilon_error", epsilon_error))

    def compute_delta_estimate(self, epsilon: float) -> float:
        """δ(ε), as `pyengine.delta` gives it."""
        return float(delta(self.composition, epsilon, adjacency="add_remove"))


def _epsilon(run: Composition, delta: float, error: Any) -> tuple[float, float, float]:
    """Lower bound, value and upper bound of ε, the proven bounds within ``error`` of the value."""
    found = proven_bounds("epsilon", run, delta)
    for _ in range(ATTEMPTS):
        missing = _distance(found) / float(error)
        if missing <= 1.0:
            return tuple(found)
        width = (found.upper - found.lower) / found.upper
        found = proven_bounds("epsilon", run, delta, tolerance=0.5 * width / missing)
    raise AccuracyError(
        f"ε is proven to lie between {found.lower!r} and {found.upper!r} only: ask for an "
        f"eps_error larger than {float(error)!r}"
    )


def _distance(found: Bounds) -> float:
    """Distance of the value from the farther one of its bounds; 0 if all are equal or infinite."""
    if found.lower == found.upper:
        return 0.0
    return float(max(found.upper - found.value, found.value - found.lower))


class Accountant:
    """``Accountant`` of prv_accountant: bounds on ε of DP-SGD, proven.

    Parameters
    ----------
    noise_multiplier, sampling_probability : float
        As of `pyengine.dp_sgd`.
    delta : float
        In (0, 1].
    max_compositions : int
        Largest number of steps.
    eps_error : float, optional
        As in `PRVAccountant`; 0.1 by default.
    mesh_size, verbose
        Ignored.

    Notes
    -----
    Threads may share it: it never changes.

    Examples
    --------
    >>> from pyengine.accounting.interop.prv_accountant import Accountant
    >>> accountant = Accountant(0.8, 0.001, delta=1e-5, max_compositions=10_000, eps_error=0.1)
    >>> lower, estimate, upper = accountant.compute_epsilon(num_compositions=10_000)
    >>> print(f"{estimate:.6f}", lower < estimate < upper)
    0.782388 True
    """

    def __init__(
        self,
        noise_multiplier: float,
        sampling_probability: float,
        delta: float,
        max_compositions: int,
        eps_error: float | None = None,
        mesh_size: float | None = None,
        verbose: bool = False,
    ) -> None:
        del mesh_size, verbose
        self.delta = float(checks.probability("delta", delta))
        self.accountant = PRVAccountant(
            dp_sgd(noise_multiplier, sampling_probability, 1),
            eps_error=0.1 if eps_error is None else eps_error,
            delta_error=max(self.delta / 1000, 5e-324),
            max_self_compositions=max_compositions,
        )

    def compute_epsilon(self, num_compositions: int) -> tuple[float, float, float]:
        """Lower bound, estimate and upper bound of ε at ``delta`` after so many steps.

        Parameters
        ----------
        num_compositions : int
            Number of steps, at most ``max_compositions``.
        """
        return self.accountant.compute_epsilon(self.delta, num_compositions)


class DPSGDAccountant(PRVAccountant):
    """``DPSGDAccountant`` of prv_accountant: bounds on ε and δ of DP-SGD, proven.

    Parameters
    ----------
    noise_multiplier, sampling_probability : float
        As of `pyengine.dp_sgd`.
    max_steps : int
        Largest number of steps.
    eps_error, delta_error : float
        As of `PRVAccountant`.
    """

    def __init__(
        self,
        noise_multiplier: float,
        sampling_probability: float,
        max_steps: int,
        eps_error: float = 0.1,
        delta_error: float = 1e-9,
    ) -> None:
        step = dp_sgd(noise_multiplier, sampling_probability, 1)
        super().__init__(step, eps_error, delta_error, max_steps)

    def compute_epsilon(  # type: ignore[override] # as there
        self, delta: float, num_steps: int
    ) -> tuple[float, float, float]:
        """Lower bound, estimate and upper bound of ε after so many steps."""
        return super().compute_epsilon(delta, num_steps)

    def compute_delta(  # type: ignore[override] # as there
        self, epsilon: float, num_steps: int
    ) -> tuple[float, float, float]:
        """Lower bound, estimate and upper bound of δ after so many steps."""
        return super().compute_delta(epsilon, num_steps)


def find_noise_multiplier(
    sampling_probability: float,
    num_steps: int,
    target_epsilon: float,
    target_delta: float,
    eps_error: float = 0.1,
    mu_max: float = 100.0,
) -> float:
    """Noise multiplier of DP-SGD for a target, with the signature of ``prv_accountant.dpsgd``.

    Parameters
    ----------
    sampling_probability, num_steps
        As of `pyengine.dp_sgd`.
    target_epsilon, target_delta : float
        The target, in (0, ∞) and (0, 1).
    eps_error, mu_max : float
        Ignored.

    Returns
    -------
    float
        Proven to meet the target, and usually within 1e-9, relative, of the smallest that does.

    Examples
    --------
    >>> from pyengine.accounting.interop.prv_accountant import find_noise_multiplier
    >>> print(f"{find_noise_multiplier(0.01, 1000, target_epsilon=2.0, target_delta=1e-5):.3f}")
    0.959
    """
    del eps_error, mu_max
    assume_poisson("find_noise_multiplier", dp_sgd(1.0, sampling_probability, num_steps))
    return proven_noise(
        lambda noise: dp_sgd(noise, sampling_probability, num_steps), target_epsilon, target_delta
    )
