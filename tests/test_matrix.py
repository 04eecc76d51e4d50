"""Matrix mechanisms against the sensitivity by its definition: all patterns, all signs."""

from __future__ import annotations

import itertools
import math
import warnings
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from error_budget import check_near
from thorough import ALL

import pyengine as pe
from pyengine.engines import shifted_samples
from pyengine.mechanisms import separation

RNG = np.random.default_rng(20240501)


def patterns(steps: int, word: str, times: int, separation: int) -> list[tuple[int, ...]]:
    """All maximal sets of steps of a record, by their definition."""
    if word == "single":
        return [(i,) for i in range(steps)]
    found = []
    for size in range(1, times + 1):
        for pattern in itertools.combinations(range(steps), size):
            gaps = np.diff(pattern)
            fits = (
                (gaps == separation).all() if word == "fixed_order" else (gaps >= separation).all()
            )
            if fits:
                found.append(pattern)
    return found


def by_signs(matrix: Any, word: str, times: int, separation: int) -> float:
    """Largest movement by contributions of one dimension: a convex function, so at signs."""
    best = 0.0
    for pattern in patterns(matrix.shape[1], word, times, separation):
        columns = matrix[:, pattern]
        for signs in itertools.product((1.0, -1.0), repeat=len(pattern)):
            best = max(best, float(np.linalg.norm(columns @ np.array(signs))))
    return best


def matrices() -> list[Any]:
    found = []
    for _ in range(60 if ALL else 12):
        steps = int(RNG.integers(2, 9))
        dense = RNG.random((steps, steps))
        found += [dense, np.tril(dense) + 0.1 * np.eye(steps), RNG.normal(size=(steps + 2, steps))]
        entries = np.sort(RNG.random(steps))[::-1]
        toeplitz = sum(np.diag(np.full(steps - i, entries[i]), -i) for i in range(steps))
        found.append(toeplitz)
        found.append(np.tril(np.triu(dense, -1)) + 0.1 * np.eye(steps))  # two bands
    return found


@pytest.mark.parametrize("word", ["single", "fixed_order", "min_separation"])
def test_against_all_patterns_and_signs(word: str) -> None:
    exact = 0
    for matrix in matrices():
        times, separation = int(RNG.integers(1, 5)), int(RNG.integers(1, 4))
        keywords = {} if word == "single" else {"times": times, "separation": separation}
        found = pe.matrix_sensitivity(matrix, word, **keywords)
        truth = by_signs(matrix, word, times, separation)
        assert found.value >= truth * (1.0 - 1e-14)
        if found.exact:
            exact += 1
            assert found.value == pytest.approx(truth, rel=1e-10)
        elif word != "min_separation":  # the cases that are called bounds are those of mixed signs
            assert (matrix < 0.0).any()
    assert exact >= (15 if word == "min_separation" else 40)


def separable(rng: np.random.Generator, number: int) -> Any:
    """Trees, bands, rows of nodes that nest, and matrices of any kind, in turn."""
    steps = int(rng.integers(2, 15))
    if number % 4 == 0:
        return pe.tree_aggregation_matrix(steps) * float(rng.choice([1.0, 0.3, -2.0]))
    if number % 4 == 1:
        bands = range(int(rng.integers(1, steps + 1)))
        return sum(np.diag(rng.random(steps - i) + 0.1, -i) for i in bands)
    if number % 4 == 2:
        return rng.normal(size=(steps, steps))
    rows = [0.2 * row for row in np.eye(steps)]
    for size in (1 << rng.integers(0, 4, 5)).tolist():
        first = int(rng.integers(0, steps)) // size * size
        rows.append(np.zeros(steps))
        rows[-1][first : first + size] = rng.random() + 0.1
    return np.array(rows)


def test_patterns_some_steps_apart_against_all_of_them() -> None:
    rng = np.random.default_rng(8)
    for number in range(1000 if ALL else 60):
        matrix = separable(rng, number)
        steps = matrix.shape[1]
        times, gap = int(rng.integers(1, 6)), int(rng.integers(1, 6))
        products = np.abs(matrix.T @ matrix)
        truth = max(
            float(products[np.ix_(pattern, pattern)].sum())
            for pattern in patterns(steps, "min_separation", times, gap)
        )
        found = pe.matrix_sensitivity(matrix, "min_separation", times=times, separation=gap)
        assert truth * (1.0 - 1e-12) <= found.value**2 <= truth * (1.0 + 1e-9)
        assert found.exact or (number % 4 == 2 and (matrix < 0.0).any())


@pytest.mark.parametrize(("steps", "times", "gap", "square"), [(16, 3, 5, 23), (64, 3, 20, 29)])
def test_trees_some_steps_apart(steps: int, times: int, gap: int, square: int) -> None:
    """By all patterns: the bound from each step's largest share says 24 and 30 of the first two."""
    matrix = pe.tree_aggregation_matrix(steps)
    products = matrix.T @ matrix
    chosen = patterns(steps, "min_separation", times, gap)
    assert max(products[np.ix_(p, p)].sum() for p in chosen) == square
    found = pe.matrix_sensitivity(matrix, "min_separation", times=times, separation=gap)
    assert found.exact
    assert found.value == pytest.approx(math.sqrt(square), rel=1e-15)
    assert Fraction(found.value) ** 2 >= square


def test_too_many_states_leave_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Each step's largest share says 24 of the tree over 16 steps."""
    monkeypatch.setattr(separation, "MOST_STATES", 3)
    monkeypatch.setattr(separation, "MOST_JOINS", 10.0)
    matrix = pe.tree_aggregation_matrix(16)
    bound = pe.matrix_sensitivity(matrix, "min_separation", times=3, separation=5)
    assert not bound.exact
    assert bound.value == pytest.approx(math.sqrt(24.0), rel=1e-10)


def test_exact_where_theory_says_so() -> None:
    for matrix in matrices():
        steps = matrix.shape[1]
        if (matrix < 0.0).any():
            continue
        assert pe.matrix_sensitivity(matrix).exact
        assert pe.matrix_sensitivity(matrix, "fixed_order", times=3, separation=2).exact
        gram = matrix.T @ matrix
        banded = not gram[np.abs(np.subtract.outer(range(steps), range(steps))) >= 2].any()
        toeplitz = (
            np.array_equal(matrix[1:, 1:], matrix[:-1, :-1]) and (np.diff(matrix[:, 0]) <= 0).all()
        )
        if banded or toeplitz:
            found = pe.matrix_sensitivity(matrix, "min_separation", times=3, separation=2)
            assert found.exact


def test_vector_contributions_stay_below() -> None:
    matrix = RNG.normal(size=(6, 6))
    bound = pe.matrix_sensitivity(matrix, "fixed_order", times=3, separation=2)
    for _ in range(2000):
        start = int(RNG.integers(0, 2))
        pattern = list(range(start, 6, 2))
        moves = RNG.normal(size=(3, 4))
        moves /= np.linalg.norm(moves, axis=1, keepdims=True)
        assert np.linalg.norm(matrix[:, pattern] @ moves) <= bound.value


def test_signs_that_no_contribution_matches() -> None:
    """Three columns at 120°: a scalar cannot, a plane can, and the bound is not attained."""
    angles = np.array([0.0, 2.0, 4.0]) * math.pi / 3.0
    matrix = np.stack([np.cos(angles), np.sin(angles)])
    found = pe.matrix_sensitivity(matrix, "fixed_order", times=3, separation=1)
    assert not found.exact
    assert found.value == pytest.approx(math.sqrt(6.0))
    with pytest.warns(pe.ApproximationWarning, match="upper bound of the sensitivity"):
        run = pe.matrix_mechanism(1.0, matrix, "fixed_order", times=3, separation=1)
    assert run.noise_multiplier == pytest.approx(1.0 / math.sqrt(6.0), rel=1e-14)


def test_noise_is_never_above_the_exact_quotient() -> None:
    for _ in range(300):
        steps = int(RNG.integers(1, 6))
        matrix = np.tril(RNG.integers(1, 9, (steps, steps)).astype(float))
        noise = float(RNG.uniform(0.1, 10.0))
        squares = [sum(Fraction(x) ** 2 for x in column) for column in matrix.T]
        got = Fraction(pe.matrix_mechanism(noise, matrix).noise_multiplier)
        goal = Fraction(noise) ** 2 / max(squares)
        assert got**2 <= goal
        assert float(got**2 / goal) == pytest.approx(1.0, rel=1e-15)


def test_simple_matrices() -> None:
    assert pe.matrix_mechanism(1.5, np.eye(7)) == pe.GaussianMechanism(1.5)
    prefix = np.tril(np.ones((9, 9)))
    assert pe.matrix_mechanism("1.5", prefix) == pe.GaussianMechanism("0.5")
    four = pe.matrix_sensitivity(np.eye(8), "min_separation", times=9, separation=2)
    assert four.exact
    assert four.value == pytest.approx(2.0, rel=1e-12)
    assert pe.matrix_sensitivity(np.eye(8), "fixed_order", times=4, separation=2).value == 2.0


@pytest.mark.parametrize("steps", [1, 2, 3, 5, 64, 100])
def test_tree_has_as_many_levels_as_digits(steps: int) -> None:
    matrix = pe.tree_aggregation_matrix(steps)
    levels = steps.bit_length()
    assert matrix.sum(axis=0).max() == levels
    assert pe.matrix_sensitivity(matrix).value == pytest.approx(math.sqrt(levels), rel=1e-15)
    # every sum of the first steps is one of at most `levels` rows
    below, left = np.zeros(steps), steps
    for size in sorted({1 << i for i in range(levels)}, reverse=True):
        if left & size:
            row = np.flatnonzero((matrix.sum(axis=1) == size) & (matrix[:, steps - left] == 1.0))[0]
            below += matrix[row]
            left -= size
    assert (below == 1.0).all()


def test_tree_of_epochs() -> None:
    """Two epochs of four leaves: Choquette-Choo et al. count a root that both reach once, at 2."""
    matrix = pe.tree_aggregation_matrix(8)
    found = pe.matrix_sensitivity(matrix, "fixed_order", times=2, separation=4)
    assert found.value**2 == pytest.approx(2 * 3 + 4)


def test_banded_is_dp_sgd_of_fewer_steps() -> None:
    made = pe.banded_matrix_factorization
    assert made(2.0, "0.1", 100, 1) == pe.dp_sgd(2.0, "0.1", 100)
    assert made(2.0, "0.1", 100, 16) == pe.dp_sgd(2.0, "0.1", 7)
    assert made(2.0, "0.1", 100, 100) == pe.GaussianMechanism(2.0).poisson_sampled("0.1").composed(
        1
    )


def test_banded_release_splits_into_orthogonal_parts() -> None:
    """Columns that are b apart share no row: a record's turns are independent releases."""
    steps, bands = 12, 3
    matrix = np.tril(np.triu(RNG.random((steps, steps)), 1 - bands))
    matrix /= np.linalg.norm(matrix, axis=0)
    gram = matrix.T @ matrix
    for group in range(bands):
        turns = list(range(group, steps, bands))
        assert len(turns) <= -(-steps // bands)
        assert np.allclose(gram[np.ix_(turns, turns)], np.eye(len(turns)))


def two_bins(gram: Any, epsilon: float, adjacency: str) -> float:
    """δ(ε) of N(0, I) and the mean of N(m₁, I) and N(m₂, I), by sums over the plane of both."""
    root = np.linalg.cholesky(gram + 1e-14 * np.eye(2))
    x = np.linspace(-11.0, 11.0, 1201)
    phi = np.exp(-0.5 * x * x) * (x[1] - x[0]) / math.sqrt(2.0 * math.pi)
    one = np.exp(root[0, 0] * x - 0.5 * gram[0, 0])[:, None]
    two = np.exp(root[1, 0] * x[:, None] + root[1, 1] * x[None, :] - 0.5 * gram[1, 1])
    ratio = 0.5 * (one + two)
    gain = ratio - math.exp(epsilon) if adjacency == "remove" else 1.0 - math.exp(epsilon) * ratio
    return float(phi @ np.maximum(gain, 0.0) @ phi)


@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_bins_dominate_whatever_the_contributions_are(adjacency: str) -> None:
    rng = np.random.default_rng(5)
    for _ in range(300 if ALL else 3):
        matrix = np.tril(rng.normal(size=(6, 6))) / 4.0
        matrix += np.eye(6)
        with pytest.warns(pe.ApproximationWarning, match="upper bound of what random bins leak"):
            run = pe.matrix_mechanism(1.5, matrix, "balls_in_bins", bins=2)
        bound = pe.delta(run, 0.4, adjacency=adjacency)
        for dimension in (1, 1, 3):
            steps = rng.normal(size=(6, dimension))
            steps /= np.linalg.norm(steps, axis=1)[:, None]
            moves = [(matrix[:, i::2] @ steps[i::2]).ravel() / 1.5 for i in (0, 1)]
            gram = np.array([[a @ b for b in moves] for a in moves])
            assert two_bins(gram, 0.4, adjacency) <= bound + 1e-5


@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_equal_bins_attain_the_bound(adjacency: str) -> None:
    matrix = np.array([[1.0, 0.5], [0.5, 1.0]])
    run = pe.matrix_mechanism(1.0, matrix, "balls_in_bins", bins=2)
    truth = two_bins(matrix.T @ matrix, 0.3, adjacency)
    check_near("lattice.equal_bins", pe.delta(run, 0.3, adjacency=adjacency), truth)


@pytest.mark.parametrize("adjacency", ["add", "remove"])
def test_samples_of_unequal_bins(adjacency: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shifted_samples, "WORK", 1e6)
    matrix = np.array([[1.0, 0.8, 0.0], [0.7, 1.0, 0.0], [0.3, 0.4, 0.6]])
    moves = np.stack([matrix[:, 0] + matrix[:, 2], matrix[:, 1]], axis=1) / 2.0
    truth = two_bins(moves.T @ moves, 0.3, adjacency)
    found = pe.approximations.balls_in_bins_delta(2.0, matrix, 2, [0.3], adjacency=adjacency)
    assert found.lower[0] <= truth <= found.upper[0]
    check_near("simulations.unequal_bins", found.value[0], truth)
    with pytest.warns(pe.ApproximationWarning):
        run = pe.matrix_mechanism(2.0, matrix, "balls_in_bins", bins=2)
    assert truth < pe.delta(run, 0.3, adjacency=adjacency)


def test_classes_of_bins_dominate() -> None:
    """Any number of classes bounds plain samples of the pair, and some number improves on one."""
    rng, better = np.random.default_rng(21), 0
    for _ in range(300 if ALL else 12):
        steps = int(rng.integers(4, 13))
        bins = int(rng.integers(2, steps + 1))
        bands = int(rng.integers(1, steps))
        matrix = np.tril(np.triu(rng.random((steps, steps)), -bands)) + 0.3 * np.eye(steps)
        noise = float(np.linalg.norm(matrix, axis=0).max() * rng.uniform(0.8, 3.0))
        epsilon = float(rng.uniform(0.1, 1.0))
        moves = np.stack([matrix[:, i::bins].sum(axis=1) for i in range(bins)]) / noise
        x = rng.normal(size=(40_000, steps))
        exponents = x @ moves.T - 0.5 * np.square(moves).sum(axis=1)
        ratio = np.exp(exponents).mean(axis=1)
        for adjacency, gain in (
            ("remove", np.maximum(ratio - math.exp(epsilon), 0.0)),
            ("add", np.maximum(1.0 - math.exp(epsilon) * ratio, 0.0)),
        ):
            found, error = gain.mean(), gain.std() / math.sqrt(gain.size)
            bounds = {}
            for classes in {1, int(rng.integers(1, bins + 1)), bins, None}:
                with warnings.catch_warnings():
                    warnings.simplefilter("ignore", pe.ApproximationWarning)
                    run = pe.matrix_mechanism(
                        noise, matrix, "balls_in_bins", bins=bins, classes=classes
                    )
                bounds[classes] = pe.delta(run, epsilon, adjacency=adjacency)
                assert bounds[classes] >= found - 5.0 * error
            better += bounds[None] < bounds[1] * (1.0 - 1e-6)
            alone = pe.GaussianMechanism(1.0 / math.sqrt(np.square(moves).sum(axis=1).max()))
            assert bounds[bins] == pytest.approx(pe.delta(alone, epsilon), rel=1e-9)
    assert better >= 4


def square_root_bands(steps: int, bands: int) -> Any:
    """Square root of prefix sums cut to bands, its first column of norm 1."""
    column = np.cumprod([1.0] + [1.0 - 0.5 / i for i in range(1, bands)])
    column /= np.linalg.norm(column)
    return sum(np.diag(np.full(steps - i, c), -i) for i, c in enumerate(column))


def test_classes_need_less_noise() -> None:
    """At noise 1 samples of the pair say 6.34 for ε(1e-5); one class needs 1.21 for it."""
    matrix = square_root_bands(200, 20)
    with pytest.warns(pe.ApproximationWarning):
        run = pe.matrix_mechanism(1.14, matrix, "balls_in_bins", bins=50)
    with pytest.warns(pe.ApproximationWarning):
        one = pe.matrix_mechanism(1.14, matrix, "balls_in_bins", bins=50, classes=1)
    epochs = [step for step, _ in pe.mechanisms.steps_of(run) if step.places]
    assert [step.places.steps for step in epochs] == [10]
    assert "which of 5 classes" in epochs[0].words.batches
    assert pe.epsilon(run, 1e-5) < 6.35 < 0.95 * pe.epsilon(one, 1e-5)
    assert pe.epsilon(run + pe.GaussianMechanism(5.0), 1e-5) > pe.epsilon(run, 1e-5)


def test_toeplitz_matrices_against_those_written_down() -> None:
    rng, attained = np.random.default_rng(4), 0
    for number in range(300 if ALL else 60):
        steps = int(rng.integers(1, 30))
        column = rng.normal(size=int(rng.integers(1, steps + 1)))
        if number % 3:
            column = np.sort(np.abs(column))[::-1] * (-1.0) ** number
        matrix = sum(np.diag(np.full(steps - i, c), -i) for i, c in enumerate(column))
        word = pe.mechanisms.participation.PARTICIPATIONS[int(rng.integers(0, 3))]
        keywords = (
            {}
            if word == "single"
            else {"times": int(rng.integers(1, 5)), "separation": int(rng.integers(1, 6))}
        )
        with warnings.catch_warnings(record=True) as warned:
            warnings.simplefilter("always")
            run = pe.toeplitz_mechanism(1.0, column, steps, word, **keywords)
            dense = pe.matrix_mechanism(1.0, matrix, word, **keywords)
        assert run.noise_multiplier <= dense.noise_multiplier * (1.0 + 1e-10)
        if not warned:
            attained += 1
            assert run.noise_multiplier == pytest.approx(dense.noise_multiplier, rel=1e-12)
    assert attained >= 40 * (5 if ALL else 1)


def test_buffered_toeplitz_matrices() -> None:
    theta, omega = [0.9, 0.5, 0.0], [0.2, 0.1, 0.05]
    column = pe.blt_coefficients(theta, omega, 30)
    exact = [1.0] + [sum(w * t**i for t, w in zip(theta, omega, strict=True)) for i in range(29)]
    assert np.allclose(column, exact, rtol=1e-14, atol=0.0)
    run = pe.toeplitz_mechanism("2", pe.blt_coefficients([0.99], [0.1], 100_000), 100_000)
    square = 1.0 + 0.01 * (1.0 - 0.99**199_998) / (1.0 - 0.99**2)
    assert run.noise_multiplier == pytest.approx(2.0 / math.sqrt(square), rel=1e-13)
    assert run.noise_multiplier <= 2.0 / math.sqrt(square)


def test_bins_of_an_identity_are_random_allocation() -> None:
    run = pe.matrix_mechanism(2.0, np.eye(12), "balls_in_bins", bins=3)
    # the same bin in all four epochs moves the sums of its steps by one each
    assert run == pe.GaussianMechanism(1.0).randomly_allocated(3).composed(1)
    prefix = np.tril(np.ones((4, 4)))
    run = pe.matrix_mechanism(3.0, prefix, "balls_in_bins", bins=1)
    assert run.composed(1) == pe.matrix_mechanism(
        3.0, prefix, "fixed_order", times=4, separation=1
    ).composed(1)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (
            lambda: pe.matrix_mechanism(1.0, [[1.0, 0.0], [0.0, 0.0]]),
            "no zero column, got one at step 1",
        ),
        (lambda: pe.matrix_mechanism(0.0, [[1.0]]), "noise_multiplier must be positive"),
        (lambda: pe.matrix_mechanism(1.0, [1.0]), "C must be a matrix"),
        (lambda: pe.matrix_mechanism(1.0, np.eye(3), bins=2), "bins must go with"),
        (lambda: pe.matrix_mechanism(1.0, np.eye(3), "balls_in_bins"), "takes bins"),
        (lambda: pe.matrix_mechanism(1.0, np.eye(3), classes=1), "classes must go with"),
        (
            lambda: pe.matrix_mechanism(1.0, np.eye(3), "balls_in_bins", bins=3, classes=4),
            "at most the number of bins, 3",
        ),
        (lambda: pe.matrix_mechanism(1.0, np.eye(3), "balls_in_bins", bins=4), "at most the num"),
        (lambda: pe.matrix_mechanism(1.0, np.eye(3), "balls_in_bins", bins=0), "integer >= 1"),
        (
            lambda: pe.matrix_mechanism(1.0, np.eye(3), "balls_in_bins", bins=3, times=1),
            "neither times nor separation",
        ),
        (
            lambda: pe.matrix_mechanism(1.0, np.diag([1.0, 0.0]), "balls_in_bins", bins=2),
            "no zero column",
        ),
        (lambda: pe.matrix_mechanism(1.0, [[math.nan]]), "finite entries"),
        (lambda: pe.matrix_mechanism(1.0, [["x"]]), "matrix of real numbers"),
        (lambda: pe.matrix_mechanism(1.0, [[1e-200]]), "within 1e-100"),
        (lambda: pe.matrix_mechanism(1.0, [[1.0]], "fixed"), "participation must be one of"),
        (lambda: pe.matrix_mechanism(1.0, [[1.0]], times=2), "go with participation"),
        (lambda: pe.matrix_mechanism(1.0, [[1.0]], "fixed_order", times=2), "needs times and sep"),
        (
            lambda: pe.matrix_mechanism(1.0, [[1.0]], "min_separation", separation=2),
            "participation 'min_separation' needs times and separation",
        ),
        (lambda: pe.banded_matrix_factorization(1.0, 0.1, 10, 11), "bands must be at most steps"),
        (lambda: pe.banded_matrix_factorization(1.0, 0.1, 10, 0), "bands must be an integer >= 1"),
        (lambda: pe.banded_matrix_factorization(1.0, 1.1, 10, 2), "sampling_probability must lie"),
        (lambda: pe.toeplitz_mechanism(1.0, [1.0, 0.5], 1), "1 to steps = 1 numbers"),
        (lambda: pe.toeplitz_mechanism(1.0, [0.0, 0.5], 2), "begin with one beyond 1e-100"),
        (lambda: pe.toeplitz_mechanism(1.0, [1.0], 10**8), "steps must be at most 10,000,000"),
        (lambda: pe.toeplitz_mechanism(1.0, [1.0], 9, times=2), "go with participation"),
        (lambda: pe.blt_coefficients([0.5], [1.0, 2.0], 3), "lists of one length"),
        (lambda: pe.blt_coefficients([1.5], [1.0], 3), "buffer_decay must lie"),
        (lambda: pe.blt_coefficients([0.5], [1.0], 0), "steps must be an integer >= 1"),
        (lambda: pe.tree_aggregation_matrix(0), "steps must be an integer >= 1"),
        (lambda: pe.tree_aggregation_matrix(10**6), "steps must be at most"),
    ],
)
def test_wrong_input(make: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        make()
