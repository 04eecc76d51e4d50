"""Proof in ball arithmetic of the error bounds of ``csrc/lane_trig.h``.

``pe_vexp`` and ``pe_vcosm1_sinmx`` are straight-line code of additions and multiplications after a
reduction of the argument. Every operation is followed on every interval of a partition of the
reduced argument: its exact value lies in a ball, and its error is at most those of its operands
plus half a unit in the last place of the largest value in the ball. The truncation of the
polynomials is bounded by the first omitted term. ``python tools/prove_lane_trig.py`` prints each
bound in units of u = 2^-53 beside the one that docs/theory/gaussian.md uses, and fails if that is
too small. Needs python-flint.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path

from flint import arb, ctx

SOURCE = Path(__file__).resolve().parent.parent / "csrc" / "lane_trig.h"
U = arb(2) ** -53
PIECES = 512  # of half the range of a reduced argument
USED = {"pe_vexp": 1.75, "pe_vcosm1_sinmx": 4.9}  # in units, by docs/theory/gaussian.md


@dataclass(frozen=True)
class Computed:
    """The exact value of an expression, a ball, and the largest error of a computed one."""

    value: arb
    error: arb

    def rounded(self) -> Computed:
        """After one rounding to nearest."""
        return Computed(self.value, upper(self.error + half_unit(self)))

    def __add__(self, other: Computed) -> Computed:
        return Computed(self.value + other.value, self.error + other.error).rounded()

    def __mul__(self, other: Computed) -> Computed:
        mixed = abs(self.value) * other.error + abs(other.value) * self.error
        error = upper(mixed + self.error * other.error)
        return Computed(self.value * other.value, error).rounded()

    def squared(self) -> Computed:
        """The square, rounded."""
        error = upper(2 * abs(self.value) * self.error + self.error * self.error)
        return Computed(self.value**2, error).rounded()


def upper(x: arb) -> arb:
    """The upper end of a ball of positive numbers."""
    return arb(x.abs_upper())


def half_unit(x: Computed) -> arb:
    """Half a unit in the last place of the largest double that the computed value may be."""
    top = float(upper(abs(x.value) + x.error)) * (1 + 2**-50)
    return arb(2) ** (math.frexp(top)[1] - 54)


def exactly(x: Fraction) -> arb:
    """A rational number."""
    return arb(x.numerator) / x.denominator


def coefficient(text: str, of_series: Fraction) -> Computed:
    """A coefficient of the source, a double or a rounded quotient, as one of the series."""
    parts = [Fraction(part) for part in text.split("/")]
    stored = Computed(exactly(parts[0] / (parts[1] if parts[1:] else 1)), arb(0))
    if parts[1:]:
        stored = stored.rounded()
    own = exactly(of_series)
    return Computed(own, upper(stored.error + abs(stored.value - own)))


def horner(name: str, argument: str, series: list[Fraction]) -> list[Computed]:
    """Coefficients of a polynomial of the source, the highest first, as those of a series."""
    text = SOURCE.read_text(encoding="utf-8")
    (first,) = re.findall(rf"double {name} = (-?[\d.]+ / [\d.]+);", text)
    rest = re.findall(rf"{name} = {name} \* {argument} ([+-]) ([\d.]+(?: / [\d.]+)?);", text)
    words = [first, *(("-" if sign == "-" else "") + word for sign, word in rest)]
    return [
        coefficient(word.replace(" ", ""), own) for word, own in zip(words, series, strict=True)
    ]


def evaluated(coefficients: list[Computed], x: Computed) -> Computed:
    """Horner's scheme."""
    total = coefficients[0]
    for c in coefficients[1:]:
        total = total * x + c
    return total


def pieces(top: arb, *, both_signs: bool) -> Iterator[arb]:
    """Balls that cover [0, top], or [-top, top]."""
    width = upper(top) / PIECES
    for k in range(-PIECES if both_signs else 0, PIECES):
        yield arb((k + arb(1) / 2) * width, upper(width / 2) * (1 + arb(2) ** -40))


def exponential() -> arb:
    """Relative error of ``pe_vexp`` on [-708, 709], in units.

    The first product of the reduction is exact (42 and 11 bits), and so is the first difference:
    both numbers are multiples of 2^-54, as x is above 1/4 unless k = 0, and their difference is
    below 1/2.  The rest of log 2 errs by less than 2^-97, |k| of it by less than 2^-86.
    """
    coefficients = horner("p", "r", [Fraction(1, math.factorial(k)) for k in range(13, 1, -1)])
    # half of log 2, and what moves the place where k changes
    reach = arb(2).log() / 2 + arb(2) ** -40
    worst = arb(0)
    for exact in pieces(reach, both_signs=True):
        r = Computed(exact, arb(2) ** -86).rounded()
        p = evaluated(coefficients, r)
        square = r.squared()
        total = Computed(arb(1), arb(0)) + (r + square * p)
        omitted = upper(abs(exact)) ** 14 / arb(14).fac() * arb("1.1")
        least = arb(exact.exp().abs_lower())
        worst = larger(worst, upper((total.error + omitted) / least / U))
    return worst


def larger(a: arb, b: arb) -> arb:
    """The larger one of two upper ends."""
    return b if b > a else a


def moved(exact: arb) -> arb:
    """Error of a reduced argument b - k pi/2, k not 0: two roundings, and the rest of pi/2.

    The first difference is exact: both numbers are multiples of 2^-53, as |b| is above 1/2, and it
    is below 1. The rest of pi/2 beyond its three parts, times |k| < 2^26, and products with the
    third part add less than 2^-60.
    """
    return Computed(exact, arb(2) ** -60).rounded().rounded().error


def of_unit(value: arb, error: arb) -> Computed:
    """A sine or cosine, with better bounds than its polynomial gives."""
    return Computed(value, upper(error))


def rotation() -> arb:
    """Error of (1 + cm1, b + smx) as e^{ib}, |b| < 1e8, without what grows with b, in units.

    The reduced argument moves e^{ib} by as much as it is moved itself; sine and cosine of that
    argument are then computed from a number without an error.  What grows with b: sine less b is
    rounded by at most (1 + |b|) u; and k times the first two parts of pi/2, of 33 bits each, is
    exact below k = 2^20, from there on it is rounded and moves the argument by 1.01 |b| u at most.
    """
    signed = [Fraction((-1) ** (k // 2), math.factorial(k)) for k in range(17)]
    sine, cosine = horner("s", "z", signed[15:2:-2]), horner("c", "z", signed[16:1:-2])
    one, worst = Computed(arb(1), arb(0)), arb(0)
    for exact in pieces(arb.pi() / 4 + arb(2) ** -25, both_signs=False):
        y = Computed(exact, arb(0))
        z = y.squared()
        s, c = evaluated(sine, z) * z * y, evaluated(cosine, z) * z
        s_error = s.error + upper(exact) ** 17 / arb(17).fac()
        c_error = c.error + upper(exact) ** 18 / arb(18).fac()
        # k = 0: what is returned are s and c themselves
        sn, cs = of_unit(exact.sin() - exact, s_error) + y, of_unit(exact.cos() - 1, c_error) + one
        worst = larger(worst, modulus(cs, of_unit(exact.sin(), sn.error)))
        sn, cs = of_unit(exact.sin(), sn.error), of_unit(exact.cos(), cs.error)
        for big_c, big_s in ((cs, sn), (sn, cs)):
            for sign in (1, -1):
                real = Computed(sign * big_c.value, big_c.error)
                real = real + Computed(arb(-1), arb(0)) + one
                # sine less b, which is rounded by at most (1 + |b|) u, and b again
                imaginary = Computed(big_s.value, big_s.error + U).rounded()
                worst = larger(worst, modulus(real, imaginary) + moved(exact) / U)
    return upper(worst)


def modulus(c: Computed, s: Computed) -> arb:
    """Length of an error, in units."""
    return upper((c.error**2 + s.error**2).sqrt() / U)


def main() -> int:
    """Print each bound beside the one that is used; 1 if that is too small."""
    ctx.prec = 200
    proven = {"pe_vexp": exponential(), "pe_vcosm1_sinmx": rotation()}
    for name, units in proven.items():
        print(f"{name:15} proven {float(units):5.2f} u   used {USED[name]:4.2f} u")
    return 0 if all(units <= USED[name] for name, units in proven.items()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
