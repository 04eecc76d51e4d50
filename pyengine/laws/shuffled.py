"""The pair that dominates shuffled local randomizers: clones among two binomial counts.

With e = exp(ε₀), C ~ Bin(n - 1, 2/(e + 1)) other users are clones, whose messages are of the first
or the second kind: A ~ Bin(C, 1/2) are of the first.  The user whose input differs adds one of the
first kind with probability e/(e + 1) and one of the second kind otherwise, or, with the other
input, the other way round.  Proof: docs/theory/shuffle.

Given m = C + 1 messages, a of the first kind have probability C(m, a) 2^-m (1 -+ t x) under the two
laws, t = tanh(ε₀/2), x = (2 a - m)/m, so the loss is 2 atanh(t x).  A pair with fewer clones
dominates one with more (further fair messages are noise), so consecutive numbers of clones may be
replaced by the smallest of them if there are too many.
"""

from __future__ import annotations

import math
from decimal import Decimal, localcontext
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pyengine.laws.finite import FiniteLaw
from pyengine.numerics import functions as fn
from pyengine.numerics.binomials import log_probability
from pyengine.numerics.exact_numbers import CONTEXT, as_decimal
from pyengine.numerics.rounding import UNIT

__all__ = ["shuffled_law"]

FloatArray = npt.NDArray[np.float64]

MOST_ATOMS = 1 << 20
SMALLEST = Decimal(10) ** -360  # smaller probabilities are left out: below e^-800
REACH = 20.5  # times √m: distance from m/2 beyond which binomial masses are below that
CORE, SHARE = 9.0, 0.85  # standard deviations of the core, and its share of the groups
STIRLING = 16  # from here on five terms of Stirling's series are exact to doubles


# Map: shuffled local randomizers, the clones' pair | test_shuffled_randomizer | theory/shuffle
def shuffled_law(local_epsilon: float | Fraction, users: int) -> FiniteLaw:
    """Return the pair of one round.

    Parameters
    ----------
    local_epsilon : float or Fraction
        ε₀, in [0, 100].
    users : int
        n, >= 1.
    """
    with localcontext(CONTEXT):
        e = as_decimal(Fraction(local_epsilon)).exp()
        rest = float(2 / (e + 1))  # 1 - t
        t = float((e - 1) / (e + 1))
        groups = _groups(users - 1, 2 / (e + 1))
    parts = [_atoms(clones + 1, t, rest) for clones, _ in groups]
    weights = np.array([float(weight.ln(CONTEXT)) for _, weight in groups])
    sizes = [loss.size for loss, _ in parts]
    largest = float(local_epsilon)
    return FiniteLaw.from_atoms(
        np.concatenate([loss for loss, _ in parts]),
        np.concatenate([log_a for _, log_a in parts]) + np.repeat(weights, sizes),
        (Fraction(0), Fraction(0)),
        loss_error=8.0 * UNIT * (1.0 + largest),
        ends=(-largest, largest),
        symmetric=True,
    )


def _groups(others: int, rate: Decimal) -> list[tuple[int, Decimal]]:
    """Groups of consecutive numbers of clones: the smallest number, and the probability."""
    found = _clones(others, rate)
    per_group = min(others + 1, math.ceil(2.0 * REACH * math.sqrt(found[-1][0] + 1)))
    number = max(8, MOST_ATOMS // per_group)
    if len(found) <= number:
        return found
    mean, deviation = others * float(rate), math.sqrt(others * float(rate * (1 - rate)))
    place = np.array([clones for clones, _ in found])
    core = np.abs(place - mean) < CORE * deviation
    inner = max(1, int(SHARE * number))
    width = max(1, math.ceil(2.0 * CORE * deviation / inner))
    coarse = max(1, math.ceil((len(found) - np.count_nonzero(core)) / (number - inner)))
    grouped: list[tuple[int, Decimal]] = []
    left = 0
    for (clones, weight), fine in zip(found, core.tolist(), strict=True):
        if left == 0:
            grouped.append((clones, Decimal(0)))
            left = width if fine else coarse
        least, before = grouped[-1]
        grouped[-1] = (least, before + weight)
        left -= 1
    return grouped


def _clones(others: int, rate: Decimal) -> list[tuple[int, Decimal]]:
    """Increasing numbers of clones with probabilities above `SMALLEST`, and these."""
    if rate == 1:  # ε₀ = 0: all messages are noise
        return [(others, Decimal(1))]
    mode = min(int((others + 1) * rate), others)
    odds = rate / (1 - rate)
    top = log_probability(others, Fraction(rate), mode).exp()
    below: list[tuple[int, Decimal]] = []
    weight = top
    for clones in range(mode, 0, -1):
        weight *= clones / (odds * (others - clones + 1))
        if weight < SMALLEST:
            break
        below.append((clones - 1, weight))
    above, weight = [(mode, top)], top
    for clones in range(mode, others):
        weight *= odds * (others - clones) / (clones + 1)
        if weight < SMALLEST:
            break
        above.append((clones + 1, weight))
    return below[::-1] + above


def _atoms(messages: int, t: float, rest: float) -> tuple[FloatArray, FloatArray]:
    """Losses of the counts of the first kind among the messages, and log masses of A."""
    m = float(messages)
    half = REACH * math.sqrt(m)
    a = np.arange(
        max(0, math.ceil(0.5 * m - half)), min(messages, math.floor(0.5 * m + half)) + 1.0
    )
    b = m - a
    x = (a - b) / m
    less, more = rest + 2.0 * t * b / m, rest + 2.0 * t * a / m  # 1 -+ t x, as sums
    with np.errstate(divide="ignore"):
        near = np.abs(t * x) < 0.5
        loss = np.where(near, 2.0 * fn.arctanh(np.where(near, t * x, 0.0)), fn.log(more / less))
    return loss, _log_fair(a, b, m) + fn.log(less)


def _log_fair(a: FloatArray, b: FloatArray, m: float) -> FloatArray:
    """Logarithm of C(m, a) 2^-m, to a few units of roundoff and an absolute 1e-15.

    a log(2 a/m) + b log(2 b/m) is m x atanh x + m log(1 - x^2)/2; the rest of the factorials are
    Stirling's remainders.
    """
    x = (a - b) / m
    both = (a > 0.0) & (b > 0.0)
    inner = np.where(both, x, 0.0)
    small = np.abs(inner) < 0.5
    square = np.where(
        small,
        fn.log1p(-(np.where(small, inner, 0.0) ** 2)),
        fn.log(np.where(both, 4.0 * a * b, 1.0) / m**2),
    )
    far = m * (inner * fn.arctanh(inner) + 0.5 * square)
    product = np.where(both, a * b, 1.0)
    plain = -0.5 * fn.log(2.0 * math.pi * product / m) - far
    plain += _stirling(np.array([m]))[0] - _stirling(a) - _stirling(b)
    return np.where(both, plain, -m * fn.log(2.0))


def _stirling(k: FloatArray) -> FloatArray:
    """Log k! - (k + 1/2) log k + k - log(2 pi)/2; 0 at k = 0."""
    large = np.maximum(k, STIRLING)
    square = 1.0 / large**2
    series = (
        1 / 12 - square * (1 / 360 - square * (1 / 1260 - square * (1 / 1680 - square / 1188)))
    ) / large
    return np.where(k >= STIRLING, series, REMAINDERS[np.minimum(k, STIRLING).astype(int)])


def _remainders() -> FloatArray:
    with localcontext(CONTEXT):
        half_log = Decimal("0.91893853320467274178032973640561763986139747363778341")
        exact = [
            Decimal(math.factorial(k)).ln() - (k + Decimal("0.5")) * Decimal(k).ln() + k - half_log
            for k in range(1, STIRLING + 1)
        ]
        return np.array([0.0, *map(float, exact)])


REMAINDERS = _remainders()
