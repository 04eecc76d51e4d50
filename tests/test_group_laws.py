"""Laws on pieces of groups' steps: density, growth and rows, by closed forms and by quadrature."""

from __future__ import annotations

import ctypes
import math
import re
from collections.abc import Iterator
from fractions import Fraction
from pathlib import Path
from typing import Any

import audit_sector as tool
import mpmath
import numpy as np
import pytest
from mpmath import mpf
from thorough import sampled, stored

import pyengine as pe
from pyengine.engines.functionals import A_ABOVE, A_BELOW, B_ABOVE, B_BELOW, ERRORS, WIDTH, Limits
from pyengine.engines.sector import Kinds, SectorLaws
from pyengine.mechanisms.mixture import binomial_weights
from pyengine.numerics.exact_numbers import in_two_doubles, log_of_rest

DIGITS = 30
TIGHT = Limits(1e-14, 1e-14)
TAILS = (A_ABOVE, A_BELOW, B_ABOVE, B_BELOW)


class Group:
    """One step of a group, in closed forms; z is what is seen of it, standard normal under A."""

    def __init__(self, noise: float, rate: float, size: int) -> None:
        self.noise, self.rate, self.size = noise, rate, size
        some = [Fraction(float(x)) for x in binomial_weights(size, rate)[1:]]
        self.weights = (1 - sum(some, Fraction(0)), *some)
        self.mu = 1 / mpf(noise)
        self.weight = [mpf(w.numerator) / w.denominator for w in self.weights]
        logs = [mpmath.log(w) - (k * self.mu) ** 2 / 2 for k, w in enumerate(self.weight)]
        self.floor, self.logs = logs[0], [log - logs[0] for log in logs[1:]]

    def law(self, kernel: Any, deepest: float = -200.0) -> tool.Law:
        """The law on pieces; ValueError where it is refused."""
        none, *some = self.weights
        ratios = [part for w in some for part in in_two_doubles(w / none)]
        shift = in_two_doubles(1 / Fraction(self.noise))
        parts = map(tool.doubles, (ratios, log_of_rest(1 - none)))
        numbers = (ctypes.c_double(x) for x in (deepest, deepest, 1.0, -math.inf))
        size = ctypes.c_size_t(self.size)
        return tool.Law(kernel, kernel.pe_sector_group, tool.doubles(shift), size, *parts, *numbers)

    def _sums(self, t: Any) -> tuple[Any, Any]:
        terms = [mpmath.exp(log + k * t) for k, log in enumerate(self.logs, 1)]
        return sum(terms), sum(k * term for k, term in enumerate(terms, 1))

    def start(self, y: Any) -> Any:
        """A number not below μz of a real loss y beyond the smallest one."""
        log_em1 = mpmath.log(mpmath.expm1(y))
        return min((log_em1 - log) / k for k, log in enumerate(self.logs, 1))

    def root(self, y: Any, near: Any) -> Any:
        """μz of a loss y beyond the smallest one, by Newton's method from a place near by."""
        t, goal = near, mpmath.expm1(y)
        for _ in range(200):
            total, slope = self._sums(t)
            step = (
                total / slope * mpmath.log(total / goal) if y.imag == 0 else (total - goal) / slope
            )
            t -= step
            if abs(step) < mpf(10) ** (3 - mpmath.mp.dps) * (1 + abs(t)):
                return t
        raise ArithmeticError(y)

    def log_density(self, w: Any, near: Any) -> tuple[Any, Any]:
        """Log of the modulus of the density of log y at w under A, and μz there."""
        y = mpmath.exp(w)
        t = self.root(y, near)
        p = y * mpmath.exp(y) / self._sums(t)[1]
        bell = mpmath.re(t * t) / (2 * self.mu**2) + mpmath.log(self.mu)
        return mpmath.log(abs(p)) - bell - mpmath.log(2 * mpmath.pi) / 2, t

    def loss(self, z: Any) -> Any:
        """The loss beyond the smallest one."""
        return mpmath.log1p(self._sums(self.mu * z)[0])

    def tails(self, y: Any) -> list[Any]:
        """Masses of A and B above and below a loss y beyond the smallest one."""
        if y <= 0:
            return [mpf(1), mpf(0), mpf(1), mpf(0)]
        z = self.root(y, self.start(y)) / self.mu
        shifts = [k * self.mu for k in range(self.size + 1)]
        of_b = zip(self.weight, shifts, strict=True)
        above, below = mpf(0), mpf(0)
        for weight, shift in of_b:
            above += weight * mpmath.ncdf(shift - z)
            below += weight * mpmath.ncdf(z - shift)
        return [mpmath.ncdf(-z), mpmath.ncdf(z), above, below]


def drawn(rng: np.random.Generator) -> Group:
    """Noise .6 to 30, rates 1e-8 to .4, groups of 2 to 8."""
    low, high = np.log((0.6, 1e-8)), np.log((30.0, 0.4))
    noise, rate = np.exp(rng.uniform(low, high)).tolist()
    return Group(noise, rate, int(rng.integers(2, 9)))


@pytest.fixture(autouse=True)
def digits() -> Iterator[None]:
    with mpmath.workdps(DIGITS):
        yield


@pytest.fixture(scope="module")
def kernel(tmp_path_factory: pytest.TempPathFactory) -> Any:
    return tool.build(tmp_path_factory.mktemp("groups") / "kernel")


def excess(group: Group, law: tool.Law, rng: np.random.Generator, low: float = -math.inf) -> float:
    """The largest (growth - bound)/arg^2 along one arc; the density at its begin is checked."""
    ends = max(law.ends[0], min(low, law.ends[1] - 1.0)), law.ends[1]
    w = round(float(rng.uniform(*ends)) / tool.GRID) * tool.GRID
    angle = math.pi * (0.25 if w > -4.0 else float(rng.uniform(0.1, 1.0)))
    at = mpf(w)
    real, t = group.log_density(at, group.start(mpmath.exp(at)))
    value, error = law.density(w)[:2]
    assert abs(value - real) <= error + 2.0**-53 * abs(value)  # of what the tool returns
    most, parts = -mpmath.inf, 24 + math.ceil(6 * math.exp(w))
    for k in range(1, parts + 1):  # the root moves little from one to the next
        turn = angle * k / parts
        grown, t = group.log_density(mpmath.mpc(at, turn), t)
        most = max(most, (grown - real) / turn**2)
    return float(most) - float(law.growth(w))


def test_density_and_growth_of_a_group(kernel: Any) -> None:
    """Lemma 9 of docs/theory/sector_laws."""
    rng, asked = np.random.default_rng(20261128), 0
    for _ in range(14):
        group = drawn(rng)
        try:
            law = group.law(kernel)
        except ValueError:
            continue
        asked += 1
        assert max(excess(group, law, rng) for _ in range(3)) <= 0.0
    assert asked > 8


def test_growth_without_what_a_group_adds_is_missed(tmp_path: Path) -> None:
    """The test before can fail: bounds of p, its slope and its bend are what holds the growth."""
    own = "(over[0] * (2.0 + over[0] * to) + over[1] * root) + over[2])"
    kernel = tool.build(tmp_path / "kernel", [("sector_cells.c", own, own + " * 0.0")])
    group, rng = Group(2.0, 0.05, 4), np.random.default_rng(1)
    law = group.law(kernel)
    assert min(excess(group, law, rng, 0.0) for _ in range(4)) > 0.0


# Two steps, one of them of a group: all masses beyond a threshold, by quadrature over the first.
PAIRS = [
    ((1.9, 0.0022, 4), (1.0, 0.003, 1), -0.004),
    ((4.1, 0.0012, 4), (0.98, 0.0007, 3), 0.02),
    ((0.9, 0.01, 2), (0.9, 0.01, 2), 0.4),
    ((6.6, 0.0044, 4), (1.5, 0.05, 2), 0.33),
    ((1.6, 1e-5, 6), (2.0, 0.2, 5), -1.0),
    ((10.0, 0.3, 8), (3.0, 0.01, 3), 0.05),
]


def masses(first: Group, second: Group, c: float) -> list[Any]:
    """Masses of A and B above and below c, by Gauss's rule on pieces, twice as many to compare."""
    y = mpf(c) - first.floor - second.floor
    end = first.root(y, first.start(y)) / first.mu
    low = mpf(-14)
    high = min(end, 14 + first.size * first.mu)
    found = []
    for pieces in (60, 90):
        length = (high - low) / pieces
        edges = {low + length * k for k in range(pieces + 1)}
        edges |= {high - length / 4**k for k in range(24)}  # where nothing is left for the second

        def terms(z: Any) -> list[Any]:
            loss = first.loss(z)
            grown = mpmath.exp(loss + first.floor)
            above, below, of_b, below_b = second.tails(y - loss)
            return [mpmath.npdf(z) * x for x in (above, below, grown * of_b, grown * below_b)]

        total = [mpf(0)] * 4
        rule = mpmath.calculus.quadrature.GaussLegendre(mpmath.mp).get_nodes(-1, 1, 4, 110)
        for left, right in zip(sorted(edges), sorted(edges)[1:], strict=False):
            for x, weight in rule:
                own = terms((left + right) / 2 + (right - left) / 2 * x)
                total = [
                    a + weight * (right - left) / 2 * b for a, b in zip(total, own, strict=True)
                ]
        if high == end:
            beyond = first.tails(y)
            total[0], total[2] = total[0] + beyond[0], total[2] + beyond[2]
        found.append(total)
    assert all(abs(a - b) < mpf(10) ** -17 * b for a, b in zip(*found, strict=True))
    return found[1]


@sampled(2)
@pytest.mark.parametrize(("one", "other", "c"), PAIRS)
def test_rows_of_two_steps(
    one: tuple[float, float, int], other: tuple[float, float, int], c: float
) -> None:
    def compute() -> str:
        return " ".join(mpmath.nstr(x, 17) for x in masses(first, second, c))

    first, second = Group(*one), Group(*other)
    key = f"masses beyond {c} of a step of {one} and one of {other}: noise, rate, group"
    truth = [mpf(part) for part in stored(key, compute).split()]
    kinds: Kinds = tuple(
        (x.noise, x.rate if x.size == 1 else x.weights, 1) for x in (first, second)
    )
    for functional, mass in zip(TAILS, truth, strict=True):
        row = np.full((1, WIDTH), np.nan)
        SectorLaws(kinds, is_reversed=False).improve(functional, np.array([c]), row, TIGHT)
        error = row[0, ERRORS + functional]
        assert error < 1e-11
        assert abs(row[0, 2 + functional] - mpmath.log(mass)) <= error + 2e-17


def test_weights_that_are_no_group_have_no_law() -> None:
    """Half of a group of two, and a group whose critical losses lie in the sector."""
    half = (Fraction(1, 2), Fraction(1, 4), Fraction(1, 4))
    loud = Group(0.5, 1e-3, 8)
    for noise, weights in ((Fraction(1), half), (Fraction(loud.noise), loud.weights)):
        assert SectorLaws(((noise, weights, 2),), is_reversed=False).law(0) is None


# Values of `method="reference"`: numbers that are no doubles, beside few losses.
FRACTIONS = [
    (
        pe.GaussianMechanism(2.791)
        .sampled_without_replacement(batch_size=8, dataset_size=707)
        .composed(58)
        + pe.GenericMechanism(0.3768, 1.702e-9).composed(4),
        ("gamma_bound", 2.72e-11, "add"),
        7.082620438513229e-09,
    ),
    (
        pe.GaussianMechanism(Fraction(5, 3)).poisson_sampled(Fraction(1, 300)).composed(9)
        + pe.RandomizedResponse(Fraction(2, 3)).composed(2),
        ("delta", 1.7, "remove"),
        2.061555291454581e-17,
    ),
]


@pytest.mark.parametrize(("mechanism", "asked", "known"), FRACTIONS)
def test_numbers_that_are_no_doubles(
    mechanism: pe.Mechanism, asked: tuple[str, float, str], known: float
) -> None:
    question, at, adjacency = asked
    found = getattr(pe, question)(mechanism, at, bounds=True, adjacency=adjacency)
    assert found.lower <= known <= found.upper
    assert found.upper - found.lower < 1e-11 * known


def _powers(series: list[Any], number: int) -> list[list[Any]]:
    """The first powers of a series without a constant, to as many terms as it has."""
    found = [series]
    for _ in range(number - 1):
        last = found[-1]
        found.append(
            [sum(last[j] * series[i - j] for j in range(i + 1)) for i in range(len(series))]
        )
    return found


def _log_of_rest(series: list[Any]) -> list[Any]:
    """-log(1 - series), of a series without a constant."""
    found = [mpf(0)] * len(series)
    for n in range(1, len(series)):
        beside = sum(series[k] * (n - k) * found[n - k] for k in range(1, n))
        found[n] = series[n] + beside / n
    return found


def test_remainders_of_the_series_next_to_zero() -> None:
    """Constants of csrc/sector_group.c: series of log(x/s) that all groups' are at most."""
    source = (Path(tool.__file__).parents[1] / "csrc" / "sector_group.c").read_text("utf-8")
    start = float(re.findall(r"START = ([0-9.]+);", source)[0])
    rests = [float(x) for x in re.findall(r"REST\[3\] = {(.*?)}", source)[0].split(",")]
    size = 16
    x = [mpf(0), mpf(1), *[mpf(0)] * (size - 1)]  # X = E + e^X - 1 - X
    for n in range(2, size + 1):
        powers = _powers(x[: n + 1], n)
        x[n] = sum(powers[k - 1][n] / math.factorial(k) for k in range(2, n + 1))
    of_e = _log_of_rest([mpf(0), *x[2:]])
    e = [mpf(0), *(1 / mpf(math.factorial(k)) for k in range(1, size))]
    terms = [mpf(0)] * size  # of log(X/E) by s, and of log(E/s)
    for n, power in enumerate(_powers(e, size - 1), 1):
        terms = [a + of_e[n] * b for a, b in zip(terms, power, strict=True)]
    for k in range(1, size):
        one = abs(mpmath.bernoulli(k)) / (k * math.factorial(k))
        terms[k] += one
    slopes = [k * a for k, a in enumerate(terms)]
    logs = _log_of_rest([mpf(0), mpf(1) / 2, *slopes[2:]])
    for rest, found in zip(
        rests,
        (slopes, [k * a for k, a in enumerate(slopes)], [k * k * a for k, a in enumerate(logs)]),
        strict=True,
    ):
        least = sum(a * mpf(start) ** (k - 1) for k, a in enumerate(found) if k > 1)
        assert least < rest < 1.01 * least
