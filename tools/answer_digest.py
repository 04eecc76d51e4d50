r"""Bits of random proven answers: whether compilers, instruction sets and threads change any.

    python tools/answer_digest.py --count 1500 --output here.json
    python tools/answer_digest.py --count 1500 --threads 2 --output threads.json
    python tools/answer_digest.py --compare here.json threads.json

Each question is asked for bounds at a float and at an array, in families of Gaussian steps unless
``--families`` names others (those of tools/answer_record.py).  What is printed for a family is a
digest of the bits of all its bounds, refusals included.  Builds that are to agree: ``CC=clang``,
``PYENGINE_CFLAGS='-DPE_TARGET="\"arch=x86-64\""'`` (no clones), and any of them with
``GLIBC_TUNABLES=glibc.cpu.hwcaps=-AVX2,-AVX2_Usable,-FMA,-FMA_Usable`` (other functions of the C
library) or ``NPY_DISABLE_CPU_FEATURES``.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
from collections import defaultdict
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import numpy as np
from answer_record import FAMILIES, QUESTIONS, Draw

import pyengine as pe
from pyengine.caches import clear_cache

GAUSSIAN = ("plain", "sgd", "few_sgd", "rare_sgd", "groups", "truncated", "fixed_batches")
ORDERS = ("add", "remove", "add_remove")
BESIDE = (0.5, 1.0, 1.25)  # shares of a point, asked in one array
RANGES = {"delta": (0.01, 10.0), "epsilon": (1e-12, 0.3), "gamma_bound": (1e-12, 0.5)}

Asked = dict[str, Any]


def questions(count: int, seed: int, families: Sequence[str]) -> list[Asked]:
    """Random ones, of all families in turn; of few steps where many would take seconds."""
    d = Draw(seed)
    found = []
    for i in range(count):
        family = families[i % len(families)]
        question = d.one_of(*QUESTIONS)
        at = float(d.real(*RANGES.get(question, (1e-4, 0.7))))
        found.append({"family": family, "mechanism": FAMILIES[family](d), "question": question,
                      "order": d.one_of(*ORDERS), "at": at})  # fmt: skip
    return found


def bits(asked: Asked) -> list[str]:
    """Bounds at a point, and at an array with it, as hexadecimal numbers; or a refusal."""
    mechanism = eval(asked["mechanism"], {"pe": pe})
    ask = getattr(pe, asked["question"])
    found = []
    for at in (asked["at"], asked["at"] * np.array(BESIDE)):
        try:
            bounds = ask(mechanism, at, adjacency=asked["order"], bounds=True)
        except pe.AccuracyError:
            found.append("refused")
            continue
        for side in (bounds.lower, bounds.upper):
            found += [float(x).hex() for x in np.atleast_1d(side)]
    return found


def answers(asked: Sequence[Asked], threads: int) -> list[list[str]]:
    """What a package that has kept nothing makes of them, asked from some threads."""
    clear_cache()
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(bits, asked))


def digests(rows: Sequence[Asked]) -> dict[str, str]:
    """One for each family."""
    found: dict[str, Any] = defaultdict(hashlib.sha256)
    for row in rows:
        found[row["family"]].update(json.dumps(row["bits"]).encode())
    return {family: each.hexdigest()[:16] for family, each in sorted(found.items())}


def compare(first: Path, second: Path) -> int:
    """Print questions whose bits differ; 1 where there are any."""
    rows = [json.loads(path.read_text(encoding="utf-8")) for path in (first, second)]
    differ: dict[str, int] = defaultdict(int)
    for one, other in zip(*rows, strict=True):
        if one["bits"] != other["bits"]:
            differ[one["family"]] += 1
            print(f"{one['mechanism']} {one['order']} {one['question']}({one['at']!r})")
    print(f"{len(rows[0])} questions, {sum(differ.values())} with other bits {dict(differ)}")
    return 1 if differ else 0


def main(arguments: Sequence[str]) -> int:
    """Ask, print digests, and write what was asked for."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").partition("\n")[0])
    parser.add_argument("--count", type=int, default=1500)
    parser.add_argument("--seed", type=int, default=20261126)
    parser.add_argument("--threads", type=int, default=1)
    parser.add_argument("--families", nargs="+", choices=sorted(FAMILIES), default=GAUSSIAN)
    parser.add_argument("--output", type=Path, help="JSON of all questions with their bits")
    parser.add_argument("--record", type=Path, help="the same, one question a line")
    parser.add_argument("--compare", nargs=2, type=Path)
    given = parser.parse_args(arguments)
    if given.compare:
        return compare(*given.compare)
    asked = questions(given.count, given.seed, given.families)
    rows = [
        {**each, "bits": found}
        for each, found in zip(asked, answers(asked, given.threads), strict=True)
    ]
    for family, digest in digests(rows).items():
        print(f"{family:16}{digest}")
    if given.output:
        lines = ",\n".join(json.dumps(row) for row in rows)
        given.output.write_text(f"[\n{lines}\n]\n", encoding="utf-8")
    return 0


if __name__ == "__main__":
    raise SystemExit(main(sys.argv[1:]))
