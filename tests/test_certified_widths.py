"""Widths of proven rows, where one kind of error once made them wide."""

from __future__ import annotations

import numpy as np
import pytest

import pyengine as pe
from pyengine.api import answers
from pyengine.engines.functionals import A_ABOVE, A_BELOW, B_ABOVE, B_BELOW, ERRORS, PROFILE
from pyengine.engines.pairs import GaussianPair
from pyengine.engines.spectral import Spectral

# What lies beyond the last t falls slowly by the bound of one kind of step alone: the most numerous
# ones of these hardly ever tell anything, and steps of little noise are rare.
SLOW = [
    GaussianPair((20.471, 3.686), (7.6726e-7, 0.63028), (1324, 5), True),
    GaussianPair(
        (1.2968, 10.545, 1.9168), (1.6838e-7, 0.29489, 3.6232e-7), (209, 989, 1309400), False
    ),
    GaussianPair(
        (40.686, 20.917, 49.006), (2.755e-5, 0.43835, 0.0017834), (32605000, 682, 3363), False
    ),
    GaussianPair((0.29609,), (0.00011582,), (3357600,), False),
]


@pytest.mark.parametrize("pair", SLOW, ids=range(len(SLOW)))
def test_masses_are_as_close_as_profiles(pair: GaussianPair) -> None:
    engine = Spectral(pair)
    levels = np.log([1e-80, 1e-20]) if len(pair.noise) == 1 else np.log([1e-6, 0.2])
    c = engine.solve(A_ABOVE, levels)[:, 0]
    above, below = engine.certify(A_ABOVE, c), engine.certify(A_BELOW, -c)
    for table, masses in ((above, (A_ABOVE, B_ABOVE)), (below, (A_BELOW, B_BELOW, PROFILE))):
        for which in masses:
            assert (table[:, ERRORS + which] < 2e-11).all(), which


@pytest.mark.parametrize(
    ("run", "delta"),
    [
        (pe.dp_sgd(14.903, 0.00038344, 10), 1e-5),
        (pe.dp_sgd(36.55, 3.8313e-06, 13), 1e-7),
        (pe.dp_sgd(53.838, 3.7231e-07, 12166000), 1e-6),
    ],
)
@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
def test_small_epsilons_keep_relative_digits(
    run: pe.Mechanism, delta: float, adjacency: str
) -> None:
    lower, value, upper = pe.epsilon(run, delta, adjacency=adjacency, bounds=True)
    assert 0.0 < value < 1e-4
    assert upper - lower < 2e-11 * value


# A few dozen steps of little noise: the transform at the far ends of the aliases' strips is beyond
# all doubles, and what remains of it after a period is nothing.
FEW = [
    (GaussianPair((0.569,), (0.24305,), (24,), False), [0.02, 0.5, 1.0, 2.1]),
    (GaussianPair((0.4398,), (0.175,), (46,), False), [0.5, 2.0, 4.0]),
]


@pytest.mark.parametrize(("pair", "epsilon"), FEW, ids=range(len(FEW)))
def test_rows_of_few_loud_steps_are_proven(pair: GaussianPair, epsilon: list[float]) -> None:
    engine, c = Spectral(pair), -np.array(epsilon)
    proven, estimated = engine.certify(PROFILE, c), engine.at(PROFILE, c)
    for table in (proven, estimated):
        assert (table[:, ERRORS + PROFILE] < 1e-11).all()
    assert np.abs(proven[:, 2 + PROFILE] - estimated[:, 2 + PROFILE]).max() < 1e-12


@pytest.mark.parametrize(
    ("question", "run", "argument", "adjacency"),
    [
        # thresholds of large deltas, which were looked for on the wrong side of the mean
        ("epsilon", pe.dp_sgd(1.0561, 0.35306, 495010), 0.28, "add"),
        ("epsilon", pe.compose(pe.dp_sgd(10.197, 0.013185, 1), pe.dp_sgd(0.36108, 1.0, 1771)),
         0.55962, "remove"),
        # a loss so flat far out that no integral over it falls with t
        ("delta", pe.dp_sgd(0.20869, 3.3489e-6, 114690), 0.2087668, "add"),
        ("delta", pe.dp_sgd(0.20897, 0.013863, 36869), 495.66373, "add"),
        # millions of steps, each of whose transforms has a rounding
        ("delta", pe.dp_sgd(0.72381, 0.18006, 3099900), 115425.33, "add"),
        ("delta", pe.compose(pe.dp_sgd(0.64501, 0.017339, 72684000), pe.dp_sgd(3.2552, 1.0, 1179)),
         70703.924, "add"),
        # profiles far smaller than the moduli that are summed
        ("delta", pe.dp_sgd(0.49874, 0.00035049, 227), 0.0544758947, "add"),
        ("delta", pe.compose(pe.dp_sgd(24.551, 0.0018056, 38),
                             pe.dp_sgd(1.5089, 1.5796e-6, 227290)), 0.000909575, "remove"),
        # one step that needs all digits by itself, and none beside many others
        ("delta", pe.compose(pe.dp_sgd(3.2145, 0.32916, 1),
                             pe.dp_sgd(45.319, 0.00014238, 37961000)), 0.29, "remove"),
        # losses so small that a second threshold lies beyond all of them
        ("trade_off", pe.dp_sgd(16.68, 0.00014391, 7), 0.390123, "remove"),
    ],
)  # fmt: skip
def test_bounds_are_proven_and_narrow(
    question: str, run: pe.Mechanism, argument: float, adjacency: str
) -> None:
    answer, engines, proven = answers(question, run, [argument], adjacency=adjacency)
    assert engines == ["certified"]
    assert proven == [True]
    assert answer.upper[0] - answer.lower[0] < 1e-10 * answer.value[0]


# Lines know delta next to delta(0) to some 1e-12, which is all of a small epsilon; lattices know it
# far less closely, and must not be what is left of a bracket that was too wide for 1e-4.
NEAR_ZERO = [
    pe.GaussianMechanism("1.098")
    .sampled_without_replacement(batch_size=7, dataset_size=163)
    .composed(73),
    pe.compose(
        pe.GaussianMechanism("3.727")
        .truncated_poisson_sampled("0.399", batch_size=48, dataset_size=124)
        .composed(204),
        pe.RandomizedResponse("0.86"),
    ),
]


@pytest.mark.parametrize("run", NEAR_ZERO, ids=["fixed", "beside few losses"])
@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
def test_epsilon_next_to_zero_keeps_the_closest_proof(run: pe.Mechanism, adjacency: str) -> None:
    for epsilon in (1e-9, 1e-8, 7e-8):
        delta = pe.delta(run, epsilon, adjacency=adjacency)
        lower, value, upper = pe.epsilon(run, delta, adjacency=adjacency, bounds=True)
        assert lower <= value <= upper
        assert abs(value - epsilon) < 3e-10  # of a delta with an error, too
        assert upper - lower < 3e-10  # the lattice's are 1e-5 to 5e-5 wide
