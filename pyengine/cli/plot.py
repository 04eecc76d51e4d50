"""``pyengine plot``: plots of mechanisms."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyengine._support import checks
from pyengine._support.markup import shortened
from pyengine.cli import grammar
from pyengine.cli.errors import CommandError, require, user_errors
from pyengine.cli.output import remark, remarks_on
from pyengine.cli.parsers import command, option
from pyengine.engines.registry import ADJACENCIES
from pyengine.mechanisms import in_words
from pyengine.workbench.runs.grammar import NamedRun

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["check_picture", "register", "write"]

DESCRIPTION = """\
Draw one of these, as .png, .svg or .pdf:

  tradeoff   trade-off functions for both orders and their convex hull
  gamma      reconstruction robustness γ(κ) with its bounds
  delta      privacy profiles δ(ε) for both orders
  epsilon    ε at δ over the epochs of a run
  noise      the smallest noise that gives (ε, δ)-differential privacy, against ε"""
EPILOG = f"""\
examples:
  pyengine plot gamma run.toml -o gamma.svg
  pyengine plot tradeoff --noise 1 --p 0.1 --steps 30 -o tradeoff.png
  pyengine plot delta --mechanism gaussian --noise 2 -o delta.png
  pyengine plot epsilon --noise 1 --p 256/60000 --epochs 20 --delta 1e-5 -o epochs.png
  pyengine plot noise --p 0.1 --steps 1000 --delta 1e-6 -o noise.png
  pyengine plot tradeoff --run "noise 1" noise=1,p=0.01,steps=1000 \\
      --run "two phases" "noise=2,p=0.01,steps=100; noise=1,p=0.01,steps=900" -o two.png

{grammar.HELP}"""
PICTURES = ("tradeoff", "gamma", "delta", "epsilon", "noise")


def run(arguments: argparse.Namespace) -> int:
    """Draw a plot and write it to a file."""
    check_picture("--output", arguments.output)
    draw = {"noise": _noise, "epsilon": _growth}.get(arguments.picture, _curves)
    with user_errors():
        made = draw(arguments)
    write(made, arguments.output)
    print(arguments.output)
    return 0


def _noise(arguments: argparse.Namespace) -> Figure:
    from pyengine.workbench.plots import noise_figure

    runs = grammar.named_runs(arguments) or {"": grammar.run_file_of(arguments)}
    families = {label or _said(file.tables()): file.family("noise") for label, file in runs.items()}
    delta = float(checks.exact("--delta", arguments.delta))
    remark(remarks_on(deltas=[delta]))
    words = {"adjacency": arguments.adjacency} if arguments.adjacency else {}
    return noise_figure(families, delta, title=arguments.title or "", **words)


def _growth(arguments: argparse.Namespace) -> Figure:
    from pyengine.workbench.plots import epsilon_figure

    found = _found(arguments)
    delta = float(checks.exact("--delta", arguments.delta))
    remark(remarks_on(deltas=[delta]))
    runs = {run.name: [phase.mechanism for phase in run.phases] for run in found}
    title = arguments.title
    if title is None:
        title = "\n".join(shortened(in_words(found[0].mechanism))) if len(found) == 1 else ""
    words = {"adjacency": arguments.adjacency} if arguments.adjacency else {}
    return epsilon_figure(runs, delta, title=title, **words)


def _found(arguments: argparse.Namespace) -> list[NamedRun]:
    return grammar.runs_of(arguments, grammar.run_files(arguments))


def _said(phases: list[dict[str, Any]]) -> str:
    return " + ".join(
        ", ".join(f"{key} {value}" for key, value in phase.items()) for phase in phases
    )


def _curves(arguments: argparse.Namespace) -> Figure:
    from pyengine.workbench.plots import delta_figure, gamma_figure, trade_off_figure

    found = _found(arguments)
    mechanisms: Any = {run.name: run.mechanism for run in found}
    single = not arguments.runs and len(found) == 1
    if single:
        (mechanisms,) = mechanisms.values()
    title = arguments.title
    if title is None:
        title = "\n".join(shortened(in_words(mechanisms))) if single else ""
    if arguments.picture == "gamma":
        if single:
            mechanisms = {"γ(κ)": mechanisms}
        return gamma_figure(mechanisms, adjacency=arguments.adjacency or "add", title=title)
    draw = trade_off_figure if arguments.picture == "tradeoff" else delta_figure
    return draw(mechanisms, adjacency=arguments.adjacency, title=title)


def check_picture(option: str, path: Path) -> None:
    """Check before the computation that the file can be written as a plot."""
    from pyengine.workbench.plots import SUFFIXES

    if path.suffix.lower() not in SUFFIXES:
        raise CommandError(f"{option} must end in {', '.join(SUFFIXES)}; got {str(path)!r}")
    require(option, "plots", "matplotlib")


def write(figure: Figure, path: Path) -> None:
    """Write a plot, or raise a CommandError."""
    from pyengine.workbench.plots import save

    with user_errors(path):
        save(figure, path)


register = command(
    "plot",
    "draw pictures of mechanisms",
    DESCRIPTION,
    EPILOG,
    run,
    option("picture", "PICTURE", ", ".join(PICTURES), choices=PICTURES),
    option("-o --output", "FILE", "where the picture goes", required=True, type=Path),
    option("--delta", "D", "δ of epsilon and noise (1e-6)", default="1e-6"),
    grammar.NAMED_RUNS,
    option(
        "--adjacency",
        "WORD",
        f"who are neighbours: {', '.join(ADJACENCIES)}; if it is not given, one mechanism has its "
        "tradeoff and delta drawn for both orders, gamma is for add, all else for add_remove",
        choices=ADJACENCIES,
    ),
    option("--title", "TEXT", "above the picture"),
    grammar.MECHANISM,
)
