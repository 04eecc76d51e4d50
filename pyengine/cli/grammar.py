"""Mechanisms on the command line: a run file, flags, or ``--phase KEY=VALUE,...``."""

from __future__ import annotations

import argparse
import os
from dataclasses import replace
from pathlib import Path

from pyengine._support import checks
from pyengine.cli.errors import CommandError, user_errors
from pyengine.cli.parsers import group, is_run_file, option
from pyengine.laws.kinds import named_kinds
from pyengine.mechanisms import Mechanism
from pyengine.mechanisms.words import UNITS
from pyengine.workbench.runs.files import RunFile, runs_of_tables
from pyengine.workbench.runs.files import read_runs as read_file
from pyengine.workbench.runs.grammar import SAMPLINGS, NamedRun
from pyengine.workbench.runs.makers import makers

__all__ = [
    *("HELP", "MECHANISM", "NAMED_RUNS", "is_given", "named_runs", "read_mechanism"),
    *("read_run_file", "records_of", "run_file_of", "run_file_of_text", "run_files", "runs_of"),
]

HELP = """\
a run:
  run.toml             TOML, JSON, YAML or CSV; pyengine schema describes it, editors complete it
  --noise 1.0 --p 0.01 --steps 1000          Poisson-sampled Gaussian: DP-SGD
  --noise 1.0 --p 256/60000 --epochs 10      as many steps as pass ten times over the data
  --noise 1.0 --batch-size 256 --dataset-size 60000 --sampling poisson --epochs 10
  --noise 1.0 --batch-size 256 --dataset-size 60000 --sampling without_replacement --steps 100
  --noise 1.0 --batch-size 256 --dataset-size 60000 --sampling shuffle --epochs 10
  --noise 1.0 --p 0.01 --steps 1000 --group-size 3    three records of one user
  --noise 1.0 --steps-per-epoch 100 --selected 3 --epochs 10    random allocation
  --noise 6 --matrix C.npy --participation fixed_order --times 4 --separation 100
  --mechanism laplace --noise 2 --steps 10   noise is the scale divided by the sensitivity
  --phase noise=2,p=0.01,steps=100 --phase noise=1,p=0.01,steps=900
  --phase "mechanism=gaussian_mixture,noise=1,shifts=0 1,weights=1/2 1/2,steps=10"
  --phase mechanism=zero_concentrated,rho=0.1,steps=10

numbers: decimals (1e-5) or fractions (256/60000), taken exactly. Several runs at once: "0.8 1.0"
is a list, 1:100 the whole numbers, FROM:TO:COUNT numbers evenly spaced in the logarithm"""

OPTIONS = (
    ("--noise --noise-multiplier", "X", "noise multiplier"),
    ("--p --sampling-probability", "P", "Poisson sampling probability (1)"),
    ("--steps", "N", "number of steps (1; to be given if steps are sampled)"),
    ("--epochs", "E", "passes over the data, instead of --steps: E / p steps, rounded up"),
    ("--batch-size", "B", "size of a batch, instead of --p; needs --dataset-size and --sampling"),
    ("--dataset-size", "D", "number of records that batches are drawn from"),
    (
        "--sampling",
        "WORD",
        "how batches of that size are drawn: poisson (the size is the expected one), "
        "without_replacement, with_replacement (a batch may repeat a record), or shuffle (a loader "
        "that shuffles once an epoch; upper bounds, without amplification)",
    ),
    (
        "--steps-per-epoch",
        "T",
        "random allocation: in each of E epochs of T steps a record takes part in one step",
    ),
    ("--selected", "K", "... or in K of them; upper bounds are computed then (1)"),
    (
        "--truncated-batch-size",
        "B",
        "largest size of a Poisson sample; of a larger one, random records are left out",
    ),
    ("--group-size", "K", "records of one user, each sampled independently (1)"),
    (
        "--unit",
        "WORD",
        f"what joins batches and is protected, for the label: {', '.join(UNITS)} (record)",
    ),
    (
        "--matrix",
        "FILE",
        "C of a matrix mechanism, .npy or .csv; --noise is the deviation of z in C x + z",
    ),
    (
        "--participation",
        "WORD",
        "the steps in which a record takes part: single (default), fixed_order, "
        "min_separation, balls_in_bins",
    ),
    ("--times", "K", "... the most steps of a record"),
    ("--separation", "B", "... the least distance between them, in steps"),
    ("--bins", "B", "number of bins of balls_in_bins"),
    ("--classes", "C", "... and of classes of bins that are bounded separately (the best number)"),
)
CHOICES = {"--sampling": SAMPLINGS, "--unit": UNITS}
FLAGS = ("mechanism", *(flags.split()[0][2:].replace("-", "_") for flags, _, _ in OPTIONS))


def _add_names(parser: argparse.ArgumentParser) -> None:
    """Add ``--mechanism``, with the names of all registered kinds of mechanisms."""
    words = tuple(makers())
    listed = ", ".join(word for word in words if word not in named_kinds())
    text = f"{listed}, or the name of the class in Python"
    parser.add_argument("--mechanism", choices=words, metavar="NAME", help=text)


# The run file, and the flags that describe a mechanism instead.
MECHANISM = group(
    "a run",
    option("run_file", "RUN", "a file that describes the run", nargs="?", type=Path),
    _add_names,
    *(option(flags, word, text, choices=CHOICES.get(flags)) for flags, word, text in OPTIONS),
    option(
        "--phase",
        "KEY=VALUE,...",
        "steps of one kind, with the keys of a run file; repeat it for further kinds",
        action="append",
        default=[],
    ),
    option("--file", "RUN", "the same as RUN", type=Path),
)
NAMED_RUNS = option(
    "--run",
    ("LABEL", "RUN"),
    "a name and a run, to be repeated for each: KEY=VALUE,... as for --phase, with semicolons "
    "between phases, or a run file",
    nargs=2,
    action="append",
    default=[],
    dest="runs",
)


def named_runs(arguments: argparse.Namespace) -> dict[str, RunFile]:
    """The runs given by ``--run``, by name; empty if the mechanism is given in another way."""
    if arguments.runs and is_given(arguments):
        raise CommandError("give mechanisms by --run, or one by flags such as --noise, not both")
    found: dict[str, RunFile] = {}
    for label, text in arguments.runs:
        if label in found:
            raise CommandError(f"two runs are named {label!r}")
        found[label] = run_file_of_text(text, f"--run {label}")
    return found


def _flags(arguments: argparse.Namespace) -> dict[str, str]:
    flags = {key: getattr(arguments, key) for key in FLAGS}
    return {key: value for key, value in flags.items() if value is not None}


def is_given(arguments: argparse.Namespace) -> bool:
    """Whether the arguments describe a mechanism."""
    return bool(arguments.run_file or arguments.file or arguments.phase or _flags(arguments))


def run_file_of(arguments: argparse.Namespace) -> RunFile:
    """The runs described by a file, by flags or by ``--phase``, which must not be mixed."""
    ways = {
        "flags such as --noise": _flags(arguments),
        "--phase": arguments.phase,
        "--file": arguments.file,
        f"the run file {arguments.run_file}": arguments.run_file,
    }
    given = [way for way, value in ways.items() if value]
    if len(given) > 1:
        raise CommandError(f"give the mechanism once, by {given[0]} or by {given[1]}")
    path = arguments.run_file or arguments.file
    if path:
        return read_run_file(path)
    if arguments.phase:
        return runs_of_tables([_parse(text, "--phase") for text in arguments.phase])
    if not given:
        # `calibrate` finds the noise, unless --vary names another key
        flag = "--noise" if getattr(arguments, "vary", "steps") == "steps" else "--steps"
        raise CommandError(f"no mechanism: give a run file, {flag} or --phase")
    return runs_of_tables([_flags(arguments)])


def run_file_of_text(text: str, flag: str) -> RunFile:
    """Runs of one text: phases ``KEY=VALUE,...`` separated by semicolons, or the name of a file.

    Error messages name the ``flag`` that the text belongs to.
    """
    if os.path.isfile(text) or ("=" not in text and is_run_file(text)):
        return read_run_file(Path(text))
    return runs_of_tables([_parse(part, flag) for part in text.split(";")], flag)


def run_files(arguments: argparse.Namespace) -> list[RunFile]:
    """The run files of ``--run``, each with one run, or the single one that describes all runs."""
    return list(named_runs(arguments).values()) or [run_file_of(arguments)]


def runs_of(arguments: argparse.Namespace, files: list[RunFile]) -> list[NamedRun]:
    """All runs of these files, those of ``--run`` with the names given there."""
    with user_errors():
        if arguments.runs:
            named = zip(arguments.runs, files, strict=True)
            return [replace(file.only(), name=label) for (label, _), file in named]
        return list(files[0].runs())


def read_mechanism(arguments: argparse.Namespace) -> Mechanism:
    """The mechanism of the only run that the arguments describe."""
    with user_errors():
        return run_file_of(arguments).only().mechanism


def records_of(file: RunFile) -> int | None:
    """Return the number of records, if the runs of a file contain it."""
    tables = [table for each in file.described for table in each.tables]
    found = []
    for table in tables:
        try:
            found.append(checks.count("dataset_size", table["dataset_size"]))
        except (KeyError, ValueError):  # none, or several
            continue
    return max(found, default=None)


def _parse(text: str, flag: str) -> dict[str, str]:
    phase: dict[str, str] = {}
    for item in text.split(","):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not (key and equals and value):
            raise CommandError(f"{flag} {text}: expected KEY=VALUE,..., got {item!r}")
        if key in phase:
            raise CommandError(f"{flag} {text}: {key} is given twice")
        phase[key] = value
    return phase


def read_run_file(path: Path) -> RunFile:
    """Runs of a file."""
    with user_errors(path):
        return read_file(path)
