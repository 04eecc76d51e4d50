"""The recorded counts: how far measurements may exceed them, and how they are lowered.

``tests/data/instructions.toml`` has, for each piece of work, the least recorded number of
instructions and the versions that it was measured with. Counts with other versions are not
comparable: they are reported, and fail nothing.
"""

from __future__ import annotations

import sys
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import NamedTuple

from .valgrind import Counts

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

__all__ = ["LIMITS", "PATH", "Clones", "Part", "Record", "judge", "load", "lowered", "save"]

PATH = Path(__file__).parents[1] / "data" / "instructions.toml"
LIMITS = {"kernels": 0.02, "questions": 0.05}
NEWS = 0.005
LESS = 0.02  # share below the recorded count from which it is worth recording
TOO_LITTLE = 0.5  # share of the recorded count: below it, the work may not have been done
HEADER = """\
# Instructions of fixed pieces of work (tests/icount/c/kernels) and of whole questions
# (tests/icount/python/questions.py), under cachegrind.  `make icount` fails where a kernel takes
# 2 % more, or a question 5 %.  Written by `make icount-record`, which lowers entries and adds new
# ones; `make icount-record RAISE="name ..."` raises those that are named: say why in the commit.
"""

Versions = dict[str, str]


class Part(NamedTuple):
    """Recorded counts that were measured with the same versions."""

    versions: Versions
    instructions: dict[str, int]


class Clones(NamedTuple):
    """Times of the AVX-512 clones over those of the AVX2 ones, on one processor."""

    cpu: str
    ratios: dict[str, float]


class Record(NamedTuple):
    """The file: parts by the keys of `LIMITS`, and the ratios of clones."""

    parts: dict[str, Part]
    clones: Clones


def load(path: Path = PATH) -> Record:
    """Return the record; an empty one if there is no file."""
    found = tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}
    clones = found.pop("avx512", {"cpu": "", "ratios": {}})
    parts = {name: Part(part["versions"], part["instructions"]) for name, part in found.items()}
    return Record(parts, Clones(**clones))


def save(record: Record, path: Path = PATH) -> None:
    """Write the whole file, or keep the old one."""
    lines = [HEADER]
    for name, part in sorted(record.parts.items()):
        lines.append(f"[{name}.versions]")
        lines += [f'{key} = "{value}"' for key, value in sorted(part.versions.items())]
        lines.append(f"\n[{name}.instructions]")
        lines += [f"{key} = {value}" for key, value in sorted(part.instructions.items())]
        lines.append("")
    lines += ["# Time of the AVX-512 clone over that of the AVX2 one.", "[avx512]"]
    lines += [f'cpu = "{record.clones.cpu}"', "\n[avx512.ratios]"]
    lines += [f"{key} = {value:.3f}" for key, value in sorted(record.clones.ratios.items())]
    fresh = path.with_suffix(".new")
    fresh.write_text("\n".join(lines) + "\n", encoding="utf-8")
    fresh.replace(path)


class Verdict(NamedTuple):
    """Messages: failures, what should be recorded, and mere differences."""

    failures: list[str]
    improved: list[str]
    notes: list[str]


def judge(
    part: str, recorded: Part | None, measured: Counts, versions: Mapping[str, str]
) -> Verdict:
    """Compare a measurement with the record, if there is one, for a key of `LIMITS`.

    Work without a count is a failure, whatever the versions. Each sentence names the piece of work.
    """
    verdict = Verdict([f"{name}: {why}" for name, why in sorted(measured.failed.items())], [], [])
    known = recorded or Part({}, {})
    same = known.versions == versions
    if known.instructions and not same:
        keys = sorted({*known.versions, *versions})
        pairs = [(key, known.versions.get(key, "none"), versions.get(key, "none")) for key in keys]
        differ = ", ".join(
            f"{key} {now} (recorded: {was})" for key, was, now in pairs if was != now
        )
        verdict.notes.append(f"the {part} are REPORTED ONLY, NOT JUDGED: other versions, {differ}")
    for name in sorted({*known.instructions, *measured.instructions}):
        count, limit = measured.instructions.get(name), known.instructions.get(name)
        if count is None:
            if name not in measured.failed:
                verdict.failures.append(f"{name}: recorded, but no longer measured")
        elif limit is None:
            verdict.failures.append(f"{name}: not recorded; `make icount-record` adds it")
        elif same:
            change = f"{count:,} instructions, {count / limit - 1.0:+.1%} of the recorded {limit:,}"
            if count > limit * (1.0 + LIMITS[part]):
                verdict.failures.append(f"{name}: {change}; the limit is {LIMITS[part]:+.0%}")
            elif count < limit * TOO_LITTLE:
                verdict.failures.append(
                    f"{name}: {change}; where the work is still done, `make icount-record`"
                )
            elif count < limit * (1.0 - LESS):
                verdict.improved.append(f"{name}: {change}")
    return verdict


def lowered(
    recorded: Part | None, measured: Counts, versions: Versions, allowed: Iterable[str]
) -> tuple[Part, list[str]]:
    """Return the part to record, and the entries that would have to be raised but may not be.

    Entries are lowered, new ones are added, those without work are removed. With other versions all
    are rewritten, as counts of other versions are not comparable.
    """
    allowed = set(allowed)
    if recorded is None or recorded.versions != versions:
        return Part(versions, dict(measured.instructions)), []
    kept, refused = {}, []
    for name, count in measured.instructions.items():
        limit = recorded.instructions.get(name, count)
        # tenths of a per cent are not worth a change
        kept[name] = count if name in allowed or count < limit * (1.0 - NEWS) else limit
        if count > limit * (1.0 + LESS) and name not in allowed:
            refused.append(name)
    return Part(versions, kept), refused
