"""Proof in ball arithmetic of the error bounds of functions of doubles and of pairs of doubles.

The bodies of the functions are read from ``csrc/arithmetic.h``, ``elementary.h``, ``doubles.h`` and
``lane_trig.h`` and executed on numbers with three parts: the exact value of the formula as a Taylor
polynomial about the middle of a piece of the argument's range, its remainder on that piece, and a
bound of the rounding errors so far. Rounding to double adds half a unit in the last place of the
largest possible value; an operation on sums of two doubles has an error of at most 2^-102
(docs/theory/arithmetic.md). The formula minus the function itself is a Taylor polynomial, too, so
that the truncation of a polynomial, and each wrong digit of a coefficient, shows. Pieces are parts
of octaves, as errors are relative next to 0.

``python tools/prove_arithmetic.py`` prints each bound, of sums in units of 2^-63, of lanes in units
of 2^-53 and of other doubles in units in the last place, beside the bound in
docs/theory/arithmetic.md, and fails if that is too small. Names of proofs as arguments choose some.
Needs python-flint.
"""

from __future__ import annotations

import math
import operator
import re
import sys
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any

from flint import arb, arb_series, ctx

SOURCES = [
    Path(__file__).resolve().parent.parent / "csrc" / f"{name}.h"
    for name in ("arithmetic", "elementary", "doubles", "lane_trig")
]
UNIT = arb(2) ** -63
OF_PAIR = arb(2) ** -102  # error of an operation on sums of two doubles
ORDER = 8  # degree of the Taylor polynomials
SHARES = 32  # pieces of an octave
FEW = 9  # octaves of an argument next to which a function is not small
OCTAVES = 44  # below them a function is its first terms, see docs/theory/arithmetic.md
LANE, LANE_SHARES = arb(2) ** -53, 128  # unit of functions of lanes, and their pieces of an octave
USED = {
    "pe_dd_exp_tail": 8.0,
    "pe_dd_exp": 0.75,
    "pe_dd_f_minus_log1p": 9.0,
    "pe_dd_log": 0.5,
    "pe_dd_turn_parts": 3.0,
    "pe_dd_turn": 0.5,
}
PLACES = {
    "pe_d_exp": 1.3,
    "pe_d_expm1": 1.8,
    "pe_d_log": 2.0,
    "pe_d_log1p": 2.0,
    "pe_d_sin": 1.0,
    "pe_d_cos": 1.0,
    "pe_d_atan2": 4.0,
}
LANES = {"pe_vexp": 1.75, "pe_vcosm1_sinmx": 4.9}


def upper(x: Any) -> arb:
    """The upper end of a ball's modulus."""
    return arb(arb(x).abs_upper())


@dataclass(frozen=True)
class Value:
    """The exact value of an expression on a piece, and the error of a computed one."""

    middle: arb_series  # about the middle of the piece
    whole: arb_series  # about each of its points
    error: arb
    is_pair: bool = False
    number: Fraction | None = None
    last: arb = field(default_factory=arb)  # of the error, by the last rounding

    @property
    def most(self) -> arb:
        """Bound of the modulus of the exact and of the computed value."""
        return upper(upper(first(self.whole)) + self.error)

    @property
    def h(self) -> Value:
        """The upper part of a pair, which is within half a unit in its last place of the sum."""
        added = half_unit(self.most)
        return Value(self.middle, self.whole, upper(self.error + added), last=upper(added))

    def of(self, middle: arb_series, whole: arb_series, error: Any, *, pair: bool = False) -> Value:
        """An exact operation, rounded."""
        exact = Value(middle, whole, upper(error), pair)
        added = exact.most * OF_PAIR if pair else half_unit(exact.most)
        return Value(middle, whole, upper(exact.error + added), pair, last=upper(added))

    def __neg__(self) -> Value:
        number = None if self.number is None else -self.number
        return Value(-self.middle, -self.whole, self.error, self.is_pair, number)

    def __add__(self, other: Value) -> Value:
        return add(self, other, pair=False)

    def __sub__(self, other: Value) -> Value:
        return add(self, -other, pair=False)

    def __mul__(self, other: Value) -> Value:
        return times(self, other, pair=False)

    def __truediv__(self, other: Value) -> Value:
        return quotient(self, other, pair=False)


def half_unit(most: arb) -> arb:
    """Half a unit in the last place of the largest double of a modulus."""
    top = float(most) * (1 + 2**-50)
    return arb(2) ** (math.frexp(top)[1] - 54) if top > 0.0 else arb(0)


def unit_in_last_place(least: arb) -> arb:
    """The unit in the last place of a positive number."""
    return arb(2) ** (math.frexp(float(least) * (1 - 2**-50))[1] - 53)


def first(series: arb_series) -> arb:
    """The constant term."""
    return series[0]


def add(a: Value, b: Value, *, pair: bool = True) -> Value:
    """A sum."""
    if (number := of_numbers(a, b, operator.add)) is not None:
        return constant(number)
    return a.of(a.middle + b.middle, a.whole + b.whole, a.error + b.error, pair=pair)


def times(a: Value, b: Value, *, pair: bool = True) -> Value:
    """A product."""
    if (number := of_numbers(a, b, operator.mul)) is not None:
        return constant(number)
    for one, other in ((a, b), (b, a)):
        if is_power_of_2(one) and not pair:
            factor = first(one.middle)
            middle, whole = other.middle * factor, other.whole * factor
            last = upper(other.last * factor)
            return Value(middle, whole, upper(other.error * factor), last=last)
    error = a.most * b.error + b.most * a.error
    return a.of(a.middle * b.middle, a.whole * b.whole, error, pair=pair)


def of_numbers(a: Value, b: Value, operation: Callable[[Any, Any], Any]) -> Fraction | None:
    """Result of an operation on two numbers of the source, if it is a double."""
    if a.number is None or b.number is None:
        return None
    found: Fraction = operation(a.number, b.number)
    return found if Fraction(float(found)) == found else None


def is_power_of_2(a: Value) -> bool:
    """Whether a number of the source is one, or its negative: a product with it is exact."""
    return bool(a.number) and abs(math.frexp(float(a.number or 0))[0]) == 0.5


def scaled(a: Value, power: Value) -> Value:
    """Times a power of two or its negative, without an error."""
    assert is_power_of_2(power)
    factor = first(power.middle)
    return Value(a.middle * factor, a.whole * factor, upper(a.error * factor), True)


def exact_sum(a: Value, b: Value) -> Value:
    """A sum of two doubles as a pair."""
    return Value(a.middle + b.middle, a.whole + b.whole, upper(a.error + b.error), True)


def quotient(a: Value, b: Value, *, pair: bool = True) -> Value:
    """A quotient."""
    whole = a.whole / b.whole
    least = arb(first(b.whole).abs_lower()) - b.error
    error = (a.error + upper(first(whole)) * b.error) / least
    return a.of(a.middle / b.middle, whole, error, pair=pair)


def constant(number: float | Fraction) -> Value:
    """A number of the source."""
    exact = Fraction(number)
    series = arb_series([arb(exact.numerator) / exact.denominator])
    return Value(series, series, arb(0), number=exact)


def literal(text: str) -> Value:
    """A decimal or hexadecimal number of the source, as a double."""
    return constant(float.fromhex(text) if "x" in text else float(text))


OPERATIONS: dict[str, Callable[..., Value]] = {
    "pe_dd_add": add, "pe_dd_add_fast": add, "pe_dd_add_less": add, "pe_dd_add_d": add,
    "pe_dd_mul": times, "pe_dd_mul_d": times, "pe_dd_div": quotient,
    "pe_dd_square": lambda a: times(a, a), "pe_dd_scale": scaled,
    "pe_dd_neg": lambda a: -a, "pe_dd_of": lambda a: a, "pe_dd_make": exact_sum,
    "pe_fast_two_sum": exact_sum, "pe_two_sum": exact_sum,
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


def function(name: str, text: str) -> Callable[..., tuple[Value, dict[str, Any]]]:
    """A function of the headers on values, with all of its variables."""
    code = compile("\n".join(statements(name, text)), name, "exec")
    called = re.findall(r"(pe_exp_series)\(", "\n".join(statements(name, text)))
    found = {other: function(other, text) for other in set(called)}
    others = {other: partial(series_at, of) for other, of in found.items()}

    def applied(**arguments: Value) -> tuple[Value, dict[str, Any]]:
        names: dict[str, Any] = {**OPERATIONS, **others, "literal": literal, **arguments}
        exec(code, names)
        return names["found"], names

    return applied


def series_at(of: Callable[..., tuple[Value, dict[str, Any]]], r: Value) -> Value:
    """Result of a function that another one calls."""
    return of(r=r)[0]


def pieces(low: float, high: float) -> Iterator[Value]:
    """Arguments in [low, high] as exact pairs, except for those next to 0."""
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
    """Bound of the computed value minus a function, by the expansions of both."""
    radius, total = arb(first(at.whole).rad()), found.error
    near, far = found.middle - middle, found.whole - whole
    for k in range(ORDER):
        total += upper((near if k < ORDER - 1 else far)[k]) * radius**k
    return upper(total)


def exponentials(text: str) -> dict[str, arb]:
    """The tail relative to z^2/2, and e^z, with a reduced argument that has an error of 2^-100."""
    tail_of, worst = function("pe_dd_exp_tail", text), {"tail": arb(0), "exp": arb(0)}
    reach = float(arb(2).log() / 2 + arb(2) ** -30)
    for z in pieces(-reach, reach):
        tail, _ = tail_of(z=z)
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
    """Bounds of f - log(1 + f) relative to itself, and of log without the part k log 2."""
    rest_of, worst = function("pe_dd_f_minus_log1p", text), {"rest": arb(0), "log": arb(0)}
    for f in pieces(math.sqrt(0.5) - 1 - 1e-9, math.sqrt(2) - 1 + 1e-9):
        rest, _ = rest_of(f=f)
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
        cosine, names = parts_of(angle=x)
        sine = names["of_sine"]
        least = arb(first(x.whole).abs_lower())
        of_cosine = distance(cosine, 1 - x.middle.cos(), 1 - x.whole.cos(), x)
        of_sine = distance(sine, x.middle - x.middle.sin(), x.whole - x.whole.sin(), x)
        worst["parts"] = larger(worst["parts"], of_cosine / (least**2 / 2))
        worst["parts"] = larger(worst["parts"], of_sine / (least**3 / 6))
        both = (of_cosine**2 + of_sine**2).sqrt() + arb(2) ** -80
        worst["turn"] = larger(worst["turn"], both)
    return {"pe_dd_turn_parts": worst["parts"], "pe_dd_turn": worst["turn"]}


def doubles(
    low: float, high: float, shares: int = SHARES, octaves: int = OCTAVES
) -> Iterator[Value]:
    """Arguments that are exact doubles, each piece between two powers of 2.

    With few octaves the last piece is all around 0, for functions that are not small there.
    """
    for sign in (-1, 1):
        reach = abs(low) if sign < 0 else high
        top = math.frexp(reach)[1]
        for octave in range(top, top - octaves, -1):
            for k in range(shares):
                radius = arb(2) ** (octave - 2) / shares
                middle = arb(2) ** (octave - 1) + (2 * k + 1) * radius
                if middle - radius < reach:
                    yield replace(piece(sign * middle, radius), is_pair=False)
        if octaves < OCTAVES:
            yield replace(piece(arb(0), arb(2) ** (top - octaves)), is_pair=False)


def in_places(value: Value, error: arb, truth: arb) -> arb:
    """An error in units in the last place, of which the last rounding is half a unit."""
    least = arb(truth.abs_lower())
    return (error - value.last) / unit_in_last_place(least) + arb("0.5")


def double_exponentials(text: str) -> dict[str, arb]:
    """Exponentials with the error of a reduced argument, and e^x - 1 for each power of 2."""
    near, near_less_1 = function("pe_exp_near", text), function("pe_expm1_near", text)
    worst = {"exp": arb(0), "expm1": arb(0)}
    reach = float(arb(2).log() / 2 + arb(2) ** -30)
    for r in doubles(-reach, reach, octaves=FEW):
        off = half_unit(r.most) + arb(2) ** -75
        value, _ = near(r=replace(r, error=off))
        truth = first(r.whole.exp())
        error = distance(value, r.middle.exp(), r.whole.exp(), r)
        worst["exp"] = larger(worst["exp"], in_places(value, error, truth))
    for k in range(-58, 58):  # farther ones differ by less than 2^-56 of a term
        for r in doubles(-reach, reach, octaves=FEW if k else OCTAVES):
            s = constant(Fraction(2) ** (k - 1))
            value, names = near_less_1(r=r, c=constant(0.0), s=s)
            middle, whole = (2 * first(s.middle) * x.exp() - 1 for x in (r.middle, r.whole))
            error = distance(value, middle, whole, r)
            if k != 0:  # c is below 2^-55; its second-order effect is left out
                most = names["rest"].most
                missed = arb(2) ** -58 + half_unit(most + arb(2) ** -55) - half_unit(most)
                error += missed * 2 * first(s.middle)
            truth = first(whole) if k else first(r.whole).expm1()
            worst["expm1"] = larger(worst["expm1"], in_places(value, error, truth))
    return {"pe_d_exp": worst["exp"], "pe_d_expm1": worst["expm1"]}


def double_logarithms(text: str) -> dict[str, arb]:
    """Logarithms of each power of 2 up to 2^7 either way; beyond, all but the part k log 2."""
    near, worst, log_2 = function("pe_log_near", text), arb(0), arb(2).log()
    reaches = math.sqrt(0.5) - 1 - 1e-9, math.sqrt(2) - 1 + 1e-9
    for k in (*range(-7, 8), -1100, 1100):
        for f in doubles(*reaches, octaves=FEW if k else OCTAVES):
            value, names = near(f=f, k=constant(float(k)), c=constant(0.0))
            if abs(k) > 7:
                worst = larger(
                    worst, arb("0.5") + names["rest"].error / arb(2) ** -50 + arb(2) ** -20
                )
                continue
            middle, whole = ((1 + x).log() + k * log_2 for x in (f.middle, f.whole))
            truth = first(whole) if k else first(f.whole).log1p()
            worst = larger(worst, in_places(value, distance(value, middle, whole, f), truth))
    # log1p adds a c below 2^-53 where results are above 0.34
    return {"pe_d_log": worst, "pe_d_log1p": worst + arb("0.02")}


def double_turns(text: str) -> dict[str, arb]:
    """Sines and cosines of reduced arguments; the low part adds an error below 0.05."""
    sine, cosine = function("pe_sine_near", text), function("pe_cosine_near", text)
    worst = {"sin": arb(0), "cos": arb(0)}
    reach = float(arb.pi() / 4 + arb(2) ** -12)
    for r in doubles(-reach, reach):
        for name, of, truth in (("sin", sine, arb_series.sin), ("cos", cosine, arb_series.cos)):
            value, _ = of(r=r, c=constant(0.0))
            middle, whole = truth(r.middle), truth(r.whole)
            error = distance(value, middle, whole, r)
            worst[name] = larger(worst[name], in_places(value, error, first(whole)) + arb("0.05"))
    most = worst["sin"] if worst["sin"] > worst["cos"] else worst["cos"]
    return {"pe_d_sin": most, "pe_d_cos": most}


def double_angles(text: str) -> dict[str, arb]:
    """Angles in all octants, of a rounded quotient."""
    near, worst = function("pe_angle_near", text), arb(0)
    one, eighth = constant(1.0), constant(float.fromhex("0x1.921fb54442d18p-1"))
    low = constant(float.fromhex("0x1.1a62633145c07p-55"))
    for q in doubles(0.0, 1.0, 4 * SHARES):
        rounded = replace(q, error=half_unit(q.most))
        if first(q.middle) < arb("0.41421357"):
            value, _ = near(w=rounded, c=constant(0.0))
            worst = of_octants(worst, value, q)
        if first(q.middle) > arb("0.41421355"):
            value, _ = near(w=(rounded - one) / (rounded + one), c=low)
            worst = of_octants(worst, eighth + value, q)
    return {"pe_d_atan2": worst}


def of_octants(worst: arb, value: Value, q: Value) -> arb:
    """The larger one of an error and those of an angle below pi/4 turned to all octants."""
    middle, whole = q.middle.atan(), q.whole.atan()
    worst = larger(worst, in_places(value, distance(value, middle, whole, q), first(whole)))
    for halves in (1, 2):
        quarter = constant(halves * float.fromhex("0x1.921fb54442d18p+0"))
        low = constant(halves * float.fromhex("0x1.1a62633145c07p-54"))
        base = halves * arb.pi() / 2
        for sign in (1, -1):
            turned = quarter + ((value if sign > 0 else -value) + low)
            of_middle, of_whole = base + sign * middle, base + sign * whole
            error = distance(turned, of_middle, of_whole, q)
            worst = larger(worst, in_places(turned, error, first(of_whole)))
    return worst


def polynomial(name: str, variable: str, text: str) -> Callable[..., Value]:
    """A variable of a function of lanes, by all statements of that function that set it."""
    (body,) = re.findall(rf"^static inline \w+ {name}\([^)]*\) {{\n(.*?)^}}", text, re.M | re.S)
    rows = re.findall(rf"^    (?:double )?{variable} = (.*?);", body, re.M)
    lines = (NUMBER.sub(lambda m: f"literal({m[0]!r})", row) for row in rows)
    code = compile("\n".join(f"{variable} = {line}" for line in lines), name, "exec")

    def applied(**arguments: Value) -> Value:
        names: dict[str, Any] = {"literal": literal, **arguments}
        exec(code, names)
        found: Value = names[variable]
        return found

    return applied


def lane_exponentials(text: str) -> dict[str, arb]:
    """Relative error of ``pe_vexp`` on [-708, 709].

    The first product of the reduction is exact (42 and 11 bits), and so is the first difference:
    both numbers are multiples of 2^-54, as x is above 1/4 unless k = 0, and their difference is
    below 1/2.  The rest of log 2 errs by less than 2^-97, |k| of it by less than 2^-86.
    """
    series, worst = polynomial("pe_vexp_series", "p", text), arb(0)
    # half of log 2, and what moves the place where k changes
    reach = float(arb(2).log() / 2 + arb(2) ** -40)
    for exact in doubles(-reach, reach, LANE_SHARES, FEW):
        r = replace(exact, error=upper(half_unit(exact.most) + arb(2) ** -86))
        total = constant(1.0) + (r + r * r * series(r=r))
        error = distance(total, r.middle.exp(), r.whole.exp(), r)
        worst = larger(worst, error / arb(first(r.whole.exp()).abs_lower()) / LANE)
    return {"pe_vexp": worst}


def lane_turns(text: str) -> dict[str, arb]:
    """Error of (1 + cm1, b + smx) as e^{ib}, |b| < 1e8, without what grows with b.

    The reduced argument b - k pi/2 moves e^{ib} by as much as it is moved itself; sine and cosine
    of that argument are then computed from a number without an error.  Unless k = 0 its first
    difference is exact: both numbers are multiples of 2^-53, as |b| is above 1/2, and it is below
    1.  Two roundings follow; the rest of pi/2 beyond its three parts, times |k| < 2^26, and
    products with the third part add less than 2^-60.  What grows with b: sine less b is rounded by
    at most (1 + |b|) u; and k times the first two parts of pi/2, of 33 bits each, is exact below k
    = 2^20, from there on it is rounded and moves the argument by 1.01 |b| u at most.
    """
    sine, cosine = (polynomial("pe_vcosm1_sinmx", x, text) for x in "sc")
    one, worst = constant(1.0), arb(0)
    for y in doubles(0.0, float(arb.pi() / 4 + arb(2) ** -25), LANE_SHARES, FEW):
        z = y * y
        s = of_function(sine(y=y, z=z), y, lambda x: x.sin() - x)
        c = of_function(cosine(z=z), y, lambda x: x.cos() - 1)
        sn, cs = y + s, one + c
        worst = larger(worst, modulus(cs, sn))  # k = 0
        moved = 2 * half_unit(y.most) + arb(2) ** -60
        for big_c, big_s in ((cs, sn), (sn, cs)):
            for real in (big_c, -big_c):
                # sine less b, which is rounded by at most (1 + |b|) u, and b again
                imaginary = big_s.of(big_s.middle, big_s.whole, big_s.error + LANE)
                worst = larger(worst, modulus((real - one) + one, imaginary) + moved)
    return {"pe_vcosm1_sinmx": worst / LANE}


def of_function(value: Value, at: Value, of: Callable[[arb_series], arb_series]) -> Value:
    """A function, with the error of its computed value."""
    middle, whole = of(at.middle), of(at.whole)
    return Value(middle, whole, distance(value, middle, whole, at))


def modulus(real: Value, imaginary: Value) -> arb:
    """Length of an error in the plane."""
    return upper((real.error**2 + imaginary.error**2).sqrt())


def larger(a: arb, b: Any) -> arb:
    """The larger one of two upper ends."""
    top = upper(b)
    return top if top > a else a


def in_units(prove: Callable[[str], dict[str, arb]]) -> Callable[[str], dict[str, arb]]:
    """Bounds of functions of two doubles in units of 2^-63."""
    return lambda text: {name: error / UNIT for name, error in prove(text).items()}


PROOFS = {
    "exponentials": in_units(exponentials),
    "logarithms": in_units(logarithms),
    "turns": in_units(turns),
    "double_exponentials": double_exponentials,
    "double_logarithms": double_logarithms,
    "double_turns": double_turns,
    "double_angles": double_angles,
    "lane_exponentials": lane_exponentials,
    "lane_turns": lane_turns,
}


def main(names: Sequence[str]) -> int:
    """Print each bound beside the one that is used; 1 if that is too small."""
    ctx.prec, ctx.cap = 300, ORDER
    text = "".join(source.read_text(encoding="utf-8") for source in SOURCES)
    used, proven = {**USED, **PLACES, **LANES}, dict[str, arb]()
    for name in names or PROOFS:
        proven |= PROOFS[name](text)
    for name, error in proven.items():
        print(f"{name:20} proven {float(error):6.3f}   used {used[name]:5.2f}")
    return 0 if all(error <= used[name] for name, error in proven.items()) else 1


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
