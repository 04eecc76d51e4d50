"""``pyengine plot``: pictures of a mechanism."""

from __future__ import annotations

import argparse
import importlib.util
from pathlib import Path
from typing import TYPE_CHECKING

from pyengine.cli import grammar
from pyengine.cli.errors import CommandError
from pyengine.cli.output import in_words
from pyengine.cli.parsers import Commands, command
from pyengine.plots import SUFFIXES, delta_figure, gamma_figure, save, trade_off_figure

if TYPE_CHECKING:
    from matplotlib.figure import Figure

    from pyengine.mechanisms import Mechanism

__all__ = ["check_picture", "register", "write"]

DESCRIPTION = """\
Draw one of these, as .png, .svg or .pdf:

  tradeoff   trade-off functions for both orders and their convex hull
  gamma      reconstruction robustness γ(κ) with its bounds
  delta      privacy profiles δ(ε) for both orders"""
EPILOG = f"""\
examples:
  pyengine plot gamma --noise 0.8 --p 0.001 --steps 10000 -o gamma.svg
  pyengine plot tradeoff --noise 1 --p 0.1 --steps 30 -o tradeoff.png
  pyengine plot delta --mechanism gaussian --noise 2 -o delta.png

{grammar.HELP}"""
PICTURES = ("tradeoff", "gamma", "delta")


def register(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = command(commands, "plot", "pictures of a mechanism", DESCRIPTION, EPILOG, run)
    parser.add_argument("picture", choices=PICTURES, metavar="PICTURE", help=", ".join(PICTURES))
    parser.add_argument(
        "-o", "--output", required=True, type=Path, metavar="FILE", help="where the picture goes"
    )
    grammar.add_mechanism(parser)


def run(arguments: argparse.Namespace) -> int:
    """Draw a picture and write it."""
    check_picture("--output", arguments.output)
    mechanism = grammar.read_mechanism(arguments)
    write(_figure(arguments.picture, mechanism), arguments.output)
    print(arguments.output)
    return 0


def _figure(picture: str, mechanism: Mechanism) -> Figure:
    title = "\n".join(in_words(mechanism))
    if picture == "gamma":
        return gamma_figure({"γ(κ)": mechanism}, title=title)
    return (trade_off_figure if picture == "tradeoff" else delta_figure)(mechanism, title=title)


def check_picture(option: str, path: Path) -> None:
    """Refuse what cannot become a picture before anything is computed."""
    if path.suffix not in SUFFIXES:
        raise CommandError(f"{option} must end in {', '.join(SUFFIXES)}; got {str(path)!r}")
    if importlib.util.find_spec("matplotlib") is None:
        raise CommandError(f"{option} needs matplotlib: pip install 'pyengine[plots]'")


def write(figure: Figure, path: Path) -> None:
    """Write a picture, or say why not."""
    try:
        save(figure, path)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror or error}") from None
