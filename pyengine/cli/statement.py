"""``pyengine statement``: what to report about a run."""

from __future__ import annotations

import argparse
from typing import Any

from pyengine.cli import grammar
from pyengine.cli.errors import CommandError
from pyengine.cli.numbers import read_probabilities, read_probability
from pyengine.cli.output import print_json, remark, remarks_on, spelled
from pyengine.cli.parsers import Commands, command
from pyengine.engines.registry import ADJACENCIES

__all__ = ["add_figures", "read_figures", "register"]

DESCRIPTION = """\
Print what to report about a run: the mechanism, who are neighbours, ε at δ, the true positive rate
of tests of membership, their advantage, and reconstruction or inference, which one bound covers:
whoever re-identifies a person, infers an attribute or reconstructs a record. All figures are
bounds, rounded up, and each says whether it is proven."""
EPILOG = """\
examples:
  pyengine statement --noise 1 --p 0.01 --steps 1000 --delta 1e-5
  pyengine statement --noise 1 --batch-size 256 --dataset-size 60000 --sampling poisson \\
      --epochs 10 --delta 1e-5 --format markdown
  pyengine statement --noise 1 --p 0.01 --steps 1000 --delta 1e-5 --prior 0.5 --slack 1e-6
  pyengine statement --file run.toml --delta 1e-6 --fpr 1e-4 --kappa 1e-6 --format latex
"""
FORMATS = ("text", "markdown", "latex", "json")


def register(commands: Commands) -> None:
    """Add the command to the parser."""
    summary = "what to report about a run, on the safe side"
    parser = command(commands, "statement", summary, DESCRIPTION, f"{EPILOG}\n{grammar.HELP}", run)
    add_figures(parser)
    parser.add_argument(
        "--format", choices=FORMATS, default="text", metavar="WORD", help=", ".join(FORMATS)
    )


def add_figures(parser: argparse.ArgumentParser) -> None:
    """Add the flags of a mechanism and of the figures that are to be stated."""
    parser.add_argument("--delta", required=True, metavar="X", help="δ of (ε, δ)")
    parser.add_argument(
        "--fpr",
        nargs="+",
        default=["0.001", "0.01"],
        metavar="X",
        help="false positive rates of tests of membership (0.001 0.01)",
    )
    parser.add_argument(
        "--kappa",
        nargs="+",
        default=["0.0001", "0.01"],
        metavar="X",
        help="success probabilities of a guess without the release (0.0001 0.01)",
    )
    parser.add_argument(
        "--prior",
        nargs="+",
        default=[],
        metavar="X",
        help="probabilities that the record took part, to state the chance of a right guess",
    )
    parser.add_argument(
        "--slack",
        metavar="X",
        help="state μ of Gaussian differential privacy as well, with its regret, up to this δ",
    )
    grammar.add_mechanism(parser)
    parser.add_argument(
        "--adjacency",
        choices=ADJACENCIES,
        default="add_remove",
        metavar="WORD",
        help=f"who are neighbours: {', '.join(ADJACENCIES)} (add_remove)",
    )
    parser.add_argument(
        "--estimate",
        action="store_true",
        help="do not take the time for proofs where the fastest engine estimates its error",
    )


def read_figures(arguments: argparse.Namespace) -> dict[str, Any]:
    """Read those flags, as keywords of what states the figures."""
    return {
        "mechanism": grammar.read_mechanism(arguments),
        "delta": read_probability("delta", arguments.delta),
        "adjacency": arguments.adjacency,
        "false_positive_rates": read_probabilities("fpr", arguments.fpr),
        "kappas": read_probabilities("kappa", arguments.kappa),
        "priors": read_probabilities("prior", arguments.prior) if arguments.prior else [],
        "slack": None if arguments.slack is None else read_probability("slack", arguments.slack),
        "proven": not arguments.estimate,
    }


def run(arguments: argparse.Namespace) -> int:
    """Print the statement of what the flags say."""
    from pyengine.statement import privacy_statement

    wanted = read_figures(arguments)
    try:
        statement = privacy_statement(**wanted)
    except ValueError as error:
        raise CommandError(str(error)) from None
    remarks = remarks_on(
        deltas=[wanted["delta"]],
        epsilons=[statement.figures[0].bound],
        records=grammar.records_of(arguments),
    )
    if arguments.format == "json":
        print_json({**statement.as_object(), "remarks": remarks})
    elif arguments.format == "latex":
        print(statement.latex(), end="")
    else:
        text = str(statement) if arguments.format == "text" else statement.markdown()
        print(spelled(text.rstrip()))
    remark(remarks)
    return 0
