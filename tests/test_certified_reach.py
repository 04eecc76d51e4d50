"""Questions that certified lines once left to the lattice, whose bounds are 1e-6 to 1e-3 apart."""

from __future__ import annotations

import math
from decimal import Decimal
from typing import Any

import mpmath
import numpy as np
import pytest
from thorough import ALL, some

import pyengine as pe
from pyengine.api import answers
from pyengine.engines.functionals import A_BELOW, ERRORS, PROFILE
from pyengine.engines.pairs import GaussianPair
from pyengine.engines.spectral import Spectral

# The law is one that hardly ever tells anything: large losses are rare, and a line on their side of
# the pole follows them, not the others.
RARE = {
    "group": pe.dp_sgd("1.155", "0.00002118", 72, group_size=4),
    "quiet group": pe.dp_sgd("0.431", "0.0002525", 3535, group_size=3),
    "substitution": pe.GaussianMechanism("1.025").poisson_sampled("0.0002576").composed(200),
    "rarer": pe.GaussianMechanism("0.6622").poisson_sampled("0.00001219").composed(3071),
}
# A profile that is nearly 1, at which no contour was looked for.
NEARLY_ONE = {
    "substitution": pe.GaussianMechanism("1.722").poisson_sampled("0.6574").composed(148_200),
    "batches": pe.GaussianMechanism("3.064")
    .sampled_without_replacement(batch_size=13_296, dataset_size=40_260)
    .composed(573_500),
}
# Beyond the window of the first kind of step the loss hardly rises, and falls over t told nothing.
LEVEL = pe.compose(
    pe.GaussianMixtureMechanism(
        "0.3404", ["0", "2.1", "2.14", "2.59"], ["839/2111", "322/2111", "258/2111", "692/2111"]
    ).composed(140),
    pe.GaussianMixtureMechanism(
        "0.4378", ["0", "1.17", "1.78", "2.84"], ["1965/2809", "270/2809", "125/2809", "449/2809"]
    ).composed(445),
)

# Ten steps in 10^8 sample the record, with losses of the order of 10: the others are 0.003 wide
# beside them, and some 160,000 values of t are summed until these vanish.
LOUD = pe.dp_sgd("0.2", "1e-7", 10**8)

# Truths by `tools/mixture_contour.py`'s contour in long double, to 1e-14; LOUD's by the reference.
CASES = [
    (LOUD, "gamma_bound", 1e-6, "add", "0.20589538804943914952"),
    (LOUD, "gamma_bound", 0.9, "remove", "0.99999998713377820311"),
    (LOUD, "delta", 1.0, "remove", "0.69873232236023628675"),
    (LOUD, "epsilon", 0.1, "remove", "13.196042992001418839"),
    (RARE["group"], "gamma_bound", 0.5734164556246043, "remove", "0.573714281733432809"),
    (RARE["group"], "trade_off", 0.28627406849237985, "add", "0.713459388741860267"),
    (RARE["quiet group"], "gamma_bound", 0.05060162109931076, "add", "0.146128564492744181"),
    (RARE["quiet group"], "epsilon", 0.00549607333267486, "remove", "2.048509374301861232"),
    (RARE["substitution"], "gamma_bound", 0.5084756332177852, "substitute", "0.511510740445153279"),
    (RARE["substitution"], "epsilon", 0.00027147867437788726, "substitute", "0.010897518644352479"),
    (RARE["rarer"], "trade_off", 0.21763077408630474, "substitute", "0.781501364885360897"),
    (NEARLY_ONE["substitution"], "epsilon", 0.45929942079007635, "substitute", "40076.46199574469"),
    (NEARLY_ONE["batches"], "epsilon", 0.3754062603377327, "add", "13295.85327906287"),
    (LEVEL, "gamma_bound", 8.0363670016536795e-115, "remove", "0.550893723625566490"),
    (LEVEL, "delta", 260.1578758660668, "add", "0.473235102697032168"),
]


@pytest.mark.parametrize(("run", "name", "argument", "adjacency", "truth"), CASES)
def test_lines_prove_close_bounds(
    run: pe.Mechanism, name: str, argument: float, adjacency: str, truth: str
) -> None:
    found, engines, proven = answers(name, run, [argument], adjacency=adjacency)
    assert engines[0] == "certified"
    assert proven[0]
    low, high, exact = Decimal(found.lower[0]), Decimal(found.upper[0]), Decimal(truth)
    digits = exact * Decimal("2e-14")
    assert low - digits <= exact <= high + digits
    assert high - low <= exact * Decimal("1e-9")


@pytest.mark.parametrize("functional", [A_BELOW, PROFILE])
def test_thresholds_of_proven_rows_are_those_of_estimates(functional: int) -> None:
    engine = Spectral(GaussianPair((0.9, 4.0), (0.01, 1.0), (500, 3), False))
    targets = np.log([1e-200, 1e-60, 1e-6, 0.02])
    estimated = engine.solve(functional, targets)
    proven = engine.certified_solve(functional, targets)
    assert np.allclose(proven[:, 0], estimated[:, 0], rtol=1e-9, atol=1e-9)
    off = np.abs(proven[:, 2 + functional] - targets)
    assert (off <= proven[:, ERRORS + functional] + 1e-13 * np.abs(targets)).all()


def test_no_threshold_is_invented_where_nothing_is_proven() -> None:
    engine = Spectral(GaussianPair((1.0,), (0.5,), (10,), False))
    assert np.isnan(engine.certified_solve(A_BELOW, np.array([np.nan]))).all()


@pytest.mark.parametrize("epsilon", [129.481254446557, 137.0, 140.0])
def test_powers_beyond_all_doubles_beside_bells_below_them(epsilon: float) -> None:
    """Nodes far out have W^q of e^700 and more with densities of e^-700 and less."""
    batch = pe.SampledWithoutReplacement(pe.GaussianMechanism("0.6692"), 283, 1194).composed(2)
    found = pe.delta(batch, epsilon, adjacency="remove", bounds=True, method="certified")
    assert 0.0 < found.lower <= found.upper <= found.lower * (1.0 + 1e-10)


@pytest.mark.parametrize(
    ("noise", "probability", "steps", "share"), [(3.0, 0.5, 5, 0.99), (3.0, 0.1, 5, 0.99)]
)
def test_estimates_next_to_the_largest_loss(
    noise: float, probability: float, steps: int, share: float
) -> None:
    """There few steps take z of each far to the left, where coarse nodes must still lie."""
    mechanism = pe.dp_sgd(noise, probability, steps)
    epsilon = -share * steps * math.log1p(-probability)
    low, _, high = pe.delta(mechanism, epsilon, adjacency="add", method="certified", bounds=True)
    value = pe.delta(mechanism, epsilon, adjacency="add")
    assert low * (1.0 - 1e-8) <= value <= high * (1.0 + 1e-8)


@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
def test_more_than_the_profile_at_zero_is_private(adjacency: str) -> None:
    """A δ above δ(0) has ε = 0, though the law's nodes end before the threshold that it asks for.

    The tilted law of a line far out lies on its last node: no abscissa beyond bounds its aliases.
    """
    rng = np.random.default_rng(20261124)
    settings = [(9.539591237404867, 0.0002250509110326688, 3, 0.04675158103188278)]
    settings += [
        (10 ** rng.uniform(-0.3, 1.7), 10 ** rng.uniform(-6, -0.5), int(rng.integers(2, 9)), level)
        for level in 10 ** rng.uniform(-3, 0, 40)
    ]
    settings = some(settings, 2)
    compared = 0
    for noise, rate, steps, level in settings:
        mechanism = pe.dp_sgd(noise, rate, steps)
        if pe.delta(mechanism, 0.0, adjacency=adjacency) >= level:
            continue
        found = pe.epsilon(mechanism, level, adjacency=adjacency, method="certified", bounds=True)
        assert found == (0.0, 0.0, 0.0), (noise, rate, steps, level)
        compared += 1
    assert compared >= len(settings) // 2


# Few and rare steps, whose lines have no proof at a threshold of 0: the first three were refused.
FEW = [
    ([0.59445], [1.7475e-06], [66]),
    ([0.26377], [8.6394e-07], [2]),
    ([45.135, 0.2256], [3.6101e-07, 1.124e-05], [3777000, 38]),
    ([27.262, 0.5873], [2.376e-07, 5.8546e-07], [155520, 1]),
    ([0.7], [0.4], [3]),
]


@pytest.mark.parametrize("kinds", FEW)
@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
def test_what_steps_can_differ_by_needs_no_line(kinds: Any, adjacency: str) -> None:
    """A δ above the sum of the distances of the steps' laws has ε = 0, and that is proven."""
    mechanism = pe.compose(*(pe.dp_sgd(*kind) for kind in zip(*kinds, strict=True)))
    with mpmath.workdps(40):
        parts = zip(*kinds, strict=True)
        apart = sum(n * p * mpmath.erf(1 / (mpmath.sqrt(8) * noise)) for noise, p, n in parts)
        never = mpmath.fprod((1 - mpmath.mpf(p)) ** n for _, p, n in zip(*kinds, strict=True))
        least = float(min(apart, 1 - never))
    levels = [least * (1.0 + 1e-12), least * 1.1, 0.99 + 0.01 * least, 1.0 - 2.0**-53]
    asked = {"adjacency": adjacency, "method": "certified", "bounds": True}
    for level in levels:
        assert pe.epsilon(mechanism, level, **asked) == (0.0, 0.0, 0.0)
    # arrays of levels next to the sum take up to 8 s, and `add_remove` asks both orders
    together = levels if ALL or adjacency == "add" else levels[2:]
    found = pe.epsilon(mechanism, np.array(together), **asked)
    assert not any(part.any() for part in found)
    if kinds[2] == [2]:  # two rare steps hardly ever make up for each other
        assert pe.epsilon(mechanism, 0.9 * least, adjacency=adjacency) > 0.0


@pytest.mark.parametrize("kinds", FEW)
def test_no_line_is_asked_beyond_the_largest_loss(kinds: Any) -> None:
    mechanism = pe.compose(*(pe.dp_sgd(*kind) for kind in zip(*kinds, strict=True)))
    largest = -math.fsum(n * math.log1p(-p) for _, p, n in zip(*kinds, strict=True))
    for epsilon in (largest * (1.0 + 1e-12), 2.0 * largest, 1e6):
        found, engines, proven = answers("delta", mechanism, [epsilon], adjacency="add")
        assert (found.lower[0], found.upper[0], proven[0]) == (0.0, 0.0, True)
        assert engines[0] != "lattice"


def test_errors_of_the_second_kind_are_at_most_1() -> None:
    """At tiny levels 1 - β is below all roundings, and bounds of β and values end at 1."""
    response = pe.RandomizedResponse("0.82", 2)
    batch = pe.SampledWithoutReplacement(pe.GaussianMechanism("25.07"), 1, 13).composed(4775)
    run = pe.compose(*[response] * 4, batch)
    levels = [1e-193, 1e-100, 1e-30]
    for adjacency in ("remove", "add"):
        found = pe.trade_off(run, np.array(levels), adjacency=adjacency, bounds=True)
        assert (found.lower <= found.value).all()
        assert (found.value <= found.upper).all()
        assert (found.upper <= 1.0).all()
        for i, alpha in enumerate(levels):
            one = pe.trade_off(run, alpha, adjacency=adjacency, bounds=True)
            assert one.lower <= one.value == found.value[i] <= one.upper <= 1.0
            assert pe.trade_off(run, alpha, adjacency=adjacency) <= 1.0


@pytest.mark.parametrize("noise", [1e11, 1e13, 1e16])
@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
def test_next_to_nothing_is_released_by_much_noise(noise: float, adjacency: str) -> None:
    """γ is between κ and κ + δ(0), which lines lose in the rounding of losses."""
    run, expected = pe.dp_sgd(noise, 0.01, 1000), 1000 * 0.01 / noise / math.sqrt(2.0 * math.pi)
    for x in (1e-4, 0.01, 0.3, 0.9):
        found = pe.gamma_bound(run, x, adjacency=adjacency, bounds=True)
        assert x <= found.lower <= found.value <= found.upper
        assert found.upper <= (x + 1.01 * expected) * (1.0 + 1e-4)
        beta = pe.trade_off(run, x, adjacency=adjacency, bounds=True)
        assert beta.lower <= 1.0 - x - 0.1 * expected * min(x, 1.0 - x)
        assert beta.upper >= 1.0 - x - 1.01 * expected
