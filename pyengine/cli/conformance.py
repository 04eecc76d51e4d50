"""``pyengine conformance``: accountants compared with the true values."""

from __future__ import annotations

import argparse
import importlib.util
import sys
from pathlib import Path
from typing import TYPE_CHECKING

from pyengine._support import checks
from pyengine._version import DISTRIBUTION
from pyengine.cli.errors import CommandError, user_errors
from pyengine.cli.output import RED, paint, print_json, print_table
from pyengine.cli.parsers import command, option, switch
from pyengine.cli.plot import check_picture, write

if TYPE_CHECKING:
    from pyengine.accounting.conformance import Case, Result

__all__ = ["register"]

DESCRIPTION = """\
Ask accountants for γ(κ), δ(ε) and ε(δ) of eighteen runs whose answers are known to 16 digits (one
to 12). Each runs with its own defaults in a process of its own. Printed are errors, times, and
times relative to pyengine's. An upper bound below the truth is UNSAFE; a dash is a run that the
accountant cannot answer.

Runs a to c2 draw Poisson samples, group those of two records of a user, truncated those with a
largest size, fixed and replaced batches without replacement; epoch and epochs are random
allocation. The others use all records: laplace, integers, geometric and coins are named for their
noise, tree adds up along a tree, choices are exponential mechanisms, best is a selection, curve is
zCDP; for the last three the truth is attained in the worst case.

Without names it takes every accountant that is installed. Known ones: dp_accounting, gdpnum,
opacus, prv_accountant, riskcal. Your own is a class named module:Class; see the guide for authors
of accountants."""
EPILOG = """\
examples:
  pyengine conformance
  pyengine conformance riskcal opacus --settings a
  pyengine conformance dp_accounting --json
  pyengine conformance mypackage.adapter:MyAccountant --picture errors.png

exit codes: 0 no answer is unsafe; 1 one is; 2 wrong input, or no accountant is installed"""
LIMIT = 60.0
NOBODY = f"no accountant takes part: pip install '{DISTRIBUTION}[peers]'"
PEERS = ("dp_accounting", "gdpnum", "opacus", "prv_accountant", "riskcal")


def run(arguments: argparse.Namespace) -> int:
    """Run the accountants, print and draw; returns 1 if an answer is unsafe."""
    from pyengine.accounting.conformance import run as ask

    with user_errors():
        limit = float(checks.positive("--time-limit", arguments.time_limit))
    if arguments.picture:
        check_picture("--picture", arguments.picture)
    cases = _cases(arguments.settings)
    asked = list(dict.fromkeys(arguments.accountants or _installed()))
    for name in asked:
        if name not in PEERS and ":" not in name:
            raise CommandError(
                f"accountants must be among {', '.join(PEERS)}, or module:Class; got {name!r}"
            )
    if not asked:
        raise CommandError(NOBODY)
    names = ["pyengine", *asked]
    results, absent = ask(names, cases, limit=limit, progress=_Counter())
    if sys.stderr.isatty():
        print(file=sys.stderr)
    for name, why in absent.items():
        hint = f" (pip install {name.replace('_', '-')})" if name in PEERS else ""
        print(f"pyengine: {name} takes no part: {why}{hint}", file=sys.stderr)
    if len(absent) == len(names) - 1:
        raise CommandError(NOBODY)
    _report(results, absent, as_json=arguments.json)
    if arguments.picture:
        from pyengine.workbench.plots.conformance import errors_figure

        write(errors_figure(results), arguments.picture)
    return 1 if any(result.unsafe for result in results) else 0


class _Counter:
    """Show the number of answers so far, on a terminal."""

    def __init__(self) -> None:
        self.count = 0

    def __call__(self, more: int) -> None:
        self.count += more
        if sys.stderr.isatty():
            print(f"\r{self.count} answers", end="", file=sys.stderr, flush=True)


def _installed() -> list[str]:
    return [name for name in PEERS if importlib.util.find_spec(name) is not None]


def _cases(settings: list[str] | None) -> list[Case]:
    from pyengine.accounting.conformance import load

    cases = load()
    known = list(dict.fromkeys(case.setting.name for case in cases))
    for name in settings or []:
        if name not in known:
            raise CommandError(f"--settings must be among {', '.join(known)}; got {name!r}")
    return [case for case in cases if case.setting.name in (settings or known)]


def _report(results: list[Result], absent: dict[str, str], *, as_json: bool) -> None:
    from pyengine.accounting.conformance.report import HEADS, YARDSTICK, as_objects, groups

    if as_json:
        print_json({"absent": absent, "rows": as_objects(results)})
        return
    versions = {result.accountant: result.version for result in results}
    print(", ".join(f"{name} {version}" for name, version in versions.items()))
    for setting, rows in groups(results, lambda word: paint(word, RED)):
        print(f"\n{setting.name}: {setting.words}")
        print_table(HEADS, rows)
    unsafe = sum(result.unsafe for result in results)
    answers = sum(r.value is not None for r in results if r.accountant != YARDSTICK)
    print(f"\n{unsafe} of {answers} answers are unsafe: they promise more privacy than there is")


register = command(
    "conformance",
    "compare accountants with the truth: errors, unsafe answers, times",
    DESCRIPTION,
    EPILOG,
    run,
    option("accountants", "ACCOUNTANT", "names of accountants (all installed ones)", nargs="*"),
    option("--settings", "NAME", "a, b, group, ... (all)", nargs="+"),
    option("--time-limit", "S", f"seconds an answer ({LIMIT:g})", default=f"{LIMIT:g}"),
    switch("--json", "JSON instead of tables"),
    option("--picture", "FILE", "draw the errors, as .png, .svg or .pdf", type=Path),
)
