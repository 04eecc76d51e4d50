"""Command line: generate the data file, try its failures again, cross-check the methods."""

from __future__ import annotations

import argparse
from pathlib import Path

from . import check
from .generate import generate, retry

DATA = Path(__file__).resolve().parent.parent / "data"


def main() -> None:
    """Run the command that was asked for."""
    parser = argparse.ArgumentParser(prog="python -m tests.reference")
    commands = parser.add_subparsers(dest="command", required=True)
    make = commands.add_parser("generate", help="write tests/data/dp_sgd_random.json")
    again = commands.add_parser("retry", help="try the failures of the file again")
    for command in (make, again):
        command.add_argument("--seed", type=int, default=2)
        command.add_argument("--output", type=Path, default=DATA / "dp_sgd_random.json")
        command.add_argument("--seconds", type=float, default=float("inf"), help="then stop")
    make.add_argument("--limit", type=int, default=10**9, help="number of draws at most")
    make.add_argument("--resume", action="store_true", help="go on where the file ends")
    check_all = commands.add_parser("check", help="print the cross-checks")
    check_all.add_argument("--output", type=Path, default=DATA / "dp_sgd_random.json")
    check_all.add_argument("--most", type=int, default=8, help="points of two and three steps")
    given = parser.parse_args()
    if given.command == "generate":
        generate(given.output, given.seed, given.limit, given.seconds, given.resume)
    elif given.command == "retry":
        retry(given.output, given.seed, given.seconds)
    else:
        check.published(DATA / "dp_sgd_published.json")
        check.nested_sample(given.output, given.most)


if __name__ == "__main__":
    main()
