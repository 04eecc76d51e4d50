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
def _of(laws: tuple[tuple[FiniteLaw, int], ...]) -> tuple[FiniteComposition | None, str]:
    try:
        return composition(list(laws)), ""
    except NotComposedError as refusal:  # to find that out takes time, too
        return None, str(refusal)


def finite_composition(laws: list[tuple[FiniteLaw, int]]) -> FiniteComposition:
    """Composition of finite laws, the same one for the same objects.

    Raises
    ------
    NotComposedError
        Where it takes longer sums, or larger losses, than are added.
    """
    made, reason = _of(tuple(laws))
    if made is None:
        raise NotComposedError(reason)
    return made


@kept(ENTRIES)
def laplace_composition(ratio: Fraction, steps: int, has_atoms: bool = True) -> LaplaceSum:
    """Composition of equal steps of Laplace noise, or of bounded range."""
    return LaplaceSum(ratio, steps, has_atoms=has_atoms)
