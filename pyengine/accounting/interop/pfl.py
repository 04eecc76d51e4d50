"""Privacy accountants for pfl-research: dataclasses from which it makes its noise mechanisms."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from fractions import Fraction
from functools import partial
from typing import Any

from pyengine._support import checks
from pyengine.api.histories import assume_poisson, assumed
from pyengine.calibration.proven import proven_bounds, proven_noise
from pyengine.mechanisms import GaussianMechanism, LaplaceMechanism, Mechanism, compose
from pyengine.mechanisms.words import worded

__all__ = ["PyengineJointPrivacyAccountant", "PyenginePrivacyAccountant"]

NOISE = {"gaussian": GaussianMechanism, "laplace": LaplaceMechanism}


@dataclass
class PyenginePrivacyAccountant:
    """``PrivacyAccountant`` of pfl-research with proven bounds; it needs no pfl.

    Give two of ``epsilon``, ``delta`` and ``noise_parameter``; the third one is computed.  ε and δ
    are proven upper bounds, and noise is proven to meet both.  If all three are given, they are
    checked.

    Parameters
    ----------
    num_compositions : int
        Number of steps, >= 1.
    sampling_probability : float
        Probability with which a user takes part in a step, in [0, 1].
    mechanism : {"gaussian", "laplace"}
        Noise of one step, in any case.
    epsilon : float, optional
        In [0, ∞).
    delta : float, optional
        In (0, 1).
    noise_parameter : float, optional
        Standard deviation of Gaussian noise or scale of Laplace noise, in units of the clipping
        bound, in (0, ∞).
    noise_scale : float
        Factor of the noise that is added, in (0, 1].  As in pfl-research, guarantees are those of
        ``noise_parameter``; a scale below 1 is for experiments.
    min_bound_noise_parameter, max_bound_noise_parameter : float, optional
        Ignored: the search finds its bracket.

    Raises
    ------
    ValueError
        For an argument outside its domain, for fewer than two of the three, or for noise that is
        too small for the given ε and δ.
    AccuracyError
        If nothing can be proven.

    Notes
    -----
    Both kinds of noise are Poisson-sampled, as in pfl-research's PLD accountant; its other two do
    not sample Laplace noise.  Adjacency is ``add_remove``, of users.  How cohorts are drawn cannot
    be checked here; `pyengine.errors.SamplingWarning` says so once.  Threads may share it: it never
    changes.

    Examples
    --------
    >>> from pyengine.accounting.interop.pfl import PyenginePrivacyAccountant
    >>> accountant = PyenginePrivacyAccountant(
    ...     num_compositions=1000, sampling_probability=0.01, mechanism="gaussian", epsilon=2.0,
    ...     delta=1e-5,
    ... )
    >>> print(f"{accountant.noise_parameter:.3f} {accountant.cohort_noise_parameter:.3f}")
    0.959 0.959
    """

    num_compositions: int
    sampling_probability: float
    mechanism: str
    epsilon: float | None = None
    delta: float | None = None
    noise_parameter: float | None = None
    noise_scale: float = 1.0
    min_bound_noise_parameter: float | None = None
    max_bound_noise_parameter: float | None = None

    def __post_init__(self) -> None:
        self.mechanism = checks.choice("mechanism", str(self.mechanism).lower(), tuple(NOISE))
        checks.count("num_compositions", self.num_compositions, least=1)
        checks.rate("sampling_probability", self.sampling_probability)
        if not 0.0 < checks.real("noise_scale", self.noise_scale) <= 1.0:
            raise ValueError(f"noise_scale must lie in (0, 1], got {self.noise_scale!r}")
        if self.epsilon is not None:
            checks.non_negative("epsilon", self.epsilon)
        if self.delta is not None:
            _delta("delta", self.delta)
        if self.noise_parameter is not None:
            checks.positive("noise_parameter", self.noise_parameter)
        if (self.epsilon, self.delta, self.noise_parameter).count(None) > 1:
            raise ValueError(
                "two of epsilon, delta and noise_parameter must be given, got "
                f"{self.epsilon!r}, {self.delta!r} and {self.noise_parameter!r}"
            )
        self._find()
        assume_poisson(type(self).__name__, self.composition())

    def _find(self) -> None:
        if self.noise_parameter is None:
            assert self.epsilon is not None
            assert self.delta is not None
            self.noise_parameter = proven_noise(self._made, self.epsilon, self.delta)
        elif self.epsilon is None:
            assert self.delta is not None
            self.epsilon = proven_bounds("epsilon", self.composition(), self.delta).upper
        elif self.delta is None:
            self.delta = proven_bounds("delta", self.composition(), self.epsilon).upper
        else:
            found = proven_bounds("delta", self.composition(), self.epsilon).upper
            if found > self.delta:
                raise ValueError(
                    f"noise_parameter must be large enough for delta {self.delta!r} at epsilon "
                    f"{self.epsilon!r}, got {self.noise_parameter!r}, whose delta is {found!r}"
                )

    def _made(self, noise: float) -> Mechanism:
        return _of_cohorts(self.mechanism, noise, self.sampling_probability, self.num_compositions)

    def composition(self) -> Mechanism:
        """Return the mechanism, for the questions of `pyengine`."""
        assert self.noise_parameter is not None
        return self._made(self.noise_parameter)

    @property
    def assumption(self) -> str:
        """How cohorts must have been drawn for ε and δ to hold."""
        return assumed(self.composition())

    def __str__(self) -> str:
        return f"{self!r}: {self.assumption}"

    @property
    def cohort_noise_parameter(self) -> float:
        """Noise that is added for a cohort: ``noise_parameter`` times ``noise_scale``."""
        assert self.noise_parameter is not None
        return self.noise_parameter * self.noise_scale


def _of_cohorts(mechanism: str, noise: float, rate: float, steps: int) -> Mechanism:
    """Noise on Poisson samples of users, with words for users and cohorts."""
    step = NOISE[mechanism](noise).poisson_sampled(rate)
    own = step.words
    batches = own.batches.replace("record", "user").replace("batch", "cohort")
    said = worded(step, own._replace(batches=batches, unit="one user"))
    return said.composed(steps)


SLACK = Fraction(1, 1000)  # largest error of the sum 1 of proportions, as in pfl-research


@dataclass
class PyengineJointPrivacyAccountant:
    """``JointPrivacyAccountant`` of pfl-research with proven bounds; it needs no pfl.

    All mechanisms run on the same users and are composed.  Noise parameters are given, or computed
    from each mechanism's own ε and δ, or from the total ε and δ.

    Parameters
    ----------
    mechanisms : sequence of {"gaussian", "laplace"}
        Noise of each, in any case.
    num_compositions : int or sequence of int
        Number of steps of each, >= 1.
    sampling_probability : float or sequence of float
        Probability with which a user takes part in a step of each, in [0, 1].
    total_epsilon, total_delta : float, optional
        Of the composition: give both to compute the noise or to check it, one to compute the other.
    mechanism_epsilons, mechanism_deltas : sequence of float, optional
        Of each mechanism alone, to compute its noise.
    budget_proportions : sequence of float, optional
        Shares of the total, in (0, 1), with the sum 1; equal shares by default.  The noise of each
        mechanism is computed for its share of ε and δ; then all noises are scaled by one factor so
        that the composition meets the total.  (pfl-research scales the shares of ε instead.)
    noise_parameters : sequence of float, optional
        Standard deviation of Gaussian noise or scale of Laplace noise, in (0, ∞).
    noise_scale : float
        As in `PyenginePrivacyAccountant`.

    Raises
    ------
    ValueError
        For an argument outside its domain, too few arguments, or noise that does not meet the
        total.
    AccuracyError
        If nothing can be proven.

    Notes
    -----
    Both kinds of noise are Poisson-sampled independently; adjacency is ``add_remove``.

    Examples
    --------
    >>> from pyengine.accounting.interop.pfl import PyengineJointPrivacyAccountant
    >>> accountant = PyengineJointPrivacyAccountant(
    ...     mechanisms=["gaussian", "laplace"], num_compositions=100, sampling_probability=0.01,
    ...     total_epsilon=2.0, total_delta=1e-5,
    ... )
    >>> print([round(noise, 3) for noise in accountant.noise_parameters])
    [0.768, 0.375]
    """

    mechanisms: Sequence[str]
    num_compositions: int | Sequence[int]
    sampling_probability: float | Sequence[float]
    total_epsilon: float | None = None
    total_delta: float | None = None
    mechanism_epsilons: Sequence[float] | None = None
    mechanism_deltas: Sequence[float] | None = None
    budget_proportions: Sequence[float] | None = None
    noise_parameters: Sequence[float] | None = None
    noise_scale: float = 1.0

    def __post_init__(self) -> None:
        words = checks.listed("mechanisms", self.mechanisms)
        if not words:
            raise ValueError("mechanisms must name at least one, got none")
        self.mechanisms = [
            checks.choice("mechanisms", str(word).lower(), tuple(NOISE)) for word in words
        ]
        self.num_compositions = [
            checks.count("num_compositions", n, least=1)
            for n in self._each("num_compositions", self.num_compositions)
        ]
        self.sampling_probability = [
            float(checks.rate("sampling_probability", p))
            for p in self._each("sampling_probability", self.sampling_probability)
        ]
        if not 0.0 < checks.real("noise_scale", self.noise_scale) <= 1.0:
            raise ValueError(f"noise_scale must lie in (0, 1], got {self.noise_scale!r}")
        if self.total_epsilon is not None:
            checks.non_negative("total_epsilon", self.total_epsilon)
        if self.total_delta is not None:
            _delta("total_delta", self.total_delta)
        if (self.mechanism_epsilons is None) != (self.mechanism_deltas is None):
            raise ValueError("mechanism_epsilons and mechanism_deltas must be given together")
        given = [self.mechanism_epsilons, self.noise_parameters]
        if None not in given:
            raise ValueError(
                "one of mechanism_epsilons and noise_parameters must be given, not both"
            )
        known = [self.total_epsilon, self.total_delta].count(None)
        if known == 2 or (known == 1 and given == [None, None]):
            raise ValueError(
                "total_epsilon and total_delta must be given, or one of them and noise_parameters "
                "or the epsilons and deltas of the mechanisms"
            )
        self._find()
        assume_poisson(type(self).__name__, self.composition())

    def _each(self, name: str, value: Any) -> list[Any]:
        """One entry for each mechanism."""
        if isinstance(value, int | float | str):
            return [value] * len(self.mechanisms)
        entries = checks.listed(name, value)
        if len(entries) != len(self.mechanisms):
            raise ValueError(
                f"{name} must have one entry for each of {len(self.mechanisms)} mechanisms, got "
                f"{len(entries)}"
            )
        return list(entries)

    def _find(self) -> None:
        if self.noise_parameters is not None:
            noises = self._each("noise_parameters", self.noise_parameters)
            self.noise_parameters = [float(checks.positive("noise_parameters", x)) for x in noises]
        elif self.mechanism_epsilons is not None:
            self.noise_parameters = self._noises(
                self._each("mechanism_epsilons", self.mechanism_epsilons),
                self._each("mechanism_deltas", self.mechanism_deltas),
            )
        else:
            self._share_out()
            return
        run = self.composition()
        if self.total_epsilon is None:
            self.total_epsilon = float(proven_bounds("epsilon", run, self.total_delta or 0.0).upper)
            return
        found = float(proven_bounds("delta", run, self.total_epsilon).upper)
        if self.total_delta is None:
            self.total_delta = found
        elif found > self.total_delta:
            raise ValueError(
                f"noise_parameters must be large enough for total_delta {self.total_delta!r} at "
                f"total_epsilon {self.total_epsilon!r}, got {self.noise_parameters!r}, whose delta "
                f"is {found!r}"
            )

    def _share_out(self) -> None:
        """Compute the noise for each share alone, then scale all by one factor for the total."""
        assert self.total_epsilon is not None
        assert self.total_delta is not None
        epsilon, delta = self.total_epsilon, self.total_delta
        size = len(self.mechanisms)
        if self.budget_proportions is None:
            self.budget_proportions = [1.0 / size] * size
        shares = [
            checks.real("budget_proportions", share)
            for share in self._each("budget_proportions", self.budget_proportions)
        ]
        exact = sum(map(Fraction, shares), Fraction(0))
        if not all(0.0 < share <= 1.0 for share in shares) or abs(exact - 1) > SLACK:
            raise ValueError(f"budget_proportions must be positive with the sum 1, got {shares!r}")
        alone = self._noises([epsilon * share for share in shares], [delta * s for s in shares])
        factor = proven_noise(
            lambda scale: self._made([scale * noise for noise in alone]), epsilon, delta
        )
        self.noise_parameters = [factor * noise for noise in alone]

    def _noises(self, epsilons: list[Any], deltas: list[Any]) -> list[float]:
        """Noise of each mechanism alone for its ε and δ."""
        found = []
        for i, (epsilon, delta) in enumerate(zip(epsilons, deltas, strict=True)):
            checks.non_negative("mechanism_epsilons", epsilon)
            _delta("mechanism_deltas", delta)
            found.append(proven_noise(partial(self._one, i), epsilon, delta))
        return found

    def _one(self, i: int, noise: float) -> Mechanism:
        rates = self._each("sampling_probability", self.sampling_probability)
        steps = self._each("num_compositions", self.num_compositions)
        return _of_cohorts(self.mechanisms[i], noise, rates[i], steps[i])

    def _made(self, noises: Sequence[float]) -> Mechanism:
        return compose(*(self._one(i, noise) for i, noise in enumerate(noises)))

    def composition(self) -> Mechanism:
        """Return the composition of all mechanisms, for the questions of `pyengine`."""
        assert self.noise_parameters is not None
        return self._made(self.noise_parameters)

    @property
    def assumption(self) -> str:
        """How cohorts must have been drawn for ε and δ to hold."""
        return assumed(self.composition())

    @property
    def cohort_noise_parameters(self) -> list[float]:
        """Noise that is added for a cohort: ``noise_parameters`` times ``noise_scale``."""
        assert self.noise_parameters is not None
        return [noise * self.noise_scale for noise in self.noise_parameters]


def _delta(name: str, value: Any) -> None:
    if not 0.0 < checks.real(name, value) < 1.0:
        raise ValueError(f"{name} must lie in (0, 1), got {value!r}")
