"""The law of one of several pairs, where the release shows which one was drawn.

It is a mixture of the pairs on disjoint outcomes, so masses of losses are weighted sums of theirs.
"""

from __future__ import annotations

import math
from dataclasses import dataclass, replace
from fractions import Fraction

import numpy as np

from pyengine._support.caches import cached_property
from pyengine.laws.base import Cells, FloatArray, Law, StepLaw, positive
from pyengine.laws.fine import logarithm
from pyengine.laws.finite import LOG_ERROR, FiniteLaw
from pyengine.laws.normals import (
    Alternatives,
    ExactAlternatives,
    ExactMixturePair,
    MixturePair,
)
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import ELEMENTARY, UNIT

__all__ = ["RevealedMixtureLaw", "revealed_law"]


# Map: revealed mixtures | test_releases | theory/adjacency
def revealed_law(laws: tuple[StepLaw, ...], shares: tuple[Fraction, ...]) -> StepLaw:
    """Return the law of one of several pairs; it is finite if all of them are.

    Parameters
    ----------
    laws : tuple of StepLaw
        The pairs.
    shares : tuple of Fraction
        Their probabilities > 0: exact for finite pairs, else to 40 digits at least.
    """
    if len(laws) == 1:
        return laws[0]
    finite = [law for law in laws if isinstance(law, FiniteLaw)]
    if len(finite) < len(laws):
        return RevealedMixtureLaw(laws, shares)
    logs = [float(logarithm(share)) for share in shares]
    alone = [law.alone or tuple(map(Fraction, law.infinite())) for law in finite]
    below, above = (
        sum((w * x[i] for w, x in zip(shares, alone, strict=True)), Fraction(0)) for i in (0, 1)
    )
    ends = [law.limits() for law in finite]
    made = FiniteLaw.from_atoms(
        np.concatenate([law.loss for law in finite]),
        np.concatenate([law.log_a + w for law, w in zip(finite, logs, strict=True)]),
        (below, above),
        max(law.loss_error for law in finite),
        (min(low for low, _ in ends), max(high for _, high in ends)),
        symmetric=all(law.symmetric for law in finite),
    )
    if all(law.ends is None for law in finite):
        made = replace(made, ends=None)
    # masses of equal losses are added up, at most about one atom of each law
    rounding = LOG_ERROR * (2.0 + max(map(abs, logs))) + 4.0 * UNIT * len(finite)
    return replace(made, error=made.error + max(law.error for law in finite) + rounding)


@dataclass(frozen=True)
class RevealedMixtureLaw(Law):
    """One of several pairs, not all of them finite, which the release names.

    Parameters
    ----------
    laws : tuple of StepLaw
        The pairs.
    shares : tuple of Fraction
        Their probabilities > 0: exact for finite pairs, else to 40 digits at least.
    """

    laws: tuple[StepLaw, ...]
    shares: tuple[Fraction, ...]

    @property
    def is_proven(self) -> bool:
        """Whether the errors of all pairs are proven."""
        return all(law.is_proven for law in self.laws)

    @cached_property
    def log_shares(self) -> tuple[float, ...]:
        """Logarithms of the probabilities, rounded."""
        return tuple(float(logarithm(share)) for share in self.shares)

    def support(self) -> tuple[float, float]:
        """Of all pairs together."""
        return _ends([law.support() for law in self.laws])

    def support_error(self) -> float:
        """The largest one."""
        return max(law.support_error() for law in self.laws)

    def limits(self) -> tuple[float, float]:
        """Of all pairs together."""
        return _ends([law.limits() for law in self.laws])

    def left_out(self) -> float:
        """The largest one."""
        return max(law.left_out() for law in self.laws)

    def infinite(self) -> tuple[float, float]:
        """Those of all pairs, weighted by their probabilities."""
        parts = [law.infinite() for law in self.laws]
        below, above = (
            positive(
                math.fsum(
                    fn.exp(w) * part[i] for w, part in zip(self.log_shares, parts, strict=True)
                ),
                any(part[i] > 0.0 for part in parts),
            )
            for i in (0, 1)
        )
        return below, above

    def mixtures(self) -> Alternatives | None:
        """Those of all pairs with their probabilities."""
        found: list[MixturePair] = []
        for law, log_share in zip(self.laws, self.log_shares, strict=True):
            pairs = law.mixtures()
            if pairs is None:
                return None
            found += (pair._replace(log_share=pair.log_share + log_share) for pair in pairs)
        return tuple(found)

    def exact_mixtures(self) -> ExactAlternatives | None:
        """Those of all pairs with their probabilities."""
        found: list[ExactMixturePair] = []
        for law, share in zip(self.laws, self.shares, strict=True):
            pairs = law.exact_mixtures()
            if pairs is None:
                return None
            found += (pair._replace(share=pair.share * share) for pair in pairs)
        return tuple(found)

    def cells(self, edges: FloatArray) -> Cells:
        """Weighted sums of the cells of all pairs.

        The edges of all pairs lie within the largest ``shift`` of the given ones.
        """
        log_a = np.full(edges.size + 1, -math.inf)
        log_b, size, error = log_a.copy(), np.zeros(edges.size + 1), np.zeros(edges.size + 1)
        shift = np.zeros(edges.size)
        for law, log_share in zip(self.laws, self.log_shares, strict=True):
            found = law.cells(edges)
            with np.errstate(invalid="ignore"):
                log_a = fn.logaddexp(log_a, found.log_a + log_share)
                log_b = fn.logaddexp(log_b, found.log_b + log_share)
            for mass in found[:2]:
                size = np.maximum(size, np.where(np.isfinite(mass), np.abs(mass), 0.0))
            error, shift = np.maximum(error, found.error), np.maximum(shift, found.shift)
        largest = max(map(abs, self.log_shares))
        rounding = UNIT * (2.0 * ELEMENTARY * len(self.laws) + 8.0 * (size + largest))
        return Cells(log_a, log_b, 1.01 * error + rounding, shift)


def _ends(ends: list[tuple[float, float]]) -> tuple[float, float]:
    return min(low for low, _ in ends), max(high for _, high in ends)
