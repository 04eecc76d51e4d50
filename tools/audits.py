"""All audits: error terms one by one, and random claims against truths.

    python tools/audits.py terms [rows envelopes divided sectors lines densities] [--only TEXT]
    python tools/audits.py random sums|sums-of-mixtures|divided|sectors|epochs|densities
    [--count 10000] [--seed 1]

``terms`` prints, for each term, how many values are outside their bounds with the term, without it
and with a hundredth of it. The exit code is 1 if a value is outside with the term, or if none is
outside without it (``error_terms.py``). ``random`` draws a given number of mechanisms and
thresholds, and exits with 1 if a value is outside.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple

import analytic_terms
import audit_analytic
import audit_deformed
import audit_divided
import audit_envelope
import audit_epochs
import audit_sector
import audit_sums
import audit_terms
import deformed_judges
import numpy as np
import sector_terms
from compiling import CERTIFIED, ROOT
from error_terms import (
    Change,
    Claim,
    Kernel,
    Switch,
    Term,
    claims_of,
    kernel,
    patched,
    report,
    report_claims,
    tally,
)

__all__ = ["ALL", "AUDITS", "RANDOM", "Audit", "Size", "core", "lines", "rows", "sectors"]

Ask = Callable[[Term, float], Any]


class Size(NamedTuple):
    """Numbers of points, lines, runs of values, divided laws and pairs of densities to ask."""

    points: int
    lines: int
    runs: int
    divided: Callable[[], list[audit_divided.Point]]
    densities: Sequence[Any]


points = cache(audit_divided.points)
ALL = Size(14, 24, audit_sums.RUNS, partial(points, 40, 3), analytic_terms.EVERY)


def _folder() -> Path:
    return Path(tempfile.mkdtemp(prefix="audits"))


# An error of all values that their bound knows of, and a door to bounds of cumulants: for tests.
PUT_IN = Switch(
    "put in",
    0.0,
    (("shifted_values.c", "error[k] = bound;", "error[k] = bound + {x}, re[k] += {x};"),),
)
BOUNDS = ROOT / "tests" / "c" / "doors" / "certified.c"


@cache
def core() -> Kernel:
    """The certified lines with the switches of three audits: one kernel, as it takes seconds."""
    three = (audit_terms, audit_envelope, audit_divided)
    return kernel(
        _folder(),
        CERTIFIED,
        [audit_sums.DOOR, audit_envelope.DOOR, audit_divided.DOOR, BOUNDS],
        [PUT_IN, *(switch for audit in three for switch in audit.SWITCHES)],
        [term for audit in three for term in audit.TERMS],
    )


@cache
def sectors(sizes: tuple[Change, ...] = ()) -> Kernel:
    """Laws of few steps, with a given number of places of the check."""
    return sector_terms.switched(_folder(), sizes)


rows = cache(audit_terms.judges_of)
lines = cache(deformed_judges.judges)


def _of_core(judge: Callable[[Any, Term], Any], term: Term, part: float) -> Any:
    with core().set_to(term.with_part(part)) as library:
        return judge(library, term)


@contextmanager
def of_rows(size: Size) -> Iterator[Ask]:
    judges = rows(size.points, size.lines, size.runs)
    yield partial(_of_core, lambda library, term: judges[term.asks](library))


@contextmanager
def of_envelopes(_: Size) -> Iterator[Ask]:
    yield partial(_of_core, lambda library, term: audit_envelope.JUDGES[term.asks](library))


@contextmanager
def of_divided(size: Size) -> Iterator[Ask]:
    some = size.divided()
    yield partial(_of_core, lambda library, _: tally(audit_divided.rows(library, some)))


@contextmanager
def of_sectors(_: Size) -> Iterator[Ask]:
    yield lambda term, part: sector_terms.judged(sectors(term.sizes), term, part)


@contextmanager
def of_lines(_: Size) -> Iterator[Ask]:
    with audit_deformed.switched() as engine:
        yield partial(audit_deformed.asked, engine, lines())


@contextmanager
def of_densities(size: Size) -> Iterator[Ask]:
    every = analytic_terms.EVERY
    analytic_terms.EVERY = list(size.densities)
    try:
        with analytic_terms.switched() as engine:
            yield partial(analytic_terms.judged, engine)
    finally:
        analytic_terms.EVERY = every


class Audit(NamedTuple):
    """Terms, their questions, and those that are not missed at a hundredth, or at nothing."""

    terms: tuple[Term, ...]
    asking: Callable[[Size], Any]
    least: int  # that must be asked
    slack: tuple[str, ...] = ()
    unseen: tuple[str, ...] = ()

    def is_missed(self, term: Term, dropped: int, part: int) -> bool:
        """Whether values are outside without the term, and with a hundredth of it, as required."""
        if term.name in self.unseen:
            return dropped == 0
        return (dropped if term.name in self.slack else part) > 0


AUDITS = {
    "rows": Audit(
        audit_terms.TERMS,
        of_rows,
        100,
        (
            "nodes of z, in the values",
            "nodes of z, in log M",
            "nodes: sides in runs",
            "profile: the difference",
        ),
        audit_terms.UNSEEN,
    ),
    "envelopes": Audit(audit_envelope.TERMS, of_envelopes, 50, (), audit_envelope.UNSEEN),
    "divided": Audit(
        audit_divided.TERMS,
        of_divided,
        4,
        (
            "divided: values of t left out",
            "divided: nodes of z above tapers",
            "divided: line of paths without a large loss",
        ),
    ),
    "sectors": Audit(
        sector_terms.TERMS,
        of_sectors,
        50,
        (
            "remainder of Gauss's rule on pieces",
            "pieces left out",
            "panels: between places of the check",
            "losses: remainder of Gauss's rule",
        ),
    ),
    "lines": Audit(audit_deformed.TERMS, of_lines, 20, audit_deformed.WORST),
    "densities": Audit(
        analytic_terms.TERMS,
        of_densities,
        1,
        (
            "masses beyond the ends: the remainder",
            "log mean: the remainder",
            "transform: the remainder",
            "transform: the remainder, of its log",
            "transform: guess of the log mean",
            "log mean of nodes: the remainder",
            "lines: beyond the last node",
        ),
    ),
}


# ---- random claims -------------------------------------------------------------------------------


def of_random_sums(seed: int, families: Sequence[str | None]) -> Iterator[Claim | str]:
    return audit_sums.claims(core().library, str(seed), families)


def of_random_divided(seed: int) -> Iterator[Claim | str]:
    rng = np.random.default_rng(seed)
    while True:
        point = audit_divided.drawn(rng)
        if point is not None:
            found = audit_divided.rows(core().library, [point])
            yield from claims_of(found, audit_sector.FUNCTIONALS, f"{point[:2]}")


def of_random_densities(seed: int) -> Iterator[Claim | str]:
    with patched(audit_analytic.PACKAGES, [audit_analytic.NOTED]) as engine:
        yield from audit_analytic.claims(engine, seed)


RANDOM: dict[str, Callable[[int], Iterator[Claim | str]]] = {
    "sums": partial(of_random_sums, families=(None,)),
    "sums-of-mixtures": partial(of_random_sums, families=audit_sums.STEPS),
    "divided": of_random_divided,
    "sectors": audit_sector.claims,
    "epochs": audit_epochs.claims,
    "densities": of_random_densities,
}


def main() -> int:
    """Print tables; 1 if a value is outside, or a term is not missed."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    commands = parser.add_subparsers(dest="command", required=True)
    terms = commands.add_parser("terms", help="each error term alone, dropped, and a hundredth")
    terms.add_argument("audits", nargs="*", metavar="AUDIT", help=", ".join(AUDITS))
    terms.add_argument("--only", default="", help="terms whose name has this text")
    drawn = commands.add_parser("random", help="random claims beside truths")
    drawn.add_argument("kind", choices=RANDOM)
    drawn.add_argument("--count", type=int, default=10_000)
    drawn.add_argument("--seed", type=int, default=1)
    given = parser.parse_args()
    if given.command == "random":
        return report_claims(RANDOM[given.kind](given.seed), given.count)
    failed = 0
    for name in given.audits or AUDITS:
        audit = AUDITS[name]
        print(f"\n{name}\n")
        with audit.asking(ALL) as ask:
            failed |= report(audit.terms, ask, audit.is_missed, given.only)
    return failed


if __name__ == "__main__":
    sys.exit(main())
