"""The convexified minimum of j and its inverse, by conjugates, for laws on the line.

max over t of (the least β + t α over both functions) - t α: concave in t, maximised by golden
section.  The least value over one function is attained where the likelihood ratio is t.  Nothing is
shared with the engine, which looks for touching points.
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp

mp.mp.dps = 110  # far tails are complements of numbers near 1
Tails = Callable[[mp.mpf], tuple[mp.mpf, mp.mpf]]  # lower tails of P and Q at a distance
Inverse = Callable[[mp.mpf], mp.mpf]  # the distance at which the likelihood ratio passes t


def gaussian(mu: mp.mpf, p: mp.mpf) -> tuple[Tails, Inverse]:
    def tails(x: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
        first = mp.erf(x / mp.sqrt(2))
        second = (mp.erfc((mu - x) / mp.sqrt(2)) - mp.erfc((x + mu) / mp.sqrt(2))) / 2
        return first, p * second + (1 - p) * first

    def inverse(t: mp.mpf) -> mp.mpf:
        cosine = (t - 1 + p) / p * mp.exp(mu * mu / 2)
        return mp.acosh(cosine) / mu if cosine > 1 else mp.mpf(0)

    return tails, inverse


def laplace(mu: mp.mpf, p: mp.mpf) -> tuple[Tails, Inverse]:
    def tails(x: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
        first = 1 - mp.exp(-x)
        second = mp.exp(-mu) * mp.sinh(x) if x < mu else 1 - mp.exp(-x) * mp.cosh(mu)
        return first, p * second + (1 - p) * first

    def inverse(t: mp.mpf) -> mp.mpf:
        ratio = (t - 1 + p) / p
        if ratio > mp.cosh(mu):
            return mp.inf
        square = 2 * ratio * mp.exp(mu) - 1
        return mp.log(square) / 2 if square > 1 else mp.mpf(0)

    return tails, inverse


def log_hull(kind: str, noise: float, probability: float, alpha: float) -> mp.mpf:
    """Return log J(α)."""
    mu, p, level = 1 / mp.mpf(noise), mp.mpf(probability), mp.mpf(alpha)
    tails, inverse = (gaussian if kind == "gaussian" else laplace)(mu, p)

    def least(t: mp.mpf) -> mp.mpf:
        """The least β + t α over both functions."""
        sums = []
        for threshold, forward in ((t, True), (1 / t, False)):
            x = inverse(threshold)
            below_p, below_q = (mp.mpf(1), mp.mpf(1)) if x == mp.inf else tails(x)
            sums.append(below_q + t * (1 - below_p) if forward else (1 - below_p) + t * below_q)
        return min(*sums, mp.mpf(1), t)

    def value(c: mp.mpf) -> mp.mpf:
        t = mp.exp(c)
        return least(t) - t * level

    low, high = mp.mpf(-120), mp.mpf(120)
    golden = (mp.sqrt(5) - 1) / 2
    left, right = high - golden * (high - low), low + golden * (high - low)
    f_left, f_right = value(left), value(right)
    while high - low > mp.mpf(10) ** -24:
        if f_left > f_right:
            high, right, f_right = right, left, f_left
            left = high - golden * (high - low)
            f_left = value(left)
        else:
            low, left, f_left = left, right, f_right
            right = low + golden * (high - low)
            f_right = value(right)
    return mp.log(max(f_left, f_right))
