"""Audit of the sums behind certified rows, in ball arithmetic.

    python tools/audits.py random sums --count 100000
    python tools/audits.py random sums-of-mixtures --count 20000

For random steps of DP-SGD (noise 0.3 to 30, rates 1e-6 to 1, both orders) and lines (lambda from
-30 to 30), the engine's log M(lambda) and its M(lambda + it)/M(lambda) - 1 at runs of t are
compared with the trapezoidal rule on the real line, in ball arithmetic of 160 bits, with another
spacing and window. At the last t of each line the rule is repeated with 0.7 of the spacing and a
wider window, which must change it by less than 1e-25. Steps of mixtures are those of
tools/mixture_contour.py (groups, substitution, mixtures, truncated samples, batches of fixed size),
made of exact weights. A sum is outside if it differs from that value by more than its own bound.
Lines whose law was cut within that window are left out, and counted. Needs python-flint.
"""

from __future__ import annotations

import ctypes
import itertools
import math
import random
from collections.abc import Callable, Iterator, Sequence
from fractions import Fraction
from typing import Any, NamedTuple

import numpy as np
from compiling import ROOT
from error_terms import Claim
from flint import acb, arb, ctx, fmpq
from mixture_contour import FAMILIES

from pyengine.engines.spectral import _exact_numbers
from pyengine.laws.composition import composition_law

BITS = 160
RUNS = 24  # of 16 values each
DOOR = ROOT / "tools" / "audit_sums.c"
HEAD, EACH = 4, 3
STILL = 1e-25
STEPS = ("group", "substitute", "mixture", "truncated", "fixed")


def _exact(x: Any) -> arb:
    """A double or a fraction as a ball."""
    return arb(x) if isinstance(x, float) else arb(fmpq(x.numerator, x.denominator))


class Truth:
    """M(lambda + it) of one step on nodes of the real line.

    Pairs are given by their probabilities, and by shifts with weights of A and of B.
    """

    def __init__(self, pairs: list[Any], power: float, fine: float, top: float) -> None:
        self.losses: list[arb] = []
        self.weights: list[arb] = []
        self.reach = 0.0
        for share, a, b in pairs:
            self._add(share, a, b, power, fine, top)
        self.total = sum(self.weights, arb(0))

    def _add(self, share: Any, a: Any, b: Any, power: float, fine: float, top: float) -> None:
        """The nodes of one pair."""
        shifts = [float(c) for c, _ in a + b]
        spread = max(shifts) - min(shifts)
        # the tilt moves weight by so much; all weight is between there and the shifts
        ends = shifts + [power * float(d) + (1.0 - power) * float(c) for c, _ in a for d, _ in b]
        reach = 18.0 / math.sqrt(fine)
        low, high = min(ends) - reach, max(ends) + reach
        # the integrand turns with t dl/dz < t spread, and W has its zeros at distance pi / spread
        spacing = fine * 2.0 * math.pi / (15.0 + 2.0 * (top + abs(power)) * spread)
        width = arb(min(spacing, fine * 0.45 / spread))
        root = _exact(share) * width / (2 * arb.pi()).sqrt()
        terms = [[(_exact(c), _exact(w)) for c, w in side if w != 0] for side in (a, b)]
        for k in range(int((high - low) / float(width)) + 1):
            z = low + k * width
            of_a, of_b = (
                sum((w * (c * z - c * c / 2).exp() for c, w in side), arb(0)) for side in terms
            )
            loss = (of_b / of_a).log()
            self.losses.append(loss)
            self.weights.append((arb(power) * loss - z * z / 2).exp() * of_a * root)
        self.reach = max(self.reach, high, -low)

    def values(self, ht: float, count: int) -> list[acb]:
        """M(lambda + it)/M(lambda) - 1 at t = k ht, k < count."""
        turns = [(acb(0, ht) * loss).exp() for loss in self.losses]
        now = [acb(weight / self.total) for weight in self.weights]
        found = []
        for _ in range(count):
            found.append(sum(now, acb(0)) - 1)
            now = [x * turn for x, turn in zip(now, turns, strict=True)]
        return found

    def at(self, t: float) -> acb:
        """The same at one t."""
        terms = (
            weight * (acb(0, t) * loss).exp()
            for weight, loss in zip(self.weights, self.losses, strict=True)
        )
        return sum(terms, acb(0)) / self.total - 1


def upper(x: acb) -> float:
    """An upper bound of a modulus."""
    return float(abs(x).upper())


def sampled(random_: random.Random) -> tuple[list[Any], Any, str]:
    """Pairs of a random step of DP-SGD, the engine's parameters for them, and their name."""
    noise, p = math.exp(random_.uniform(-1.2, 3.4)), math.exp(random_.uniform(-13.8, 0.0))
    backward = random_.random() < 0.5
    plain = [(0.0, 1.0)]
    side = [(Fraction(0), 1 - Fraction(p)), (1 / Fraction(noise), Fraction(p))]
    pairs = [(1.0, side, plain) if backward else (1.0, plain, side)]

    def asked(kernel: Any, *rest: Any) -> int:
        given = (*(ctypes.c_double(x) for x in (noise, p)), ctypes.c_int(backward))
        return int(kernel.audit_sums(*given, *rest))

    return pairs, asked, f"noise {noise!r}, p {p!r}, backward {backward}"


def mixed(random_: random.Random, family: str) -> tuple[list[Any], Any, str]:
    """The same for a step of mixtures; its numbers reach the engine in the usual way."""
    rng = np.random.default_rng(random_.getrandbits(64))
    kind = FAMILIES[family](rng)[0]
    adjacency = "substitute" if family == "substitute" else random_.choice(("add", "remove"))
    pairs = [(s, b, a) if adjacency == "remove" else (s, a, b) for s, a, b in kind.pairs]
    law = composition_law(kind.step, adjacency)[0][0]
    found, exact = law.mixtures(), law.exact_mixtures()
    assert found is not None
    assert exact is not None
    sides = [side for pair in found for side in (pair.a, pair.b)]
    terms, numbers = _exact_numbers(exact)

    def asked(kernel: Any, *rest: Any) -> int:
        arrays = (
            (ctypes.c_double * len(found))(*(pair.log_share for pair in found)),
            _sizes([len(side.shifts) for side in sides]),
            _numbers([shift for side in sides for shift in side.shifts]),
            _numbers([weight for side in sides for weight in side.weights]),
            _sizes(terms),
            _numbers(numbers),
        )
        return int(kernel.audit_mixtures(ctypes.c_size_t(len(found)), *arrays, *rest))

    return pairs, asked, f"{kind.step}, {adjacency}"


def _sizes(values: list[int]) -> Any:
    return (ctypes.c_size_t * len(values))(*values)


def _numbers(values: list[float]) -> Any:
    return (ctypes.c_double * len(values))(*values)


class Drawn(NamedTuple):
    """One line of one step."""

    pairs: list[Any]
    asked: Callable[..., int]
    where: str
    power: float
    ht: float
    every_t: bool  # whether nodes must be fine enough for all t
    runs: int


def drawn(random_: random.Random, family: str | None, runs: int = RUNS) -> Drawn:
    """A random line of a random step."""
    pairs, asked, name = mixed(random_, family) if family else sampled(random_)
    power = random_.choice((random_.uniform(-30.0, 30.0), random_.uniform(-2.0, 3.0)))
    longest = math.exp(random_.uniform(-3.0, 4.5))  # the last t
    if family:  # several shifts, and far ones, take more nodes
        most = max(abs(float(c)) for _, a, b in pairs for c, _ in a + b)
        power, longest = power / max(1.0, most), longest / max(1.0, 3.0 * most)
    power = 1.0 - (1.0 - power)  # the engine takes powers whose complement to 1 is a double
    ht = math.ldexp(math.floor(math.ldexp(longest / (16 * runs), 40)), -40)
    every_t = random_.random() < 0.5
    where = f"{name}, lambda {power!r}, ht {ht!r}, every t {every_t}"
    return Drawn(pairs, asked, where, power, ht, every_t, runs)


class Known(NamedTuple):
    """The truth of a line."""

    log_m: arb
    values: list[acb]
    reach: float
    still: float


def truth_of(line: Drawn) -> Known:
    """By the trapezoidal rule, repeated with other nodes."""
    with ctx.workprec(BITS):
        top = line.ht * (16 * line.runs - 1)
        truth = Truth(line.pairs, line.power, 1.0, top)
        finer = Truth(line.pairs, line.power, 0.7, top)
        values = truth.values(line.ht, 16 * line.runs)
        moved = abs(truth.total / finer.total - 1).upper()
        still = max(upper(values[-1] - finer.at(top)), float(moved))
        return Known(truth.total.log(), values, finer.reach, still)


def judge(kernel: Any, line: Drawn, known: Known) -> Iterator[Claim | str]:
    """The claims about the sums of one line, or why it is left out."""
    out, conjugate = (ctypes.c_double * (HEAD + EACH * 16 * line.runs))(), ctypes.c_int()
    status = line.asked(
        kernel,
        *(ctypes.c_double(x) for x in (line.power, line.ht)),
        ctypes.c_size_t(line.runs),
        ctypes.c_int(line.every_t),
        ctypes.byref(conjugate),
        out,
    )
    if status or out[0] < known.reach or not known.still < STILL:
        moves = "the rule moves" if out[0] >= known.reach else "the law is cut"
        yield "no proof" if status else moves
        return
    with ctx.workprec(BITS):
        found = arb(out[1]) + arb(out[2])
        yield Claim("log M", float(abs(known.log_m - found).upper()), out[3], line.where)
        for k, value in enumerate(known.values[1:], 1):  # at t = 0 it is 0 by definition
            re, im, bound = out[HEAD + EACH * k : HEAD + EACH * (k + 1)]
            if math.isfinite(bound):
                sign = -1 if conjugate.value else 1
                off = upper(value - acb(re, sign * im))
                yield Claim("value", off, bound, f"{line.where}: value {k}")


def claims(kernel: Any, seed: str, families: Sequence[str | None]) -> Iterator[Claim | str]:
    """Claims about random lines of steps of some families, None for sampled ones."""
    random_ = random.Random(seed)
    for family in itertools.cycle(families):
        line = drawn(random_, family)
        yield from judge(kernel, line, truth_of(line))
