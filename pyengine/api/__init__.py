"""The questions: trade-off function, reconstruction bound, privacy profile and its inverse.

Asked of mechanisms, of their compositions and of what describes one.
"""

from __future__ import annotations

import math
from collections import namedtuple
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, Generic, Literal, NamedTuple, overload

import numpy as np
import numpy.typing as npt

from pyengine._fenv import Guarded
from pyengine._support import checks
from pyengine._support.caches import Cache, Epoch
from pyengine.engines.answers import Answer, Answering, Questions
from pyengine.engines.equal_steps import EqualQuestions, questions_of_run
from pyengine.engines.refusals import crossed
from pyengine.engines.registry import ADJACENCIES, METHODS, questions
from pyengine.engines.within import WithinTolerance
from pyengine.errors import AccuracyError, NotDefinedError
from pyengine.mechanisms import Composition, Mechanism, as_mechanism
from pyengine.mechanisms import compose as composed_mechanism
from pyengine.mechanisms.threat_models import DifferentialPrivacy, ThreatModel, threat_model_of

__all__ = ["Bounds", "compose", "delta", "epsilon", "gamma_bound", "trade_off"]

FloatArray = npt.NDArray[np.float64]


if TYPE_CHECKING:
    from typing_extensions import TypeVar, Unpack

    from pyengine.api.typing import (
        Array,
        BoundsWord,
        Described,
        LabelledT,
        Options,
        Scalar,
        Several,
    )

    Value_co = TypeVar("Value_co", covariant=True, default=Any)

    class _Three(NamedTuple, Generic[Value_co]):
        lower: Value_co
        value: Value_co
        upper: Value_co
else:
    from typing import TypeVar

    Value_co = TypeVar("Value_co", covariant=True)
    _Three = namedtuple("_Three", "lower value upper")  # generic ones are of Python 3.11


class Bounds(_Three[Value_co]):
    """A value between two bounds.

    Asked for by ``bounds=True``, lower <= truth <= upper is proven, floating point included,
    whichever engine answers: where none can prove it the question is refused.  Asked for by
    ``bounds="estimated"`` they are what the fastest engine says of its error, proven or not; each
    engine's page says what is behind an estimate and how it compares with truth.  Tables and the
    command line print the word, ``proven`` or ``estimate``, beside each value.
    """

    __slots__ = ()

    def _repr_html_(self) -> str:
        """The numbers as a notebook shows them: to 12 digits, the bounds rounded outwards."""
        from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN

        from pyengine._support.decimals import number
        from pyengine._support.markup import html_table

        sides = (ROUND_FLOOR, ROUND_HALF_EVEN, ROUND_CEILING)
        columns = [np.ravel(np.asarray(each))[:SHOWN] for each in self]
        rows = [
            [number(float(x), 12, side) for x, side in zip(row, sides, strict=True)]
            for row in zip(*columns, strict=True)
        ]
        size = np.asarray(self.value).size
        more = [f"and {size - SHOWN:,} more"] if size > SHOWN else []
        return html_table(self._fields, rows, more)


ESTIMATED = "estimated"  # the word for bounds that need no proof
SHOWN = 20  # rows of bounds that a notebook shows

# Prepared questions; contours and compositions are kept where they are made.
_prepared: Cache[Questions] = Cache(128, lambda _: 4096)


def _asked(
    mechanism: Any,
    adjacency: str,
    method: str,
    threat_model: str | ThreatModel,
    tolerance: Any,
    wanted: str | None = None,
) -> Questions:
    """Check the keywords and return what answers; the same object for the same question."""
    key: Any = (mechanism, adjacency, method, threat_model, tolerance)
    try:
        kept = _prepared.peek(key)
    except TypeError:  # not to be hashed: an object of another library, or a wrong word
        kept = key = None
    if kept is not None:
        return kept
    epoch = Epoch.current
    if key is not None and tolerance is None and threat_model == "dp":
        chosen = partial(
            questions,
            mechanism,
            adjacency=adjacency,
            method=method,
            threat_model=threat_model,
            tolerance=None,
            wanted=wanted,
        )
        run = questions_of_run(mechanism, adjacency, method, chosen)
        if run is not None:
            return _prepared.keep(key, run, epoch)
    tolerance = check_words(adjacency, method, threat_model, tolerance)
    own = as_mechanism(mechanism)
    model = threat_model_of(threat_model)
    found = own or _recognised(mechanism, adjacency, method, model, tolerance)
    if isinstance(found, Questions):
        if tolerance is None or isinstance(mechanism, Answering):
            return found  # it answers by itself
        return WithinTolerance(lambda _: found, tolerance, wanted, only_bounds=True)
    asked = questions(
        found,
        adjacency=adjacency,
        method=method,
        threat_model=threat_model,
        tolerance=tolerance,
        wanted=wanted,
    )
    if asked.is_light and own is not None and key is not None and tolerance is None:
        return _prepared.keep(key, asked, epoch)
    return asked


def check_words(adjacency: Any, method: Any, threat_model: Any, tolerance: Any) -> float | None:
    """Check the keywords that all questions share; return the tolerance as a float."""
    checks.choice("adjacency", adjacency, ADJACENCIES)
    checks.choice("method", method, METHODS)
    threat_model_of(threat_model)
    return None if tolerance is None else float(checks.positive("tolerance", tolerance))


def _recognised(
    thing: Any, adjacency: str, method: str, threat_model: ThreatModel, tolerance: float | None
) -> Mechanism | Questions:
    """Mechanism that an object of another library is, or what answers for it."""
    if isinstance(thing, Answering):
        if method not in ("auto", "certified") or not isinstance(threat_model, DifferentialPrivacy):
            raise NotDefinedError(
                "method must be 'auto' or 'certified' and threat_model 'dp' for an adaptive run, "
                f"got {method!r} and {threat_model!r}"
            )
        return thing.questions(adjacency, tolerance)
    from pyengine.api.recognise import recognise

    found = recognise(thing, adjacency)
    plain = method == "auto" and isinstance(threat_model, DifferentialPrivacy)
    if isinstance(found, Questions) and not plain:
        raise ValueError(
            "method must be 'auto' and threat_model 'dp' for a profile, a distribution or samples, "
            f"got {method!r} and {threat_model!r}"
        )
    return found


def trade_off_function(name: str, given: Any) -> Callable[[FloatArray], FloatArray]:
    """Return α ↦ β(α) of a mechanism, or the function that a caller gave, its values checked."""
    mechanism = as_mechanism(given)
    if mechanism is not None:
        return lambda alpha: np.asarray(trade_off(mechanism, alpha), dtype=np.float64)
    if not callable(given) or isinstance(given, type):
        raise ValueError(f"{name} must be a Mechanism or a function, got {given!r}")
    given = Guarded(given)

    def checked(alpha: FloatArray) -> FloatArray:
        try:
            beta = given(alpha)
        except (TypeError, ValueError) as error:  # of functions that are made for single numbers
            raise ValueError(
                f"{name} must take arrays of alpha, and refused one: {error}"
            ) from error
        return checks.real_array(f"{name}(alpha)", beta, 0.0, 1.0)

    return checked


class Question(NamedTuple):
    """What a public function asks: its argument's name and domain, and where the answer lies."""

    argument: str
    upper: float  # the argument lies in [0, upper]
    ceiling: float  # the answer lies in [0, ceiling]; γ also above its argument


QUESTIONS = {
    "trade_off": Question("alpha", 1.0, 1.0),
    "gamma_bound": Question("kappa", 1.0, 1.0),
    "delta": Question("epsilon", math.inf, 1.0),
    "epsilon": Question("delta", 1.0, math.inf),
}

UPPER = {name: question.upper for name, question in QUESTIONS.items()}
# What proves floats of the run that each function was asked about last, when, and what it was asked
# with: the same objects again need no key.
_latest: dict[str, Any] = dict.fromkeys(QUESTIONS, (None,) * 8)

WANTED = {"trade_off": "beta", "gamma_bound": "gamma"}  # which error is to be narrow


def kind_of_bounds(given: Any) -> bool | str:
    """Return which bounds a caller wants: True for proven ones, "estimated", or False for none."""
    if isinstance(given, bool | np.bool_):
        return bool(given)
    if isinstance(given, str) and given == ESTIMATED:
        return ESTIMATED
    hint = "; did you mean True?" if given == "proven" else ""
    raise ValueError(
        f"bounds must be True (proven), False or {ESTIMATED!r}, got {checks.shown(given)}{hint}"
    )


def _bounds(name: str, flat: FloatArray, answer: Answer) -> Bounds:
    """Flat values between their bounds; refused where no number lies between these."""
    between = answer.lower <= answer.upper
    if not between.all():
        i = int(np.argmin(between))
        raise crossed(
            f"{name} at {QUESTIONS[name].argument} = {float(flat[i])!r}",
            float(answer.lower[i]),
            float(answer.upper[i]),
        )
    low: Any = flat if name == "gamma_bound" else 0.0
    high = QUESTIONS[name].ceiling
    lower = np.clip(answer.lower, low, high)
    upper = np.clip(answer.upper, low, high)
    return Bounds(lower, answer.value, upper)


def _one_bounds(name: str, argument: float, value: float, lower: float, upper: float) -> Bounds:
    """As `_bounds`, for floats."""
    if not lower <= upper:
        raise crossed(f"{name} at {QUESTIONS[name].argument} = {argument!r}", lower, upper)
    low, high = argument if name == "gamma_bound" else 0.0, QUESTIONS[name].ceiling
    lower = low if lower < low else high if lower > high else lower
    upper = low if upper < low else high if upper > high else upper
    return Bounds(lower, value, upper)


def _ask(
    name: str,
    mechanism: Any,
    argument: Any,
    adjacency: str,
    method: str,
    threat_model: str | ThreatModel,
    tolerance: float | None,
    bounds: bool | str,
) -> Any:
    """Answer a public function, its name the first argument."""
    one, epoch, of, order, way, model, width, kind = _latest[name]
    if (
        of is mechanism
        and kind is bounds
        and order is adjacency
        and way is method
        and model is threat_model
        and width is tolerance
        and epoch is Epoch.current
        and type(argument) is float
        and 0.0 <= argument <= UPPER[name]
    ):
        x = argument + 0.0  # -0.0 becomes 0.0
        found = one(name, x)
        if found is not None:
            value, lower, upper, _ = found
            return value if bounds is False else _one_bounds(name, x, value, lower, upper)
    epoch = Epoch.current
    if bounds is not True and bounds is not False:
        bounds = kind_of_bounds(bounds)
    if as_mechanism(mechanism) is None:
        from pyengine.engines.many import listed

        several = listed(mechanism)
        if several is not None:
            words = adjacency, method, threat_model, tolerance
            return _ask_many(name, several, argument, *words, bounds=bounds)
    asked = _asked(mechanism, adjacency, method, threat_model, tolerance, WANTED.get(name))
    if bounds is True:
        asked = asked.proving
    if type(asked) is EqualQuestions:
        how = adjacency, method, threat_model, tolerance, bounds
        _latest[name] = asked.plan.one, epoch, mechanism, *how
    return _answer(name, asked, argument, bounds, method, tolerance)


def _ask_many(
    name: str,
    mechanisms: Any,
    argument: Any,
    adjacency: str,
    method: str,
    threat_model: str | ThreatModel,
    tolerance: float | None,
    *,
    bounds: bool | str,
) -> Any:
    """As `_ask`, of several mechanisms."""
    from pyengine.api.many import answers_of_many

    tolerance = check_words(adjacency, method, threat_model, tolerance)
    together = tolerance is None and isinstance(threat_model_of(threat_model), DifferentialPrivacy)

    def alone(mechanism: Any, x: float) -> Any:
        return _ask(name, mechanism, x, adjacency, method, threat_model, tolerance, bounds)

    value, lower, upper = answers_of_many(
        name,
        QUESTIONS[name],
        mechanisms,
        argument,
        alone,
        (adjacency, method) if together else None,
        bounds=bounds,
    )
    return value if bounds is False else Bounds(lower, value, upper)


def _answer(
    name: str,
    asked: Questions,
    argument: Any,
    bounds: bool | str,
    method: str,
    tolerance: float | None,
) -> Any:
    """Ask a question; the result has the shape of the argument, and a scalar becomes a float."""
    question = QUESTIONS[name]
    if isinstance(argument, float) and 0.0 <= argument <= question.upper:
        x = float(argument) + 0.0  # -0.0 becomes 0.0
        value, lower, upper, proven = asked.one(name, x)
        if bounds is False:
            return value
        if bounds is True and not proven:
            raise _unproven(name, x, method, tolerance)
        return _one_bounds(name, x, value, lower, upper)
    array = checks.real_array(question.argument, argument, 0.0, question.upper) + 0.0
    shape, flat = array.shape, array.ravel()
    if bounds is not False:
        answer = asked.answer(name, flat)
        if bounds is True and not answer.certified.all():
            raise _unproven(name, float(flat[np.argmin(answer.certified)]), method, tolerance)
        parts = _bounds(name, flat, answer)
        return Bounds(*(checks.shaped(name, part, shape, argument) for part in parts))
    return checks.shaped(name, asked.values(name, flat), shape, argument)


def _unproven(name: str, x: float, method: str, tolerance: float | None) -> AccuracyError:
    """What to say where bounds are to be proven and none are."""
    if tolerance is not None:
        return AccuracyError(
            f"no bounds of {name} at {QUESTIONS[name].argument} = {x!r} are proven within "
            f"tolerance={tolerance!r}: a larger one or none may do, and bounds={ESTIMATED!r} "
            "returns estimates of them"
        )
    which = "no engine proves" if method in ("auto", "certified") else f"{method} does not prove"
    other = "" if method in ("auto", "certified") else "ask method='auto', or "
    return AccuracyError(
        f"{which} bounds of {name} at {QUESTIONS[name].argument} = {x!r}: {other}"
        f"bounds={ESTIMATED!r} returns estimates of them"
    )


def answers(
    name: str,
    mechanism: Mechanism,
    argument: npt.ArrayLike,
    *,
    adjacency: str,
    method: str = "auto",
    threat_model: str | ThreatModel = "dp",
    tolerance: float | None = None,
    proven: bool = True,
) -> tuple[Bounds, list[str], list[bool]]:
    """Values with bounds, the engine of each, and whether it is proven, as tables print them.

    ``proven=False`` asks for estimates, which are quicker.
    """
    asked = _asked(mechanism, adjacency, method, threat_model, tolerance, WANTED.get(name))
    if proven:
        asked = asked.proving
    question = QUESTIONS[name]
    flat = checks.real_array(question.argument, argument, 0.0, question.upper).ravel() + 0.0
    answer = asked.answer(name, flat)
    engines = [str(engine) for engine in answer.engine]
    return _bounds(name, flat, answer), engines, answer.certified.tolist()


@overload
def trade_off(
    mechanism: Several,
    alpha: Scalar | Array,
    *,
    bounds: Literal[False] = ...,
    **how: Unpack[Options],
) -> FloatArray: ...
@overload
def trade_off(
    mechanism: Several, alpha: Scalar | Array, *, bounds: BoundsWord, **how: Unpack[Options]
) -> Bounds[FloatArray]: ...
@overload
def trade_off(
    mechanism: Described, alpha: Scalar, *, bounds: Literal[False] = ..., **how: Unpack[Options]
) -> float: ...
@overload
def trade_off(  # type: ignore[overload-overlap]
    mechanism: Described, alpha: LabelledT, *, bounds: Literal[False] = ..., **how: Unpack[Options]
) -> LabelledT: ...
@overload
def trade_off(
    mechanism: Described, alpha: Array, *, bounds: Literal[False] = ..., **how: Unpack[Options]
) -> FloatArray: ...
@overload
def trade_off(
    mechanism: Described, alpha: Scalar, *, bounds: BoundsWord, **how: Unpack[Options]
) -> Bounds[float]: ...
@overload
def trade_off(  # type: ignore[overload-overlap]
    mechanism: Described, alpha: LabelledT, *, bounds: BoundsWord, **how: Unpack[Options]
) -> Bounds[LabelledT]: ...
@overload
def trade_off(
    mechanism: Described, alpha: Array, *, bounds: BoundsWord, **how: Unpack[Options]
) -> Bounds[FloatArray]: ...
@overload
def trade_off(
    mechanism: Described, alpha: Scalar | Array, *, bounds: bool | str, **how: Unpack[Options]
) -> Any: ...
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
        What is released.  Several mechanisms and the argument are broadcast against each other, and
        each answer has the bits that it has alone.  All questions also take what describes a
        mechanism: objects of other libraries, callable privacy profiles, samples of a trade-off
        function; see `pyengine.interop`.
    alpha : array_like
        Levels of the test, in [0, 1].
    adjacency : {"add_remove", "add", "remove", "substitute"}
        ``add``: H0 is the data without the record; ``remove``: H0 is the data with it;
        ``add_remove``: lower convex hull of both functions; ``substitute``: another record takes
        its place.
    method : {"auto", "certified", "closed_form", "exact", "lattice", "edgeworth", "clt", \
"monte_carlo"}
        Engine; ``auto`` takes one that proves its bounds where there is one, and never one of the
        last three, which are the papers' approximations.  ``certified`` takes those whose bounds
        are proven, floating point included.  ``spectral`` and ``convolution``, engines of earlier
        versions, mean ``auto``.
    threat_model : {"dp", "relaxed"} or ThreatModel
        ``dp``: the adversary of differential privacy, who knows everything but whether the record
        took part; ``relaxed``: one who does not know the record, see `pyengine.threat_models`.
    tolerance : float, optional
        Largest relative width of the bounds, > 0; for ε that of δ at it.  It holds whichever engine
        answers, and what cannot be known that well is refused, also where only bounds are known
        (several random steps of an epoch, ``substitute`` without replacement).  What is below
        1e-300 counts as 0.  None stands for the accuracy below.
    bounds : bool or "estimated"
        True returns `Bounds` that are proven, floating point included, and raises AccuracyError
        where no engine proves any.  ``"estimated"`` returns `Bounds` of the value, which are
        estimates where the value is.  A value without bounds is that of the proven answer, except
        for epochs of random allocation and where nothing is proven.

    Returns
    -------
    float, ndarray of the shape of ``alpha`` (of several mechanisms the broadcast one), or Bounds
        β(α), as accurate as the Notes say for each kind of mechanism.

    Raises
    ------
    ValueError
        For an argument outside its domain, or an adjacency that the mechanism does not define.
    AccuracyError
        Where no engine reaches that accuracy, or proves the bounds that ``bounds=True`` asks for.

    Notes
    -----
    Accuracy, relative to the value; what was measured is in the docs (accuracy):

    - Gaussian noise in full batches, and one step of it on a Poisson sample or without
      replacement: error below 1e-11, usually 1e-15, bounds proven (theory/closed_form).
    - Gaussian noise in several steps, on Poisson samples (DP-SGD) or without replacement, and their
      mixtures, groups, DP-SGD under ``substitute`` and truncated Poisson samples, composed with
      each other: bounds proven, mostly 1e-12 to 1e-10 apart (theory/gaussian, theory/sector_laws).
      Far out, where steps are rare or loud, they come from the lattice, at most 1e-4 apart, or up
      to 1e-2 where rounding allows no less and no ``tolerance`` is set.
    - Epochs of random allocation, by themselves and with Gaussian steps: error below 1e-11,
      estimated; bounds are proven, mostly 1e-12 to 1e-9 apart (theory/sector_laws), and 1e-5 to
      1e-3 for more than 12,000 steps or little noise (theory/epochs).  With other steps the value
      lies between these bounds and is no more accurate.
    - One step of anything else, losses with finitely many values (randomized response, the
      generic mechanism, probability vectors) whose sums are short, and both together: error below
      1e-9, bounds proven (theory/finite).  Next to the level from which on β is 0, and to the
      largest of finite losses, values are what is left of masses that cancel, and are known less
      well: β to 1e-15 of 1 - α, δ as that of an ε within 1e-12.  The bounds say so, and
      ``tolerance`` refuses it.
      Masses of densities are integrals: bounds are estimates there, β is known to 1e-12 of 1 - α,
      and what lies beyond quantiles of 1e-299 is not seen.
    - Several smooth steps of these kinds beside steps of up to 128 losses in all (DP-SGD and
      randomized response), under ``add``, ``remove`` and ``add_remove``: bounds proven, mostly
      1e-11 apart, else those of the lattice (theory/gaussian).
    - All else, on the lattice: other noise in many steps, and compositions of Gaussian with other
      noise: bounds proven and at most 1e-4 apart, or ``tolerance`` (1e-2 as above), and the value
      between them is no more accurate than that (theory/lattice).

    Arrays of 2,048 values and more of Gaussian noise and its mixtures, without ``bounds`` and
    ``tolerance``, are interpolated where many of them lie close together: values differ from those
    of floats by 1e-12 at most as far as was seen, ε by that part of the largest one beside it
    (estimates).

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
    return _ask("trade_off", mechanism, alpha, adjacency, method, threat_model, tolerance, bounds)


@overload
def gamma_bound(
    mechanism: Several,
    kappa: Scalar | Array,
    *,
    bounds: Literal[False] = ...,
    **how: Unpack[Options],
) -> FloatArray: ...
@overload
def gamma_bound(
    mechanism: Several, kappa: Scalar | Array, *, bounds: BoundsWord, **how: Unpack[Options]
) -> Bounds[FloatArray]: ...
@overload
def gamma_bound(
    mechanism: Described, kappa: Scalar, *, bounds: Literal[False] = ..., **how: Unpack[Options]
) -> float: ...
@overload
def gamma_bound(  # type: ignore[overload-overlap]
    mechanism: Described, kappa: LabelledT, *, bounds: Literal[False] = ..., **how: Unpack[Options]
) -> LabelledT: ...
@overload
def gamma_bound(
    mechanism: Described, kappa: Array, *, bounds: Literal[False] = ..., **how: Unpack[Options]
) -> FloatArray: ...
@overload
def gamma_bound(
    mechanism: Described, kappa: Scalar, *, bounds: BoundsWord, **how: Unpack[Options]
) -> Bounds[float]: ...
@overload
def gamma_bound(  # type: ignore[overload-overlap]
    mechanism: Described, kappa: LabelledT, *, bounds: BoundsWord, **how: Unpack[Options]
) -> Bounds[LabelledT]: ...
@overload
def gamma_bound(
    mechanism: Described, kappa: Array, *, bounds: BoundsWord, **how: Unpack[Options]
) -> Bounds[FloatArray]: ...
@overload
def gamma_bound(
    mechanism: Described, kappa: Scalar | Array, *, bounds: bool | str, **how: Unpack[Options]
) -> Any: ...
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
        γ = 1 - T(κ) >= κ, as accurate as the Notes of `trade_off` say for each kind of mechanism.

    Raises
    ------
    ValueError
        For an argument outside its domain.
    AccuracyError
        Where no engine reaches that accuracy.

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
    return _ask("gamma_bound", mechanism, kappa, adjacency, method, threat_model, tolerance, bounds)


@overload
def delta(
    mechanism: Several,
    epsilon: Scalar | Array,
    *,
    bounds: Literal[False] = ...,
    **how: Unpack[Options],
) -> FloatArray: ...
@overload
def delta(
    mechanism: Several, epsilon: Scalar | Array, *, bounds: BoundsWord, **how: Unpack[Options]
) -> Bounds[FloatArray]: ...
@overload
def delta(
    mechanism: Described, epsilon: Scalar, *, bounds: Literal[False] = ..., **how: Unpack[Options]
) -> float: ...
@overload
def delta(  # type: ignore[overload-overlap]
    mechanism: Described,
    epsilon: LabelledT,
    *,
    bounds: Literal[False] = ...,
    **how: Unpack[Options],
) -> LabelledT: ...
@overload
def delta(
    mechanism: Described, epsilon: Array, *, bounds: Literal[False] = ..., **how: Unpack[Options]
) -> FloatArray: ...
@overload
def delta(
    mechanism: Described, epsilon: Scalar, *, bounds: BoundsWord, **how: Unpack[Options]
) -> Bounds[float]: ...
@overload
def delta(  # type: ignore[overload-overlap]
    mechanism: Described, epsilon: LabelledT, *, bounds: BoundsWord, **how: Unpack[Options]
) -> Bounds[LabelledT]: ...
@overload
def delta(
    mechanism: Described, epsilon: Array, *, bounds: BoundsWord, **how: Unpack[Options]
) -> Bounds[FloatArray]: ...
@overload
def delta(
    mechanism: Described, epsilon: Scalar | Array, *, bounds: bool | str, **how: Unpack[Options]
) -> Any: ...
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
        ``add``: H(without‖with) of the record; ``remove``: H(with‖without); ``add_remove``: the
        larger one; ``substitute``: another record takes its place.
    method, threat_model, tolerance, bounds
        As in `trade_off`.

    Returns
    -------
    float, ndarray of the shape of ``epsilon``, or Bounds
        δ(ε), as accurate as the Notes of `trade_off` say for each kind of mechanism.

    Raises
    ------
    ValueError
        For an argument outside its domain.
    AccuracyError
        Where no engine reaches that accuracy.

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
    return _ask("delta", mechanism, epsilon, adjacency, method, threat_model, tolerance, bounds)


@overload
def epsilon(
    mechanism: Several,
    delta: Scalar | Array,
    *,
    bounds: Literal[False] = ...,
    **how: Unpack[Options],
) -> FloatArray: ...
@overload
def epsilon(
    mechanism: Several, delta: Scalar | Array, *, bounds: BoundsWord, **how: Unpack[Options]
) -> Bounds[FloatArray]: ...
@overload
def epsilon(
    mechanism: Described, delta: Scalar, *, bounds: Literal[False] = ..., **how: Unpack[Options]
) -> float: ...
@overload
def epsilon(  # type: ignore[overload-overlap]
    mechanism: Described, delta: LabelledT, *, bounds: Literal[False] = ..., **how: Unpack[Options]
) -> LabelledT: ...
@overload
def epsilon(
    mechanism: Described, delta: Array, *, bounds: Literal[False] = ..., **how: Unpack[Options]
) -> FloatArray: ...
@overload
def epsilon(
    mechanism: Described, delta: Scalar, *, bounds: BoundsWord, **how: Unpack[Options]
) -> Bounds[float]: ...
@overload
def epsilon(  # type: ignore[overload-overlap]
    mechanism: Described, delta: LabelledT, *, bounds: BoundsWord, **how: Unpack[Options]
) -> Bounds[LabelledT]: ...
@overload
def epsilon(
    mechanism: Described, delta: Array, *, bounds: BoundsWord, **how: Unpack[Options]
) -> Bounds[FloatArray]: ...
@overload
def epsilon(
    mechanism: Described, delta: Scalar | Array, *, bounds: bool | str, **how: Unpack[Options]
) -> Any: ...
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
        ε >= 0, inf where no ε will do.  Its δ differs from the one that was asked for by no more
        than the Notes of `trade_off` say for each kind of mechanism; on the lattice its own bounds
        are so close.

    Raises
    ------
    ValueError
        For an argument outside its domain.
    AccuracyError
        Where no engine reaches that accuracy.

    Examples
    --------
    >>> import pyengine as pe
    >>> mechanism = pe.dp_sgd(noise_multiplier=0.8, sampling_probability=0.001, steps=10_000)
    >>> round(pe.epsilon(mechanism, 1e-7), 10)
    1.1707628432
    """
    return _ask("epsilon", mechanism, delta, adjacency, method, threat_model, tolerance, bounds)


def compose(*mechanisms: Any) -> Composition:
    """Compose mechanisms that run on the same data, adaptively.

    Parameters
    ----------
    *mechanisms : Mechanism, or what describes one
        Any number of mechanisms; none gives the mechanism that releases nothing.  Objects of other
        libraries that stand for steps are taken as they are: a privacy engine of Opacus,
        accountants, events and histories, see `pyengine.interop`.

    Returns
    -------
    Composition
        Equal steps are counted together; the order does not matter.

    Raises
    ------
    ValueError
        For what does not describe steps, such as a privacy profile.

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
