"""Times of the AVX-512 clones relative to the AVX2 ones.

valgrind has no AVX-512, so the counts are those of the AVX2 clones. Here each kernel is built once
for each level, and both run alternately in one process: the median of the paired ratios varies by a
few per cent where single times vary by 20.
"""

from __future__ import annotations

import re
import subprocess
from collections.abc import Callable, Mapping
from pathlib import Path

from .build import build
from .valgrind import CountError

__all__ = ["FACTOR", "cpu", "judge", "least", "ratios", "why_not"]

LEVELS = ("x86-64-v3", "x86-64-v4")
NEEDS = {"avx512f", "avx512bw", "avx512cd", "avx512dq", "avx512vl"}  # features that x86-64-v4 adds
# Times of kernels with cached tables, such as spectral_at, have varied by 18 % under load.
FACTOR = 1.25
ATTEMPTS = 3


def _cpuinfo() -> str:
    path = Path("/proc/cpuinfo")
    return path.read_text(encoding="utf-8") if path.exists() else ""


def cpu() -> str:
    """Return the name of the processor, as ratios of another one are not comparable."""
    found = re.search(r"^model name\s*: (.*)$", _cpuinfo(), re.M)
    return found[1].strip() if found else "unknown"


def why_not() -> str:
    """Return why the clones cannot be compared here, or nothing."""
    found = re.search(r"^flags\s*: (.*)$", _cpuinfo(), re.M)
    missing = sorted(NEEDS - set(found[1].split() if found else []))
    return f"the processor has no {', '.join(missing)}" if missing else ""


def _once(command: list[str]) -> dict[str, float]:
    run = subprocess.run(command, capture_output=True, text=True, check=False)
    if run.returncode:
        raise CountError(f"the comparison of clones ended with {run.returncode}: {run.stderr}")
    return {name: float(ratio) for name, ratio in map(str.split, run.stdout.splitlines())}


def ratios(recorded: Mapping[str, float] | None = None) -> dict[str, float]:
    """Return the time of the AVX-512 clone over that of the AVX2 one, for each kernel.

    It is the least of the attempts, so that it is too large only if every attempt is. If
    ``recorded`` ratios are given, attempts stop once none is too large.
    """
    libraries = [
        build(
            main="nothing.c",
            flags=["-fPIC", f'-DPE_TARGET="arch={level}"'],
            link=["-shared", "-Wl,-Bsymbolic"],
        ).path
        for level in LEVELS
    ]
    timer = build(kernels=[], main="pairs.c").path
    return least(lambda: _once([str(timer), *map(str, libraries)]), recorded)


def least(
    once: Callable[[], dict[str, float]], recorded: Mapping[str, float] | None
) -> dict[str, float]:
    """Return the least ratio of each kernel over the necessary number of attempts."""
    found = once()
    for _ in range(1, ATTEMPTS):
        if recorded is not None and not judge(recorded, found):
            break
        again = once()
        found = {name: min(ratio, again[name]) for name, ratio in found.items()}
    return found


def judge(recorded: Mapping[str, float], measured: Mapping[str, float]) -> list[str]:
    """Return a sentence for each kernel whose AVX-512 clone has become slow."""
    return [
        f"{name}: its AVX-512 clone takes {ratio:.2f} times as long as the AVX2 one, "
        f"recorded {recorded[name]:.2f}; the limit is {FACTOR:g} times that"
        for name, ratio in sorted(measured.items())
        if name in recorded and ratio > FACTOR * recorded[name]
    ]
