"""The parser of all commands, and what becomes of their errors."""

from __future__ import annotations

import argparse
import io
import os
import sys
from collections.abc import Sequence

from pyengine._version import __version__
from pyengine.cli import (
    calibrate,
    completion,
    conformance,
    doctor,
    papers,
    plot,
    questions,
    table,
    verify,
)
from pyengine.cli.errors import CommandError
from pyengine.errors import AccuracyError

__all__ = ["main", "make_parser"]

DESCRIPTION = "Differential privacy as hypothesis testing: exact numbers for DP-SGD, fast."
EPILOG = """\
examples:
  pyengine gamma --noise 0.8 --p 0.001 --steps 10000 --kappa 1e-5 1e-3
  pyengine epsilon --phase noise=2,p=0.01,steps=100 --phase noise=1,p=0.01,steps=900 --delta 1e-6
  pyengine COMMAND --help     more examples

exit codes: 0 done; 1 done, but a value was refused or something unsafe was found; 2 wrong input or
unwritable output; 130 interrupted"""

# in the order of the help
COMMANDS = (questions, calibrate, table, verify, plot, papers, conformance, doctor, completion)


def make_parser() -> argparse.ArgumentParser:
    """Parser of the whole command line."""
    parser = argparse.ArgumentParser(
        prog="pyengine",
        description=DESCRIPTION,
        epilog=EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("--version", action="version", version=f"pyengine {__version__}")
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.register(commands)
    return parser


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
    arguments = make_parser().parse_args(argv)
    try:
        code = int(arguments.run(arguments))
        sys.stdout.flush()
    except CommandError as error:
        print(f"pyengine: error: {error}", file=sys.stderr)
        return 2
    except AccuracyError as error:
        print(f"pyengine: refused: {error}", file=sys.stderr)
        return 1
    except BrokenPipeError:
        # the reader of the output, such as head, has had enough
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except KeyboardInterrupt:
        print("pyengine: interrupted", file=sys.stderr)
        return 130
    return code
