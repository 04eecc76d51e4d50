"""``pyengine table``: tables of many runs."""

from __future__ import annotations

import argparse
import sys
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from pyengine.cli.errors import CommandError, require, user_errors
from pyengine.cli.parsers import command, either, option, switch

if TYPE_CHECKING:
    from pyengine.workbench.tables.spec import Specification

__all__ = ["count", "register"]

DESCRIPTION = """\
Compute tables and write them to a directory:

  table.csv, table.jsonl, table.parquet   one row per value: mechanism and parameters,
                                          value, bounds, error, engine
  gamma.png                               reconstruction robustness γ(κ) of the runs
  metadata.json                           specification, versions, machine, times

Without a specification it computes the real workflows that come with the package.
If it was interrupted, the same command goes on where it stopped."""
EPILOG = """\
examples:
  pyengine table -o results                         six real workflows
  pyengine table my.toml -o results --workers 8     your own runs, in eight processes
  pyengine table my.toml -o results --dask tcp://127.0.0.1:8786
  pyengine table my.toml -o results --shard 3/8     one of eight parts, for arrays of jobs
  pyengine table my.toml -o results --merge         the table of all parts

a specification:

  engine = "reference"          # or "auto", the default: double precision, fast
  digits = 30                   # of the reference
  formats = ["csv", "jsonl"]    # also "parquet"

  [gamma_bound]                 # also [trade_off] alpha, [delta] epsilon, [epsilon] delta
  kappa = [1e-5, 1e-3]
  adjacency = ["add"]           # "add", "remove", "add_remove", ...

  [[workflow]]
  name = "my run"
  mechanism = "dp_sgd"                 # also "laplace", "LaplaceMechanism", ...
  noise_multiplier = ["1", "1.5"]      # a list makes a grid
  sampling_probability = "256/60000"
  steps = 1000

exit codes: 0 done; 1 done, but some values could not be computed (column "message" says why);
2 wrong input, unwritable output or lost workers, an older table is untouched; 3 a defect of
pyengine left a value empty; 130 interrupted"""


def count(text: str) -> int:
    """Parse a number of workers."""
    if not text.isdecimal():
        raise argparse.ArgumentTypeError(f"must be an integer >= 0, got {text!r}")
    return int(text)


def shard(text: str) -> tuple[int, int]:
    """Parse a shard, such as 3/8."""
    index, _, number = text.partition("/")
    if not (index.isdecimal() and number.isdecimal() and 1 <= int(index) <= int(number)):
        raise argparse.ArgumentTypeError(f"must be I/N with 1 <= I <= N, such as 3/8, got {text!r}")
    return int(index), int(number)


def run(arguments: argparse.Namespace) -> int:
    """Compute a table and write its files."""
    from pyengine.workbench.tables import run as tables
    from pyengine.workbench.tables.execute import WorkersError
    from pyengine.workbench.tables.journal import JournalError
    from pyengine.workbench.tables.spec import format_names, load

    words = {key: getattr(arguments, key) for key in ("workers", "dask", "restart")}
    try:
        with user_errors(arguments.output, JournalError):
            specification = load(arguments.specification)
            if arguments.formats is not None:
                formats = format_names(arguments.formats.split(","))
                specification = replace(specification, formats=formats)
            _check_packages(specification, arguments)
            if not arguments.merge:
                return tables.run(specification, arguments.output, shard=arguments.shard, **words)
            if words["workers"] is not None or words["dask"] or words["restart"]:
                raise CommandError("--merge computes nothing: give no --workers, --dask, --restart")
            return tables.merge(specification, arguments.output)
    except WorkersError as error:
        raise CommandError(f"{error}; what is done is kept, the same command goes on") from None
    except tables.Interrupted as error:
        print(f"pyengine: interrupted; {error}", file=sys.stderr)
        return 130


def _check_packages(specification: Specification, arguments: argparse.Namespace) -> None:
    """Check before the computation that all optional packages are installed."""
    from pyengine.workbench.tables.picture import draws

    if arguments.shard is None and draws(specification):
        require("gamma.png", "table", "matplotlib")
    if arguments.shard is None and "parquet" in specification.formats:
        require("table.parquet", "parquet", "pyarrow")
    if specification.engine == "reference":
        require("the reference", "reference", "flint")
    if arguments.dask is not None:
        require("--dask", "dask", "distributed")


register = command(
    "table",
    "compute tables of γ, β, ε and δ with their errors",
    DESCRIPTION,
    EPILOG,
    run,
    option("specification", "SPEC.toml", "what to compute", nargs="?"),
    option("-o --output", "DIR", "where the files go", required=True, type=Path),
    either(
        option(
            "--workers",
            "N",
            "processes to start; 0 for none (one for each processor, if it takes more than a "
            "second)",
            type=count,
        ),
        option("--dask", "ADDRESS", "scheduler of a dask cluster, tcp://127.0.0.1:8786"),
    ),
    option(
        "--formats",
        "LIST",
        "files to write instead of those of the specification: csv,jsonl,parquet,markdown,latex",
    ),
    switch("--restart", "discard what an interrupted run left"),
    either(
        option(
            "--shard",
            "I/N",
            "compute the I-th of N parts, on whichever machine, and leave it in DIR",
            type=shard,
        ),
        switch("--merge", "make the table of all its shards in DIR"),
    ),
)
