"""Random answers with bounds, held against a second contour in long double.

    python tools/second_contour.py --answers 1000000 --seed 1 --minutes 60

Compositions of one to three kinds of sampled and plain Gaussian steps over noise 0.2 to 100, rates
1e-7 to 1 and 1 to 10^8 steps are asked for gamma, beta, delta and epsilon at 128 thresholds, down
to values of 1e-300.  The truth is ``tools/second_contour.c``: vertical lines and the trapezoidal
rule in z and in t with 64-bit mantissas, both spacings shortened until nothing moves by 1e-15; it
shares no code with the engines.  It has no answer where transforms fall too slowly: rare steps, and
few.  An answer is outside where a bound is on the wrong side of the truth by more than 4e-15.
"""

from __future__ import annotations

import argparse
import collections
import ctypes
import math
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tools")]

from few_step_campaign import Asked, questions  # noqa: E402

import pyengine as pe  # noqa: E402

LD = np.longdouble
THRESHOLDS = 128
STILL = 1e-15  # what the last refinement may have changed, relative
FACTORS = ((1.0, 1.0), (0.63, 0.61), (0.4, 0.37), (0.25, 0.22))
MOST = 6000  # terms of a sum over t
LEAST_LOG = math.log(1e-300)
DIGITS = 25


class Kinds(NamedTuple):
    """Noise multipliers, rates and lengths of all kinds of steps."""

    noise: list[float]
    probability: list[float]
    steps: list[int]

    def mechanism(self) -> pe.Mechanism:
        """What is asked."""
        return pe.compose(*(pe.dp_sgd(*kind) for kind in zip(*self, strict=True)))


def compiled() -> ctypes.CDLL:
    """The second contour, compiled for this run."""
    folder = tempfile.mkdtemp(prefix="second_contour")
    library = Path(folder) / "second_contour.so"
    source = ROOT / "tools" / "second_contour.c"
    command = ["cc", "-O2", "-fPIC", "-shared", "-o", str(library), str(source), "-lm"]
    subprocess.run(command, check=True)
    return ctypes.CDLL(str(library))


def _doubles(values: Any) -> Any:
    return np.ascontiguousarray(values, dtype=np.float64).ctypes.data_as(ctypes.c_void_p)


class Contour:
    """Functionals on the vertical line through a tilt."""

    def __init__(self, library: ctypes.CDLL, kinds: Kinds, lam: float) -> None:
        self._library, self._lam = library, lam
        self._arrays = [np.array(part, dtype=np.float64) for part in kinds]
        self._given = (len(kinds.noise), *(_doubles(part) for part in self._arrays))

    def moments(self) -> tuple[float, float, float] | None:
        """Mean and deviation of the tilted sum, and the log of what lies there."""
        out = np.zeros(3)
        lam = ctypes.c_double(self._lam)
        if not self._library.tilted_sum(*self._given, lam, _doubles(out)):
            return None
        return float(out[0]), float(out[1]), float(out[2])

    def logs(self, c: npt.NDArray[np.float64]) -> tuple[Any, Any] | None:
        """Logs of both masses and of the profile, shape (n, 3), and what they are off by."""
        last = None
        for fine in FACTORS:
            out = np.zeros((c.size, 3), dtype=LD)
            factors = [ctypes.c_double(x) for x in (self._lam, *fine)]
            done = self._library.invert(
                *self._given, *factors, MOST, c.size, _doubles(c),
                out.ctypes.data_as(ctypes.c_void_p),
            )  # fmt: skip
            if not done or not np.isfinite(out).all():
                return None
            if last is not None:
                off = np.abs(out - last)
                if off.max() <= STILL:
                    return out, off
            last = out
        return None


def _decimal(value: Any) -> Decimal:
    """The exact value of a long double."""
    high = float(value)
    return Decimal(high) + Decimal(float(value - LD(high)))


def drawn(rng: np.random.Generator) -> tuple[Kinds, float]:
    """A random composition and a random tilt."""
    number = int(rng.choice([1, 1, 1, 2, 3]))

    def log_uniform(low: float, high: float) -> float:
        return float(f"{math.exp(rng.uniform(math.log(low), math.log(high))):.5g}")

    kinds = Kinds(
        [log_uniform(0.2, 100.0) for _ in range(number)],
        [1.0 if rng.random() < 0.1 else log_uniform(1e-7, 1.0) for _ in range(number)],
        [int(log_uniform(1.0, 1e8)) for _ in range(number)],
    )
    distance = math.exp(rng.uniform(-3.0, 4.5))
    return kinds, 1.0 + distance if rng.random() < 0.5 else -distance


def asked_of(library: ctypes.CDLL, seed: int, index: int) -> tuple[Kinds, list[Asked]] | None:
    """Questions with their truths and doubts; None where the second contour has no answer."""
    rng = np.random.default_rng([seed, index])
    kinds, lam = drawn(rng)
    while True:
        contour = Contour(library, kinds, lam)
        found = contour.moments()
        if found is not None and found[2] > LEAST_LOG * rng.uniform(0.0, 1.0):
            break
        # nearer to the mean, until what lies there is a double
        lam = 1.0 + (lam - 1.0) / 2.0 if lam > 1.0 else lam / 2.0
        if not (lam > 1.0 + 1e-9 or lam < -1e-9):
            return None
    if not all(map(math.isfinite, found)):
        return None
    c = found[0] + found[1] * np.concatenate([[0.0], rng.uniform(-2.0, 2.0, THRESHOLDS - 1)])
    rows = contour.logs(c)
    if rows is None:
        return None
    asked: list[Asked] = []
    for i, row in enumerate(rows[0]):
        if not LEAST_LOG < float(row.min()) <= float(row[:2].max()) < 0.0:
            continue
        p, q, h = (_decimal(np.exp(value)) for value in row)
        asked += questions({"p": p, "q": q, "h": h}, float(c[i]), lam > 1.0, None)
    return (kinds, asked) if asked else None


def judged(kinds: Kinds, asked: list[Asked]) -> Iterator[tuple[str, str]]:
    """Verdicts on all questions of one composition, and what to print of those that are outside."""
    groups: dict[tuple[str, str], list[Asked]] = collections.defaultdict(list)
    for one in asked:
        groups[one.name, one.adjacency].append(one)
    mechanism = kinds.mechanism()
    for (name, adjacency), members in groups.items():
        x = np.array([one.argument for one in members])
        try:
            lower, value, upper = getattr(pe, name)(mechanism, x, adjacency=adjacency, bounds=True)
        except pe.AccuracyError:
            yield from [("refused", "")] * len(members)
            continue
        for i, one in enumerate(members):
            low, high, doubt = Decimal(lower[i]), Decimal(upper[i]), one.truth * Decimal(4 * STILL)
            if low - doubt <= one.truth <= high + doubt:
                width = float((high - low) / one.truth)
                yield ("within" if width < 1e-4 or name == "epsilon" else "wide"), f"{width:.1e}"
                continue
            where = f"pe.{name}({kinds!r}, {one.argument!r}, adjacency={adjacency!r})"
            yield (
                "OUTSIDE",
                f"{where}: {lower[i]!r} {value[i]!r} {upper[i]!r}, truth {one.truth:.20e}",
            )


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="composition to begin with")
    parser.add_argument("--stride", type=int, default=1, help="to share a seed among processes")
    parser.add_argument("--answers", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=math.inf)
    arguments = parser.parse_args()
    library, counts, widths = compiled(), collections.Counter[str](), []
    started, index = time.monotonic(), arguments.first
    while counts["within"] < arguments.answers:
        if time.monotonic() - started > 60.0 * arguments.minutes:
            break
        found = asked_of(library, arguments.seed, index)
        if found is None:
            counts["no truth"] += 1
        else:
            for verdict, words in judged(*found):
                counts[verdict] += 1
                if verdict == "OUTSIDE":
                    print(f"{index}: {words}", flush=True)
                elif verdict in ("within", "wide"):
                    widths.append(float(words))
        index += arguments.stride
        if (index - arguments.first) // arguments.stride % 200 == 0:
            print(index, dict(counts), flush=True)
    quantiles = np.quantile(widths, [0.5, 0.9, 0.99]) if widths else []
    print(index, dict(counts), "widths: median, 90 %, 99 %", *(f"{x:.1e}" for x in quantiles))


if __name__ == "__main__":
    main()
