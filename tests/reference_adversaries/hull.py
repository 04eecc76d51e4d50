"""The convexified minimum of j and its inverse, by conjugates, for laws on the line.

max over t of (the least β + t α over both functions) - t α: concave in t, maximised by golden
section.  The least value over one function is attained where the likelihood ratio is t.  Nothing is
shared with the engine, which looks for touching points.
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp

mp.mp.dps = 50
Laws = Callable[[mp.mpf], tuple[mp.mpf, mp.mpf]]  # lower tails of P and Q at a distance


def gaussian(mu: mp.mpf, p: mp.mpf) -> tuple[Laws, Callable[[mp.mpf], mp.mpf]]:
    def tails(x: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
        first = mp.erf(x / mp.sqrt(2))
        second = (mp.erfc((mu - x) / mp.sqrt(2)) - mp.erfc((x + mu) / mp.sqrt(2))) / 2
        return first, p * second + (1 - p) * first

    def ratio(x: mp.mpf) -> mp.mpf:
        return p * mp.exp(-mu * mu / 2) * mp.cosh(mu * x) + 1 - p

    return tails, ratio


def laplace(mu: mp.mpf, p: mp.mpf) -> tuple[Laws, Callable[[mp.mpf], mp.mpf]]:
    def tails(x: mp.mpf) -> tuple[mp.mpf, mp.mpf]:
        first = 1 - mp.exp(-x)
        second = mp.exp(-mu) * mp.sinh(x) if x < mu else 1 - mp.exp(-x) * mp.cosh(mu)
        return first, p * second + (1 - p) * first

    def ratio(x: mp.mpf) -> mp.mpf:
        plain = mp.exp(x - mu) * mp.cosh(x) if x < mu else mp.cosh(mu)
        return p * plain + 1 - p

    return tails, ratio


def threshold(ratio: Callable[[mp.mpf], mp.mpf], t: mp.mpf) -> mp.mpf:
    """The distance at which the likelihood ratio passes t."""
    low, high = mp.mpf(0), mp.mpf(1)
    if ratio(low) >= t:
        return low
    while ratio(high) < t:
        high *= 2
        if high > 1e6:
            return mp.inf
    for _ in range(170):
        middle = (low + high) / 2
        low, high = (middle, high) if ratio(middle) < t else (low, middle)
    return high


def log_hull(kind: str, noise: float, probability: float, alpha: float) -> mp.mpf:
    """Return log J(α)."""
    mu, p, level = 1 / mp.mpf(noise), mp.mpf(probability), mp.mpf(alpha)
    tails, ratio = (gaussian if kind == "gaussian" else laplace)(mu, p)

    def least(t: mp.mpf) -> mp.mpf:
        """The least β + t α over both functions."""
        sums = []
        for threshold_at, forward in ((t, True), (1 / t, False)):
            x = threshold(ratio, threshold_at)
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
