"""How questions are asked: checks keywords, caches engines, and shapes the answers."""

from __future__ import annotations

import math
from collections import namedtuple
from typing import TYPE_CHECKING, Any, Generic, NamedTuple, cast

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine._support.caches import Cache, Epoch
from pyengine.engines.answers import WANTED, Answer, Answering, Questions
from pyengine.engines.equal_steps import EqualQuestions, questions_of_run
from pyengine.engines.refusals import crossed
from pyengine.engines.registry import ADJACENCIES, METHODS, questions
from pyengine.engines.within import WithinTolerance
from pyengine.errors import AccuracyError, NotDefinedError
from pyengine.mechanisms import Mechanism, as_mechanism
from pyengine.mechanisms.threat_models import DifferentialPrivacy, ThreatModel, threat_model_of
from pyengine.numerics.exact_numbers import BEYOND

__all__ = [
    *("ESTIMATED", "QUESTIONS", "Bounds", "Question"),
    *("answers", "ask", "check_words", "kind_of_bounds"),
]

FloatArray = npt.NDArray[np.float64]

if TYPE_CHECKING:
    from typing_extensions import TypeVar

    Value_co = TypeVar("Value_co", covariant=True, default=Any)

    class _Three(NamedTuple, Generic[Value_co]):
        lower: Value_co
        value: Value_co
        upper: Value_co
else:
    from typing import TypeVar

    Value_co = TypeVar("Value_co", covariant=True)
    _Three = namedtuple("_Three", "lower value upper")  # Python 3.11 has generic ones


class Bounds(_Three[Value_co]):
    """A value between two bounds.

    With ``bounds=True``, lower <= truth <= upper is proven, floating point included, whichever
    engine answers; if none can prove it, the question is refused.  With ``bounds="estimated"`` the
    bounds are those of the fastest engine, proven or not; the page of each engine says what an
    estimate is based on and how it compares with the truth.  Tables and the command line print
    ``proven`` or ``estimate`` beside each value.
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

ByError = dict[str | None, Questions]  # by the error of which narrow bounds are wanted

# Prepared questions: of runs of equal steps for all functions, others by error, so that no answer
# depends on what was asked before.  The engines cache contours and compositions themselves.
_prepared: Cache[EqualQuestions | ByError] = Cache(128, lambda _: 4096)


def _asked(
    mechanism: Any,
    adjacency: str,
    method: str,
    threat_model: str | ThreatModel,
    tolerance: Any,
    wanted: str | None = None,
) -> Questions:
    """Check the keywords and return the object that answers; the same one for the same question."""
    key: Any = (mechanism, adjacency, method, threat_model, tolerance)
    try:
        kept = _prepared.peek(key)
    except TypeError:  # not hashable: an object of another library, or a wrong keyword
        kept = key = None
    if isinstance(kept, EqualQuestions):
        return kept
    if kept is not None and wanted in kept:
        return kept[wanted]
    epoch = Epoch.current
    how: dict[str, Any] = {"adjacency": adjacency, "method": method, "threat_model": threat_model}
    if key is not None and kept is None and tolerance is None and threat_model == "dp":

        def chosen(wanted: str | None) -> Questions:
            return questions(mechanism, **how, tolerance=None, wanted=wanted)

        run = questions_of_run(mechanism, adjacency, method, chosen)
        if run is not None:
            return cast("EqualQuestions", _prepared.keep(key, run, epoch))
    tolerance = check_words(adjacency, method, threat_model, tolerance)
    own = as_mechanism(mechanism)
    model = threat_model_of(threat_model)
    found = own or _recognised(mechanism, adjacency, method, model, tolerance)
    if isinstance(found, Questions):
        if tolerance is None or isinstance(mechanism, Answering):
            return found  # it answers by itself
        return WithinTolerance(lambda _: found, tolerance, wanted, only_bounds=True)
    asked = questions(found, **how, tolerance=tolerance, wanted=wanted)
    if asked.is_light and own is not None and key is not None and tolerance is None:
        by_error = cast("ByError", _prepared.keep(key, {wanted: asked}, epoch))
        return by_error.setdefault(wanted, asked)
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
    """The mechanism that an object of another library describes, or an object that answers."""
    if isinstance(thing, Answering):
        if method not in ("auto", "certified") or not isinstance(threat_model, DifferentialPrivacy):
            raise NotDefinedError(
                "method must be 'auto' or 'certified' and threat_model 'dp' for an adaptive run, "
                f"got {checks.shown(method)} and {threat_model!r}"
            )
        return thing.questions(adjacency, tolerance)
    from pyengine.api.recognise import recognise

    found = recognise(thing, adjacency)
    plain = method == "auto" and isinstance(threat_model, DifferentialPrivacy)
    if isinstance(found, Questions) and not plain:
        raise ValueError(
            "method must be 'auto' and threat_model 'dp' for a profile, a distribution or samples, "
            f"got {checks.shown(method)} and {threat_model!r}"
        )
    return found


class Question(NamedTuple):
    """The argument of a public function, its domain, and the range of the answer."""

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
# For each function, the fast path for floats of the run of its last question, the cache epoch, and
# the arguments: when the same objects come again, no key is formed.
_latest: dict[str, Any] = dict.fromkeys(QUESTIONS, (None,) * 8)


def kind_of_bounds(given: Any) -> bool | str:
    """Check ``bounds``: True for proven ones, "estimated", or False for none."""
    if isinstance(given, bool | np.bool_):
        return bool(given)
    if isinstance(given, str) and given == ESTIMATED:
        return ESTIMATED
    hint = "; did you mean True?" if isinstance(given, str) and given == "proven" else ""
    raise ValueError(
        f"bounds must be True (proven), False or {ESTIMATED!r}, got {checks.shown(given)}{hint}"
    )


def _bounds(name: str, flat: FloatArray, answer: Answer) -> Bounds:
    """Flat values between their bounds, clipped to their range; crossed bounds are refused."""
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
    return Bounds(lower, _value(answer.value, lower, upper), upper)


def _value(value: Any, lower: Any, upper: Any) -> Any:
    """Values between bounds; a value below its lower bound has no digits: take the upper bound."""
    return np.where(value < lower, upper, value)


def _one_bounds(name: str, argument: float, value: float, lower: float, upper: float) -> Bounds:
    """As `_bounds`, for floats."""
    if not lower <= upper:
        raise crossed(f"{name} at {QUESTIONS[name].argument} = {argument!r}", lower, upper)
    low, high = argument if name == "gamma_bound" else 0.0, QUESTIONS[name].ceiling
    lower = low if lower < low else high if lower > high else lower
    upper = low if upper < low else high if upper > high else upper
    return Bounds(lower, upper if value < lower else value, upper)


def ask(
    name: str,
    mechanism: Any,
    argument: Any,
    adjacency: str,
    method: str,
    threat_model: str | ThreatModel,
    tolerance: float | None,
    bounds: bool | str,
) -> Any:
    """Answer a public function by its name."""
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
    """As `ask`, for several mechanisms."""
    from pyengine.api.many import answers_of_many

    tolerance = check_words(adjacency, method, threat_model, tolerance)
    together = tolerance is None and isinstance(threat_model_of(threat_model), DifferentialPrivacy)

    def alone(mechanism: Any, x: float) -> Any:
        return ask(name, mechanism, x, adjacency, method, threat_model, tolerance, bounds)

    words = (adjacency, method) if together else None
    value, lower, upper = answers_of_many(
        name, QUESTIONS[name], mechanisms, argument, alone, words, bounds=bounds
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
    """Answer a question: an array of the argument's shape, or a float for a scalar."""
    question = QUESTIONS[name]
    if isinstance(argument, float) and 0.0 <= argument <= question.upper:
        x = float(argument) + 0.0  # -0.0 becomes 0.0
        value, lower, upper, proven = asked.one(name, x)
        if bounds is False:
            if math.isnan(value):
                raise _unknown(name, x)
            return max(x, upper) if name == "gamma_bound" and value < x else value
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
    values = asked.values(name, flat)
    unknown = np.isnan(values)
    if unknown.any():
        raise _unknown(name, float(flat[np.argmax(unknown)]))
    if name == "gamma_bound" and (values < flat).any():
        low = np.flatnonzero(values < flat)
        values = values.copy()
        values[low] = np.maximum(flat[low], asked.answer(name, flat[low]).upper)
    return checks.shaped(name, values, shape, argument)


def _unknown(name: str, x: float) -> AccuracyError:
    """The error for a value that is NaN, as an engine's sums have left the range of doubles."""
    what = f"{name} at {QUESTIONS[name].argument} = {x!r}"
    return AccuracyError(f"no engine answers {what}: {BEYOND}")


def _unproven(name: str, x: float, method: str, tolerance: float | None) -> AccuracyError:
    """The error for ``bounds=True`` if nothing is proven."""
    what, advice = f"bounds of {name} at {QUESTIONS[name].argument} = {x!r}", ""
    if tolerance is not None:
        why = f"no {what} are proven within tolerance={tolerance!r}"
        advice = "a larger one or none may do, and "
    elif method in ("auto", "certified"):
        why = f"no engine proves {what}"
    else:
        why, advice = f"{method} does not prove {what}", "ask method='auto', or "
    return AccuracyError(f"{why}: {advice}bounds={ESTIMATED!r} returns estimates of them")


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

    ``proven=False`` asks for estimates, which are faster.
    """
    asked = _asked(mechanism, adjacency, method, threat_model, tolerance, WANTED.get(name))
    if proven:
        asked = asked.proving
    question = QUESTIONS[name]
    flat = checks.real_array(question.argument, argument, 0.0, question.upper).ravel() + 0.0
    answer = asked.answer(name, flat)
    engines = [str(engine) for engine in answer.engine]
    return _bounds(name, flat, answer), engines, answer.certified.tolist()
