"""Record proven bounds and times of random questions over all families; compare two records.

    python tools/answer_record.py ask --count 3000 --seed 1 --output before.jsonl
    python tools/answer_record.py ask --again before.jsonl --output after.jsonl
    python tools/answer_record.py compare before.jsonl after.jsonl
    python tools/answer_record.py page before.jsonl            # docs/speed_measured.md

Mechanisms are stored as Python text, so that another checkout, with its own environment, can ask
the same questions with ``--again``. `compare` lists questions that only one record answers, wider
bounds, longer times, and disjoint bounds; two proven brackets that are disjoint are a defect.
Caches are empty before each question.
"""

from __future__ import annotations

import argparse
import json
import math
import signal
import sys
import time
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from random_mechanisms import FAMILIES, MIXED, Draw

import pyengine as pe
from pyengine.caches import clear_cache

WIDER, SLOWER = 1.5, 1.5
NARROW = 1e-12  # relative widths below count as equal
QUICK = 0.02  # seconds below which no time is compared
LOWEST = 1e-250  # of values whose widths count
SECONDS = 60.0  # of one question
AGAIN, SHORT = 4, 0.05  # how often shorter questions are asked again, for the least time
SPEED = Path(__file__).parents[1] / "docs" / "speed_measured.md"


class Question(NamedTuple):
    """What is asked."""

    family: str
    mechanism: str
    adjacency: str
    question: str
    at: float


def questions(count: int, seed: int) -> Iterator[Question]:
    """Draw each single family as often as all mixtures of two to four families together."""
    d = Draw(seed)
    names = list(FAMILIES)
    for i in range(count):
        if i % 2:
            some = d.random.choice(MIXED, int(d.random.integers(2, 5)), replace=False).tolist()
            family = "mixed"
        else:
            some = [family := names[i // 2 % len(names)]]
        mechanism = " + ".join(FAMILIES[name](d) for name in some)
        question, at = d.question()
        yield Question(family, mechanism, d.adjacency(), question, at)


class OutOfTimeError(Exception):
    """A block took longer than it may."""


def _stop(*_: object) -> None:
    raise OutOfTimeError


@contextmanager
def limited(seconds: float) -> Iterator[None]:
    """Raise `OutOfTimeError` within the block after some seconds of processor time."""
    signal.signal(signal.SIGPROF, _stop)
    signal.setitimer(signal.ITIMER_PROF, seconds)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0.0)


def answer(asked: Question) -> dict[str, Any]:
    """The bounds, or why there are none, and times, each with empty caches.

    ``seconds`` is processor time, which some systems measure only in steps of milliseconds;
    ``least`` is the shortest of several times by the clock.
    """
    mechanism = eval(asked.mechanism, {"pe": pe})

    def bounds() -> pe.Bounds:
        ask = getattr(pe, asked.question)
        return ask(mechanism, asked.at, adjacency=asked.adjacency, bounds=True)

    clear_cache()
    begun, clock = time.process_time(), time.perf_counter()
    found: dict[str, Any] = {}
    try:
        with limited(SECONDS):
            known = bounds()
        found = {"lower": known.lower, "upper": known.upper}
    except pe.AccuracyError as refusal:
        found = {"refused": str(refusal)[:200]}
    except OutOfTimeError:
        found = {"refused": f"more than {SECONDS:g} s"}
    least, seconds = time.perf_counter() - clock, time.process_time() - begun
    for _ in range(AGAIN if least < SHORT and "lower" in found else 0):
        clear_cache()
        clock = time.perf_counter()
        bounds()
        least = min(least, time.perf_counter() - clock)
    return {**asked._asdict(), **found, "seconds": round(seconds, 6), "least": round(least, 7)}


def ask(asked: Iterable[Question], output: Path) -> None:
    """Write answers line by line; resumes an interrupted file."""
    done = sum(1 for _ in output.open()) if output.exists() else 0
    with output.open("a") as file:
        for i, each in enumerate(asked):
            if i < done:
                continue
            file.write(json.dumps(answer(each)) + "\n")
            file.flush()
            if i % 100 == 99:
                print(f"{i + 1} asked", file=sys.stderr)


def read(path: Path) -> list[dict[str, Any]]:
    """The answers of a record."""
    return [json.loads(line) for line in path.read_text().splitlines()]


def width(row: dict[str, Any]) -> float:
    """Relative width; 0 for exact or very small values, infinite for a refusal."""
    if "refused" in row:
        return math.inf
    lower, upper = row["lower"], row["upper"]
    if upper < LOWEST or lower == upper:
        return 0.0
    return math.inf if upper == math.inf else float((upper - lower) / upper)


class Comparison(NamedTuple):
    """Rows of two records that differ, by kind of difference."""

    refused: list[int]
    answered: list[int]
    wider: list[int]
    slower: list[int]
    disjoint: list[int]


def compared(before: list[dict[str, Any]], after: list[dict[str, Any]]) -> Comparison:
    """Losses and gains of the second record."""
    found = Comparison([], [], [], [], [])
    for i, (old, new) in enumerate(zip(before, after, strict=True)):
        if any(old[key] != new[key] for key in Question._fields):
            raise ValueError(f"row {i + 1}: the records ask different questions")
        was, now = "refused" not in old, "refused" not in new
        if was and not now:
            found.refused.append(i)
        if now and not was:
            found.answered.append(i)
        if was and now and not max(old["lower"], new["lower"]) <= min(old["upper"], new["upper"]):
            found.disjoint.append(i)
        if was and now and width(new) > WIDER * max(width(old), NARROW):
            found.wider.append(i)
        if new["seconds"] > SLOWER * max(old["seconds"], QUICK):
            found.slower.append(i)
    return found


def summary(rows: list[dict[str, Any]]) -> Iterator[str]:
    """A line for each family: number of questions, refused ones, wide ones, and times."""
    by_family = defaultdict(list)
    for row in rows:
        by_family[row["family"]].append(row)
        by_family["all"].append(row)
    heads = ("asked", "refused", "> 1e-10", "median", "99 %", "median s", "99 % s", "sum s")
    yield f"{'family':16}" + "".join(f"{head:>9}" for head in heads)
    for family, some in sorted(by_family.items(), key=lambda item: (item[0] == "all", item[0])):
        widths = np.array([width(row) for row in some])
        known = widths[np.isfinite(widths)]
        seconds = np.array([row["seconds"] for row in some])
        refused = sum("refused" in row for row in some)
        middle, last = np.quantile(known, [0.5, 0.99]) if known.size else (math.nan,) * 2
        counts = f"{len(some):9}{refused:9}{int((known > 1e-10).sum()):9}"
        times = f"{np.median(seconds):9.4f}{np.quantile(seconds, 0.99):9.2f}{seconds.sum():9.1f}"
        yield f"{family:16}{counts}{middle:9.1e}{last:9.1e}{times}"


FAMILY_WORDS = {
    "plain": "Gaussian noise, 1 to 200 steps",
    "sgd": "DP-SGD, 10 to 100,000 steps",
    "few_sgd": "DP-SGD, 1 to 30 steps",
    "rare_sgd": "DP-SGD, rates below 1e-4",
    "groups": "groups of 2 to 8 records",
    "truncated": "truncated Poisson samples",
    "fixed_batches": "batches without replacement",
    "laplace": "Laplace noise",
    "sampled_laplace": "Laplace noise on samples",
    "exponential": "exponential mechanism",
    "response": "randomized response",
    "generic": "(ε, δ) mechanisms",
    "discrete": "discrete Gaussian noise",
    "vectors": "probability vectors",
    "allocation": "random allocation, 1 to 10 epochs",
    "mixed": "two to four of these together",
    "all": "all",
}


def shortest(row: dict[str, Any]) -> float:
    """Seconds of one question: the least by the clock, or processor time of a long one.

    Other work on the machine distorts the clock of long questions, but hardly the least of short
    ones.
    """
    return float(row["least"] if row["least"] < SHORT else max(row["seconds"], SHORT / AGAIN))


def page(rows: list[dict[str, Any]]) -> Iterator[str]:
    """Lines of a table for the docs: percentiles of the time of a first proven answer."""
    yield "| questions about | asked | refused | median width | 50 % | 90 % | 99 % |"
    yield "|---|---|---|---|---|---|---|"
    for family, words in FAMILY_WORDS.items():
        some = [row for row in rows if family in (row["family"], "all")]
        widths = [w for w in map(width, some) if w < math.inf]
        times = np.quantile([1e3 * shortest(row) for row in some], [0.5, 0.9, 0.99])
        shown = " | ".join(f"{x:.2g} ms" if x < 99.5 else f"{x / 1e3:.2g} s" for x in times)
        refused = sum("refused" in row for row in some)
        yield f"| {words} | {len(some)} | {refused} | {np.median(widths):.0e} | {shown} |"


def report(before: list[dict[str, Any]], after: list[dict[str, Any]], most: int) -> int:
    """Print the differences; 1 if brackets are disjoint or an answer is lost."""
    for title, rows in (("before", before), ("after", after)):
        print(title, *summary(rows), sep="\n")
    found = compared(before, after)
    for name, rows in found._asdict().items():
        print(f"{name}: {len(rows)}", dict(Counter(before[i]["family"] for i in rows)))
        for i in rows[:most]:
            old, new = before[i], after[i]
            asked = f"{old['adjacency']} {old['question']}({old['at']:g})"
            was, now = (f"{width(x):.1e} {x['seconds']:.3f} s" for x in (old, new))
            print(f"  {old['mechanism']} | {asked}: {was} -> {now}")
    return 1 if found.disjoint or found.refused else 0


def main() -> int:
    """Ask, or compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n", maxsplit=1)[0])
    commands = parser.add_subparsers(dest="command", required=True)
    asking = commands.add_parser("ask", help="answer random questions, or those of another record")
    asking.add_argument("--count", type=int, default=3000)
    asking.add_argument("--seed", type=int, default=1)
    asking.add_argument("--again", type=Path, help="a record whose questions are asked")
    asking.add_argument("--output", type=Path, required=True)
    comparing = commands.add_parser("compare", help="what a second record lost or won")
    comparing.add_argument("before", type=Path)
    comparing.add_argument("after", type=Path)
    comparing.add_argument("--most", type=int, default=5, help="rows of each sort that are shown")
    writing = commands.add_parser("page", help="write docs/speed_measured.md")
    writing.add_argument("record", type=Path)
    given = parser.parse_args()
    if given.command == "page":
        text = "".join(f"{line}\n" for line in page(read(given.record)))
        SPEED.write_text(text, encoding="utf-8")
        return 0
    if given.command == "compare":
        before, after = read(given.before), read(given.after)
        size = min(len(before), len(after))
        return report(before[:size], after[:size], given.most)
    if given.again:
        asked: Iterable[Question] = (
            Question(*(row[key] for key in Question._fields)) for row in read(given.again)
        )
    else:
        asked = questions(given.count, given.seed)
    ask(asked, given.output)
    return 0


if __name__ == "__main__":
    sys.exit(main())
