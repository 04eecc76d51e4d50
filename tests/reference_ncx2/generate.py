"""Write ``tests/data/ncx2_reference.csv.gz``: stratified points with 30-digit truths.

Run ``python tests/reference_ncx2/generate.py`` (about two minutes, one core).

Each point is computed twice by `truth.inversion` with different curves, base points and steps, and
is kept only with 28 common digits; where it is affordable the Poisson mixture of
`pyengine.reference` (rigorous balls; an incomplete gamma function for nc = 0) and the rigorous
contour integral must agree as well.  The last column counts the methods.  Columns: df, nc, x (exact
doubles), side of the mean, tail, log tail, log density, stratum, number of methods.
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import random
import sys
from pathlib import Path

from flint import arb, ctx
from truth import contour, inversion

from pyengine.reference.chi_squared import ncx2

OUT = Path(__file__).parents[1] / "data" / "ncx2_reference.csv.gz"
SEED = 20260711
ncx2.LONGEST = 20_000  # slow, but that does not matter here


def mixture(x: float, d: float, lam: float, side: str) -> arb:
    """The tail as a Poisson mixture, summed so that every term is positive."""
    found = ncx2.proven(arb(x), arb(d), arb(lam), side, 220)
    assert found is not None
    return found


def depth(u: float, d: float, lam: float) -> float:
    """-phi0, about -log tail, at the saddle u."""
    e = u - 1
    small = abs(e) < 1e-4
    return lam / 2 * e * e + d / 2 * (e * e / 2 - e**3 / 3 if small else e - math.log(u))


def place(d: float, lam: float, goal: float, above: bool) -> float:
    """The x with depth `goal` on one side of the mean."""
    low, high = (0.0, 700.0) if above else (-700.0, 0.0)  # log u
    for _ in range(80):
        mid = (low + high) / 2
        if (depth(math.exp(mid), d, lam) < goal) == above:
            low = mid
        else:
            high = mid
    u = math.exp((low + high) / 2)
    return d * u + lam * u * u


def log_uniform(rng: random.Random, low: float, high: float) -> float:
    return math.exp(rng.uniform(math.log(low), math.log(high)))


def points(rng: random.Random):
    depths = [(1e-6, 1e-2), (1e-2, 0.5), (0.5, 5), (5, 40), (40, 250), (250, 700), (700, 30000)]
    for low, high in depths:
        for above in (False, True):
            tag = f"depth {low:g} to {high:g} {'above' if above else 'below'}"
            for i in range(620):
                d = log_uniform(rng, 0.5, 1e10)
                lam = log_uniform(rng, 1e-12, 1e13)
                if i % 8 == 0:
                    lam = 0.0
                if i % 8 == 1:
                    d = float(rng.choice([1, 2, 3, 4, 5, 10, 50, 650, 2580, 796000, 36500000]))
                if i % 4 == 2:
                    d, lam = log_uniform(rng, 0.5, 300), log_uniform(rng, 1e-3, 1000)
                yield tag, d, lam, place(d, lam, log_uniform(rng, low, high), above)
    for _ in range(300):  # the curvature at the edges of the bins and at the end of the table
        octave, quarter = rng.randrange(-1, 14), rng.randrange(4)
        kappa = 2.0**octave * (1 + quarter / 4) * (1 + rng.choice([-1, 1]) * 1e-9)
        if rng.random() < 0.2:
            kappa = 2.0**14 * (1 + rng.uniform(-1e-3, 1e-3))
        u = math.exp(rng.gauss(0, 3 / math.sqrt(kappa)) + rng.uniform(-0.2, 0.2))
        share = rng.random()
        d = max(0.5, share * kappa)
        if kappa <= d:
            continue
        lam = (kappa - d) / (2 * u)
        yield "bin edges", d, lam, d * u + lam * u * u
    for _ in range(300):  # changes of formula in u
        u = rng.choice([0.5, 2.0, math.sqrt(0.5), math.sqrt(2)]) * (1 + rng.choice([-1, 1]) * 1e-12)
        d, lam = log_uniform(rng, 0.5, 1e4), log_uniform(rng, 1e-3, 1e4)
        yield "seams in u", d, lam, d * u + lam * u * u
    for _ in range(300):  # where the pole no longer matters
        d, lam = log_uniform(rng, 0.5, 1e10), log_uniform(rng, 1e-3, 1e13)
        goal = rng.uniform(25, 45)
        yield "end of the pole", d, lam, place(d, lam, goal, rng.random() < 0.5)
    for _ in range(300):  # the mean, exactly or nearly
        d, lam = float(rng.randrange(1, 10**6)), float(rng.randrange(0, 10**9))
        x = d + lam
        if rng.random() < 0.6:
            x *= 1 + rng.choice([-1, 1]) * 10.0 ** rng.uniform(-16, -8)
        yield "mean", d, lam, x
    for _ in range(300):  # tiny x
        d, lam = log_uniform(rng, 0.5, 40), log_uniform(rng, 1e-3, 1000)
        yield "tiny x", d, lam, 10.0 ** rng.uniform(-300, -3)
    for _ in range(600):  # fewer degrees of freedom than the table of nodes covers
        d = 10.0 ** rng.uniform(-6, math.log10(0.5))
        lam = 0.0 if rng.random() < 0.3 else log_uniform(rng, 1e-6, 1e4)
        yield "df below 1/2", d, lam, 10.0 ** rng.uniform(-30, 2.5)


@ctx.workprec(200)
def main() -> None:
    rng = random.Random(SEED)
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["df", "nc", "x", "side", "tail", "log_tail", "log_pdf", "stratum", "methods"])
    count = 0
    for n, (tag, d, lam, x) in enumerate(points(rng)):
        if not 1e-300 < x < 1e300:
            continue
        if tag == "df below 1/2":
            # the smaller tail need not be that on the side of the mean here
            side = "sf" if arb(x) >= arb(d) + arb(lam) else "cdf"
            tail = None
            if d + math.sqrt(lam * x) > 0.1:
                tail = inversion(x, d, lam, side, "0.25", 0.7, 15.3)[0]
                if tail > 0.5:
                    side, tail = "cdf" if side == "sf" else "sf", 1 - tail
            elif mixture(x, d, lam, side) > 0.5:
                side = "cdf" if side == "sf" else "sf"
            y, a, el = arb(x) / 2, arb(d) / 2, arb(lam) / 2
            density = sum_density(y, a, el)
            other = mixture(x, d, lam, side)
            methods = 1 if tail is None else 2
            if tail is None:
                tail = other
            check(tail, other, 80, (tag, d, lam, x))
        else:
            side = "sf" if arb(x) >= arb(d) + arb(lam) else "cdf"
            tail, density = inversion(x, d, lam, side, "0.25", 0.7, 15.3)
            again, density_again = inversion(x, d, lam, side, "0.4", 0.95, 17.0)
            check(tail, again, 93, (tag, d, lam, x))
            check(density, density_again, 93, (tag, d, lam, x))
            methods = 2
            if x + d + lam < 3000:
                mixed = mixture(x, d, lam, side)
                if mixed.rel_accuracy_bits() > 93:  # its balls grow in the far tail
                    check(tail, mixed, 90, (tag, d, lam, x))
                    methods += 1
            if n % 97 == 0 and x + d + lam < 1000:
                proven = contour(x, d, lam)
                check(tail, proven[1], 80, (tag, d, lam, x))
                check(density, proven[2], 80, (tag, d, lam, x))
                methods += 1
        writer.writerow(
            [
                repr(d),
                repr(lam),
                repr(x),
                side,
                tail.str(30, radius=False),
                tail.log().str(30, radius=False),
                density.log().str(30, radius=False),
                tag,
                methods,
            ]
        )
        count += 1
        if count % 500 == 0:
            print(count, tag, file=sys.stderr, flush=True)
    with open(OUT, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as packed:
        packed.write(buffer.getvalue().encode())
    print(count, "points")


def sum_density(y: arb, a: arb, el: arb) -> arb:
    """The density by its series, all terms positive."""
    z = y * el
    term = ((a - 1) * y.log() - y - el - a.lgamma()).exp() / 2
    total, k = term, 0
    while k < 60000:
        k += 1
        term = term * z / (k * (a + k - 1))
        total += term
        if z < k * k / 2 and term < total * arb(2) ** -140:
            break
    return total


def check(a: arb, b: arb, bits: int, what: object) -> None:
    if not abs(a / b - 1) < arb(2) ** -bits:
        raise ArithmeticError(f"methods disagree by {abs(a / b - 1)} at {what}")


if __name__ == "__main__":
    main()
