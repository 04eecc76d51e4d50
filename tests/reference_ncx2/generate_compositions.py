"""Write ``tests/data/ncx2_compositions.csv.gz``: 28-digit truths of functions of two tails.

Run ``python tests/reference_ncx2/generate_compositions.py`` (about two minutes, one core).

Each value is computed by two runs of the inversion with different curves, base points and steps,
quantiles included, and is kept only if both agree to 1e-28.  Columns: kind, three or four exact
doubles, log of the value (for "marcum": of the smaller tail, with its side).
"""

from __future__ import annotations

import csv
import gzip
import io
import math
import random
from pathlib import Path

from flint import arb, ctx
from generate import place
from truth import FIRST, SECOND, marcum, one_step_sgd, relaxed

OUT = Path(__file__).parents[1] / "data" / "ncx2_compositions.csv.gz"
SGD = [
    (650.0, 500.0, 650.0),
    (2580.0, 1970.0, 2580.0),
    (1026.0, 790.0, 1026.0),
    (7.96e5, 1e3, 7.96e5),
    (3.65e7, 4096.0, 3.65e7),
    (1e9, 1e4, 1e9),
    (3.0, 2.5, 0.7),
    (12.0, 40.0, 0.0),
]
ALPHAS = [
    1e-300,
    1e-100,
    1e-30,
    1e-12,
    1e-9,
    1e-6,
    1e-3,
    0.1,
    0.25,
    0.5,
    0.75,
    0.9,
    0.999,
    1 - 1e-6,
    1 - 1e-9,
    1 - 1e-12,
]
RELAXED = [
    (1.0, 0.5),
    (2.0, 6.0),
    (10.0, 3.0),
    (650.0, 10.0),
    (1e6, 40.0),
    (1e9, 300.0),
    (1e9, 1.0),
    (1e9, 2000.0),
]


def agreed(compute: object, what: object) -> arb:
    first, second = compute(FIRST), compute(SECOND)  # type: ignore[operator]
    if not abs(first / second - 1) < arb(10) ** -28:
        raise ArithmeticError(f"runs disagree by {abs(first / second - 1)} at {what}")
    return first


def start(alpha: float, d: float, lam: float, above: bool) -> float:
    """A start for Newton's method: the x with exponent log(smaller tail)."""
    tail = min(alpha, 1 - alpha)
    depth = max(-math.log(2 * tail), 1e-3)
    return place(d, lam, depth, above)


@ctx.workprec(260)
def main() -> None:
    buffer = io.StringIO(newline="")
    writer = csv.writer(buffer, lineterminator="\n")
    writer.writerow(["kind", "p", "a", "b", "c", "side", "log_value"])
    for d, n, k in SGD:
        for alpha in ALPHAS:
            x = start(alpha, d, n * k, alpha > 0.5)
            value = agreed(lambda run: one_step_sgd(alpha, d, n, k, x, run), (alpha, d, n, k))  # noqa: B023
            writer.writerow(["sgd", alpha, d, n, k, "", value.str(28, radius=False)])
    for d, mu in RELAXED:
        for alpha in ALPHAS[3:]:
            x = start(alpha, d, 0.0, alpha < 0.5)
            value = agreed(lambda run: relaxed(alpha, d, mu, x, run), (alpha, d, mu))  # noqa: B023
            writer.writerow(["relaxed", alpha, d, mu, "", "", value.str(28, radius=False)])
    rng = random.Random(5)
    for _ in range(1500):
        order = 10 ** rng.uniform(math.log10(0.25), 9.6)
        a = 0.0 if rng.random() < 0.1 else 10 ** rng.uniform(-3, 6.4)
        depth = 10 ** rng.uniform(-4, 2.84)
        b = math.sqrt(place(2 * order, a * a, depth, rng.random() < 0.5))
        if b < 1e-140:
            continue
        side = marcum(order, a, b, FIRST)[0]
        value = agreed(lambda run: marcum(order, a, b, run)[1], (order, a, b))  # noqa: B023
        writer.writerow(
            ["marcum", repr(order), repr(a), repr(b), "", side, value.log().str(28, radius=False)]
        )
    with open(OUT, "wb") as raw, gzip.GzipFile(fileobj=raw, mode="wb", mtime=0) as packed:
        packed.write(buffer.getvalue().encode())
    print(buffer.getvalue().count("\n") - 1, "values")


if __name__ == "__main__":
    main()
