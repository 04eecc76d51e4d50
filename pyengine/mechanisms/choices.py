"""Choices and histograms by noise, as mechanisms of other kinds that dominate them."""

from __future__ import annotations

import math
import sys
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pyengine import special
from pyengine._support import checks
from pyengine.errors import AccuracyError
from pyengine.mechanisms.core import Composition, Mechanism, Step, compose
from pyengine.mechanisms.finite import MOST_QUERIES, GenericMechanism, LikelyAnswer
from pyengine.mechanisms.gaussian import GaussianMechanism
from pyengine.mechanisms.matrix import over_root
from pyengine.mechanisms.words import Words, number_in_words, worded
from pyengine.numerics import functions as fn
from pyengine.numerics.exact_numbers import BEYOND

__all__ = [
    "pate_noisy_max",
    "pate_votes",
    "permute_and_flip",
    "report_noisy_max",
    "thresholded_histogram",
]

FloatArray = npt.NDArray[np.float64]

UNIT = 2.0**-52
MISSED = 45.0  # -log of what the trapezoidal rule misses, about
NONE_DRAWN = "none are drawn: each release may use every record"
FAR = 10**5  # deviations, beyond which a tail is 0 or 1
KINDS = 128  # of answers that are told from each other, at most
SMALL = 1e-300
HALF_LOG_2PI = 0.5 * fn.log(2.0 * math.pi)


def report_noisy_max(
    noise_multiplier: checks.NumberLike, queries: int, *, span: checks.NumberLike
) -> Step:
    """Index of the largest of d queries after Gaussian noise, of queries with bounded values.

    Parameters
    ----------
    noise_multiplier : float, or exact number as str, Fraction or Decimal
        Standard deviation of the noise on each query over the sensitivity of a query, in (0, ∞).
    queries : int
        Number d of queries, in [2, 10^8]; each moves by at most its sensitivity, in any direction.
    span : float, or exact number as str, Fraction or Decimal
        Largest value of a query less the smallest one that it may have, on any data, over the
        sensitivity; in (0, ∞).

    Returns
    -------
    GenericMechanism
        Of the largest log ratio of the probabilities of an index, which some queries attain, and
        δ = 0; rounded up by at most some 1e-12.  It is ε-differentially private as the largest
        difference of two queries is bounded; the values themselves are not released.

    Raises
    ------
    ValueError
        For an argument outside its domain.
    AccuracyError
        Where ε, or the span over the noise, is above 10^4.

    Notes
    -----
    Docs, theory/choices, has the proof.

    References
    ----------
    J. Lebensold, D. Precup, B. Balle, On the Privacy of Selection Mechanisms with Gaussian Noise
    (2024), arXiv:2402.06137.

    Examples
    --------
    >>> import pyengine as pe
    >>> run = pe.report_noisy_max(2.0, 10, span=5)
    >>> print(f"{run.epsilon:.6f}", f"{pe.epsilon(run.composed(4), 1e-5):.6f}")
    2.975808 11.903219
    """
    multiplier = checks.positive("noise_multiplier", noise_multiplier)
    number = checks.count("queries", queries, least=2, most=MOST_QUERIES)
    spanned = checks.positive("span", span)
    noise, width = float(multiplier), float(spanned)
    lowest = width / noise
    if not lowest < 1e4:
        raise AccuracyError(
            f"the span over the noise must be below 10^4, got {lowest:g}; permute_and_flip or a "
            "GaussianMechanism of all queries is answered"
        )
    moved = 2.0 * min(1.0, width) / noise
    # quotients are off by 2 units, differences by one more
    off = 4.0 * UNIT * (lowest + moved)
    above = _log_of_win(moved - lowest, number, off)
    below = _log_of_win(-lowest, number, off)
    value = (above[0] - below[0]) + above[1] + below[1]
    if not value < 1e4:
        raise AccuracyError(f"epsilon is {value:g}, above 10^4; more noise is answered")
    shown, most = number_in_words(multiplier), number_in_words(spanned)
    words = Words(
        f"report noisy max of {number:,} queries, Gaussian noise {shown}, span {most}",
        NONE_DRAWN,
        neighbours="given",
        counted="choice",
        hidden=("delta",),
        known="upper bound",
        given=(("noise multiplier", shown), ("queries", f"{number:,}"), ("span", most)),
    )
    return worded(GenericMechanism(max(value * (1.0 + 4.0 * UNIT), 0.0)), words)


def _log_of_win(gap: float, queries: int, off: float) -> tuple[float, float]:
    """Logarithm of ∫ φ(z) Φ(gap + z)^(d-1) dz, and how far it may be off.

    The integrand F is at most e^{da²/2} as large on the lines ±ia as it is on the real line, since
    |φ(z + ia)| = φ(z) e^{a²/2} and |Φ(x + ia)| <= Φ(x) e^{a²/2}; a trapezoidal rule of spacing s
    misses at most 2 e^{da²/2}/(e^{2πa/s} - 1) of the integral, least at a = 2π/(s d).

    ``off`` is the absolute error of the gap.
    """
    spacing = math.pi * math.sqrt(2.0 / (MISSED * queries))
    line = 2.0 * math.pi / (spacing * queries)
    missed = 2.0 * fn.exp(0.5 * queries * line * line) / fn.expm1(2.0 * math.pi * line / spacing)

    def logs(z: FloatArray) -> FloatArray:
        log_of = np.asarray(special.log_ndtr(gap + z))
        return np.asarray(-0.5 * z * z + (queries - 1) * log_of)

    low, high = -1.0, max(1.0, -2.0 * gap) + math.sqrt(2.0 * fn.log(queries)) + 1.0
    for _ in range(60):  # the mode, where terms fall to both sides
        left, right = low + 0.382 * (high - low), low + 0.618 * (high - low)
        a, b = logs(np.array([left, right]))
        low, high = (left, high) if a < b else (low, right)
    # log F is at least as concave as that of φ: beyond 11 from the mode it is e^-60 of its largest
    z = low + spacing * np.arange(-math.ceil(11.0 / spacing), math.ceil(11.0 / spacing) + 1.0)
    found = logs(z)
    top = float(found.max())
    terms = fn.exp(found - top)
    total = math.fsum(terms.tolist())
    beyond = 0.0
    for end, inner in ((0, 1), (-1, -2)):  # terms fall faster and faster
        ratio = fn.exp(float(found[end] - found[inner]))
        if not ratio < 1.0:
            raise AccuracyError("terms of a sum do not fall beyond its ends")
        beyond += float(terms[end]) * ratio / (1.0 - ratio)
    # relative errors of the terms: of log Φ, of its argument, of sums and of the exponential
    x = gap + z
    log_of = np.asarray(special.log_ndtr(x))
    with np.errstate(under="ignore"):
        steep = 1.01 * fn.exp(-0.5 * x * x - HALF_LOG_2PI - log_of)
    error = (queries - 1) * (8.0 * UNIT * np.abs(log_of) + steep * (off + 2.0 * UNIT * np.abs(x)))
    error += 8.0 * UNIT * (1.0 + z * z + np.abs(found) + abs(top))
    mean = float(terms @ error) / total
    value = top + fn.log(total * spacing) - HALF_LOG_2PI
    slack = mean + missed + beyond / total + 8.0 * UNIT * (1.0 + abs(value))
    return value, 1.01 * slack


def permute_and_flip(epsilon: checks.NumberLike) -> Step:
    """Permute-and-flip, the choice of an index whose score is good.

    Parameters
    ----------
    epsilon : float, or exact number as str, Fraction or Decimal
        ε of its exponents, in [0, ∞): item i with score qᵢ is taken with probability
        exp(ε (qᵢ - max q) / (2 Δ)) when its turn comes, Δ the sensitivity of scores.

    Returns
    -------
    GenericMechanism
        Of ε and δ = 0, which dominates all that is ε-differentially private.

    Raises
    ------
    ValueError
        For an ε outside its domain.

    References
    ----------
    R. McKenna, D. Sheldon, Permute-and-Flip: A New Mechanism for Differentially Private Selection
    (2020), arXiv:2010.12603, Theorem 2.

    Examples
    --------
    >>> import pyengine as pe
    >>> pe.permute_and_flip("0.1") == pe.GenericMechanism("0.1")
    True
    """
    step = GenericMechanism(epsilon)
    words = Words(
        "permute-and-flip",
        NONE_DRAWN,
        neighbours="given",
        counted="choice",
        hidden=("delta",),
        known="upper bound",
    )
    return worded(step, words)


def pate_noisy_max(noise_multiplier: checks.NumberLike, queries: int) -> Composition:
    """PATE with Gaussian noise on votes (GNMax): labels by teachers of disjoint records.

    Parameters
    ----------
    noise_multiplier : float, or exact number as str, Fraction or Decimal
        Standard deviation σ of the noise on the number of votes for each class, in (0, ∞).
    queries : int
        Number of labels, >= 0; they may depend on each other.

    Returns
    -------
    Composition
        Gaussian steps of noise σ/√2, rounded down, one for each label: another vote of one teacher
        moves two counts by 1 each.  It does not look at votes, and dominates what is released, the
        largest noisy counts' classes.

    Raises
    ------
    ValueError
        For an argument outside its domain.

    References
    ----------
    N. Papernot et al., Scalable Private Learning with PATE (2018), arXiv:1802.08908, Section 4.1.

    Examples
    --------
    >>> import pyengine as pe
    >>> run = pe.pate_noisy_max(100.0, 1000)
    >>> print(f"{pe.epsilon(run, 1e-5):.6f}")
    1.760057
    """
    noise = checks.positive("noise_multiplier", noise_multiplier)
    words = Words(
        f"PATE by the noisy maximum of votes, noise {number_in_words(noise)}",
        "none are drawn: each teacher learns from records of its own and votes on each query",
        counted="label",
        hidden=("noise_multiplier",),
        known="upper bound",
    )
    step = worded(GaussianMechanism(over_root(noise, Fraction(2))), words)
    return step.composed(checks.count("queries", queries))


def pate_votes(
    votes: npt.ArrayLike,
    noise_multiplier: checks.NumberLike,
    *,
    threshold: checks.NumberLike | None = None,
    threshold_noise: checks.NumberLike | None = None,
) -> Composition:
    """PATE with Gaussian noise on the votes at hand: labels on which teachers agree cost little.

    Numbers are those of these votes beside all that another vote of one teacher makes of them.
    They depend on the data: they are no guarantee for other votes, and not to be published.

    Parameters
    ----------
    votes : array_like of shape (queries, classes)
        Numbers of votes >= 0, at least two classes.  Queries must not depend on earlier labels.
    noise_multiplier : float, or exact number as str, Fraction or Decimal
        Standard deviation σ of the noise on the number of votes for each class, in (0, ∞).
    threshold, threshold_noise : float or exact number, optional
        T, and the deviation τ of noise on the largest number of votes, drawn for each query first:
        only where that is above T there is a label (Confident-GNMax).  Both or none.

    Returns
    -------
    Composition
        One `LikelyAnswer` for each query, and one for each threshold that most likely is passed.
        Probabilities of other answers are bounded by those of each other class alone, and rounded
        up to 128 values at most.

    Raises
    ------
    ValueError
        For an argument outside its domain.

    Notes
    -----
    Docs, theory/choices, has the proof.  `pate_noisy_max` holds for all votes.

    References
    ----------
    N. Papernot et al., Scalable Private Learning with PATE (2018), arXiv:1802.08908, whose bounds
    of Rényi divergences these replace.

    Examples
    --------
    >>> import pyengine as pe
    >>> votes = [[230, 15, 5]] * 900 + [[140, 100, 10]] * 10
    >>> run = pe.pate_votes(votes, 40.0)
    >>> print(f"{pe.epsilon(run, 1e-6):.4f} {pe.epsilon(pe.pate_noisy_max(40.0, 910), 1e-6):.4f}")
    0.5962 5.2591
    """
    noise = checks.positive("noise_multiplier", noise_multiplier)
    rows = checks.real_array("votes", votes, 0.0, sys.float_info.max)
    if rows.ndim != 2 or rows.shape[1] < 2:
        raise ValueError(
            "votes must be in one row for each query and a column for each class, of which there "
            f"are two or more; got shape {rows.shape}"
        )
    if (threshold is None) != (threshold_noise is None):
        raise ValueError("threshold and threshold_noise must be given together")
    ordered = np.sort(rows, axis=1)
    gaps = _over(ordered[:, -1:] - ordered[:, :-1], float(noise) * math.sqrt(2.0))
    # normal events that grow together are together no less likely than each by itself
    missed = -fn.expm1(_log_ndtr(gaps, gaps, -1.0).sum(axis=1))
    noise_of_label = over_root(noise, Fraction(2))
    parts, label = [(noise_of_label, missed)], f"noise {number_in_words(noise)}"
    if threshold is not None and threshold_noise is not None:
        limit = checks.number("threshold", threshold)
        other = checks.positive("threshold_noise", threshold_noise)
        label += f", above {number_in_words(limit)} with noise {number_in_words(other)}"
        least = checks.as_double(limit)
        if not math.isfinite(least):
            raise ValueError(f"threshold must be finite, got {checks.shown(threshold)}")
        far, size = (_over(ordered[:, -1] + x, float(other)) for x in (-least, abs(least)))
        some, none = (fn.exp(np.minimum(_log_ndtr(x, size, 1.0), 0.0)) for x in (far, -far))
        is_asked, both = some >= none, 2 / Fraction(noise) ** 2 + 1 / Fraction(other) ** 2
        # where most likely there is no label, what is told at all is one answer
        parts = [
            (other, none[is_asked]),
            (noise_of_label, missed[is_asked]),
            (over_root(1, both), some[~is_asked]),
        ]
    words = Words(
        f"PATE by the noisy maximum of the votes at hand, {label}",
        "none are drawn: each teacher learns from records of its own and votes on each query; "
        "numbers depend on the votes and are not private",
        neighbours="given",
        counted="label",
        hidden=("noise_multiplier",),
        known="upper bound",
    )
    return compose(
        *(
            worded(LikelyAnswer(deviation, min(most * (1.0 + 64.0 * UNIT), 1.0)), words).composed(k)
            for deviation, values in parts
            for most, k in _rounded_up(values)
        )
    )


def _over(values: FloatArray, noise: float) -> FloatArray:
    """Numbers of deviations, where doubles hold them."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        found = values / noise
    if not np.isfinite(found).all():
        raise AccuracyError(BEYOND)
    return found


def _log_ndtr(x: FloatArray, size: FloatArray, side: float) -> FloatArray:
    """Log Φ at x, which is off by some units of a size, rounded to a side."""
    found = np.asarray(special.log_ndtr(x + side * 8.0 * UNIT * size))
    return np.asarray(found * (1.0 - side * 16.0 * UNIT))


def _rounded_up(values: FloatArray) -> list[tuple[float, int]]:
    """At most `KINDS` values and how many stand for each, none above its own.

    Classes are the narrower the more values there are, which keeps what is added small.
    """
    if not values.size:
        return []
    falling = np.sort(values)[::-1]
    place = np.concatenate([[0.0], np.cumsum(np.sqrt(-np.diff(falling)))])
    kind = np.minimum((place / max(float(place[-1]), SMALL) * KINDS).astype(np.int64), KINDS - 1)
    starts = np.flatnonzero(np.diff(kind, prepend=-1))
    numbers = np.diff(np.append(starts, falling.size))
    return [(float(falling[i]), int(k)) for i, k in zip(starts, numbers, strict=True)]


def thresholded_histogram(
    noise_multiplier: checks.NumberLike, threshold: checks.NumberLike, *, keys: int = 1
) -> Mechanism:
    """Counts of unknown keys with Gaussian noise, of those alone that come out above a threshold.

    Parameters
    ----------
    noise_multiplier : float, or exact number as str, Fraction or Decimal
        Standard deviation σ of the noise on each count, in (0, ∞); a record adds at most 1 to it.
    threshold : float, or exact number as str, Fraction or Decimal
        Largest noisy count τ that is not released; keys without a record are not looked at.
    keys : int
        Largest number k of keys that a record counts for, >= 1.

    Returns
    -------
    Composition
        A Gaussian step of noise σ/√k beside a (0, δ) mechanism, δ = 1 - Φ((τ - 1)/σ)^k that a key
        of the record alone comes out; rounded to the safe side.  It dominates: keys that another
        record has as well are in the first part, others in the second one.

    Raises
    ------
    ValueError
        For an argument outside its domain.

    References
    ----------
    B. Wilkins et al., Exact Privacy Analysis of the Gaussian Sparse Histogram Mechanism (2024),
    arXiv:2202.01100.

    Examples
    --------
    >>> import pyengine as pe
    >>> run = pe.thresholded_histogram(5.0, 28.0, keys=2)
    >>> print(f"{pe.delta(run, 2.0):.4e}")
    6.6641e-08
    """
    noise = checks.positive("noise_multiplier", noise_multiplier)
    limit = checks.number("threshold", threshold)
    number = checks.count("keys", keys, least=1, most=checks.PLAIN_COUNT)
    if math.isinf(checks.as_double(limit)):
        raise ValueError(f"threshold must be finite, got {checks.shown(threshold)}")
    x = float(min(max((1 - Fraction(limit)) / Fraction(noise), Fraction(-FAR)), Fraction(FAR)))
    alone = special.ndtr(x)
    # x is off by a unit, which counts with the slope of log Φ, at most |x| + 1
    alone *= 1.0 + 16.0 * UNIT * (1.0 + abs(x) * (abs(x) + 1.0))
    delta = -fn.expm1(number * fn.log1p(-alone)) if alone < 1.0 else 1.0
    delta = min(max(delta * (1.0 + 8.0 * UNIT), math.ulp(0.0)), 1.0)
    above, shown = number_in_words(limit), number_in_words(noise)
    title = f"histogram above a threshold of {above}, noise {shown}"
    batches = f"none are drawn: each record counts for at most {number:,} key{'s' * (number > 1)}"
    values, new = (
        Words(f"{title}: {x}", batches, counted="release", hidden=hidden, known="upper bound")
        for x, hidden in (("counts", ("noise_multiplier",)), ("keys of one record", ("epsilon",)))
    )
    step = GaussianMechanism(over_root(noise, Fraction(number)))
    return compose(worded(step, values), worded(GenericMechanism(0, delta), new))
