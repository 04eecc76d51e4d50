"""How often Poisson samples are truncated, and the law of one truncated step.

With n - 1 other records, of which S ~ Bin(n - 1, p) enter the sample:

- S < B, of probability 1 - τ: the batch is the sample, with or without the record.  The pair is
  that of Poisson sampling with probability p.
- S >= B, of probability τ: without the record the batch T is a uniform subset of B of the others,
  whatever S is.  With the record, it enters the sample with probability p and then stays in the
  batch with probability B/(S + 1), in place of a record drawn uniformly from T; so it is in the
  batch with probability q = E[p B/(S + 1) | S >= B] = P(Bin(n, p) > B) B/(n τ), which does not
  depend on T, and then moves the sum by at most twice the clipping norm.

Hockey-stick divergences are jointly convex, so the pair that reveals whether S < B, and is the one
above in either case, dominates.

If the record is replaced by another one, S is the same.  For S < B either record enters with
probability p: the pair is that of Poisson sampling under substitution.  For S >= B either is in the
batch with probability q, beside B - 1 uniformly drawn others.  As with batches of size B without
replacement, the batches with the record, with the other one and with neither differ from each other
by one replaced record, which moves the sum by at most twice the clipping norm.  So the pair of that
scheme, with q in the place of B/n, dominates.
"""

from __future__ import annotations

from dataclasses import dataclass
from decimal import Decimal, localcontext
from fractions import Fraction

from pyengine._support.caches import kept
from pyengine.numerics.binomials import log_probability
from pyengine.numerics.exact_numbers import CONTEXT, as_decimal

__all__ = ["Truncation", "truncation"]

DIGITS = 45  # to which binomial tails are summed
MOST_TERMS = 5_000_000  # of a binomial tail
UNDERFLOW = Decimal(-2_000_000)  # log of a tail below which it counts as 0


@dataclass(frozen=True)
class Truncation:
    """Probability that the others fill the batch, and that the record is in the batch then.

    Parameters
    ----------
    full : Decimal
        τ = P(Bin(n - 1, p) >= B), to 40 digits.
    rest : Decimal
        1 - τ, to 40 digits.
    inside : Fraction
        q = P(Bin(n, p) > B) B/(n τ), to 40 digits; p where τ is 0.
    """

    full: Decimal
    rest: Decimal
    inside: Fraction


@kept(256)
# Map: truncated Poisson samples | test_truncated_poisson | theory/adjacency
def truncation(probability: float | Fraction, batch_size: int, dataset_size: int) -> Truncation:
    """Return the probabilities of a truncated Poisson sample.

    Parameters
    ----------
    probability : float or Fraction
        p in (0, 1].
    batch_size, dataset_size : int
        B in [1, n] and n.
    """
    p, size, records = Fraction(probability), batch_size, dataset_size
    if size == records:
        return Truncation(Decimal(0), Decimal(1), p)
    if p == 1:
        return Truncation(Decimal(1), Decimal(0), Fraction(size, records))
    with localcontext(CONTEXT):
        full, rest = _tails(records - 1, p, size)
        if full == 0:
            return Truncation(full, rest, p)
        above, _ = _tails(records, p, size + 1)
        inside = Fraction(above * size / (full * records))
    return Truncation(full, rest, min(inside, p))


def _tails(trials: int, p: Fraction, least: int) -> tuple[Decimal, Decimal]:
    """P(X >= least) and P(X < least) for X ~ Bin(trials, p), p in (0, 1), 0 < least <= trials."""
    odds = as_decimal(p) / as_decimal(1 - p)
    if least > trials * p:  # terms decrease from the first one on
        tail = _falling(trials, p, least, odds, up=True)
        return tail, 1 - tail
    tail = _falling(trials, p, least - 1, odds, up=False)
    return 1 - tail, tail


def _falling(trials: int, p: Fraction, first: int, odds: Decimal, *, up: bool) -> Decimal:
    """Sum of binomial probabilities from ``first`` away from the mean."""
    log_term = log_probability(trials, p, first)
    if log_term < UNDERFLOW:
        return Decimal(0)
    total = term = log_term.exp()
    k, enough = first, Decimal(10) ** -DIGITS
    for _ in range(MOST_TERMS):
        if k == (trials if up else 0):
            return total
        if up:
            ratio = odds * (trials - k) / (k + 1)
            k += 1
        else:
            ratio = k / (odds * (trials - k + 1))
            k -= 1
        term *= ratio
        total += term
        # the remainder is at most a geometric series with this ratio
        if ratio < 1 and term * ratio < enough * total * (1 - ratio):
            return total
    raise ValueError(
        f"dataset_size must be at most about 1e12 here: the binomial tail of {trials:,} trials has "
        f"more than {MOST_TERMS:,} terms"
    )
