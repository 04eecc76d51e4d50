"""Random answers with bounds about mixtures of normals, compared with a second contour.

    python tools/campaigns.py group --answers 100000 --seed 1

Steps are groups of two to five records, sampled steps under substitution, Gaussian mixtures,
truncated Poisson samples, batches of fixed size, compositions of two of these (except substitution)
and plain noise, and one of them beside randomized response: noise 0.3 to 30, rates 1e-5 to 0.9, up
to 10^6 steps. Three in ten are also asked next to the ends of their domains. The truth is that of
``tools/second_contour.py``, on nodes that are made here of exact weights and shifts; it shares no
code with the engines.
"""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable, Iterator
from fractions import Fraction
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
from random_mechanisms import evenly

ROOT = Path(__file__).resolve().parent.parent
sys.path[:0] = [
    str(ROOT / "tests"),
    str(ROOT / "tests" / "reference_mixtures"),
]

from bounds_tally import Case, Truth  # noqa: E402
from contour_ends import at_levels, at_zero, levels_next_to_ends  # noqa: E402
from contour_lines import CHOICES, Line  # noqa: E402
from contour_truths import LD, PI  # noqa: E402
from generate import sides as sides_of  # noqa: E402
from generate import wide  # noqa: E402
from second_contour import asked_on, second_contour  # noqa: E402

import pyengine as pe  # noqa: E402

Side = list[tuple[Fraction, Fraction]]  # shifts and weights
MOST = 24_000  # terms of a sum over t
SHARE = 0.3  # share of compositions that are also asked next to the ends of their domains
HALF_LOG_2PI = np.log(2 * PI) / 2


class Kind(NamedTuple):
    """A kind of step: its name, its pairs with the probability of each, and the number of steps.

    Steps of few losses have their probabilities under A and B instead of pairs.
    """

    step: pe.Step
    pairs: list[tuple[Fraction, Side, Side]]
    steps: int
    outcomes: Side | None = None


def _log_uniform(rng: np.random.Generator, low: float, high: float, digits: int = 4) -> str:
    return f"{evenly(rng, low, high):.{digits}g}"


def _steps(rng: np.random.Generator) -> int:
    return int(float(_log_uniform(rng, 2.0, 1e6)))


def group(rng: np.random.Generator) -> Kind:
    """Several records at once, each sampled independently."""
    noise, p = _log_uniform(rng, 0.3, 30.0), _log_uniform(rng, 1e-5, 0.9)
    size, steps = int(rng.integers(2, 6)), _steps(rng)
    rate = Fraction(p)
    weights = [math.comb(size, k) * rate**k * (1 - rate) ** (size - k) for k in range(size + 1)]
    shifts = [Fraction(k) / Fraction(noise) for k in range(size + 1)]
    step = pe.dp_sgd(noise, p, 1, group_size=size)
    return Kind(step, [(Fraction(1), _plain(), list(zip(shifts, weights, strict=True)))], steps)


def _plain() -> Side:
    return [(Fraction(0), Fraction(1))]


def _of_row(step: pe.Step, row: dict[str, Any], rng: np.random.Generator) -> Kind:
    return Kind(step, sides_of({**row, "adjacency": "add"}), _steps(rng))


def substitute(rng: np.random.Generator) -> Kind:
    """A Poisson-sampled step where a record is replaced."""
    noise, p = _log_uniform(rng, 0.3, 30.0), _log_uniform(rng, 1e-5, 0.9)
    step = pe.GaussianMechanism(noise).poisson_sampled(p)
    return _of_row(step, {"kind": "substitute", "noise": noise, "p": p}, rng)


def mixture(rng: np.random.Generator) -> Kind:
    """A random shift."""
    noise = _log_uniform(rng, 0.3, 30.0)
    shifts = sorted({f"{rng.uniform(0.05, 3.0):.2f}" for _ in range(rng.integers(1, 5))}, key=float)
    parts = [int(rng.integers(1, 1000)) for _ in shifts]
    if rng.random() < 0.8:
        shifts.insert(0, "0")
        parts.insert(0, int(float(_log_uniform(rng, 10.0, 1e7))))
    weights = [f"{part}/{sum(parts)}" for part in parts]
    row = {"kind": "mixture", "noise": noise, "shifts": shifts, "weights": weights}
    return _of_row(pe.GaussianMixtureMechanism(noise, shifts, weights), row, rng)


def truncated(rng: np.random.Generator) -> Kind:
    """A Poisson sample that is cut if it is too large."""
    noise, records = _log_uniform(rng, 0.3, 30.0), int(rng.integers(40, 400))
    p = f"{max(2.0 / records, float(_log_uniform(rng, 1e-3, 0.8))):.3g}"
    batch = int(np.clip(records * float(p) * rng.uniform(0.8, 1.5), 1, records - 1))
    sizes = {"batch_size": batch, "dataset_size": records}
    step = pe.GaussianMechanism(noise).truncated_poisson_sampled(p, **sizes)
    return _of_row(step, {"kind": "truncated", "noise": noise, "p": p, **sizes}, rng)


def fixed(rng: np.random.Generator) -> Kind:
    """A batch of fixed size, where another record is pushed out, which also moves the sum."""
    noise, records = _log_uniform(rng, 0.6, 60.0), int(float(_log_uniform(rng, 10.0, 1e5)))
    batch = int(rng.integers(1, max(2, records // 3)))
    step = pe.GaussianMechanism(noise).sampled_without_replacement(
        batch_size=batch, dataset_size=records
    )
    rate = Fraction(batch, records)
    side = [(Fraction(0), 1 - rate), (2 / Fraction(noise), rate)]
    return Kind(step, [(Fraction(1), _plain(), side)], _steps(rng))


def plain(rng: np.random.Generator) -> Kind:
    """Noise alone."""
    noise = _log_uniform(rng, 1.0, 100.0)
    shift = [(1 / Fraction(noise), Fraction(1))]
    return Kind(pe.GaussianMechanism(noise), [(Fraction(1), _plain(), shift)], _steps(rng))


def sampled(rng: np.random.Generator) -> Kind:
    """A step of DP-SGD."""
    noise, p = _log_uniform(rng, 0.3, 30.0), _log_uniform(rng, 1e-5, 0.9)
    rate = Fraction(p)
    side = [(Fraction(0), 1 - rate), (1 / Fraction(noise), rate)]
    step = pe.GaussianMechanism(noise).poisson_sampled(p)
    return Kind(step, [(Fraction(1), _plain(), side)], _steps(rng))


def response(rng: np.random.Generator) -> Kind:
    """Randomized response, once to six times."""
    truthful = Fraction(int(rng.integers(51, 99)), 100)
    outcomes = [(1 - truthful, truthful), (truthful, 1 - truthful)]
    return Kind(pe.RandomizedResponse(truthful), [], int(rng.integers(1, 7)), outcomes)


ORDERED = (group, mixture, truncated, fixed)
FAMILIES: dict[str, Callable[[np.random.Generator], list[Kind]]] = {
    **{make.__name__: lambda rng, make=make: [make(rng)] for make in (*ORDERED, substitute)},
    "composition": lambda rng: [
        ORDERED[rng.integers(len(ORDERED))](rng),
        (*ORDERED, plain)[rng.integers(len(ORDERED) + 1)](rng),
    ],
    "beside few losses": lambda rng: [
        (sampled, *ORDERED)[rng.integers(len(ORDERED) + 1)](rng),
        response(rng),
    ],
}


def _moved(side: Side, z: Any) -> Any:
    """Terms of a side over the normal density, less their weights."""
    return sum(wide(w) * np.expm1(wide(c) * (z - wide(c) / 2)) for c, w in side)


def _log_side(side: Side, z: Any) -> Any:
    """Log of a side over the normal density."""
    terms = np.array([np.log(wide(w)) + wide(c) * (z - wide(c) / 2) for c, w in side if w])
    top = terms.max(axis=0)
    return top + np.log(np.exp(terms - top).sum(axis=0))


def _nodes(kind: Kind, lam: float, fine: float, reach: float) -> tuple[Any, Any]:
    """Logs of weights under A, and losses, at equidistant z of all pairs."""
    if kind.outcomes is not None:
        of_a, of_b = (np.log(np.array([wide(x[i]) for x in kind.outcomes])) for i in (0, 1))
        return of_a, of_b - of_a
    logs, losses = [], []
    for share, a, b in kind.pairs:
        shifts = [float(c) for c, _ in a + b]
        ends = [0.0, *shifts]
        ends += [lam * float(d) + (1.0 - lam) * float(c) for c, _ in a for d, _ in b]
        spacing = fine * min(0.1, 0.12 / max(max(shifts) - min(shifts), 0.01))
        count = math.ceil((max(ends) - min(ends) + 2.0 * reach) / spacing)
        if count > 40_000:
            raise OverflowError
        z = LD(min(ends) - reach) + (np.arange(count).astype(LD) + LD(0.5)) * LD(spacing)
        log_a, log_b = _log_side(a, z), _log_side(b, z)
        with np.errstate(over="ignore", invalid="ignore"):
            change = (_moved(b, z) - _moved(a, z)) / np.exp(log_a)
            near = np.log1p(np.where(np.abs(change) < 0.5, change, LD(0)))
        losses.append(np.where(np.abs(change) < 0.5, near, log_b - log_a))
        logs.append(np.log(LD(spacing) * wide(share)) - z * z / 2 - HALF_LOG_2PI + log_a)
    return np.concatenate(logs), np.concatenate(losses)


class MixtureLine(Line):
    """Functionals on the vertical line through a tilt."""

    def __init__(self, library: ctypes.CDLL, kinds: list[Kind], lam: float) -> None:
        self._library, self._kinds, self._lam = library, kinds, lam
        # near-atoms of several pairs, and few losses: their transform oscillates
        several = any(len(kind.pairs) != 1 for kind in kinds)
        self._past = 3.0 if several else 0.0

    def _given(self, fine: float, reach: float) -> tuple[list[Any], list[Any]]:
        """The arguments of the library, and the arrays that must outlive the call."""
        nodes = [_nodes(kind, self._lam, fine, reach) for kind in self._kinds]
        arrays = [
            np.array([part[0].size for part in nodes], dtype=np.int64),
            np.concatenate([part[0] for part in nodes]).astype(LD),
            np.concatenate([part[1] for part in nodes]).astype(LD),
            np.array([kind.steps for kind in self._kinds], dtype=np.float64),
        ]
        pointers = [array.ctypes.data_as(ctypes.c_void_p) for array in arrays]
        return [len(nodes), *pointers, ctypes.c_double(self._lam)], arrays

    def moments(self) -> tuple[float, float, float] | None:
        """Mean and deviation of the tilted sum, and K(λ) - λ mean: about the log of A's mass."""
        out = np.zeros(4)
        try:
            given, _kept = self._given(1.0, CHOICES[0][2])
        except OverflowError:
            return None
        if not self._library.listed_sum(*given, out.ctypes.data_as(ctypes.c_void_p)):
            return None
        self.rounding = float(out[3])
        return float(out[0]), float(out[1]), float(out[2])

    def inverted(
        self, choice: tuple[float, float, float, float], c: npt.NDArray[np.float64]
    ) -> Any | None:
        """Logs at thresholds by one choice of spacings and ends."""
        fine_z, fine_t, reach, depth = choice
        out = np.zeros((c.size, 3), dtype=LD)
        try:
            given, _kept = self._given(fine_z, reach)
        except OverflowError:
            return None
        ends = [ctypes.c_double(x) for x in (fine_t, depth, self._past * depth / CHOICES[0][3])]
        where = [array.ctypes.data_as(ctypes.c_void_p) for array in (c, out)]
        done = self._library.listed_invert(*given, *ends, MOST, c.size, *where)
        return out if done else None


def renamed(found: list[Truth], substituted: bool) -> Iterator[Truth]:
    """Questions under substitution have one order."""
    for one in found:
        if not substituted:
            yield one
        elif one.adjacency != "add_remove":
            yield one._replace(adjacency="substitute")


def case(
    name: str, make: Callable[[np.random.Generator], list[Kind]], rng: np.random.Generator
) -> Case:
    """A random composition of a family with its truths."""
    kinds = make(rng)
    line = partial(MixtureLine, second_contour(), kinds)
    found = asked_on(line, rng)
    if found and rng.random() < SHARE:
        found += [*at_zero(line, rng), *at_levels(line, levels_next_to_ends(None, rng), rng)]
    run = pe.compose(*(kind.step.composed(kind.steps) for kind in kinds))
    return Case(run, f"{run}", list(renamed(found, name == "substitute")))
