"""Command line of the campaign."""

from __future__ import annotations

import argparse
import datetime
import subprocess
import sys
import time
from collections import Counter
from pathlib import Path

from campaign import worker
from campaign.journal import Journal, read
from campaign.pool import MEMORY, SECONDS, TRUTH_SECONDS, records
from campaign.report import add_row, columns_of, snippet, summary

BAD = {"wrong", "outside, proven", "crashed", "memory"}
GOOD = {"right", "declined", "no truth"}


def _commit() -> str:
    found = subprocess.run(
        ["git", "describe", "--always", "--dirty", "--exclude=*"], capture_output=True, text=True
    )
    return found.stdout.strip() or "unknown"


def _run(arguments: argparse.Namespace) -> int:
    commit = _commit()  # now: a long run may outlive it
    journal = Journal(arguments.journal, arguments.seed)
    done = journal.done()
    indices = [i for i in range(arguments.first, arguments.count) if i not in done]
    end = time.monotonic() + 60.0 * arguments.minutes
    asked = records(
        arguments.seed,
        (i for i in indices if time.monotonic() < end),
        workers=arguments.workers,
        seconds=arguments.seconds,
        truth_seconds=arguments.truth_seconds,
        memory=arguments.memory,
    )
    counts: Counter[str] = Counter()
    for record in asked:
        journal.add(record)
        counts.update(columns_of(record))
        if record["verdict"] not in GOOD:
            print(snippet({"seed": arguments.seed, **record}), flush=True)
    found = read(journal.path)
    print(summary(found))
    if arguments.row is not None:
        today = datetime.date.today().isoformat()
        add_row(arguments.row, today, commit, arguments.seed, found)
    return 1 if any(columns_of(record) & BAD for record in found) else 0


def _ask(arguments: argparse.Namespace) -> int:
    *_, (_, record) = worker.ask(arguments.seed, arguments.index)
    print(snippet({"seed": arguments.seed, **record}))
    for key, value in record.items():
        print(f"{key}: {value}")
    return 0 if record["verdict"] in GOOD else 1


def _report(arguments: argparse.Namespace) -> int:
    found = read(arguments.journal)
    for record in found:
        if record["verdict"] not in GOOD or arguments.all:
            print(snippet(record))
    print(summary(found))
    return 0


def main(arguments: list[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m campaign", description=__doc__)
    commands = parser.add_subparsers(required=True)
    run = commands.add_parser("run", help="ask the questions of a seed that were not asked yet")
    run.add_argument("--first", type=int, default=0, help="the first question")
    run.add_argument("--count", type=int, default=2000, help="questions FIRST to COUNT - 1")
    run.add_argument("--seed", default=datetime.date.today().strftime("%Y%m%d"))
    run.add_argument("--journal", type=Path, default=None)
    run.add_argument("--workers", type=int, default=1)
    run.add_argument("--minutes", type=float, default=1e6, help="ask nothing new after that")
    run.add_argument("--seconds", type=float, default=SECONDS, help="limit of an answer")
    run.add_argument("--truth-seconds", type=float, default=TRUTH_SECONDS, help="limit of a truth")
    run.add_argument("--memory", type=float, default=MEMORY, help="limit of a question, in GiB")
    run.add_argument("--row", type=Path, default=None, help="page whose table gets a row")
    run.set_defaults(command=_run)
    ask = commands.add_parser("ask", help="ask one question again, in this process")
    ask.add_argument("seed")
    ask.add_argument("index", type=int)
    ask.set_defaults(command=_ask)
    report = commands.add_parser("report", help="print what a journal holds")
    report.add_argument("journal", type=Path)
    report.add_argument("--all", action="store_true", help="every question, not findings alone")
    report.set_defaults(command=_report)
    found = parser.parse_args(arguments)
    if getattr(found, "journal", "") is None:
        found.journal = Path("build") / "campaign" / f"{found.seed}.jsonl"
    return int(found.command(found))


if __name__ == "__main__":
    sys.exit(main())
