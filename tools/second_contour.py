"""Random answers with bounds, held against a second contour in long double, and the reference.

    python tools/second_contour.py --answers 1000000 --seed 1 --minutes 60
    python tools/second_contour.py --answers 20000 --reference --seconds 1

Compositions of one to three kinds of sampled and plain Gaussian steps over noise 0.2 to 100, rates
1e-7 to 1 and 1 to 10^8 steps are asked for gamma, beta, delta and epsilon at 64 thresholds, under
add, remove and add_remove, up to epsilon 10^6, down to values of 1e-300.  The truth is
``tools/second_contour.c``: vertical lines and the trapezoidal rule in z and in t with 64-bit
mantissas, both spacings shortened and both ends moved out until nothing moves by 1e-15, or by
2e-14 where long double ends; it shares no code with the engines.  The line of z is lifted as far as
moduli allow, so that the integrand falls with t.  One step alone, and plain steps of any number,
have closed forms, in 60 digits.  There is no answer where transforms fall too slowly: rare steps,
and few.  With ``--reference`` the truth is `pyengine.reference` for neighbouring levels, as far as
it answers those of one function within ``--seconds``.  An answer is outside where a bound is on the
wrong side of the truth by more than four times what that may be off by: what the functionals at a
threshold may, times what a question's answer makes of it.
"""

from __future__ import annotations

import argparse
import collections
import ctypes
import math
import signal
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from pathlib import Path
from typing import Any, NamedTuple

import mpmath
import numpy as np
import numpy.typing as npt

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

from bounds_tally import Tally, Truth  # noqa: E402
from compiling import compiled  # noqa: E402
from few_step_campaign import questions  # noqa: E402

import pyengine as pe  # noqa: E402

LD = np.longdouble
THRESHOLDS = 64
STILL = 1e-15  # what the last refinement may have changed, relative
ROUNDINGS = 4.0  # units of the terms of log M that their sum errs by, at most
LOOSE = 2e-14  # the same where no refinement changes less, as numbers of steps are large
# parts of natural spacings in z and in t, how far nodes reach, and how far the transform falls
CHOICES = (
    (1.5, 1.0, 11.0, 44.0),
    (1.1, 0.8, 11.7, 47.0),
    (0.8, 0.6, 12.2, 50.0),
    (0.55, 0.42, 12.6, 52.0),
    (0.35, 0.25, 13.0, 53.0),
)
MOST = 100_000  # terms of a sum over t
DIGITS_OF_FORMS = 60
CLOSED = 1e-24  # what closed forms are off by at most, as Decimal has 28 digits
LEAST_LOG = math.log(1e-300)
FARTHEST = 1e6  # losses, and epsilons
DIGITS = 20
TRIES = 3  # tilts of one composition
ORDERS = ("add", "remove", "add_remove")
QUESTIONS = ("gamma_bound", "trade_off", "delta", "epsilon")
NEIGHBOURS = 100  # questions of one function that share a contour of the reference


class Kinds(NamedTuple):
    """Noise multipliers, rates and lengths of all kinds of steps."""

    noise: list[float]
    probability: list[float]
    steps: list[int]

    def mechanism(self) -> pe.Mechanism:
        """What is asked."""
        return pe.compose(*(pe.dp_sgd(*kind) for kind in zip(*self, strict=True)))


def second_contour() -> ctypes.CDLL:
    """The second contour, compiled for this run; in no flags of the core."""
    library = Path(tempfile.mkdtemp(prefix="second_contour")) / "second_contour.so"
    return compiled(library, [ROOT / "tools" / "second_contour.c"], flags=["-O2"])


def _doubles(values: Any) -> Any:
    return np.ascontiguousarray(values, dtype=np.float64).ctypes.data_as(ctypes.c_void_p)


class Line:
    """Functionals on the vertical line through a tilt; each kind has its own nodes.

    Attributes
    ----------
    rounding : float
        About what millions of steps make of the rounding of one, which no refinement shows.
    """

    rounding = 0.0

    def moments(self) -> tuple[float, float, float] | None:
        """Mean and deviation of the tilted sum, and the log of what lies there."""
        raise NotImplementedError

    def inverted(
        self, choice: tuple[float, float, float, float], c: npt.NDArray[np.float64]
    ) -> Any | None:
        """Logs of both masses and of the profile by one choice of spacings and ends."""
        raise NotImplementedError

    def logs(self, c: npt.NDArray[np.float64]) -> tuple[Any, float] | None:
        """Logs of both masses and of the profile, shape (n, 3), and what they are off by."""
        last, best, least = None, None, LOOSE
        self.moments()
        for choice in CHOICES:
            out = self.inverted(choice, c)
            if out is None or not np.isfinite(out).all():
                break
            if last is not None:
                # what is far below all values that are asked enters no truth but as nothing
                off = float(np.abs(np.where(out > 2.0 * LEAST_LOG, out - last, 0.0)).max())
                if off <= least:
                    best, least = out, off
                if off <= STILL:
                    break
            last = out
        return None if best is None else (best, max(least, STILL) + ROUNDINGS * self.rounding)


class Contour(Line):
    """Functionals of sampled and plain Gaussian steps."""

    def __init__(self, library: ctypes.CDLL, kinds: Kinds, lam: float) -> None:
        self._library, self._lam = library, lam
        self._arrays = [np.array(part, dtype=np.float64) for part in kinds]
        self._given = (len(kinds.noise), *(_doubles(part) for part in self._arrays))

    def moments(self) -> tuple[float, float, float] | None:
        """Mean and deviation of the tilted sum, and the log of what lies there."""
        out = np.zeros(4)
        lam = ctypes.c_double(self._lam)
        if not self._library.tilted_sum(*self._given, lam, _doubles(out)):
            return None
        self.rounding = float(out[3])
        return float(out[0]), float(out[1]), float(out[2])

    def inverted(
        self, choice: tuple[float, float, float, float], c: npt.NDArray[np.float64]
    ) -> Any | None:
        """Logs at thresholds by one choice of spacings and ends."""
        out = np.zeros((c.size, 3), dtype=LD)
        factors = [ctypes.c_double(x) for x in (self._lam, *choice)]
        done = self._library.invert(
            *self._given, *factors, MOST, c.size, _doubles(c), out.ctypes.data_as(ctypes.c_void_p)
        )
        return out if done else None


class Plain(Line):
    """Functionals of plain Gaussian steps alone: their loss is normal, and so are its tails.

    To be used with 60 digits of mpmath.
    """

    def __init__(self, kinds: Kinds, lam: float) -> None:
        variances = (
            n / mpmath.mpf(noise) ** 2 for noise, n in zip(kinds.noise, kinds.steps, strict=True)
        )
        self._mu, self._lam = mpmath.sqrt(sum(variances)), lam

    def moments(self) -> tuple[float, float, float]:
        """Mean and deviation of the tilted sum, and the log of what lies there."""
        lam, variance = mpmath.mpf(self._lam), self._mu**2
        log_of_a = variance * lam * (lam - 1) / 2 - lam * variance * (lam - 0.5)
        return float(variance * (lam - 0.5)), float(self._mu), float(log_of_a)

    def logs(self, c: npt.NDArray[np.float64]) -> tuple[Any, float]:
        """Logs of both masses and of the profile, shape (n, 3) of mpmath's, and their error."""
        mu, sign = self._mu, 1 if self._lam > 1.0 else -1
        rows = np.empty((c.size, 3), dtype=object)
        for i, x in enumerate(map(mpmath.mpf, map(float, c))):
            z = x / mu + mu / 2
            p, q = mpmath.ncdf(-sign * z), mpmath.ncdf(-sign * (z - mu))
            h = q - p * mpmath.exp(x) if sign > 0 else p - q * mpmath.exp(-x)
            rows[i] = [mpmath.log(side) for side in (p, q, h)]
        return rows, CLOSED


def _mass(log: Any) -> Decimal:
    """What has this log, which may be far below all doubles."""
    if isinstance(log, mpmath.mpf):
        return Decimal(mpmath.nstr(mpmath.exp(log), 40))
    value = log if log < -600.0 else np.exp(log)
    high = float(value)
    exact = Decimal(high) + Decimal(float(value - LD(high)))
    return exact.exp() if log < -600.0 else exact


def drawn(rng: np.random.Generator) -> Kinds:
    """A random composition."""
    number = int(rng.choice([1, 1, 1, 2, 3]))

    def log_uniform(low: float, high: float) -> float:
        return float(f"{math.exp(rng.uniform(math.log(low), math.log(high))):.5g}")

    return Kinds(
        [log_uniform(0.2, 100.0) for _ in range(number)],
        [1.0 if rng.random() < 0.1 else log_uniform(1e-7, 1.0) for _ in range(number)],
        [int(log_uniform(1.0, 1e8)) for _ in range(number)],
    )


def tilts(line: Callable[[float], Line], rng: np.random.Generator) -> Iterator[float]:
    """Tilts at random, measured by the deviation of the loss, then by themselves."""
    for i in range(TRIES):
        right = bool(rng.random() < 0.5)
        distance = math.exp(rng.uniform(-3.0, 4.5))
        found = line(1.0 if right else 0.0).moments()
        if i < TRIES - 1 and found is not None and 0.0 < found[1] < math.inf:
            distance = math.exp(rng.uniform(-2.5, 3.7)) / found[1]
        yield 1.0 + distance if right else -distance


def beyond(line: Callable[[float], Line], lam: float, least: float) -> Any:
    """A tilt between a pole and the one given whose masses are doubles, and its moments."""
    while lam > 1.0 + 1e-9 or lam < -1e-9:
        found = line(lam).moments()
        if found is not None and all(map(math.isfinite, found)):
            mean, _, log_of_a = found
            if max(log_of_a, log_of_a + mean) > least:  # of A or of B
                return lam, found
        lam = 1.0 + (lam - 1.0) / 2.0 if lam > 1.0 else lam / 2.0
    return None


def _inside(c: float, p: Any) -> Any:
    """e^s where log(1 - p + p e^s) = c, by what loses fewer digits: e^c may be far below 1."""
    part = mpmath.expm1(c) + p if c > -1.0 else mpmath.exp(c) - (1 - p)
    return part / p


def single(kinds: Kinds, rng: np.random.Generator) -> list[Truth]:
    """Questions of one step, whose tests are thresholds of z: its masses are closed forms."""
    noise, p = mpmath.mpf(kinds.noise[0]), mpmath.mpf(kinds.probability[0])
    found: list[Truth] = []
    for _ in range(THRESHOLDS // 2):
        z, right = mpmath.mpf(rng.uniform(-6.0, 30.0)), bool(rng.random() < 0.5)
        z = z if right else -z
        c = float(mpmath.log(1 - p + p * mpmath.exp((z - 1 / (2 * noise)) / noise)))
        inside = _inside(c, p)
        if not (inside > 0 and 0.0 < abs(c) < FARTHEST):
            continue
        z = noise * mpmath.log(inside) + 1 / (2 * noise)
        sign = 1 if right else -1
        of_a, moved = mpmath.ncdf(-sign * z), mpmath.ncdf(-sign * (z - 1 / noise))
        of_b = (1 - p) * of_a + p * moved
        profile = of_b - mpmath.exp(c) * of_a if right else of_a - mpmath.exp(-c) * of_b
        if not mpmath.mpf(1e-300) < profile <= max(of_a, of_b) < 1:
            continue
        sides = {
            name: Decimal(mpmath.nstr(x, 40))
            for name, x in zip("pqh", (of_a, of_b, profile), strict=True)
        }
        found += _doubted(sides, c, right, CLOSED)
    return found


def asked_on(line: Callable[[float], Line], rng: np.random.Generator) -> list[Truth]:
    """Questions with their truths and doubts; none where the second contour has no answer."""
    for first in tilts(line, rng):
        start = beyond(line, first, LEAST_LOG * rng.uniform(0.0, 1.0))
        if start is None:
            continue
        lam, (mean, deviation, _) = start
        c = mean + deviation * np.concatenate([[0.0], rng.uniform(-2.0, 2.0, THRESHOLDS - 1)])
        rows = line(lam).logs(c)
        if rows is None:
            continue
        mirrored = line(1.0 - lam).logs(-c) if rng.random() < 0.3 else None
        asked = list(_truths(rows, c, lam > 1.0, mirrored))
        if asked:
            return asked
    return []


def asked_of(library: ctypes.CDLL, kinds: Kinds, rng: np.random.Generator) -> list[Truth]:
    """Questions on a composition with their truths."""
    with mpmath.workdps(DIGITS_OF_FORMS):
        if kinds.steps == [1]:
            return single(kinds, rng)
        if all(p == 1.0 for p in kinds.probability):
            return asked_on(lambda lam: Plain(kinds, lam), rng)
    return asked_on(lambda lam: Contour(library, kinds, lam), rng)


def _doubted(sides: dict[str, Decimal], c: float, right: bool, off: float) -> Iterator[Truth]:
    """Questions on a threshold whose masses and profile are off by a relative error.

    Arguments are rounded, and answers moved along the slope: that makes an error of the other mass,
    or of the profile, one of the answer, hundreds of times as large in far tails.
    """
    p, q, h = sides["p"], sides["q"], sides["h"]
    level, power = (p, q) if right else (q, p)
    moved = level * (Decimal(c) if right else -Decimal(c)).exp()  # by the slope at the threshold
    for one in questions(sides, c, right, None):
        factor = 1.0
        if one.name == "gamma_bound":
            factor = float((power + moved) / one.truth)
        elif one.name == "trade_off":
            factor = 1.0 + float(power / moved)
        elif one.name == "epsilon":
            factor = 1.0 + float(h / (moved * abs(Decimal(c))))
        yield Truth(*one, off * factor)


def _truths(rows: Any, c: Any, right: bool, mirrored: Any) -> Iterator[Truth]:
    """Questions at thresholds; of both orders where this one has the larger profile there."""
    logs, off = rows
    for i, row in enumerate(logs):
        if not LEAST_LOG < float(row[2]) <= float(row[:2].max()) < 0.0:
            continue
        if max(abs(c[i]), -float(row.min())) > FARTHEST:  # beyond the numbers of Decimal
            continue
        p, q, h = (_mass(value) for value in row)
        # the line of this order's slope that lies below both curves touches this one
        whole = mirrored is not None and float(row[2] - mirrored[0][i, 2]) > 1e-9
        for one in _doubted({"p": p, "q": q, "h": h}, float(c[i]), right, 4.0 * off):
            yield one
            if whole:
                yield one._replace(adjacency="add_remove")


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise TimeoutError after so much processor time."""

    def end(*_: Any) -> None:
        raise TimeoutError

    before = signal.signal(signal.SIGPROF, end)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)
        signal.signal(signal.SIGPROF, before)


def levels(rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Levels next to a random one, whose truths share a contour of the reference."""
    first = rng.uniform(math.log(1e-30), math.log(0.5))
    return np.exp(np.minimum(first + rng.uniform(-0.7, 0.7, NEIGHBOURS), math.log(0.9)))


def referred(mechanism: pe.Mechanism, rng: np.random.Generator, seconds: float) -> list[Truth]:
    """Random questions with the reference's truth, as far as it has them in time."""
    found = []
    for name in QUESTIONS:
        order = str(rng.choice(ORDERS[:2]))
        x = levels(rng)
        if name == "trade_off" and rng.random() < 0.5:
            x = 1.0 - x
        try:
            with limited(seconds):
                if name == "delta":
                    x = np.asarray(pe.epsilon(mechanism, x, adjacency=order))
                for level in x:
                    question = getattr(pe.reference, name)
                    truth = question(mechanism, float(level), adjacency=order, digits=DIGITS)
                    exact = Decimal(truth.decimal(DIGITS))
                    if not (exact.is_finite() and FARTHEST > exact > Decimal("1e-300")):
                        continue
                    doubt = float(truth.error / truth) + 10.0 ** (1 - DIGITS)
                    if doubt < LOOSE:
                        found.append(Truth(name, float(level), order, exact, doubt))
        except (TimeoutError, pe.AccuracyError):
            continue
    return found


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="composition to begin with")
    parser.add_argument("--stride", type=int, default=1, help="to share a seed among processes")
    parser.add_argument("--answers", type=int, default=10_000)
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--reference", action="store_true", help="truths are the reference's")
    parser.add_argument(
        "--seconds", type=float, default=1.0, help="of the processor, for those of one function"
    )
    parser.add_argument("--list", action="store_true", help="print what is wide or falls back")
    arguments = parser.parse_args()
    library, tally = second_contour(), Tally(arguments.list)
    counts = collections.Counter[str]()
    started, index = time.monotonic(), arguments.first
    while tally.judged < arguments.answers:
        if time.monotonic() - started > 60.0 * arguments.minutes:
            break
        rng = np.random.default_rng([arguments.seed, index])
        kinds = drawn(rng)
        if arguments.reference:
            asked = referred(kinds.mechanism(), rng, arguments.seconds)
        else:
            asked = asked_of(library, kinds, rng)
        counts["truth" if asked else "none"] += 1
        if asked:
            tally.judge(kinds.mechanism(), asked, f"{index}, {kinds}")
        index += arguments.stride
        if (index - arguments.first) // arguments.stride % 200 == 0:
            print(index, dict(counts), dict(tally.verdicts), flush=True)
    print(index, f"compositions: {dict(counts)}")
    print(tally.report())


if __name__ == "__main__":
    main()
