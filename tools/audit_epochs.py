"""Proven rows of random epochs, held against the estimates of other code.

``python tools/audit_epochs.py [--runs RUNS] [--seed SEED] [--most STEPS]`` draws runs of 1 to 30
epochs of 2 to 300 steps (noise 0.3 to 40, all of them of every size alike, up to STEPS steps in
all) and thresholds over all of what their laws have, and holds all five functionals in both orders
against the tabulated density of `pyengine.laws.allocation`, which has other integrals, polynomials
and convolutions, and estimates its errors.  It ends with 1 where a value is outside.  Bounds of all
questions are held against `pyengine.reference` by ``smooth_contour.py --family epochs``.
"""

from __future__ import annotations

import argparse
import sys
import time

import numpy as np
from audit_sector import VALUES, Array, evenly, rows_of, tally

from pyengine.engines.certified_epochs import TabulatedEpoch
from pyengine.engines.functionals import ERRORS
from pyengine.engines.sector import EPOCH_DEPTHS, QUIET, _epochs_or_refusal
from pyengine.errors import AccuracyError
from pyengine.laws.allocation import AllocatedLaw

from pyengine._core import ffi, lib  # isort: skip

REACHED = -650.0  # log of what the estimates have
KNOWN = 1e-6  # error of estimates that are compared

Drawn = tuple[float, int, int]  # noise, steps of an epoch, epochs


def drawn(rng: np.random.Generator, most: int) -> Drawn:
    """A run of up to so many steps."""
    while True:
        epochs = int(evenly(rng, 1.0, 30.0)) if rng.random() < 0.6 else 1
        run = evenly(rng, 0.3, 40.0), int(evenly(rng, 2.0, 300.0)), epochs
        if run[1] * run[2] <= most:
            return run


def thresholds(law: object, backward: bool, rng: np.random.Generator, number: int) -> Array:
    """Random losses between the ends of a law."""
    ends = ffi.new("double[2]")
    lib.pe_sector_ends(law, ends)
    c = rng.uniform(ends[0], ends[1], number)
    return -c if backward else c


def compared(run: Drawn, rng: np.random.Generator, number: int = 12) -> list[tuple[Array, ...]]:
    """Values, errors and estimates of rows; AccuracyError where there is no law or no table."""
    noise, steps, epochs = run
    law = _epochs_or_refusal((((noise, 0.0), steps, epochs),), EPOCH_DEPTHS[noise >= QUIET][0])
    if isinstance(law, str):
        raise AccuracyError(law)
    found = []
    for backward in (False, True):
        c = thresholds(law, backward, rng, number)
        own = rows_of(law, backward, c)
        other = TabulatedEpoch(AllocatedLaw(noise, steps), backward, epochs).at(0, c)
        estimate, unsure = other[:, VALUES], other[:, ERRORS:]
        estimate = np.where((unsure < KNOWN) & (estimate > REACHED), estimate, np.nan)
        found.append((own[:, VALUES], own[:, ERRORS:] + np.nan_to_num(unsure), estimate))
    return found


def main() -> int:
    """Print counts; 1 where a value is outside."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--runs", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--most", type=int, default=1000)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    every, refused, seconds = [], 0, []
    for _ in range(arguments.runs):
        run, start = drawn(rng, arguments.most), time.process_time()
        try:
            found = compared(run, rng)
        except AccuracyError:
            refused += 1
            print("refused:", run, f"{time.process_time() - start:.1f} s")
            continue
        seconds.append(time.process_time() - start)
        every += found
        if tally(found).outside:
            print("outside:", run)
    total = tally(every)
    print(f"{total.asked} asked, {total.outside} outside, {total.median:.1e} claimed")
    print(f"{refused} refused; a run takes {np.median(seconds):.1f} s, {max(seconds):.1f} at most")
    return int(total.outside > 0)


if __name__ == "__main__":
    sys.exit(main())
