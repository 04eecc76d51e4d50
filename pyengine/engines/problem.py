"""What is asked of an engine, as it sees it before any work, and what an engine declares."""

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


@dataclass(eq=False)  # frozen would take its constructor twice as long
class Problem:
    """A mechanism and the circumstances of the questions on it; not to be changed.

    Engines on pairs see one order of the adjacency at a time.  The tolerance is the relative width
    of a certified bracket, of both errors of a trade-off function or of the one that is wanted.
    Laws may be given in the place of the mechanism's, of the first order, for a pair of data sets
    that is not the dominating one or for laws that enclose those of the mechanism.  `rows` are
    Gaussian steps as the mechanism has them; None for other problems.
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
        """The same for one order of the pair, which both see the same distances."""
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
        """One order of the pair, the first one where both are asked for."""
        return "add" if self.adjacency == "add_remove" else self.adjacency

    @cached_property
    def distances(self) -> tuple[tuple[MagnitudePair, int], ...]:
        """The distances that the adversary of the relaxed threat model sees.

        Other mechanisms and adjacencies than those of the model are refused.
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
        """Laws of the steps of one order of the pair, which the mechanism has to define."""
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
        """Pairs of data sets with one record substituted, where the laws are only dominating."""
        if self.is_relaxed or self.adjacency != "substitute" or self.given is not None:
            return []
        from pyengine.laws.composition import real_substitutions

        found = real_substitutions(self.mechanism) or []
        return [replace(self, given=tuple(laws)) for laws in found]


Ask = Callable[[Problem], Questions]


class Engine:
    """What an engine declares, and how it is asked.

    `name` is the word of ``method=`` that asks for it, and `methods` are further words that
    consider it, in the order of the registry.  Of a certified engine every bound is proven,
    floating point included, and it is considered for ``method="certified"``; its proofs may need
    that the errors of all steps' masses are proven.  An engine has only bounds where none knows
    more.
    """

    name: ClassVar[str]
    methods: ClassVar[tuple[str, ...]] = ()
    certified: ClassVar[bool] = False
    only_bounds: ClassVar[bool] = False
    needs_masses: ClassVar[bool] = True
    words: ClassVar[frozenset[str]] = frozenset()  # of ``method=`` that consider it

    def __init_subclass__(cls) -> None:
        """Gather the words: the registry looks at them for every question."""
        words = {getattr(cls, "name", ""), *cls.methods} - {"certified"}
        cls.words = frozenset(words | {"certified"} if cls.certified else words)

    def supports(self, problem: Problem) -> bool:
        """Whether it can answer, decided before any work that is not kept for the answer."""
        raise NotImplementedError

    def refusal(self, problem: Problem) -> Exception:
        """Why it does not support a problem, with advice, for those who name it."""
        return AccuracyError(f"method={problem.method!r} cannot answer for {problem.mechanism}")

    def narrows(self, problem: Problem) -> bool:
        """Whether bounds that are apart by themselves come closer where less is tolerated."""
        del problem
        return False

    def prover(self) -> Engine | None:
        """The engine that proves bounds of what this one estimates; None where none is asked."""
        return None

    def questions(self, problem: Problem, ask: Ask) -> Questions:
        """What answers for the adjacency as a whole, made from its pairs where not said otherwise.

        Other mechanisms, or the same one by another method, are had from ``ask``.
        """
        if problem.adjacency == "add_remove":
            pairs = (self.pair(problem.ordered(order)) for order in ("add", "remove"))
            return self.both(problem, ask, *pairs)
        pair, attained = self.pair(problem), problem.attained
        return substituted(pair, [ask(other) for other in attained]) if attained else pair

    def both(self, problem: Problem, ask: Ask, add: Any, remove: Any) -> Questions:
        """What answers on both orders, from what answers on each."""
        from pyengine.engines.hull import joined

        del problem, ask
        return joined(add, remove)

    def pair(self, problem: Problem) -> Questions:
        """What answers on one ordered pair."""
        raise NotImplementedError
