"""The questions: trade-off function, reconstruction bound, privacy profile and its inverse.

They take mechanisms, compositions, and objects of other libraries that describe one.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, overload

import numpy as np
import numpy.typing as npt

from pyengine._objects import Guarded
from pyengine._support import checks
from pyengine.api.asking import ESTIMATED as ESTIMATED
from pyengine.api.asking import QUESTIONS as QUESTIONS
from pyengine.api.asking import Bounds, ask
from pyengine.api.asking import Question as Question
from pyengine.api.asking import answers as answers
from pyengine.api.asking import check_words as check_words
from pyengine.api.asking import kind_of_bounds as kind_of_bounds
from pyengine.mechanisms import Composition, Mechanism, as_mechanism
from pyengine.mechanisms import compose as composed_mechanism
from pyengine.mechanisms.threat_models import ThreatModel

__all__ = ["Bounds", "compose", "delta", "epsilon", "gamma_bound", "trade_off"]

FloatArray = npt.NDArray[np.float64]

if TYPE_CHECKING:
    from typing_extensions import Unpack

    from pyengine.api.typing import (
        Array,
        Described,
        Either,
        LabelledT,
        Plain,
        Proven,
        Scalar,
        Several,
    )


def trade_off_function(name: str, given: Any) -> Callable[[FloatArray], FloatArray]:
    """Return α ↦ β(α) of a mechanism, or a given function with checks of its values."""
    mechanism = as_mechanism(given)
    if mechanism is not None:
        return lambda alpha: np.asarray(trade_off(mechanism, alpha), dtype=np.float64)
    if not callable(given) or isinstance(given, type):
        raise ValueError(f"{name} must be a Mechanism or a function, got {checks.shown(given)}")
    given = Guarded(given)

    def checked(alpha: FloatArray) -> FloatArray:
        try:
            beta = given(alpha)
        except (TypeError, ValueError) as error:  # a function for single numbers
            raise ValueError(
                f"{name} must take arrays of alpha, and refused one: {error}"
            ) from error
        return checks.real_array(f"{name}(alpha)", beta, 0.0, 1.0)

    return checked


@overload
def trade_off(mechanism: Several, alpha: Scalar | Array, **how: Unpack[Plain]) -> FloatArray: ...
@overload
def trade_off(
    mechanism: Several, alpha: Scalar | Array, **how: Unpack[Proven]
) -> Bounds[FloatArray]: ...
@overload
def trade_off(mechanism: Described, alpha: Scalar, **how: Unpack[Plain]) -> float: ...
@overload
def trade_off(mechanism: Described, alpha: LabelledT, **how: Unpack[Plain]) -> LabelledT: ...  # type: ignore[overload-overlap]
@overload
def trade_off(mechanism: Described, alpha: Array, **how: Unpack[Plain]) -> FloatArray: ...
@overload
def trade_off(mechanism: Described, alpha: Scalar, **how: Unpack[Proven]) -> Bounds[float]: ...
@overload
def trade_off(  # type: ignore[overload-overlap]
    mechanism: Described, alpha: LabelledT, **how: Unpack[Proven]
) -> Bounds[LabelledT]: ...
@overload
def trade_off(mechanism: Described, alpha: Array, **how: Unpack[Proven]) -> Bounds[FloatArray]: ...
@overload
def trade_off(mechanism: Described, alpha: Scalar | Array, **how: Unpack[Either]) -> Any: ...
def trade_off(
    mechanism: Described | Several,
    alpha: Any,
    *,
    adjacency: str = "add_remove",
    method: str = "auto",
    threat_model: str | ThreatModel = "dp",
    tolerance: float | None = None,
    bounds: bool | str = False,
) -> Any:
    """Smallest type-II error β(α) of a level-α test that a record took part.

    Parameters
    ----------
    mechanism : Mechanism, Mechanisms or list of Mechanism
        What is released.  Several mechanisms are broadcast against the argument; each answer is the
        same, bit for bit, as if it were asked alone.  All questions also take objects that describe
        a mechanism: those of other libraries, callable privacy profiles, and samples of a trade-off
        function (see `pyengine.interop`).
    alpha : array_like
        Levels of the test, in [0, 1].
    adjacency : {"add_remove", "add", "remove", "substitute"}
        ``add``: H0 is the data without the record; ``remove``: H0 is the data with it;
        ``add_remove``: lower convex hull of both functions; ``substitute``: the record is replaced
        by another one.
    method : {"auto", "certified", "closed_form", "exact", "lattice", "edgeworth", "clt", \
"monte_carlo"}
        The engine.  ``auto`` takes one with proven bounds if there is one, and never one of the
        last three, which are approximations from papers.  ``certified`` only takes engines whose
        bounds are proven, floating point included.  ``spectral`` and ``convolution``, engines of
        earlier versions, mean ``auto``.
    threat_model : {"dp", "relaxed"} or ThreatModel
        ``dp``: the adversary of differential privacy, who knows everything but whether the record
        took part; ``relaxed``: one who does not know the record, see `pyengine.threat_models`.
    tolerance : float, optional
        Largest relative width of the bounds, > 0; for ε, that of δ at it.  It holds for every
        engine: an answer that is not known that well is refused, also where only bounds are known
        (several random steps of an epoch, ``substitute`` without replacement).  Values below 1e-300
        count as 0.  By default the accuracy is that of the Notes.
    bounds : bool or "estimated"
        True returns proven `Bounds`, floating point included, or raises AccuracyError if no engine
        proves any.  ``"estimated"`` returns `Bounds` of the value, which are estimates if the value
        is one.  A value without bounds is that of the proven answer, except for epochs of random
        allocation and where nothing is proven.

    Returns
    -------
    float, ndarray of the shape of ``alpha`` (of several mechanisms the broadcast one), or Bounds
        β(α), with the accuracy of the Notes.

    Raises
    ------
    ValueError
        For an argument outside its domain, or an adjacency that the mechanism does not define.
    AccuracyError
        If no engine reaches that accuracy, or proves bounds if ``bounds=True``.

    Notes
    -----
    Accuracy, relative to the value (measurements are in the docs, accuracy):

    - Gaussian noise on full batches, and one step of it on a Poisson sample or without
      replacement: error below 1e-11, usually 1e-15, bounds proven (theory/closed_form).
    - Gaussian noise in several steps, on Poisson samples (DP-SGD) or without replacement, and their
      mixtures, groups, DP-SGD under ``substitute`` and truncated Poisson samples, composed with
      each other: bounds proven, mostly 1e-12 to 1e-10 apart (theory/gaussian, theory/sector_laws).
      In far tails, for small sampling rates or little noise, they come from the lattice, at most
      1e-4 apart, or up to 1e-2 if rounding allows no less and no ``tolerance`` is set.
    - Epochs of random allocation, by themselves and with Gaussian steps: error below 1e-11,
      estimated; bounds are proven, mostly 1e-12 to 1e-9 apart (theory/sector_laws), and 1e-5 to
      1e-3 for more than 12,000 steps or little noise (theory/epochs).  With other steps the value
      lies between these bounds and is no more accurate.
    - One step of any other mechanism, short sums of losses with finitely many values (randomized
      response, the generic mechanism, probability vectors), and both together: error below 1e-9,
      bounds proven (theory/finite).  Near the level from which on β is 0, and near the largest
      finite loss, masses cancel and values are less accurate: β to 1e-15 of 1 - α, δ like that of
      an ε within 1e-12.  The bounds show it, and ``tolerance`` refuses such values.
      Masses of densities are integrals: their bounds are estimates, β is known to 1e-12 of 1 - α,
      and mass beyond quantiles of 1e-299 is not seen.
    - Several smooth steps of these kinds with steps of up to 128 losses in all (DP-SGD and
      randomized response), under ``add``, ``remove`` and ``add_remove``: bounds proven, mostly
      1e-11 apart, else those of the lattice (theory/gaussian).
    - Everything else, by the lattice (other noise in many steps, compositions of Gaussian with
      other noise): bounds proven and at most 1e-4 apart, or ``tolerance`` (1e-2 as above); the
      value between them is no more accurate (theory/lattice).

    Arrays of 2,048 or more values for Gaussian noise and its mixtures, without ``bounds`` and
    ``tolerance``, are interpolated where values lie close together: they differed from those of
    single floats by a relative 1e-12 at most in measurements (for ε, relative to the largest value
    nearby).

    For levels near 1 the result keeps its relative accuracy: 1 - α is exact there.  Under
    substitution without replacement only bounds are known for more than one step, and values are
    the safe ones: a lower bound of β, upper bounds of γ, δ and ε (theory/adjacency).

    References
    ----------
    J. Dong, A. Roth, W. Su, Gaussian Differential Privacy, JRSS B 84 (2022), Definitions 2.1 and
    F.1.

    Examples
    --------
    >>> import pyengine as pe
    >>> mechanism = pe.dp_sgd(noise_multiplier=1.0, sampling_probability=0.01, steps=1000)
    >>> round(pe.trade_off(mechanism, 0.1, adjacency="add"), 12)
    0.805798868372
    """
    return ask("trade_off", mechanism, alpha, adjacency, method, threat_model, tolerance, bounds)


@overload
def gamma_bound(mechanism: Several, kappa: Scalar | Array, **how: Unpack[Plain]) -> FloatArray: ...
@overload
def gamma_bound(
    mechanism: Several, kappa: Scalar | Array, **how: Unpack[Proven]
) -> Bounds[FloatArray]: ...
@overload
def gamma_bound(mechanism: Described, kappa: Scalar, **how: Unpack[Plain]) -> float: ...
@overload
def gamma_bound(mechanism: Described, kappa: LabelledT, **how: Unpack[Plain]) -> LabelledT: ...  # type: ignore[overload-overlap]
@overload
def gamma_bound(mechanism: Described, kappa: Array, **how: Unpack[Plain]) -> FloatArray: ...
@overload
def gamma_bound(mechanism: Described, kappa: Scalar, **how: Unpack[Proven]) -> Bounds[float]: ...
@overload
def gamma_bound(  # type: ignore[overload-overlap]
    mechanism: Described, kappa: LabelledT, **how: Unpack[Proven]
) -> Bounds[LabelledT]: ...
@overload
def gamma_bound(
    mechanism: Described, kappa: Array, **how: Unpack[Proven]
) -> Bounds[FloatArray]: ...
@overload
def gamma_bound(mechanism: Described, kappa: Scalar | Array, **how: Unpack[Either]) -> Any: ...
def gamma_bound(
    mechanism: Described | Several,
    kappa: Any,
    *,
    adjacency: str = "add",
    method: str = "auto",
    threat_model: str | ThreatModel = "dp",
    tolerance: float | None = None,
    bounds: bool | str = False,
) -> Any:
    """Reconstruction robustness γ(κ): the largest success probability at prior success κ.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.
    kappa : array_like
        Success probability of the adversary without the release, in [0, 1].
    adjacency : {"add", "remove", "add_remove", "substitute"}
        As in `trade_off`.  The default has H0 without the record, as in the papers.
    method, threat_model, tolerance, bounds
        As in `trade_off`.

    Returns
    -------
    float, ndarray of the shape of ``kappa``, or Bounds
        γ = 1 - T(κ) >= κ, with the accuracy of the Notes of `trade_off`.

    Raises
    ------
    ValueError
        For an argument outside its domain.
    AccuracyError
        If no engine reaches that accuracy.

    Notes
    -----
    γ(κ) = sup{Q(E) : P(E) <= κ} bounds the success of any reconstruction attack whose success
    without the release is at most κ.

    References
    ----------
    J. Hayes, S. Mahloujifar, B. Balle, Bounding Training Data Reconstruction in DP-SGD (2023),
    Theorem 2; G. Kaissis, J. Hayes, A. Ziller, D. Rueckert, Bounding data reconstruction attacks
    with the hypothesis testing interpretation of differential privacy (2023).

    Examples
    --------
    >>> import pyengine as pe
    >>> mechanism = pe.dp_sgd(noise_multiplier=1.0, sampling_probability=0.01, steps=1000)
    >>> round(pe.gamma_bound(mechanism, 1e-3), 12)
    0.004068447881
    """
    return ask("gamma_bound", mechanism, kappa, adjacency, method, threat_model, tolerance, bounds)


@overload
def delta(mechanism: Several, epsilon: Scalar | Array, **how: Unpack[Plain]) -> FloatArray: ...
@overload
def delta(
    mechanism: Several, epsilon: Scalar | Array, **how: Unpack[Proven]
) -> Bounds[FloatArray]: ...
@overload
def delta(mechanism: Described, epsilon: Scalar, **how: Unpack[Plain]) -> float: ...
@overload
def delta(mechanism: Described, epsilon: LabelledT, **how: Unpack[Plain]) -> LabelledT: ...  # type: ignore[overload-overlap]
@overload
def delta(mechanism: Described, epsilon: Array, **how: Unpack[Plain]) -> FloatArray: ...
@overload
def delta(mechanism: Described, epsilon: Scalar, **how: Unpack[Proven]) -> Bounds[float]: ...
@overload
def delta(mechanism: Described, epsilon: LabelledT, **how: Unpack[Proven]) -> Bounds[LabelledT]: ...  # type: ignore[overload-overlap]
@overload
def delta(mechanism: Described, epsilon: Array, **how: Unpack[Proven]) -> Bounds[FloatArray]: ...
@overload
def delta(mechanism: Described, epsilon: Scalar | Array, **how: Unpack[Either]) -> Any: ...
def delta(
    mechanism: Described | Several,
    epsilon: Any,
    *,
    adjacency: str = "add_remove",
    method: str = "auto",
    threat_model: str | ThreatModel = "dp",
    tolerance: float | None = None,
    bounds: bool | str = False,
) -> Any:
    """Privacy profile δ(ε): the smallest δ for which the mechanism is (ε, δ)-DP.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.
    epsilon : array_like
        In [0, ∞].
    adjacency : {"add_remove", "add", "remove", "substitute"}
        ``add``: divergence of the data without the record from the data with it, H(without‖with);
        ``remove``: H(with‖without); ``add_remove``: the larger of both; ``substitute``: the record
        is replaced by another one.
    method, threat_model, tolerance, bounds
        As in `trade_off`.

    Returns
    -------
    float, ndarray of the shape of ``epsilon``, or Bounds
        δ(ε), with the accuracy of the Notes of `trade_off`.

    Raises
    ------
    ValueError
        For an argument outside its domain.
    AccuracyError
        If no engine reaches that accuracy.

    References
    ----------
    C. J. Lebeda, M. Regehr, G. Kamath, T. Steinke, Avoiding Pitfalls for Privacy Accounting of
    Subsampled Mechanisms under Composition (2024), Section 2.

    Examples
    --------
    >>> import pyengine as pe
    >>> mechanism = pe.dp_sgd(noise_multiplier=0.8, sampling_probability=0.001, steps=10_000)
    >>> print(f"{pe.delta(mechanism, 1.0):.10e}")
    5.3195913780e-07
    """
    return ask("delta", mechanism, epsilon, adjacency, method, threat_model, tolerance, bounds)


@overload
def epsilon(mechanism: Several, delta: Scalar | Array, **how: Unpack[Plain]) -> FloatArray: ...
@overload
def epsilon(
    mechanism: Several, delta: Scalar | Array, **how: Unpack[Proven]
) -> Bounds[FloatArray]: ...
@overload
def epsilon(mechanism: Described, delta: Scalar, **how: Unpack[Plain]) -> float: ...
@overload
def epsilon(mechanism: Described, delta: LabelledT, **how: Unpack[Plain]) -> LabelledT: ...  # type: ignore[overload-overlap]
@overload
def epsilon(mechanism: Described, delta: Array, **how: Unpack[Plain]) -> FloatArray: ...
@overload
def epsilon(mechanism: Described, delta: Scalar, **how: Unpack[Proven]) -> Bounds[float]: ...
@overload
def epsilon(mechanism: Described, delta: LabelledT, **how: Unpack[Proven]) -> Bounds[LabelledT]: ...  # type: ignore[overload-overlap]
@overload
def epsilon(mechanism: Described, delta: Array, **how: Unpack[Proven]) -> Bounds[FloatArray]: ...
@overload
def epsilon(mechanism: Described, delta: Scalar | Array, **how: Unpack[Either]) -> Any: ...
def epsilon(
    mechanism: Described | Several,
    delta: Any,
    *,
    adjacency: str = "add_remove",
    method: str = "auto",
    threat_model: str | ThreatModel = "dp",
    tolerance: float | None = None,
    bounds: bool | str = False,
) -> Any:
    """Inverse of the privacy profile: the smallest ε for which the mechanism is (ε, δ)-DP.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.
    delta : array_like
        In [0, 1].
    adjacency : {"add_remove", "add", "remove", "substitute"}
        As in `delta`.
    method, threat_model, tolerance, bounds
        As in `trade_off`.

    Returns
    -------
    float, ndarray of the shape of ``delta``, or Bounds
        ε >= 0; inf if no finite ε has this δ.  The accuracy in the Notes of `trade_off` is that of
        δ at the returned ε; for the lattice, it is that of ε itself.

    Raises
    ------
    ValueError
        For an argument outside its domain.
    AccuracyError
        If no engine reaches that accuracy.

    Examples
    --------
    >>> import pyengine as pe
    >>> mechanism = pe.dp_sgd(noise_multiplier=0.8, sampling_probability=0.001, steps=10_000)
    >>> round(pe.epsilon(mechanism, 1e-7), 10)
    1.1707628432
    """
    return ask("epsilon", mechanism, delta, adjacency, method, threat_model, tolerance, bounds)


def compose(*mechanisms: Any) -> Composition:
    """Compose mechanisms that run on the same data, adaptively.

    Parameters
    ----------
    *mechanisms : Mechanism, or what describes one
        Any number of mechanisms; none gives the mechanism that releases nothing.  Objects of other
        libraries that describe steps are accepted, too: a privacy engine of Opacus, accountants,
        events and histories (see `pyengine.interop`).

    Returns
    -------
    Composition
        Equal steps are counted together; the order does not matter.

    Raises
    ------
    ValueError
        For objects that do not describe steps, such as a privacy profile.

    Examples
    --------
    >>> import pyengine as pe
    >>> warm_up, main = pe.dp_sgd(2.0, 0.01, 100), pe.dp_sgd(1.0, 0.02, 900)
    >>> pe.compose(warm_up, main).steps
    1000
    >>> history = [(2.0, 0.01, 100), (1.0, 0.02, 900)]
    >>> pe.compose(history, pe.LaplaceMechanism(10)).steps
    1001
    """
    return composed_mechanism(*map(_mechanism, mechanisms))


def _mechanism(thing: Any) -> Mechanism:
    found = as_mechanism(thing)
    if found is not None:
        return found
    from pyengine.api.recognise import mechanism_of

    return mechanism_of(thing)
