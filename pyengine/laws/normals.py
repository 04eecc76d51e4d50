"""Forms of a law that the spectral engine uses: two mixtures of normals, or nodes.

In units of the noise, A has the density Σ wᵢ φ(z - cᵢ) and B one of the same form.  The privacy
loss is an analytic function of z, so sums over equidistant z converge fast to integrals.
"""

from __future__ import annotations

import math
from collections.abc import Iterable
from fractions import Fraction
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib

__all__ = [
    "STANDARD",
    "Alternatives",
    "ExactAlternatives",
    "ExactMixturePair",
    "LossNodes",
    "MixturePair",
    "Normals",
    "exactly_sampled",
    "exactly_swapped",
    "normal_cells",
    "sampled",
    "swapped",
]

FloatArray = npt.NDArray[np.float64]


class Normals(NamedTuple):
    """The mixture Σ wᵢ N(cᵢ, 1).

    Parameters
    ----------
    shifts : tuple of float
        cᵢ, increasing.
    weights : tuple of float
        wᵢ > 0, with the sum 1 up to their rounding.
    """

    shifts: tuple[float, ...]
    weights: tuple[float, ...]

    @classmethod
    def of(cls, terms: Iterable[tuple[float, float]]) -> Normals:
        """Return the mixture of terms (shift, weight); weights of equal shifts are added up."""
        found: dict[float, float] = {}
        for shift, weight in terms:
            if weight > 0.0:
                found[shift] = found.get(shift, 0.0) + weight
        shifts = sorted(found)
        return cls(tuple(shifts), tuple(found[shift] for shift in shifts))


STANDARD = Normals((0.0,), (1.0,))


class MixturePair(NamedTuple):
    """A pair of mixtures, one of several if the release reveals which one was drawn.

    Parameters
    ----------
    a, b : Normals
        Both sides; the log ratio of their densities is monotone in z.
    log_share : float
        Logarithm of the probability that this pair is drawn.
    """

    a: Normals
    b: Normals
    log_share: float = 0.0


Alternatives = tuple[MixturePair, ...]


class ExactMixturePair(NamedTuple):
    """A pair of mixtures as `MixturePair`, in exact numbers for proofs.

    Parameters
    ----------
    terms : dict of Fraction to (Fraction, Fraction)
        Weights in A and in B by shift; each side sums to 1.  The relative error of every number is
        at most 2^-64.
    share : Fraction
        Probability that this pair is drawn.
    """

    terms: dict[Fraction, tuple[Fraction, Fraction]]
    share: Fraction = Fraction(1)


ExactAlternatives = tuple[ExactMixturePair, ...]


class LossNodes(NamedTuple):
    """A discrete measure that can stand for a law.

    Sums of e^{(λ + it) L} over the nodes are expectations under A to the last digits of a double,
    relative to t = 0, for |t| <= t_max and tilts whose law lies between the outermost nodes.

    Parameters
    ----------
    loss : ndarray of shape (m,)
        L, monotone.
    log_weight : ndarray of shape (m,)
        Logarithms of the probabilities under A.
    t_max : float
        Largest |t|.
    """

    loss: FloatArray
    log_weight: FloatArray
    t_max: float


def swapped(pairs: Alternatives | None) -> Alternatives | None:
    """Return the pairs (B, A)."""
    if pairs is None:
        return None
    return tuple(MixturePair(pair.b, pair.a, pair.log_share) for pair in pairs)


def sampled(pairs: Alternatives | None, p: float, rest: float) -> Alternatives | None:
    """Return the pairs (A, (1 - p) A + p B); ``rest`` is 1 - p, rounded from its exact value."""
    if pairs is None:
        return None

    def mixed(pair: MixturePair) -> Normals:
        terms = [(c, rest * w) for c, w in zip(pair.a.shifts, pair.a.weights, strict=True)]
        terms += [(c, p * w) for c, w in zip(pair.b.shifts, pair.b.weights, strict=True)]
        return Normals.of(terms)

    return tuple(MixturePair(pair.a, mixed(pair), pair.log_share) for pair in pairs)


def exactly_swapped(pairs: ExactAlternatives | None) -> ExactAlternatives | None:
    """Return the pairs (B, A), for proofs."""
    if pairs is None:
        return None
    return tuple(
        pair._replace(terms={c: (b, a) for c, (a, b) in pair.terms.items()}) for pair in pairs
    )


def exactly_sampled(pairs: ExactAlternatives | None, p: Fraction) -> ExactAlternatives | None:
    """Return the pairs (A, (1 - p) A + p B), for proofs."""
    if pairs is None:
        return None
    return tuple(
        pair._replace(terms={c: (a, (1 - p) * a + p * b) for c, (a, b) in pair.terms.items()})
        for pair in pairs
    )


def normal_cells(z: FloatArray, mean: float) -> FloatArray:
    """Log masses of N(mean, 1) between increasing points, outermost tails included."""
    use = np.append(True, z[1:] > z[:-1])  # cells between equal points are empty
    inner = np.ascontiguousarray(z[use])
    masses = np.empty(inner.size + 1)
    lib.pe_normal_cells(
        inner.size,
        ffi.from_buffer("double[]", inner),
        mean,
        ffi.from_buffer("double[]", masses, require_writable=True),
    )
    whole = np.full(z.size + 1, -math.inf)
    whole[np.append(np.flatnonzero(use), z.size)] = masses
    return whole
