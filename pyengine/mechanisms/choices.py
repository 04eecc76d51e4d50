"""Noisy selection and histograms, each represented by a mechanism that dominates it."""

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
NEG_LOG_RULE = 45.0  # -log of the relative error of the trapezoidal rule, about
NONE_DRAWN = "none are drawn: each release may use every record"
FAR = 10**5  # standard deviations beyond which a normal tail is 0 or 1 in doubles
MOST_ODDS = 128  # different probabilities that those of votes are rounded up to
SMALL = 1e-300  # in the place of a divisor 0
HALF_LOG_2PI = 0.5 * fn.log(2.0 * math.pi)


def report_noisy_max(
    noise_multiplier: checks.NumberLike, queries: int, *, span: checks.NumberLike
) -> Step:
    """Index of the largest of d bounded queries, after Gaussian noise on each.

    Parameters
    ----------
    noise_multiplier : float, or exact number as str, Fraction or Decimal
        Standard deviation of the noise on each query over the sensitivity of a query, in (0, ∞).
    queries : int
        Number d of queries, in [2, 10^8]; each moves by at most its sensitivity, in any direction.
    span : float, or exact number as str, Fraction or Decimal
        Length of an interval that holds the values of all queries on any data, over the
        sensitivity; in (0, ∞).

    Returns
    -------
    GenericMechanism
        With δ = 0 and ε the largest log ratio of the probabilities of an index, which some queries
        attain; rounded up by about 1e-12 at most.  It is ε-DP because differences of queries are
        bounded; only the index is released, no value.

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
            f"the span over the noise must be below 10^4, got {lowest:g}: use permute_and_flip, or "
            "a GaussianMechanism of all queries"
        )
    moved = 2.0 * min(1.0, width) / noise
    # quotients are off by 2 units, differences by one more
    off = 4.0 * UNIT * (lowest + moved)
    above = _log_win_probability(moved - lowest, number, off)
    below = _log_win_probability(-lowest, number, off)
    value = (above[0] - below[0]) + above[1] + below[1]
    if not value < 1e4:
        raise AccuracyError(f"epsilon is {value:g}, above 10^4: use more noise")
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


def _log_win_probability(gap: float, queries: int, off: float) -> tuple[float, float]:
    """Logarithm of ∫ φ(z) Φ(gap + z)^(d-1) dz, and a bound on its error.

    The integrand F is at most e^{da²/2} as large on the lines ±ia as it is on the real line, since
    |φ(z + ia)| = φ(z) e^{a²/2} and |Φ(x + ia)| <= Φ(x) e^{a²/2}; a trapezoidal rule of spacing s
    misses at most 2 e^{da²/2}/(e^{2πa/s} - 1) of the integral, least at a = 2π/(s d).

    ``off`` is the absolute error of the gap.
    """
    spacing = math.pi * math.sqrt(2.0 / (NEG_LOG_RULE * queries))
    line = 2.0 * math.pi / (spacing * queries)
    missed = 2.0 * fn.exp(0.5 * queries * line * line) / fn.expm1(2.0 * math.pi * line / spacing)

    def logs(z: FloatArray) -> FloatArray:
        log_of = np.asarray(special.log_ndtr(gap + z))
        return np.asarray(-0.5 * z * z + (queries - 1) * log_of)

    low, high = -1.0, max(1.0, -2.0 * gap) + math.sqrt(2.0 * fn.log(queries)) + 1.0
    for _ in range(60):  # golden section: the mode of the integrand
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
    """Permute-and-flip: private choice of an index with a high score.

    Parameters
    ----------
    epsilon : float, or exact number as str, Fraction or Decimal
        ε of its exponents, in [0, ∞): when its turn comes, item i with score qᵢ is accepted with
        probability exp(ε (qᵢ - max q) / (2 Δ)), Δ the sensitivity of the scores.

    Returns
    -------
    GenericMechanism
        With this ε and δ = 0: it dominates every ε-DP mechanism.

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
    """PATE with Gaussian noise on votes (GNMax): labels by teachers trained on disjoint records.

    Parameters
    ----------
    noise_multiplier : float, or exact number as str, Fraction or Decimal
        Standard deviation σ of the noise on the number of votes for each class, in (0, ∞).
    queries : int
        Number of labels, >= 0; a query may depend on earlier labels.

    Returns
    -------
    Composition
        Gaussian steps of noise σ/√2, rounded down, one for each label: a teacher who changes the
        vote moves two counts by 1 each.  It does not depend on the votes, and dominates the
        release, the class with the largest noisy count.

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

    Answers compare these votes with all votes that differ from them in one teacher's vote.  They
    depend on the data: they are no guarantee for other votes, and must not be published.

    Parameters
    ----------
    votes : array_like of shape (queries, classes)
        Vote counts >= 0, at least two classes.  Queries must not depend on earlier labels.
    noise_multiplier : float, or exact number as str, Fraction or Decimal
        Standard deviation σ of the noise on the number of votes for each class, in (0, ∞).
    threshold, threshold_noise : float or exact number, optional
        T, and the standard deviation τ of the noise on the largest count, drawn first for each
        query: a label is released only if the noisy count exceeds T (Confident-GNMax).  Both or
        none.

    Returns
    -------
    Composition
        One `LikelyAnswer` for each query, and one for each threshold that is most likely passed.
        The probability of another answer is bounded as if the other classes won independently
        (Slepian), and rounded up to at most 128 different values.

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
    # Slepian: positively correlated normal events are no less likely together than independently
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
        # where most likely no label is released, both releases together make one likely answer
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
    """Values in standard deviations; an AccuracyError where doubles overflow."""
    with np.errstate(over="ignore", divide="ignore", invalid="ignore"):
        found = values / noise
    if not np.isfinite(found).all():
        raise AccuracyError(BEYOND)
    return found


def _log_ndtr(x: FloatArray, size: FloatArray, side: float) -> FloatArray:
    """Bound of log Φ(x), from above (side 1) or below (-1); x is off by a few units of ``size``."""
    found = np.asarray(special.log_ndtr(x + side * 8.0 * UNIT * size))
    return np.asarray(found * (1.0 - side * 16.0 * UNIT))


def _rounded_up(values: FloatArray) -> list[tuple[float, int]]:
    """Round up to at most `MOST_ODDS` different values; return each with its number.

    The cells are narrower where values are dense, which keeps the total excess small.
    """
    if not values.size:
        return []
    falling = np.sort(values)[::-1]
    place = np.concatenate([[0.0], np.cumsum(np.sqrt(-np.diff(falling)))])
    cell = np.minimum(
        (place / max(float(place[-1]), SMALL) * MOST_ODDS).astype(np.int64), MOST_ODDS - 1
    )
    starts = np.flatnonzero(np.diff(cell, prepend=-1))
    numbers = np.diff(np.append(starts, falling.size))
    return [(float(falling[i]), int(k)) for i, k in zip(starts, numbers, strict=True)]


def thresholded_histogram(
    noise_multiplier: checks.NumberLike, threshold: checks.NumberLike, *, keys: int = 1
) -> Mechanism:
    """Histogram of unknown keys: counts with Gaussian noise, released only above a threshold.

    Parameters
    ----------
    noise_multiplier : float, or exact number as str, Fraction or Decimal
        Standard deviation σ of the noise on each count, in (0, ∞); a record adds at most 1 to it.
    threshold : float, or exact number as str, Fraction or Decimal
        Largest noisy count τ that is not released; keys without any record are left out.
    keys : int
        Largest number k of keys that a record counts for, >= 1.

    Returns
    -------
    Composition
        A Gaussian step of noise σ/√k beside a (0, δ) mechanism, where δ = 1 - Φ((τ - 1)/σ)^k is
        the probability that a key of the record alone is released; rounded to the safe side.  It
        dominates: keys that other records share are covered by the first part, others by δ.

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
    # x is off by a unit, times the slope of log Φ, at most |x| + 1
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
