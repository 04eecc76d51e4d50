"""``pyengine completion``: what shells offer."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from pyengine.cli.main import make_parser


def commands() -> dict[str, Any]:
    parser = make_parser()
    (action,) = (
        action for action in parser._actions if action.choices and not action.option_strings
    )
    return dict(action.choices)  # type: ignore[arg-type]


def complete(*words: str) -> set[str]:
    """What bash offers after these words, the last one unfinished."""
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    program = f"source <({sys.executable} -m pyengine completion) && _pyengine && "
    program += 'printf "%s\\n" "${COMPREPLY[@]}"'
    line = " ".join(f"'{word}'" for word in ("pyengine", *words))
    run = subprocess.run(
        ["bash", "-c", f"COMP_WORDS=({line}); COMP_CWORD={len(words)}; {program}"],
        capture_output=True,
        text=True,
        check=True,
        env=environment,
    )
    return set(run.stdout.split())


def test_completion() -> None:
    assert complete("ga") == {"gamma"}
    assert complete("") >= set(commands()) | {"--help", "--version"}
    assert complete("gamma", "--ka") == {"--kappa"}
    assert complete("gamma", "--noise", "1", "--adjacency", "add") == {"add", "add_remove"}
    assert complete("delta", "--mechanism", "lap") == {"laplace"}
    assert "pyproject.toml" in complete("gamma", "--file", "pyproj")


def script(shell: str) -> str:
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(p for p in sys.path if p)}
    line = [sys.executable, "-m", "pyengine", "completion", shell]
    return subprocess.run(line, capture_output=True, text=True, check=True, env=environment).stdout


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_completion_scripts_know_every_command_and_option(shell: str) -> None:
    """Whether or not the shell is here."""
    text = script(shell)
    for name, parser in commands().items():
        assert re.search(rf"\b{name}\b", text)
        for action in parser._actions:
            for flag in action.option_strings:
                long = f"-l {flag[2:]}" if flag.startswith("--") else f"-s {flag[1:]}"
                assert (long if shell == "fish" else flag) in text
    assert "discrete_gaussian" in text
    if shell == "fish":  # words in quotes, each on a line of its own
        lines = text.splitlines()[1:]
        assert all(line.startswith("complete -c pyengine -n ") for line in lines)
        assert all(line.replace("\\'", "").count("'") % 2 == 0 for line in lines)
    elif shell == "zsh":
        assert text.startswith("#compdef pyengine\n")
    if shutil.which(shell):
        subprocess.run([shell, "-n"], input=text, text=True, check=True)


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_completion_in_fish(tmp_path: Path) -> None:
    path = tmp_path / "pyengine.fish"
    path.write_text(script("fish"))

    def complete(line: str) -> set[str]:
        ask = ["fish", "--no-config", "-c", f"source {path}; complete -C 'pyengine {line}'"]
        found = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
        return {word.split("\t")[0] for word in found.splitlines()}

    assert complete("ga") == {"gamma"}
    assert complete("gamma --ka") == {"--kappa"}
    assert complete("gamma --noise 1 --adjacency add") == {"add", "add_remove"}
    assert complete("completion ") == {"bash", "zsh", "fish"}
    assert "pyproject.toml" in complete("gamma --file pyproj")


@pytest.mark.skipif(not shutil.which("zsh"), reason="zsh is not installed")
def test_completion_in_zsh(tmp_path: Path) -> None:
    (tmp_path / "_pyengine").write_text(script("zsh"))
    # what zsh's own functions would get, from the script as it is found in fpath
    stubs = "compadd() { shift; print -l -- $@ }; _files() { print FILES }; compdef() { : }"

    def complete(*line: str, load: str) -> set[str]:
        program = f"{stubs}; {load}; words=(pyengine {' '.join(line)} ''); CURRENT=$#words"
        ask = ["zsh", "-f", "-c", f"{program}; _pyengine"]
        return set(subprocess.run(ask, capture_output=True, text=True, check=True).stdout.split())

    for load in (f"source {tmp_path}/_pyengine", f"fpath=({tmp_path}); autoload -Uz _pyengine"):
        assert complete(load=load) == {*commands(), "--help", "--version"}
        words = complete("gamma", "--adjacency", load=load)
        assert words == {"add", "remove", "add_remove", "substitute"}
        assert "--kappa" in complete("gamma", load=load)
    program = f"{stubs}; {load}; words=(pyengine gamma --file x); CURRENT=4; _pyengine"
    ask = ["zsh", "-f", "-c", program]
    assert subprocess.run(ask, capture_output=True, text=True, check=True).stdout == "FILES\n"
