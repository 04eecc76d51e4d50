"""The parser of all commands, and the handling of their errors."""

from __future__ import annotations

import argparse
import sys
import traceback
import warnings
from collections.abc import Sequence
from importlib import import_module

from pyengine._support.caches import kept
from pyengine._support.extras import MissingPackageError
from pyengine.cli.errors import FOUND, INTERNAL, INTERRUPTED, UNUSABLE, CommandError
from pyengine.cli.parsers import Parser, is_run_file
from pyengine.cli.streams import guarded
from pyengine.cli.version import ShowVersion
from pyengine.errors import AccuracyError, NotDefinedError

__all__ = ["main", "make_parser"]

DESCRIPTION = "Differential privacy as hypothesis testing: exact numbers for DP-SGD, fast."
EPILOG = """\
examples:
  pyengine run.toml           what to report about the run in a file
  pyengine epsilon --noise 0.8 --p 0.001 --steps 10000 --delta 1e-5
  pyengine epsilon --phase noise=2,p=0.01,steps=100 --phase noise=1,p=0.01,steps=900 --delta 1e-6
  pyengine COMMAND --help     more examples

exit codes: 0 done; 1 done, but a value was refused or something unsafe was found; 2 wrong input or
output that cannot be written; 3 a defect of pyengine itself; 130 interrupted"""

# a module each, in the order of the help
LONG = 1000  # most characters of a message
COMMANDS = tuple(
    import_module(f"pyengine.cli.{name}")
    for name in (
        *("questions", "calibrate", "budget", "statement", "report", "explore", "table", "verify"),
        *("plot", "schema", "schemes", "papers", "conformance", "doctor", "completion"),
    )
)


@kept(1)  # some 10 ms, and parsing changes nothing in it
def make_parser() -> argparse.ArgumentParser:
    """Parser of the whole command line."""
    parser = Parser(prog="pyengine", description=DESCRIPTION, epilog=EPILOG)
    parser.add_argument(
        "--version", action=ShowVersion, nargs=0, help="the version, and its commit"
    )
    commands = parser.add_subparsers(title="commands", metavar="COMMAND", required=True)
    for command in COMMANDS:
        command.register(commands)
    parser.set_defaults(root=parser)
    return parser


def main(argv: Sequence[str] | None = None) -> int:
    """Run a command line, by default that of the process; return the exit code."""
    with guarded() as output, warnings.catch_warnings():
        warnings.showwarning = _warn
        if output is None:
            print("pyengine: error: standard output is closed", file=sys.stderr)
            return UNUSABLE
        try:
            code = _run(argv)
        except SystemExit:  # of argparse: help, version, wrong usage
            output.flush()
            if output.error is None or isinstance(output.error, BrokenPipeError):
                raise
            code = UNUSABLE
        output.flush()
        # a reader that stops early, such as head, is no error
        if output.error is not None and not isinstance(output.error, BrokenPipeError):
            reason = output.error.strerror or output.error
            print(f"pyengine: error: standard output: {reason}", file=sys.stderr)
            return UNUSABLE
        return code


def _is_command(word: str) -> bool:
    found = (a.choices for a in make_parser()._actions if isinstance(a, argparse._SubParsersAction))
    return word in next(found)


def _run(argv: Sequence[str] | None) -> int:
    """Run a command and return its exit code; errors are printed on standard error."""
    words = list(sys.argv[1:] if argv is None else argv)
    if not words:
        make_parser().print_help(sys.stderr)
        return UNUSABLE
    if words[0] == "help":  # as many programs have it
        words = [*words[1:2], "--help"]
    elif not _is_command(words[0]) and is_run_file(words[0]):
        words = ["statement", *words]
    arguments = make_parser().parse_args(words)
    try:
        return int(arguments.run(arguments))
    except (CommandError, MissingPackageError, NotDefinedError) as error:
        print(f"pyengine: error: {_sentence(error)}", file=sys.stderr)
        return UNUSABLE
    except AccuracyError as error:
        print(f"pyengine: refused: {_sentence(error)}", file=sys.stderr)
        return FOUND
    except KeyboardInterrupt:
        print("pyengine: interrupted", file=sys.stderr)
        return INTERRUPTED
    except MemoryError:
        print("pyengine: error: out of memory", file=sys.stderr)
        return UNUSABLE
    except Exception as error:
        traceback.print_exc()
        what = f"{type(error).__name__}: {error}"
        print(f"pyengine: internal error: {what}; please report it", file=sys.stderr)
        return INTERNAL


def _warn(message: Warning | str, *_: object, **__: object) -> None:
    """Print a warning as a sentence, without file and line of the program."""
    print(f"pyengine: warning: {_sentence(message)}", file=sys.stderr)


def _sentence(message: object) -> str:
    """A message without line ends and escapes, which quoted files may contain, and shortened."""
    text = "".join(c if c.isprintable() else repr(c)[1:-1] for c in str(message))
    return text if len(text) <= LONG else f"{text[:LONG]}... ({len(text):,} characters)"
