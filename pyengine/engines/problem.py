"""A problem, as engines see it before any work, and the interface of an engine."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, ClassVar

from pyengine._support.caches import cached_property
from pyengine.engines.answers import Questions
from pyengine.engines.curves import substituted
from pyengine.engines.pairs import GaussianRows, gaussian_rows
from pyengine.errors import AccuracyError, NotDefinedError
from pyengine.mechanisms import Mechanism
from pyengine.mechanisms.threat_models import DifferentialPrivacy, Relaxed, ThreatModel

if TYPE_CHECKING:
    from pyengine.engines.relaxed.core import MagnitudePair
    from pyengine.laws.base import StepLaw
    from pyengine.laws.composition import Laws

__all__ = ["Ask", "Engine", "Problem"]

DP = DifferentialPrivacy()


@dataclass(eq=False)  # not frozen: that takes twice as long to construct
class Problem:
    """A mechanism, an adjacency, and how to answer questions on them; not to be changed.

    Engines on pairs see one order of the adjacency at a time.  The tolerance is the largest
    relative width of bounds, of both errors of a trade-off function or of the ``wanted`` one.
    ``given`` laws, of the order `order`, replace those of the mechanism: for pairs of data sets
    that do not dominate, and for laws that enclose others.  `rows` are the parameters of Gaussian
    steps; None unless all steps are such.
    """

    mechanism: Mechanism
    adjacency: str
    method: str = "auto"
    threat_model: ThreatModel = DP
    tolerance: float | None = None
    wanted: str | None = None
    given: tuple[tuple[StepLaw, int], ...] | None = None
    is_relaxed: bool = field(init=False)
    rows: GaussianRows | None = field(init=False)

    def __post_init__(self) -> None:
        self.is_relaxed = isinstance(self.threat_model, Relaxed)
        known = self.given is not None or self.is_relaxed
        self.rows = None if known else gaussian_rows(self.mechanism, self.order)

    def ordered(self, order: str) -> Problem:
        """The same for one order of the pair; both orders share `distances`."""
        if order == self.adjacency:
            return self
        given = self.given
        if given is not None and order != self.order:
            given = tuple((law.exchanged(), number) for law, number in given)
        other = replace(self, adjacency=order, given=given)
        if self.is_relaxed:
            vars(other)["distances"] = self.distances
        return other

    @property
    def order(self) -> str:
        """The order of the pair: for ``add_remove`` the first one, ``add``."""
        return "add" if self.adjacency == "add_remove" else self.adjacency

    @cached_property
    def distances(self) -> tuple[tuple[MagnitudePair, int], ...]:
        """The pairs of lengths that the adversary of the relaxed threat model observes.

        Refuses mechanisms and adjacencies that the model does not define.
        """
        if self.adjacency not in ("add", "remove", "add_remove"):
            raise NotDefinedError(
                "adjacency must be 'add', 'remove' or 'add_remove' with threat_model='relaxed', "
                f"got {self.adjacency!r}"
            )
        from pyengine.engines.relaxed.parts import magnitude_parts

        assert isinstance(self.threat_model, Relaxed)
        return magnitude_parts(self.mechanism, self.threat_model)

    @cached_property
    def laws(self) -> Laws:
        """Laws of the steps in the order `order`; refused where the mechanism defines none."""
        if self.given is not None:
            return list(self.given)
        if not self.is_relaxed:
            from pyengine.laws.composition import composition_law

            return composition_law(self.mechanism, self.order)
        from pyengine.laws.base import ReversedLaw

        add = [(part.law(), number) for part, number in self.distances]
        return add if self.order == "add" else [(ReversedLaw(law), number) for law, number in add]

    @property
    def has_proven_masses(self) -> bool:
        """Whether the errors of all steps' masses are proven."""
        return self.rows is not None or all(law.is_proven for law, _ in self.laws)

    @property
    def attained(self) -> list[Problem]:
        """Actual pairs of data sets under ``substitute``, where the laws only dominate these."""
        if self.is_relaxed or self.adjacency != "substitute" or self.given is not None:
            return []
        from pyengine.laws.composition import real_substitutions

        found = real_substitutions(self.mechanism) or []
        return [replace(self, given=tuple(laws)) for laws in found]


Ask = Callable[[Problem], Questions]


class Engine:
    """What an engine declares, and how it is asked.

    `name` is its word of ``method=``, and `methods` are further words that consider it, in the
    order of the registry.  All bounds of a `certified` engine are proven, floating point included,
    and ``method="certified"`` considers it; if it `needs_masses`, only where the errors of all
    steps' masses are proven.  `only_bounds`: its bounds may be far apart, as no engine has better.
    """

    name: ClassVar[str]
    methods: ClassVar[tuple[str, ...]] = ()
    certified: ClassVar[bool] = False
    only_bounds: ClassVar[bool] = False
    needs_masses: ClassVar[bool] = True
    words: ClassVar[frozenset[str]] = frozenset()  # of ``method=`` that consider it

    def __init_subclass__(cls) -> None:
        """Gather `words`, which the registry looks up for every question."""
        words = {getattr(cls, "name", ""), *cls.methods} - {"certified"}
        cls.words = frozenset(words | {"certified"} if cls.certified else words)

    def supports(self, problem: Problem) -> bool:
        """Whether it can answer; work done to decide this must be kept for the answer."""
        raise NotImplementedError

    def refusal(self, problem: Problem) -> Exception:
        """The error, with advice, for a caller who named the engine for such a problem."""
        return AccuracyError(f"method={problem.method!r} cannot answer for {problem.mechanism}")

    def narrows(self, problem: Problem) -> bool:
        """Whether a smaller tolerance narrows bounds of an engine with `only_bounds`."""
        del problem
        return False

    def prover(self) -> Engine | None:
        """The engine that proves bounds where this one estimates; None without one."""
        return None

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        """Questions for the whole adjacency, by default made from those on its pairs.

        ``ask`` returns the questions on another problem, by whatever engine it has.
        """
        if problem.adjacency == "add_remove":
            pairs = (self.pair(problem.ordered(order)) for order in ("add", "remove"))
            return self.both(problem, ask, *pairs)
        pair, attained = self.pair(problem), problem.attained
        return substituted(pair, [ask(other) for other in attained]) if attained else pair

    def both(self, problem: Problem, ask: Ask, add: Any, remove: Any) -> Questions:
        """Questions on ``add_remove`` from those on each order."""
        from pyengine.engines.hull import joined

        del problem, ask
        return joined(add, remove)

    def pair(self, problem: Problem) -> Questions:
        """Questions on one ordered pair."""
        raise NotImplementedError
