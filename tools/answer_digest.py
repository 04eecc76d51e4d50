r"""Bits of 5,000 proven answers: whether compilers, processors, threads or a change alter any.

    python tools/answer_digest.py check                 # ask the recorded questions again
    python tools/answer_digest.py check --threads 2 --part 8
    python tools/answer_digest.py update                # the same questions, new bits
    python tools/answer_digest.py draw --rows 32        # new questions

`tests/data/answer_bits.json` has mechanisms of all families of random_mechanisms.py and mixtures of
them. Each is asked the four questions at four floats and at an array of 38, and the file has a
digest of the bits of the bounds of each call. `check` prints a digest for each family, and all
differences; ``--part k`` asks only every k-th row. These builds must agree: ``CC=clang``,
``PYENGINE_CFLAGS`` of ``-march=x86-64`` or ``-DPE_TARGET='"arch=x86-64"'`` (no clones), and any of
them with ``OPENBLAS_CORETYPE=Prescott`` or ``NPY_DISABLE_CPU_FEATURES`` (other functions of NumPy).
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import time
from collections import defaultdict
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from answer_record import OutOfTimeError, limited
from random_mechanisms import FAMILIES, MIXED, QUESTIONS, Draw

import pyengine as pe
from pyengine.caches import clear_cache

RECORD = Path(__file__).parents[1] / "tests" / "data" / "answer_bits.json"
NAMES = (*FAMILIES, "mixed")
ORDERS = ("add", "remove", "add_remove")
RANGES = {"delta": (0.01, 6.0), "epsilon": (1e-12, 0.3), "gamma_bound": (1e-12, 0.5)}
FLOATS, POINTS = 4, 42  # points that are asked alone, and all: the others as one array
FEW = 5
SECONDS = 8.0  # of processor time that a row may take

Row = dict[str, Any]


def questions(seed: int) -> Iterator[Row]:
    """Random rows, of all families in turn."""
    d = Draw(seed)
    for i in range(sys.maxsize):
        family = NAMES[i % len(NAMES)]
        some = [family]
        if family == "mixed":
            some = d.random.choice(MIXED, int(d.random.integers(2, 4)), replace=False).tolist()
        points = FEW if family == "allocation" else POINTS  # of which each takes long
        asked = {
            name: sorted(float(d.real(*RANGES.get(name, (1e-4, 0.9)))) for _ in range(points))
            for name in QUESTIONS
        }
        mechanism = " + ".join(FAMILIES[name](d) for name in some)
        yield {"family": family, "mechanism": mechanism, "order": d.one_of(*ORDERS), "at": asked}


def digest(bounds: Any) -> str:
    """Eight digits of the bits of bounds."""
    numbers = np.concatenate([np.atleast_1d(bounds.lower), np.atleast_1d(bounds.upper)])
    return hashlib.sha256(numbers.astype("<f8").tobytes()).hexdigest()[:8]


def bits(row: Row) -> list[str]:
    """Digests of the answers about one mechanism, or refusals."""
    mechanism = eval(row["mechanism"], {"pe": pe})
    found = []
    for question, points in row["at"].items():
        for at in (*points[:FLOATS], np.array(points[FLOATS:])):
            ask = getattr(pe, question)
            try:
                bounds = ask(mechanism, at, adjacency=row["order"], bounds=True)
            except pe.AccuracyError:
                found.append("refused")
            else:
                found.append(digest(bounds))
    return found


def answers(rows: Sequence[Row], threads: int) -> list[list[str]]:
    """Answers of a package with empty caches, asked from several threads."""
    clear_cache()
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(bits, rows))


def drawn(count: int, seed: int) -> list[Row]:
    """As many random rows, only quick ones of each family; the quickest first."""
    found: dict[str, list[tuple[float, Row]]] = defaultdict(list)
    most = -(-count // len(NAMES))
    for row in questions(seed):
        known = found[row["family"]]
        if len(known) == most:
            if all(len(found[name]) == most for name in NAMES):
                break
            continue
        clear_cache()
        begun = time.process_time()
        try:
            with limited(SECONDS):
                row["bits"] = bits(row)
        except OutOfTimeError:
            continue
        known.append((time.process_time() - begun, row))
    ranked = [[row for _, row in sorted(rows, key=lambda one: one[0])] for rows in found.values()]
    return [row for rows in zip(*ranked, strict=True) for row in rows]


def read() -> list[Row]:
    """The rows of the record."""
    rows: list[Row] = json.loads(RECORD.read_text(encoding="utf-8"))
    return rows


def write(rows: Sequence[Row]) -> None:
    """Write the record, one line for each row."""
    lines = ",\n".join(json.dumps(row) for row in rows)
    RECORD.write_text(f"[\n{lines}\n]\n", encoding="utf-8")


def differing(rows: Sequence[Row], found: Sequence[Sequence[str]]) -> Iterator[str]:
    """The calls whose bits differ from the record."""
    for row, own in zip(rows, found, strict=True):
        asked = [f"{name}({at})" for name, points in row["at"].items()
                 for at in (*points[:FLOATS], points[FLOATS:])]  # fmt: skip
        for text, old, new in zip(asked, row["bits"], own, strict=True):
            if old != new:
                yield f"{row['mechanism']} {row['order']} {text}: {old} -> {new}"


def digests(rows: Sequence[Row], found: Sequence[Sequence[str]]) -> dict[str, str]:
    """One for each family."""
    made: dict[str, Any] = defaultdict(hashlib.sha256)
    for row, own in zip(rows, found, strict=True):
        made[row["family"]].update(" ".join(own).encode())
    return {family: each.hexdigest()[:16] for family, each in sorted(made.items())}


def main(arguments: Sequence[str]) -> int:
    """Ask again and print or record the differences, or draw new questions."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    commands = parser.add_subparsers(dest="command", required=True)
    checking = commands.add_parser(
        "check", help="whether the questions of the record have its bits"
    )
    updating = commands.add_parser("update", help="write the bits that they have now")
    for each in (checking, updating):
        each.add_argument("--threads", type=int, default=1)
    checking.add_argument("--part", type=int, default=1, help="every so many rows alone")
    drawing = commands.add_parser("draw", help="write other random questions with their bits")
    drawing.add_argument("--rows", type=int, default=32)
    drawing.add_argument("--seed", type=int, default=20261126)
    given = parser.parse_args(arguments)
    if given.command == "draw":
        write(drawn(given.rows, given.seed))
        return 0
    rows = read()
    if given.command == "check":
        rows = rows[:: given.part]
    begun = time.process_time()
    found = answers(rows, given.threads)
    for family, each in digests(rows, found).items():
        print(f"{family:16}{each}")
    other = list(differing(rows, found))
    print(*other, sep="\n")
    asked = sum(map(len, (points for row in rows for points in row["at"].values())))
    print(
        f"{asked} answers, {len(other)} calls with other bits, {time.process_time() - begun:.0f} s"
    )
    if given.command == "update":
        write([{**row, "bits": own} for row, own in zip(rows, found, strict=True)])
        return 0
    return 1 if other else 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
