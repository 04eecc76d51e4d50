"""Which engine answers: the one place where that is decided.

`ENGINES` lists what each engine declares, the cheapest one first; of those that the word of
``method=`` considers, the first one that supports the problem answers.  Engines are imported when
they are asked, so that a question does not load those that it has no need of.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from pyengine.answers import PairQuestions, Questions
from pyengine.curves import NothingReleased, OneOrder, Substitution
from pyengine.engines.certified import WIDEST, CertifiedPair, CertifiedSide, GaussianSide
from pyengine.engines.closed_form import ClosedForm, ClosedFormPair, closed_form_step
from pyengine.engines.enclosed import EnclosedQuestions
from pyengine.engines.gaussian import GaussianPairQuestions
from pyengine.engines.handover import Handover
from pyengine.engines.hull import BothOrders
from pyengine.engines.problem import Engine, Problem
from pyengine.engines.row_questions import BothOrdersOfRows, OneOrderOfRows
from pyengine.engines.within import WithinTolerance
from pyengine.errors import AccuracyError, NotDefinedError
from pyengine.mechanisms import Mechanism, compose, in_words, steps_of
from pyengine.pairs import enclosing_pairs
from pyengine.threat_models import THREAT_MODELS, ThreatModel, threat_model_of

if TYPE_CHECKING:
    from pyengine.engines.allocation import EpochQuestions
    from pyengine.engines.exact.finite import FiniteComposition
    from pyengine.engines.smooth import SmoothPairQuestions, SmoothSide

__all__ = ["ADJACENCIES", "ENGINES", "METHODS", "THREAT_MODELS", "questions", "questions_on_pair"]

ADJACENCIES = ("add", "remove", "add_remove", "substitute")


# Of a lattice that is to prove what another engine has answered: more of them take longer than
# that answer was worth waiting for.
PROVING_POINTS = 2**21


class _Reference(Engine):
    """Arbitrary precision."""

    name = "reference"  # certifies most values, but not all of them

    def supports(self, problem: Problem) -> bool:
        return problem.given is None

    def questions(self, problem: Problem) -> Questions:
        from pyengine.engines.ground_truth import GroundTruth

        return GroundTruth(problem.mechanism, problem.adjacency, problem.threat_model)


class _NothingReleased(Engine):
    """Gaussian steps that never look at the record, and the same in the relaxed threat model."""

    name = "closed_form"
    methods = ("auto", "spectral", "convolution", "exact", "lattice", "clt")
    certified = True

    def supports(self, problem: Problem) -> bool:
        if problem.is_relaxed:
            return not problem.distances
        pair = problem.gaussian
        return pair is not None and pair.is_trivial and problem.method != "clt"

    def questions(self, problem: Problem) -> Questions:
        del problem
        return NothingReleased()


class _RelaxedClosedForm(Engine):
    """Relaxed threat model: laws of a length."""

    name = "closed_form"
    methods = ("auto",)

    def supports(self, problem: Problem) -> bool:
        return problem.is_relaxed and [number for _, number in problem.distances] == [1]

    def refusal(self, problem: Problem) -> Exception:
        if problem.is_relaxed:
            from pyengine.relaxed.questions import no_closed_form

            return no_closed_form(problem.mechanism)
        return NotDefinedError(
            "method='closed_form' is available for Gaussian steps without sampling and for a "
            f"single sampled step, got {problem.mechanism}"
        )

    def questions(self, problem: Problem) -> Questions:
        from pyengine.relaxed.questions import relaxed_closed_form

        return relaxed_closed_form(problem.distances[0][0], problem.adjacency)


class _RelaxedLimit(Engine):
    """Relaxed threat model: squared lengths as if they were normal."""

    name = "clt"

    def supports(self, problem: Problem) -> bool:
        if not problem.is_relaxed or [number for _, number in problem.distances] != [1]:
            return False
        from pyengine.relaxed.gaussian import GaussianDistance

        return isinstance(problem.distances[0][0], GaussianDistance)

    def questions(self, problem: Problem) -> Questions:
        from pyengine.relaxed.gaussian import GaussianDistance
        from pyengine.relaxed.limit import LimitQuestions

        pair = problem.distances[0][0]
        assert isinstance(pair, GaussianDistance)
        return LimitQuestions(pair, problem.adjacency)


class _ClosedForm(Engine):
    """One sampled Gaussian step, and Gaussian steps without sampling."""

    name = "closed_form"
    methods = ("auto",)
    certified = True

    def supports(self, problem: Problem) -> bool:
        if problem.is_relaxed or problem.given is not None:
            return False
        return closed_form_step(problem.mechanism, problem.adjacency) is not None

    def questions(self, problem: Problem) -> Questions:
        step = closed_form_step(problem.mechanism, problem.adjacency)
        return ClosedForm(ClosedFormPair(step, problem.tolerance))


class _Blocks(Engine):
    """Epochs with several random steps of each record: other mechanisms bound them."""

    name = "blocks"
    methods = ("auto", "certified", "spectral", "convolution", "lattice", "reference")

    def supports(self, problem: Problem) -> bool:
        if problem.is_relaxed or problem.given is not None or problem.adjacency == "substitute":
            return False
        return any(step.enclosing for step, _ in steps_of(problem.mechanism))

    def refusal(self, problem: Problem) -> Exception:
        return AccuracyError(
            "method='blocks' bounds epochs of random allocation with selected > 1, got "
            f"{' and '.join(in_words(problem.mechanism))}"
        )

    def questions(self, problem: Problem) -> Questions:
        from pyengine.engines.blocks import BlocksQuestions, dominated, dominating

        method = "auto" if problem.method == self.name else problem.method

        def asked(mechanism: Mechanism) -> Questions:
            return questions(
                mechanism,
                adjacency=problem.adjacency,
                method=method,
                threat_model=problem.threat_model,
                tolerance=problem.tolerance,
                wanted=problem.wanted,
            )

        below = [partial(asked, mechanism) for mechanism in dominated(problem.mechanism)]
        return BlocksQuestions(asked(dominating(problem.mechanism)), below)


class _Gaussian(Engine):
    """Gaussian steps on samples: the spectral engine, else the convolution."""

    name = "spectral"
    methods = ("auto", "convolution")

    def supports(self, problem: Problem) -> bool:
        return problem.gaussian is not None

    def prover(self) -> Engine:
        return _Certified(_Estimated(self, _Lattice(PROVING_POINTS)))

    def refusal(self, problem: Problem) -> Exception:
        return AccuracyError(
            f"method={problem.method!r} answers for Gaussian noise, plain, on a Poisson sample or "
            "without replacement; ask method='auto'"
        )

    def questions(self, problem: Problem) -> Questions:
        if problem.adjacency != "add_remove":
            return OneOrderOfRows(self.pair(problem))
        return BothOrdersOfRows(self.pair(problem), self.pair(problem.ordered("remove")))

    def pair(self, problem: Problem) -> GaussianPairQuestions:
        assert problem.gaussian is not None
        return GaussianPairQuestions(
            problem.gaussian, problem.method, problem.tolerance, problem.wanted
        )


class _Estimated(Engine):
    """An engine's estimates, and where it refuses them the brackets of another one.

    Parameters
    ----------
    first, second : Engine
        Both engines.
    """

    def __init__(self, first: Engine, second: Engine) -> None:
        self._first, self._second = first, second

    def pair(self, problem: Problem) -> PairQuestions:
        return Handover(lambda: self._first.pair(problem), lambda: self._second.pair(problem))


class _Epoch(Engine):
    """One epoch of random allocation, or several equal ones if asked by name: convolutions."""

    name = "convolution"
    methods = ("auto",)

    def supports(self, problem: Problem) -> bool:
        if problem.is_relaxed or problem.given is not None:
            return False
        from pyengine.engines.allocation import tabulated_epochs

        found = tabulated_epochs(problem.laws)
        if found is None or found.epochs == 1 or problem.method == self.name:
            return found is not None
        return found.law.nodes(found.epochs) is None  # which the spectral engine would need

    def refusal(self, problem: Problem) -> Exception:
        return _Gaussian().refusal(problem)

    def questions(self, problem: Problem) -> Questions | None:
        from pyengine.engines.smooth import SmoothBothOrders

        if problem.adjacency != "add_remove":
            return OneOrderOfRows(self.pair(problem))
        return SmoothBothOrders(self.pair(problem), self.pair(problem.ordered("remove")))

    def pair(self, problem: Problem) -> EpochQuestions:
        from pyengine.engines.allocation import EpochQuestions, tabulated_epochs

        engine = tabulated_epochs(problem.laws)
        assert engine is not None
        return EpochQuestions(engine, problem.tolerance)


class _Smooth(Engine):
    """Steps whose sides are mixtures of normals: spectral engine, convolution, else the lattice."""

    name = "spectral"
    methods = ("auto", "convolution")

    def supports(self, problem: Problem) -> bool:
        if problem.is_relaxed or problem.given is not None:
            return False
        from pyengine.engines.bounded_mixtures import bounded_mixtures
        from pyengine.engines.smooth import smooth_pair

        pair = smooth_pair(problem.laws)
        if pair is None or problem.method != "convolution":
            return pair is not None
        return bounded_mixtures(pair) is not None

    def prover(self) -> Engine:
        return _Certified(_Lattice(PROVING_POINTS))

    def refusal(self, problem: Problem) -> Exception:
        bounded = " whose losses are bounded below" if problem.method == "convolution" else ""
        return AccuracyError(
            f"method={problem.method!r} answers for several Gaussian steps, their mixtures and "
            f"samples of them{bounded}; ask method='auto'"
        )

    def questions(self, problem: Problem) -> Questions | None:
        from pyengine.engines.smooth import SmoothBothOrders

        if problem.adjacency != "add_remove":
            return None if problem.attained else OneOrderOfRows(self.pair(problem))
        return SmoothBothOrders(self.pair(problem), self.pair(problem.ordered("remove")))

    def pair(self, problem: Problem) -> SmoothPairQuestions:
        from pyengine.engines.allocation import tabulated_epochs
        from pyengine.engines.smooth import SmoothPairQuestions, smooth_pair

        pair = smooth_pair(problem.laws)
        assert pair is not None
        epochs = tabulated_epochs(problem.laws) is not None
        other: Engine = _Epoch() if epochs else _Lattice()
        otherwise = (lambda: other.pair(problem)) if problem.method == "auto" else None
        return SmoothPairQuestions(pair, problem.method, problem.tolerance, otherwise)


class _Certified(Engine):
    """Gaussian steps on samples and their mixtures, with lines whose errors are theorems.

    Parameters
    ----------
    otherwise : Engine, optional
        Answers what has no proof there; the lattice if not given.
    """

    name = "certified"
    certified = True

    def __init__(self, otherwise: Engine | None = None) -> None:
        self._otherwise = otherwise

    def supports(self, problem: Problem) -> bool:
        if problem.gaussian is not None:
            return True
        known = not problem.is_relaxed and problem.given is None
        return known and self._smooth(problem) is not None

    @staticmethod
    def _smooth(problem: Problem) -> SmoothSide | None:
        from pyengine.engines.smooth import SmoothSide, smooth_pair

        pair = smooth_pair(problem.laws)
        return None if pair is None else SmoothSide.of(pair)

    def pair(self, problem: Problem) -> PairQuestions:
        other = self._otherwise or _Lattice()
        private, public = self.sides(problem)
        if private is None or public is None:
            return other.pair(problem)
        return CertifiedPair(private, public, problem.tolerance, lambda: other.pair(problem))

    def sides(self, problem: Problem) -> tuple[CertifiedSide | None, CertifiedSide | None]:
        """Sides of Gaussian steps, else of others; None where nothing is proven of a step."""
        if problem.gaussian is None:
            side = self._smooth(problem)
            return side, side
        enclosing = enclosing_pairs(problem.mechanism, problem.adjacency)
        assert enclosing is not None
        private, public = enclosing
        side_of = GaussianSide(public)
        return side_of if private == public else GaussianSide(private), side_of


class _Product(Engine):
    """Several smooth steps beside steps of few losses: sums of certified rows, else the lattice."""

    name = "certified"
    methods = ("auto",)
    certified = True

    def supports(self, problem: Problem) -> bool:
        return self._parts(problem) is not None

    @staticmethod
    def _parts(problem: Problem) -> tuple[FiniteComposition, Problem] | None:
        """Steps of few losses, and the same problem of the other steps."""
        if problem.is_relaxed or problem.given is not None or problem.adjacency == "substitute":
            return None
        from pyengine.engines.exact.kept import finite_composition
        from pyengine.engines.product import MOST_LOSSES
        from pyengine.laws.composition import step_law
        from pyengine.laws.finite import FiniteLaw

        few, others, smooth_steps = [], [], 0
        for step, number in steps_of(problem.mechanism):
            law = step_law(step, problem.order)
            if isinstance(law, FiniteLaw):
                few.append((law, number))
            else:
                others.append(step.composed(number))
                smooth_steps += number
        if not few or smooth_steps < 2 or any(not law.loss.size for law, _ in few):
            return None
        smooth = replace(problem, mechanism=compose(*others))
        if not _Certified().supports(smooth):
            return None
        made = finite_composition(few)
        return None if isinstance(made, str) or made.size > MOST_LOSSES else (made, smooth)

    def questions(self, problem: Problem) -> Questions | None:
        if problem.adjacency != "add_remove":
            return None
        from pyengine.engines.product_hull import LinesOfBoth, NothingKnown, ProductBothOrders

        orders = [problem.ordered(order) for order in ("add", "remove")]
        add, remove = (self._pair(order, NothingKnown) for order in orders)
        if not (isinstance(add, CertifiedPair) and isinstance(remove, CertifiedPair)):
            return _asked_of(_Lattice(), problem)
        proven = LinesOfBoth(add, remove)
        profiles = BothOrders(*(self.pair(order) for order in orders))
        widest = WIDEST if problem.tolerance is None else problem.tolerance
        return ProductBothOrders(proven, profiles, lambda: _asked_of(_Lattice(), problem), widest)

    def pair(self, problem: Problem) -> PairQuestions:
        return self._pair(problem, lambda: _Lattice().pair(problem))

    def _pair(self, problem: Problem, otherwise: Callable[[], PairQuestions]) -> PairQuestions:
        from pyengine.engines.product import ProductSide

        found = self._parts(problem)
        assert found is not None
        few, smooth = found
        private, public = _Certified().sides(smooth)
        if private is None or public is None:
            return otherwise()
        side = ProductSide(few, public)
        other = side if private is public else ProductSide(few, private)
        return CertifiedPair(other, side, problem.tolerance, otherwise)


class _Exact(Engine):
    """Finitely many losses, Laplace steps, and few steps of both: sums of positive terms."""

    name = "exact"
    methods = ("auto",)
    certified = True

    def supports(self, problem: Problem) -> bool:
        from pyengine.engines.exact import exact_refusal

        return exact_refusal(problem.laws) is None

    def refusal(self, problem: Problem) -> Exception:
        from pyengine.engines.exact import exact_refusal

        return AccuracyError(exact_refusal(problem.laws))

    def bounds_all(self, problem: Problem) -> bool:
        del problem
        return True

    def pair(self, problem: Problem) -> PairQuestions:
        from pyengine.engines.exact import exact_questions

        return exact_questions(problem.laws)


class _Lattice(Engine):
    """Any steps, on a lattice of losses between two roundings.

    Parameters
    ----------
    most_points : int, optional
        Points that a lattice may have; all that fit if not given.
    """

    name = "lattice"
    methods = ("auto",)
    certified = True

    def __init__(self, most_points: int | None = None) -> None:
        self._most_points = most_points

    def supports(self, problem: Problem) -> bool:
        del problem
        return True

    def bounds_all(self, problem: Problem) -> bool:
        return sum(number for _, number in problem.laws) == 1  # no lattice at all: see `pair`

    def pair(self, problem: Problem) -> PairQuestions:
        from pyengine.engines.exact import disjoint_questions
        from pyengine.engines.exact.single import SingleStep
        from pyengine.engines.exact.threshold import ThresholdQuestions
        from pyengine.engines.lattice import TOLERANCE, LatticePair

        told_apart = disjoint_questions(problem.laws, "lattice")
        if told_apart is not None:
            return told_apart
        tolerance = TOLERANCE if problem.tolerance is None else problem.tolerance
        pair = LatticePair(problem.laws, tolerance, problem.wanted, self._most_points)
        if sum(number for _, number in pair.parts) == 1:  # one edge is all that it takes
            return ThresholdQuestions(SingleStep(pair.parts[0][0]), "lattice")
        return pair


class _Approximation(Engine):
    """Base of the approximations that the papers publish."""

    def supports(self, problem: Problem) -> bool:
        return not problem.is_relaxed and problem.given is None

    def refusal(self, problem: Problem) -> Exception:
        return NotDefinedError(
            f"method={problem.method!r} does not answer for threat_model='relaxed'"
        )


class _Edgeworth(_Approximation):
    """Expansion about the normal law."""

    name = "edgeworth"

    def questions(self, problem: Problem) -> Questions:
        from pyengine.engines.approximate import in_orders
        from pyengine.engines.edgeworth import EdgeworthPair

        return in_orders(EdgeworthPair, problem.mechanism, problem.adjacency)


class _CentralLimit(_Approximation):
    """One Gaussian in the place of all steps."""

    name = "clt"

    def refusal(self, problem: Problem) -> Exception:
        return NotDefinedError(
            "method='clt' of the relaxed threat model covers Gaussian steps without sampling, got "
            f"{' and '.join(in_words(problem.mechanism))}"
        )

    def questions(self, problem: Problem) -> Questions:
        from pyengine.engines.clt import CltPair

        return OneOrder(CltPair(problem.mechanism, problem.adjacency))


class _MonteCarlo(_Approximation):
    """Random losses under a tilted law."""

    name = "monte_carlo"

    def questions(self, problem: Problem) -> Questions:
        from pyengine.engines.approximate import in_orders
        from pyengine.engines.monte_carlo import MonteCarloPair

        places = [step.places for step, _ in steps_of(problem.mechanism)]
        if any(places) and problem.adjacency != "substitute":
            from pyengine.engines.shifted_samples import ShiftedSampleQuestions

            return ShiftedSampleQuestions(problem.mechanism, problem.adjacency)
        return in_orders(MonteCarloPair, problem.mechanism, problem.adjacency)


ENGINES: tuple[Engine, ...] = (
    _Blocks(),
    _ClosedForm(),
    _NothingReleased(),
    _RelaxedClosedForm(),
    _Gaussian(),
    _Epoch(),
    _Smooth(),
    _Certified(),
    _Exact(),
    _Product(),
    _Lattice(),
    _Reference(),
    _Edgeworth(),
    _RelaxedLimit(),
    _CentralLimit(),
    _MonteCarlo(),
)
METHODS = (
    "auto",
    "certified",
    "closed_form",
    "spectral",
    "convolution",
    "exact",
    "lattice",
    "blocks",
    "reference",
    "edgeworth",
    "clt",
    "monte_carlo",
)


def considered(method: str) -> list[Engine]:
    """Return the engines that a word of ``method=`` may take, in the order of the registry."""
    return [engine for engine in ENGINES if _considers(method, engine)]


def _considers(method: str, engine: Engine) -> bool:
    if method == "certified":
        return engine.certified
    return method == engine.name or method in engine.methods


def _chosen(problem: Problem) -> Engine:
    """The first engine that supports a problem."""
    for engine in ENGINES:
        if _considers(problem.method, engine) and engine.supports(problem):
            return engine
    # that the adjacency is not defined comes before what an engine cannot do
    if problem.is_relaxed:
        _ = problem.distances
    elif problem.method != "closed_form":
        _ = problem.laws
    raise considered(problem.method)[-1].refusal(problem)


def questions(
    mechanism: Mechanism,
    *,
    adjacency: str,
    method: str,
    threat_model: str | ThreatModel,
    tolerance: float | None,
    wanted: str | None = None,
    proven: bool = False,
) -> Questions:
    """Return what answers questions on a mechanism.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.
    adjacency, method : str
        Words of `ADJACENCIES` and `METHODS`.
    threat_model : str or ThreatModel
        A word of `THREAT_MODELS` or an object of `pyengine.threat_models`.
    tolerance : float or None
        Relative width of a certified bracket; None for the engine's default.
    wanted : {"beta", "gamma"} or None
        Which error of a trade-off function is to have that width; None for both.
    proven : bool
        Whether ``method="auto"`` is to prove the bounds of Gaussian steps on samples where it can;
        else they are estimates, which is quicker.

    Returns
    -------
    Questions
        Ready to be asked.

    Raises
    ------
    ValueError
        Where the adjacency is not defined for the mechanism.
    AccuracyError
        Where no engine can answer for the mechanism.
    """
    model = threat_model_of(threat_model)
    problem = Problem(mechanism, adjacency, method, model, tolerance, wanted)
    engine = _chosen(problem)
    prover = engine.prover() if proven and method == "auto" else None
    if prover is not None:
        quick = _asked_of(engine, problem)
        return EnclosedQuestions(quick, lambda: _asked_of(prover, problem))
    return _asked_of(engine, problem)


def _asked_of(engine: Engine, problem: Problem) -> Questions:
    """Questions that one engine answers, held to the tolerance that was asked for."""
    found = _unjudged(engine, problem)
    if problem.tolerance is None or not engine.bounds_all(problem):
        return found
    return WithinTolerance(found, problem.tolerance, problem.wanted)


def _unjudged(engine: Engine, problem: Problem) -> Questions:
    """Questions that one engine answers, of one order or of both."""
    adjacency = problem.adjacency
    whole = engine.questions(problem)
    if whole is not None:
        return whole
    if adjacency == "add_remove":
        add, remove = (engine.pair(problem.ordered(order)) for order in ("add", "remove"))
        return _both_orders(add, remove)
    pair, attained = engine.pair(problem), problem.attained
    if not attained:
        return OneOrder(pair)
    return Substitution(pair, [questions_on_pair(other) for other in attained])


def questions_on_pair(problem: Problem) -> PairQuestions:
    """Return what answers questions on one ordered pair of laws."""
    return _chosen(problem).pair(problem)


def _both_orders(add: PairQuestions, remove: PairQuestions) -> Questions:
    from pyengine.engines.certified_hull import CertifiedBothOrders
    from pyengine.engines.exact.both import ExactBothOrders
    from pyengine.engines.exact.mixed import Enclosed
    from pyengine.engines.exact.threshold import ThresholdQuestions
    from pyengine.engines.lattice import LatticeBothOrders, LatticePair

    if isinstance(add, LatticePair) and isinstance(remove, LatticePair):
        return LatticeBothOrders(add, remove)
    if isinstance(add, CertifiedPair) and isinstance(remove, CertifiedPair):
        return CertifiedBothOrders(add, remove)
    exact = (ThresholdQuestions, Enclosed)
    if isinstance(add, exact) and isinstance(remove, exact):
        return ExactBothOrders(add, remove)
    return BothOrders(add, remove)
