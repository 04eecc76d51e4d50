r"""The core on other machines: compiled for seven systems, run on three of them, bits compared.

    make cross                         # or python tools/cross.py, with ziglang beside it

ziglang brings a compiler (clang) and the C libraries of all systems. Every source of ``csrc/`` is
compiled for each, with warnings as errors. `tests/c/machines/answers.c` prints bits of answers:
built by this machine's compiler, by zig with musl for x86-64 and, under ``qemu-aarch64``, for
arm64. With one C library all bits must be the same on both machines. Differences between musl and
glibc are listed; the kernels in `SAME` must not differ. If the compiler or qemu is missing, this is
printed and left out. The C libraries that zig compiles stay in its own cache, also for other
checkouts.
"""

from __future__ import annotations

import argparse
import importlib.util
import os
import platform
import shlex
import shutil
import struct
import subprocess
import sys
from collections import defaultdict
from collections.abc import Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

ROOT = Path(__file__).parents[1]
DRIVER = ROOT / "tests" / "c" / "machines" / "answers.c"
TARGETS = (
    "x86_64-linux-musl",
    "aarch64-linux-musl",
    "x86_64-linux-gnu",
    "aarch64-linux-gnu",
    "x86_64-macos",
    "aarch64-macos",
    "x86_64-windows-gnu",
)
RUN = {"x86_64-linux-musl": "x86_64", "aarch64-linux-musl": "aarch64"}  # linked and run: as what
FLAGS = ["-std=c11", "-ffp-contract=off", "-fno-math-errno", "-fno-trapping-math", "-Icsrc"]
WARNINGS = "-Wall -Wextra -Wpedantic -Wshadow -Wstrict-prototypes -Wmissing-prototypes -Werror"
# Kernels whose answers have the same bits with any C library.
SAME: tuple[str, ...] = ("threefry",)

Answers = dict[str, list[str]]


def run(command: list[str], where: Path = ROOT) -> str:
    """Standard output of a command; ends the program with its errors if it fails."""
    done = subprocess.run(command, cwd=where, capture_output=True, text=True, check=False)
    if done.returncode or done.stderr:
        raise SystemExit(f"cross: FAILED: {shlex.join(command)}\n{done.stderr}")
    return done.stdout


def sources() -> list[str]:
    return sorted(str(path) for path in (ROOT / "csrc").glob("*.c"))


def compiled(target: str, build: Path) -> Path | None:
    """Compile all sources for a system; the driver's program if it is to be run."""
    place = build / target
    shutil.rmtree(place, ignore_errors=True)
    place.mkdir(parents=True)
    zig = [sys.executable, "-m", "ziglang", "cc", "-target", target]
    flags = [*FLAGS, f"-I{ROOT / 'csrc'}", *WARNINGS.split()]
    if target not in RUN:  # warnings of the front end are the same without optimisation
        # one by one for Windows: zig joins objects of several sources, and not those of COFF
        together = [*sources(), str(DRIVER)]
        for some in [[source] for source in together] if "windows" in target else [together]:
            run([*zig, *flags, "-O0", "-c", *some], place)
        return None
    program = place / "answers"
    run([*zig, *flags, "-O1", "-static", *sources(), str(DRIVER), "-o", str(program)], place)
    return program


def command(target: str, program: Path) -> list[str] | str:
    """How to run a program here, or why not."""
    machine = RUN[target]
    if platform.system() != "Linux":
        return "this is no Linux"
    if platform.machine() == machine:
        return [str(program)]
    emulator = shutil.which(f"qemu-{machine}") or shutil.which(f"qemu-{machine}-static")
    return [emulator, str(program)] if emulator else f"there is no qemu-{machine} (qemu-user)"


def answers(text: str) -> Answers:
    found: Answers = defaultdict(list)
    for line in text.splitlines():
        name, bits = line.split(" ", 1)
        found[name].append(bits)
    return found


def apart(one: str, other: str) -> float:
    """Difference of two doubles relative to the larger one; inf if one is NaN."""
    x, y = (struct.unpack(">d", bytes.fromhex(bits))[0] for bits in (one, other))
    size = max(abs(x), abs(y))
    difference = abs(x - y) / size if 0.0 < size < float("inf") else float(x != y)
    return difference if difference == difference else float("inf")


def compare(here: Answers, there: Answers, same: Iterable[str]) -> list[str]:
    """Print how the answers of another machine differ; return kernels that must not and do."""
    wrong = []
    for name, bits in here.items():
        others = there.get(name, [])
        if len(others) != len(bits):
            wrong.append(name)
            continue
        different = [(x, y) for x, y in zip(bits, others, strict=True) if x != y]
        if not different:
            continue
        if name in same:
            wrong.append(name)
        largest = max(apart(x, y) for x, y in different)
        print(f"    {name:<24} {len(different):5} of {len(bits):5} differ, {largest:.1e} at most")
    print(f"    the same: {', '.join(name for name in here if here[name] == there.get(name))}")
    return wrong


def main() -> int:
    """Compile and compare."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").split("\n\n")[0])
    parser.add_argument("--build", type=Path, default=ROOT / "build" / "cross")
    arguments = parser.parse_args()
    build = arguments.build.absolute()
    if importlib.util.find_spec("ziglang") is None:
        print("cross: skipped: ziglang is not installed here, and its index may not have it")
        return 0
    os.environ.setdefault("ZIG_LOCAL_CACHE_DIR", str(build / "zig"))
    (build / "zig").mkdir(parents=True, exist_ok=True)
    native = build / "native"
    compiler = shlex.split(os.environ.get("CC", "cc"))
    with ThreadPoolExecutor(2) as pool:
        programs = pool.map(lambda target: (target, compiled(target, build)), TARGETS)
        run([*compiler, *FLAGS, "-O1", *sources(), str(DRIVER), "-o", str(native), "-lm"])
        made = dict(programs)
    print(f"compiled without warnings: {', '.join(TARGETS)}")
    found = {"this machine": answers(run([str(native)]))}
    for target, program in made.items():
        if program is not None:
            how = command(target, program)
            if isinstance(how, str):
                print(f"{target}: skipped: {how}")
            else:
                found[target] = answers(run(how))
    wrong: list[str] = []
    musl = [target for target in RUN if target in found]
    pairs = [("this machine", target, SAME) for target in musl[:1]]
    pairs += [(musl[0], target, tuple(found[musl[0]])) for target in musl[1:]]
    for one, other, same in pairs:
        print(f"{other}, beside {one}:")
        wrong += [f"{other}: {name}" for name in compare(found[one], found[other], same)]
    if wrong:
        print(f"cross: FAILED: bits differ that must not: {'; '.join(wrong)}")
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
