"""Compositions that exact sums have made, kept for further questions."""

from __future__ import annotations

from fractions import Fraction

from pyengine._support.caches import kept
from pyengine.engines.exact.finite import FiniteComposition, NotComposedError, composition
from pyengine.engines.exact.laplace import LaplaceSum
from pyengine.laws.finite import FiniteLaw

__all__ = ["finite_composition", "laplace_composition"]

ENTRIES = 64


@kept(ENTRIES)
def _of(laws: tuple[tuple[FiniteLaw, int], ...]) -> FiniteComposition | str:
    try:
        return composition(list(laws))
    except NotComposedError as refusal:
        return str(refusal)


def finite_composition(laws: list[tuple[FiniteLaw, int]]) -> FiniteComposition | str:
    """Composition of finite laws, the same one for the same objects; or why it is not made."""
    return _of(tuple(laws))


@kept(ENTRIES)
def laplace_composition(ratio: Fraction, steps: int, has_atoms: bool = True) -> LaplaceSum:
    """Composition of equal steps of Laplace noise, or of bounded range."""
    return LaplaceSum(ratio, steps, has_atoms=has_atoms)
