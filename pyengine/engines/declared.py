"""All engines in order: what each supports, and how it is asked.

Only the engines for DP-SGD are imported here; others are imported when they are needed.
"""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar

from pyengine._support.caches import Once
from pyengine.engines.answers import Questions
from pyengine.engines.certified import CertifiedPair
from pyengine.engines.certified_hull import CertifiedBothOrders
from pyengine.engines.closed_form import (
    ClosedForm,
    closed_form_step,
    gaussian_questions,
    has_closed_form,
)
from pyengine.engines.curves import Dominated, NothingReleased, Unproven, substituted
from pyengine.engines.gaussian import GaussianSide
from pyengine.engines.hull import Between
from pyengine.engines.pairs import GaussianRows, enclosing_pairs, gaussian_rows
from pyengine.engines.problem import Ask, Engine, Problem
from pyengine.engines.refusals import LOOSEST
from pyengine.errors import AccuracyError, NotDefinedError
from pyengine.mechanisms import Mechanism, Step, steps_of

if TYPE_CHECKING:
    from pyengine.engines.row_sides import EstimatedSide, RowSide
    from pyengine.engines.vertical_lines.order import LineOrder
    from pyengine.engines.vertical_lines.questions import LineQuestions, Others
    from pyengine.engines.vertical_lines.range import Laws

__all__ = ["ENGINES"]

# relative widths of bounds above which the next means are tried: after lines, after deformed lines
# or sampled steps, and after lines where sampled steps have sector laws or rows
NARROW, WIDE, CLOSE = 1e-9, 1e-8, 1e-10
PAIRS = 1e-3  # relative accuracy of the law of two random steps of a record, about


def _is_law(problem: Problem) -> bool:
    """Whether the problem is about the mechanism's own laws."""
    return not problem.is_relaxed and problem.given is None


class NothingReleasedEngine(Engine):
    """Gaussian steps of sampling probability 0, and the same in the relaxed threat model."""

    name = "closed_form"
    methods = ("auto", "exact", "lattice", "clt")
    certified = True

    def supports(self, problem: Problem) -> bool:
        if problem.is_relaxed:
            return not problem.distances
        return problem.rows == [] and problem.method != "clt"

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        return NothingReleased()


class ClosedFormEngine(Engine):
    """One sampled Gaussian step, one Gaussian batch of fixed size, and steps without sampling."""

    name = "closed_form"
    methods = ("auto",)
    certified = True

    def supports(self, problem: Problem) -> bool:
        if problem.rows is not None:
            return has_closed_form(problem.rows)
        return _single_batch(problem) is not None

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        rows, adjacency = problem.rows, problem.adjacency
        if rows is None:
            rows, adjacency = _single_batch(problem), "add_remove"
        assert rows is not None
        return ClosedForm(closed_form_step(rows, adjacency), problem.tolerance)


def _single_batch(problem: Problem) -> GaussianRows | None:
    """The rows of one Gaussian batch of fixed size under ``substitute``; None for other problems.

    Both orders of the pair without the record are attained, and together they have the largest
    profile (Theorem 15 of Lebeda et al., 2024): the answer is the hull of both
    (docs/theory/adjacency).
    """
    if problem.adjacency != "substitute" or not _is_law(problem):
        return None
    steps = steps_of(problem.mechanism)
    if len(steps) != 1 or steps[0][1] != 1 or steps[0][0].scheme != "without_replacement":
        return None
    return gaussian_rows(problem.mechanism, "add")


class RelaxedClosedFormEngine(Engine):
    """The relaxed threat model: the law of one length in closed form."""

    name = "closed_form"
    methods = ("auto",)

    def supports(self, problem: Problem) -> bool:
        return problem.is_relaxed and [number for _, number in problem.distances] == [1]

    def refusal(self, problem: Problem) -> Exception:
        if problem.is_relaxed:
            from pyengine.engines.relaxed.questions import no_closed_form

            return no_closed_form(problem.mechanism)
        return NotDefinedError(
            "method='closed_form' is available for Gaussian steps without sampling and for a "
            f"single sampled step, got {problem.mechanism}"
        )

    def pair(self, problem: Problem) -> Questions:
        from pyengine.engines.relaxed.questions import RelaxedQuestions

        return RelaxedQuestions(problem.distances[0][0], problem.order)


class ExactEngine(Engine):
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

    def pair(self, problem: Problem) -> Questions:
        from pyengine.engines.exact import exact_questions

        return exact_questions(problem.laws)


class LatticeEngine(Engine):
    """Any steps, with losses rounded down and up to a lattice.

    Steps whose law is known only between two others are composed twice, once with each.
    """

    name = "lattice"
    methods = ("auto",)
    certified = True

    def supports(self, problem: Problem) -> bool:
        return True

    def pair(self, problem: Problem) -> Questions:
        from pyengine.engines.lattice import TOLERANCE

        laws = problem.laws
        tolerance = TOLERANCE if problem.tolerance is None else problem.tolerance
        if all(law.has_cells for law, _ in laws):
            return self._of(problem, laws, tolerance)
        # both lattices' widths and the distance of both laws share the tolerance
        enclosed = [(law.enclosed(problem.tolerance), number) for law, number in laws]
        sides = ([(both[i], number) for both, number in enclosed] for i in (0, 1))
        return Between(*(self._of(problem, side, 0.25 * tolerance) for side in sides))

    @staticmethod
    def _of(problem: Problem, laws: Any, tolerance: float) -> Questions:
        """Questions on steps whose laws are known."""
        from pyengine.engines.exact import disjoint_questions
        from pyengine.engines.exact.single import SingleStep
        from pyengine.engines.exact.threshold import ThresholdQuestions
        from pyengine.engines.lattice import LatticePair

        told_apart = disjoint_questions(laws, "lattice")
        if told_apart is not None:
            return told_apart
        loosest = LOOSEST if problem.tolerance is None else 0.0
        pair = LatticePair(laws, tolerance, problem.wanted, loosest=loosest)
        if sum(number for _, number in pair.parts) == 1:  # one edge is all that it takes
            return ThresholdQuestions(SingleStep(pair.parts[0][0]), "lattice")
        return pair


def _are_smooth(problem: Problem) -> bool:
    """Whether there are several steps and all may be mixtures of normals; imports no engine."""
    laws = problem.laws
    return sum(number for _, number in laws) > 1 and all(
        law.mixtures() is not None or law.nodes(number) is not None for law, number in laws
    )


def _has_epochs(problem: Problem) -> bool:
    """Whether there are epochs of random allocation among the steps; imports no engine."""
    return any(law.tabulated() is not None for law, _ in problem.laws)


class CertifiedEngine(Engine):
    """Sampled Gaussian steps, their mixtures and epochs, by rows with proven errors.

    The lattice answers where these have no narrow bounds.
    """

    name = "certified"
    methods = ("auto",)
    certified = True

    def supports(self, problem: Problem) -> bool:
        if problem.rows is not None:
            return True
        return _is_law(problem) and _side(problem) is not None

    def pair(self, problem: Problem) -> CertifiedPair:
        other = partial(LatticeEngine().pair, problem)
        return CertifiedPair(*_sides(problem), problem.tolerance, other)

    def both(self, problem: Problem, ask: Ask, add: Any, remove: Any) -> Questions:
        return CertifiedBothOrders(add, remove)


def _side(problem: Problem) -> RowSide | None:
    """The side with proven rows of steps that are not all Gaussian; None without one."""
    if _are_smooth(problem):
        from pyengine.engines.smooth import SmoothSide, smooth_pair

        pair = smooth_pair(problem.laws)
        smooth = None if pair is None else SmoothSide.of(pair)
        if smooth is not None:
            return smooth
    if not _has_epochs(problem):
        return None
    from pyengine.engines.certified_epochs import EpochSide

    return EpochSide.of(problem.laws)


def _sides(problem: Problem) -> tuple[RowSide, RowSide]:
    """The private and the public side.

    They differ where parameters are no doubles: pairs of doubles enclose the pair.
    """
    if problem.rows is None:
        side = _side(problem)
        assert side is not None
        return side, side
    rates = [probability for _, _, probability, _ in problem.rows]
    private, public = enclosing_pairs(problem.rows, problem.order)
    public_side = GaussianSide(public, rates)
    if private == public:
        return public_side, public_side
    return GaussianSide(private, rates), public_side


class NodesEngine(CertifiedEngine):
    """Epochs, and mixtures without proven rows, by nodes of densities with estimated errors.

    Proofs for epochs take twenty times as long.
    """

    name = "spectral"
    certified = False

    def supports(self, problem: Problem) -> bool:
        if problem.rows is not None or not _is_law(problem):
            return False
        if not _has_epochs(problem) and super().supports(problem):
            return False
        return _estimated(problem) is not None

    def prover(self) -> Engine:
        return CertifiedEngine()

    def pair(self, problem: Problem) -> CertifiedPair:
        from pyengine.engines.estimated_pair import EstimatedPair

        side = _estimated(problem)
        assert side is not None
        return EstimatedPair(side, problem.tolerance)


def _estimated(problem: Problem) -> EstimatedSide | None:
    """The side with estimated rows; None without one."""
    found = None
    if _has_epochs(problem):
        from pyengine.engines.certified_epochs import tabulated_epochs
        from pyengine.engines.row_sides import EstimatedSide

        found = tabulated_epochs(problem.laws)
        if found is not None and (found.epochs == 1 or found.law.nodes(found.epochs) is None):
            return EstimatedSide(lambda: found, found.name, found.ends)
    if not _are_smooth(problem):
        return None
    from pyengine.engines.smooth import estimated_side, smooth_pair

    pair = smooth_pair(problem.laws)
    return None if pair is None else estimated_side(pair, found)


class AnalyticEngine(Engine):
    """Steps with analytic densities, sampled or not, composed also with Gaussian steps, by lines.

    The lattice estimates where lines have no narrow bounds.
    """

    name = "certified"
    methods = ("auto",)
    certified = True
    needs_masses = False

    def supports(self, problem: Problem) -> bool:
        if not _is_law(problem) or problem.adjacency == "substitute":
            return False
        if not any(step.inner.is_analytic for step, _ in steps_of(problem.mechanism)):
            return False
        from pyengine.engines.vertical_lines.range import line_order

        return line_order(problem.laws) is not None

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        from pyengine.engines.analytic_lines.far import FarQuestions

        near, known = self._asked(problem, ask, far=False)
        return FarQuestions(
            near, known, problem.tolerance, lambda: self._asked(problem, ask, far=True)
        )

    def pair(self, problem: Problem) -> LineQuestions:
        return self._pair(problem, far=False)

    def _asked(self, problem: Problem, ask: Ask, *, far: bool) -> tuple[Questions, float]:
        """Questions on laws truncated near or far out, and the least value they know closely."""
        from pyengine.engines.vertical_lines.questions import LineBothOrders, Others

        if problem.adjacency != "add_remove":
            pair = self._pair(problem, far)
            return pair, pair.law.least_known
        add, remove = (self._pair(problem.ordered(order), far) for order in ("add", "remove"))
        asked = LineBothOrders(
            add, remove, Others.of(lambda: ask(replace(problem, method="lattice")))
        )
        return asked, max(pair.law.least_known for pair in (add, remove))

    def _pair(self, problem: Problem, far: bool) -> LineQuestions:
        from pyengine.engines.vertical_lines.questions import LineQuestions, Others
        from pyengine.engines.vertical_lines.range import line_order

        law = line_order(problem.laws, far=far)
        if law is None:
            raise AccuracyError(
                "values this small need the densities farther out than they can be proven; "
                "method='lattice' estimates them"
            )
        lattice = Others.of(lambda: Unproven(LatticeEngine().pair(problem)))
        return LineQuestions(law, problem.tolerance, lattice)


class EnclosedEngine(Engine):
    """Steps whose law is known only between two others, by questions on both of these."""

    name = "certified"
    methods: ClassVar[tuple[str, ...]] = ("auto", "exact", "lattice")
    certified = True

    def supports(self, problem: Problem) -> bool:
        return _is_law(problem) and any(law.is_bracketed for law, _ in problem.laws)

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        tolerance = problem.tolerance
        both = [(law.enclosed(tolerance), number) for law, number in problem.laws]
        part = None if tolerance is None else 0.25 * tolerance
        sides = (tuple((laws[i], number) for laws, number in both) for i in (0, 1))
        below, above = (ask(replace(problem, given=side, tolerance=part)) for side in sides)
        found, attained = Between(below, above), problem.attained
        return substituted(found, [ask(other) for other in attained]) if attained else found


class LineEngine(Engine):
    """Steps of one kind or several by vertical lines, deformed ones where steps are few.

    Exact sums or the lattice answer where lines have no narrow bounds.
    """

    name = "certified"
    methods = ("auto",)
    certified = True

    def supports(self, problem: Problem) -> bool:
        if problem.is_relaxed or problem.attained:
            return False
        if problem.given is not None and problem.adjacency == "substitute":
            return False
        steps = sum(number for _, number in problem.laws)
        if steps < 2 or all(law.finite() is not None for law, _ in problem.laws):
            return False  # decided without importing the orders
        from pyengine.engines.vertical_lines.range import line_order, order_of_samples

        laws = tuple(problem.laws)
        return line_order(problem.laws) is not None or order_of_samples(laws) is not None

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        if problem.adjacency != "add_remove":
            return self.pair(problem)

        problem = replace(problem, wanted=None)
        asked = _sums(problem, lambda engine: ask(replace(problem, method=engine.name)))
        add, remove = (_handing_over(problem.ordered(order)) for order in ("add", "remove"))
        # the first to be asked are last in each list; pair these
        both = min(len(add), len(remove))
        for one, other in zip(add[len(add) - both :], remove[len(remove) - both :], strict=True):
            asked = asked.after(
                partial(_on_both, one.all, other.all), partial(_on_both, one.closer, other.closer)
            )
        found: Questions = asked.all()
        return found

    def pair(self, problem: Problem) -> LineQuestions:
        found: LineQuestions = _handing_over(problem)[-1].all()
        return found


def _sums(problem: Problem, ask: Callable[[Engine], Questions]) -> Others:
    """Exact sums or the lattice, for answers for which lines have no narrow bounds."""
    from pyengine.engines.vertical_lines.questions import WIDEST, NobodyElseError, Others

    exact = ExactEngine()

    def closer() -> Questions:
        if exact.supports(problem):
            return ask(exact)
        raise NobodyElseError("the lattice knows no more")

    def either() -> Questions:
        return ask(exact if exact.supports(problem) else LatticeEngine())

    return Others(either, closer, WIDEST if problem.tolerance is None else problem.tolerance)


def _handing_over(problem: Problem) -> list[Others]:
    """The means that serve a pair, the first to ask last; each falls back on the one before."""
    from pyengine.engines.vertical_lines.range import (
        are_long,
        deformed_order,
        line_order,
        may_have_samples,
        order_on_pieces,
    )

    # orders, and the widths above which the next one is asked
    steps: list[tuple[LineOrder, float]] = []
    line = line_order(problem.laws)
    if line is not None:
        steps.append((line, NARROW))
    deformed = None if line is not None and line.is_deformed else deformed_order(problem.laws)
    if deformed is not None:
        steps.append((deformed, WIDE))
    pieces = None
    if line is not None and are_long(line, problem.laws):
        pieces = order_on_pieces(problem.laws)
    if pieces is not None:
        steps.insert(0, (pieces, CLOSE))
    laws: list[tuple[Callable[[], LineOrder], float]] = []
    laws += [(partial(_first, law), width) for law, width in steps]
    if pieces is None and may_have_samples(problem.laws):
        last = steps[-1][0] if steps else None
        if last is not None:
            laws[-1] = laws[-1][0], CLOSE
        laws.append((partial(_made_or, last, tuple(problem.laws)), WIDE))

    found: list[Others] = []
    problem = replace(problem, wanted=None)
    asked = _sums(problem, lambda engine: engine.pair(problem))
    for law, width in reversed(laws):
        tolerance = problem.tolerance
        if found:
            tolerance = width if tolerance is None else min(width, tolerance)
        make = partial(_on, law, tolerance)
        asked = asked.after(make, make)
        found.append(asked)
    return found


def _first(law: LineOrder) -> LineOrder:
    return law


def _made_or(last: LineOrder | None, laws: Laws) -> LineOrder:
    """The order of sampled steps; without one ``last`` again, with a larger width."""
    from pyengine.engines.vertical_lines.range import order_of_samples

    found = order_of_samples(laws) or last
    assert found is not None
    return found


def _on(law: Callable[[], LineOrder], tolerance: float | None, others: Others) -> LineQuestions:
    from pyengine.engines.vertical_lines.questions import LineQuestions

    return LineQuestions(law(), tolerance, others)


def _on_both(
    add: Callable[[], LineQuestions], remove: Callable[[], LineQuestions], others: Others
) -> Questions:
    from pyengine.engines.vertical_lines.questions import LineBothOrders

    return LineBothOrders(add(), remove(), others)


class ReferenceEngine(Engine):
    """Arbitrary precision arithmetic."""

    name = "reference"  # not `certified`: some values have no proof

    def supports(self, problem: Problem) -> bool:
        return problem.given is None

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        from pyengine.engines.ground_truth import GroundTruth

        return GroundTruth(problem.mechanism, problem.adjacency, problem.threat_model)


class ApproximationEngine(Engine):
    """Base of the approximations of published papers."""

    def supports(self, problem: Problem) -> bool:
        return _is_law(problem)

    def refusal(self, problem: Problem) -> Exception:
        return NotDefinedError(
            f"method={problem.method!r} does not answer for threat_model='relaxed'"
        )


def _beside_truth(found: Questions, problem: Problem, ask: Ask) -> Questions:
    """An approximation, with the bounds widened to contain proven ones."""
    from pyengine.engines.approximate import BesideTruth

    truth = replace(problem, method="auto", tolerance=None, wanted=None)
    return BesideTruth(found, problem.method, partial(ask, truth))


class EdgeworthEngine(ApproximationEngine):
    """Edgeworth expansion about the normal law."""

    name = "edgeworth"

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        from pyengine.engines.approximate import in_orders
        from pyengine.engines.edgeworth import EdgeworthPair

        found = in_orders(EdgeworthPair, problem.mechanism, problem.adjacency)
        return _beside_truth(found, problem, ask)


class CentralLimitEngine(Engine):
    """One Gaussian for all steps; in the relaxed threat model normal laws for squared lengths."""

    name = "clt"

    def supports(self, problem: Problem) -> bool:
        if not problem.is_relaxed:
            return problem.given is None
        parts = problem.distances
        return [number for _, number in parts] == [1] and parts[0][0].limit() is not None

    def refusal(self, problem: Problem) -> Exception:
        from pyengine.mechanisms import in_words

        return NotDefinedError(
            "method='clt' of the relaxed threat model covers Gaussian steps without sampling, got "
            f"{' and '.join(in_words(problem.mechanism))}"
        )

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        if problem.is_relaxed:
            from pyengine.engines.relaxed.questions import LimitQuestions

            limit = problem.distances[0][0].limit()
            assert limit is not None
            return LimitQuestions(*limit, problem.adjacency)
        from pyengine.engines.loss_quadrature import clt_distance

        return _beside_truth(gaussian_questions(clt_distance(problem.mechanism)), problem, ask)


class MonteCarloEngine(ApproximationEngine):
    """Random losses under a tilted law."""

    name = "monte_carlo"

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        from pyengine.engines.approximate import in_orders
        from pyengine.engines.blocks import in_blocks
        from pyengine.engines.monte_carlo import MonteCarloPair

        places = [step.places for step, _ in steps_of(problem.mechanism)]
        if any(places) and problem.adjacency != "substitute":
            from pyengine.engines.allocated_samples import AllocatedSampleQuestions

            above = replace(problem, mechanism=in_blocks(problem.mechanism), method="auto")
            above = replace(above, tolerance=None, wanted=None)
            return AllocatedSampleQuestions(
                problem.mechanism,
                problem.adjacency,
                lambda order: ask(above.ordered(order)),
                problem.wanted,
            )
        return in_orders(MonteCarloPair, problem.mechanism, problem.adjacency)


class BlocksEngine(Engine):
    """Steps without a law, between mechanisms that dominate and that are dominated.

    Epochs with several random steps of a record, and selections; under ``substitute`` all epochs
    of random allocation.
    """

    name = "blocks"
    methods: ClassVar[tuple[str, ...]] = ("auto", "lattice", "reference")
    only_bounds = True
    needs_masses = False  # checked for the other mechanisms

    def supports(self, problem: Problem) -> bool:
        if not _is_law(problem):
            return False
        if problem.adjacency == "substitute":
            from pyengine.engines.replaced import needs_the_rest

            return needs_the_rest(problem.mechanism)
        if problem.rows is not None:  # Gaussian steps have laws
            return False
        return any(_has_no_law(step) for step, _ in steps_of(problem.mechanism))

    def refusal(self, problem: Problem) -> Exception:
        from pyengine.mechanisms import in_words

        return AccuracyError(
            "method='blocks' bounds epochs of random allocation with selected > 1, and selections "
            "among runs, got "
            f"{' and '.join(in_words(problem.mechanism))}"
        )

    def narrows(self, problem: Problem) -> bool:
        from pyengine.engines.blocks import has_pairs

        is_one_of_them = problem.method in ("auto", "certified", "lattice")
        return is_one_of_them and has_pairs(problem.mechanism)

    def prover(self) -> Engine:
        return ProvenBlocksEngine()

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        from pyengine.engines.blocks import NAME, dominated, dominating, in_blocks

        method = "auto" if problem.method == self.name else problem.method
        method = "certified" if self.certified else method

        def asked(mechanism: Mechanism, problem: Problem = problem) -> Questions:
            return ask(replace(problem, mechanism=mechanism, method=method, tolerance=None))

        def best_of(step: Step) -> Mechanism:
            from pyengine.engines.selected import selected_pair  # here, as few runs need it

            run = replace(problem, method="certified", adjacency="add_remove", wanted=None)
            return selected_pair(
                step, lambda base, epsilon: ask(replace(run, mechanism=base)).profile(epsilon)
            )

        if problem.adjacency == "substitute":
            from pyengine.engines.replaced import ThroughTheRest, needs_the_rest, summed

            above = dominating(problem.mechanism)
            if not needs_the_rest(above):  # all runs of a selection
                return Dominated(asked(above), [], NAME)

            def of(order: str) -> Questions:
                one = replace(problem, adjacency=order)
                return self.questions(one, ask) if self.supports(one) else asked(one.mechanism, one)

            def lower() -> Questions:
                try:
                    return asked(summed(problem.mechanism))
                except NotDefinedError as error:  # by other steps: there is no lower bound
                    raise AccuracyError(str(error)) from error

            through = ThroughTheRest(of("add"), of("remove"))
            return Dominated(through, [partial(of, "add_remove"), lower], NAME)
        below = [partial(asked, mechanism) for mechanism in dominated(problem.mechanism)]
        if method == "reference" or problem.method == self.name:  # only blocks of one step
            above = dominating(in_blocks(problem.mechanism), best_of)
        else:
            above = dominating(problem.mechanism, best_of)

        def of_law() -> Questions:
            wanted = None if problem.tolerance is None else max(problem.tolerance, PAIRS)
            lattice = replace(problem, method="lattice", tolerance=wanted)
            found = LatticeEngine().questions(lattice, ask)
            return found if problem.has_proven_masses else Unproven(found)

        own = Once(of_law) if self.narrows(problem) else None
        return Dominated(asked(above), below, NAME, own)


class ProvenBlocksEngine(BlocksEngine):
    """The same with proven questions on the other mechanisms."""

    methods = ()
    certified = True


class RevealedEngine(Engine):
    """Mixtures whose release names the part, by questions on the parts."""

    name = "certified"
    methods: ClassVar[tuple[str, ...]] = ("auto", "exact", "lattice", "reference")
    needs_masses = False  # checked for the parts

    def supports(self, problem: Problem) -> bool:
        steps = steps_of(problem.mechanism)
        if not _is_law(problem) or not any(step.revealed for step, _ in steps):
            return False
        from pyengine.mechanisms.revealed import parts_of  # here, as few runs need it

        with suppress(AccuracyError, NotDefinedError):  # raised by mixtures without a law
            if all(law.finite() is not None for law, _ in problem.laws) or _are_smooth(problem):
                return False
        return bool(parts_of(problem.mechanism))

    def prover(self) -> Engine:
        return ProvenRevealedEngine()

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        from pyengine.engines.revealed import RevealedPair
        from pyengine.mechanisms.revealed import parts_of

        shares, parts = zip(*parts_of(problem.mechanism), strict=True)
        method = "certified" if self.certified else problem.method

        def asked(order: str) -> list[Questions]:
            one = replace(problem, adjacency=order, method=method)
            return [ask(replace(one, mechanism=part)) for part in parts]

        if problem.adjacency == "substitute":
            both = asked("substitute")
            return RevealedPair(shares, both, both)
        add, remove = asked("add"), asked("remove")
        orders = RevealedPair(shares, add, remove), RevealedPair(shares, remove, add)
        if problem.adjacency == "add_remove":
            return self.both(problem, ask, *orders)
        return orders[problem.adjacency == "remove"]


class ProvenRevealedEngine(RevealedEngine):
    """The same with proven questions on the parts."""

    methods = ()
    certified = True


def _has_no_law(step: Step) -> bool:
    if step.repeated or step.scheme != "allocated":
        return bool(step.repeated or step.enclosing)
    from pyengine.engines.blocks import enclosing

    return enclosing(step) is not None


# in the order in which the registry tries them, cheap ones before costly ones
ENGINES: tuple[Engine, ...] = (
    BlocksEngine(),
    ProvenBlocksEngine(),
    ClosedFormEngine(),
    NothingReleasedEngine(),
    RelaxedClosedFormEngine(),
    RevealedEngine(),
    ProvenRevealedEngine(),
    AnalyticEngine(),
    NodesEngine(),
    CertifiedEngine(),
    EnclosedEngine(),
    LineEngine(),
    ExactEngine(),
    LatticeEngine(),
    ReferenceEngine(),
    EdgeworthEngine(),
    CentralLimitEngine(),
    MonteCarloEngine(),
)
