"""``pyengine completion``: shell scripts that complete commands, options and their words."""

from __future__ import annotations

import argparse
from pathlib import Path

from pyengine._support.extras import needed
from pyengine.cli.parsers import command, option

__all__ = ["register"]

DESCRIPTION = "Print a script that completes commands, options, words and file names in a shell."
EPILOG = """\
examples:
  source <(pyengine completion)                       for this shell: bash, or zsh with `zsh`
  pyengine completion > ~/.local/share/bash-completion/completions/pyengine    for later bash shells
  pyengine completion zsh > "${fpath[1]}/_pyengine"   for later zsh shells
  pyengine completion fish > ~/.config/fish/completions/pyengine.fish          for fish"""
SHELLS = ("bash", "zsh", "fish", "tcsh", "powershell")


def run(arguments: argparse.Namespace) -> int:
    """Print the script."""
    with needed("a completion script", "completion"):
        import shtab
    parsers = [arguments.root]
    for parser in parsers:  # which grows while it is gone through
        for action in parser._actions:
            if isinstance(action, argparse._SubParsersAction):
                parsers += action.choices.values()
            elif action.type is Path:
                action.complete = shtab.FILE
    print(shtab.complete(arguments.root, arguments.shell))
    return 0


WORDS = {"nargs": "?", "choices": SHELLS, "default": "bash"}
register = command(
    "completion",
    "a completion script for a shell",
    DESCRIPTION,
    EPILOG,
    run,
    option("shell", "SHELL", f"{', '.join(SHELLS)} (bash)", **WORDS),
)
