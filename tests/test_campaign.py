"""The hostile campaign itself: its truths are true, and what is planted is found."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from campaign import worker
from campaign.__main__ import main
from campaign.causes import CAUSES
from campaign.find import argument_of, truth_of
from campaign.journal import read
from campaign.judge import judge
from campaign.pool import records
from campaign.pose import FAMILIES, QUESTIONS, pose
from campaign.report import MARK, add_row, python_of, snippet, summary
from campaign.steps import laws_of, mechanism_of
from campaign.truth import atoms, lines
from campaign.truth.law import Law, Reversed, Sampled, ball, precision
from campaign.truth.products import Product, TwoSteps
from campaign.truth.questions import curve, epsilon, hull, profile
from error_budget import check_near
from flint import arb
from misbehaving import serve
from outcomes import Outcomes, all_together, chain, corners, height, power_of, reversed_, sampled
from outcomes import profile as of_rows
from thorough import ALL

import pyengine as pe

SEED = "tests"


def test_a_question_is_its_seed_and_index() -> None:
    posed = [pose(SEED, index) for index in range(400)]
    assert posed == [pose(SEED, index) for index in range(400)]
    assert posed != [pose("others", index) for index in range(400)]
    assert json.loads(json.dumps(posed)) == posed
    for key, words in (
        ("family", {f[0] for f in FAMILIES}),
        ("question", set(QUESTIONS)),
        ("adjacency", {"add", "remove", "add_remove", "substitute"}),
        ("form", {"scalar", "both", "array"}),
    ):
        assert {question[key] for question in posed} == words


def test_a_question_as_python_is_its_mechanism() -> None:
    from scipy import stats

    for index in range(400):
        steps = pose(SEED, index)["steps"]
        made = eval(python_of(steps), {"pe": pe, "stats": stats})
        if any(step["kind"] == "distributions" for step in steps):
            assert made.steps == mechanism_of(steps).steps
        else:
            assert made == mechanism_of(steps)


# The truths, against sums over all outcomes one by one and against each other.

P = [Fraction(1, 2), Fraction(1, 3), Fraction(1, 6), Fraction(0)]
Q = [Fraction(1, 5), Fraction(1, 5), Fraction(2, 5), Fraction(1, 5)]


def outcomes(steps: int, rate: Fraction) -> Outcomes:
    return all_together(*[sampled(list(zip(P, Q, strict=True)), rate)] * steps)


@pytest.mark.parametrize("steps", [1, 2, 4])
@pytest.mark.parametrize("rate", [Fraction(1), Fraction(1, 7)])
def test_sums_over_all_outcomes(steps: int, rate: Fraction) -> None:
    pairs = outcomes(steps, rate)
    with precision(300):
        plain = atoms.pair_of_fractions(P, Q)
        law = atoms.power(plain.sampled(ball(rate)), steps)
        for argument in (0.0, 0.1, 0.37, 0.5, 0.93, 1.0):
            for one, exact in ((law, pairs), (Reversed(law), reversed_(pairs))):
                found = curve(one, arb(argument))
                truth = ball(power_of(exact, Fraction(argument)))
                assert abs(found.beta - (1 - truth)) < 1e-30
                assert abs(found.gamma - truth) < 1e-30
        for t in (Fraction(1), Fraction(3, 2), Fraction(7)):
            add, remove = (of_rows(pairs, t, order) for order in ("add", "remove"))
            for laws, truth in (([law], add), ([law, Reversed(law)], max(add, remove))):
                found = profile(laws, ball(t).log())
                assert abs(found - ball(truth)) < 1e-30
                back = epsilon(laws, ball(truth))
                assert back is not None
                assert abs(profile(laws, back) - ball(truth)) < 1e-30


def test_hull_is_the_largest_convex_function_below_both() -> None:
    pairs = outcomes(2, Fraction(1, 7))
    both = chain(corners(pairs) + corners(reversed_(pairs)))
    with precision(300):
        law = atoms.power(atoms.pair_of_fractions(P, Q).sampled(ball(Fraction(1, 7))), 2)
        for k in range(1, 40):
            alpha = k / 40 - 0.001
            found = hull(law, arb(alpha))
            assert abs(found.beta - ball(height(both, Fraction(alpha)))) < 1e-30


def line_laws() -> list[Law]:
    mu, p = ball(0.7), ball(0.2)
    plain = [
        lines.Gaussian(mu),
        lines.Laplace(mu),
        lines.SubstitutedGaussian(mu, p),
        lines.SubstitutedLaplace(mu, p),
        lines.Logistic(mu),
        lines.ExponentialPair(ball(2.5)),
        lines.TwoVariances(mu, ball(0.6)),
        lines.TwoVariances(mu, ball(1.7)),
        lines.CauchyPair(mu),
    ]
    return plain + [Sampled(law, p) for law in plain]


@pytest.mark.parametrize("index", range(18))
def test_masses_by_densities(index: int) -> None:
    """Masses above a loss against integrals of densities over the line, by SciPy."""
    import numpy as np
    from scipy import stats

    mu, p = 0.7, 0.2
    pairs = [
        (stats.norm(0, 1).pdf, stats.norm(mu, 1).pdf),
        (stats.laplace(0, 1).pdf, stats.laplace(mu, 1).pdf),
        *(
            tuple(
                lambda x, s=s, f=f: (1 - p) * f(0, 1).pdf(x) + p * f(s * mu, 1).pdf(x)
                for s in (-1, 1)
            )
            for f in (stats.norm, stats.laplace)
        ),
        (stats.logistic(0, 1).pdf, stats.logistic(mu, 1).pdf),
        (stats.expon(0, 1 / 2.5).pdf, stats.expon(0, 1).pdf),
        (stats.norm(0, 1).pdf, stats.norm(mu, 0.6).pdf),
        (stats.norm(0, 1).pdf, stats.norm(mu, 1.7).pdf),
        (stats.cauchy(0, 1).pdf, stats.cauchy(mu, 1).pdf),
    ]
    first, second = pairs[index % 9]
    x = np.tan(np.linspace(-np.pi / 2, np.pi / 2, 400_002)[1:-1])
    x += 1e-9
    weight = (np.pi / 400_001) * (1 + x * x)
    a, b = first(x), second(x)
    if index >= 9:
        b = (1 - p) * a + p * b
    kept = (a > 0) | (b > 0)
    a, b, weight = a[kept], b[kept], weight[kept]
    with np.errstate(divide="ignore"):
        loss = np.log(b) - np.log(a)
    with precision(200):
        law = line_laws()[index]
        for c in (-0.9, -0.3, -0.11, 0.0, 0.05, 0.2, 0.8):
            above = loss >= c
            found = law.at(arb(c))
            tails = float(found.a_above), float(found.b_above)
            sums = [(law * weight)[above].sum() for law in (a, b)]
            check_near("quadrature.masses_by_densities", tails, sums, absolute=True)
            assert float(found.a_above + found.a_below) == pytest.approx(1.0, abs=1e-12)
            assert float(found.b_above + found.b_below) == pytest.approx(1.0, abs=1e-12)
            # the loss at the threshold is the ratio of the densities, whatever the masses are
            step = arb(2) ** -60
            lower, upper = law.at(arb(c) - step), law.at(arb(c) + step)
            mass = lower.a_above - upper.a_above
            if mass > step / 1000:
                ratio = (lower.b_above - upper.b_above) / mass
                assert float(ratio.log()) == pytest.approx(c, abs=1e-12)


def test_two_steps_are_one_of_plain_noise() -> None:
    with precision(160):
        first, second = ball(0.7), ball(1.1)
        both = TwoSteps(lines.Gaussian(first), lines.Gaussian(second))
        one = lines.Gaussian((first**2 + second**2).sqrt())
        for c in (-4.0, -0.3, 0.0, 1.7, 12.0):
            for x, y in zip(both.at(arb(c)), one.at(arb(c)), strict=True):
                assert abs(x / y - 1) < 1e-20


def test_two_steps_of_different_kinds() -> None:
    with precision(160):
        gaussian = Sampled(lines.Gaussian(ball(0.9)), ball(0.05))
        laplace = Sampled(lines.Laplace(ball(0.7)), ball(0.3))
        shifted = lines.SubstitutedLaplace(ball(0.7), ball(0.3))
        for both in (TwoSteps(gaussian, laplace), TwoSteps(gaussian, shifted)):
            for c in (-0.05, 0.1):
                for mass in both.at(arb(c)):
                    assert mass.rad() < 1e-18 * abs(mass)  # both orders agree
        beside = Product(atoms.pair_of_fractions(P, Q), laplace).at(arb("0.1"))
        assert float(beside.a_above + beside.a_below) == pytest.approx(1.0, abs=1e-14)


@pytest.mark.parametrize(("p", "q"), [(0.9999999748974694, 2e-5), (1e-7, 1e-12)])
def test_two_steps_of_which_one_is_nearly_none(p: float, q: float) -> None:
    """The losses of a step of tiny rate pass within a tiny part of the other one's line."""
    with precision(160):
        first = Sampled(lines.Gaussian(ball(1.1)), ball(p))
        second = Sampled(lines.Gaussian(ball(0.2)), ball(q))
        both = TwoSteps(first, second)
        for c in (-1e-9, 0.7):
            for mass in both.at(arb(c)):
                assert mass.rad() < 1e-12 * abs(mass)


def test_reference_agrees_with_the_truths() -> None:
    """The third source beside the other two, where they overlap."""
    compared = 0
    for index in range(120 if ALL else 60):
        question = pose("reference", index)
        if question["family"] not in ("gaussian, one step", "laplace, one step", "generic"):
            continue
        if question["adjacency"] == "substitute" or question["question"] == "epsilon":
            continue
        argument, c = argument_of(question)
        truth = truth_of(question, argument, c)
        if not 1e-12 < argument < 0.9 or truth.value is None or not truth.value > 1e-20:
            continue
        from campaign.find import _reference

        value = _reference(question, argument)
        assert value is not None
        assert abs(value - truth.value) <= truth.value * arb(10) ** -18
        compared += 1
    assert compared >= (5 if ALL else 2)


# What is planted is found.


def engine_off_by(factor: float, widen: float) -> Any:
    true = pe.delta

    def delta(mechanism: pe.Mechanism, epsilon: Any, *, bounds: bool = False, **rest: Any) -> Any:
        found = true(mechanism, epsilon, bounds=bounds, **rest)
        if not bounds:
            return found * factor
        low, value, high = (part * factor for part in found)
        return pe.Bounds(low * (1.0 - widen), value, high * (1.0 + widen))

    return delta


@pytest.mark.parametrize(
    ("factor", "widen", "verdicts"),
    [
        (1.0, 0.0, {"right"}),
        (1.0 + 1e-9, 0.0, {"wrong"}),
        (1.0 + 1e-12, 0.0, {"outside"}),
        (1.0 + 1e-9, 1e-8, {"wrong"}),
    ],
)
def test_a_wrong_engine_is_found(
    monkeypatch: pytest.MonkeyPatch, factor: float, widen: float, verdicts: set[str]
) -> None:
    monkeypatch.setattr(pe, "delta", engine_off_by(factor, widen))
    found = []
    for index in range(400):
        question = pose(SEED, index)
        if question["family"] != "gaussian, one step" or question["question"] != "delta":
            continue
        if question["adjacency"] == "substitute":
            continue
        *_, (_, record) = worker.ask(SEED, index)
        if float(record.get("truth", 0.0)) > 1e-290 and float(record["truth"]) < 0.9:
            found.append(record)
    assert len(found) >= 4
    assert {record["verdict"] for record in found} == verdicts
    assert all(record["wrong"] is not None for record in found if record["verdict"] == "wrong")


def test_what_the_judge_objects_to() -> None:
    question = {"steps": [], "question": "delta", "method": "auto", "adjacency": "add"}
    truth = arb("0.25")

    def verdict(lower: float, value: float, upper: float, at: arb | None = truth) -> Any:
        return judge(question, 0.1, [[lower, value, upper]], at, lambda _: arb(0))

    assert verdict(0.25, 0.25, 0.25) == {"wrong": None, "error": 0.0, "outside": None}
    assert verdict(math.nextafter(0.25, 1), math.nextafter(0.25, 1), 1.0)["outside"] > 0
    assert verdict(0.0, math.nextafter(0.25, 0), math.nextafter(0.25, 0))["outside"] > 0
    assert verdict(0.0, 0.25 * (1 + 1e-10), 1.0)["wrong"]
    for wrong in ((0.0, math.nan, 1.0), (0.2, 0.1, 0.3), (-0.0, 0.25, 1.0), (0.0, 1.5, 2.0)):
        assert verdict(*wrong)["wrong"], wrong
    question["question"] = "epsilon"
    assert verdict(0.0, math.inf, math.inf, None)["wrong"] is None
    assert verdict(0.0, 3.0, math.inf, None)["wrong"]
    beside = judge(question, 0.1, [[0.0, 3.0, math.inf]], None, lambda _: arb(0.1))
    assert beside["wrong"] is None  # δ is the mass at infinity, to all digits
    assert verdict(0.0, 3.0, 4.0, None)["outside"] == math.inf
    # and the other way round: infinite, though δ is the mass at infinity
    jumped = judge(question, 0.1, [[0.0, math.inf, math.inf]], truth, lambda _: arb(0.1))
    assert jumped["wrong"] is None
    assert verdict(0.0, math.inf, math.inf)["wrong"]


@pytest.mark.parametrize("workers", [1, 2])
def test_children_that_do_not_finish(workers: int) -> None:
    asked = records(SEED, range(6), workers=workers, seconds=0.5, memory=0.5, target=serve)
    found = {record["index"]: record["verdict"] for record in asked}
    assert found == {0: "slow", 1: "crashed", 2: "memory", 3: "no truth", 4: "right", 5: "right"}


def test_a_run_goes_on_where_it_was(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    journal = tmp_path / "journal.jsonl"
    page = tmp_path / "page.md"
    page.write_text(f"| a |\n|---|\n{MARK}\n", encoding="utf-8")
    words = ["run", "--seed", SEED, "--journal", str(journal), "--count"]
    main([*words, "4"])
    first = read(journal)
    assert [record["index"] for record in first] == [0, 1, 2, 3]
    whole = journal.read_text(encoding="utf-8").splitlines(keepends=True)
    journal.write_text("".join(whole[:3]) + whole[3][:40], encoding="utf-8")  # cut off
    main([*words, "5", "--row", str(page)])
    again = read(journal)
    assert [record["index"] for record in again] == [0, 1, 2, 3, 4]
    for record in (*first, *again):
        record.pop("seconds", None)
        record.pop("truth_seconds", None)
    assert again[:4] == first
    assert "| tests | 5 |" in page.read_text(encoding="utf-8")
    with pytest.raises(ValueError, match="seed must be that of the journal"):
        main(["run", "--seed", "other", "--journal", str(journal)])
    capsys.readouterr()
    main(["ask", SEED, "2"])
    assert snippet(again[2]) in capsys.readouterr().out
    main(["report", str(journal)])
    assert "| all | 5 |" in capsys.readouterr().out


def test_rows_and_tables(tmp_path: Path) -> None:
    page = tmp_path / "page.md"
    page.write_text("no table", encoding="utf-8")
    with pytest.raises(ValueError, match="must have a line"):
        add_row(page, "2026-01-01", "abc", SEED, [])
    base = {"seed": SEED, "index": 0, "family": "gaussian", "steps": []}
    found = [
        {**base, "verdict": "right", "seconds": 1.0},
        {**base, "verdict": "wrong", "outside": 1e-9, "engine": "lattice"},
        {**base, "verdict": "outside", "outside": 1e-9, "engine": "spectral"},
        {**base, "verdict": "slow"},
    ]
    assert "| all | 4 | 1 | 1 | 1 | 0 | 0 | 1 | 0 | 0 | 0 |" in summary(found)


def test_truths_import_nothing_of_the_engines() -> None:
    for path in (Path(__file__).parent / "campaign" / "truth").glob("*.py"):
        assert "pyengine" not in path.read_text(encoding="utf-8").split('"""', 2)[2], path


def test_laws_have_masses_of_one() -> None:
    checked = 0
    for index in range(80):
        question = pose(SEED, index)
        if question["family"] in ("gaussian, many", "laplace, many", "mixture"):
            continue
        with precision(160):
            for law in laws_of(question["steps"], question["adjacency"]):
                parts = law.at(arb("0.01"))
                assert abs(parts.a_above + parts.a_below - 1) < 1e-18
                assert abs(parts.b_above + parts.b_below - 1) < 1e-18
                checked += 1
    assert checked >= 60


def test_ordinary_questions_are_questions() -> None:
    """Each names a mechanism that there is, and an argument of its domain."""
    for index in range(200):
        question = pose("ordinary-7", index)
        mechanism = mechanism_of(question["steps"])
        assert all(number >= 1 for _, number in mechanism.composed(1).parts)
        assert question["method"] == "auto"
        argument = float.fromhex(question["argument"])
        assert 1e-9 <= argument <= (30.0 if question["question"] == "delta" else 1.0)


@pytest.mark.parametrize("cause", CAUSES)
def test_questions_around_a_cause_have_a_truth_and_are_answered(cause: str) -> None:
    seed, counted = f"{cause}-{SEED}", 0
    for index in range(12):
        question = pose(seed, index)
        assert question == pose(seed, index)
        assert question["family"] == cause
        *_, (_, record) = worker.ask(seed, index)
        counted += record["verdict"] in ("right", "declined", "outside")
        # the estimates of approximations fail at times, and docs/campaign.md says how often
        if cause != "tiny-approximation":
            assert record["verdict"] in ("right", "declined"), snippet({"seed": seed, **record})
    assert counted == 12


def test_epsilon_of_no_delta_is_the_infimum_of_all_losses() -> None:
    """Where next to no mass lies beside the end, and where the law is cut off."""
    p = Fraction(1.098769913159263e-09)
    with precision(160):
        step = Sampled(lines.Gaussian(ball(Fraction(1, 2))), ball(p))
        largest = -(1 - ball(p)).log()
        assert abs(epsilon([step], arb(0)) - largest) < 1e-30 * largest
        assert epsilon([Reversed(step)], arb(0)) is None
        noise = atoms.discrete_gaussian(Fraction(1, 2), 1)
        assert epsilon([noise], arb(0)) is None
        share = ball(Fraction(2505, 3983))
        assert abs(epsilon([noise.sampled(share)], arb(0)) + (1 - share).log()) < 1e-40
        twice = atoms.power(noise.sampled(share), 2)
        assert abs(epsilon([twice], arb(0)) + 2 * (1 - share).log()) < 1e-40
        assert epsilon([Reversed(twice)], arb(0)) is None
        laplace = lines.Laplace(ball(Fraction(1, 2)))
        assert (
            abs(epsilon([Product(twice, laplace)], arb(0)) - (0.5 - 2 * (1 - share).log())) < 1e-40
        )


def test_what_the_judge_grants_next_to_an_end() -> None:
    pair = {"kind": "pair", "of": {}, "sampling": None, "steps": 1}
    gaussian = {"kind": "gaussian", "of": {}, "sampling": None, "steps": 1}

    def right(asked: str, at: float, value: float, truth: str, step: Any) -> bool:
        question = {"steps": [step], "question": asked, "method": "auto", "adjacency": "add"}
        found = judge(question, at, [[0.0, value, 1.0]], arb(truth), lambda x: arb(0.5) - arb(x))
        return found["wrong"] is None

    assert right("trade_off", 0.6, 0.0, "2.2e-17", pair)
    assert not right("trade_off", 0.6, 0.0, "2.2e-15", pair)
    assert not right("trade_off", 0.6, 0.0, "2.2e-17", gaussian)
    assert not right("gamma_bound", 0.0, 0.0, "2.2e-17", pair)
    assert right("delta", 0.5, 1e-12, "1e-16", pair)
    assert not right("delta", 0.5, 1e-11, "1e-16", pair)
    assert not right("delta", 0.5, 1e-12, "1e-16", gaussian)
    integrated = {"kind": "distributions", "of": {}, "sampling": None, "steps": 1}
    assert right("trade_off", 0.6, 0.0, "2.2e-15", integrated)
    assert not right("trade_off", 0.6, 0.0, "2.2e-12", integrated)
    assert right("delta", 700.0, 2.4e-299, "1e-745", integrated)
    assert not right("delta", 700.0, 2.4e-299, "1e-745", pair)


def test_the_middle_of_wide_proven_bounds_is_no_wrong_value() -> None:
    step = {"kind": "gaussian", "of": {}, "sampling": None, "steps": 2}
    question = {"steps": [step], "question": "delta", "method": "auto", "adjacency": "add"}
    answers = [[0.25 * (1 - 1e-9), 0.25, 0.25 * (1 + 1e-9)]]
    truth = arb(0.25) * (1 + arb(10) ** -10)
    assert judge(question, 0.1, answers, truth, lambda _: arb(0))["wrong"]
    question["engine"] = "certified"
    assert judge(question, 0.1, answers, truth, lambda _: arb(0))["wrong"] is None
