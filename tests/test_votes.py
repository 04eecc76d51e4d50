"""Likely answers and votes of teachers: bounds beside laws of all answers, by quadrature."""

from __future__ import annotations

import itertools
import math
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from outcomes import hockey_stick
from scipy.stats import norm
from thorough import ALL

import pyengine as pe
from pyengine.laws.kinds import added_law

Z = np.linspace(-9.0, 9.0, 1801)
WEIGHT = np.exp(-0.5 * Z * Z) * (Z[1] - Z[0]) / math.sqrt(2.0 * math.pi)


def law(votes: Any, noise: float, threshold: float | None = None, other: float = 1.0) -> Any:
    """Probabilities of each label, and of none."""
    found = []
    for i, own in enumerate(votes):
        apart = (own - np.delete(votes, i)) / noise
        found.append(norm.cdf(apart[:, None] + Z).prod(axis=0) @ WEIGHT)
    some = 1.0 if threshold is None else norm.cdf((max(votes) - threshold) / other)
    return np.append(some * np.array(found), 1.0 - some)


def moved(votes: Any) -> Any:
    """All votes that one teacher changes, from one class to another."""
    for one, two in itertools.permutations(range(len(votes)), 2):
        if votes[one] > 0:
            yield votes + np.eye(len(votes))[two] - np.eye(len(votes))[one]


def told(p: Any, q: Any, epsilon: float) -> float:
    """δ of two laws, in the worse order."""
    return max(hockey_stick(p, q, epsilon), hockey_stick(q, p, epsilon))


def drawn(rng: Any) -> tuple[Any, float]:
    """Votes of some teachers for some classes, often with one far ahead, and noise."""
    classes = int(rng.integers(2, 6))
    shares = rng.dirichlet([rng.choice([1.0, 6.0, 20.0]), *[0.6] * (classes - 1)])
    votes = rng.multinomial(int(rng.integers(5, 60)), shares).astype(float)
    return votes, float(10.0 ** rng.uniform(-0.1, 1.2))


def test_labels_by_all_answers() -> None:
    """Of one query and every vote that moves, with a threshold and without."""
    rng, nearest = np.random.default_rng(1), 0.0
    for _ in range(400 if ALL else 40):
        votes, noise = drawn(rng)
        words: dict[str, float] = {}
        rest: tuple[float, ...] = ()
        if rng.random() < 0.5:
            rest = float(max(votes) * rng.uniform(0.3, 1.4)), noise * float(rng.uniform(0.3, 3.0))
            words = {"threshold": rest[0], "threshold_noise": rest[1]}
        run = pe.pate_votes([votes], noise, **words)
        p = law(votes, noise, *rest)
        others = [law(each, noise, *rest) for each in moved(votes)]
        for epsilon in (0.0, float(rng.uniform(0.0, 2.0)) / noise, float(rng.uniform(0.0, 6.0))):
            found = pe.delta(run, epsilon)
            truth = max(told(p, q, epsilon) for q in others)
            assert truth <= found * (1.0 + 1e-9) + 1e-13, (votes, noise, words, epsilon)
            if truth > 1e-9:
                nearest = max(nearest, truth / found)
    assert nearest > 0.5  # it is no idle bound


def test_two_queries_by_all_answers() -> None:
    """One teacher changes both votes, or one of them."""
    rng = np.random.default_rng(2)
    for _ in range(300 if ALL else 15):
        noise = float(10.0 ** rng.uniform(0.0, 1.0))
        rows = [rng.multinomial(20, rng.dirichlet([8.0, 0.7, 0.7])).astype(float) for _ in "ab"]
        run = pe.pate_votes(rows, noise)
        laws = [law(row, noise) for row in rows]
        others = [
            [own, *(law(each, noise) for each in moved(row))]
            for own, row in zip(laws, rows, strict=True)
        ]
        whole = np.outer(*laws).ravel()
        epsilon = float(rng.uniform(0.0, 3.0)) / noise
        found = pe.delta(run, epsilon)
        for pair in itertools.product(*others):
            truth = told(whole, np.outer(*pair).ravel(), epsilon)
            assert truth <= found * (1.0 + 1e-9) + 1e-13, (rows, noise, epsilon)


def test_profile_of_a_likely_answer() -> None:
    """The largest value over all sets of answers of a Gaussian release that may be told."""
    rng = np.random.default_rng(3)
    for _ in range(300 if ALL else 30):
        noise, missed = 10.0 ** rng.uniform(-0.3, 2.0), 10.0 ** rng.uniform(-8.0, -0.31)
        step = pe.LikelyAnswer(noise, missed)
        part = np.concatenate([np.geomspace(1e-14, missed, 4000), [0.0]])
        p = np.concatenate([part, 1.0 - part])
        more, less = (norm.cdf(norm.ppf(p) + side / noise) for side in (1.0, -1.0))
        place = max(-norm.ppf(missed) - 0.5 / noise, 0.5)
        for epsilon in (0.0, *(place / noise * rng.uniform(0.2, 1.6, 3))):
            t = math.exp(epsilon)
            truth = max(float((more - t * p).max()), float((p - t * less).max()))
            found = pe.delta(step, epsilon, bounds=True)
            assert found.upper >= truth * (1.0 - 1e-9) - 1e-15, (step, epsilon)
            if truth > 1e-7 * missed:
                assert found.upper <= truth * 1.01 + 1e-15, (step, epsilon)
            assert found.upper <= pe.delta(pe.GaussianMechanism(noise), epsilon) * 1.01 + 1e-15


def renyi_bound(missed: float, noise: float, number: int, delta: float) -> float:
    """ε by Theorem 6 of Papernot et al. (2018), with their orders, over all λ."""
    root = noise * math.sqrt(math.log(1.0 / missed))
    high, low = root + 1.0, root
    first, second = high / noise**2, low / noise**2
    best = math.inf
    for order in np.linspace(1.5, high, 4000):
        a = (1.0 - missed) / (1.0 - (missed * math.exp(second)) ** ((low - 1.0) / low))
        b = math.exp(first) / missed ** (1.0 / (high - 1.0))
        mean = (1.0 - missed) * a ** (order - 1.0) + missed * b ** (order - 1.0)
        value = min(math.log(mean) / (order - 1.0), order / noise**2)
        best = min(best, number * value + math.log(1.0 / delta) / (order - 1.0))
    return best


def test_less_than_by_moments() -> None:
    """The bound that it replaces, of 900 labels on which most teachers agree."""
    votes = [[230, 15, 5]] * 900
    found = pe.epsilon(pe.pate_votes(votes, 40.0), 1e-6)
    missed = float(sum(norm.sf((230 - k) / (40.0 * math.sqrt(2.0))) for k in (15, 5)))
    assert found < 0.6 * renyi_bound(missed, 40.0, 900, 1e-6)
    assert found < 0.2 * pe.epsilon(pe.pate_noisy_max(40.0, 900), 1e-6)


def test_many_votes_are_few_kinds() -> None:
    rng = np.random.default_rng(4)
    votes = [rng.multinomial(250, rng.dirichlet([20.0] + [0.3] * 9)) for _ in range(600)]
    run = pe.pate_votes(votes, 40.0)
    steps = pe.mechanisms.steps_of(run)
    assert len(steps) <= 128
    assert sum(number for _, number in steps) == 600
    each = [float(pe.mechanisms.steps_of(pe.pate_votes([row], 40.0))[0][0].missed) for row in votes]
    most = sorted((float(step.missed) for step, k in steps for _ in range(k)), reverse=True)
    assert all(above >= own for above, own in zip(most, sorted(each, reverse=True), strict=True))
    assert sum(most) <= 1.05 * sum(each)


def test_words_and_ends() -> None:
    step = pe.LikelyAnswer("20", "1/1000")
    assert pe.from_json(pe.to_json(step)) == step
    assert pe.delta(pe.LikelyAnswer(2.0, 0), 0.0) == 0.0
    for adjacency in ("add", "remove", "substitute"):
        assert pe.delta(step, 0.1, adjacency=adjacency) == pe.delta(step, 0.1)  # type: ignore[arg-type]
    alike = pe.delta(pe.GaussianMechanism(2.0), 0.3)
    assert pe.delta(pe.LikelyAnswer(2.0, "1/2"), 0.3, adjacency="substitute") == pytest.approx(
        alike, rel=1e-12
    )
    label = pe.mechanisms.label_of(pe.pate_votes([[9, 1]], 2.0))[0]
    assert "votes at hand" in label.mechanism
    assert "not private" in label.batches
    assert label.known == "upper bound"
    assert pe.delta(pe.pate_votes([[0, 0]], 2.0), 0.1) > 0.0
    assert pe.pate_votes(np.zeros((0, 3)), 2.0).steps == 0


@pytest.mark.parametrize(
    ("votes", "words", "message"),
    [
        ([1, 2], {}, "votes must be in one row for each query"),
        ([[1], [2]], {}, "two or more; got shape"),
        ([[1, -1]], {}, r"votes must lie in \[0, 1.79769e\+308\], got -1.0"),
        ([[1, math.nan]], {}, r"votes must lie in .* got nan"),
        ([[1, 2]], {"threshold": 3}, "must be given together"),
        ([[1, 2]], {"threshold": 3, "threshold_noise": 0}, "threshold_noise must be positive"),
        ([[1, 2]], {"threshold": math.inf, "threshold_noise": 1}, "threshold must be finite"),
    ],
)
def test_wrong_votes(votes: Any, words: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pe.pate_votes(votes, 2.0, **words)


def test_wrong_answers() -> None:
    with pytest.raises(ValueError, match="noise_multiplier must be positive"):
        pe.LikelyAnswer(0.0, 0.1)
    with pytest.raises(ValueError, match="missed"):
        pe.LikelyAnswer(1.0, 1.5)


def test_files_of_votes(tmp_path: Path) -> None:
    votes = [[30, 2, 0], [12, 9, 11]]
    np.savetxt(tmp_path / "votes.csv", votes, delimiter=",", fmt="%d")
    text = 'mechanism = "pate_votes"\nnoise = 7\nvotes = "votes.csv"\n'
    (tmp_path / "run.toml").write_text(text, encoding="utf-8")
    assert pe.load_run(tmp_path / "run.toml") == pe.compose(pe.pate_votes(votes, "7"))
    more = text + "threshold = 20\nthreshold_noise = 5\n"
    (tmp_path / "run.toml").write_text(more, encoding="utf-8")
    made = pe.pate_votes(votes, "7", threshold="20", threshold_noise="5")
    assert pe.load_run(tmp_path / "run.toml") == pe.compose(made)
    (tmp_path / "run.toml").write_text(text.replace("votes.csv", "none.csv"), encoding="utf-8")
    with pytest.raises(ValueError, match=r"votes .*none.csv: No such file"):
        pe.load_run(tmp_path / "run.toml")


@pytest.mark.parametrize("labels", [3, 4])
def test_epsilon_of_few_labels(labels: int) -> None:
    """Nearly all answers tell nothing, which is no reason to refuse: by sums over all answers."""
    step = pe.LikelyAnswer(math.sqrt(800.0), 1.02688e-4)
    one = added_law(step).finite()
    assert one is not None
    few = one.log_a > -60.0
    larger = np.exp(one.log_a[few]) * np.maximum(np.exp(one.loss[few]), 1.0)  # of both masses
    order = np.argsort(larger)[::-1]
    more, share, larger = one.loss[few][order], np.exp(one.log_a[few][order]), larger[order]
    loss, mass = np.zeros(1), np.ones(1)
    for _ in range(labels):
        # the larger mass of two answers is at most the product of theirs
        left = 0.99e-15 / (mass * np.maximum(np.exp(loss), 1.0))
        number = larger.size - np.searchsorted(larger[::-1], left)
        before = np.repeat(np.arange(loss.size), number)
        now = np.arange(before.size) - np.repeat(np.cumsum(number) - number, number)
        loss, mass = loss[before] + more[now], mass[before] * share[now]
        some = mass * np.maximum(np.exp(loss), 1.0) > 1e-15
        loss, mass = loss[some], mass[some]
    b = mass * np.exp(loss)
    for delta in (1e-5, 1e-7):
        found = pe.epsilon(step.composed(labels), delta, bounds=True)
        assert found.upper - found.lower <= 2e-4 * found.upper
        for end, sign in ((found.lower, 1.0), (found.upper, -1.0)):
            t = math.exp(end)
            truth = max(np.maximum(b - t * mass, 0.0).sum(), np.maximum(mass - t * b, 0.0).sum())
            assert sign * (float(truth) - delta) >= -1e-4 * delta
