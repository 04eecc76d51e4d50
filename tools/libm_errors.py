"""Errors of the functions of the C library and of NumPy that proofs assume something of.

``python tools/libm_errors.py --count 1000000`` takes each function at that many random arguments of
its domain and prints the largest error in units in the last place; 1 if one is above what
docs/theory/arithmetic assumes.  ``--points`` writes csrc/libm_points.h, the arguments and values
with which libraries are compared where the package is imported: ends of domains, arguments at which
some library is known to err most, and random ones.  Truths are those of ball arithmetic.  Needs
python-flint.
"""

from __future__ import annotations

import argparse
import math
import random
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
import numpy.typing as npt
from flint import arb, ctx

from pyengine.numerics import libm

HEADER = Path(__file__).parent.parent / "csrc" / "libm_points.h"
BITS = 300  # beside them the arguments of sines, up to 2^60, are nothing
RANDOM = 72  # points of each function
SMALLEST = 2.0**-1022
Point = tuple[float, float]
FloatArray = npt.NDArray[np.float64]


def _hypot(x: arb, y: arb) -> arb:
    return (x * x + y * y).sqrt()


TRUE: dict[str, Callable[[arb, arb], arb]] = {
    "exp": lambda x, _: x.exp(),
    "expm1": lambda x, _: x.expm1(),
    "log": lambda x, _: x.log(),
    "log1p": lambda x, _: x.log1p(),
    "sin": lambda x, _: x.sin(),
    "cos": lambda x, _: x.cos(),
    "atan2": lambda x, y: arb.atan2(x, y),
    "hypot": _hypot,
    "erfc": lambda x, _: x.erfc(),
}
SMALL = (2.0**-1000, 1e-300, 1e-20, 2.0**-54, 2.0**-30)
# ends of domains, and arguments at which a library errs much
GIVEN: dict[str, Sequence[float | Point]] = {
    "exp": (-708.0, -700.5, 0.0, 709.75, *SMALL, *(-x for x in SMALL)),
    "expm1": (
        *(-745.0, -50.0, -37.5, -0.5, 0.0, 709.75, *SMALL, *(-x for x in SMALL)),
        *(1.0, 1.5, 2.5, 3.5, 4.5, 5.0, 10.0, 20.0, 25.0, 30.0, 35.0, 39.75, 40.0, 500.0),
    ),
    "log": (SMALLEST, 1.7e308, 1.0, 1.0 - 2.0**-53, 1.0 + 2.0**-52, 2.0, 0.5, *SMALL),
    "log1p": (-1.0 + 2.0**-53, -0.5, 0.0, 1.7e308, 2.0**53, *SMALL, *(-x for x in SMALL)),
    "sin": (0.0, 2.0**60, 1e17, 3.141592653589793, 6381956970095103.0 * 2.0**30, *SMALL),
    "cos": (0.0, 2.0**60, 1e17, 1.5707963267948966, 6381956970095103.0 * 2.0**30, *SMALL),
    "atan2": ((0.0, 1.0), (1.0, 0.0), (1.0, -1.0), (1e-300, -1.0), (-1.0, 1e-8), (1e300, 1e290)),
    "hypot": ((0.0, 1.0), (3e153, 4e153), (1e-153, 1e-153), (1e308, 1e308), (1.0, 1e-9)),
    "erfc": (float.fromhex("0x1.3f820a2e4a3eap+0"), -6.0, -0.5, 0.0, 26.5, 26.25, *SMALL),
}


def argument(name: str, random_: random.Random) -> Point:
    """A random argument: small, beside a zero of the function, or anywhere in its range."""
    small = math.exp(random_.uniform(-700.0, 0.0))
    sign, share = random_.choice((-1.0, 1.0)), random_.random()
    some: dict[str, tuple[float, ...]] = {
        "exp": (sign * small, sign * share, random_.uniform(-707.0, 709.0)),
        "expm1": (sign * small, sign * share, random_.uniform(-100.0, 709.0), 40.0 * share),
        "log": (
            small,
            1.0 + sign * min(small, 0.9),
            math.exp(random_.uniform(-700.0, 700.0)),
            share,
        ),
        "log1p": (
            *(small, -min(small, 1.0 - 2.0**-53), math.exp(random_.uniform(-40.0, 700.0))),
            *(share, -share),
        ),
        "sin": (sign * small, sign * 10.0 * share, math.exp(random_.uniform(0.0, 41.0))),
        "cos": (sign * small, sign * 10.0 * share, math.exp(random_.uniform(0.0, 41.0))),
        "erfc": (sign * small, 6.0 * sign * share, 26.5 * share, 1.0 + 0.5 * share),
    }
    if name in some:
        return random_.choice(some[name]), 0.0
    other = math.exp(random_.uniform(-20.0, 20.0))
    return sign * other, random_.choice((-1.0, 1.0)) * (random_.random() if share < 0.5 else 1.0)


def true(name: str, at: Point) -> arb:
    """The value of a function, far closer than any library's."""
    ctx.prec = BITS
    return TRUE[name](arb(at[0]), arb(at[1]))


def parts(value: arb) -> tuple[float, float]:
    """Two doubles whose sum is a number to 106 bits."""
    high = float(value.mid())
    return high, float((value - arb(high)).mid())


def given_points(name: str) -> list[Point]:
    """The arguments of one function that are stored."""
    given = [x if isinstance(x, tuple) else (x, 0.0) for x in GIVEN[name]]
    random_ = random.Random(f"points of {name}")
    while len(given) < len(GIVEN[name]) + RANDOM:
        at = argument(name, random_)
        # halves of the last places would be lost beside the smallest doubles
        if 1e-280 < abs(float(true(name, at).mid())) < 1.7e308:
            given.append(at)
    return given


def header() -> str:
    """The text of csrc/libm_points.h."""
    lines = [
        "/* Arguments and true values; `python tools/libm_errors.py --points` writes them. */",
        '#include "pyengine.h"',
        "",
    ]
    for name in TRUE:
        lines.append(f"static const pe_libm_point {name.upper()}_POINTS[] = {{")
        for at in given_points(name):
            numbers = ", ".join(x.hex() for x in (*at, *parts(true(name, at))))
            lines.append(f"    {{{numbers}}},")
        lines += ["};", ""]
    return "\n".join(lines)


def units_off(value: float, truth: arb) -> float:
    """Error in units in the last place of the truth."""
    ulp = arb(math.ulp(float(truth.mid())))
    return abs(float(((truth - arb(value)) / ulp).mid()))


def largest_error(name: str, compute: libm.Function, count: int, seed: int) -> tuple[float, Point]:
    """Return the largest error at random arguments, and where it is."""
    random_ = random.Random(f"{seed}/{name}")
    worst = 0.0, (0.0, 0.0)
    at = [argument(name, random_) for _ in range(count)]
    first, second = np.array(at).T.copy()
    for point, value in zip(at, compute(first, second).tolist(), strict=True):
        if abs(value) > SMALLEST and math.isfinite(value):
            worst = max(worst, (units_off(value, true(name, point)), point))
    return worst


def libraries(name: str) -> dict[str, libm.Function]:
    """The C library's function, as the module math has it, and NumPy's."""
    function, is_of_two = getattr(math, name), name in ("atan2", "hypot")

    def of_c(x: FloatArray, y: FloatArray) -> FloatArray:
        others = [y.tolist()] if is_of_two else []
        return np.array([function(*at) for at in zip(x.tolist(), *others, strict=True)])

    return {"libm": of_c, **({"numpy": libm.NUMPY[name]} if name in libm.NUMPY else {})}


def main() -> int:
    """Print the largest error of each function, or write the points."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=1_000_000)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--points", action="store_true", help="write csrc/libm_points.h")
    given = parser.parse_args()
    if given.points:
        HEADER.write_text(header(), encoding="utf-8")
        return 0
    failed = False
    for name in TRUE:
        for library, compute in libraries(name).items():
            error, at = largest_error(name, compute, given.count, given.seed)
            where = " ".join(x.hex() for x in at)
            print(
                f"{library:6} {name:6} {error:.4f} at {where}, {given.count:,} arguments",
                flush=True,
            )
            failed = failed or error > libm.ALLOWED[name]
    return 1 if failed else 0


if __name__ == "__main__":
    raise SystemExit(main())
