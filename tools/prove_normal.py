"""Proof in ball arithmetic of the error bounds behind ``csrc/closed_form.c``.

The rational approximations of ``csrc/normal.c`` to the excess e(x) = phi(x)/Phi(-x) - x are
compared with it on every interval of a partition of their domain: below 6 by Taylor series whose
remainder is a ball over the interval, from 6 on as polynomials against a convergent of the
continued fraction of e, whose distance to e the next convergent bounds.  The rounding of Horner's
scheme adds 2i + 1 units to the term of degree i, all terms being positive.  From the error of e at
every x follow the constants of ``closed_form.c`` as docs/theory/closed_form says, and each is
compared with the one that the C code uses.  ``python tools/prove_normal.py`` prints the table, and
fails if a constant is too small.  Needs python-flint.
"""

from __future__ import annotations

import itertools
import re
from pathlib import Path

from flint import arb, arb_poly, arb_series, ctx

SOURCE = Path(__file__).resolve().parent.parent / "csrc"
BITS, DEGREE, LEVELS = 300, 16, 160
UNIT = arb(2) ** -53
FAR = 6


def table(name: str) -> list[arb]:
    """Coefficients of a table of ``normal.c``, exactly."""
    text = (SOURCE / "normal.c").read_text(encoding="utf-8")
    (body,) = re.findall(rf"double {name}\[\d+\] = \{{(.*?)\}}", text, re.S)
    return [exact(word) for word in re.findall(r"[-+.\w]+", body)]


def exact(word: str) -> arb:
    """Value of a hexadecimal double."""
    numerator, denominator = float.fromhex(word).as_integer_ratio()
    return arb(numerator) / denominator


def upper(x: arb) -> arb:
    """The upper end of a ball."""
    return arb(x.abs_upper())


def excess_series(x: arb, terms: int) -> arb_series:
    """Taylor series of e at x."""
    ctx.cap = terms
    t = arb_series([x, 1], prec=terms)
    density = (-(t * t) / 2).exp() / (2 * arb.pi()).sqrt()
    tail = (t / arb(2).sqrt()).erfc() / 2
    return density / tail - t


def excess(x: arb) -> arb:
    """The excess on an interval of x >= 0; it decreases, as the hazard rate's slope is below 1."""
    return excess_at(arb(x.lower())).union(excess_at(arb(x.upper())))


def excess_at(x: arb) -> arb:
    """The excess at one point, from 6 on in a form that does not cancel."""
    if x < FAR:
        return (-(x * x) / 2).exp() / (2 * arb.pi()).sqrt() / ((x / arb(2).sqrt()).erfc() / 2) - x
    # convergents of even and odd length enclose the continued fraction 1/(x + 2/(x + 3/(x + ...)))
    ends = []
    for levels in (LEVELS, LEVELS + 1):
        value = x
        for k in range(levels, 1, -1):
            value = x + k / value
        ends.append(1 / value)
    return ends[0].union(ends[1])


def horner_units(coefficients: list[arb], x: arb) -> tuple[arb, arb]:
    """Value of a polynomial, and its rounding error in units, relative."""
    total, weighted, power = arb(0), arb(0), arb(1)
    for i, c in enumerate(coefficients):
        term = c * power
        total, weighted = total + term, weighted + (2 * i + 1) * term
        power = power * x
    return total, weighted / total


def near_error(centre: arb, radius: arb) -> arb:
    """Bound of |R/e - 1| on an interval below 6."""
    p, q = table("NEAR_P"), table("NEAR_Q")
    interval = arb(centre, radius)

    def difference(x: arb, terms: int) -> arb_series:
        e = excess_series(x, terms)
        t = arb_series([x, 1], prec=terms)
        values = []
        for coefficients in (p, q):
            value = arb_series([coefficients[-1]], prec=terms)
            for c in coefficients[-2::-1]:
                value = value * t + c
            values.append(value)
        return values[0] - values[1] * e

    bound = arb(0)
    series = difference(centre, DEGREE)
    for k in range(DEGREE):
        bound += upper(series[k]) * radius**k
    remainder = difference(interval, DEGREE + 1)[DEGREE]
    bound += upper(remainder) * radius**DEGREE
    size = horner_units(q, interval)[0] * excess(interval)
    return upper(bound / arb(size.abs_lower()))


def far_polynomials() -> tuple[arb_poly, arb_poly]:
    """Numerator and denominator, in z = 1/x^2, of a convergent of x e(x)."""
    z = arb_poly([0, 1])
    above, below = arb_poly([1]), arb_poly([1])
    for k in range(30, 1, -1):
        above, below = above + k * z * below, above
    return below, above  # 1/(1 + 2 z/(1 + 3 z/(...)))


def far_error(low: arb, high: arb) -> arb:
    """Bound of |R/(x e) - 1| for z in an interval within [0, 1/36]."""
    p, q = arb_poly(table("FAR_P")), arb_poly(table("FAR_Q"))
    above, below = far_polynomials()
    centre, radius = ((low + high) / 2).mid(), upper((high - low) / 2) * (1 + arb(2) ** -40)
    shifted = (p * below - q * above)(arb_poly([centre, 1]))
    bound = sum((upper(c) * radius**k for k, c in enumerate(shifted.coeffs())), arb(0))
    interval = arb(centre, radius)
    size = arb((q(interval) * above(interval)).abs_lower())
    # this convergent and the next one enclose e: their relative distance is at most the product of
    # k z/(1 + k z) over all levels
    gap = arb(1)
    top = arb(1) / FAR**2
    for k in range(2, 31):
        gap = gap * (k * top / (1 + k * top))
    return upper(bound / size + gap)


class Bounds:
    """Errors of e by interval, in units: x, e and the relative error of the computed e."""

    def __init__(self) -> None:
        self.rows: list[tuple[arb, arb, arb]] = []
        count = 384
        for i in range(count):
            radius = arb(FAR) / (2 * count)
            centre = ((2 * i + 1) * radius).mid()
            interval = arb(centre, radius)
            units = near_error(centre, upper(radius)) / UNIT
            for name in ("NEAR_P", "NEAR_Q"):
                units += horner_units(table(name), interval)[1]
            self.rows.append((interval, excess(interval), upper(units + 1)))
        ends = [arb(k) / (36 * 64) for k in range(65)]
        self.near = max(float(row[2]) for row in self.rows)
        far = arb(0)
        for low, high in itertools.pairwise(ends):
            units = far_error(low, high) / UNIT
            z = low.union(high)
            for name in ("FAR_P", "FAR_Q"):
                units += horner_units(table(name), z)[1]
            # 1/x, its square and the product with 1/x are rounded as well; z moves x e little
            worst = upper(units + 1 + 1 + 1 + 2)
            far = worst if worst > far else far
        self.far = float(far)
        self.rows_far = far

    def tail_share(self) -> arb:
        """Largest error of e as a share of x + e: its effect on Mills' ratio."""
        best = upper(self.rows_far * arb(1) / (FAR**2 + 1))  # e < 1/x
        for x, e, units in self.rows:
            share = upper(units * e / (x + e))
            best = share if share > best else best
        return best

    def difference(self) -> arb:
        """Largest relative error of step + (e1 - e0) for t >= 0 and step > 1/2."""
        beyond = upper(self.rows_far / FAR)  # of e1, wherever it is
        best = arb(0)
        for x, e, units in reversed(self.rows):
            own = upper(units * e)
            beyond = own if own > beyond else beyond
            least = arb("0.5") - e + excess(x + arb("0.5"))
            # both excesses, their difference, and the rounding of the end, on which e1 depends
            total = upper((own + beyond + e + upper(x + 1) * arb("0.37")) / arb(least.abs_lower()))
            best = total if total > best else best
        last = (2 * self.rows_far / FAR + arb(1) / FAR + 1) / (arb("0.5") - arb(1) / FAR**2)
        last = upper(last)
        return (last if last > best else best) + 1


def centre_error(top: arb, parts: int) -> arb:
    """Relative error, in units, of the computed (Phi(x) - 1/2)/x for x^2 in [0, top]."""
    z, series = arb_poly([0, 1]), arb_poly([0])
    root = (2 * arb.pi()).sqrt()
    for k in range(30, -1, -1):  # in z = x^2; the remainder alternates
        series += z**k * ((arb(-1) / 2) ** k / (arb(k + 1).gamma() * (2 * k + 1) * root))
    p, q = (arb_poly(table(name)) for name in ("CENTRE_P", "CENTRE_Q"))
    worst = arb(0)
    for i in range(parts):
        centre, radius = top * (2 * i + 1) / (2 * parts), top / (2 * parts)
        shifted = (p - q * series)(arb_poly([centre, 1]))
        bound = sum((upper(c) * radius**k for k, c in enumerate(shifted.coeffs())), arb(0))
        interval = arb(centre.mid(), upper(radius) * (1 + arb(2) ** -40))
        size = arb((q(interval) * series(interval)).abs_lower())
        units = bound / size / UNIT + arb(2) ** -30 + 3  # the square of x twice, the quotient
        for name in ("CENTRE_P", "CENTRE_Q"):
            units += horner_units(table(name), interval)[1]
        worst = upper(units) if upper(units) > worst else worst
    return worst


def centre_units() -> arb:
    """Relative error, in units, of 1 + |t| m(t) for t in [-1/4, 0), from Phi(|t|) = 1/2 + |t| R."""
    # Phi(1/4) - 1/2 < 0.1 is a sixth of Phi at most; then the density, the quotient, the product
    # with t, which is at most 0.4 of the sum
    worst = centre_error(arb(1) / 16, 8)
    return (worst / 6 + 2 + 7 + 1 + 1) * arb("0.4") + 1


def erfc_units(share: float) -> float:
    """Relative error of erfc in units, in its centre as 1 - erf and beyond by Mills' ratio."""
    edge = arb("0.49")
    # the root of 2 and products with it: 3, 1 of x^2 and so less than 1 of its function
    erf = centre_error(2 * edge**2, 64) + 4
    centre = float(erf * edge.erf() / edge.erfc()) + 1.0
    # exp 1.3 in the last place; its correction 1, the constant 1/2, products; x times the root of
    # 2, which errs by 1.5; sum and division
    tail = 2.6 + 1.0 + 0.5 + 1.0 + 1.5 + share + 1.0 + 1.0 + 0.5
    return max(centre, tail)


def quadrature() -> arb:
    """Relative error of eight Gauss-Legendre nodes for -m' on [t, t + 1/2], t >= -1/4.

    -m'(u) is the integral of v e^(-u v - v^2/2) over v > 0, its 16th derivative that of v^17 times
    the same.  The quotient of the two falls as u grows (v is then smaller in distribution), and -m'
    falls over a step of 1/2 by less than a factor 3: its logarithm's slope is at most 2 there.
    """

    def moment(k: int) -> arb:
        total, power = arb(0), arb(1)
        for j in range(80):  # e^(v/4) by its series; the terms fall by more than 2 from there on
            total += power * arb(2) ** (arb(k + j - 1) / 2) * (arb(k + j + 1) / 2).gamma()
            power = power / 4 / (j + 1)
        return total * (1 + arb(2) ** -60)

    factor = arb("0.5") ** 16 * arb(9).gamma() ** 4 / (17 * arb(17).gamma() ** 3)
    return 3 * factor * moment(17) / moment(1)


def main() -> int:
    """Print every constant beside its proven bound; 1 if one is too small."""
    ctx.prec = BITS
    bounds = Bounds()
    share = float(bounds.tail_share())
    difference = float(bounds.difference())
    rule = float(quadrature() / UNIT)
    # exp 4, its correction 1, the constant 1/2, products; the sum x + (low + e) 1 + 1/2, division 1
    gauss = 4 + 1 + 0.5 + 1
    tail = gauss + share + 1.5 + 0.5 + 1 + 1
    mills = share + 2 + 0.5
    slope = max(share + 3.5, float(centre_units())) + 2  # of -m', and of a rounded node
    short = 0.5 + slope + 2 + 6 + 1 + rule
    long = difference + 2 * (share + 1.5) + 2
    proven = {
        "TAIL": tail,
        "MIXED": tail + 1 + 0.5 + 1,
        "WITHIN": gauss + mills + 1 + 1 + 1,
        "BEYOND": gauss + max(short, long) + 2 + 1 + 1,
    }
    text = (SOURCE / "closed_form.c").read_text(encoding="utf-8")
    functions = (SOURCE / "doubles.h").read_text(encoding="utf-8")
    places = float(re.findall(r"#define PE_ULP_ERFC (\d+)", functions)[0])
    erfc = erfc_units(share)
    print(f"erfc     proven {erfc:6.1f}   used {2.0 * places:6.1f}")
    print(
        f"excess: relative error at most {bounds.near:.1f} units below 6, {bounds.far:.1f} above;"
    )
    print(f"        {share:.2f} units of Mills' ratio, {difference:.1f} of a difference of ratios;")
    print(f"        quadrature {rule:.1e} units; slope left of 0 {float(centre_units()):.1f} units")
    failed = not erfc * 1.01 <= 2.0 * places
    for name, units in proven.items():
        used = float(re.findall(rf"#define {name} ([\d.]+)", text)[0])
        failed = failed or not units * 1.01 <= used
        print(f"{name:8} proven {units:6.1f}   used {used:6.1f}")
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
