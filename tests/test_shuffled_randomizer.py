"""Shuffled local randomizers against sums of fractions over all outcomes."""

from __future__ import annotations

import itertools
import math
from collections import Counter
from fractions import Fraction

import numpy as np
import pytest

import pyengine as pe
from pyengine.laws import shuffled
from pyengine.laws.shuffled import shuffled_law

Law = dict[tuple[int, ...], Fraction]


def clones(e: Fraction, users: int) -> tuple[Law, Law]:
    """The definition: others that are clones, of two kinds, and the user's own message."""
    rate, first, second = 2 / (e + 1), Counter[tuple[int, ...]](), Counter[tuple[int, ...]]()
    for c in range(users):
        among = math.comb(users - 1, c) * rate**c * (1 - rate) ** (users - 1 - c)
        for a in range(c + 1):
            mass = among * Fraction(math.comb(c, a), 2**c)
            for law, share in ((first, e / (e + 1)), (second, 1 / (e + 1))):
                law[a + 1, c - a] += mass * share  # type: ignore[assignment]
                law[a, c - a + 1] += mass * (1 - share)  # type: ignore[assignment]
    return dict(first), dict(second)  # type: ignore[arg-type]


def divergence(p: Law, q: Law, scale: Fraction) -> Fraction:
    return sum(
        (max(m - scale * q.get(k, Fraction(0)), Fraction(0)) for k, m in p.items()), Fraction(0)
    )


@pytest.mark.parametrize("users", [1, 2, 3, 7, 12])
@pytest.mark.parametrize("e", [Fraction(3, 2), Fraction(3), Fraction(50)])
def test_against_fractions(users: int, e: Fraction) -> None:
    p, q = clones(e, users)
    run = pe.ShuffledRandomizer(math.log(e), users)
    for part in (Fraction(0), Fraction(1, 10), Fraction(1, 2), Fraction(9, 10)):
        scale = 1 + part * (e - 1)
        truth = float(divergence(p, q, scale))
        for adjacency in ("add", "remove", "add_remove", "substitute"):
            found = pe.delta(run, math.log(scale), adjacency=adjacency, bounds=True)
            # log e is rounded, and scale from it
            assert found.value == pytest.approx(truth, rel=2e-14)
            assert found.lower * (1 - 1e-14) <= truth <= found.upper * (1 + 1e-14)
            assert found.upper - found.lower < 1e-11 * truth
    assert pe.delta(run, math.log(e) * 1.0001) == 0.0


@pytest.mark.parametrize("users", [1, 3, 6])
def test_rounds_against_fractions(users: int) -> None:
    p, q = clones(Fraction(3), users)
    both = [
        {(*i, *j): x * y for (i, x), (j, y) in itertools.product(law.items(), repeat=2)}
        for law in (p, q)
    ]
    truth = float(divergence(both[0], both[1], Fraction(2)))
    run = pe.ShuffledRandomizer(math.log(3), users).composed(2)
    assert pe.delta(run, math.log(2)) == pytest.approx(truth, rel=1e-13)


def three_answers(e: Fraction, others: tuple[int, ...], own: int) -> Law:
    """Histogram of randomized response with three answers."""
    total = Counter({(0, 0, 0): Fraction(1)})
    for x in (*others, own):
        after: Counter[tuple[int, ...]] = Counter()
        for counts, mass in total.items():
            for y in range(3):
                share = (e if y == x else 1) / (e + 2)
                more = tuple(n + (k == y) for k, n in enumerate(counts))
                after[more] += mass * share  # type: ignore[assignment]
        total = after  # type: ignore[assignment]
    return dict(total)


@pytest.mark.parametrize("e", [Fraction(2), Fraction(5)])
def test_randomizers_stay_below(e: Fraction) -> None:
    """Of real users, whatever the others say."""
    run = pe.ShuffledRandomizer(math.log(e), 5)
    largest = 0.0
    for others in itertools.combinations_with_replacement(range(3), 4):
        laws = [three_answers(e, others, own) for own in (0, 1)]
        for p, q in (laws, laws[::-1]):
            for scale in (Fraction(1), Fraction(5, 4), Fraction(3, 2)):
                truth = float(divergence(p, q, scale))
                bound = pe.delta(run, math.log(scale))
                assert truth <= bound * (1 + 1e-12)
                largest = max(largest, truth / bound)
    assert largest > 0.5  # of a bound that is worth something


@pytest.mark.parametrize(("local", "users"), [(0.5, 500), (1.0, 1000), (2.0, 3000)])
def test_below_the_closed_form_of_feldman_and_others(local: float, users: int) -> None:
    """Theorem 3.1 of Hiding among the clones (2021)."""
    delta, e = 1e-6, math.exp(local)
    assert local <= math.log(users / (16 * math.log(2 / delta)))
    spread = 8 * math.sqrt(e * math.log(4 / delta) / users) + 8 * e / users
    closed = math.log1p((e - 1) / (e + 1) * spread)
    assert 0.1 * closed < pe.epsilon(pe.ShuffledRandomizer(local, users), delta) < closed


def test_alone_it_is_randomized_response() -> None:
    truth = pe.RandomizedResponse(Fraction(3, 4))
    run = pe.ShuffledRandomizer(math.log(3), 1)
    for question, at in ((pe.delta, 0.5), (pe.trade_off, 0.2), (pe.gamma_bound, 0.1)):
        assert question(run, at) == pytest.approx(question(truth, at), rel=1e-14)
    assert pe.delta(pe.ShuffledRandomizer(0, 50), 0.0) == 0.0


def test_the_more_users_the_less() -> None:
    found = [pe.epsilon(pe.ShuffledRandomizer(1.0, n), 1e-6) for n in (1, 10, 100, 1000)]
    assert all(a > b for a, b in itertools.pairwise(found))
    rounds = [pe.epsilon(pe.ShuffledRandomizer(1.0, 50).composed(k), 1e-6) for k in (1, 2, 4)]
    assert rounds == sorted(rounds)


def test_fewer_groups_are_an_upper_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    whole = shuffled_law(1.0, 1000)
    monkeypatch.setattr(shuffled, "MOST_ATOMS", 1 << 15)
    coarse = shuffled_law(1.0, 1000)
    assert coarse.loss.size < 0.2 * whole.loss.size
    for law in (whole, coarse):
        np.testing.assert_allclose(np.exp(law.log_a).sum(), 1.0, rtol=1e-13)
        np.testing.assert_allclose(np.exp(law.log_b).sum(), 1.0, rtol=1e-13)
    for scale in np.exp([0.0, 0.05, 0.1]):
        exact, above = (
            np.maximum(np.exp(law.log_b) - scale * np.exp(law.log_a), 0.0).sum()
            for law in (whole, coarse)
        )
        assert exact < above < 1.1 * exact


@pytest.mark.parametrize(
    ("words", "message"),
    [
        ({"local_epsilon": -1, "users": 3}, "local_epsilon must be finite and >= 0"),
        ({"local_epsilon": 101, "users": 3}, "local_epsilon must be at most 100, got 101"),
        ({"local_epsilon": 1, "users": 0}, "users must be an integer >= 1, got 0"),
        ({"local_epsilon": 1, "users": 2.5}, "users must be an integer"),
        ({"local_epsilon": 1, "users": 10**8}, "users must be at most 10,000,000, got 100000000"),
    ],
)
def test_bad_input(words: dict[str, float], message: str) -> None:
    with pytest.raises(ValueError, match=message):
        pe.ShuffledRandomizer(**words)  # type: ignore[arg-type]


def test_users_are_not_sampled() -> None:
    run = pe.ShuffledRandomizer(1.0, 10)
    with pytest.raises(ValueError, match=r"cannot be sampled; got sampling probability 0\.1"):
        run.poisson_sampled(0.1)
    with pytest.raises(ValueError, match="cannot be sampled; got batches of 1 of 2 records"):
        run.sampled_without_replacement(batch_size=1, dataset_size=2)
