"""Floating-point environments that a host may have set, and questions to all engines in them.

``PYTHONPATH=tests python -m environments`` prints, for each environment and engine, how many
answers differ in their bits from those in the default environment. ``--random N`` adds N random
proven questions, and prints how many of their brackets are disjoint from those in the default
environment.
"""

from __future__ import annotations

import argparse
import contextlib
import ctypes
import functools
import platform
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

import pyengine as pe
from pyengine.caches import clear_cache

SOURCE = Path(__file__).parent / "c" / "environment" / "host.c"
# Whether environments can be set here; allowed_skips.toml has the reason where they cannot.
SETTABLE = platform.machine() in ("x86_64", "AMD64") and sys.platform == "linux"
SETTABLE = SETTABLE and shutil.which("gcc") is not None
WHY_NOT = "environments are set by gcc on Linux, x86-64"

MXCSR, X87 = 0x1F80, 0x037F
ROUNDING, FTZ, DAZ, TRAPS = 0x6000, 0x8000, 0x0040, 0x1E80
# Control words of SSE and of the x87 unit.
ENVIRONMENTS = {
    "nearest": (MXCSR, X87),
    "upward": (MXCSR | 0x4000, X87 | 0x0800),
    "downward": (MXCSR | 0x2000, X87 | 0x0400),
    "toward zero": (MXCSR | 0x6000, X87 | 0x0C00),
    "FTZ": (MXCSR | FTZ, X87),
    "DAZ": (MXCSR | DAZ, X87),
    "FTZ and DAZ": (MXCSR | FTZ | DAZ, X87),
    "x87 at 24 bits": (MXCSR, X87 & ~0x0300),
    "x87 at 53 bits": (MXCSR, (X87 & ~0x0300) | 0x0200),
    "traps": (MXCSR & ~0x0E80, X87 & ~0x000D),  # of invalid operations, divisions by 0, overflow
}


@functools.cache
def host() -> ctypes.CDLL:
    """Code that sets the environment of the calling thread."""
    with tempfile.TemporaryDirectory() as place:
        library = Path(place) / "host.so"
        command = ["gcc", "-O1", "-shared", "-fPIC", str(SOURCE), "-o", str(library)]
        subprocess.run(command, check=True)
        return ctypes.CDLL(str(library))


def control_words() -> tuple[int, int]:
    """Control bits of SSE, without the exception flags, and those of the x87 unit."""
    return host().host_mxcsr() & ~0x3F, host().host_x87()


@contextlib.contextmanager
def environment(name: str) -> Iterator[None]:
    """Run a block in an environment, and check that the block does not change it."""
    before = control_words()
    host().host_set(*ENVIRONMENTS[name])
    try:
        yield
        left = control_words()
    finally:
        host().host_set(*before)
    assert left == ENVIRONMENTS[name], (name, [f"{word:#x}" for word in left])


RUN, FEW = pe.dp_sgd(1.0, 0.01, 1000), pe.dp_sgd(0.7, 0.05, 3)
RESPONSE = pe.RandomizedResponse(0.9).composed(20)
NOISES = pe.compose(pe.GaussianMechanism(2.0).composed(10), pe.LaplaceMechanism(2.0).composed(5))


def _law() -> pe.Mechanism:
    from pyengine.analytic import log, pi, z

    log_p = -z * z / 2 - log(2 * pi) / 2
    return pe.from_analytic_densities(log_p, log_p.at(z - "0.3")).composed(20)


def _named(method: str, mechanism: pe.Mechanism, **options: Any) -> Callable[[], Any]:
    return lambda: [
        pe.gamma_bound(mechanism, 1e-3, method=method, **options),
        pe.delta(mechanism, 0.5, method=method, **options),
        pe.trade_off(mechanism, np.array([1e-9, 0.2]), method=method, **options),
    ]


MANY = np.linspace(0.1, 90.0, 20_000)


def _special() -> list[Any]:
    x = np.array([-30.0, -1.3, 0.2, 7.7])
    return [
        pe.special.ndtr(x),
        pe.special.ndtri(np.array([1e-300, 0.3])),
        pe.special.ndtri_exp(-1e5),
        pe.special.ncx2_cdf(np.array([1.0, 300.0]), 3.0, 40.0),
        pe.special.ncx2_cdf(1.0, 3.0, 7.0),
        pe.special.threaded(pe.special.ncx2_sf, MANY, 5.0, 9.0, workers=2),
        pe.special.ncx2_pdf(1e-310, 2.0, 1.0),
    ]


def _conversions() -> list[Any]:
    return [
        pe.duality.from_rdp([1.5, 4.0], [0.1, 0.4], 1e-5),
        pe.duality.from_zcdp(0.3, 1e-5),
        pe.duality.bounded_range_epsilon(1e-6, range_per_step=0.3, steps=50),
    ]


def _reference() -> list[Any]:
    return [
        str(pe.reference.delta(RUN, 2.0, digits=25)),
        str(pe.reference.delta(FEW, 0.5, digits=6)),
    ]


def _calibrated() -> list[Any]:
    found = pe.calibrate(lambda s: pe.dp_sgd(s, 0.01, 100), pe.targets.EpsilonDelta(1.5, 1e-5))
    return [found.value, found.achieved]


GAUSS = pe.GaussianMechanism(1.2)
DISCRETE = pe.DiscreteGaussianMechanism(2.0).composed(3)
# Questions to each engine, and to all packages other than engines.
QUESTIONS: dict[str, Callable[[], Any]] = {
    "closed_form": _named("auto", GAUSS, bounds=True),
    "values": _named("auto", RUN),
    "certified": _named("certified", RUN, bounds=True),
    "few steps": lambda: pe.gamma_bound(FEW, 1e-3, bounds=True),
    "exact": _named("exact", RESPONSE, bounds=True),
    "panels": _named("auto", pe.LaplaceMechanism(1.5).composed(3), bounds=True),
    "lattice": _named("lattice", NOISES, bounds=True),
    "discrete": lambda: [
        pe.gamma_bound(DISCRETE, 3e-308, bounds=True),
        pe.delta(DISCRETE, 0.5, bounds=True),
    ],
    "lines of analytic densities": lambda: pe.delta(_law(), 0.5, bounds=True),
    "product": _named("auto", pe.compose(RUN, pe.RandomizedResponse(0.8).composed(2)), bounds=True),
    "epochs": _named("auto", pe.dp_sgd_allocated(2.0, 20, 2)),
    "smooth": _named("auto", pe.dp_sgd(2.0, 0.01, 200, group_size=3), bounds=True),
    "edgeworth": _named("edgeworth", RUN),
    "clt": _named("clt", RUN),
    "monte_carlo": lambda: pe.delta(FEW, 0.5, method="monte_carlo"),
    "relaxed": lambda: pe.trade_off(GAUSS, [0.1, 0.4], threat_model="relaxed"),
    "reference": _reference,
    "calibrate": _calibrated,
    "special": _special,
    "duality": _conversions,
}


def bits(answer: Any) -> Any:
    """An answer as an object that compares equal only if all bits are equal."""
    if isinstance(answer, list | tuple):
        return [bits(part) for part in answer]
    if isinstance(answer, float | np.ndarray):
        return np.asarray(answer).tobytes()
    return answer


def afresh(question: Callable[[], Any]) -> Any:
    """The answer with empty caches; an exception counts as an answer."""
    clear_cache()
    try:
        return bits(question())
    except Exception as error:  # in a wrong environment it may be any exception
        return repr(error)


def random_questions(count: int, seed: int = 0) -> Iterator[Callable[[], Any]]:
    """Proven questions about DP-SGD, quick ones."""
    random = np.random.default_rng(seed)
    for _ in range(count):
        rate, steps = 10 ** random.uniform(-3.5, -1), int(10 ** random.uniform(2, 4))
        noise = max(0.8, rate * steps**0.5 * 10 ** random.uniform(-0.3, 0.7))
        run = pe.dp_sgd(noise, rate, steps)
        ask = [pe.delta, pe.gamma_bound, pe.trade_off][random.integers(3)]
        at = random.uniform(0.1, 3) if ask is pe.delta else 10 ** random.uniform(-9, -0.1)
        order = str(random.choice(["add", "remove"]))
        yield functools.partial(ask, run, at, adjacency=order, bounds=True)


def _count_random(count: int, names: list[str]) -> None:
    questions = list(random_questions(count))

    def asked(question: Callable[[], Any]) -> Any:
        clear_cache()
        try:
            return question()
        except Exception as error:
            return error

    truth = [asked(question) for question in questions]
    for name in names:
        found: Counter[str] = Counter()
        for question, right in zip(questions, truth, strict=True):
            host().host_set(*ENVIRONMENTS[name])
            got = asked(question)
            host().host_set(MXCSR, X87)
            if isinstance(got, Exception) or isinstance(right, Exception):
                found["raised"] += repr(got) != repr(right)
                continue
            found["other bits"] += bits(got) != bits(right)
            found["miss"] += got.lower > right.upper or got.upper < right.lower
        counted = ", ".join(f"{number} {word}" for word, number in found.items())
        print(f"{name}: of {count} brackets {counted}")


def main(arguments: list[str] | None = None) -> None:
    """Print the table of environments and engines."""
    parser = argparse.ArgumentParser(description=main.__doc__)
    parser.add_argument("--random", type=int, default=0, metavar="N")
    parser.add_argument("--without", action="append", default=[], metavar="ENVIRONMENT")
    given = parser.parse_args(arguments)
    heads = [name for name in ENVIRONMENTS if name not in given.without]
    right = {engine: afresh(question) for engine, question in QUESTIONS.items()}
    print("| | " + " | ".join(heads) + " |")
    print("|---" * (len(heads) + 1) + "|")
    for engine, question in QUESTIONS.items():
        cells = []
        for name in heads:
            host().host_set(*ENVIRONMENTS[name])
            answer = afresh(question)
            host().host_set(MXCSR, X87)
            raised = isinstance(answer, str) and answer != right[engine]
            cells.append("same" if answer == right[engine] else "raises" if raised else "other")
        print(f"| {engine} | " + " | ".join(cells) + " |")
    if given.random:
        _count_random(given.random, heads)


if __name__ == "__main__":
    main()
