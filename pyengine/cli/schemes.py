"""``pyengine schemes``: comparison of ways to draw batches, at equal noise."""

from __future__ import annotations

import argparse
import math
import sys
from fractions import Fraction
from pathlib import Path

from pyengine._support.decimals import written
from pyengine.cli.errors import FOUND, CommandError, require, user_errors
from pyengine.cli.numbers import read_numbers, read_probability
from pyengine.cli.output import remark, remarks_on
from pyengine.cli.parsers import command, option

__all__ = ["register"]

DESCRIPTION = """\
Compare Poisson samples, random allocation, batches without replacement and shuffled batches, which
are not amplified: ε at δ for equal noise, steps and epochs. A lower bound for shuffled batches
stands apart. All combinations of the given values are computed and written to DIR:

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


def run(arguments: argparse.Namespace) -> int:
    """Compute all schemes, and write the files."""
    from pyengine._support.markup import markdown_table
    from pyengine.mechanisms import label_of
    from pyengine.workbench.plots.schemes import schemes_figure
    from pyengine.workbench.plots.style import image
    from pyengine.workbench.schemes import SchemeSetting, compare, figures, leaks
    from pyengine.workbench.tables.files import csv_text, prepare, replace_all
    from pyengine.workbench.tables.progress import Progress

    require("a picture", "plots", "matplotlib")
    delta = read_probability("delta", arguments.delta)
    with user_errors():
        settings = [
            SchemeSetting(float(Fraction(noise)), steps, epochs)
            for noise in read_numbers("noise", arguments.noise, logarithmic=True)
            for steps in _counts("steps-per-epoch", arguments.steps_per_epoch)
            for epochs in _counts("epochs", arguments.epochs)
        ]
        asked = compare(settings, delta)
    with user_errors(arguments.output):
        prepare(arguments.output)
        rows = []
        with Progress(6 * len(settings), "values", sys.stderr) as progress:
            for row in asked:
                rows.append(row)
                progress.advance(1)
        records = []
        for row in rows:
            label = label_of(row.scheme.run(row.setting), row.adjacency)[0]
            setting = (repr(value) for value in vars(row.setting).values())
            least = "" if math.isnan(row.at_least) else repr(row.at_least)
            asked_of = (row.scheme.name, *label[1:3], row.adjacency, repr(delta))
            found = (repr(row.epsilon), row.engine, row.certainty, least)
            records.append((*setting, *asked_of, *found))
        text = f"{markdown_table(*figures(rows))}\n{LEAKS}\n\n{markdown_table(*leaks(rows))}"
        files = {"schemes.csv": csv_text(COLUMNS, records).encode(), "schemes.md": text.encode()}
        files["schemes.png"] = image(schemes_figure(rows, delta))
        replace_all(arguments.output, files)
    print(f"ε at δ = {written(delta)}; two numbers: remove / add\n\n{text}", end="")
    remark(remarks_on(deltas=[delta]))
    return FOUND if any(not row.certainty for row in rows) else 0


def _counts(name: str, texts: list[str]) -> list[int]:
    found = [Fraction(text) for text in read_numbers(name, texts, logarithmic=True)]
    # the ends of a logarithmic range may be rounded
    whole = [round(value) for value in found]
    if any(abs(count - value) > count * 1e-9 for count, value in zip(whole, found, strict=True)):
        raise CommandError(f"--{name} must be integers, got {' '.join(texts)}")
    return whole


STEPS = ["10", "100", "1000", "10000"]
register = command(
    "schemes",
    "compare ways to draw batches at equal noise",
    DESCRIPTION,
    EPILOG,
    run,
    option("-o --output", "DIR", "where the files go", required=True, type=Path),
    option("--noise", "X", "noise multipliers (1)", nargs="+", default=["1"]),
    option(
        "--steps-per-epoch",
        "T",
        f"steps of an epoch, each with the share 1/T of the records ({' '.join(STEPS)})",
        nargs="+",
        default=STEPS,
    ),
    option("--epochs", "E", "numbers of epochs (1 100)", nargs="+", default=["1", "100"]),
    option("--delta", "D", "δ of (ε, δ) (1e-5)", default="1e-5"),
)
