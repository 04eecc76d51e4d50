"""Audit of the sums behind certified rows, in ball arithmetic.

    python tools/audit_sums.py --sums 100000 --seed 1

For random steps of DP-SGD (noise 0.3 to 30, rates 1e-6 to 1, both orders) and lines (lambda from
-30 to 30) the engine's log M(lambda) and its M(lambda + it)/M(lambda) - 1 at runs of t are compared
with the trapezoidal rule in ball arithmetic of 160 bits, on the real line, at a spacing and a
window of its own; at the last t of each line the rule is taken again with 0.7 of the spacing and a
wider window, and what that changes must be below 1e-25.  A sum is outside where it is further from
that value than its own bound; lines whose law was cut within that window are left out, and counted.
Needs python-flint.
"""

from __future__ import annotations

import argparse
import ctypes
import math
import random
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Any

from audit_certificate import FLAGS, SOURCES
from flint import acb, arb, ctx

ROOT = Path(__file__).resolve().parent.parent
RUNS = 24
VALUES = 16 * RUNS
HEAD, EACH = 4, 3
STILL = 1e-25


def compiled(folder: Path) -> Any:
    """The kernel of the certified lines with a door to its sums."""
    library = folder / "sums.so"
    files = [str(ROOT / "csrc" / f"{name}.c") for name in SOURCES]
    files.append(str(ROOT / "tools" / "audit_sums.c"))
    command = ["gcc", *FLAGS, "-shared", "-fPIC", f"-I{ROOT / 'csrc'}", *files, "-o", str(library)]
    subprocess.run([*command, "-lm"], check=True)
    return ctypes.CDLL(str(library))


class Truth:
    """M(lambda + it) of one step on nodes of the real line."""

    def __init__(
        self, noise: float, p: float, backward: bool, power: float, fine: float, top: float
    ) -> None:
        mu, rate, reach = 1 / arb(noise), arb(p), 18.0 / math.sqrt(fine)
        # the tilt moves weight by as much as power times mu at most, to either side
        q = 1.0 - power if backward else power
        edge = abs(q) / noise
        low, high = -reach - (edge if q < 0 else 0.0), reach + max(edge, 1.0 / noise)
        self.high = high
        # the integrand turns with t dl/dz < t/noise, and W has its zeros at distance pi noise
        spacing = fine * 2 * math.pi / (15.0 + 2.0 * top / noise + 2.0 * edge)
        spacing = arb(min(spacing, fine * 0.45 * noise))
        count = int((high - low) / float(spacing)) + 1
        nodes = [low + k * spacing for k in range(count)]
        losses = [(1 - rate + rate * (mu * z - mu * mu / 2).exp()).log() for z in nodes]
        root = spacing / (2 * arb.pi()).sqrt()
        self.power = arb(q)
        self.losses = [-loss if backward else loss for loss in losses]
        self.weights = [
            (self.power * loss - z * z / 2).exp() * root
            for z, loss in zip(nodes, losses, strict=True)
        ]
        self.total = sum(self.weights, arb(0))

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


class Counts:
    """What was found."""

    def __init__(self) -> None:
        self.sums = self.outside = self.lines = self.cut = self.refused = self.unsure = 0
        self.shares: list[float] = []

    def judge(self, miss: float, bound: float, where: str) -> None:
        """One number that the engine bounds."""
        self.sums += 1
        share = miss / bound if bound > 0.0 else (0.0 if miss == 0.0 else math.inf)
        self.shares.append(share)
        if share > 1.0:
            self.outside += 1
            print(f"outside: {where}: {miss:.3g} beside {bound:.3g}")


def upper(x: acb) -> float:
    """A bound of a modulus."""
    return float(abs(x).upper())


def ask(kernel: Any, random_: random.Random, counts: Counts) -> None:
    """One line of one step."""
    noise, p = math.exp(random_.uniform(-1.2, 3.4)), math.exp(random_.uniform(-13.8, 0.0))
    backward = random_.random() < 0.5
    power = random_.choice((random_.uniform(-30.0, 30.0), random_.uniform(-2.0, 3.0)))
    longest = math.exp(random_.uniform(-3.0, 4.5))  # the last t
    ht = math.ldexp(math.floor(math.ldexp(longest / VALUES, 40)), -40)
    out, conjugate = (ctypes.c_double * (HEAD + EACH * VALUES))(), ctypes.c_int()
    status = kernel.audit_sums(
        *(ctypes.c_double(x) for x in (noise, p)),
        ctypes.c_int(backward),
        *(ctypes.c_double(x) for x in (power, ht)),
        ctypes.c_size_t(RUNS),
        ctypes.byref(conjugate),
        out,
    )
    if status:
        counts.refused += 1
        return
    where = f"noise {noise!r}, p {p!r}, backward {backward}, lambda {power!r}, ht {ht!r}"
    top = ht * (VALUES - 1)
    truth = Truth(noise, p, backward, power, 1.0, top)
    finer = Truth(noise, p, backward, power, 0.7, top)
    if out[0] < finer.high:
        counts.cut += 1
        return
    values = truth.values(ht, VALUES)
    still = max(
        upper(values[-1] - finer.at(top)), float(abs(truth.total / finer.total - 1).upper())
    )
    if not still < STILL:
        counts.unsure += 1
        return
    counts.lines += 1
    found = arb(out[1]) + arb(out[2])
    counts.judge(float(abs(truth.total.log() - found).upper()), out[3], f"{where}: log M")
    for k, value in enumerate(values[1:], 1):  # at t = 0 it is 0 by definition
        re, im, bound = out[HEAD + EACH * k : HEAD + EACH * (k + 1)]
        if not math.isfinite(bound):
            continue
        sign = -1 if conjugate.value else 1
        counts.judge(upper(value - acb(re, sign * im)), bound, f"{where}: value {k}")


def main() -> int:
    """Print what was found; 1 if a sum is outside of its bound."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--sums", type=int, default=100_000)
    parser.add_argument("--seed", default="1")
    arguments = parser.parse_args()
    ctx.prec = 160
    random_, counts = random.Random(arguments.seed), Counts()
    with tempfile.TemporaryDirectory() as folder:
        kernel = compiled(Path(folder))
        while counts.sums < arguments.sums:
            ask(kernel, random_, counts)
            if sys.stderr.isatty():
                print(f"\r{counts.sums} sums", end="", file=sys.stderr, flush=True)
    counts.shares.sort()
    print(
        f"{counts.sums} sums of {counts.lines} lines: {counts.outside} outside; error beside its "
        f"bound: median {counts.shares[counts.sums // 2]:.1e}, largest {counts.shares[-1]:.2g}"
    )
    print(
        f"left out: {counts.cut} lines of a cut law, {counts.refused} without a proof, "
        f"{counts.unsure} where the rule moves"
    )
    return 1 if counts.outside else 0


if __name__ == "__main__":
    raise SystemExit(main())
