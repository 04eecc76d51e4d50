"""Answers of the reference: no bit of them depends on what the process was asked before."""

from __future__ import annotations

import os
import signal
import threading
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from itertools import pairwise
from typing import Any

import pytest
from thorough import some

import pyengine as pe
from pyengine.caches import clear_cache

flint = pytest.importorskip("flint")
from pyengine import reference  # noqa: E402
from pyengine.reference.atomic.laplace import LaplaceSource  # noqa: E402
from pyengine.reference.atomic.law import AtomicPair  # noqa: E402
from pyengine.reference.exclusive import exclusive  # noqa: E402
from pyengine.reference.gaussian.law import SampledGaussianLaw  # noqa: E402
from pyengine.reference.gaussian.steps import EqualSteps, cumulants_of  # noqa: E402
from pyengine.reference.recent import Recent  # noqa: E402

SGD = pe.dp_sgd("2", "0.01", 2000)
FEW = pe.dp_sgd("1", "1/10", 2)
NOISE = pe.LaplaceMechanism("3").composed(8)
FLIP = pe.RandomizedResponse("0.75").composed(10)
# mechanism, questions, adjacencies, digits: neighbours share what a law keeps
ASKED = [
    (SGD, {"gamma_bound": ("1e-3", "0.1")}, ("add", "remove"), (30,)),
    (SGD, {"gamma_bound": ("1e-3",), "delta": ("0.1",)}, ("add",), (12,)),
    (SGD, {"trade_off": ("0.1",)}, ("add_remove",), (12,)),
    (FEW, {"gamma_bound": ("0.02",)}, ("add",), (5,)),
    (NOISE, {"gamma_bound": ("1e-9", "0.1"), "delta": ("0.5", "2.6")}, ("add_remove",), (30, 10)),
    (FLIP, {"gamma_bound": ("1e-3", "0.1"), "epsilon": ("1e-3",)}, ("add_remove",), (30,)),
    (pe.compose(FLIP, SGD), {"delta": ("0.1", "0.2")}, ("add",), (5,)),
    (pe.dp_sgd("2", "0.1", 40), {"delta": ("0.1", "0.2")}, ("substitute",), (8,)),
]
QUESTIONS = [
    (mechanism, question, value, adjacency, digits)
    for mechanism, questions, adjacencies, several in ASKED
    for digits in several
    for question, values in questions.items()
    for value in values
    for adjacency in adjacencies
]
Question = tuple[Any, str, str, str, int]


def bits(question: Question) -> tuple[Any, Any, bool]:
    """All that an answer says: its midpoint, its error, and whether that is proven."""
    mechanism, name, value, adjacency, digits = question
    found = getattr(reference, name)(mechanism, value, adjacency=adjacency, digits=digits)
    return found._mpf_, found.error._mpf_, found.certified


@pytest.fixture(scope="module")
def alone() -> dict[Question, Any]:
    """Each answer of a process that was asked nothing else."""
    found = {}
    for question in QUESTIONS:
        clear_cache()
        found[question] = bits(question)
    clear_cache()
    return found


@pytest.mark.parametrize("backwards", some([True, False], 2))
def test_any_order_gives_the_same_bits(alone: dict[Question, Any], backwards: bool) -> None:
    reference.gamma_bound(SGD, "0.02", adjacency="add", digits=40)
    reference.gamma_bound(NOISE, "0.02", digits=60)
    for question in reversed(QUESTIONS) if backwards else QUESTIONS:
        assert bits(question) == alone[question], question


@pytest.mark.usefixtures("hasty")
def test_threads_give_the_same_bits(alone: dict[Question, Any]) -> None:
    # all threads of a process work at one precision
    chosen = [question for question in QUESTIONS if question[0] in (NOISE, FLIP)]
    clear_cache()
    with ThreadPoolExecutor(3) as threads:
        found = list(threads.map(bits, chosen))
    assert found == [alone[question] for question in chosen]


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_a_child_does_not_wait_for_threads_that_it_does_not_have(
    alone: dict[Question, Any],
) -> None:
    question = next(question for question in QUESTIONS if question[0] is FLIP)
    asking, go_on = threading.Event(), threading.Event()

    @exclusive
    def wait() -> None:
        asking.set()
        go_on.wait()

    thread = threading.Thread(target=wait)
    thread.start()
    asking.wait()
    child = os.fork()
    if child == 0:
        signal.alarm(60)
        os._exit(0 if bits(question) == alone[question] else 1)
    _, status = os.waitpid(child, 0)
    go_on.set()
    thread.join()
    assert status == 0


@pytest.mark.parametrize("prec", [24, 1000])
def test_the_callers_precision_is_of_no_matter(alone: dict[Question, Any], prec: int) -> None:
    before, flint.ctx.prec = flint.ctx.prec, prec
    try:
        for question in (QUESTIONS[0], *QUESTIONS[-2:]):
            clear_cache()
            assert bits(question) == alone[question], question
        assert flint.ctx.prec == prec
    finally:
        flint.ctx.prec = before


class Estimated(LaplaceSource):
    """A law of which two variants are compared, as of those that are not proven."""

    certified = False

    def bits(self, depth: float, variant: int) -> int:
        return super().bits(depth, variant) - 100 + 16 * variant  # rounding is what differs


def test_estimates_forget_deeper_ones() -> None:
    asked = [(Fraction(k, 10), digits) for digits in (40, 12, 25, 12) for k in (1, 5, 23)]

    def ask(pair: AtomicPair, epsilon: Fraction, digits: int) -> tuple[Any, Any]:
        value = pair.profile(epsilon, 1, digits).value
        return value.mid().man_exp(), value.rad().man_exp()

    fresh = [ask(AtomicPair(Estimated([(3.0, 8)])), *question) for question in asked]
    pair = AtomicPair(Estimated([(3.0, 8)]))
    assert [ask(pair, *question) for question in asked] == fresh
    assert len(set(fresh)) > 6


def test_neighbours_share_a_transform(monkeypatch: pytest.MonkeyPatch) -> None:
    made = []
    inversion = SampledGaussianLaw._inversion

    def counted(law: SampledGaussianLaw, *asked: Any, **how: Any) -> Any:
        made.append(law)
        return inversion(law, *asked, **how)

    monkeypatch.setattr(SampledGaussianLaw, "_inversion", counted)
    clear_cache()
    for kappa in ("1e-3", "1e-2", "1e-1"):
        reference.gamma_bound(SGD, kappa, adjacency="add")
    assert len(made) == 1


def test_an_anchor_is_the_same_for_its_whole_cell() -> None:
    law = SampledGaussianLaw((EqualSteps(2.0, 0.01, 2000),))
    cumulants = law.cumulants
    ends = [cumulants.mean_variance(cumulants.tilt_of(x))[0] for x in (-10.0, 0.0, 10.0)]
    places = [x + (y - x) * k / 7 for x, y in pairwise(ends) for k in range(1, 7)]
    anchors = [law._anchors.of(place) for place in places]
    assert len(set(anchors[:6])) == len(set(anchors[6:])) == 1
    assert anchors[0] is not None
    assert anchors[-1] is not None
    assert ends[0] < anchors[0] < ends[1] < anchors[-1] < ends[2]
    far = cumulants.mean_variance(cumulants.tilt_of(60.0))[0]
    assert law._anchors.of(far) is None


def test_exponents() -> None:
    cumulants = cumulants_of((EqualSteps(1.0, 1, 4),))  # K(t) = 2 t (t - 1), K'(t) = 4 t - 2
    for tilt in (-1.5, 0.25, 3.0):
        assert cumulants.exponent(tilt) == pytest.approx(abs(tilt) * tilt * 2.0, rel=1e-9)
        assert cumulants.tilt_of(cumulants.exponent(tilt)) == pytest.approx(tilt, rel=1e-9)


def test_what_was_used_last_is_kept() -> None:
    made: list[int] = []
    kept: Recent[int] = Recent(2)

    def get(key: int) -> int:
        return kept.get(key, lambda: made.append(key) or 10 * key)  # type: ignore[func-returns-value]

    assert [get(key) for key in (1, 2, 1, 3, 1, 2)] == [10, 20, 10, 30, 10, 20]
    assert made == [1, 2, 3, 2]
