"""Largest errors of the elementary functions of ``csrc/doubles.h`` at random arguments.

``python tools/function_errors.py --count 10000000`` evaluates each at that many arguments of all
sizes, and next to where its formula changes. It compares with 113-bit arithmetic (``libquadmath``
of GCC) and prints the largest error in units in the last place (of ``erfc`` in units of 2^-52 of
itself) beside the proven one (docs/theory/arithmetic.md). Its exit code is 1 if one is larger.
"""

from __future__ import annotations

import argparse
import math
import re
import subprocess
import sys
import tempfile
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
# Proven errors; tests/test_doubles.py checks that the page has them.
PROVEN = {
    "exp": 1.3, "expm1": 1.8, "log": 2.0, "log1p": 2.0, "sin": 1.0, "cos": 1.0,
    "arctan2": 4.0, "hypot": 1.6, "power": 2.0, "erfc": 6.5,
}  # fmt: skip
SOURCE = r"""
#include <quadmath.h>
#include <stdio.h>
#include <stdlib.h>

#include "doubles.h"
#include "normal.h"

static uint64_t state = UINT64_C(88172645463325252);

static double uniform(void) {
    state ^= state << 13, state ^= state >> 7, state ^= state << 17;
    return (double)(state >> 11) * 0x1p-53;
}

static double scattered(double least, double most) {
    const double even = fmin(most, 4.0) * uniform();
    const double spread = exp(log(least) + uniform() * (log(most) - log(least)));
    const double size = uniform() < 0.5 ? even : spread;
    return uniform() < 0.5 ? size : -size;
}

static double unit(double x) {
    int exponent;
    frexp(x, &exponent);
    return ldexp(1.0, (exponent < -1021 ? -1021 : exponent) - 53);
}

#define LARGEST(name, x_of, y_of, own, truth, in_units_of)                                        \
    {                                                                                             \
        double worst = 0.0, at = 0.0, beside = 0.0;                                               \
        for (long i = 0; i < count; i++) {                                                        \
            const double x = x_of, y = y_of;                                                      \
            const __float128 exact = truth;                                                       \
            const double size = fabs((double)exact);                                              \
            const double off = (double)fabsq(own - exact) / (in_units_of);                        \
            if (!(off <= worst)) worst = off, at = x, beside = y;                                 \
        }                                                                                         \
        printf("%s %.17g %.17g %.17g\n", name, worst, at, beside);                                \
        fflush(stdout);                                                                           \
    }
#define CLIP(x, low, high) fmax(fmin(x, high), low)
#define NEAR_1 (0x1.fffffffffffffp-1 * uniform())
#define POWER_OF(x) (700.0 * (2.0 * uniform() - 1.0) / fmax(fabs(log(x)), 1e-12))
#define BASE exp(log(1e100) * (2.0 * uniform() - 1.0) * uniform())

int main(int argc, char **argv) {
    const long count = argc > 1 ? atol(argv[1]) : 1000;
    LARGEST("exp", CLIP(scattered(1e-20, 709.7), -708.0, 709.7), 0.0, pe_d_exp(x), expq(x),
            unit(size))
    LARGEST("expm1", CLIP(scattered(1e-20, 709.7), -60.0, 709.7), 0.0, pe_d_expm1(x), expm1q(x),
            unit(size))
    LARGEST("log", fabs(scattered(1e-300, 1e300)), 0.0, pe_d_log(x), logq(x), unit(size))
    LARGEST("log1p", fmax(scattered(1e-30, 1e30), -NEAR_1), 0.0, pe_d_log1p(x), log1pq(x),
            unit(size))
    LARGEST("sin", scattered(1e-20, 0x1p49), 0.0, pe_d_sin(x), sinq(x), unit(size))
    LARGEST("cos", scattered(1e-20, 0x1p49), 0.0, pe_d_cos(x), cosq(x), unit(size))
    LARGEST("arctan2", scattered(1e-20, 1e20), scattered(1e-3, 1e3), pe_d_atan2(x, y), atan2q(x, y),
            unit(size))
    LARGEST("hypot", scattered(1e-20, 1e20), scattered(1e-3, 1e3), pe_d_hypot(x, y), hypotq(x, y),
            unit(size))
    LARGEST("power", BASE, POWER_OF(x), pe_d_pow(x, y), powq(x, y), unit(size))
    LARGEST("erfc", fmin(scattered(1e-20, 26.5), 26.5), 0.0, pe_erfc(x), erfcq(x), 0x1p-52 * size)
    return 0;
}
"""


def largest(count: int) -> dict[str, tuple[float, str]]:
    """The largest error of each function, and where."""
    with tempfile.TemporaryDirectory() as folder:
        source, program = Path(folder) / "errors.c", Path(folder) / "errors"
        source.write_text(SOURCE, encoding="utf-8")
        flags = ["-O2", "-std=gnu11", "-ffp-contract=off", "-fno-math-errno", f"-I{ROOT / 'csrc'}"]
        normal = str(ROOT / "csrc" / "normal.c")
        command = ["gcc", *flags, str(source), normal, "-o", str(program), "-lquadmath", "-lm"]
        subprocess.run(command, check=True)
        lines = subprocess.run(
            [str(program), str(count)], check=True, capture_output=True, text=True
        ).stdout.splitlines()
    found = {}
    for line in lines:
        name, worst, *at = line.split()
        found[name] = float(worst), ", ".join(re.sub(r"^0$", "", x) for x in at).strip(", ")
    return found


def main() -> int:
    """Print them; 1 if one exceeds the proven error."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=10_000_000)
    given = parser.parse_args()
    found = largest(given.count)
    for name, (worst, at) in found.items():
        print(f"{name:8} {worst:6.3f}   proven {PROVEN[name]:4.1f}   at {at}")
    fine = found.keys() == PROVEN.keys()
    return (
        0
        if fine and all(e <= PROVEN[n] and not math.isnan(e) for n, (e, _) in found.items())
        else 1
    )


if __name__ == "__main__":
    sys.exit(main())
