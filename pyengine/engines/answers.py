"""What engines answer: values between bounds, and the questions that they can be asked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import InitVar, dataclass, field
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeVar

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
WANTED = {"trade_off": "beta", "gamma_bound": "gamma"}  # which error a function has
FAR = 1e70  # ε whose powers are doubles, up to the fourth
Triple = tuple[float, float, float]  # a value, its lower bound and its upper one
Judged = tuple[float, float, float, bool]  # the same, and whether the bounds are proven
Found = TypeVar("Found", "Answer", "ErrorCurve")
# takes answers to one question, and whether that is β, which falls where others rise
Joining = Callable[[Sequence["Answer"], bool], "Answer"]


@dataclass(eq=False)
class Answer:
    """Values with bounds and the engine behind each, as flat arrays: lower <= value <= upper.

    The engine is ``exact`` for values that need none.  `certified` says where the truth is proven
    to lie between the bounds, floating point included; elsewhere it does as far as an error
    estimate goes.
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
        """Values that need no engine."""
        return cls(value, value.copy(), value.copy(), names("exact", value.size), True)

    @classmethod
    def zero(cls, x: FloatArray) -> Answer:
        """0 at each argument."""
        return cls.exact(np.zeros(x.size))

    @classmethod
    def rest(cls, level: FloatArray) -> Answer:
        """Values 1 - level, with the rounding of the difference between their bounds."""
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
        """Values with absolute errors."""
        return cls(value, value - error, value + error, engine, proven)

    def parts(self) -> dict[str, Answer]:
        """The answer itself, as a curve has two."""
        return {"": self}

    def each(self, make: Joining, *others: Answer) -> Answer:
        """What is made of it and of other answers."""
        return make((self, *others), False)

    def taken(self, where: BoolArray) -> Answer:
        """The entries of a mask."""
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
        """Replace the entries of a mask."""
        self.value[where] = other.value
        self.lower[where] = other.lower
        self.upper[where] = other.upper
        self.engine[where] = other.engine
        self.certified[where] = other.certified


def complement_above(alpha: FloatArray) -> FloatArray:
    """Return doubles that are not below 1 - α, and equal to it where it is a double."""
    rest = 1.0 - alpha
    return np.where(1.0 - rest == alpha, rest, np.minimum(np.nextafter(rest, 2.0), 1.0))


def names(engine: str, size: int) -> npt.NDArray[np.str_]:
    """Return an array that names one engine for each of ``size`` values."""
    return np.full(size, engine, dtype="<U12")


@dataclass(eq=False)
class ErrorCurve:
    """A trade-off function at some α: β = T(α) and γ = 1 - T(α), each with its own accuracy.

    The slope of T there is -e^c; `c` is empty where nobody needs it.
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
        """Both errors, each made of its own and of those of other curves."""
        curves = (self, *others)
        beta, gamma = make([x.beta for x in curves], True), make([x.gamma for x in curves], False)
        return ErrorCurve(beta, gamma, self.c)

    def taken(self, where: BoolArray) -> ErrorCurve:
        """The entries of a mask."""
        slopes = self.c[where] if self.c.size else self.c
        return ErrorCurve(self.beta.taken(where), self.gamma.taken(where), slopes)

    def put(self, where: npt.NDArray[np.bool_], other: ErrorCurve) -> None:
        """Replace the entries of a mask, and their slopes where there are any."""
        self.beta.put(where, other.beta)
        self.gamma.put(where, other.gamma)
        if self.c.size:
            self.c[where] = other.c

    @classmethod
    def trivial(cls, alpha: FloatArray) -> ErrorCurve:
        """That of a mechanism which releases nothing: β = 1 - α."""
        return cls(Answer.rest(alpha), Answer.exact(alpha.copy()))


class LawQuestion(Generic[Found]):
    """One of the three questions, to be asked of anybody.

    `name` is the method of `Questions` that answers it, `public` the public functions whose values
    it has, of which ``made`` makes the answer in that order; ``nothing`` takes its argument to what
    answers it of a mechanism that releases nothing.
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
        """What is answered."""
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

    Arguments lie in their domains.  Derived classes answer for flat arrays: `ask` where they have
    one way for all questions, else each by itself, a trade-off function by what is `_settled` and
    what lies `_inside`.  Those that have a quicker way for one number
    override `one`, which gives the same bits.

    Those that are light take next to no memory: whoever asks again may be given the same object.
    `otherwise` makes the questions that are asked what these refuse, `prover` those that prove
    bounds of what these estimate, and `within` the same ones for a tolerance, so that the advice of
    refusals is true.
    """

    is_light: ClassVar[bool] = False
    otherwise: Callable[[], Questions] | None = None
    prover: Callable[[], Questions] | None = None
    within: Callable[[float], Questions] | None = None
    _proofs: Questions | None = None

    @property
    def proving(self) -> Questions:
        """Questions to ask for bounds that are proven."""
        if self.prover is None:
            return self
        found = self._proofs or self.prover()
        if found.is_light:
            self._proofs = found
        return found

    @property
    def is_estimated(self) -> bool:
        """Whether no answer inside of its domain is proven, however it is asked."""
        return False

    def ask(self, question: LawQuestion[Found], x: FloatArray) -> Found:
        """The answer to one of the three questions, by what answers all of them in one way."""
        raise NotImplementedError

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """T(A, B) at α in [0, 1]; the hull of both orders."""
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
        """What is known of a trade-off function without a search, and at which levels."""
        del alpha
        return None

    def _inside(self, alpha: FloatArray) -> ErrorCurve:
        """The trade-off function at all other levels."""
        return self.ask(TRADE_OFF, alpha)

    def profile(self, epsilon: FloatArray) -> Answer:
        """δ(ε) = H_{e^ε}(A‖B) at ε >= 0; the larger one of both orders."""
        return self.ask(PROFILE, epsilon)

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with δ(ε) <= δ, for δ in [0, 1]."""
        return self.ask(EPSILON, delta)

    def beside(self, remove: Any) -> Questions | None:
        """Questions on both orders, these on ``add``, from the same engine's on the reverse.

        None where the hull of any two curves serves.
        """
        del remove
        return None

    def wanting(self, wanted: str | None) -> Questions:
        """These, of whose trade-off functions one error alone is to be narrow where that is less.

        It is "beta" or "gamma".
        """
        del wanted
        return self

    def answer(self, name: str, x: FloatArray) -> Answer:
        """Values of a public function: "trade_off", "gamma_bound", "delta" or "epsilon"."""
        try:
            return self._own(name, x)
        except AccuracyError as refusal:
            if self.otherwise is None:
                raise self._advised(refusal, name, x) from None
            if x.size > 1:  # the others keep what they have
                half = x.size // 2
                return self.answer(name, x[:half]).followed_by(self.answer(name, x[half:]))
            try:
                return self.otherwise().answer(name, x)
            except AccuracyError:  # whose advice is about another engine
                raise self._advised(refusal, name, x) from None

    def _advised(self, refusal: AccuracyError, name: str, x: FloatArray) -> AccuracyError:
        make = self.within
        if make is None:
            return refusal
        from pyengine.engines.refusals import followed  # refusals are rare

        return followed(refusal, lambda tolerance: make(tolerance).answer(name, x))

    def _own(self, name: str, x: FloatArray) -> Answer:
        """As `answer`, without anybody else's."""
        if name == "delta":
            far = (x > FAR) & np.isfinite(x)
            return self.profile(self._nearer(x, far) if far.any() else x)
        if name == "epsilon":
            return self.epsilon(x)
        curve = self.trade_off(x)
        return curve.gamma if name == "gamma_bound" else curve.beta

    def _nearer(self, epsilon: FloatArray, far: BoolArray) -> FloatArray:
        """The same ε, or others with the same bounds of δ where profiles are flat from FAR on."""
        try:
            ends = self.profile(np.array([FAR, np.inf]))
        except AccuracyError:  # of these two, of which nobody asked
            return epsilon
        if ends.lower[0] <= ends.lower[1]:
            return np.where(far, FAR, epsilon)
        return np.where(far, np.inf, epsilon) if ends.upper[0] <= ends.upper[1] else epsilon

    def values(self, name: str, x: FloatArray) -> FloatArray:
        """As `answer` without bounds; derived classes may interpolate where many are asked."""
        return self.answer(name, x).value

    def one(self, name: str, x: float) -> Judged:
        """As `answer` for one number: a value, its bounds, and whether they are proven."""
        return self.answer(name, np.array([x])).first()


class ByFunction(Questions):
    """Questions that each public function is asked apart: of both errors the one that is wanted."""

    def ask(self, question: LawQuestion[Found], x: FloatArray) -> Found:
        """What the functions make that have the question's values."""
        return question.made(*(self._own(name, x) for name in question.public))

    def _own(self, name: str, x: FloatArray) -> Answer:
        raise NotImplementedError


class Answering:
    """What is no mechanism, and brings what answers for it by itself."""

    def questions(self, adjacency: str, tolerance: float | None) -> Questions:
        """What answers under one adjacency, within a relative tolerance of its bounds."""
        raise NotImplementedError

    def labels(self, adjacency: str) -> list[Label]:
        """What numbers must be read with."""
        raise NotImplementedError

    @property
    def parts(self) -> tuple[Mechanism, ...]:
        """The mechanisms that it is made of."""
        raise NotImplementedError
