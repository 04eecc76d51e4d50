"""``pyengine table``: tables of many runs."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path

from pyengine.cli.errors import CommandError
from pyengine.cli.parsers import Commands, command

__all__ = ["register"]

DESCRIPTION = """\
Compute tables of DP-SGD runs and write them to a directory:

  table.csv   one row per value: parameters, value, lower and upper bound, engine
  table.json  the same rows, with versions, machine, time and specification
  gamma.png   reconstruction robustness γ(κ) of the runs

Without a specification it takes the real workflows that come with the package."""
EPILOG = """\
examples:
  pyengine table -o results               six real workflows
  pyengine table my.toml -o results       your own runs

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


def register(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = command(
        commands,
        "table",
        "compute γ, β, ε and δ of DP-SGD runs with error bounds",
        DESCRIPTION,
        EPILOG,
        run,
    )
    parser.add_argument("specification", nargs="?", metavar="SPEC.toml", help="what to compute")
    parser.add_argument(
        "-o", "--output", required=True, type=Path, metavar="DIR", help="where the files go"
    )


def run(arguments: argparse.Namespace) -> int:
    """Compute a table and write its files."""
    from pyengine.tables import run as tables
    from pyengine.tables.files import prepare
    from pyengine.tables.spec import SpecificationError, load

    try:
        specification = load(arguments.specification)
        if tables.draws(specification) and importlib.util.find_spec("matplotlib") is None:
            raise CommandError("gamma.png needs matplotlib: pip install 'pyengine[table]'")
        prepare(arguments.output)  # before the work, not after it
        return tables.run(specification, arguments.output)
    except SpecificationError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        where = error.filename or arguments.output
        raise CommandError(f"{where}: {error.strerror or error}") from None
