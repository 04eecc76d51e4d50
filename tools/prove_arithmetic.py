"""Proof in ball arithmetic of the error bounds of the functions of ``csrc/arithmetic.h``.

The bodies of the functions are read from the header and executed on numbers that carry three
things: the exact value of the formula as a Taylor polynomial about the middle of a piece of the
argument's range, its remainder on that piece, and a bound of what rounding has added so far.  A
double is rounded by half a unit in the last place of the largest number it may be; an operation on
sums of two doubles errs by at most 2^-102 (docs/theory/arithmetic.md).  The formula less the
function itself is a Taylor polynomial, too, so that what a polynomial leaves out, and each wrong
digit of a coefficient, shows.  Pieces are shares of octaves: errors are relative next to 0.

``python tools/prove_arithmetic.py`` prints each bound in units of 2^-63 beside the one that
docs/theory/arithmetic.md states, and fails if one is too small.  Needs python-flint.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from flint import arb, arb_series, ctx

SOURCE = Path(__file__).resolve().parent.parent / "csrc" / "arithmetic.h"
UNIT = arb(2) ** -63
OF_PAIR = arb(2) ** -102  # of an operation on sums of two doubles
ORDER = 8  # of the Taylor polynomials
SHARES = 32  # pieces of an octave
OCTAVES = 44  # below them a function is its first terms, see docs/theory/arithmetic.md
USED = {
    "pe_dd_exp_tail": 8.0,
    "pe_dd_exp": 0.75,
    "pe_dd_f_minus_log1p": 9.0,
    "pe_dd_log": 0.5,
    "pe_dd_turn_parts": 3.0,
    "pe_dd_turn": 0.5,
}


def upper(x: Any) -> arb:
    """The upper end of a ball's modulus."""
    return arb(arb(x).abs_upper())


@dataclass(frozen=True)
class Value:
    """The exact value of an expression on a piece, and how far a computed one may be from it."""

    middle: arb_series  # about the middle of the piece
    whole: arb_series  # about each of its points
    error: arb
    is_pair: bool = False

    @property
    def most(self) -> arb:
        """Bound of the modulus of the exact and of the computed value."""
        return upper(upper(first(self.whole)) + self.error)

    @property
    def h(self) -> Value:
        """The upper part of a pair."""
        return Value(self.middle, self.whole, upper(self.error + self.most * arb(2) ** -53))

    def of(self, middle: arb_series, whole: arb_series, error: Any, *, pair: bool = False) -> Value:
        """An exact operation, rounded."""
        exact = Value(middle, whole, upper(error), pair)
        if pair:
            added = exact.most * OF_PAIR
        else:
            top = float(exact.most) * (1 + 2**-50)
            added = arb(2) ** (math.frexp(top)[1] - 54)
        return Value(middle, whole, upper(exact.error + added), pair)

    def __neg__(self) -> Value:
        return Value(-self.middle, -self.whole, self.error, self.is_pair)

    def __add__(self, other: Value) -> Value:
        return add(self, other, pair=False)

    def __sub__(self, other: Value) -> Value:
        return add(self, -other, pair=False)

    def __mul__(self, other: Value) -> Value:
        return times(self, other, pair=False)

    def __truediv__(self, other: Value) -> Value:
        assert other.error == 0  # a number of the source
        error = self.error / first(other.whole)
        return self.of(self.middle / other.middle, self.whole / other.whole, error)


def first(series: arb_series) -> arb:
    """The constant term."""
    return series[0]


def add(a: Value, b: Value, *, pair: bool = True) -> Value:
    """A sum."""
    return a.of(a.middle + b.middle, a.whole + b.whole, a.error + b.error, pair=pair)


def times(a: Value, b: Value, *, pair: bool = True) -> Value:
    """A product."""
    error = a.most * b.error + b.most * a.error
    return a.of(a.middle * b.middle, a.whole * b.whole, error, pair=pair)


def scaled(a: Value, power: Value) -> Value:
    """Times a power of two or its negative, without an error."""
    assert math.frexp(abs(float(first(power.middle))))[0] == 0.5
    factor = first(power.middle)
    return Value(a.middle * factor, a.whole * factor, upper(a.error * factor), True)


def exact_sum(a: Value, b: Value) -> Value:
    """A sum of two doubles as a pair."""
    return Value(a.middle + b.middle, a.whole + b.whole, upper(a.error + b.error), True)


def quotient(a: Value, b: Value) -> Value:
    """A quotient of pairs."""
    whole = a.whole / b.whole
    least = arb(first(b.whole).abs_lower()) - b.error
    error = (a.error + upper(first(whole)) * b.error) / least
    return a.of(a.middle / b.middle, whole, error, pair=True)


def constant(number: Any) -> Value:
    """A number of the source."""
    series = arb_series([arb(number)])
    return Value(series, series, arb(0))


def literal(text: str) -> Value:
    """A decimal or hexadecimal number of the source, as a double."""
    return constant(float.fromhex(text) if "x" in text else float(text))


OPERATIONS: dict[str, Callable[..., Value]] = {
    "pe_dd_add": add, "pe_dd_add_fast": add, "pe_dd_add_less": add, "pe_dd_add_d": add,
    "pe_dd_mul": times, "pe_dd_mul_d": times, "pe_dd_div": quotient,
    "pe_dd_square": lambda a: times(a, a), "pe_dd_scale": scaled,
    "pe_dd_neg": lambda a: -a, "pe_dd_of": lambda a: a, "pe_dd_make": exact_sum,
    "pe_fast_two_sum": exact_sum,
}  # fmt: skip
NUMBER = re.compile(r"(?<![\w.])-?(?:0x[0-9a-f]\.?[0-9a-f]*p[-+]?\d+|\d+\.\d*(?:e[-+]?\d+)?)")


def statements(name: str, text: str) -> Iterator[str]:
    """The lines of a function of the header as Python."""
    (body,) = re.findall(rf"^PE_INLINE \w+ {name}\([^)]*\) {{\n(.*?)^}}", text, re.M | re.S)
    body = re.sub(r"/\*.*?\*/", "", body, flags=re.S)
    for line in filter(None, (" ".join(part.split()) for part in body.split(";"))):
        left, _, right = line.rpartition(" = ") if " = " in line else ("found", "", line)
        if right.startswith("return "):
            left, right = "found", right.removeprefix("return ")
        target = left.split()[-1].lstrip("*")
        yield f"{target} = {NUMBER.sub(lambda m: f'literal({m[0]!r})', right)}"


def function(name: str, text: str) -> Callable[[Value, str], tuple[Value, dict[str, Any]]]:
    """A function of the header on values, with all of its variables."""
    code = compile("\n".join(statements(name, text)), name, "exec")

    def applied(argument: Value, called: str) -> tuple[Value, dict[str, Any]]:
        names: dict[str, Any] = {**OPERATIONS, "literal": literal, called: argument}
        exec(code, names)
        return names["found"], names

    return applied


def pieces(low: float, high: float) -> Iterator[Value]:
    """Arguments in [low, high] as pairs without an error, but for those next to 0."""
    for sign in (-1, 1):
        reach = abs(low) if sign < 0 else high
        for octave in range(OCTAVES):
            top = arb(reach) / 2**octave
            for k in range(SHARES):
                middle = top * (arb(1) + arb(k + 0.5) / SHARES) / 2
                radius = upper(top / (4 * SHARES)) * (1 + arb(2) ** -40)
                yield piece(sign * middle, radius)


def piece(middle: arb, radius: arb) -> Value:
    """The numbers within a radius."""
    point = arb(middle.mid())
    about = arb(point, upper(radius + middle.rad()))
    return Value(arb_series([point, 1]), arb_series([about, 1]), arb(0), True)


def distance(found: Value, middle: arb_series, whole: arb_series, at: Value) -> arb:
    """Bound of the computed value less a function, by both of its expansions."""
    radius, total = arb(first(at.whole).rad()), found.error
    near, far = found.middle - middle, found.whole - whole
    for k in range(ORDER):
        total += upper((near if k < ORDER - 1 else far)[k]) * radius**k
    return upper(total)


def exponentials(text: str) -> dict[str, arb]:
    """The tail relative to z^2/2, and e^z, with a reduced argument that errs by 2^-100."""
    tail_of, worst = function("pe_dd_exp_tail", text), {"tail": arb(0), "exp": arb(0)}
    reach = float(arb(2).log() / 2 + arb(2) ** -30)
    for z in pieces(-reach, reach):
        tail, _ = tail_of(z, "z")
        middle, whole = (x.exp() - 1 - x for x in (z.middle, z.whole))
        square = arb(first(z.whole).abs_lower()) ** 2 / 2
        error = distance(tail, middle, whole, z)
        worst["tail"] = larger(worst["tail"], error / square)
        total = add(constant(1.0), add(z, tail))
        error = distance(total, z.middle.exp(), z.whole.exp(), z)
        least = arb(first(z.whole.exp()).abs_lower())
        worst["exp"] = larger(worst["exp"], error / least + arb(2) ** -80)
    return {"pe_dd_exp_tail": worst["tail"], "pe_dd_exp": worst["exp"]}


def logarithms(text: str) -> dict[str, arb]:
    """Bounds of f - log(1 + f) relative to itself, and of log but for what is k log 2."""
    rest_of, worst = function("pe_dd_f_minus_log1p", text), {"rest": arb(0), "log": arb(0)}
    for f in pieces(math.sqrt(0.5) - 1 - 1e-9, math.sqrt(2) - 1 + 1e-9):
        rest, _ = rest_of(f, "f")
        middle, whole = (x - (1 + x).log() for x in (f.middle, f.whole))
        error = distance(rest, middle, whole, f)
        worst["rest"] = larger(worst["rest"], error / arb(first(whole).abs_lower()))
        worst["log"] = larger(worst["log"], error + arb(2) ** -80)
    return {"pe_dd_f_minus_log1p": worst["rest"], "pe_dd_log": worst["log"]}


def turns(text: str) -> dict[str, arb]:
    """Bounds of x - sin x and 1 - cos x over x^3/6 and x^2/2, and of e^ix."""
    parts_of, worst = function("pe_dd_turn_parts", text), {"parts": arb(0), "turn": arb(0)}
    reach = float(arb.pi() / 4 + arb(2) ** -30)
    for x in pieces(-reach, reach):
        cosine, names = parts_of(x, "angle")
        sine = names["of_sine"]
        least = arb(first(x.whole).abs_lower())
        of_cosine = distance(cosine, 1 - x.middle.cos(), 1 - x.whole.cos(), x)
        of_sine = distance(sine, x.middle - x.middle.sin(), x.whole - x.whole.sin(), x)
        worst["parts"] = larger(worst["parts"], of_cosine / (least**2 / 2))
        worst["parts"] = larger(worst["parts"], of_sine / (least**3 / 6))
        both = (of_cosine**2 + of_sine**2).sqrt() + arb(2) ** -80
        worst["turn"] = larger(worst["turn"], both)
    return {"pe_dd_turn_parts": worst["parts"], "pe_dd_turn": worst["turn"]}


def larger(a: arb, b: Any) -> arb:
    """The larger one of two upper ends."""
    top = upper(b)
    return top if top > a else a


def main() -> int:
    """Print each bound beside the one that is used; 1 if one is too small."""
    ctx.prec, ctx.cap = 300, ORDER
    text = SOURCE.read_text(encoding="utf-8")
    proven = {**exponentials(text), **logarithms(text), **turns(text)}
    for name, error in proven.items():
        print(f"{name:20} proven {float(error / UNIT):6.3f}   used {USED[name]:5.2f}")
    return 0 if all(error <= USED[name] * UNIT for name, error in proven.items()) else 1


if __name__ == "__main__":
    raise SystemExit(main())
