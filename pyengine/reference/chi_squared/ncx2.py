"""Noncentral chi-squared tails in ball arithmetic: a proven series, and an inversion everywhere."""

from __future__ import annotations

import math

from flint import acb, arb

from pyengine.reference.balls import precision

__all__ = ["FIRST", "SECOND", "Curve", "inversion", "proven"]

Curve = tuple[str, float, float]
FIRST: Curve = ("0.25", 0.7, 1.0)  # bend, distance from the pole, fineness: see `inversion`
SECOND: Curve = ("0.4", 0.95, 1.12)
LONGEST = 6000  # x + d + lam from which on the series is too long
MOST_TERMS = 200_000  # of a series, and nodes of an inversion


def proven(x: arb, d: arb, lam: arb, side: str, bits: int) -> arb | None:
    """Return an enclosure of a tail of chi^2_d(lam) at x, "cdf" or "sf"; None from `LONGEST` on.

    It is a Poisson mixture of incomplete gamma functions, with positive terms.
    """
    if not x + d + lam < LONGEST:
        return None
    with precision(bits):
        y, a, el = x / 2, d / 2, lam / 2
        if lam == 0:
            central = y.gamma_upper if side == "sf" else y.gamma_lower
            return central(a, regularized=1)
        g = (a * y.log() - y - (a + 1).lgamma()).exp()
        if side == "cdf":
            return _mixture_below(y, a, el, g, bits)
        return _mixture_above(y, a, el, g, bits)


def _mixture_below(y: arb, a: arb, el: arb, g: arb, bits: int) -> arb:
    """Return the sum over k >= 0 of g_k P(J <= k), J Poisson of mean el.

    g_k = y^(a+k) e^-y / Gamma(a+k+1), of which g is the first.
    """
    p = (-el).exp()
    below, total = p, arb(0)
    for k in range(1, MOST_TERMS):
        total += g * below
        ratio = (y / (a + k)).upper()
        g = g * y / (a + k)
        if ratio < 0.9 and g < total * arb(2) ** -bits:
            return total + arb(0, (g / (1 - ratio)).upper())
        p = p * el / k
        below += p
    raise ArithmeticError("too many terms")


def _mixture_above(y: arb, a: arb, el: arb, g: arb, bits: int) -> arb:
    """Return Q(a, y) + the sum over k >= 0 of g_k P(J > k), summed from the last term.

    So P(J > k) is a sum of positive terms, too.
    """
    p = (-el).exp()
    least = math.ceil(float(el) + 3 * math.sqrt(float(el)) + 40)
    probabilities, terms = [], []
    floor = arb(0)
    for k in range(1, MOST_TERMS):
        probabilities.append(p)
        terms.append(g)
        floor = floor.max(p * g)
        p = p * el / k
        g = g * y / (a + k)
        if k > least and el / k < 0.9 and p * (1 + g) < floor * arb(2) ** -(bits + 40):
            break
    else:
        raise ArithmeticError("too many terms")
    left = p / (1 - el / k)
    result: arb = y.gamma_upper(a, regularized=1)
    above = arb(0, left.upper())
    for j in range(len(terms) - 1, -1, -1):
        result += terms[j] * above
        above += probabilities[j]
    return result + arb(0, left.upper())  # the further g_k add up to at most 1


def inversion(x: arb, d: arb, lam: arb, side: str, curve: Curve, bits: int) -> arb:
    """Return a tail by the midpoint rule on the parabola z = c + i t - bend t^2; an estimate.

    ``curve`` has the bend, the distance of c from the pole (in units of 1/sqrt(kappa), the width of
    the integrand) and the fineness of the nodes.  Curves that differ in all three share no node and
    no discretisation error.  The radius covers rounding only.
    """
    bend, away, fineness = curve
    work = bits + 40 + max(0, math.ceil(math.log2(float(x + d + lam))))
    with precision(work):
        w = ((d + (d * d + 4 * lam * x).sqrt()) / (2 * x)).mid()
        kappa = float(x * w + lam / w)
        u = float(1 / w)
        gap = away / math.sqrt(kappa)
        c = 1.0
        if abs(u - 1) < gap:
            c = u - min(gap, 0.45 * u) if side == "sf" else u + min(gap, 0.45)
        distance = min(abs(float(1 / w - arb(c))), 0.5, 2.5 / math.sqrt(kappa))
        # the error of the rule is about exp(-2 pi distance / h)
        h = arb(distance / (fineness * (0.122 * bits + 0.2)))
        tail = arb(0)
        first = arb(0)
        for k in range(MOST_TERMS):
            t = (k + arb(0.5)) * h
            z = acb(c - arb(bend) * t * t, t)
            zw = z * w
            exponent = -d / 2 * zw.log() + lam / 2 * (1 / zw - 1) - x / 2 * (1 - zw)
            term = exponent.exp() * w * acb(arb(1), 2 * arb(bend) * t)
            tail += (term / (1 - zw)).real
            size = abs(term)
            first = size if k == 0 else first
            if size < first * arb(2) ** -(bits + 8):
                return (tail if side == "sf" else -tail) * h / arb.pi()
    raise ArithmeticError("too many nodes")
