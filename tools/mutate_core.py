r"""Mutants of the C core: whether a test notices a change that could happen by mistake.

    python tools/mutate_core.py csrc/certified.c --mutants 20 --seed 1 \
    tests/test_certified.py tests/test_certified_allowances.py

Draws places of a C source file at random and changes one: a sum for a difference, a quotient for a
product, ``<`` for ``<=``, fmax for fmin, a term omitted, an integer plus one, another number over a
hundred. For each the extension is rebuilt in a copy of the checkout, where the named tests run
until one fails. Prints each mutant with its result, and how many survived;
docs/developer/mutation.md explains the survivors. Needs gcc.
"""

from __future__ import annotations

import argparse
import os
import random
import re
import shlex
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).resolve().parent.parent
LONGEST = 900.0  # seconds for the tests of a mutant; one that does not end counts as killed
OTHER = {
    " + ": " - ",
    " - ": " + ",
    " * ": " / ",
    " / ": " * ",
    " < ": " <= ",
    " <= ": " < ",
    " > ": " >= ",
    " >= ": " > ",
    "fmax(": "fmin(",
    "fmin(": "fmax(",
}
NUMBER = re.compile(r"(?<![\w.])(0x[0-9a-f.]+p[+-]?\d+|\d+\.\d*(?:e[+-]?\d+)?|\d+e[+-]?\d+|\d+)\b")
HIDDEN = re.compile(r"/\*.*?\*/|//[^\n]*|\"(?:[^\"\\]|\\.)*\"|^#include[^\n]*", re.S | re.M)
DECLARED = re.compile(r"^\s*(?:static |const )*(?:double|int|size_t|pe_\w+|turns) [^=;]*\];?", re.M)


class Mutant(NamedTuple):
    """A change of a text from one place to another."""

    start: int
    end: int
    new: str


def shown(text: str) -> str:
    """The text with everything but code blanked, of the same length."""
    for pattern in (HIDDEN, DECLARED):
        text = pattern.sub(lambda found: re.sub(r"[^\n]", " ", found[0]), text)
    return text


def end_of_term(code: str, start: int) -> int:
    """Where the term of a sum that begins at a place ends."""
    depth = 0
    for i in range(start, len(code)):
        if code[i] in "([{":
            depth += 1
        elif code[i] in ")]}":
            depth -= 1
        ends = code[i] in ",;?:" or code[i : i + 3] in (" + ", " - ", " < ", " > ", " <=", " >=")
        if depth < 0 or (depth == 0 and ends):
            return i
    return len(code)


def places(text: str) -> list[Mutant]:
    """All mutants of a source."""
    code = shown(text)
    found = []
    for old, new in OTHER.items():
        for match in re.finditer(re.escape(old), code):
            found.append(Mutant(match.start(), match.end(), new))
            if old in (" + ", " - "):
                found.append(Mutant(match.start(), end_of_term(code, match.end()), ""))
    for match in NUMBER.finditer(code):
        whole = match[0].isdigit()
        if match[0] == "0.0":  # a hundredth of it is the same
            continue
        new = str(int(match[0]) + 1) if whole else f"(0.01 * {match[0]})"
        found.append(Mutant(match.start(), match.end(), new))
    return sorted(found)


class Copy:
    """A copy of the checkout in which the extension can be rebuilt, one object at a time."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        names = subprocess.run(
            ["git", "ls-files", "-z"], cwd=ROOT, capture_output=True, check=True, text=True
        )
        archive = folder / "tree.tar"
        tar = ["tar", "--null", "-T-", "-cf", str(archive)]
        subprocess.run(tar, cwd=ROOT, input=names.stdout, text=True, check=True)
        subprocess.run(["tar", "-xf", str(archive)], cwd=folder, check=True)
        archive.unlink()
        log, compiler = folder / "commands", folder / "compiler"
        compiler.write_text(f'#!/bin/sh\necho "$@" >>{log}\nexec gcc "$@"\n', encoding="utf-8")
        compiler.chmod(0o755)
        subprocess.run(
            [sys.executable, "setup.py", "-q", "build_ext", "--inplace"],
            cwd=folder,
            env={**os.environ, "CC": str(compiler)},
            check=True,
        )
        self.unchanged: dict[Path, bytes] = {}
        self.commands = [shlex.split(x) for x in log.read_text(encoding="utf-8").splitlines()]

    def build(self, source: str) -> bool:
        """Compile one source and link; whether the code differs."""
        compiled = [x for x in self.commands if source in x]
        objects = {x[x.index("-o") + 1] for x in compiled}
        linked = [x for x in self.commands if "-shared" in x and objects & set(x)]
        assert compiled, f"{source} is not among the sources"
        assert linked, f"nothing is linked of {source}"
        for command in (*compiled, *linked):
            if subprocess.run(["gcc", *command], cwd=self.folder, capture_output=True).returncode:
                return False
        changed = False
        for command in linked:
            made = self.folder / command[command.index("-o") + 1]
            used = self.folder / "pyengine" / made.name  # where Python looks for it
            code = made.read_bytes()
            changed = changed or code != self.unchanged.setdefault(used, used.read_bytes())
            used.write_bytes(code)
        return changed

    def test(self, tests: list[str]) -> str:
        """Run tests until one fails; its name, or an empty string if none does."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "-p", "no:randomly", *tests]
        environment = {**os.environ, "PYTHONPATH": str(self.folder)}
        try:
            done = subprocess.run(
                command,
                cwd=self.folder,
                env=environment,
                capture_output=True,
                text=True,
                timeout=LONGEST,
            )
        except subprocess.TimeoutExpired:
            return "did not end"
        if done.returncode == 0:
            return ""
        failed = re.search(r"^(?:FAILED|ERROR) (\S+)", done.stdout, re.M)
        return failed[1] if failed else f"ended with {done.returncode}"


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(description="Mutants of a source of the C core.")
    parser.add_argument("source", help="such as csrc/certified.c")
    parser.add_argument("tests", nargs="+", help="files of tests, or tests")
    parser.add_argument("--mutants", type=int, default=20)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    text = (ROOT / arguments.source).read_text(encoding="utf-8")
    drawn = places(text)
    random.Random(arguments.seed).shuffle(drawn)
    print(f"{arguments.source}: {len(drawn)} places")
    killed = survived = 0
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        copy = Copy(Path(name))
        path = copy.folder / arguments.source
        if failed := copy.test(arguments.tests):
            print(f"the tests fail without a mutant: {failed}")
            return 2
        for mutant in drawn:
            if killed + survived == arguments.mutants:
                break
            path.write_text(
                text[: mutant.start] + mutant.new + text[mutant.end :], encoding="utf-8"
            )
            if not copy.build(arguments.source):
                continue  # the compiler notices, or sees no difference
            why = copy.test(arguments.tests)
            killed, survived = killed + bool(why), survived + (not why)
            line = text.count("\n", 0, mutant.start) + 1
            old = text[mutant.start : mutant.end].strip()
            what = f"{line}: {old!r} -> {mutant.new.strip()!r}"
            print(f"{'killed  ' if why else 'SURVIVED'} {what}  {why}", flush=True)
    print(f"{killed} killed, {survived} survived")
    return 0


if __name__ == "__main__":
    sys.exit(main())
