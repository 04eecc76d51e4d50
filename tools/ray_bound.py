"""Whether the density of two sampled Gaussian steps is analytic as its bound on rays says.

``python tools/ray_bound.py --cases 300`` integrates the density of the composed loss Y along rays
in the complex plane, for random noise, rates and places.  That such an integral is at most the
value on the axis times a product of ratios of single steps is the triangle inequality; that it
continues the density is what has to be seen: the mean over a circle about log Y is the value at its
centre.  Printed are the largest difference of both, which fails above 1e-9, and how close the bound
is.  docs/theory/sector_laws.md proves bounds by it.
"""

from __future__ import annotations

import argparse
import math
import sys

import numpy as np
import numpy.typing as npt

REACH = 60.0  # of log(u / (1 - u)), u the share of Y that one step has
POINTS = 64  # of a circle
CLOSE = 1e-9
Array = npt.NDArray[np.complex128]


def log_one_step(loss: Array, mu: float, odds: float) -> Array:
    """Logarithm of the density of one step's loss above its least value, without the record."""
    beyond = np.log(np.expm1(loss))
    z = (beyond - math.log(odds)) / mu + mu / 2.0
    found: Array = -0.5 * z * z + loss - beyond - math.log(mu * math.sqrt(2.0 * math.pi))
    return found


class TwoSteps:
    """Density of the sum of two, over what it is about at a place on the axis."""

    def __init__(self, size: float, mu: float, odds: float) -> None:
        self._size, self._mu, self._odds = size, mu, odds
        self._spacing = min(0.02, mu / 20.0)
        x = np.arange(-REACH, REACH, self._spacing)
        self._shares = 1.0 / (1.0 + np.exp(-x)), 1.0 / (1.0 + np.exp(x))
        self._reference = float(self._logs(complex(size)).real.max())

    def _logs(self, loss: complex) -> Array:
        one, other = (log_one_step(share * loss, self._mu, self._odds) for share in self._shares)
        return one + other

    def at(self, turn: complex) -> complex:
        """At the place times a number, along its ray."""
        loss = self._size * turn
        terms = np.exp(self._logs(loss) - self._reference) * self._shares[0] * self._shares[1]
        return complex(loss * self._spacing * terms.sum())

    def slope(self) -> float:
        """Of the logarithm, as a function of that of the loss."""
        step = 1e-4 * self._mu
        return abs(math.log(self.at(math.exp(step)).real / self.at(math.exp(-step)).real)) / step


def largest_radius(size: float) -> float:
    """Up to which e^s - 1 has arguments below π on all rays to the circle."""
    radius = 1.5
    while radius + size * math.exp(radius) * math.sin(radius) >= math.pi:
        radius *= 0.9
    return radius


def log_bound(size: float, angle: float, mu: float, odds: float) -> float:
    """Logarithm of the largest product of ratios of single steps, over ways to divide the loss."""
    x = np.linspace(-REACH, REACH, 2001)
    turned = np.exp(1j * angle)
    log = np.zeros(x.size)
    for share in (1.0 / (1.0 + np.exp(-x)), 1.0 / (1.0 + np.exp(x))):
        part = (share * size).astype(np.complex128)
        log += (log_one_step(part * turned, mu, odds) - log_one_step(part, mu, odds)).real
    return float(log.max())


def main() -> int:
    """Print the largest difference, and how close the bound is; 1 where a mean is off."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--cases", type=int, default=300)
    parser.add_argument("--seed", type=int, default=1)
    arguments = parser.parse_args()
    rng = np.random.default_rng(arguments.seed)
    apart, shares = [], []
    for _ in range(arguments.cases):
        noise, rate, spread, part = (
            math.exp(rng.uniform(math.log(low), math.log(high)))
            for low, high in ((0.3, 10.0), (1e-6, 0.5), (0.1, 1e6), (0.2, 1.0))
        )
        mu, odds = 1.0 / noise, rate / (1.0 - rate)
        size = min(odds * spread, 10.0)
        density = TwoSteps(size, mu, odds)
        radius = part * min(0.5 * largest_radius(size), mu, 6.0 / density.slope())
        turn = np.exp(2j * math.pi * (np.arange(POINTS // 2) + 0.5) / POINTS)
        circle = [density.at(complex(np.exp(radius * t))) for t in turn]
        # the other half of the circle has the conjugate values
        middle = density.at(1.0).real
        apart.append(abs(float(np.mean(circle).real) / middle - 1.0))
        may = log_bound(size, radius, mu, odds)
        shares.append(math.log(abs(density.at(complex(np.exp(1j * radius)))) / middle) / may)
    print(f"{arguments.cases} circles: means off by {max(apart):.1e} at most")
    print(
        f"logarithms on rays, over those of the bound: median {np.median(shares):.2f}, "
        f"largest {max(shares):.4f}"
    )
    return int(max(apart) > CLOSE)


if __name__ == "__main__":
    sys.exit(main())
