"""From a mechanism and an adjacency to the laws of its steps."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction

from pyengine._support.caches import kept
from pyengine.errors import NotDefinedError
from pyengine.laws.base import StepLaw
from pyengine.laws.kinds import added_law, kind_of_step, plain_law
from pyengine.laws.substituted import spliced, spliced_density
from pyengine.mechanisms import Mechanism, Step, step_in_words, steps_of

__all__ = ["composition_law", "real_substitutions", "step_law"]

Laws = list[tuple[StepLaw, int]]


def composition_law(mechanism: Mechanism, adjacency: str) -> Laws:
    """Return the ordered pair (A, B) of each different step, and how often it runs.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.
    adjacency : {"add", "remove", "substitute"}
        ``add``: A is without the record; ``remove``: B is; ``substitute``: a pair that dominates
        both orders of two data sets that differ in one record.

    Returns
    -------
    list of (StepLaw, int)
        Steps that never see the record are left out.

    Raises
    ------
    ValueError
        For adjacency ``substitute`` if the mechanism does not define what replacing a record does.
    """
    return list(_laws(mechanism, adjacency))


@kept(256)
def _laws(mechanism: Mechanism, adjacency: str) -> tuple[tuple[StepLaw, int], ...]:
    steps = [(step, number) for step, number in steps_of(mechanism) if _share(step) > 0]
    return tuple(_joined(steps, lambda step: step_law(step, adjacency)))


def _joined(steps: list[tuple[Step, int]], law_of: Callable[[Step], StepLaw]) -> Laws:
    """Laws of steps; those whose kind has a joint law (`Kind.joined`) give one law together."""
    laws: Laws = []
    groups: dict[Callable[[list[tuple[Step, int]]], StepLaw], list[tuple[Step, int]]] = {}
    for step, number in steps:
        kind = kind_of_step(step)
        if kind is not None and kind.joined is not None:
            groups.setdefault(kind.joined, []).append((step, number))
        else:
            laws.append((law_of(step), number))
    return [*laws, *((join(parts), 1) for join, parts in groups.items())]


def real_substitutions(mechanism: Mechanism) -> list[Laws] | None:
    """Return compositions that some two data sets with one record replaced attain.

    None if `composition_law` itself is attained.  Otherwise each composition gives a lower bound of
    γ, δ and ε; none is known to be the worst (docs/theory/adjacency).
    """
    steps = [(step, number) for step, number in steps_of(mechanism) if _share(step) > 0]
    open_ = sum(n for step, n in steps if step.scheme == "without_replacement")
    if open_ <= 1 and len(steps) == open_:
        return None
    if open_ == 0:
        return None

    def law(step: Step, order: str) -> StepLaw:
        return step_law(step, order if step.scheme == "without_replacement" else "substitute")

    alone = [(step, n) for step, n in steps if not _is_joined(step)]
    joined = _joined([part for part in steps if _is_joined(part[0])], lambda step: law(step, "add"))
    compositions = [
        [*joined, *((law(step, order), n) for step, n in alone)] for order in ("add", "remove")
    ]
    mixed = list(joined)
    for step, n in alone:
        if step.scheme == "without_replacement":
            halves = ((law(step, "remove"), n - n // 2), (law(step, "add"), n // 2))
            mixed += [part for part in halves if part[1]]
        else:
            mixed.append((law(step, "add"), n))
    return [*compositions, mixed]


def _is_joined(step: Step) -> bool:
    kind = kind_of_step(step)
    return kind is not None and kind.joined is not None


def _share(step: Step) -> Fraction | float:
    """Probability with which a record takes part; 0 for a step that releases nothing about it."""
    kind = kind_of_step(step)
    if kind is not None and kind.is_trivial is not None and kind.is_trivial(step):
        return 0
    return step.share


def step_law(step: Step, adjacency: str) -> StepLaw:
    """Return the ordered pair of one step; see `composition_law`."""
    if adjacency == "substitute":
        return _substitute(step)
    law = added_law(step)
    if adjacency == "add":
        return law
    return law.exchanged()


def _substitute(step: Step) -> StepLaw:
    """A pair that dominates both orders of two data sets with one record replaced."""
    inner = step.inner
    kind = kind_of_step(inner)
    sampled = step.scheme == "poisson"
    if kind is None or not kind.replaces or (sampled and kind.substituted is None):
        raise _no_substitution(step)
    if sampled and kind.substituted is not None:
        return kind.substituted(inner, step.share)
    plain = plain_law(inner, doubled=True)
    if inner is step:
        return plain
    share = Fraction(step.share)
    finite = plain.finite()
    if finite is not None:
        return spliced(finite, share)
    if kind.distance is None:
        raise _no_substitution(step)
    return spliced_density(plain, share, kind.distance(inner))


def _no_substitution(step: Step) -> NotDefinedError:
    return NotDefinedError(
        "adjacency 'substitute' needs a mechanism that says what another record does "
        "(additive noise, Gaussian mixtures; without sampling, also randomized response, the "
        f"generic and the exponential mechanism), got {step_in_words(step)}: its pair is that of a "
        "data set without and with a record"
    )
