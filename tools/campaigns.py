"""Random questions against truth from other code, for as long as you like.

    python tools/campaigns.py compositions mixtures --answers 100000 --seed 1
    python tools/campaigns.py smooth few-steps --minutes 5
    python tools/campaigns.py conversions --answers 20000
    python tools/campaigns.py menus --answers 2000
    python tools/campaigns.py ends --answers 20000

Kinds of mechanisms, which take turns: ``compositions`` of Gaussian steps (``second_contour.py``);
``mixtures``, which are ``group``, ``mixture``, ``truncated``, ``fixed``, ``substitute``,
``composition`` and ``beside-few-losses`` (``mixture_contour.py``); ``smooth``, which are
``densities``, ``expressions``, ``batches`` and ``epochs`` (``smooth_contour.py``); ``few-steps``,
two to a hundred of DP-SGD (`pyengine.reference`). Case i of a seed is always the same: ``--first
i`` begins with it.

The others run alone. ``conversions`` compares each function of `pyengine.duality` and
`pyengine.baselines` with formulas in balls. ``menus`` compares bounds of `pyengine.adaptive` with a
second program on another grid. ``ends`` and ``levels`` ask at and next to atoms and ends of losses,
``exact`` and ``lattice`` by name (``tests/fuzz_ends.py``, ``fuzz_levels.py``), and warnings are
errors. The exit code is 1 if an answer is outside its bounds.
"""

from __future__ import annotations

import argparse
import collections
import math
import sys
import time
import warnings
from collections.abc import Callable
from functools import partial
from pathlib import Path

import mpmath
import numpy as np

sys.path.insert(0, str(Path(__file__).resolve().parents[1] / "tests"))

import adaptive_truth
import conversion_truth
import fuzz_ends
import fuzz_levels
import mixture_contour
import second_contour
import smooth_contour
from bounds_tally import Case, Tally

import pyengine as pe

EACH = 100  # cases from one line to the next
PATIENT = 20.0  # seconds of the reference for an epoch
MENU_TOLERANCE = 1e-4


# ---- kinds of mechanisms -------------------------------------------------------------------------


def of_few_steps(rng: np.random.Generator, given: argparse.Namespace) -> Case:
    return second_contour.case(
        second_contour.few(rng), rng, given.seconds or second_contour.SECONDS, ends=False
    )


def of_compositions(rng: np.random.Generator, given: argparse.Namespace) -> Case:
    return second_contour.case(
        second_contour.drawn(rng), rng, given.seconds or second_contour.SECONDS
    )


def of_mixtures(name: str, rng: np.random.Generator, _: argparse.Namespace) -> Case:
    return mixture_contour.case(name, mixture_contour.FAMILIES[name], rng)


def of_smooth(name: str, rng: np.random.Generator, given: argparse.Namespace) -> Case:
    more = {"seconds": given.seconds or PATIENT} if name == "epochs" else {}
    run, asked = getattr(smooth_contour, name)(rng, **more)
    return Case(run, f"{run}", asked)


MIXTURES = {name.replace(" ", "-"): name for name in mixture_contour.FAMILIES}
SMOOTH = ("densities", "expressions", "batches", "epochs")
KINDS: dict[str, Callable[[np.random.Generator, argparse.Namespace], Case]] = {
    "compositions": of_compositions,
    **{kind: partial(of_mixtures, name) for kind, name in MIXTURES.items()},
    **{name: partial(of_smooth, name) for name in SMOOTH},
    "few-steps": of_few_steps,
}
TOGETHER = {"mixtures": [*MIXTURES], "smooth": [*SMOOTH]}


def of_kinds(given: argparse.Namespace) -> int:
    """Ask random cases until there are enough answers, and print the verdicts."""
    tallies = {name: Tally(given.list, given.method) for name in given.kinds}
    counts: collections.Counter[str] = collections.Counter()
    index = given.first
    while sum(tally.judged for tally in tallies.values()) < given.answers and in_time(given):
        name = given.kinds[index % len(given.kinds)]
        case = KINDS[name](np.random.default_rng([given.seed, index]), given)
        counts[f"{name}, {'truth' if case.truths else 'none'}"] += 1
        tallies[name].judge(case.run, [*case.truths, *case.ends], f"{index}, {case.where}")
        index += given.stride
        if (index - given.first) // given.stride % EACH == 0:
            print(index, dict(counts), flush=True)
    print(index, f"cases: {dict(counts)}")
    for name, tally in tallies.items():
        if tally.judged:
            print(f"{name}: {tally.report()}")
    return int(
        any(tally.verdicts["OUTSIDE"] + tally.verdicts["CROSSED"] for tally in tallies.values())
    )


def in_time(given: argparse.Namespace) -> bool:
    """Whether minutes are left."""
    return time.monotonic() - given.started < 60.0 * given.minutes


# ---- campaigns that run alone --------------------------------------------------------------------


def of_conversions(given: argparse.Namespace) -> int:
    """Print how many answers are on the wrong side, or outside the stated error."""
    wrong = 0
    print(f"{'function':30} inputs  unsafe outside  worst error in units of the stated one")
    for name in conversion_truth.CONVERSIONS:
        found = conversion_truth.campaign(name, given.answers, given.seed)
        wrong += found.unsafe + found.outside
        counts = f"{found.asked:6} {found.unsafe:7} {found.outside:7} {found.worst:12.3g}"
        print(f"{name:30} {counts}", *found.examples[:3], sep="\n    ", flush=True)
    return int(wrong > 0)


def of_menus(given: argparse.Namespace) -> int:
    """Print counts by kinds of limits, orders and kinds of steps."""
    rng = np.random.default_rng(given.seed)
    counts: collections.Counter[tuple[str, str]] = collections.Counter()
    farthest, asked = 0.0, 0
    while asked < given.answers and in_time(given):
        case, asked = adaptive_truth.drawn(rng, many=given.many), asked + 1
        try:
            found, value, error = adaptive_truth.judged(case, MENU_TOLERANCE)
        except pe.AccuracyError as refusal:
            counts["refused", case.sort] += 1
            print(case, refusal, flush=True)
            continue
        for group in {case.sort, case.order, *(choice.kind for choice in case.menu)}:
            counts["asked", group] += 1
        if adaptive_truth.is_outside(found, value, error):
            counts["outside", case.sort] += 1
            print("outside:", case, found, value, error, flush=True)
        elif error > MENU_TOLERANCE * value:  # the second program has fewer than four digits
            counts["vague", case.sort] += 1
        elif value > 0.0:
            farthest = max(farthest, abs(found.value / value - 1.0))
    print(f"{asked:,} menus; values at most {farthest:.1e} apart where both have four digits")
    for (what, group), k in sorted(counts.items()):
        print(f"  {what}, {group}: {k:,}")
    return int(any(what == "outside" for what, _ in counts))


def of_ends(given: argparse.Namespace) -> int:
    """Print counts by kinds of mechanisms, questions and engines."""
    warnings.simplefilter("error")
    counts: dict[tuple[str, ...], collections.Counter[str]] = collections.defaultdict(
        collections.Counter
    )
    asked, index = 0, given.first
    while asked < given.answers and in_time(given):
        with mpmath.workdps(fuzz_ends.DIGITS):
            cases = list(fuzz_ends.questions(given.seed, index))
        for case in cases:
            if given.method not in ("auto", case.method):
                continue
            asked += 1
            verdict = "held"
            try:
                bounds = fuzz_ends.ask(case)
                if bounds is None:
                    verdict = "refused"
                elif not fuzz_ends.is_held(case, bounds):
                    verdict = "WRONG"
                    print(f"WRONG {index}: {case}: {bounds}", flush=True)
            except Exception as error:
                verdict = "FAILED"
                print(f"FAILED {index}: {case}: {error!r}", flush=True)
            counts[case.kind, case.question, case.method][verdict] += 1
        index += given.stride
    for key, row in sorted(counts.items()):
        print(" ".join(key).ljust(32), dict(row))
    total = sum(counts.values(), collections.Counter())
    print(f"mechanisms {given.first} to {index - 1}: {dict(total)}")
    return int(total["WRONG"] + total["FAILED"] > 0)


def of_levels(given: argparse.Namespace) -> int:
    """Print how many levels are missed, how wide brackets are and how far off values, by kind."""
    warnings.simplefilter("error")
    found: dict[str, list[fuzz_levels.Found]] = collections.defaultdict(list)
    for case in fuzz_levels.cases(given.answers, given.seed):
        found[case.kind].append(fuzz_levels.ask(case))
        if not found[case.kind][-1].held:
            print("outside:", case, found[case.kind][-1], flush=True)
    missed = 0
    for kind, rows in sorted(found.items()):
        bad = sum(not row.held for row in rows)
        missed += bad
        width, miss = (
            ", ".join(
                f"{x:.1e}"
                for x in np.quantile([getattr(row, of) for row in rows], [0.5, 0.9, 0.99])
            )
            for of in ("width", "miss")
        )
        print(f"{kind}: {len(rows)} levels, {bad} outside; median, 90 %, 99 % of relative widths")
        print(f"    {width}; of errors of values {miss}")
    return int(missed > 0)


ALONE = {
    "conversions": of_conversions,
    "menus": of_menus,
    "ends": of_ends,
    "levels": of_levels,
}


def main() -> int:
    """Run a campaign; 1 if an answer is outside its bounds."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("kinds", nargs="+", choices=[*KINDS, *TOGETHER, *ALONE], metavar="KIND")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--first", type=int, default=0, help="case to begin with")
    parser.add_argument("--stride", type=int, default=1, help="to share a seed among processes")
    parser.add_argument("--answers", type=int, default=10_000, help="or cases, of one by itself")
    parser.add_argument("--minutes", type=float, default=math.inf)
    parser.add_argument("--list", action="store_true", help="print what is wide or falls back")
    parser.add_argument("--many", action="store_true", help="menus of 5 to 80 steps")
    parser.add_argument("--method", default="auto")
    parser.add_argument(
        "--seconds",
        type=float,
        help="of the reference for a composition, an epoch",
    )
    given = parser.parse_args()
    given.started = time.monotonic()
    given.kinds = [name for kind in given.kinds for name in TOGETHER.get(kind, [kind])]
    alone = [ALONE[name] for name in given.kinds if name in ALONE]
    if not alone:
        return of_kinds(given)
    if len(given.kinds) > 1:
        parser.error(f"ask one of {', '.join(ALONE)} by itself")
    return alone[0](given)


if __name__ == "__main__":
    sys.exit(main())
