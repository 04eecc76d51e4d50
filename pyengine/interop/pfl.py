"""A privacy accountant for pfl-research: the dataclass that its noise mechanisms are made from."""

from __future__ import annotations

from dataclasses import dataclass

from pyengine import _checks
from pyengine.interop.histories import assume_poisson, assumed
from pyengine.mechanisms import GaussianMechanism, LaplaceMechanism, Mechanism
from pyengine.mechanisms.words import worded
from pyengine.proven import proven_bounds, proven_noise

__all__ = ["PyenginePrivacyAccountant"]

NOISE = {"gaussian": GaussianMechanism, "laplace": LaplaceMechanism}


@dataclass
class PyenginePrivacyAccountant:
    """``PrivacyAccountant`` of pfl-research with proven bounds; it needs no pfl.

    Of ``epsilon``, ``delta`` and ``noise_parameter`` one is left out and found: ε and δ are proven
    upper bounds, noise is proven to meet both.  If all three are given, they are checked.

    Parameters
    ----------
    num_compositions : int
        Number of steps, >= 1.
    sampling_probability : float
        Probability with which a user takes part in a step, in [0, 1].
    mechanism : {"gaussian", "laplace"}
        Noise of one step; capitals are no matter.
    epsilon : float, optional
        In [0, ∞).
    delta : float, optional
        In (0, 1).
    noise_parameter : float, optional
        Standard deviation of Gaussian noise or scale of Laplace noise, in units of the clipping
        bound, in (0, ∞).
    noise_scale : float
        What noise is multiplied with where it is added, in (0, 1].  As in pfl-research, guarantees
        are those of ``noise_parameter``: a scale below 1 is for experiments.
    min_bound_noise_parameter, max_bound_noise_parameter : float, optional
        Of no use here: the search finds its bracket.

    Raises
    ------
    ValueError
        For an argument outside its domain, fewer than two of the three, or three of which the noise
        does not meet the others.
    AccuracyError
        Where nothing can be proven.

    Notes
    -----
    Both kinds of noise are Poisson-sampled, as in pfl-research's PLD accountant; its other two do
    not sample Laplace noise.  Adjacency is ``add_remove``, of users.  How cohorts are drawn is not
    seen here: `pyengine.errors.SamplingWarning` says so once.

    Examples
    --------
    >>> from pyengine.interop.pfl import PyenginePrivacyAccountant
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
        self.mechanism = _checks.choice("mechanism", str(self.mechanism).lower(), tuple(NOISE))
        _checks.count("num_compositions", self.num_compositions, least=1)
        _checks.rate("sampling_probability", self.sampling_probability)
        if not 0.0 < _checks.real("noise_scale", self.noise_scale) <= 1.0:
            raise ValueError(f"noise_scale must lie in (0, 1], got {self.noise_scale!r}")
        if self.epsilon is not None:
            _checks.non_negative("epsilon", self.epsilon)
        if self.delta is not None and not 0.0 < _checks.real("delta", self.delta) < 1.0:
            raise ValueError(f"delta must lie in (0, 1), got {self.delta!r}")
        if self.noise_parameter is not None:
            _checks.positive("noise_parameter", self.noise_parameter)
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
        step = NOISE[self.mechanism](noise).poisson_sampled(self.sampling_probability)
        own = step.words
        batches = own.batches.replace("record", "user").replace("batch", "cohort")
        said = worded(step, own._replace(batches=batches, unit="one user"))
        return said.composed(self.num_compositions)

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
