"""Checks shared by tests of lines of Laplace steps: known masses, the reference, the lattice."""

from __future__ import annotations

import json
from collections.abc import Iterable
from decimal import Decimal
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import mpmath
import numpy as np
import pytest
from thorough import stored

import pyengine as pe
from pyengine import reference
from pyengine.engines.vertical_lines.laplace_shapes import LaplaceShape, StepShape, SubstitutedShape
from pyengine.engines.vertical_lines.shapes import Kinds

__all__ = [
    "against_the_reference",
    "agrees",
    "known_masses",
    "laplace",
    "mean_of",
    "within_the_lattice",
]


def laplace(noise: float, p: float | None, steps: int) -> Any:
    """Equal Laplace steps, not sampled if there is no rate."""
    step: Any = pe.LaplaceMechanism(noise)
    return (step if p is None else step.poisson_sampled(p)).composed(steps)


def mean_of(shape: StepShape, s: Any) -> Any:
    """The mean of e^(s loss), by mpmath from both densities of what is released."""
    mu, p = (mpmath.mpf(x.numerator) / x.denominator for x in (shape.distance, shape.probability))
    other = -mu if isinstance(shape, SubstitutedShape) else mpmath.mpf(0)

    def density(x: Any, centre: Any) -> Any:
        return ((1 - p) * mpmath.exp(-abs(x)) + p * mpmath.exp(-abs(x - centre))) / 2

    def term(x: Any) -> Any:
        mass = density(x, other)
        return mass * (density(x, mu) / mass) ** s

    # outside all centres both fall like e^-|x|, and integrals are values at the outermost centre
    between = [*mpmath.linspace(other, 0, 9)[:-1], *mpmath.linspace(0, mu, 9)]
    return term(other) + term(mu) + mpmath.quad(term, between if other else between[8:])


class KnownMasses(NamedTuple):
    """Masses and profiles of one order at thresholds, with bounds on their errors."""

    kinds: Kinds
    exchanged: bool
    support: tuple[float, float]
    thresholds: Any
    masses: Any
    error: Any
    profiles: Any
    profile_errors: Any


def known_masses(*, few: bool) -> list[Any]:
    """Earlier results of laws on panels, as parameters; lines share only the step's losses."""
    path = Path(__file__).parent / "data" / "laplace_masses.json"
    found = []
    for row in json.loads(path.read_text(encoding="utf-8")):
        if row["few"] == few:
            shape: Any = SubstitutedShape if row["substituted"] else LaplaceShape
            numbers = Fraction(row["distance"]), Fraction(row["probability"])
            known = KnownMasses(
                ((shape(*numbers), row["steps"]),), row["exchanged"], tuple(row["support"]),
                *(np.array(row[key]) for key in KnownMasses._fields[3:]),
            )  # fmt: skip
            name = f"{row['steps']} of {row['distance']}, {row['probability']}"
            found.append(pytest.param(known, id=f"{name}{', exchanged' * row['exchanged']}"))
    return found


def agrees(order: Any, known: KnownMasses, most: float) -> None:
    """Masses and profiles differ by at most their errors, and these by at most the given one."""
    for one, other in zip(order.support(), known.support, strict=True):
        assert one == pytest.approx(other, rel=1e-15)
    found = order.tails(known.thresholds)
    for mine, truth in zip(found[:4], known.masses, strict=True):
        assert (np.abs(mine - truth) <= found.error * mine + known.error * truth).all()
    assert (found.error * np.minimum(found.a_above, found.a_below)).max() < most
    value, error = order.profile(np.abs(known.thresholds))
    assert (np.abs(value - known.profiles) <= error + known.profile_errors).all()
    assert (error <= np.maximum(most * value, 1e-300)).all()


def known(mechanism: Any, epsilon: float, adjacency: str, digits: int) -> str:
    """δ by the reference, which takes minutes for all questions of these tests."""
    return str(reference.delta(mechanism, epsilon, adjacency=adjacency, digits=digits))


def against_the_reference(
    mechanism: Any, adjacency: str, deltas: Iterable[float], places: int, digits: int, slack: str
) -> float:
    """δ at the ε of some δ, rounded to places; returns the largest relative width.

    ``slack`` is the relative error of the truth.
    """
    widths = []
    for delta in deltas:
        epsilon = round(pe.epsilon(mechanism, delta, adjacency=adjacency), places)
        found, engines, proven = pe.api.answers("delta", mechanism, [epsilon], adjacency=adjacency)
        assert (engines, proven) == (["certified"], [True])
        truth = Decimal(
            stored(
                f"delta at {epsilon} of {mechanism}, {adjacency}, reference, {digits} digits",
                partial(known, mechanism, epsilon, adjacency, digits),
                digits,
            )
        )
        off = Decimal(slack) * truth
        assert Decimal(float(found.lower[0])) - off <= truth
        assert truth <= Decimal(float(found.upper[0])) + off
        if truth > 0:  # beyond the largest loss δ is 0
            widths.append(float((found.upper - found.lower)[0] / found.upper[0]))
    return max(widths)


def within_the_lattice(
    mechanism: Any,
    questions: Iterable[tuple[str, float]],
    adjacencies: Iterable[str],
    width: float,
) -> None:
    """Brackets overlap those of the lattice, and are so narrow relative to their upper ends."""
    orders = list(adjacencies)
    for question, x in questions:
        ask: Any = getattr(pe, question)
        for adjacency in orders:
            found = ask(mechanism, x, adjacency=adjacency, bounds=True)
            rough = ask(mechanism, x, adjacency=adjacency, bounds=True, method="lattice")
            assert rough.lower <= found.upper
            assert found.lower <= rough.upper
            assert found.upper - found.lower <= width * found.upper
