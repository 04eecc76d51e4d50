"""Whether the density of two sampled Gaussian steps obeys its bound on rays in the complex plane.

``python tools/ray_bound.py --cases 60`` compares, for random noise, rates, losses Y above the least
one and angles w, |f(Y e^iw)| / f(Y) with the largest product of the same ratios of one step over
all ways to divide Y.  docs/developer/open_ends.md says what this bound could prove.
"""

from __future__ import annotations

import argparse

import mpmath as mp
import numpy as np

DIGITS = 25
REACH = 60  # of log(u / (1 - u)), u the share of Y that one step has
SHARES = 80  # ways to divide Y that are tried for the largest product


def one_step(loss: mp.mpc, mu: mp.mpf, odds: mp.mpf) -> mp.mpc:
    """Density of one step's loss above its least value, under the law without the record."""
    beyond = mp.expm1(loss)
    z = mp.log(beyond / odds) / mu + mu / 2
    return mp.npdf(0) * mp.exp(-z * z / 2) * (beyond + 1) / (mu * beyond)


def two_steps(loss: mp.mpc, mu: mp.mpf, odds: mp.mpf) -> mp.mpc:
    """Density of the sum of two, an integral along the ray of the loss."""

    def term(x: mp.mpf) -> mp.mpc:
        first, second = 1 / (1 + mp.exp(-x)), 1 / (1 + mp.exp(x))
        each = one_step(first * loss, mu, odds) * one_step(second * loss, mu, odds)
        return each * first * second

    return loss * mp.quad(term, mp.linspace(-REACH, REACH, REACH + 1))


def growth(size: mp.mpf, angle: mp.mpf, mu: mp.mpf, odds: mp.mpf) -> mp.mpf:
    """How much larger the density of one step is on the ray than on the axis."""
    turned = one_step(size * mp.expj(angle), mu, odds)
    return abs(turned) / abs(one_step(size, mu, odds))


def main() -> None:
    """Print the logs of ratios beside those of their bounds."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    logits = mp.linspace(-REACH, REACH, SHARES + 1)
    shares = [(1 / (1 + mp.exp(-x)), 1 / (1 + mp.exp(x))) for x in logits]
    above, nearest = 0, mp.inf
    with mp.workdps(DIGITS):
        for _ in range(arguments.cases):
            noise, rate, spread, angle = (
                mp.mpf(float(np.exp(rng.uniform(np.log(low), np.log(high)))))
                for low, high in ((0.3, 10.0), (1e-6, 0.5), (0.1, 1e6), (0.05, 1.5))
            )
            mu, odds = 1 / noise, rate / (1 - rate)
            size = min(odds * spread, mp.mpf(10))
            on_axis, on_ray = (
                abs(two_steps(size * mp.expj(turn), mu, odds)) for turn in (0, angle)
            )
            bound = max(
                growth(a * size, angle, mu, odds) * growth(b * size, angle, mu, odds)
                for a, b in shares
            )
            has, may = mp.log(on_ray / on_axis), mp.log(bound)
            above += has > may
            nearest = min(nearest, may - has)
            words = (mp.nstr(x, 4) for x in (noise, rate, size, angle, has, may))
            print(*words, sep="  ")
    print(f"{arguments.cases} cases, {above} above the bound, nearest {mp.nstr(nearest, 3)}")


if __name__ == "__main__":
    main()
