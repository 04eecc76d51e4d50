"""``pyengine schemes``: ways to draw batches, at equal noise."""

from __future__ import annotations

import argparse
import importlib.util
import io
import math
import sys
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING

from pyengine._support.extras import missing
from pyengine.cli.errors import FOUND, CommandError
from pyengine.cli.numbers import read_numbers, read_probability
from pyengine.cli.output import remark, remarks_on
from pyengine.cli.parsers import Commands, command

if TYPE_CHECKING:
    from pyengine.workbench.schemes import Compared

__all__ = ["register"]

DESCRIPTION = """\
Compare Poisson samples, random allocation, batches without replacement and shuffled batches, which
are not amplified: ε at δ for equal noise, steps and epochs. What certainly leaks from shuffled
batches stands apart. All combinations of what is given are asked, and written to DIR:

  schemes.csv   one row for each scheme, setting and order of the neighbours, with its engine
  schemes.md    one row for each setting
  schemes.png   ε against the steps of an epoch, at the first noise"""
EPILOG = """\
examples:
  pyengine schemes -o schemes
  pyengine schemes --noise 0.5 1 2 4 --steps-per-epoch 10:10000:4 --epochs 1 10 100 -o schemes

exit codes: 0 done; 1 done, but a value was refused; 2 wrong input or unwritable output"""
COLUMNS = (
    *("noise", "steps_per_epoch", "epochs", "scheme", "batches", "protects", "adjacency"),
    *("delta", "epsilon", "engine", "certainty", "shuffled_at_least"),
)


LEAKS = "What certainly leaks where batches are shuffled, and is no guarantee:"


def register(commands: Commands) -> None:
    """Add the command to the parser."""
    summary = "ways to draw batches, at equal noise"
    parser = command(commands, "schemes", summary, DESCRIPTION, EPILOG, run)
    parser.add_argument(
        "-o", "--output", required=True, type=Path, metavar="DIR", help="where the files go"
    )
    parser.add_argument(
        "--noise", nargs="+", default=["1"], metavar="X", help="noise multipliers (1)"
    )
    parser.add_argument(
        "--steps-per-epoch",
        nargs="+",
        default=["10", "100", "1000", "10000"],
        metavar="T",
        help="steps of an epoch, each with the share 1/T of the records (10 100 1000 10000)",
    )
    parser.add_argument(
        "--epochs", nargs="+", default=["1", "100"], metavar="E", help="numbers of epochs (1 100)"
    )
    parser.add_argument("--delta", default="1e-5", metavar="D", help="δ of (ε, δ) (1e-5)")


def run(arguments: argparse.Namespace) -> int:
    """Ask all schemes, and write the files."""
    from pyengine._support.markup import markdown_table
    from pyengine.mechanisms import label_of
    from pyengine.workbench.schemes import SchemeSetting, compare, figures, leaks
    from pyengine.workbench.tables.files import csv_text, prepare, replace_all
    from pyengine.workbench.tables.progress import Progress

    if importlib.util.find_spec("matplotlib") is None:
        raise CommandError(missing("a picture", "matplotlib", "plots"))
    delta = read_probability("delta", arguments.delta)
    try:
        settings = [
            SchemeSetting(float(Fraction(noise)), steps, epochs)
            for noise in read_numbers("noise", arguments.noise, logarithmic=True)
            for steps in _counts("steps-per-epoch", arguments.steps_per_epoch)
            for epochs in _counts("epochs", arguments.epochs)
        ]
        asked = compare(settings, delta)
    except ValueError as error:
        raise CommandError(str(error)) from None
    try:
        prepare(arguments.output)
        rows = []
        with Progress(6 * len(settings), "values", sys.stderr) as progress:
            for row in asked:
                rows.append(row)
                progress.advance(1)
        records = [
            (
                repr(row.setting.noise),
                str(row.setting.steps_per_epoch),
                str(row.setting.epochs),
                row.scheme.name,
                *label_of(row.scheme.run(row.setting), row.adjacency)[0][1:3],
                row.adjacency,
                repr(delta),
                repr(row.epsilon),
                row.engine,
                row.certainty,
                "" if math.isnan(row.at_least) else repr(row.at_least),
            )
            for row in rows
        ]
        text = f"{markdown_table(*figures(rows))}\n{LEAKS}\n\n{markdown_table(*leaks(rows))}"
        files = {"schemes.csv": csv_text(COLUMNS, records).encode(), "schemes.md": text.encode()}
        replace_all(arguments.output, {**files, "schemes.png": _picture(rows, delta)})
    except OSError as error:
        where = error.filename or arguments.output
        raise CommandError(f"{where}: {error.strerror or error}") from None
    print(f"ε at δ = {delta:g}; two numbers: remove / add\n\n{text}", end="")
    remark(remarks_on(deltas=[delta]))
    return FOUND if any(not row.certainty for row in rows) else 0


def _counts(name: str, texts: list[str]) -> list[int]:
    found = [Fraction(text) for text in read_numbers(name, texts, logarithmic=True)]
    # the ends of a range in the logarithm are rounded
    whole = [round(value) for value in found]
    if any(abs(count - value) > count * 1e-9 for count, value in zip(whole, found, strict=True)):
        raise CommandError(f"--{name} must be integers, got {' '.join(texts)}")
    return whole


def _picture(rows: list[Compared], delta: float) -> bytes:
    from pyengine.workbench.plots.schemes import schemes_figure

    buffer = io.BytesIO()
    schemes_figure(rows, delta).savefig(buffer, format="png")
    return buffer.getvalue()
