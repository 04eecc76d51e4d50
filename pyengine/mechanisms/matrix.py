"""Matrix mechanisms: correlated noise, accounted for as one Gaussian or as DP-SGD."""

from __future__ import annotations

import math
import sys
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine.errors import ApproximationWarning
from pyengine.mechanisms.core import Composition, Step, compose, phases_of
from pyengine.mechanisms.dp_sgd import allocated_epoch, dp_sgd
from pyengine.mechanisms.gaussian import GaussianMechanism
from pyengine.mechanisms.participation import (
    LONGEST,
    PARTICIPATIONS,
    bin_products,
    square_of_sensitivity,
    toeplitz_square,
)
from pyengine.mechanisms.words import Words, worded

__all__ = [
    "banded_matrix_factorization",
    "blt_coefficients",
    "matrix_mechanism",
    "toeplitz_mechanism",
    "tree_aggregation_matrix",
]

LARGEST_TREE = 8192  # leaves
FAR_ROOT = 2**400  # a larger root of a square is taken as an integer
BINS = "balls_in_bins"
# What labels say of batches, by participation.
TAKES_PART = {
    "single": "none are drawn: each record takes part in one step at most, fixed beforehand",
    "fixed_order": "none are drawn: each record takes part at most {times}, every "
    "{gap}, in an order that is fixed beforehand",
    "min_separation": "none are drawn: each record takes part at most {times}, at least "
    "{gap} apart, at steps that do not depend on the data",
}


def banded_matrix_factorization(
    noise_multiplier: checks.NumberLike,
    sampling_probability: checks.NumberLike,
    steps: int,
    bands: int,
) -> Composition:
    """DP-SGD with noise correlated by a banded matrix C and batches drawn in turn from b groups.

    The records are split into ``bands`` groups once; step i draws a Poisson sample from group
    i mod b.  A record takes part at steps that are b apart, whose columns of C have disjoint rows.
    So the release is that of independent Poisson-subsampled Gaussians, one for each turn of the
    record's group.

    Parameters
    ----------
    noise_multiplier : float, or exact number as str, Fraction or Decimal
        Standard deviation of the noise z in C x + z divided by the clipping norm, in (0, ∞), for a
        lower triangular C whose columns have norm at most 1.
    sampling_probability : float, or exact number as str, Fraction or Decimal
        Probability with which each record of the active group enters the batch, in [0, 1]: b times
        the expected batch size divided by the number of records.
    steps : int
        Number n of training steps, >= 1.
    bands : int
        Number b of nonzero diagonals of C, including the main one, in [1, n].

    Returns
    -------
    Composition
        ``dp_sgd(noise_multiplier, sampling_probability, ceil(steps / bands))``.  Neighbours differ
        in one record, which the other data set replaces by an empty one; groups stay the same.

    Raises
    ------
    ValueError
        For an argument outside its domain.

    References
    ----------
    C. A. Choquette-Choo, A. Ganesh, R. McKenna, H. B. McMahan, K. Rush, A. Thakurta, Z. Xu,
    (Amplified) Banded Matrix Factorization (2023), arXiv:2306.08153, Theorem 4.

    Examples
    --------
    >>> import pyengine as pe
    >>> pe.banded_matrix_factorization(2.0, "0.16", steps=2000, bands=16).steps
    125
    """
    number = checks.count("steps", steps, least=1)
    width = checks.count("bands", bands, 1, number, "steps = ")
    run = dp_sgd(noise_multiplier, sampling_probability, -(-number // width))
    steps_of_run = ((_banded(step, number, width), turns) for step, turns in phases_of(run))
    return compose(*(step.composed(turns) for step, turns in steps_of_run))


def _banded(step: Step, steps: int, bands: int) -> Step:
    """The step with a label that says that groups take turns."""
    own = step.words
    rate = own.rate or "1"
    words = own._replace(
        name="DP-SGD with banded noise",
        batches=f"the records are split into {bands:,} groups once, which take turns; each record "
        f"of the group joins its batch independently with probability {rate} (Poisson sampling)",
        size=f" at rate {rate} within a group: {steps:,} steps of {bands:,} groups",
        neighbours="in_place",
        counted="turn",
    )
    return worded(step, words)


def matrix_mechanism(
    noise_multiplier: checks.NumberLike,
    C: Any,
    participation: str = "single",
    *,
    times: int | None = None,
    separation: int | None = None,
    bins: int | None = None,
    classes: int | None = None,
) -> Step | Composition:
    """Matrix mechanism: one release of C x + z, where x holds the sums of all steps.

    Parameters
    ----------
    noise_multiplier : float, or exact number as str, Fraction or Decimal
        Standard deviation of the entries of z divided by the clipping norm, in (0, ∞); it is *not*
        scaled by the sensitivity of C.
    C : array_like of shape (rows, steps)
        Finite, without a zero column.  If later sums depend on earlier releases, each row may only
        use steps up to the time of its release (a lower triangular C, or the nodes of a tree).
    participation, times, separation
        At which steps a record takes part, as in `matrix_sensitivity`; or ``balls_in_bins``: each
        record is put into one of b bins, drawn uniformly and kept for all epochs, and takes part in
        the steps i, i + b, i + 2b, ... of bin i.
    bins : int
        b, in [1, steps], for ``balls_in_bins`` only.
    classes : int, optional
        Number c of classes of bins, in [1, b], for ``balls_in_bins`` only: the bins r, r + c, ...
        share one bound.  By default the c whose bound is best by a closed form.

    Returns
    -------
    GaussianMechanism or Composition
        Noise multiplier ``noise_multiplier / sensitivity``: exact if it is rational, else rounded
        down.  Under ``substitute`` both records take part at the same steps.  For
        ``balls_in_bins`` a Gaussian step and one epoch of random allocation to the b / c bins of a
        class, which together dominate; they are tight if c is 1 and the sums of the absolute
        columns of all bins have equal norms and equal inner products.

    Raises
    ------
    ValueError
        For arguments outside their domains.

    Warns
    -----
    ApproximationWarning
        If only an upper bound of the sensitivity, or of what bins leak, is known: values and both
        bounds are then those of this upper bound.

    References
    ----------
    S. Denisov, H. B. McMahan, K. Rush, A. Smith, A. Thakurta, Improved Differential Privacy for SGD
    via Optimal Private Linear Operators on Adaptive Streams (2022), arXiv:2202.08312, Theorem 2.1;
    C. A. Choquette-Choo, A. Ganesh, S. Haque, T. Steinke, A. Thakurta, Near Exact Privacy
    Amplification for Matrix Mechanisms (2024), arXiv:2410.06266, for balls in bins; and those of
    `matrix_sensitivity`.

    Examples
    --------
    >>> import pyengine as pe
    >>> pe.matrix_mechanism(6.0, pe.tree_aggregation_matrix(256)) == pe.GaussianMechanism(2.0)
    True
    >>> run = pe.matrix_mechanism(2.0, [[1, 0], [0, 1]], "balls_in_bins", bins=2)
    >>> run == pe.dp_sgd_allocated(2.0, steps_per_epoch=2, epochs=1)
    True
    """
    noise = checks.positive("noise_multiplier", noise_multiplier)
    checks.choice("participation", participation, (*PARTICIPATIONS, BINS))
    if participation == BINS:
        if times is not None or separation is not None or bins is None:
            raise ValueError(
                f"participation {BINS!r} takes bins and neither times nor separation, got "
                f"{bins!r}, {times!r} and {separation!r}"
            )
        return _in_bins(noise, C, bins, classes)
    for name, value in (("bins", bins), ("classes", classes)):
        if value is not None:
            raise ValueError(
                f"{name} must go with participation {BINS!r}, got {checks.shown(value)}"
            )
    square, exact = square_of_sensitivity(C, participation, times, separation)
    return _one_gaussian(noise, square, exact, participation, times, separation)


def toeplitz_mechanism(
    noise_multiplier: checks.NumberLike,
    coefficients: Any,
    steps: int,
    participation: str = "single",
    *,
    times: int | None = None,
    separation: int | None = None,
) -> Step:
    """Matrix mechanism of a lower triangular Toeplitz matrix C, given by its first column.

    Parameters
    ----------
    noise_multiplier : float, or exact number as str, Fraction or Decimal
        As in `matrix_mechanism`.
    coefficients : array_like of shape (m,), m <= steps
        First column of C without trailing zeros: step i releases c₀xᵢ + c₁xᵢ₋₁ + … with noise.
        Finite, c₀ not zero; `blt_coefficients` makes those of buffered linear Toeplitz matrices.
    steps : int
        Number n of columns, in [1, 10^7].
    participation, times, separation
        As in `matrix_sensitivity`.

    Returns
    -------
    GaussianMechanism
        As of `matrix_mechanism`, also for large n: the sensitivity takes n times k operations.  It
        is exact for ``single``, for non-negative decreasing coefficients (Theorem 2 of Kalinin and
        Lampert), and for at most ``separation`` coefficients.

    Raises
    ------
    ValueError
        For arguments outside their domains.

    Warns
    -----
    ApproximationWarning
        For other coefficients: each absolute value is replaced by the largest from there on.

    References
    ----------
    N. Kalinin, C. Lampert, Banded Square Root Matrix Factorization for Differentially Private Model
    Training (2024), arXiv:2405.13763.

    Examples
    --------
    >>> import pyengine as pe
    >>> epochs = {"participation": "fixed_order", "times": 4, "separation": 25_000}
    >>> round(pe.toeplitz_mechanism(2.0, [1.0, 0.5], 100_000, **epochs).noise_multiplier, 12)
    0.894427191
    """
    noise = checks.positive("noise_multiplier", noise_multiplier)
    square, exact = toeplitz_square(coefficients, steps, participation, times, separation)
    return _one_gaussian(noise, square, exact, participation, times, separation)


def blt_coefficients(buffer_decay: Any, output_scale: Any, steps: int) -> npt.NDArray[np.float64]:
    """First column of a buffered linear Toeplitz (BLT) matrix.

    Parameters
    ----------
    buffer_decay : array_like of shape (d,)
        θ in [0, 1].
    output_scale : array_like of shape (d,)
        ω, finite.
    steps : int
        Length n of the column, in [1, 10^7].

    Returns
    -------
    ndarray of shape (n,)
        1, then Σⱼ ωⱼ θⱼ^(i-1) for i >= 1, to a few units of roundoff of each term.

    Raises
    ------
    ValueError
        For arguments outside their domains.

    References
    ----------
    K. Dvijotham et al., Efficient and Near-Optimal Noise Generation for Streaming Differential
    Privacy (2024), arXiv:2404.16706; H. B. McMahan, Z. Xu, Y. Zhang, A Hassle-free Algorithm for
    Private Learning in Practice (2024), arXiv:2408.08868.

    Examples
    --------
    >>> import pyengine as pe
    >>> pe.blt_coefficients([0.5], [0.25], 4)
    array([1.    , 0.25  , 0.125 , 0.0625])
    """
    number = checks.count("steps", steps, least=1, most=LONGEST)
    decay = np.atleast_1d(checks.real_array("buffer_decay", buffer_decay, 0.0, 1.0))
    scale = np.atleast_1d(checks.real_array("output_scale", output_scale, -1e100, 1e100))
    if decay.ndim != 1 or decay.shape != scale.shape:
        raise ValueError(
            "buffer_decay and output_scale must be lists of one length, got shapes "
            f"{decay.shape} and {scale.shape}"
        )
    column = np.ones(number)
    column[1:] = 0.0
    power = np.arange(number - 1)
    for theta, omega in zip(decay.tolist(), scale.tolist(), strict=True):
        column[1:] += omega * theta**power
    return column


def _one_gaussian(
    noise: checks.Number,
    square: Fraction,
    exact: bool,
    participation: str,
    times: int | None,
    separation: int | None,
) -> Step:
    """Gaussian step of noise over sensitivity, with its label; warns if that is only a bound."""
    if not exact:
        warnings.warn(
            "only an upper bound of the sensitivity of C is known: all answers for this mechanism "
            "are upper bounds of what it leaks",
            ApproximationWarning,
            stacklevel=3,
        )
    words = Words(
        "matrix mechanism, one Gaussian release of the noise over the sensitivity of C",
        TAKES_PART[participation].format(
            times="once" if times == 1 else f"{times} times",
            gap="1 step" if separation == 1 else f"{separation} steps",
        ),
        neighbours="in_place",
        counted="release",
        known="" if exact else "upper bound",
    )
    return worded(GaussianMechanism(over_root(noise, square)), words)


def _in_bins(noise: checks.Number, C: Any, bins: int, classes: int | None) -> Composition:
    """Dominating steps: a Gaussian one for the largest product of bins, an epoch for the rest."""
    square, product, size, number, exact = bin_products(C, bins, float(noise), classes)
    if not exact:
        warnings.warn(
            "only an upper bound of what random bins leak is known for C: all answers for this "
            "mechanism are upper bounds of what it leaks",
            ApproximationWarning,
            stacklevel=3,
        )
    known = (
        ""
        if number == 1
        else f" (a bound, as if it were known which of {number:,} classes of bins it is in)"
    )
    words = Words(
        "matrix mechanism in random bins",
        f"each record is put into one of {bins:,} bins once, uniformly and by itself, and takes "
        f"part in the steps i, i + {bins:,}, ... of bin i" + known,
        counted="release",
        known="" if exact else "upper bound",
    )
    parts: list[Step] = []
    if product:
        shared = words._replace(name=f"{words.name}, what all bins share")
        parts.append(worded(GaussianMechanism(over_root(noise, product)), shared))
    if square > product:
        rest = allocated_epoch(over_root(noise, square - product), size)
        own = words._replace(name=f"{words.name}, what each has of its own")
        parts.append(worded(rest, own if product else words))
    return compose(*parts)


def over_root(noise: checks.Number, square: Fraction) -> checks.Number:
    """Noise / √square: exact where rational, else rounded down to a double."""
    root = Fraction(math.isqrt(square.numerator), math.isqrt(square.denominator))
    if root * root == square:
        quotient = Fraction(noise) / root
        near = checks.as_double(quotient)
        is_double = isinstance(noise, float) and math.isfinite(near) and Fraction(near) == quotient
        return near if is_double else quotient
    goal = Fraction(noise) ** 2 / square
    whole = math.isqrt(square.numerator // square.denominator)
    # where doubles end, the integer root has digits enough
    near = float(Fraction(noise) / whole) if whole > FAR_ROOT else float(noise) / math.sqrt(square)
    near = min(near, sys.float_info.max)
    while Fraction(near) ** 2 > goal:
        near = math.nextafter(near, 0.0)
    return near


def tree_aggregation_matrix(steps: int) -> npt.NDArray[np.float64]:
    """Matrix of tree aggregation: one row for each complete node of binary trees over the steps.

    Parameters
    ----------
    steps : int
        Number of leaves, in [1, 8192].

    Returns
    -------
    ndarray of shape (nodes, steps)
        Zeros and ones; nodes in the order of completion.  A leaf is in at most
        ``steps.bit_length()`` nodes.

    References
    ----------
    P. Kairouz, B. McMahan, S. Song, O. Thakkar, A. Thakurta, Z. Xu, Practical and Private (Deep)
    Learning without Sampling or Shuffling (2021), arXiv:2103.00039, Appendix B.

    Examples
    --------
    >>> import pyengine as pe
    >>> pe.tree_aggregation_matrix(3)
    array([[1., 0., 0.],
           [0., 1., 0.],
           [1., 1., 0.],
           [0., 0., 1.]])
    """
    number = checks.count("steps", steps, least=1, most=LARGEST_TREE)
    nodes = [
        (end, size)
        for end in range(1, number + 1)
        for size in (1 << level for level in range(number.bit_length()))
        if end % size == 0
    ]
    matrix = np.zeros((len(nodes), number))
    for row, (end, size) in enumerate(nodes):
        matrix[row, end - size : end] = 1.0
    return matrix
