"""``pyengine completion``: what shells offer, by the scripts that shtab makes."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from pyengine.cli import main
from pyengine.cli.completion import SHELLS
from pyengine.cli.main import make_parser

pytest.importorskip("shtab")


def script(capsys: pytest.CaptureFixture[str], shell: str) -> str:
    assert main(["completion", shell]) == 0
    return capsys.readouterr().out


@pytest.mark.skipif(not shutil.which("bash"), reason="bash is not installed")
def test_completion_in_bash(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "pyengine.bash"
    path.write_text(script(capsys, "bash"))
    (tmp_path / "run.toml").write_text("noise = 1\n")
    monkeypatch.chdir(tmp_path)

    def complete(*words: str) -> set[str]:
        line = " ".join(f"'{word}'" for word in ("pyengine", *words))
        program = f"source {path}; COMP_WORDS=({line}); COMP_CWORD={len(words)}; "
        program += "$(complete -p pyengine | sed -E 's/.*-F ([^ ]+).*/\\1/'); "
        program += 'printf "%s\\n" "${COMPREPLY[@]}"'
        run = subprocess.run(["bash", "-c", program], capture_output=True, text=True, check=True)
        return {word.rstrip() for word in run.stdout.splitlines()}

    assert complete("ga") == {"gamma"}
    assert complete("gamma", "--ka") == {"--kappa"}
    assert complete("gamma", "--noise", "1", "--adjacency", "add") >= {"add", "add_remove"}
    assert complete("delta", "--mechanism", "lap") == {"laplace"}
    assert complete("epsilon", "run") == complete("gamma", "--file", "run") == {"run.toml"}


@pytest.mark.parametrize("shell", SHELLS)
def test_scripts_know_every_command(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    """Whether or not the shell is here."""
    text = script(capsys, shell)
    (action,) = (a for a in make_parser()._actions if a.choices and not a.option_strings)
    for name in action.choices or ():
        assert name in text
    for word in ("discrete_gaussian", "kappa", "sampling-probability", "spend"):
        assert word in text
    if shell in ("bash", "zsh", "fish") and shutil.which(shell):
        subprocess.run([shell, "-n"], input=text, text=True, check=True)


@pytest.mark.skipif(not shutil.which("fish"), reason="fish is not installed")
def test_completion_in_fish(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = tmp_path / "pyengine.fish"
    path.write_text(script(capsys, "fish"))

    def complete(line: str) -> set[str]:
        ask = ["fish", "--no-config", "-c", f"source {path}; complete -C 'pyengine {line}'"]
        found = subprocess.run(ask, capture_output=True, text=True, check=True).stdout
        return {word.split("\t")[0] for word in found.splitlines()}

    assert complete("ga") == {"gamma"}
    assert complete("gamma --ka") == {"--kappa"}
    assert complete("gamma --noise 1 --adjacency add") == {"add", "add_remove"}


def test_without_the_library(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "shtab", None)
    assert main(["completion"]) == 2
    assert "needs shtab: pip install 'pyengine-dp[completion]'" in capsys.readouterr().err
