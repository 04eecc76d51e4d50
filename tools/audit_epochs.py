"""Proven rows of random epochs, compared with the estimates of other code.

Runs have 1 to 30 epochs of 2 to 300 steps (noise 0.3 to 40, all epochs of the same size, up to
1,000 steps in all), and thresholds over the whole range of their laws. All five functionals in both
orders are compared with the tabulated density of `pyengine.laws.allocation`, which has other
integrals, polynomials and convolutions, and estimates its errors. ``campaigns.py epochs`` compares
bounds of all questions with `pyengine.reference`.
"""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
from audit_sector import FUNCTIONALS, VALUES, Array, rows_of
from error_terms import Claim, claims_of
from random_mechanisms import evenly

from pyengine.engines.certified_epochs import TabulatedEpoch
from pyengine.engines.functionals import ERRORS
from pyengine.engines.sector import EPOCH_DEPTHS, QUIET, _composed_epochs, _law_of
from pyengine.errors import AccuracyError
from pyengine.laws.allocation import AllocatedLaw

from pyengine._core import ffi, lib  # isort: skip

REACHED = -650.0  # log of what the estimates have
MOST = 1000  # steps in all
KNOWN = 1e-6  # error of estimates that are compared

Drawn = tuple[float, int, int]  # noise, steps of an epoch, epochs


def drawn(rng: np.random.Generator, most: int) -> Drawn:
    """A run of at most a given number of steps."""
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
    law = _law_of(
        _composed_epochs, (((noise, 0.0), steps, epochs),), EPOCH_DEPTHS[noise >= QUIET][0]
    )
    if law is None:
        raise AccuracyError("no law of these epochs is proven")
    found = []
    for backward in (False, True):
        c = thresholds(law, backward, rng, number)
        own = rows_of(law, backward, c)
        other = TabulatedEpoch(AllocatedLaw(noise, steps), backward, epochs).at(0, c)
        estimate, unsure = other[:, VALUES], other[:, ERRORS:]
        estimate = np.where((unsure < KNOWN) & (estimate > REACHED), estimate, np.nan)
        found.append((own[:, VALUES], own[:, ERRORS:] + np.nan_to_num(unsure), estimate))
    return found


def claims(seed: int) -> Iterator[Claim | str]:
    """Claims about random runs."""
    rng = np.random.default_rng(seed)
    while True:
        run = drawn(rng, MOST)
        try:
            found = compared(run, rng)
        except AccuracyError:
            yield "refused"
            continue
        yield from claims_of(found, FUNCTIONALS, f"{run}")
