"""The command line: ``pyengine table`` and what it says when something is wrong.

Exit codes: 0 all values computed, 1 computed but some values refused, 2 wrong input or a file that
cannot be written, 130 interrupted.
"""

from __future__ import annotations

import argparse
import importlib.util
import io
import sys
from collections.abc import Sequence
from pathlib import Path

from pyengine._version import __version__
from pyengine.tables.files import prepare
from pyengine.tables.run import draws, run
from pyengine.tables.spec import SpecificationError, load

__all__ = ["main"]

DESCRIPTION = "Differential privacy as hypothesis testing: exact numbers for DP-SGD, fast."
TABLE_HELP = "compute γ, β, ε and δ of DP-SGD runs with error bounds"
TABLE_DESCRIPTION = """\
Compute tables of DP-SGD runs and write them to a directory:

  table.csv   one row per value: parameters, value, lower and upper bound, engine
  table.json  the same rows, with versions, machine, time and specification
  gamma.png   reconstruction robustness γ(κ) of the runs

Without a specification it takes the real workflows that come with the package."""
TABLE_EPILOG = """\
a specification:

  [gamma_bound]                 # also [trade_off] alpha, [delta] epsilon, [epsilon] delta
  kappa = [1e-5, 1e-3]
  adjacency = ["add"]           # "add", "remove", "add_remove"

  [[workflow]]
  name = "my run"
  noise_multiplier = 1.0
  sampling_probability = "256/60000"
  steps = 1000

exit codes: 0 done; 1 done, but no engine could stand behind some values (column "message" says
why); 2 wrong input or unwritable output, the old files are untouched; 130 interrupted"""


class CommandError(Exception):
    """A command cannot be carried out; the message is all that its user needs."""


def main(argv: Sequence[str] | None = None) -> int:
    """Run the command line.

    Parameters
    ----------
    argv : sequence of str, optional
        Arguments without the program's name; by default those of the process.

    Returns
    -------
    int
        Exit code.
    """
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="replace")  # a terminal without Greek letters
    arguments = _parser().parse_args(argv)
    try:
        return int(arguments.run(arguments))
    except CommandError as error:
        print(f"pyengine: error: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("pyengine: interrupted", file=sys.stderr)
        return 130


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="pyengine", description=DESCRIPTION)
    parser.add_argument("--version", action="version", version=f"pyengine {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    table = commands.add_parser(
        "table",
        help=TABLE_HELP,
        description=TABLE_DESCRIPTION,
        epilog=TABLE_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    table.add_argument("specification", nargs="?", metavar="SPEC.toml", help="what to compute")
    table.add_argument(
        "-o", "--output", required=True, type=Path, metavar="DIR", help="where the files go"
    )
    table.set_defaults(run=_table)
    return parser


def _table(arguments: argparse.Namespace) -> int:
    try:
        specification = load(arguments.specification)
        if draws(specification) and importlib.util.find_spec("matplotlib") is None:
            raise CommandError("gamma.png needs matplotlib: pip install 'pyengine[table]'")
        prepare(arguments.output)  # before the work, not after it
        return run(specification, arguments.output)
    except SpecificationError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        where = error.filename or arguments.output
        raise CommandError(f"{where}: {error.strerror or error}") from None
