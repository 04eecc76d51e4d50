"""``pyengine completion``: a script that completes commands, options and their words."""

from __future__ import annotations

import argparse

from pyengine.cli.parsers import Commands, command

__all__ = ["register"]

DESCRIPTION = "Print a script for bash that completes commands, options, words and file names."
EPILOG = """\
examples:
  source <(pyengine completion)                       for this shell
  pyengine completion > ~/.local/share/bash-completion/completions/pyengine    for all to come"""

SCRIPT = """\
# bash completion of pyengine; made by `pyengine completion`
_pyengine() {{
    local word=${{COMP_WORDS[COMP_CWORD]}} previous=${{COMP_WORDS[COMP_CWORD-1]}} words=
    if [[ $COMP_CWORD -eq 1 ]]; then
        words="{commands} --help --version"
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


def register(commands: Commands) -> None:
    """Add the command to the parser."""
    parser = command(
        commands, "completion", "a completion script for bash", DESCRIPTION, EPILOG, run
    )
    parser.set_defaults(commands=commands)


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    parsers: dict[str, argparse.ArgumentParser] = arguments.commands.choices
    values, options = [], []
    for name, parser in parsers.items():
        words: list[str] = []
        for action in parser._actions:
            if action.option_strings:
                words += action.option_strings
            if not action.choices:
                continue
            choices = " ".join(map(str, action.choices))
            if action.option_strings:
                patterns = "|".join(f"{name}:{flag}" for flag in action.option_strings)
                values.append(f'        {patterns}) words="{choices}" ;;')
            else:
                words += choices.split()
        options.append(f'            {name}) words="{" ".join(words)}" ;;')
    print(
        SCRIPT.format(
            commands=" ".join(parsers), values="\n".join(values), options="\n".join(options)
        ),
        end="",
    )
    return 0
