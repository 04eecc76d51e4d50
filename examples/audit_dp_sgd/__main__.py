"""Audit DP-SGD on three real data sets: attacks held against the bounds that pyengine computes.

python examples/audit_dp_sgd -o audit_output
"""

from __future__ import annotations

import argparse
import json
import sys
import time
from pathlib import Path

from attacks import Reconstruction, gradient_likelihood_ratio, membership, reconstruction
from data import NAMES, load
from training import Settings

from pyengine import audit


class Progress:
    """A line on stderr: runs done and seconds left."""

    def __init__(self, total: int) -> None:
        self.total, self.done, self.start, self.shown = total, 0, time.monotonic(), 0.0

    def __call__(self) -> None:
        """Count one run."""
        self.done += 1
        now = time.monotonic()
        if now - self.shown > 0.5 or self.done == self.total:
            self.shown = now
            left = (now - self.start) / self.done * (self.total - self.done)
            end = "\n" if self.done == self.total else ""
            print(f"\r{self.done}/{self.total} runs, {left:4.0f} s left", end=end, file=sys.stderr)
            sys.stderr.flush()


def main() -> int:
    """Run the audit; the exit code is 1 if an attack beats its bound."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("-o", "--output", type=Path, default=Path("audit_output"))
    parser.add_argument("--runs", type=int, default=1000, help="trainings for each attack")
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    if arguments.runs < 1:
        parser.error("--runs must be at least 1")
    arguments.output.mkdir(parents=True, exist_ok=True)
    settings = Settings()
    progress = Progress(len(NAMES) * arguments.runs * 4)
    panels: dict[str, list[audit.Finding]] = {}
    reconstructions: dict[str, Reconstruction] = {}
    for number, name in enumerate(NAMES):
        task = load(name)
        seed = arguments.seed + 10 * number
        panels[name] = [
            membership(task, settings, arguments.runs, seed, progress),
            gradient_likelihood_ratio(task, len(task.x) // 4, arguments.runs, seed + 1, progress),
        ]
        reconstructions[name] = reconstruction(task, settings, arguments.runs, seed + 2, progress)
    text, content = _write_up(panels, reconstructions)
    (arguments.output / "report.txt").write_text(text, encoding="utf-8")
    (arguments.output / "report.json").write_text(content, encoding="utf-8")
    (arguments.output / "curves.png").write_bytes(audit.picture(panels))
    print(text, end="")
    return int("BEATS" in text)


def _write_up(
    panels: dict[str, list[audit.Finding]], reconstructions: dict[str, Reconstruction]
) -> tuple[str, str]:
    lines, content = [], {}
    for name, findings in panels.items():
        words, numbers = audit.report(findings)
        found = reconstructions[name]
        low, high = audit.clopper_pearson(found.successes, found.trials)
        verdict = "BEATS THE BOUND" if low > found.bound else "stays below the bound"
        lines += [
            f"== {name}",
            words.rstrip(),
            f"prior-aware reconstruction among ten: {verdict}",
            f"  success {found.successes}/{found.trials}, 95 % interval [{low:.4f}, {high:.4f}], "
            f"bound {found.bound:.4f}, difference "
            f"{found.bound - found.successes / found.trials:+.4f}",
            "",
        ]
        content[name] = {
            "attacks": json.loads(numbers),
            "reconstruction": {**vars(found), "interval": [low, high]},
        }
    return "\n".join(lines), json.dumps(content, indent=2) + "\n"


if __name__ == "__main__":
    sys.exit(main())
