"""``python -m icount``: measure and judge, or record; tests/ must be on the path."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterable
from pathlib import Path

from . import clones, ratchet
from .measurements import count_kernels, count_questions
from .ratchet import Clones, Part, Record
from .valgrind import CountError, Counts

MEASUREMENTS = {"kernels": count_kernels, "questions": count_questions}
SPREAD = 1e-3  # largest difference between counts of the same work


def _table(part: str, counts: Counts, recorded: Part | None) -> None:
    print(f"{part:32}{'instructions':>14}{'recorded':>14}")
    for name, count in sorted(counts.instructions.items()):
        limit = recorded.instructions.get(name) if recorded else None
        change = f"{limit:14,}{count / limit - 1.0:+9.2%}" if limit else f"{'-':>14}"
        print(f"  {name:30}{count:14,}{change}")


def _clones(recorded: Clones, *, to_record: bool) -> tuple[Clones, list[str]]:
    """Compare the clones if possible; return the ratios and the failures."""
    reason = clones.why_not()
    if reason:
        print(f"AVX-512 clones: SKIPPED, {reason}")
        return recorded, []
    same = clones.cpu() == recorded.cpu
    judged = recorded.ratios if same else {}
    found = Clones(clones.cpu(), clones.ratios(None if to_record else judged))
    print("AVX-512 clones: time over that of the AVX2 clones")
    for name, ratio in sorted(found.ratios.items()):
        print(f"  {name:30}{ratio:14.3f}{recorded.ratios.get(name, float('nan')):14.3f}")
    if not same:
        print(
            f"AVX-512 clones: REPORTED ONLY, NOT JUDGED: on {found.cpu}, recorded: {recorded.cpu}"
        )
    return found, clones.judge(judged, found.ratios)


def check(path: Path) -> int:
    """Measure everything and print what has become worse; 1 if anything has."""
    record = ratchet.load(path)
    failures, improved, notes = [], [], []
    for part, measure in MEASUREMENTS.items():
        counts, versions = measure()
        recorded = record.parts.get(part)
        _table(part, counts, recorded)
        verdict = ratchet.judge(part, recorded, counts, versions)
        failures += verdict.failures
        improved += verdict.improved
        notes += verdict.notes
    failures += _clones(record.clones, to_record=False)[1]
    for line in notes:
        print(f"icount: NOTE: {line}")
    for line in improved:
        print(f"icount: better, please `make icount-record`: {line}")
    for line in failures:
        print(f"icount: FAILED: {line}")
    print(f"icount: {'FAILED' if failures else 'ok'}")
    return 1 if failures else 0


def record(path: Path, allowed: list[str]) -> int:
    """Measure everything and record what may be recorded; 1 if an entry would have to be raised."""
    old = ratchet.load(path)
    parts, refused = {}, []
    for part, measure in MEASUREMENTS.items():
        counts, versions = measure()
        if counts.failed:
            raise CountError("; ".join(f"{k}: {why}" for k, why in sorted(counts.failed.items())))
        _table(part, counts, old.parts.get(part))
        parts[part], above = ratchet.lowered(old.parts.get(part), counts, versions, allowed)
        refused += above
    found, slow = _clones(old.clones, to_record=True)
    # A ratio is a time and varies: the entry stays, unless named or of another processor.
    keep = found.cpu == old.clones.cpu and "avx512" not in allowed
    ratios = {**found.ratios, **old.clones.ratios} if keep else found.ratios
    ratios = {
        name: ratio for name, ratio in ratios.items() if name in parts["kernels"].instructions
    }
    ratchet.save(Record(parts, Clones(found.cpu, ratios)), path)
    for name in refused:
        print(f"icount: not raised: {name}; `make icount-record RAISE={name}` does so")
    for line in slow:
        print(f"icount: not recorded: {line}; `make icount-record RAISE=avx512` does so")
    return 1 if refused or (keep and slow) else 0


def repeat(times: int, parts: Iterable[str]) -> int:
    """Measure parts several times and print how far counts differ; 1 if that is too far."""
    worst = 0.0
    for part in parts:
        found: dict[str, list[int]] = {}
        for _ in range(times):
            counts, _ = MEASUREMENTS[part]()
            if counts.failed:
                raise CountError("; ".join(f"{k}: {v}" for k, v in sorted(counts.failed.items())))
            for name, count in counts.instructions.items():
                found.setdefault(name, []).append(count)
        print(f"{part:32}{'instructions':>14}{'largest over least':>20}")
        for name, each in sorted(found.items()):
            spread = max(each) / min(each) - 1.0
            worst = max(worst, spread)
            print(f"  {name:30}{min(each):14,}{spread:+20.4%}")
    print(f"icount: {times} times, counts differ by at most {worst:.4%}")
    return 1 if worst > SPREAD else 0


def main() -> int:
    """Run the command line."""
    parser = argparse.ArgumentParser(prog="icount", description=__doc__)
    parser.add_argument("--record", action="store_true", help="write the file instead of judging")
    parser.add_argument("--raise", dest="allowed", nargs="*", default=[], metavar="NAME")
    parser.add_argument("--repeat", type=int, metavar="N", help="how far do N counts differ?")
    parser.add_argument(
        "--part", choices=MEASUREMENTS, help="what --repeat measures, if not everything"
    )
    parser.add_argument("--file", type=Path, default=ratchet.PATH)
    arguments = parser.parse_args()
    if arguments.part is not None and arguments.repeat is None:
        parser.error("--part goes with --repeat: all parts are judged and recorded together")
    try:
        if arguments.repeat is not None:
            if arguments.repeat < 2:
                parser.error(f"--repeat must be at least 2, got {arguments.repeat}")
            return repeat(arguments.repeat, [arguments.part] if arguments.part else MEASUREMENTS)
        if arguments.record:
            return record(arguments.file, arguments.allowed)
        return check(arguments.file)
    except CountError as error:
        print(f"icount: FAILED: {error}")
        return 1


if __name__ == "__main__":
    sys.exit(main())
