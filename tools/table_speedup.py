"""How much faster two workers make a table of 200 cells.

``python tools/table_speedup.py [ROUNDS]``; each round computes the table once with one worker and
once with two, in turn, so that what else the machine does meets both.  The files are compared, too.
"""

from __future__ import annotations

import contextlib
import io
import statistics
import sys
import tempfile
import time
from pathlib import Path

from pyengine.tables.run import run
from pyengine.tables.spec import parse

SPEC = """
engine = "reference"
digits = 30
formats = ["csv"]
[gamma_bound]
kappa = ["1e-1", "1e-2", "1e-3", "1e-4", "1e-5"]
adjacency = ["add", "remove"]
[[workflow]]
name = "run"
noise_multiplier = ["2", "2.5", "3", "4"]
sampling_probability = "16384/1281167"
steps = [20_000, 40_000, 60_000, 80_000, 100_000]
"""


def seconds(workers: int, directory: Path) -> float:
    specification = parse(SPEC, "speed-up")
    assert specification.cells == 200
    start = time.perf_counter()
    with contextlib.redirect_stdout(io.StringIO()), contextlib.redirect_stderr(io.StringIO()):
        code = run(specification, directory, workers=workers)
    if code:
        raise SystemExit("some values were refused")
    return time.perf_counter() - start


def main() -> None:
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 3
    ratios = []
    with tempfile.TemporaryDirectory() as name:
        one, two = Path(name, "one"), Path(name, "two")
        for number in range(1, rounds + 1):
            alone, together = seconds(1, one), seconds(2, two)
            ratios.append(alone / together)
            same = (one / "table.csv").read_bytes() == (two / "table.csv").read_bytes()
            print(
                f"round {number}: one worker {alone:.1f} s, two {together:.1f} s, "
                f"ratio {ratios[-1]:.2f}, {'same' if same else 'DIFFERENT'} bytes",
                flush=True,
            )
    print(f"median ratio {statistics.median(ratios):.2f}")


if __name__ == "__main__":
    main()
