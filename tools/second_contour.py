"""Random answers with bounds about Gaussian steps, compared with the reference.

    python tools/campaigns.py compositions --answers 1000000 --seed 1 --minutes 60

Compositions of one to three kinds of sampled and plain Gaussian steps (noise 0.2 to 100, rates 1e-7
to 1, 1 to 10^8 steps) are asked for gamma, beta, delta and epsilon at 64 thresholds, under add,
remove and add_remove, up to epsilon 10^6, down to values of 1e-300, and next to and beyond the ends
of their domains (``tools/contour_ends.py``); ``few-steps`` are two to a hundred of one kind. The
truth is `pyengine.reference`, proven, where it has 20 digits within ``--seconds``; it shares no
code with the engines. An answer is outside if a bound is on the wrong side of the truth by more
than four times the truth's error: the error of the functionals at a threshold, times its effect on
the answer.

Other steps have lines of ``tools/second_contour.c``: the trapezoidal rule in t with 64-bit
mantissas, on nodes from their campaigns. Both spacings are shortened and both ends moved out until
nothing changes by 1e-15, or by 2e-14 where long double reaches its limit.
"""

from __future__ import annotations

import ctypes
import math
import multiprocessing
import resource
import sys
import tempfile
from collections.abc import Callable, Iterator
from contextlib import suppress
from decimal import Decimal
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import mpmath
import numpy as np
import numpy.typing as npt
from flint import arb
from random_mechanisms import evenly

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [str(ROOT / "tests")]

from bounds_tally import Case, Truth  # noqa: E402
from compiling import compiled  # noqa: E402
from contour_ends import at_ends  # noqa: E402
from contour_lines import LOOSE, Line  # noqa: E402
from contour_truths import FARTHEST, LEAST_LOG, truths  # noqa: E402

import pyengine as pe  # noqa: E402
from pyengine.reference.balls import precision  # noqa: E402
from pyengine.reference.gaussian.law import SampledGaussianLaw  # noqa: E402
from pyengine.reference.gaussian.steps import EqualSteps  # noqa: E402

THRESHOLDS = 64
DIGITS_OF_FORMS = 60
DEPTH, BITS = 62.0, 70  # of functionals: what is aimed at, as a logarithm, and what is enough
OFF = 2.0**-BITS
DIGITS = 20
TRIES = 3  # tilts of one composition
SECONDS = 2.0  # of the reference for a composition
ORDERS = ("add", "remove", "add_remove")
QUESTIONS = ("gamma_bound", "trade_off", "delta", "epsilon")
NEIGHBOURS = 100  # questions of one function that share a contour of the reference


class Kinds(NamedTuple):
    """Noise multipliers, rates and lengths of all kinds of steps."""

    noise: list[float]
    probability: list[float]
    steps: list[int]

    def mechanism(self) -> pe.Mechanism:
        """The mechanism under test."""
        return pe.compose(*(pe.dp_sgd(*kind) for kind in zip(*self, strict=True)))

    def law(self) -> SampledGaussianLaw:
        """The reference's law."""
        return SampledGaussianLaw(tuple(EqualSteps(*kind) for kind in zip(*self, strict=True)))

    def largest(self) -> float:
        """About the largest loss of ``add``, where no step samples the record."""
        if 1.0 in self.probability:
            return math.inf
        parts = zip(self.probability, self.steps, strict=True)
        return -sum(n * math.log1p(-p) for p, n in parts)


@cache
def second_contour() -> ctypes.CDLL:
    """The second contour, compiled for this run, with other flags than the core."""
    library = Path(tempfile.mkdtemp(prefix="second_contour")) / "second_contour.so"
    return compiled(library, [ROOT / "tools" / "second_contour.c"], flags=["-O2"])


class Proven(Line):
    """Functionals of sampled and plain Gaussian steps, by the reference.

    To be used with 60 digits of mpmath.
    """

    def __init__(self, law: SampledGaussianLaw, clock: Clock, lam: float) -> None:
        self._law, self._clock, self._lam = law, clock, lam

    def moments(self) -> tuple[float, float, float]:
        """Mean and deviation of the tilted sum, and K(λ) - λ mean: about the log of A's mass."""
        cumulants = self._law.cumulants
        mean, variance = cumulants.mean_variance(self._lam)
        log_of_a = cumulants.value(self._lam) - self._lam * mean
        return mean + cumulants.shift, math.sqrt(variance), log_of_a

    def logs(self, c: npt.NDArray[np.float64]) -> tuple[Any, float] | None:
        """Logs of both masses and of the profile, shape (n, 3) in mpmath, and their error.

        Those that are known less well are -inf.
        """
        names = (
            ("p_above", "q_above", "h_qp") if self._lam > 0.5 else ("p_below", "q_below", "h_pq")
        )

        def found() -> Iterator[list[str] | None]:
            with precision(200):
                local = self._law.near(arb(float(c[0])), DEPTH)
            with precision(local.bits):
                for x in c.tolist():
                    tails = local.at(arb(x))
                    balls = [getattr(tails, name) for name in names]
                    known = min(ball.rel_accuracy_bits() for ball in balls) >= BITS
                    yield [ball.mid().str(45, radius=False) for ball in balls] if known else None

        rows = np.full((c.size, 3), mpmath.mpf("-inf"), dtype=object)
        texts = self._clock.within(found)
        for i, row in enumerate(texts):
            if row is not None:
                rows[i] = [mpmath.log(mpmath.mpf(x)) for x in row]
        return (rows, OFF) if texts else None


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


def few(rng: np.random.Generator) -> Kinds:
    """Two to a hundred steps of one kind."""
    steps = 2 if rng.random() < 0.2 else int(evenly(rng, 3, 101))
    noise, p = (float(f"{evenly(rng, *ends):.4g}") for ends in ((0.5, 20.0), (1e-4, 1.0)))
    return Kinds([noise], [p], [steps])


def tilts(line: Callable[[float], Line], rng: np.random.Generator) -> Iterator[float]:
    """Random tilts, at distances in units of the loss's deviation, except for the last one."""
    for i in range(TRIES):
        right = bool(rng.random() < 0.5)
        distance = math.exp(rng.uniform(-3.0, 4.5))
        found = line(1.0 if right else 0.0).moments()
        if i < TRIES - 1 and found is not None and 0.0 < found[1] < math.inf:
            distance = math.exp(rng.uniform(-2.5, 3.7)) / found[1]
        yield 1.0 + distance if right else -distance


def beyond(line: Callable[[float], Line], lam: float, least: float) -> Any:
    """A tilt between a pole and a given tilt whose masses are doubles, and its moments."""
    while lam > 1.0 + 1e-9 or lam < -1e-9:
        found = line(lam).moments()
        if found is not None and all(map(math.isfinite, found)):
            mean, _, log_of_a = found
            if max(log_of_a, log_of_a + mean) > least:  # of A or of B
                return lam, found
        lam = 1.0 + (lam - 1.0) / 2.0 if lam > 1.0 else lam / 2.0
    return None


def asked_on(line: Callable[[float], Line], rng: np.random.Generator) -> list[Truth]:
    """Questions with their truths and errors; none where the second contour has no answer."""
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


def asked_of(kinds: Kinds, rng: np.random.Generator, seconds: float = SECONDS) -> list[Truth]:
    """Questions on a composition with their truths."""
    with mpmath.workdps(DIGITS_OF_FORMS):
        return asked_on(partial(Proven, kinds.law(), Clock(seconds)), rng)


def ends_of(kinds: Kinds, rng: np.random.Generator, seconds: float = SECONDS) -> list[Truth]:
    """Questions next to and beyond the ends of their domains."""
    with mpmath.workdps(DIGITS_OF_FORMS):
        return at_ends(partial(Proven, kinds.law(), Clock(seconds)), kinds, rng)


class Clock:
    """Remaining seconds of processor time for some answers."""

    def __init__(self, seconds: float) -> None:
        self.left = seconds

    def within(self, ask: Callable[[], Iterator[Any]]) -> list[Any]:
        """Return the results of a generator until it is refused, or takes too long."""
        if self.left <= 0.0:
            return []
        before = resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime
        found = _in_time(self.left, ask)
        self.left -= resource.getrusage(resource.RUSAGE_CHILDREN).ru_utime - before
        return found


def _in_time(seconds: float, ask: Callable[[], Iterator[Any]]) -> list[Any]:
    """Ask in a child process: no exception may be raised inside an integral of FLINT."""
    context = multiprocessing.get_context("fork")
    here, there = context.Pipe(duplex=False)

    def run() -> None:
        resource.setrlimit(resource.RLIMIT_CPU, (math.ceil(seconds),) * 2)
        with suppress(pe.AccuracyError):
            for each in ask():
                there.send(each)

    child = context.Process(target=run)
    child.start()
    there.close()
    found = []
    with suppress(EOFError, OSError):  # the child may be ended while it sends a message
        while True:
            found.append(here.recv())
    child.join()
    return found


def levels(rng: np.random.Generator) -> npt.NDArray[np.float64]:
    """Levels next to a random one, whose truths share a contour of the reference."""
    first = rng.uniform(math.log(1e-30), math.log(0.5))
    return np.exp(np.minimum(first + rng.uniform(-0.7, 0.7, NEIGHBOURS), math.log(0.9)))


def _referred(mechanism: pe.Mechanism, name: str, order: str, x: Any) -> Iterator[Truth]:
    """The reference's answers at levels of some gamma; for delta, at the epsilons of these."""
    if name == "delta":
        x = np.asarray(pe.epsilon(mechanism, x, adjacency=order))
    for level in x.tolist():
        truth = getattr(pe.reference, name)(mechanism, level, adjacency=order, digits=DIGITS)
        exact = Decimal(truth.decimal(DIGITS))
        if not (exact.is_finite() and FARTHEST > exact > Decimal("1e-300")):
            continue
        doubt = float(truth.error / truth) + 10.0 ** (1 - DIGITS)
        if doubt < LOOSE:
            yield Truth(name, level, order, exact, doubt)


def referred(
    mechanism: pe.Mechanism,
    rng: np.random.Generator,
    seconds: float,
) -> list[Truth]:
    """Random questions with the reference's truth, as far as it is ready in time."""
    found: list[Truth] = []
    for name in QUESTIONS:
        order = str(rng.choice(ORDERS[:2]))
        x = levels(rng)
        if name == "trade_off" and rng.random() < 0.5:
            x = 1.0 - x
        found += Clock(seconds).within(partial(_referred, mechanism, name, order, x))
    return found


def case(kinds: Kinds, rng: np.random.Generator, seconds: float, *, ends: bool = True) -> Case:
    """A composition with its truths, and those next to the ends of domains."""
    asked = asked_of(kinds, rng, seconds)
    more = ends_of(kinds, rng, seconds) if ends else []
    return Case(kinds.mechanism(), f"{kinds}", asked, more)
