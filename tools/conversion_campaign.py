"""Random inputs to conversions and older bounds against ball arithmetic: counts of wrong answers.

``python tools/conversion_campaign.py --count 20000 --seed 1`` draws that many inputs for each
function of `pyengine.duality` and `pyengine.baselines` from its whole domain and prints how many
answers lie on the wrong side or outside of the stated error, and the largest error in units of the
stated one.  Input k depends on the seed and k alone.  Needs python-flint and mpmath.
"""

from __future__ import annotations

import argparse
import sys
import time
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent / "tests"))

from conversion_truth import CONVERSIONS, campaign


def main() -> int:
    """Run the campaign; the exit code says whether any answer was wrong."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--count", type=int, default=20_000)
    parser.add_argument("--seed", default="1")
    parser.add_argument("--only", nargs="+", choices=list(CONVERSIONS), default=list(CONVERSIONS))
    parser.add_argument("--examples", type=int, default=3, help="wrong answers to print of each")
    arguments = parser.parse_args()
    wrong = 0
    print(f"{'function':30} inputs  unsafe outside  worst error  seconds")
    for name in arguments.only:
        start = time.process_time()
        found = campaign(name, arguments.count, arguments.seed)
        wrong += found.unsafe + found.outside
        print(
            f"{name:30} {found.asked:6} {found.unsafe:7} {found.outside:7} {found.worst:12.3g} "
            f"{time.process_time() - start:8.1f}",
            *found.examples[: arguments.examples],
            sep="\n    ",
            flush=True,
        )
    return 1 if wrong else 0


if __name__ == "__main__":
    raise SystemExit(main())
