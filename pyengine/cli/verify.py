"""``pyengine verify``: check numbers of another program against the true values."""

from __future__ import annotations

import argparse
import sys
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from pyengine._support import checks
from pyengine._support.certainty import ESTIMATE
from pyengine._support.decimals import written
from pyengine.cli.errors import CommandError, require, user_errors
from pyengine.cli.output import RED, paint, print_json, print_lines, print_table
from pyengine.cli.parsers import command, option, switch
from pyengine.cli.table import count

if TYPE_CHECKING:
    from pyengine.workbench.verification.verdicts import Verdict

__all__ = ["register"]

DESCRIPTION = """\
Compare values of γ, β, δ and ε that another program made with the truth, and print for each row
the relative error and whether it errs on the safe side: too large a γ, δ or ε and too small a β
only make a mechanism look less private than it is.

FILE is a .csv with a header, a .jsonl, or a .json with a list of objects; - is standard input.
Columns, separated by commas, semicolons or tabs:

  question     gamma_bound, trade_off, delta or epsilon
  at           the argument: κ, α, ε or δ
  value        what the program says
  adjacency    add, remove, add_remove (default), substitute
  noise_multiplier, sampling_probability, steps     of DP-SGD; for another
  mechanism    LaplaceMechanism, ...                its name, with its parameters as columns
  lower, upper bounds that the program claims; optional

Tables of `pyengine table` are such files."""
EPILOG = """\
examples:
  pyengine verify mine.csv
  my_accountant --csv | pyengine verify -
  pyengine verify mine.csv --tolerance 1e-3 --both-sides
  pyengine verify results/table.jsonl --engine auto

exit codes: 0 every row is safe or within the tolerance; 1 one is not, or its truth is not known;
2 wrong input; 130 interrupted"""


def run(arguments: argparse.Namespace) -> int:
    """Verify a file."""
    from pyengine.mechanisms import as_mechanism
    from pyengine.workbench.tables.execute import WorkersError
    from pyengine.workbench.tables.printed import labelled
    from pyengine.workbench.tables.progress import Progress
    from pyengine.workbench.verification.claims import read
    from pyengine.workbench.verification.verdicts import Rule, judge, truths

    with user_errors(arguments.file, WorkersError):
        rule = Rule(_tolerance(arguments.tolerance), arguments.both_sides)
        if not 1 <= arguments.digits <= 200:
            raise CommandError(f"--digits must lie in [1, 200], got {arguments.digits}")
        if arguments.engine == "reference":
            require("the reference", "reference", "flint")
        claims = read(arguments.file, doubles=arguments.doubles, ignore=arguments.ignore)
        with Progress(len(claims), "values", sys.stderr) as progress:
            answers = truths(
                claims, arguments.engine, arguments.digits, arguments.workers, progress.advance
            )
    verdicts = [judge(claim, truth, rule) for claim, truth in zip(claims, answers, strict=True)]
    shown = [verdict for verdict in verdicts if verdict.failed or not arguments.failures]
    if arguments.json:
        print_json({"rows": [_record(verdict) for verdict in shown], "count": _counts(verdicts)})
    else:
        if shown:
            _print(shown)
        claims = [verdict.claim for verdict in shown]
        made = [(claim.workflow, as_mechanism(claim.mechanism)) for claim in claims]
        print_lines(labelled([(name, run) for name, run in made if run is not None]))
        counts = ", ".join(f"{number} {word}" for word, number in _counts(verdicts).items())
        estimated = sum(verdict.truth.certainty == ESTIMATE for verdict in verdicts)
        of = f"; of {estimated} the truth's own error is an estimate, not proven"
        print_lines([counts + (of if estimated else "")])
    return 1 if any(verdict.failed for verdict in verdicts) else 0


def _tolerance(text: str) -> Fraction:
    value = checks.exact("--tolerance", text)
    if value < 0:
        raise CommandError(f"--tolerance must be >= 0, got {text!r}")
    return value


def _counts(verdicts: list[Verdict]) -> dict[str, int]:
    words = [verdict.word for verdict in verdicts]
    return {word: words.count(word) for word in sorted(set(words))}


def _print(verdicts: list[Verdict]) -> None:
    heads = ["row", "workflow", "question", "adjacency", "at", "value", "truth", "error", "verdict"]
    rows = []
    for verdict in verdicts:
        claim = verdict.claim
        asked = [str(claim.row), claim.workflow, claim.question, claim.adjacency]
        numbers = map(_short, (claim.at, claim.value, verdict.truth.value))
        error = "" if verdict.error is None else written(verdict.error, "+.1e")
        rows.append([*asked, *numbers, error, _word(verdict)])
    print_table(heads, rows)


def _word(verdict: Verdict) -> str:
    if not verdict.failed:
        return verdict.word
    why = f": {verdict.truth.message}" if verdict.truth.message else ""
    return paint(verdict.word, RED, sys.stdout) + why


def _short(text: str | None) -> str:
    """Text with enough digits to compare by eye."""
    if text is None or len(text) <= 16:
        return text or ""
    exact = Decimal(text) if "/" not in text else Decimal(float(Fraction(text)))
    tiny = exact != 0 and abs(exact) < Decimal("1e-300")  # near or below the smallest double
    return written(exact, ".9e") if tiny else written(float(exact), ".10g")


def _record(verdict: Verdict) -> dict[str, object]:
    claim, truth = verdict.claim, verdict.truth
    keys = ("row", "workflow", "question", "adjacency", "at", "value")
    return {
        **{key: getattr(claim, key) for key in keys},
        "truth": truth.value,
        "truth_lower": truth.lower,
        "truth_upper": truth.upper,
        "certainty": truth.certainty,
        "error": verdict.error,
        "verdict": verdict.word,
        "failed": verdict.failed,
        "message": truth.message,
    }


register = command(
    "verify",
    "check numbers of another program against the truth",
    DESCRIPTION,
    EPILOG,
    run,
    option("file", "FILE", "the numbers; - for standard input", type=Path),
    option(
        "--engine",
        None,
        "the truth: arbitrary precision (default), or double precision within its bounds",
        choices=("reference", "auto"),
        default="reference",
    ),
    option("--digits", "N", "digits of the reference (30)", type=count, default=30),
    option(
        "--tolerance", "T", "relative error on the unsafe side that passes (1e-9)", default="1e-9"
    ),
    switch("--both-sides", "fail larger errors on the safe side, too"),
    switch(
        "--doubles",
        "the program worked on the doubles nearest to the numbers in FILE, which are otherwise "
        "taken as exact",
    ),
    option(
        "--ignore",
        "COLUMN",
        "a column to ignore; repeat it for further ones",
        action="append",
        default=[],
    ),
    option("--workers", "N", "processes, as for table", type=count),
    switch("--failures", "print only the rows that fail"),
    switch("--json", "JSON instead of a table"),
)
