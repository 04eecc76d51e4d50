"""Parts of parsers that several commands share."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from typing import TYPE_CHECKING

__all__ = ["Commands", "command"]

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Commands = object


def command(
    commands: Commands,
    name: str,
    summary: str,
    description: str,
    epilog: str,
    run: Callable[[argparse.Namespace], int],
) -> argparse.ArgumentParser:
    """Add a command whose help keeps its line breaks and ends with examples.

    Parameters
    ----------
    commands : action of argparse
        What `argparse.ArgumentParser.add_subparsers` returned.
    name, summary, description, epilog : str
        Name and texts of the help.
    run : callable
        Called with the parsed arguments; returns the exit code.

    Returns
    -------
    argparse.ArgumentParser
        The command's own parser.
    """
    parser = commands.add_parser(
        name,
        help=summary,
        description=description,
        epilog=epilog,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.set_defaults(run=run)
    return parser
