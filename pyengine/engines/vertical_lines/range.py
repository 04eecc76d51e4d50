"""The choice of lines, deformed lines, sums over few losses or over nodes for a composition.

It depends on the composition alone, not on questions.
"""

from __future__ import annotations

import math
import sys
from collections.abc import Callable, Iterable
from contextlib import suppress
from fractions import Fraction
from typing import cast

import numpy as np

from pyengine._support.caches import kept
from pyengine.engines.exact import FEW_RANGES, exact_refusal
from pyengine.engines.exact.finite import FiniteComposition, finite_composition
from pyengine.engines.exact.mixed import Weights
from pyengine.engines.sampled import sampled_steps
from pyengine.engines.sector import SectorLaws
from pyengine.engines.vertical_lines.build import terms_of_lines
from pyengine.engines.vertical_lines.deformation import (
    DeformedOrder,
    is_deformable,
)
from pyengine.engines.vertical_lines.finite_steps import FAINTEST, FiniteShape
from pyengine.engines.vertical_lines.inner import (
    closed_order,
    pieces_order,
    rows_order,
)
from pyengine.engines.vertical_lines.laplace_shapes import StepShape, shape_of
from pyengine.engines.vertical_lines.mixed import WeightedOrder
from pyengine.engines.vertical_lines.noded import MOST_PLACES, CornerBounds, NodedOrder
from pyengine.engines.vertical_lines.order import LineOrder
from pyengine.engines.vertical_lines.ordered import Alone, Inner
from pyengine.engines.vertical_lines.shapes import Kinds, LossShape, cumulants_at
from pyengine.engines.vertical_lines.tabled import TabledOrder
from pyengine.errors import AccuracyError
from pyengine.laws.base import StepLaw
from pyengine.laws.finite import FiniteLaw
from pyengine.numerics.rounding import UNIT

__all__ = [
    "are_long",
    "deformed_order",
    "line_order",
    "may_have_nodes",
    "may_have_rows",
    "may_have_samples",
    "order_of_samples",
    "order_on_nodes",
    "order_on_pieces",
    "order_on_rows",
]

LEAST = 20  # Laplace steps from which on straight lines serve
MOST_WORK = 2**26  # terms of a question on a line above which sector laws are tried first
# equal steps alone, of bounded range or plain Laplace noise, from which on lines replace exact sums
LEAST_RANGES, LEAST_PLAIN = 20, 30
MOST_PLAIN = 200.0  # the same for N(1 + μ) of Laplace steps, by which errors of exact sums grow
MOST_KINDS = 64
FEW_TERMS = 2**23  # of a line that is quicker than sums over few losses, or over nodes
SHORT_TERMS = 2**18  # of a line that is quicker than deformed lines beside few losses
# most few losses of sums: where there is a line, where there is none, and over rows
FEW_LOSSES, MOST_LOSSES = 2**12, 2**17
ROW_LOSSES = 2**10
FARTHEST_LOSS = 1e100
FAINTEST_FINITE = -600.0  # least log of the mass of finite losses
# Orders for thousands of thresholds, as sums over nodes need.  Largest number of terms of a line,
# of few losses times squared steps in closed form, and of few losses times places of deformed lines
QUICK_TERMS, QUICK_CLOSED, QUICK_PLACES = 2**13, 2**13, 160
MOST_CLOSED = 12  # steps in closed form
MOST_QUICK = 72  # places of a deformed line without interpolation
# places from which on deformed lines are interpolated, and most places or few losses then
FEW_PLACES, MOST_TABLED = 10, 200
LOUD = 30.0  # variance of few losses over that of the others above which one line is too costly
Laws = tuple[tuple[StepLaw, int], ...]


def line_order(laws: list[tuple[StepLaw, int]], *, far: bool = False) -> LineOrder | None:
    """Return one order of a composition by lines, or by sums over few losses; None for others.

    Laws of analytic densities truncated ``far`` out take many times as long to make.
    """
    return _whole(tuple(laws), far)


def order_on_pieces(laws: list[tuple[StepLaw, int]]) -> WeightedOrder | None:
    """Return one order of sampled Gaussian steps by sector laws, beside few losses; else None."""
    return _beside_losses(tuple(laws), pieces_order)


def are_long(line: LineOrder, laws: list[tuple[StepLaw, int]]) -> bool:
    """Whether lines take so long that sector laws, unless of groups, are tried before them."""
    known = sampled_steps(tuple(laws))
    return line.work > MOST_WORK and known is not None and known.pair is not None


def may_have_rows(laws: list[tuple[StepLaw, int]]) -> bool:
    """Whether there may be an `order_on_rows`; makes no law."""
    known = sampled_steps(tuple(laws), plain=True)
    return known is not None and bool(known.others) and not _without_few(known.others)


def may_have_samples(laws: list[tuple[StepLaw, int]]) -> bool:
    """Whether there may be an `order_of_samples`; makes no law."""
    known = sampled_steps(tuple(laws))
    if known is None or not known.others:
        return False
    return SectorLaws(known.kinds, known.is_reversed).serves or may_have_rows(laws)


@kept(64)
def order_of_samples(laws: Laws) -> LineOrder | None:
    """Return one order of sampled Gaussian steps beside others, closer than lines.

    By nodes, by sector laws or by rows, with estimates by short lines; None for others.
    """
    if may_have_nodes(list(laws)):
        found = order_on_nodes(laws)
    else:
        found = order_on_pieces(list(laws))
        if found is None and may_have_rows(list(laws)):
            found = order_on_rows(laws)
    if found is None:
        return None
    line = _whole(laws, far=False)
    return found.guided(line if line is not None and line.work <= MOST_WORK else None)


def order_on_rows(laws: Laws) -> WeightedOrder | None:
    """Return one order of many sampled Gaussian steps, by rows, beside few losses."""
    return _beside_losses(laws, rows_order, ROW_LOSSES)


def may_have_nodes(laws: list[tuple[StepLaw, int]]) -> bool:
    """Whether there may be an `order_on_nodes`; makes no law."""
    known = sampled_steps(tuple(laws))
    if known is None or not _without_few(known.others):
        return False
    return SectorLaws(known.kinds, known.is_reversed).serves


@kept(64)
def order_on_nodes(laws: Laws) -> WeightedOrder | None:
    """Return one order of few or rare sampled Gaussian steps beside steps with corners.

    Steps of few losses may be among them; None for other compositions.
    """
    inner = _on_nodes(laws)
    found = None if inner is None else _kinds(laws)
    if inner is None or found is None:
        return None
    none = np.zeros(1)
    single = Weights(none, none + 1.0, none + 1.0, 0.0, lambda: (none, 0.0))
    return WeightedOrder(*found, single, inner)


def _on_nodes(laws: Laws) -> NodedOrder | None:
    """The order of all steps, by nodes of the sampled Gaussian steps' sector law."""
    known = sampled_steps(laws)
    if known is None:
        return None
    others = known.others
    corners: list[tuple[StepShape, int]] = []
    places = 1
    for law, number in _without_few(others):
        found = shape_of(law)
        if found is None or found[0].pieces > 1 or not found[0].has_corners:
            return None
        if not found[0].is_symmetric and found[1] != known.is_reversed:
            return None
        corners.append((found[0], number))
        places *= number + 1
    laws_on_pieces = SectorLaws(known.kinds, known.is_reversed)
    if not corners or places > MOST_PLACES or not laws_on_pieces.serves:
        return None
    losses, masses, off = np.zeros((2, 1)), np.ones(1), 0.0
    if len(corners) < len(others):
        made = _few(others)
        if made is None or made.size * places > MOST_PLACES:
            return None
        weights = made.weights()
        low, off = weights.low or (np.zeros(weights.loss.size), 2.0 * weights.error)
        losses, masses = np.array([weights.loss, low]), weights.a
        if known.is_reversed:
            losses, masses = -losses, weights.b
    inner = _quick(others)
    if inner is None:
        return None
    return NodedOrder(
        known, laws_on_pieces, inner, CornerBounds(tuple(corners), losses, masses, off)
    )


def _quick(laws: Laws) -> Inner | None:
    """The order of steps with corners, and of few losses, if it is quick at a threshold."""
    found = _kinds(laws)
    if found is None:
        return None
    kinds, exchanged = found
    corners = _without_few(laws)
    number = sum(number for _, number in corners)
    losses = 1
    if len(corners) < len(laws):
        if not _is_loud(kinds) and terms_of_lines(kinds) <= QUICK_TERMS:
            return LineOrder(kinds, exchanged)
        made = _few(laws)
        if made is None:
            return None
        losses = made.size
    inner: Inner | None = None
    if number >= LEAST:
        inner = _order(corners, False, has_exact=False)
    if inner is None and number <= MOST_CLOSED and losses * number**2 <= QUICK_CLOSED:
        inner = closed_order(corners)
    inner = inner or _order(corners, False, has_exact=False) or _deformed(corners)
    if inner is None:
        return None
    takes_long = losses * inner.places > QUICK_PLACES
    most = max(inner.places, losses) if inner.is_deformed else math.inf
    if most > MOST_TABLED and (takes_long or inner.places > MOST_QUICK):
        return None
    if inner.is_deformed and losses > 1 and (takes_long or inner.places > FEW_PLACES):
        inner = TabledOrder(cast("DeformedOrder", inner))
    if len(corners) == len(laws):
        return inner
    return _weighted(laws, kinds, losses, inner, exchanged=exchanged)


@kept(64)
def _beside_losses(
    laws: Laws, make: Callable[[Laws], Inner | None], most: int = MOST_LOSSES
) -> WeightedOrder | None:
    """One order of steps of few losses beside others, whose own order ``make`` returns."""
    others = _without_few(laws)
    inner = make(others) if 0 < len(others) < len(laws) else None
    found = None if inner is None else _kinds(laws)
    if inner is None or found is None:
        return None
    return _weighted(laws, found[0], most, inner, exchanged=found[1])


@kept(64)
def _whole(laws: Laws, far: bool) -> LineOrder | None:
    """As `line_order`, kept."""
    # exact sums with Laplace steps allow no masses at infinite losses
    is_whole = all(law.infinite() == (0.0, 0.0) for law, _ in laws)
    return _order(laws, far, has_exact=is_whole)


def _are_laplace(laws: Iterable[tuple[StepLaw, int]]) -> bool:
    """Whether all steps are Laplace steps."""
    return all(law.laplace() is not None for law, _ in laws)


def deformed_order(laws: list[tuple[StepLaw, int]]) -> LineOrder | None:
    """Return one order of a composition by deformed lines, be they the quickest way or not.

    Steps of few losses may be among them, unless a straight line of all is short.
    """
    all_ = tuple(laws)
    if (found := _deformed(all_)) is not None:
        return found
    kinds = _kinds(all_)
    if kinds is not None and terms_of_lines(kinds[0]) <= SHORT_TERMS:
        return None
    return _beside_losses(all_, _deformed)


@kept(64)
def _deformed(laws: Laws) -> DeformedOrder | None:
    if not all(law.laplace() is not None or law.bounded_range() for law, _ in laws):
        return None
    found = _kinds(laws)
    return DeformedOrder(*found) if found is not None and is_deformable(found[0]) else None


def _order(laws: Laws, far: bool, *, has_exact: bool = True) -> LineOrder | None:
    found = _kinds(laws, far=far)
    if found is None:
        return None
    kinds, exchanged = found
    if has_exact and _have_short_sums(laws) and exact_refusal(list(laws)) is None:
        return None
    if _are_laplace(laws):
        if sum(number for _, number in laws) >= LEAST and terms_of_lines(kinds) < math.inf:
            return LineOrder(kinds, exchanged)
        return DeformedOrder(kinds, exchanged) if is_deformable(kinds) else None
    # the transform of a single step with an analytic density does not fall far enough
    if len(laws) == 1 and laws[0][1] < 2 and laws[0][0].analytic() is not None:
        return None
    terms = terms_of_lines(kinds)
    if terms <= FEW_TERMS and not _is_loud(kinds):
        return LineOrder(kinds, exchanged)
    if terms == math.inf and (deformed := _deformed(laws)) is not None:
        return deformed
    beside = None
    if not has_exact or exact_refusal(list(laws)) is not None:
        # sums over very many losses take longer than a line
        most = FEW_LOSSES if terms < math.inf else MOST_LOSSES
        beside = _beside_few(laws, kinds, most, exchanged=exchanged)
    return LineOrder(kinds, exchanged) if beside is None and terms < math.inf else beside


def _have_short_sums(laws: Laws) -> bool:
    """Whether all steps but those of few losses have closed forms that are short and precise.

    The transforms of steps of bounded range fall slowly, those of plain Laplace steps not at all.
    """
    others = _without_few(laws)
    if len(others) != 1:
        return False
    (law, number), is_alone = others[0], len(laws) == 1
    if law.bounded_range() is not None:
        return number < (LEAST_RANGES if is_alone else FEW_RANGES)
    laplace = law.laplace()
    if not is_alone or laplace is None or not laplace.is_plain:
        return False
    return number < LEAST_PLAIN or number * (1.0 + float(laplace.distance)) <= MOST_PLAIN


def _is_loud(kinds: Kinds) -> bool:
    """Whether the few losses have a much larger variance than all other steps.

    One line for all would need the height of the others with the spacing of the few losses.
    """
    variance = [0.0, 0.0]
    for shape, number in kinds:
        few = shape.is_few_losses
        variance[few] += number * cumulants_at(shape, 0.0)[2]
    return variance[1] > LOUD * variance[0] > 0.0


def _without_few(laws: Laws) -> Laws:
    """The steps without those of few losses."""
    return tuple(part for part in laws if part[0].finite() is None)


def _beside_few(laws: Laws, kinds: Kinds, most: int, *, exchanged: bool) -> WeightedOrder | None:
    """Steps of few losses beside others; None where those have no order of their own."""
    others = _without_few(laws)
    if not 0 < len(others) < len(laws):
        return None
    inner: Inner | None = closed_order(others) or _order(others, False, has_exact=False)
    inner = inner or _deformed(others) or pieces_order(others)
    return None if inner is None else _weighted(laws, kinds, most, inner, exchanged=exchanged)


def _few(laws: Laws) -> FiniteComposition | None:
    """The composition of all steps of few losses; None where it is refused."""
    found = ((law.finite(), number) for law, number in laws)
    with suppress(AccuracyError):
        return finite_composition([(law, number) for law, number in found if law is not None])
    return None


def _weighted(
    laws: Laws, kinds: Kinds, most: int, inner: Inner, *, exchanged: bool
) -> WeightedOrder | None:
    """Steps of few losses beside the order ``inner`` of the others; None for too many losses."""
    made = _few(laws)
    if made is None or made.size > most:
        return None
    return WeightedOrder(kinds, exchanged, _masses_of(laws, made), inner)


def _masses_of(laws: Laws, made: FiniteComposition) -> Weights:
    """The few losses with masses; where each step has one loss, its masses to all digits."""
    weights = made.weights()
    few = [(found, number) for law, number in laws if (found := law.finite()) is not None]
    if weights.low is None or any(law.loss.size > 1 for law, _ in few):
        return weights
    of_a, of_b = (
        Alone.of([(law.alone[i] if law.alone else Fraction(0), number) for law, number in few])
        for i in (0, 1)
    )
    low, a, b = weights.low, np.array([of_a.rest]), np.array([of_b.rest])
    return Weights(weights.loss, a, b, 2.0 * UNIT, lambda: low, weights.lowest)


def _has_nodes(law: FiniteLaw) -> bool:
    """Whether a finite law serves on lines: losses and masses in range, infinite ones exact."""
    return (
        (law.alone is not None or law.infinite() == (0.0, 0.0))
        and bool(law.loss.size)
        and float(np.abs(law.loss).max(initial=0.0)) < FARTHEST_LOSS
        and float(law.log_a.min()) > FAINTEST
        and float(law.log_b.min()) > FAINTEST
    )


def _kinds(laws: Laws, *, far: bool = False) -> tuple[Kinds, bool] | None:
    """The kinds of steps as shapes, and whether the pair is exchanged; None without shapes."""
    if len(laws) > MOST_KINDS:
        return None
    kinds: list[tuple[LossShape, int]] = []
    orders: set[bool] = set()  # of steps that are not symmetric
    either: list[tuple[StepLaw, int]] = []
    variance = Fraction(0)
    for law, number in laws:
        noise, finite = law.gaussian_noise(), law.finite()
        has_shape = law.laplace() is not None or law.bounded_range() is not None
        if has_shape or law.analytic() is not None:
            found = shape_of(law) if has_shape else _analytic(law, far)
            if found is None:
                return None
            kinds.append((found[0], number))
            if not found[0].is_symmetric:
                orders.add(found[1])
        elif noise is not None:
            variance += number / (Fraction(noise[0]) + Fraction(noise[1])) ** 2
        elif law.exact_mixtures() is not None if finite is None else _has_nodes(finite):
            either.append((law, number))
        else:
            return None
    if len(orders) > 1 or variance > sys.float_info.max:
        return None
    exchanged = orders == {True}
    turned = [(law.exchanged() if exchanged else law, number) for law, number in either]
    finite_laws = [(law.finite(), number) for law, number in turned]
    kinds += [(FiniteShape(law), number) for law, number in finite_laws if law is not None]
    mixtures = tuple(part for part in turned if part[0].finite() is None)
    if mixtures or variance:
        from pyengine.engines.vertical_lines.normal_steps import GaussianShape, MixtureShape

        kinds += [(MixtureShape(mixtures), 1)] * bool(mixtures)
        kinds += [(GaussianShape(variance), 1)] * bool(variance)
    for i in (0, 1):  # the mass of finite losses may underflow
        if sum(number * shape.log_masses[i] for shape, number in kinds) < FAINTEST_FINITE:
            return None
    return tuple(kinds), exchanged


def _analytic(law: StepLaw, far: bool) -> tuple[LossShape, bool] | None:
    from pyengine.engines.analytic_lines.range import analytic_shape

    return analytic_shape(law, far)
