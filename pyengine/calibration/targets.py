"""Privacy targets for `pyengine.calibrate` and budgets.

Targets are immutable and compare by value.  Their numbers may be arrays, which broadcast together:
one target for each entry.  A mechanism meets a target if the engine's less favourable bound does.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np

from pyengine import api
from pyengine._support import checks
from pyengine._support.decimals import written
from pyengine.calibration.gaussian_dp import least_mu, log_excess
from pyengine.engines.answers import Answering
from pyengine.mechanisms import Mechanism, label_of, steps_of
from pyengine.mechanisms.report import guaranteed, is_least
from pyengine.mechanisms.threat_models import ThreatModel
from pyengine.numerics import functions as fn
from pyengine.special import log_ndtr, ndtr, ndtri

if TYPE_CHECKING:
    from typing_extensions import Self

__all__ = ["Advantage", "EpsilonDelta", "Gamma", "GaussianDP", "Target", "TradeOff"]

Real = Any  # a float, or an array of floats
BOTTOM = -1000.0  # stands for the scale's -inf at an allowed 0: found figures keep their order
AT_LEAST = ("alpha", "beta", "kappa")  # figures that are rounded down to stay valid
NEWTON = 12  # steps for a distance that is a guess
MOST_ADDED = 2**1000  # of ε that are added
ROUGH = 1e-2  # relative width of the bounds of a figure far from what is allowed
Domains = dict[str, tuple[float, float]]


def single_target(value: Any) -> Target:
    """Return a value that is a target without arrays; a ValueError for any other value."""
    if not isinstance(value, Target) or value.shape:
        raise ValueError(
            f"target must be a single target of pyengine.targets, got {checks.shown(value)}"
        )
    return value


def refuse_the_least(mechanism: Mechanism | Answering) -> None:
    """Refuse a mechanism whose answers are lower bounds of what leaks."""
    if isinstance(mechanism, Answering):
        guaranteed(mechanism.labels("add_remove"))
    elif is_least(mechanism):
        guaranteed(label_of(mechanism))


def _gap(found: float, allowed: float, scale: Callable[[float], float]) -> float:
    """Difference on an increasing scale; <= 0 exactly where found <= allowed."""
    first, second = scale(found), max(scale(allowed), BOTTOM)
    if found <= allowed:  # also where rounding on the scale has it otherwise
        return -math.inf if math.isinf(second) else min(first - second, 0.0)
    return max(first - second, math.ulp(0.0))


def _log(x: float) -> float:
    return fn.log(x) if x > 0.0 else -math.inf


def _probit(x: float) -> float:
    """Φ⁻¹, on which the figures of a Gaussian are nearly linear in its parameters."""
    return float(ndtri(x))


def _distance_of(epsilon: float, probit: float) -> float:
    """The distance of two normal laws of variance 1 whose profile at ε is Φ(probit); a guess.

    By Newton's method on logarithms; NaN where that ends nowhere.
    """
    goal = log_ndtr(probit)
    mu = probit + math.sqrt(probit * probit + 2.0 * epsilon)  # where the first term alone is that
    if epsilon == 0.0:
        return 2.0 * _probit(0.5 + 0.5 * fn.exp(goal))
    for _ in range(NEWTON):
        if not 0.0 < mu < math.inf:
            return math.nan
        place = mu / 2.0 - epsilon / mu
        first = log_ndtr(place)
        rest = -fn.expm1(epsilon + log_ndtr(place - mu) - first)
        if rest <= 0.0:
            return math.nan
        log = first + fn.log(rest)
        # the profile's derivative by the distance is the normal density at that place
        slope = mu * fn.exp(-0.5 * place * place - log) / math.sqrt(2.0 * math.pi)
        step = min(max((goal - log) / slope, -2.0), 2.0) if slope > 0.0 else math.nan
        mu *= fn.exp(step)
        if abs(step) < 1e-10:
            return mu
    return math.nan


@dataclass(frozen=True, eq=False, repr=False)
class Target:
    """Base of all targets.

    Parameters
    ----------
    adjacency, method, threat_model, tolerance
        As in the public function that the target refers to; keyword-only.
    bounds : {"estimated", True}
        Whether the decision uses bounds that may be estimates, or only (True) bounds that are
        proven, rounding included; keyword-only.
    """

    adjacency: str = field(default="add_remove", kw_only=True)
    method: str = field(default="auto", kw_only=True)
    threat_model: str | ThreatModel = field(default="dp", kw_only=True)
    tolerance: float | None = field(default=None, kw_only=True)
    bounds: bool | str = field(default=api.ESTIMATED, kw_only=True)

    # The numbers of a target, each with the ends of its domain, and the one that is compared.
    _domains: ClassVar[Domains] = {}
    _figure: ClassVar[str] = ""

    def __post_init__(self) -> None:
        for name, (low, high) in self._domains.items():
            array = checks.real_array(name, getattr(self, name), low, high)
            array.flags.writeable = False
            object.__setattr__(self, name, array if array.shape else float(array))
        try:
            np.broadcast_shapes(*(np.shape(getattr(self, name)) for name in self._domains))
        except ValueError:
            shapes = ", ".join(f"{name} {np.shape(getattr(self, name))}" for name in self._domains)
            raise ValueError(f"the arrays of a target must broadcast together: {shapes}") from None
        api.check_words(self.adjacency, self.method, self.threat_model, self.tolerance)
        object.__setattr__(self, "bounds", api.kind_of_bounds(self.bounds))
        if self.bounds is False:
            raise ValueError(f"bounds must be True or {api.ESTIMATED!r} for a target, got False")

    def _key(self) -> tuple[Any, ...]:
        values = (getattr(self, item.name) for item in fields(self))
        flat = (v.tolist() if isinstance(v, np.ndarray) else v for v in values)
        return (type(self).__name__, *(repr(v) if isinstance(v, list) else v for v in flat))

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Target) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the arrays in the target, broadcast together; () for a single target."""
        return np.broadcast_shapes(*(np.shape(getattr(self, name)) for name in self._domains))

    def at(self, index: tuple[int, ...], shape: tuple[int, ...] | None = None) -> Target:
        """Return the single target at an index of its shape, or of a larger one."""
        whole = self.shape if shape is None else shape
        numbers: dict[str, Any] = {
            name: float(np.broadcast_to(getattr(self, name), whole)[index])
            for name in self._domains
        }
        return replace(self, **numbers)

    def gathered(self, single: list[Target], shape: tuple[int, ...]) -> Target:
        """Return one target of arrays from single ones of this kind."""
        numbers: dict[str, Any] = {
            name: np.array([getattr(each, name) for each in single]).reshape(shape)
            for name in self._domains
        }
        return replace(self, **numbers)

    def _keywords(self) -> dict[str, Any]:
        names = ("adjacency", "method", "threat_model", "tolerance", "bounds")
        return {name: getattr(self, name) for name in names}

    def __repr__(self) -> str:
        numbers = [f"{name}={getattr(self, name)!r}" for name in self._domains]
        words = [
            f"{item.name}={getattr(self, item.name)!r}"
            for item in fields(self)
            if item.name not in self._domains and getattr(self, item.name) != item.default
        ]
        return f"{type(self).__name__}({', '.join(numbers + words)})"

    def in_words(self) -> str:
        """Return the numbers of a target, for messages: "epsilon 1, delta 1e-6"."""
        return ", ".join(f"{name} {written(getattr(self, name), '.10g')}" for name in self._domains)

    def called(self) -> str:
        """Return the target as a call, for messages: "EpsilonDelta(epsilon=1, delta=1e-6)"."""
        return f"{type(self).__name__}({self.in_words().replace(' ', '=').replace(',=', ', ')})"

    def excess(self, mechanism: Mechanism) -> float:
        """Signed distance of a mechanism from a single target, on a smooth scale.

        Parameters
        ----------
        mechanism : Mechanism
            The mechanism.

        Returns
        -------
        float
            At most 0 if and only if the target is met by the engine's safe bound; -inf or inf if
            the figures are at an end of the scale.

        Raises
        ------
        ValueError
            If the mechanism has only lower bounds of the privacy loss, which are no guarantee.
        """
        refuse_the_least(mechanism)
        return self.judged(mechanism)

    def judged(self, mechanism: Mechanism) -> float:
        """As `excess`, of a mechanism whose answers are guarantees."""
        return -math.inf if self._asks_nothing() else self._excess(mechanism)

    def roughly(self) -> Target:
        """Return the same target, judged to some digits unless an accuracy is asked for."""
        is_free = self.tolerance is None and self.method == "auto"
        return replace(self, tolerance=ROUGH, bounds=api.ESTIMATED) if is_free else self

    def is_monotone(self) -> bool:
        """Whether of two mechanisms the more private one never has the larger excess."""
        return True

    def _asks_nothing(self) -> bool:
        """Whether every mechanism meets the target."""
        raise NotImplementedError

    def distance(self) -> float:
        """About the total variation distance up to which every mechanism meets a single target."""
        raise NotImplementedError

    def slip(self) -> str:
        """Return what may be a slip in a single target, in a sentence; else an empty string."""
        return ""

    def _found(self, mechanism: Mechanism) -> float:
        """The mechanism's own figure, on its safe side."""
        raise NotImplementedError

    def _excess(self, mechanism: Mechanism) -> float:
        return _gap(self._found(mechanism), getattr(self, self._figure), _probit)

    def gaussian(self, excess: float) -> float:
        """Return the distance of the Gaussian mechanism with an excess over a single target.

        NaN where that is not known; a calibration begins with it.
        """
        del excess
        return math.nan

    def achieved(self, mechanism: Mechanism) -> Self:
        """Return the tightest single target of this kind that a mechanism meets.

        Parameters
        ----------
        mechanism : Mechanism
            The mechanism.

        Returns
        -------
        Target
            This target with the mechanism's figure, rounded to the safe side.

        Raises
        ------
        ValueError
            As for `excess`.
        """
        refuse_the_least(mechanism)
        return self._achieved(mechanism)

    def _achieved(self, mechanism: Mechanism) -> Self:
        found: dict[str, Any] = {self._figure: self._found(mechanism)}
        return replace(self, **found)

    def is_met(self, mechanism: Mechanism) -> bool:
        """Return whether a mechanism meets a single target, by the engine's safe bound.

        Parameters
        ----------
        mechanism : Mechanism
            The mechanism.

        Returns
        -------
        bool
            True if the bound, and not only the value, meets the target.

        Raises
        ------
        ValueError
            As for `excess`.
        """
        return self.excess(mechanism) <= 0.0


@dataclass(frozen=True, eq=False, repr=False)
class EpsilonDelta(Target):
    """(ε, δ)-differential privacy: δ(ε) <= δ.

    Parameters
    ----------
    epsilon : array_like
        ε in [0, ∞].
    delta : array_like
        δ in [0, 1]; 0 means pure differential privacy.
    adjacency, method, threat_model, tolerance, bounds
        As in `Target`, and in `pyengine.delta`; keyword-only.
    """

    epsilon: Real
    delta: Real
    _domains: ClassVar[Domains] = {"epsilon": (0.0, math.inf), "delta": (0.0, 1.0)}

    def _asks_nothing(self) -> bool:
        return bool(self.epsilon == math.inf or self.delta == 1.0)

    def distance(self) -> float:
        """See `Target.distance`."""
        return float(self.delta)

    def slip(self) -> str:
        """See `Target.slip`: what asks nothing."""
        if self.delta == 1.0:
            swapped = " Were ε and δ swapped?" if self.epsilon <= 1.0 else ""
            return f"δ = 1 is no constraint.{swapped}"
        return "ε = inf is no constraint." if self.epsilon == math.inf else ""

    def _found(self, mechanism: Mechanism) -> float:
        """ε at δ = 0, else δ at ε: the figure that is compared."""
        if self.delta == 0.0:
            found = float(api.epsilon(mechanism, 0.0, **self._keywords()).upper)
            # parameters that add up to ε meet it, which the rounding of a bound would deny
            added = None if self.adjacency == "substitute" else _added(mechanism)
            return found if added is None else min(found, added)
        return float(api.delta(mechanism, self.epsilon, **self._keywords()).upper)

    def _excess(self, mechanism: Mechanism) -> float:
        found = self._found(mechanism)
        if self.delta == 0.0:
            return _gap(found, self.epsilon, _log)
        return _gap(found, self.delta, _probit)

    def gaussian(self, excess: float) -> float:
        """See `Target.gaussian`."""
        if self.delta == 0.0 or not math.isfinite(excess):
            return math.nan
        return _distance_of(self.epsilon, excess + _probit(self.delta))

    def _achieved(self, mechanism: Mechanism) -> Self:
        """δ at the target's ε, or ε where δ = 0."""
        found = self._found(mechanism)
        return replace(self, epsilon=found) if self.delta == 0.0 else replace(self, delta=found)


def _added(mechanism: Mechanism) -> float | None:
    """Sum of the parameters ε of releases that are ε-DP, rounded up once; None where others are."""
    total = Fraction(0)
    for step, number in steps_of(mechanism):
        if step.pure_epsilon is None:
            return None
        total += number * step.pure_epsilon
    near = float(total) if total < MOST_ADDED else math.inf
    return near if near >= total else math.nextafter(near, math.inf)


@dataclass(frozen=True, eq=False, repr=False)
class Gamma(Target):
    """Reconstruction robustness: γ(κ) <= γ.

    Parameters
    ----------
    kappa : array_like
        Success probability without the release, in [0, 1].
    gamma : array_like
        Largest success probability with the release, in [0, 1]; below ``kappa`` no mechanism
        meets the target.
    adjacency, method, threat_model, tolerance, bounds
        As in `Target`, and in `pyengine.gamma_bound`, whose adjacency is "add"; keyword-only.
    """

    kappa: Real
    gamma: Real
    adjacency: str = field(default="add", kw_only=True)
    _domains: ClassVar[Domains] = {"kappa": (0.0, 1.0), "gamma": (0.0, 1.0)}
    _figure: ClassVar[str] = "gamma"

    def _asks_nothing(self) -> bool:
        return bool(self.gamma == 1.0)

    def distance(self) -> float:
        """See `Target.distance`."""
        return float(self.gamma - self.kappa)

    def slip(self) -> str:
        """See `Target.slip`: what asks nothing, or more than no release at all can give."""
        if self.gamma == 1.0:
            return "γ = 1 is no constraint."
        below = self.gamma < self.kappa
        return "γ is below κ, where no mechanism is. Were κ and γ swapped?" if below else ""

    def _found(self, mechanism: Mechanism) -> float:
        return float(api.gamma_bound(mechanism, self.kappa, **self._keywords()).upper)

    def gaussian(self, excess: float) -> float:
        """See `Target.gaussian`."""
        return _probit(self.gamma) - _probit(self.kappa) + excess


@dataclass(frozen=True, eq=False, repr=False)
class TradeOff(Target):
    """A point below the trade-off function: T(α) >= β.

    Parameters
    ----------
    alpha, beta : array_like
        Level α of the test and smallest type II error β, in [0, 1]; with β > 1 - α no mechanism
        meets the target.
    adjacency, method, threat_model, tolerance, bounds
        As in `Target`, and in `pyengine.trade_off`; keyword-only.
    """

    alpha: Real
    beta: Real
    _domains: ClassVar[Domains] = {"alpha": (0.0, 1.0), "beta": (0.0, 1.0)}
    _figure: ClassVar[str] = "beta"

    def _asks_nothing(self) -> bool:
        return bool(self.beta == 0.0)

    def distance(self) -> float:
        """See `Target.distance`."""
        return float(1.0 - self.alpha - self.beta)

    def slip(self) -> str:
        """See `Target.slip`: what asks nothing, or more than no release at all can give."""
        if self.beta == 0.0:
            return "β = 0 is no constraint."
        return "β is above 1 - α, where no mechanism is." if self.beta > 1.0 - self.alpha else ""

    def _found(self, mechanism: Mechanism) -> float:
        return float(api.trade_off(mechanism, self.alpha, **self._keywords()).lower)

    def _excess(self, mechanism: Mechanism) -> float:
        return _gap(-self._found(mechanism), -self.beta, lambda x: -_probit(-x))

    def gaussian(self, excess: float) -> float:
        """See `Target.gaussian`."""
        return excess - _probit(self.beta) - _probit(self.alpha)


@dataclass(frozen=True, eq=False, repr=False)
class Advantage(Target):
    """Membership advantage: 1 - α - T(α) <= η for all α, which is δ(0) <= η.

    Parameters
    ----------
    eta : array_like
        Largest advantage η, in [0, 1].
    adjacency, method, threat_model, tolerance, bounds
        As in `Target`, and in `pyengine.delta`; keyword-only.

    Notes
    -----
    The largest 1 - α - β over all tests is the total variation distance of both laws.
    """

    eta: Real
    _domains: ClassVar[Domains] = {"eta": (0.0, 1.0)}
    _figure: ClassVar[str] = "eta"

    def _asks_nothing(self) -> bool:
        return bool(self.eta == 1.0)

    def distance(self) -> float:
        """See `Target.distance`."""
        return float(self.eta)

    def slip(self) -> str:
        """See `Target.slip`: what asks nothing."""
        return "η = 1 is no constraint." if self.eta == 1.0 else ""

    def _found(self, mechanism: Mechanism) -> float:
        return float(api.delta(mechanism, 0.0, **self._keywords()).upper)

    def gaussian(self, excess: float) -> float:
        """See `Target.gaussian`."""
        return 2.0 * _probit(0.5 + 0.5 * float(ndtr(excess + _probit(self.eta))))


@dataclass(frozen=True, eq=False, repr=False)
class GaussianDP(Target):
    """Gaussian differential privacy: T >= G_μ everywhere, up to a slack in δ.

    Parameters
    ----------
    mu : array_like
        μ in [0, ∞].
    slack : array_like
        Slack in δ, in [0, 1].  0, the default, requires T(α) >= G_μ(α) at every α; otherwise
        δ(ε) <= max(δ_μ(ε), slack) is required at every ε.
    adjacency, method, threat_model, tolerance, bounds
        As in `Target`, and in `pyengine.delta`; keyword-only.  Since T_add and T_remove are mirror
        images and G_μ is symmetric, "add", "remove" and "add_remove" are equivalent.

    Raises
    ------
    ValueError
        If ``slack=0`` is used with a mechanism that has unbounded losses and is not made of
        Gaussian steps: its tails cannot be checked completely.

    Notes
    -----
    A composition of Gaussian steps, sampled or not, has T >= G_μ everywhere if and only if
    μ² >= Σ 1/noise², over the steps with positive sampling probability: far out in the tail,
    sampling does not help.  A slack excludes this tail.  See docs/calibration for the derivation,
    and for how all ε are covered.

    References
    ----------
    J. Dong, A. Roth, W. Su, Gaussian Differential Privacy, JRSS B 84 (2022), Definition 2.6 and
    Corollary 2.13.
    """

    mu: Real
    slack: Real = 0.0
    _domains: ClassVar[Domains] = {"mu": (0.0, math.inf), "slack": (0.0, 1.0)}
    _figure: ClassVar[str] = "mu"

    def is_monotone(self) -> bool:
        """With a slack only the sign of the excess is, as profiles are compared by logarithms."""
        return bool(self.slack == 0.0)

    def _asks_nothing(self) -> bool:
        return bool(self.mu == math.inf or self.slack == 1.0)

    def distance(self) -> float:
        """See `Target.distance`."""
        return float(self.slack)

    def slip(self) -> str:
        """See `Target.slip`: what asks nothing."""
        if self.slack == 1.0:
            return "A slack of 1 is no constraint. Were μ and the slack swapped?"
        return "μ = inf is no constraint." if self.mu == math.inf else ""

    def _excess(self, mechanism: Mechanism) -> float:
        return log_excess(mechanism, self.mu, self.slack, **self._keywords())

    def _found(self, mechanism: Mechanism) -> float:
        return least_mu(mechanism, self.mu, self.slack, **self._keywords())
