"""``pyengine statement``: a privacy statement about a run."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from pyengine._support import checks
from pyengine._support.markup import terminal_width
from pyengine.cli import grammar
from pyengine.cli.errors import CommandError, user_errors
from pyengine.cli.numbers import read_probabilities, read_probability
from pyengine.cli.output import (
    print_json,
    print_lines,
    print_table,
    remark,
    remarks_on,
    spelled,
)
from pyengine.cli.parsers import command, option, switch
from pyengine.engines.registry import ADJACENCIES
from pyengine.workbench.runs.files import RunFile

if TYPE_CHECKING:
    from pyengine.workbench.statement import Statement

__all__ = ["FIGURES", "as_texts", "read_figures", "register"]

DESCRIPTION = """\
Print what to report about a run: the mechanism, which data sets are neighbours, ε at δ, and bounds
on attacks. These are the true positive rate and the advantage of membership tests, and one bound
for all who re-identify a person, infer an attribute or reconstruct a record. All figures are
rounded up, and each says whether it is proven."""
EPILOG = """\
examples:
  pyengine run.toml                          the same as: pyengine statement run.toml
  pyengine statement run.toml --delta 1e-6 --fpr 1e-4 --kappa 1e-6 --format latex
  pyengine statement --noise 1 --p 0.01 --steps 1000 --delta 1e-5
  pyengine statement --noise 1 --batch-size 256 --dataset-size 60000 --sampling poisson \\
      --epochs 10 --delta 1e-5 --format markdown
  pyengine statement --noise 1 --p 0.01 --steps 1000 --delta 1e-5 --prior 0.5 --slack 1e-6

The table [statement] of a run file may hold delta, fpr, kappa, prior, slack, adjacency, title and
groups.
"""
# What is stated if neither flags nor the run file say it.
DEFAULTS = {"delta": ["1e-5"], "fpr": ["0.001", "0.01"], "kappa": ["0.0001", "0.01"], "prior": []}
FORMATS = ("text", "markdown", "latex", "json")
# The flags of a mechanism, and of the figures that are to be stated.
FIGURES = (
    option("--delta", "X", f"δ of (ε, δ) ({DEFAULTS['delta'][0]})"),
    option("--fpr", "X", "false positive rates of membership tests (0.001 0.01)", nargs="+"),
    option(
        "--kappa",
        "X",
        "success probabilities of a guess without the release (0.0001 0.01)",
        nargs="+",
    ),
    option(
        "--prior",
        "X",
        "probabilities that the record took part, to state the chance of a right guess",
        nargs="+",
    ),
    option(
        "--slack",
        "X",
        "also state μ of Gaussian differential privacy up to this δ, and its regret",
    ),
    grammar.MECHANISM,
    option(
        "--adjacency",
        "WORD",
        f"which data sets are neighbours: {', '.join(ADJACENCIES)} (add_remove)",
        choices=ADJACENCIES,
    ),
    switch(
        "--estimate",
        "accept estimated errors where a proof would take longer",
    ),
)


def read_figures(arguments: argparse.Namespace, file: RunFile) -> dict[str, Any]:
    """Read those flags and the table of the file, as keywords of what states the figures."""
    said = file.section("statement")

    def texts(name: str) -> list[str]:
        given = getattr(arguments, name)
        if given is not None:
            return [given] if isinstance(given, str) else list(given)
        return as_texts("statement", name, said.get(name, DEFAULTS.get(name, [])))

    adjacency = arguments.adjacency or said.get("adjacency", "add_remove")
    slack, priors = texts("slack"), texts("prior")
    with user_errors():
        return {
            "mechanism": file.only().mechanism,
            "delta": read_probability("delta", *texts("delta")[:1]),
            "adjacency": checks.choice("adjacency", adjacency, ADJACENCIES),
            "false_positive_rates": read_probabilities("fpr", texts("fpr")),
            "kappas": read_probabilities("kappa", texts("kappa")),
            "priors": read_probabilities("prior", priors) if priors else [],
            "slack": read_probability("slack", slack[0]) if slack else None,
            "proven": not arguments.estimate,
        }


def as_texts(section: str, name: str, value: Any) -> list[str]:
    """Texts of the numbers in an entry of a run file's table."""
    found = value if isinstance(value, list) else [value]
    if not all(isinstance(text, str) for text in found):
        raise CommandError(f"[{section}]: {name} must be numbers, got {value!r}")
    return [str(text) for text in found]


def _print(statement: Statement) -> None:
    """The statement as text, adapted to narrow terminals and to those without Greek letters."""
    text = str(statement).rstrip()
    columns = terminal_width()
    is_wide = not columns or max(map(len, text.splitlines())) <= columns
    if is_wide and spelled(text) == text:
        print(text)
        return
    from pyengine.workbench.statement import HEADS

    for title, texts in statement.head():
        print_lines(line if line in statement.notes else f"{title}: {line}" for line in texts)
    print()
    print_table(HEADS, statement.rows())
    print()
    print_lines(statement.tail())


def run(arguments: argparse.Namespace) -> int:
    """Print the statement in the chosen format."""
    from pyengine.workbench.statement import privacy_statement

    file = grammar.run_file_of(arguments)
    wanted = read_figures(arguments, file)
    with user_errors():
        statement = privacy_statement(**wanted)
    remarks = remarks_on(
        deltas=[wanted["delta"]],
        epsilons=[statement.figures[0].bound],
        records=grammar.records_of(file),
    )
    if arguments.format == "json":
        print_json({**statement.as_object(), "remarks": remarks})
    elif arguments.format == "latex":
        print(statement.latex(), end="")
    elif arguments.format == "markdown":
        print(spelled(statement.markdown().rstrip()))
    else:
        _print(statement)
    remark(remarks)
    return 0


register = command(
    "statement",
    "what to report about a run, on the safe side",
    DESCRIPTION,
    f"{EPILOG}\n{grammar.HELP}",
    run,
    *FIGURES,
    option("--format", "WORD", ", ".join(FORMATS), choices=FORMATS, default="text"),
)
