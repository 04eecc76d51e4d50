"""``pyengine report``: an HTML page about a run."""

from __future__ import annotations

import argparse
from pathlib import Path

from pyengine._support import checks
from pyengine.cli import grammar
from pyengine.cli.errors import CommandError, require, user_errors
from pyengine.cli.numbers import read_probability
from pyengine.cli.output import remark, remarks_on
from pyengine.cli.parsers import command, option
from pyengine.cli.statement import FIGURES, as_texts, read_figures

__all__ = ["register"]

DESCRIPTION = """\
Write one page about a run, for a model card or a reviewer: the privacy statement, pictures, tables
with bounds, and what other neighbours, batches or several records of a user change. The page loads
nothing, and holds all its numbers as JSON."""
EPILOG = """\
examples:
  pyengine report run.toml --delta 1e-5 -o report.html
  pyengine report --noise 1 --p 0.01 --steps 1000 --delta 1e-5 -o report.html
  pyengine report run.toml --delta 1e-6 --title "Model 7" --attack "shadow models" 0.001 0.02 \\
      -o report.html
"""
SUFFIXES = (".html", ".htm")


def run(arguments: argparse.Namespace) -> int:
    """Compute the report and write it."""
    path = arguments.output
    _check_output(path)
    file = grammar.run_file_of(arguments)
    wanted = read_figures(arguments, file)
    from pyengine.workbench.report import Attack, privacy_report, save_report

    said = file.section("statement")
    title = arguments.title or said.get("title")
    words = {} if title is None else {"title": title}
    groups = arguments.groups
    if groups is None:
        groups = as_texts("statement", "groups", said.get("groups", ["2", "5"]))
    with user_errors():
        sizes = [checks.count("--groups", k, 2) for k in groups]
        attacks = [
            Attack(name, *(read_probability("attack", rate) for rate in rates))
            for name, *rates in arguments.attack
        ]
        report = privacy_report(**wanted, group_sizes=sizes, attacks=attacks, **words)
    with user_errors(path):
        save_report(report, path)
    print(path)
    found = [report.statement.figures[0].bound]
    records = grammar.records_of(file)
    remark(remarks_on(deltas=[wanted["delta"]], epsilons=found, records=records))
    return 0


def _check_output(path: Path) -> None:
    """Check before the computation that the page can be written."""
    if path.suffix.lower() not in SUFFIXES:
        raise CommandError(f"--output must end in {', '.join(SUFFIXES)}; got {str(path)!r}")
    require("a report", "report", "jinja2", "matplotlib")
    if path.is_dir():
        raise CommandError(f"{path}: Is a directory")
    if not path.parent.is_dir():
        raise CommandError(f"{path}: No such file or directory")


register = command(
    "report",
    "a page about a run, for a model card or a reviewer",
    DESCRIPTION,
    f"{EPILOG}\n{grammar.HELP}",
    run,
    option("-o --output", "FILE.html", "where the page goes", required=True, type=Path),
    *FIGURES,
    option("--title", "TEXT", "heading of the page (Privacy report)"),
    option(
        "--groups", "K", "numbers of records of one user to show beside the run (2 5)", nargs="*"
    ),
    option(
        "--attack",
        ("NAME", "FPR", "TPR"),
        "a measured test of membership, to be drawn beside the bounds; may be given again",
        nargs=3,
        action="append",
        default=[],
    ),
)
