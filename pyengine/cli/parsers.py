"""Argument parsers with readable error messages, and parts that several commands share."""

from __future__ import annotations

import argparse
import os
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NoReturn

from pyengine._support import checks
from pyengine.cli.layout import HelpFormatter

__all__ = [
    *("Commands", "Parser", "Part", "command", "either", "group", "is_run_file", "option"),
    "switch",
]

# Words of the field that are no beginnings of the options' names.
MEANT = {
    "--rate": "--sampling-probability",
    "--sampling-rate": "--sampling-probability",
    "--sample-rate": "--sampling-probability",
    "--sigma": "--noise-multiplier",
    "--q": "--sampling-probability",
    "--fpr": "--alpha",
    "--alpha": "--fpr",
    "--format": "--json",
    "--json": "--format",
}

Part = Callable[[Any], object]  # adds an option to a parser or to a group of options
ALIKE = 0.7  # similarity (of difflib) of names from which on one is suggested for the other

if TYPE_CHECKING:
    Commands = argparse._SubParsersAction[argparse.ArgumentParser]
else:
    Commands = object


def is_run_file(text: str) -> bool:
    """Whether a word names an existing file, or has the suffix of a run file."""
    suffixes = (".toml", ".json", ".yaml", ".yml", ".csv")
    return Path(text).suffix.lower() in suffixes or os.path.isfile(text)


class Parser(argparse.ArgumentParser):
    """A parser that reads ``-1e-6`` as a number, and suggests similar names after an error."""

    siblings: Mapping[str, Parser] = MappingProxyType({})  # parsers of all commands
    needed: tuple[str, ...] = ()  # required options, which a run file may replace

    def __init__(self, **words: Any) -> None:
        super().__init__(**words, formatter_class=HelpFormatter)
        # argparse recognizes only -1 and -0.1 as numbers, and takes -1e-6 for an option
        self._negative_number_matcher = re.compile(r"-\.?\d")

    def format_usage(self) -> str:
        """One line with the required arguments."""
        return f"usage: {' '.join([self.prog, *self._wanted(), '[options]'])}\n"

    def _wanted(self) -> list[str]:
        """Words of the required options and of the positional arguments."""
        found = []
        for action in self._actions:
            words = action.metavar if isinstance(action.metavar, tuple) else (action.metavar or "",)
            said = " ".join(words) or action.dest
            if action.option_strings and action.required:
                found.append(f"{action.option_strings[0]} {said}")
            elif not action.option_strings:
                found.append(f"[{said}]" if action.nargs in ("?", "*") else said)
        return found

    def format_help(self) -> str:
        """Usage, description, examples, options and notes."""
        formatter = self._get_formatter()
        examples, _, notes = (self.epilog or "").partition("\n\n")
        if not examples.startswith("examples:"):
            examples, notes = "", self.epilog or ""
        formatter.add_text(self.format_usage().rstrip())
        formatter.add_text(self.description)
        formatter.add_text(examples)
        for group in self._action_groups:
            formatter.start_section(group.title)
            formatter.add_text(group.description)
            formatter.add_arguments(group._group_actions)
            formatter.end_section()
        formatter.add_text(notes)
        return formatter.format_help()

    def parse_known_args(  # type: ignore[override]
        self, args: Sequence[str] | None = None, namespace: Any = None
    ) -> tuple[Any, list[str]]:
        """Parse; unknown options are reported before other errors."""
        self._options_exist([] if args is None else args)
        found, rest = super().parse_known_args(args, namespace)
        if getattr(found, "run_file", rest) is None:
            self._find_run_file(found)
        return found, rest

    def _find_run_file(self, found: Any) -> None:
        """Recognize a run file given after the values of an option that takes several."""
        for action in self._actions:
            values = getattr(found, action.dest, None)
            if action.nargs == "+" and values and len(values) > 1 and is_run_file(values[-1]):
                found.run_file = Path(values.pop())
                return

    def _options_exist(self, args: Sequence[str]) -> None:
        for action in self._actions:
            if isinstance(action, argparse._SubParsersAction):
                self._command_first(args, str(action.metavar))
                return  # the parser of the command knows its options
        options = self.options
        for word in args:
            if word == "--":
                return
            name = word.partition("=")[0]
            if re.match(r"--[a-z]", name) and not any(flag.startswith(name) for flag in options):
                self.error(f"there is no option {name}{self._hint(name, options)}")

    @property
    def options(self) -> list[str]:
        """All flags of this parser."""
        return [flag for action in self._actions for flag in action.option_strings]

    def _command_first(self, args: Sequence[str], called: str) -> None:
        first = args[0] if args else ""
        if first.startswith("--") and not any(flag.startswith(first) for flag in self.options):
            name = first.partition("=")[0]
            self.error(f"{name} goes after {called}: {self.prog} {called} {first}")

    def _hint(self, name: str, options: Sequence[str]) -> str:
        """A hint what an unknown option may have meant."""
        command = self.prog.rpartition(" ")[2]
        needed = self.needed or [
            a.option_strings[0] for a in self._actions if a.required and a.option_strings
        ]
        if needed and name == f"--{command}":
            return f": {command} is what is asked for; give {' and '.join(needed)}"
        meant = MEANT.get(name)
        if meant in options:
            return f"; did you mean {meant!r}?"
        import difflib  # only where something is wrong

        words = [flag[2:] for flag in options if flag.startswith("--")]
        for near in difflib.get_close_matches(name[2:], words, 1, ALIKE):
            return f"; did you mean '--{near}'?"
        have = [word for word, other in self.siblings.items() if name in other.options]
        return f"; pyengine {', '.join(have)} {'has' if len(have) == 1 else 'have'} it" * bool(have)

    def _get_option_tuples(self, option_string: str) -> Any:
        """As argparse, but an abbreviation of several flags of the same option is unambiguous."""
        found: list[Any] = super()._get_option_tuples(option_string)
        return found[:1] if len({id(match[0]) for match in found}) == 1 else found

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        if action.choices is None or value in action.choices:
            return
        words = [str(choice) for choice in action.choices]
        hint = checks.did_you_mean(value, words)
        listed = ", ".join(word for word in words if word.islower())  # and names of classes
        raise argparse.ArgumentError(action, f"must be one of {listed}; got {str(value)!r}{hint}")

    def error(self, message: str) -> NoReturn:
        """Exit with the usage and a one-line message."""
        message = re.sub(r"^argument (?:-\w/)?([^:]*?)(?:/--\S+)*: ", r"\1: ", message)
        super().error(message)


def option(
    flags: str, metavar: str | tuple[str, ...] | None, text: str | None, **words: Any
) -> Part:
    """Part of a command: an option or a positional argument."""
    return lambda parser: parser.add_argument(*flags.split(), metavar=metavar, help=text, **words)


def switch(flag: str, text: str) -> Part:
    """Part of a command: an option without a value."""
    return lambda parser: parser.add_argument(flag, action="store_true", help=text)


def group(title: str, *parts: Part) -> Part:
    """Part of a command: options under a title."""
    return lambda parser: _add(parser.add_argument_group(title), parts)


def either(*parts: Part) -> Part:
    """Part of a command: mutually exclusive options."""
    return lambda parser: _add(parser.add_mutually_exclusive_group(), parts)


def command(
    name: str,
    summary: str,
    description: str,
    epilog: str,
    run: Callable[[argparse.Namespace], int],
    *parts: Part,
) -> Callable[[Commands], Parser]:
    """Return a function that registers a command, whose help shows the examples first.

    ``run`` is called with the parsed arguments and returns the exit code.
    """

    def register(commands: Commands) -> Parser:
        words: Any = {"help": summary, "description": description, "epilog": epilog}
        parser: Any = commands.add_parser(name, **words)
        parser.set_defaults(run=run)
        parser.siblings = commands.choices
        made: Parser = _add(parser, parts)
        return made

    return register


def _add(place: Any, parts: Iterable[Part]) -> Any:
    for part in parts:
        part(place)
    return place
