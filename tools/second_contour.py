"""Random answers with bounds, held against a second contour in long double, and the reference.

    python tools/campaigns.py compositions --answers 1000000 --seed 1 --minutes 60
    python tools/campaigns.py compositions --answers 20000 --reference --seconds 1

Compositions of one to three kinds of sampled and plain Gaussian steps over noise 0.2 to 100, rates
1e-7 to 1 and 1 to 10^8 steps are asked for gamma, beta, delta and epsilon at 64 thresholds, under
add, remove and add_remove, up to epsilon 10^6, down to values of 1e-300, and next to the ends of
their domains and beyond these (``tools/contour_ends.py``).  The truth is
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

import ctypes
import math
import signal
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import mpmath
import numpy as np
import numpy.typing as npt
from random_mechanisms import evenly

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

from bounds_tally import Case, Truth  # noqa: E402
from compiling import compiled  # noqa: E402
from contour_ends import at_ends  # noqa: E402
from contour_lines import LOOSE, Line  # noqa: E402
from contour_truths import CLOSED, FARTHEST, LD, LEAST_LOG, of_one_step, truths  # noqa: E402

import pyengine as pe  # noqa: E402

THRESHOLDS = 64
MOST = 100_000  # terms of a sum over t
DIGITS_OF_FORMS = 60
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

    def largest(self) -> float:
        """The largest loss of ``add``: no step samples the record; about."""
        if 1.0 in self.probability:
            return math.inf
        parts = zip(self.probability, self.steps, strict=True)
        return -sum(n * math.log1p(-p) for p, n in parts)


@cache
def second_contour() -> ctypes.CDLL:
    """The second contour, compiled for this run; in no flags of the core."""
    library = Path(tempfile.mkdtemp(prefix="second_contour")) / "second_contour.so"
    return compiled(library, [ROOT / "tools" / "second_contour.c"], flags=["-O2"])


def _doubles(values: Any) -> Any:
    return np.ascontiguousarray(values, dtype=np.float64).ctypes.data_as(ctypes.c_void_p)


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


def drawn(rng: np.random.Generator) -> Kinds:
    """A random composition."""
    number = int(rng.choice([1, 1, 1, 2, 3]))

    def rounded(low: float, high: float) -> float:
        return float(f"{evenly(rng, low, high):.5g}")

    return Kinds(
        [rounded(0.2, 100.0) for _ in range(number)],
        [1.0 if rng.random() < 0.1 else rounded(1e-7, 1.0) for _ in range(number)],
        [int(rounded(1.0, 1e8)) for _ in range(number)],
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


def single(kinds: Kinds, rng: np.random.Generator) -> list[Truth]:
    """Questions of one step, whose tests are thresholds of z: its masses are closed forms."""
    noise, p = mpmath.mpf(kinds.noise[0]), mpmath.mpf(kinds.probability[0])
    found: list[Truth] = []
    for _ in range(THRESHOLDS // 2):
        z, right = mpmath.mpf(rng.uniform(-6.0, 30.0)), bool(rng.random() < 0.5)
        z = z if right else -z
        c = float(mpmath.log(1 - p + p * mpmath.exp((z - 1 / (2 * noise)) / noise)))
        found += of_one_step(kinds.noise[0], kinds.probability[0], c, right)
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
        asked = list(truths(rows, c, lam > 1.0, mirrored))
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


def ends_of(library: ctypes.CDLL, kinds: Kinds, rng: np.random.Generator) -> list[Truth]:
    """Questions next to the ends of their domains, and beyond them."""
    plain = all(p == 1.0 for p in kinds.probability)
    with mpmath.workdps(DIGITS_OF_FORMS):
        if plain:
            return at_ends(lambda lam: Plain(kinds, lam), kinds, rng)
        return at_ends(lambda lam: Contour(library, kinds, lam), kinds, rng)


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


def referred(
    mechanism: pe.Mechanism,
    rng: np.random.Generator,
    seconds: float,
    largest: float = math.inf,
) -> list[Truth]:
    """Random questions with the reference's truth, as far as it has them in time.

    Where the largest loss of ``add`` is given, a quarter of its delta are asked next to it.
    """
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
                    if order == "add" and largest < math.inf and rng.random() < 0.25:
                        x = largest * (1.0 - 10.0 ** rng.uniform(-12.0, -0.3, NEIGHBOURS))
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


def case(rng: np.random.Generator, seconds: float | None) -> Case:
    """A random composition with its truths: the reference's where seconds for it are given."""
    kinds, library = drawn(rng), second_contour()
    run = kinds.mechanism()
    if seconds is not None:
        return Case(run, f"{kinds}", referred(run, rng, seconds, kinds.largest()))
    asked = asked_of(library, kinds, rng)
    return Case(run, f"{kinds}", asked, ends_of(library, kinds, rng))
