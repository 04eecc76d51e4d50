"""Shuffled batches: a proven lower bound on what they leak; no tight upper bound is known."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine.errors import AccuracyError
from pyengine.mechanisms import Composition, FinitePair, Mechanism
from pyengine.mechanisms.core import compose, phases_of
from pyengine.mechanisms.report import epochs_in_words
from pyengine.mechanisms.words import Words, number_in_words, shuffled_words, worded
from pyengine.numerics import functions as fn
from pyengine.special import log_ndtr

__all__ = ["known_leak", "shuffled_lower_bound", "simplest", "without_amplification"]

FloatArray = npt.NDArray[np.float64]

CELLS = 400  # outcomes of an epoch
REACH = 9.0  # standard deviations from the means to the outer cells
LARGEST = 10**9  # denominator of a fraction that a float rate may stand for


def shuffled_lower_bound(
    noise_multiplier: checks.NumberLike, steps_per_epoch: int, epochs: int = 1
) -> Composition:
    """Lower bound on what DP-SGD leaks on shuffled batches: one attack's pair of laws.

    All gradients but the record's are -1 in some direction; the record's is 1 or, in the data set
    without it, 0 (an empty record in its place, dp_accounting's ``REPLACE_SPECIAL``).  From each
    epoch the adversary keeps only the largest noisy sum, rounded to one of 400 cells, which leaks
    less than the training.

    Parameters
    ----------
    noise_multiplier : float, or exact number as str, Fraction or Decimal
        Standard deviation of the noise divided by the clipping norm, in (0, ∞).
    steps_per_epoch : int
        Number of batches into which the shuffled records of an epoch are cut, >= 1.
    epochs : int
        Number of epochs, each shuffled afresh, >= 0.

    Returns
    -------
    Composition
        A pair of laws with finitely many outcomes, composed: its γ, δ and ε are lower bounds of
        those of the training, its trade-off function is an upper bound.  **No such value is a
        guarantee.**  The probabilities are rounded, which moves the answers by about 1e-12.

    Raises
    ------
    ValueError
        For an argument outside its domain.

    References
    ----------
    L. Chua, B. Ghazi, P. Kamath, R. Kumar, P. Manurangsi, A. Sinha, C. Zhang, How Private are
    DP-SGD Implementations? (2024), arXiv:2403.17673, Section 4; and Scalable DP-SGD: Shuffling
    vs. Poisson Subsampling (2024), arXiv:2411.04205, for several epochs.

    Examples
    --------
    >>> import pyengine as pe
    >>> leak = pe.shuffled_lower_bound(0.5, steps_per_epoch=1000)
    >>> poisson = pe.dp_sgd(0.5, "1/1000", 1000)
    >>> [round(pe.epsilon(run, 1e-6), 2) for run in (leak, poisson)]
    [11.0, 4.24]
    """
    sigma = float(checks.positive("noise_multiplier", noise_multiplier))
    steps = checks.count("steps_per_epoch", steps_per_epoch, least=1, most=checks.PLAIN_COUNT)
    number = checks.count("epochs", epochs)
    with np.errstate(over="ignore", invalid="ignore"):  # noise near either end of the doubles
        edges = np.linspace(-REACH * sigma, 2.0 + REACH * sigma, CELLS + 1)[1:-1]
        without, with_it = (_masses(edges, place, sigma, steps) for place in (1.0, 2.0))
    both = np.flatnonzero((without > 0.0) & (with_it > 0.0))
    if not both.size:
        raise AccuracyError(
            f"no cell has mass of both laws in doubles at noise_multiplier={sigma:g}: use one "
            "nearer to 1"
        )
    first, last = int(both[0]), int(both[-1])
    p, q = (_joined(masses, first, last) for masses in (without, with_it))
    words = Words(
        "the least that shuffled batches leak",
        f"all records are shuffled once an epoch and cut into {steps:,} batches",
        f" of {steps:,} batches at noise multiplier {number_in_words(sigma)}",
        neighbours="in_place",
        counted="epoch",
        hidden=("p", "q"),
        known="lower bound",
    )
    return worded(FinitePair(p, q), words).composed(number)


def known_leak(mechanism: Mechanism) -> Composition | None:
    """The lower bound of what a run with ``sampling="shuffle"`` leaks; None for any other run."""
    parts = [(step.words.least, number) for step, number in phases_of(mechanism)]
    known = [(*least, number) for least, number in parts if least is not None]
    if not known or len(known) < len(parts):
        return None
    return compose(*(shuffled_lower_bound(*each) for each in known))


def without_amplification(mechanism: Mechanism) -> Composition | None:
    """One unsampled step per epoch, which dominates the run with a shuffling loader.

    None if nothing is sampled.  If epochs were not given, their number is the largest possible: an
    epoch has at least ⌊1/p⌋ batches.
    """
    parts, sampled = [], False
    for step, number in phases_of(mechanism):
        inner, rate, batches = step.stage
        who = step.words.neighbours
        if rate == 0 or who in ("in_place", "group") or step.words.counted == "release":
            return None
        if step.scheme == "none":
            parts.append(step.composed(number))
            continue
        sampled = True
        given = epochs_in_words(step.words, number)
        least = math.floor(1 / simplest(rate))
        epochs = Fraction(given.replace(",", "")) if given else Fraction(number * batches, least)
        place = inner.words.neighbours.replace("present", "in_place")
        words = shuffled_words(inner.on_batches, neighbours=place, whose=step.words.whose)
        parts.append(worded(inner, words).composed(math.ceil(epochs)))
    return compose(*parts) if sampled else None


def simplest(rate: checks.Number) -> Fraction:
    """The fraction that a rate stands for: 1/100 for the float 0.01."""
    exact = Fraction(rate)
    near = exact.limit_denominator(LARGEST)
    return near if isinstance(rate, float) and float(near) == rate else exact


def _joined(masses: FloatArray, first: int, last: int) -> tuple[float, ...]:
    """Probabilities of cells ``first`` to ``last``, with all cells beyond them joined to these."""
    inner = masses[first : last + 1].copy()
    inner[0] += masses[:first].sum()
    inner[-1] += masses[last + 1 :].sum()
    return tuple((inner / inner.sum()).tolist())


def _masses(edges: FloatArray, place: float, sigma: float, steps: int) -> FloatArray:
    """Probabilities of the largest of N(place, σ²) and ``steps`` - 1 of N(0, σ²) between edges."""
    logs = np.asarray(log_ndtr((edges - place) / sigma))
    if steps > 1:
        logs = logs + (steps - 1) * np.asarray(log_ndtr(edges / sigma))
    below, above = fn.exp(logs), -fn.expm1(logs)
    low, high = np.diff(below, prepend=0.0), -np.diff(above, append=0.0)
    middle = max(1, int(np.searchsorted(logs, -fn.log(2.0))))
    return np.concatenate([low[:middle], high[middle - 1 :]])
