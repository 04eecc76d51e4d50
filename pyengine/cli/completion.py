"""``pyengine completion``: scripts that complete commands, options and their words."""

from __future__ import annotations

import argparse
from collections.abc import Iterator

from pyengine.cli.parsers import Commands, command

__all__ = ["register"]

DESCRIPTION = (
    "Print a script for bash, zsh or fish that completes commands, options, words and file names."
)
EPILOG = """\
examples:
  source <(pyengine completion)                       for this shell: bash, or zsh with `zsh`
  pyengine completion > ~/.local/share/bash-completion/completions/pyengine    for all to come
  pyengine completion zsh > "${fpath[1]}/_pyengine"   in zsh, for all to come
  pyengine completion fish | source                   in fish, for this shell
  pyengine completion fish > ~/.config/fish/completions/pyengine.fish          for all to come"""

BASH = """\
# bash completion of pyengine; made by `pyengine completion`
_pyengine() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} words=
    if [[ $COMP_CWORD -eq 1 ]]; then
        words="{commands}"
    else
        case ${{COMP_WORDS[1]}}:$previous in
{values}
        *)
            case ${{COMP_WORDS[1]}} in
{options}
            esac ;;
        esac
    fi
    if [[ -n $words && ( $word == -* || $words != -* || -z $word ) ]]; then
        COMPREPLY=($(compgen -W "$words" -- "$word"))
    else
        COMPREPLY=($(compgen -f -- "$word"))
    fi
}}
complete -o filenames -F _pyengine pyengine
"""

ZSH = """\
#compdef pyengine
# zsh completion of pyengine; made by `pyengine completion zsh`
_pyengine() {{
    local word=${{words[CURRENT]}} previous=${{words[CURRENT-1]}}
    local -a offered
    if (( CURRENT == 2 )); then
        offered=({commands})
    else
        case ${{words[2]}}:$previous in
{values}
        *)
            case ${{words[2]}} in
{options}
            esac ;;
        esac
    fi
    if (( $#offered )) && [[ $word == -* || ${{offered[1]}} != -* || -z $word ]]; then
        compadd -- $offered
    else
        _files
    fi
}}
if [[ ${{funcstack[1]}} == _pyengine ]]; then  # found in fpath
    _pyengine "$@"
else
    compdef _pyengine pyengine
fi
"""

Parsers = dict[str, argparse.ArgumentParser]


def register(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = command(
        commands, "completion", "a completion script for a shell", DESCRIPTION, EPILOG, run
    )
    parser.add_argument(
        "shell",
        nargs="?",
        choices=("bash", "zsh", "fish"),
        default="bash",
        help="whose language the script is in (bash)",
    )
    parser.set_defaults(commands=commands)


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    parsers: Parsers = arguments.commands.choices
    if arguments.shell == "fish":
        summaries = {x.dest: x.help or "" for x in arguments.commands._choices_actions}
        print("# fish completion of pyengine; made by `pyengine completion fish`")
        print("\n".join(_fish(parsers, summaries)))
        return 0
    template, assign = {
        "bash": (BASH, 'words="{}"'),
        "zsh": (ZSH, "offered=({})"),
    }[arguments.shell]
    values, options = [], []
    for name, parser in parsers.items():
        words: list[str] = []
        for action in parser._actions:
            words += action.option_strings
            if not action.choices:
                continue
            choices = [str(choice) for choice in action.choices]
            if action.option_strings:
                patterns = "|".join(f"{name}:{flag}" for flag in action.option_strings)
                values.append(f"        {patterns}) {assign.format(' '.join(choices))} ;;")
            else:
                words += choices
        options.append(f"            {name}) {assign.format(' '.join(words))} ;;")
    commands = " ".join([*parsers, "--help", "--version"])
    print(
        template.format(commands=commands, values="\n".join(values), options="\n".join(options)),
        end="",
    )
    return 0


def _fish(parsers: Parsers, summaries: dict[str, str]) -> Iterator[str]:
    """One line for each word."""
    start = "complete -c pyengine -n __fish_use_subcommand"
    yield f"{start} -l help -d {_quoted('show the help')}"
    yield f"{start} -l version -d {_quoted('show the version')}"
    for name, parser in parsers.items():
        yield f"{start} -f -a {name} -d {_quoted(summaries.get(name, ''))}"
        formatter = parser._get_formatter()
        for action in parser._actions:
            line = f"complete -c pyengine -n '__fish_seen_subcommand_from {name}'"
            for flag in action.option_strings:
                line += f" -l {flag[2:]}" if flag.startswith("--") else f" -s {flag[1:]}"
            choices = " ".join(str(choice) for choice in action.choices or ())
            if choices:
                line += f" -x -a {_quoted(choices)}" if action.option_strings else ""
                line += f" -f -a {_quoted(choices)}" if not action.option_strings else ""
            elif not action.option_strings:
                continue  # file names, which fish offers by itself
            elif action.nargs != 0:
                line += " -r"
            if action.help and action.help != argparse.SUPPRESS:
                line += f" -d {_quoted(formatter._expand_help(action))}"
            yield line


def _quoted(text: str) -> str:
    """A word of fish."""
    text = " ".join(text.split()).replace("\\", "\\\\").replace("'", "\\'")
    return f"'{text}'"
