"""Answers of engines (values with bounds), and the interface of the questions they answer."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from pyengine.errors import AccuracyError

if TYPE_CHECKING:
    from pyengine.mechanisms import Label, Mechanism

__all__ = [
    "EPSILON",
    "PROFILE",
    "TRADE_OFF",
    "WANTED",
    "Answer",
    "Answering",
    "ByFunction",
    "ErrorCurve",
    "Found",
    "Joining",
    "Judged",
    "LawQuestion",
    "Questions",
    "Triple",
    "complement_above",
]

FloatArray = npt.NDArray[np.float64]
BoolArray = npt.NDArray[np.bool_]
WANTED = {"trade_off": "beta", "gamma_bound": "gamma"}  # the error that a function returns
FAR = 1e70  # largest ε passed to engines if profiles are constant beyond: ε⁴ must be a double
Triple = tuple[float, float, float]  # a value, its lower bound and its upper one
Judged = tuple[float, float, float, bool]  # the same, and whether the bounds are proven
Found = TypeVar("Found", "Answer", "ErrorCurve")
# makes one answer from several to one question; the flag says whether that is β, which is smaller
# for more informative pairs
Joining = Callable[[Sequence["Answer"], bool], "Answer"]


@dataclass(eq=False)
class Answer:
    """Values with bounds and the engine behind each, as flat arrays: lower <= value <= upper.

    The engine is ``exact`` for values that need none.  Where `certified`, the truth is proven to
    lie between the bounds, floating point included; elsewhere the bounds are estimates.
    """

    value: FloatArray
    lower: FloatArray
    upper: FloatArray
    engine: npt.NDArray[np.str_]
    proven: InitVar[bool | BoolArray] = False
    certified: BoolArray = field(init=False)

    def __post_init__(self, proven: bool | BoolArray) -> None:
        self.certified = np.full(self.value.shape, proven)

    @classmethod
    def exact(cls, value: FloatArray) -> Answer:
        """An answer with exact values, which need no engine."""
        return cls(value, value.copy(), value.copy(), names("exact", value.size), True)

    @classmethod
    def zero(cls, x: FloatArray) -> Answer:
        """The exact answer 0 at each argument."""
        return cls.exact(np.zeros(x.size))

    @classmethod
    def rest(cls, level: FloatArray) -> Answer:
        """Values 1 - level, with bounds that include the rounding of the difference."""
        value = 1.0 - level
        answer = cls.exact(value)
        rounded = 1.0 - value != level
        answer.lower[rounded] = np.nextafter(value[rounded], 0.0)
        answer.upper[rounded] = np.minimum(np.nextafter(value[rounded], 2.0), 1.0)
        return answer

    @classmethod
    def around(
        cls,
        value: FloatArray,
        error: FloatArray,
        engine: npt.NDArray[np.str_],
        proven: bool | BoolArray = False,
    ) -> Answer:
        """Values with bounds at an absolute error."""
        return cls(value, value - error, value + error, engine, proven)

    def parts(self) -> dict[str, Answer]:
        """The answer under the empty name, as `ErrorCurve.parts` has two by name."""
        return {"": self}

    def each(self, make: Joining, *others: Answer) -> Answer:
        """The answer that ``make`` forms from this one and others."""
        return make((self, *others), False)

    def taken(self, where: BoolArray) -> Answer:
        """The entries selected by a mask."""
        return Answer(*(part[where] for part in vars(self).values()))

    def first(self) -> Judged:
        """The first value, its bounds, and whether they are proven."""
        value, lower, upper = self.value[0], self.lower[0], self.upper[0]
        return float(value), float(lower), float(upper), bool(self.certified[0])

    def followed_by(self, other: Answer) -> Answer:
        """The values of both, one after the other."""
        both = zip(vars(self).values(), vars(other).values(), strict=True)
        return Answer(*(np.concatenate(parts) for parts in both))

    def put(self, where: npt.NDArray[np.bool_], other: Answer) -> None:
        """Replace the entries selected by a mask."""
        self.value[where] = other.value
        self.lower[where] = other.lower
        self.upper[where] = other.upper
        self.engine[where] = other.engine
        self.certified[where] = other.certified


def complement_above(alpha: FloatArray) -> FloatArray:
    """Return 1 - α rounded up."""
    rest = 1.0 - alpha
    return np.where(1.0 - rest == alpha, rest, np.minimum(np.nextafter(rest, 2.0), 1.0))


def names(engine: str, size: int) -> npt.NDArray[np.str_]:
    """Return an array that names one engine for each of ``size`` values."""
    return np.full(size, engine, dtype="<U12")


@dataclass(eq=False)
class ErrorCurve:
    """A trade-off function at some α: β = T(α) and γ = 1 - T(α), each with its own accuracy.

    The slope of T there is -e^c; `c` is empty if it is not needed.
    """

    beta: Answer
    gamma: Answer
    c: FloatArray = field(default_factory=lambda: np.empty(0))

    def __iter__(self) -> Iterator[Answer]:
        return iter((self.beta, self.gamma))

    def parts(self) -> dict[str, Answer]:
        """Both answers by their names."""
        return {"beta": self.beta, "gamma": self.gamma}

    def each(self, make: Joining, *others: ErrorCurve) -> ErrorCurve:
        """Both errors, each formed by ``make`` from this curve's and the other curves'."""
        curves = (self, *others)
        beta, gamma = make([x.beta for x in curves], True), make([x.gamma for x in curves], False)
        return ErrorCurve(beta, gamma, self.c)

    def taken(self, where: BoolArray) -> ErrorCurve:
        """The entries selected by a mask."""
        slopes = self.c[where] if self.c.size else self.c
        return ErrorCurve(self.beta.taken(where), self.gamma.taken(where), slopes)

    def put(self, where: npt.NDArray[np.bool_], other: ErrorCurve) -> None:
        """Replace the entries selected by a mask, and their slopes if there are any."""
        self.beta.put(where, other.beta)
        self.gamma.put(where, other.gamma)
        if self.c.size:
            self.c[where] = other.c

    @classmethod
    def trivial(cls, alpha: FloatArray) -> ErrorCurve:
        """The curve of a mechanism that releases nothing: β = 1 - α."""
        return cls(Answer.rest(alpha), Answer.exact(alpha.copy()))


class LawQuestion(Generic[Found]):
    """One of the three questions on a law: trade-off function, profile, or ε.

    `name` is the method of `Questions` that answers it.  `public` are the public functions whose
    values it contains; ``made`` forms the answer from theirs, in that order.  ``nothing`` returns
    the answer for a mechanism that releases nothing.
    """

    def __init__(
        self,
        name: str,
        public: tuple[str, ...],
        made: Callable[..., Found],
        nothing: Callable[[FloatArray], Found],
    ) -> None:
        self.name, self.public = name, public
        self.made: Callable[..., Found] = made
        self.nothing: Callable[[FloatArray], Found] = nothing

    def __call__(self, asked: Questions, x: FloatArray) -> Found:
        """The answer of ``asked`` at x."""
        found: Found = getattr(asked, self.name)(x)
        return found


def _itself(answer: Answer) -> Answer:
    return answer


TRADE_OFF: LawQuestion[ErrorCurve] = LawQuestion(
    "trade_off", ("trade_off", "gamma_bound"), ErrorCurve, ErrorCurve.trivial
)
PROFILE: LawQuestion[Answer] = LawQuestion("profile", ("delta",), _itself, Answer.zero)
EPSILON: LawQuestion[Answer] = LawQuestion("epsilon", ("epsilon",), _itself, Answer.zero)


class Questions:
    """All questions on an ordered pair of laws (A, B), or on both orders of it.

    Arguments are flat arrays within their domains.  Derived classes override `ask` if they answer
    all questions in one way, else each question; for trade-off functions, `_settled` and `_inside`.
    A faster `one` for a single number must give the same bits.

    `is_light` objects take little memory and may be cached.  `otherwise` makes the questions to ask
    where these refuse, `prover` those with proven bounds for estimates, and `within` the same ones
    for another tolerance, to check the advice in refusals.
    """

    is_light: bool = False
    otherwise: Callable[[], Questions] | None = None
    prover: Callable[[], Questions] | None = None
    within: Callable[[float], Questions] | None = None
    _proofs: Questions | None = None

    @property
    def proving(self) -> Questions:
        """Questions that prove their bounds."""
        if self.prover is None:
            return self
        found = self._proofs or self.prover()
        if found.is_light:
            self._proofs = found
        return found

    @property
    def is_estimated(self) -> bool:
        """Whether all answers inside the domain are estimates, from the prover as well."""
        return False

    def ask(self, question: LawQuestion[Found], x: FloatArray) -> Found:
        """The answer to any of the three questions; overridden where all have one way."""
        raise NotImplementedError

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """T(A, B) at α in [0, 1]; for both orders, their hull."""
        known = self._settled(alpha)
        if known is None:
            return self._inside(alpha)
        curve, open_ = known[0], ~known[1]
        if open_.all() and alpha.size:
            return self._inside(alpha)
        if open_.any():
            curve.put(open_, self._inside(alpha[open_]))
        return curve

    def _settled(self, alpha: FloatArray) -> tuple[ErrorCurve, BoolArray] | None:
        """Errors that are known without a search, and the mask of their levels; None if none."""
        del alpha
        return None

    def _inside(self, alpha: FloatArray) -> ErrorCurve:
        """The trade-off function at all other levels."""
        return self.ask(TRADE_OFF, alpha)

    def profile(self, epsilon: FloatArray) -> Answer:
        """δ(ε) = H_{e^ε}(A‖B) at ε >= 0; for both orders, the larger one."""
        return self.ask(PROFILE, epsilon)

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with δ(ε) <= δ, for δ in [0, 1]."""
        return self.ask(EPSILON, delta)

    def beside(self, remove: Any) -> Questions | None:
        """Questions on both orders, from these on ``add`` and the same engine's on ``remove``.

        None if the engine has no hull of its own; `BothOrders` then serves.
        """
        del remove
        return None

    def wanting(self, wanted: str | None) -> Questions:
        """The same questions with narrow bounds of one error only, "beta" or "gamma", if faster."""
        del wanted
        return self

    def answer(self, name: str, x: FloatArray) -> Answer:
        """Values of a public function: "trade_off", "gamma_bound", "delta" or "epsilon"."""
        try:
            return self._own(name, x)
        except AccuracyError as refusal:
            if self.otherwise is None:
                raise self._advised(refusal, name, x) from None
            if x.size > 1:  # bisect, so that only refused arguments go to the other engine
                half = x.size // 2
                return self.answer(name, x[:half]).followed_by(self.answer(name, x[half:]))
            try:
                return self.otherwise().answer(name, x)
            except AccuracyError:  # its advice would be about the other engine
                raise self._advised(refusal, name, x) from None

    def _advised(self, refusal: AccuracyError, name: str, x: FloatArray) -> AccuracyError:
        make = self.within
        if make is None:
            return refusal
        from pyengine.engines.refusals import followed  # refusals are rare

        return followed(refusal, lambda tolerance: make(tolerance).answer(name, x))

    def _own(self, name: str, x: FloatArray) -> Answer:
        """As `answer`, without `otherwise`."""
        if name == "delta":
            far = (x > FAR) & np.isfinite(x)
            return self.profile(self._nearer(x, far) if far.any() else x)
        if name == "epsilon":
            return self.epsilon(x)
        curve = self.trade_off(x)
        return curve.gamma if name == "gamma_bound" else curve.beta

    def _nearer(self, epsilon: FloatArray, far: BoolArray) -> FloatArray:
        """The same ε; if the profile is constant from `FAR` on, larger ones are replaced."""
        try:
            ends = self.profile(np.array([FAR, np.inf]))
        except AccuracyError:  # a refusal of these two must not refuse ε
            return epsilon
        if ends.lower[0] <= ends.lower[1]:
            return np.where(far, FAR, epsilon)
        return np.where(far, np.inf, epsilon) if ends.upper[0] <= ends.upper[1] else epsilon

    def values(self, name: str, x: FloatArray) -> FloatArray:
        """As `answer` without bounds; derived classes may interpolate for many arguments."""
        return self.answer(name, x).value

    def one(self, name: str, x: float) -> Judged:
        """As `answer` for one number: a value, its bounds, and whether they are proven."""
        return self.answer(name, np.array([x])).first()


class ByFunction(Questions):
    """Questions with a separate computation for each public function, so for β and for γ."""

    def ask(self, question: LawQuestion[Found], x: FloatArray) -> Found:
        """The answer formed from the public functions that belong to the question."""
        return question.made(*(self._own(name, x) for name in question.public))

    def _own(self, name: str, x: FloatArray) -> Answer:
        raise NotImplementedError


class Answering:
    """Base of objects other than mechanisms that bring their own `Questions`."""

    def questions(self, adjacency: str, tolerance: float | None) -> Questions:
        """Questions under one adjacency, with bounds within a relative tolerance."""
        raise NotImplementedError

    def labels(self, adjacency: str) -> list[Label]:
        """The labels that its numbers carry."""
        raise NotImplementedError

    @property
    def parts(self) -> tuple[Mechanism, ...]:
        """The mechanisms that it consists of."""
        raise NotImplementedError
