"""``pyengine papers``: figures and tables of the papers."""

from __future__ import annotations

import argparse
import os
from concurrent.futures import BrokenExecutor
from pathlib import Path

from pyengine.cli.errors import CommandError, require, user_errors
from pyengine.cli.parsers import command, option
from pyengine.cli.table import count
from pyengine.workbench.papers import NAMES

__all__ = ["register"]

DESCRIPTION = f"""\
Regenerate the figures and tables of the papers that this package builds on:

  {", ".join(NAMES)}

Each figure and table becomes a CSV file and, figures, a picture in DIR/PAPER; printed.csv there
compares the numbers that the paper prints with ours. DIR/index.md shows everything."""
EPILOG = """\
examples:
  pyengine papers -o papers              all papers
  pyengine papers hayes2023 -o papers    one of them

exit codes: 0 done; 1 done, but a printed number differs for no known reason; 2 wrong input or
unwritable output; 130 interrupted"""


def run(arguments: argparse.Namespace) -> int:
    """Regenerate papers."""
    from pyengine.workbench.papers.run import run as regenerate

    for name in arguments.names:
        if name not in NAMES:
            raise CommandError(f"NAME must be one of {', '.join(NAMES)}; got {name!r}")
    require("a picture", "plots", "matplotlib")
    if arguments.workers < 1:
        raise CommandError(f"--workers must be at least 1, got {arguments.workers}")
    names = list(dict.fromkeys(arguments.names)) or list(NAMES)
    try:
        with user_errors(arguments.output):
            return regenerate(names, arguments.output, arguments.workers)
    except BrokenExecutor:
        text = "a worker process was ended from outside; run the command again"
        raise CommandError(text) from None


register = command(
    "papers",
    "regenerate figures and tables of papers",
    DESCRIPTION,
    EPILOG,
    run,
    option("names", "NAME", f"{', '.join(NAMES)}; by default all", nargs="*"),
    option("-o --output", "DIR", "where the files go", required=True, type=Path),
    option("--workers", "N", "processes", type=count, default=os.cpu_count() or 1),
)
