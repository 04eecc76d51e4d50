"""What numbers must be read with: each scheme's sampling, unit and neighbours, in every format."""

from __future__ import annotations

import json
import math
import pickle
import subprocess
import sys
import warnings
from collections.abc import Callable
from fractions import Fraction
from math import comb
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import pyengine as pe
from pyengine.accounting.interop.batches import SeenBatches
from pyengine.api import histories
from pyengine.api.relations import mechanism_under
from pyengine.api.shuffled import known_leak, without_amplification
from pyengine.cli import main
from pyengine.errors import SamplingWarning
from pyengine.interop import (
    HistoryAccountant,
    find_noise_multiplier_for_advantage,
    find_noise_multiplier_for_err_rates,
    from_history,
    get_advantage_for_dpsgd,
    get_beta_for_dpsgd,
    prv_accountant,
)
from pyengine.interop.pfl import PyenginePrivacyAccountant
from pyengine.mechanisms import describe, in_words, label_of
from pyengine.mechanisms.words import number_in_words
from pyengine.report import privacy_report
from pyengine.statement import privacy_statement
from pyengine.tables import run as tables
from pyengine.workbench.report.variants import resampled, with_group
from pyengine.workbench.runs.grammar import composed_of
from pyengine.workbench.tables.spec import load

SIZES = "--batch-size 256 --dataset-size 60000"
TABLE = "noise_multiplier = 2\nsteps = 20\n"
MATRIX = "1,0,0,0\n0.5,1,0,0\n0.25,0.5,1,0\n0.125,0.25,0.5,1\n"
POISSON = "each record joins each batch independently with probability {} (Poisson sampling)"
PRESENT = "two data sets that differ by adding or removing it"
IN_PLACE = "two data sets, one with it and one with an empty record in its place"

# flags, a workflow's keys, the mechanism, how batches are drawn, what is protected
SCHEMES: dict[str, tuple[str, str, str, str, str]] = {
    "plain": (
        "--noise 2 --steps 3",
        'mechanism = "GaussianMechanism"\nnoise_multiplier = 2\nsteps = 3',
        "Gaussian, noise multiplier 2, 3 steps",
        "none are drawn: each step may use every record",
        f"one record: {PRESENT}",
    ),
    "poisson": (
        f"--noise 2 {SIZES} --sampling poisson --epochs 1",
        f'{TABLE}sampling_probability = "256/60000"',
        "DP-SGD, noise multiplier 2, 235 steps (1 epoch) of about 256 of 60,000 records",
        POISSON.format("256/60,000"),
        f"one record: {PRESENT}",
    ),
    "rate": (
        "--noise 2 --p 256/60000 --steps 20",
        f'{TABLE}sampling_probability = "256/60000"',
        "DP-SGD, noise multiplier 2, 20 steps at rate 256/60000",
        POISSON.format("256/60000"),
        f"one record: {PRESENT}",
    ),
    "group": (
        f"--noise 2 {SIZES} --sampling poisson --steps 20 --group-size 5",
        f'{TABLE}mechanism = "GaussianMechanism"\nsampling_probability = "256/60000"\n'
        "group_size = 5",
        "DP-SGD, groups of 5 records, noise multiplier 2, 20 steps of about 256 of 60,000 records",
        "each record, of the user and of others, joins each batch independently with probability "
        "256/60,000 (Poisson sampling)",
        "up to 5 records of one user: two data sets that differ by adding or removing all of them",
    ),
    "fixed": (
        f"--noise 2 {SIZES} --sampling without_replacement --steps 20",
        f'{TABLE}mechanism = "GaussianMechanism"\nbatch_size = 256\ndataset_size = 60000',
        "DP-SGD, noise multiplier 2, 20 steps of 256 of 60,000 records, without replacement",
        "each batch is 256 of 60,000 records, drawn anew and uniformly (without replacement)",
        f"one record of 60,000: {PRESENT}",
    ),
    "shuffled": (
        f"--noise 2 {SIZES} --sampling shuffle --epochs 3",
        "",
        "DP-SGD on shuffled batches, noise multiplier 2, 3 epochs in batches of 256 of 60,000 "
        "records",
        "all records are shuffled once an epoch and cut into batches; each epoch counts as one "
        "step, without amplification",
        f"one record: {IN_PLACE}",
    ),
    "allocated": (
        "--noise 2 --steps-per-epoch 10 --epochs 2",
        'mechanism = "dp_sgd_allocated"\nnoise_multiplier = 2\nsteps_per_epoch = 10\nepochs = 2',
        "DP-SGD, noise multiplier 2, 2 epochs of 10 batches, each record in one of them",
        "each record joins one of the 10 batches of each epoch, drawn uniformly for each record by "
        "itself and anew in each epoch (random allocation)",
        f"one record: {PRESENT}",
    ),
    "truncated": (
        "--noise 2 --p 1/10 --truncated-batch-size 15 --dataset-size 100 --steps 20",
        f'{TABLE}sampling_probability = "1/10"\ntruncated_batch_size = 15\ndataset_size = 100',
        "DP-SGD, noise multiplier 2, 20 steps at rate 1/10, of at most 15 of 100 records",
        "each record joins each batch independently with probability 1/10; of a batch that has "
        "more than 15 records, 15 are kept at random (truncated Poisson sampling)",
        f"one record of 100: {PRESENT}",
    ),
    "matrix": (
        "--noise 2 --matrix C.csv --participation fixed_order --times 2 --separation 2",
        'noise_multiplier = 2\nmatrix = "C.csv"\nparticipation = "fixed_order"\ntimes = 2\n'
        "separation = 2",
        "matrix mechanism, one Gaussian release of the noise over the sensitivity of C",
        "none are drawn: each record takes part at most 2 times, every 2 steps, in an order that "
        "is fixed beforehand",
        f"one record: {IN_PLACE}",
    ),
    "bins": (
        "--noise 2 --matrix C.csv --participation balls_in_bins --bins 2",
        'noise_multiplier = 2\nmatrix = "C.csv"\nparticipation = "balls_in_bins"\nbins = 2',
        "matrix mechanism in random bins",
        "each record is put into one of 2 bins once, uniformly and by itself, and takes part in "
        "the steps i, i + 2, ... of bin i",
        f"one record: {PRESENT}",
    ),
    "response": (
        "--mechanism randomized_response --phase",
        'mechanism = "RandomizedResponse"\ntruth_probability = "3/4"\nsteps = 3',
        "randomized response, truth probability 0.75, categories 2, 3 steps",
        "none are drawn: each step may use every record",
        "one user's answer: two inputs that this user may have",
    ),
}
FLAGS = {name: words[0].split() for name, words in SCHEMES.items()}
FLAGS["response"] = [
    "--phase",
    "mechanism=randomized_response,truth_probability=3/4,steps=3",
]
DELTA = ["--delta", "1e-5"]
QUICK = [*DELTA, "--fpr", "0.01", "--kappa", "0.01", "--estimate"]
IGNORED = pytest.mark.filterwarnings("ignore::pyengine.errors.ApproximationWarning")


@pytest.fixture(autouse=True)
def matrix_beside(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "C.csv").write_text(MATRIX)
    monkeypatch.chdir(tmp_path)


def unescaped(text: str) -> str:
    """Text of LaTeX, as far as labels go."""
    for escaped, plain in ((r"\_", "_"), (r"\%", "%")):
        text = text.replace(escaped, plain)
    return text


@IGNORED
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("form", ["text", "markdown", "latex", "json"])
def test_statements(scheme: str, form: str, capsys: pytest.CaptureFixture[str]) -> None:
    _, _, mechanism, batches, protects = SCHEMES[scheme]
    assert main(["statement", *FLAGS[scheme], *QUICK, "--format", form]) == 0
    text = unescaped(capsys.readouterr().out)
    assert mechanism in text
    assert batches in text
    assert protects in text
    if form != "json":
        assert "(adjacency add_remove)" in text
        assert ", rounded up" in text
    assert "weights" not in text


@IGNORED
@pytest.mark.parametrize("scheme", SCHEMES)
@pytest.mark.parametrize("form", [[], ["--json"]])
def test_questions(scheme: str, form: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    _, _, mechanism, batches, protects = SCHEMES[scheme]
    assert main(["epsilon", *FLAGS[scheme], *DELTA, *form]) == 0
    text = capsys.readouterr().out
    assert mechanism in text
    assert batches in text
    assert protects in text
    if form:
        content = json.loads(text)
        assert content["schema"] == "pyengine-answers/1"
        assert content["metric"] == "epsilon"
        (row,) = content["rows"]
        assert row["at"] == 1e-5
        assert row["lower"] <= row["value"] <= row["upper"]


@IGNORED
@pytest.mark.parametrize("scheme", [name for name, words in SCHEMES.items() if words[1]])
def test_tables(scheme: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _, keys, mechanism, batches, protects = SCHEMES[scheme]
    rate = next((each for each in ("256/60,000", "256/60000", "1/10") if each in batches), "")
    text = batches.replace(f"probability {rate}", "the sampling probability") if rate else batches
    (tmp_path / "my.toml").write_text(
        'formats = ["csv", "markdown", "latex"]\n[epsilon]\ndelta = [1e-5]\n'
        f"adjacency = ['add_remove']\n[[workflow]]\nname = 'run 1'\n{keys}\n"
    )
    assert tables.run(load(tmp_path / "my.toml"), tmp_path / "out", workers=0) == 0
    printed = " ".join(capsys.readouterr().out.split())
    found = [printed]
    found += [
        unescaped((tmp_path / "out" / name).read_text("utf-8"))
        for name in ("table.md", "table.tex")
    ]
    for each in found:
        assert text in each
        assert protects in each
    for each in found[1:]:
        assert mechanism.split(",")[0] in each
        assert "is rounded down" in each


@pytest.mark.parametrize(
    ("flags", "mechanism", "batches", "neighbours"),
    [
        (
            f"{SIZES} --sampling poisson --steps 9",
            "9 steps of about 256 of 60,000 clients",
            "each client joins each batch independently with probability 256/60,000",
            "two data sets that differ by adding or removing it",
        ),
        (
            f"{SIZES} --sampling shuffle --epochs 2",
            "2 epochs in batches of 256 of 60,000 clients",
            "all clients are shuffled once an epoch",
            "two data sets, one with it and one with an empty client in its place",
        ),
    ],
)
def test_federated_runs_protect_clients(
    flags: str,
    mechanism: str,
    batches: str,
    neighbours: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """Labels spoke of records, whatever the unit."""
    run = ["--noise", "2", *flags.split(), "--unit", "client"]
    page = tmp_path / "page.html"
    assert main(["report", *run, "-o", str(page), "--groups", "2"]) == 0
    for command in (["epsilon", *run, *DELTA], ["statement", *run], ["statement", *run]):
        assert main(command) == 0
        text = capsys.readouterr().out
        for part in (mechanism, batches, f"one client, with all its records: {neighbours}"):
            assert part in text
    shown = unescaped(page.read_text("utf-8"))
    assert mechanism in shown
    assert "a user of 2 records" not in shown


def test_units_are_words_only() -> None:
    run, plain = (pe.dp_sgd(0.8, "1/1000", 1500, **more) for more in ({"unit": "client"}, {}))
    assert run == plain
    assert label_of(run) == label_of(pe.from_json(pe.to_json(run))) != label_of(plain)
    assert (
        "one client" in label_of(pe.repeat_and_select(run, "geometric", stopping=0.1))[0].protects
    )
    assert "one client" in label_of(pe.revealed_mixture([(0.5, run), (0.5, run)]))[0].protects
    with pytest.raises(ValueError, match="unit must be one of 'record', 'user', 'client'"):
        pe.dp_sgd(0.8, 0.1, 3, unit="clients")
    with pytest.raises(ValueError, match="group_size must be 1 where unit is 'client', got 2"):
        pe.dp_sgd(0.8, 0.1, 3, unit="client", group_size=2)
    with pytest.raises(ValueError, match="group_size must be left out where unit is 'user', got 2"):
        composed_of([{"noise": "1", "p": "0.1", "steps": "3", "group_size": "2", "unit": "user"}])


def test_calibration_says_what_it_assumes(capsys: pytest.CaptureFixture[str]) -> None:
    flags = ["--p", "0.01", "--steps", "100", "--epsilon", "1", *DELTA]
    assert main(["calibrate", *flags]) == 0
    text = capsys.readouterr().out
    assert POISSON.format("0.01") in text
    assert PRESENT in text
    assert main(["calibrate", *flags, "--json"]) == 0
    (label,) = json.loads(capsys.readouterr().out)["label"]
    assert label["batches"] == POISSON.format("0.01")


def test_python_constructors() -> None:
    """Schemes that no command line has."""
    banded = pe.banded_matrix_factorization(2.0, "1/10", steps=100, bands=4)
    assert banded == pe.dp_sgd(2.0, "1/10", 25)
    (label,) = label_of(banded)
    assert label.protects == f"one record: {IN_PLACE}"
    assert "the records are split into 4 groups once, which take turns" in label.batches
    around = np.stack([np.cos([0.0, 2.0, 4.0]), np.sin([0.0, 2.0, 4.0])])
    with pytest.warns(pe.ApproximationWarning):
        run = pe.matrix_mechanism(1.0, around, "min_separation", times=3, separation=1)
    (label,) = label_of(run)
    assert label.known == "upper bound"
    assert "at least 1 step apart" in label.batches
    (label,) = label_of(pe.matrix_mechanism(6.0, pe.tree_aggregation_matrix(8)))
    assert "each record takes part in one step at most" in label.batches
    (label,) = label_of(pe.shuffled_lower_bound(1.0, 10, 3))
    assert (label.known, "at the least" in label.mechanism) == ("lower bound", False)
    assert label.protects == f"one record: {IN_PLACE}"
    for pair, name in (
        (pe.from_probabilities([0.25, 0.75], [0.75, 0.25]), "two probability vectors"),
        (pe.GenericMechanism(1.0), "any (ε, δ)-private mechanism"),
        (pe.ShuffledRandomizer(1.0, 100), "shuffled messages of a local randomizer"),
        (pe.GaussianMixtureMechanism(1.0, [0, 1, 2], [0.8, 0.15, 0.05]), "Gaussian mixture"),
    ):
        (label,) = label_of(pair)
        assert label.mechanism.startswith(name)
        assert label.protects.count(":") == 1


def apart(p: list[Fraction], q: list[Fraction], t: Fraction) -> Fraction:
    """Hockey-stick divergence of two probability vectors."""
    return sum((max(a - t * b, Fraction(0)) for a, b in zip(p, q, strict=True)), Fraction(0))


def test_parameters_on_samples_are_those_of_batches() -> None:
    """Labels said "neighbours where the parameters were found": found for what did not matter.

    Laplace noise of scale 1 on a sum is 1-DP where a record of size 1 is added.  Of the records -1
    and 1 a batch of one tells more than one of any mechanism that is 1-DP where one is replaced.
    """
    generic = pe.GenericMechanism(1)
    drawn, replaced = (
        pe.GenericMechanism(e).sampled_without_replacement(batch_size=1, dataset_size=2)
        for e in (1, 2)
    )
    truth = 0.5 * (1.0 - math.exp(-1.0))
    assert pe.delta(drawn, 0.0) < truth < pe.delta(replaced, 0.0)
    for step, needed in (
        (drawn, "batches with it and with another record in its place"),
        (generic.poisson_sampled(0.1), "batches with and without it"),
        (generic.randomly_allocated(4), "batches with and without it"),
        (pe.RenyiCurve([2], [1]).poisson_sampled(0.1), "batches with and without it"),
        ((generic + pe.GaussianMechanism(1)).poisson_sampled(0.1), "batches with and without it"),
        (pe.GaussianMechanism(1) + drawn, "batches with it and with another record in its place"),
    ):
        for order, own in (
            ("add_remove", PRESENT),
            ("substitute", "two data sets that differ by another record in its place"),
        ):
            text = next(label.protects for label in label_of(step, order) if ";" in label.protects)
            assert text.endswith(f": {own}; the parameters were found for {needed}")


def test_answers_of_who_is_in_no_batch() -> None:
    """Any two inputs of a user were protected in words: of two others δ is larger."""
    truth, others, rate = Fraction(3, 4), Fraction(1, 8), Fraction(1, 2)
    inputs = [[truth if i == j else others for j in range(3)] for i in range(3)]
    first, second = (
        [(1 - rate) * a + rate * b for a, b in zip(inputs[0], law, strict=True)]
        for law in inputs[1:]
    )
    products = [[a * b for a in law for b in law] for law in (first, second)]
    step = pe.RandomizedResponse(truth, 3).poisson_sampled(rate)
    asked = Fraction(3, 2)
    epsilon = math.log(asked)
    assert float(apart(products[0], products[1], asked)) > 1.1 * pe.delta(step.composed(2), epsilon)
    for run in (step, pe.RandomizedResponse(truth, 3).randomly_allocated(4)):
        (label,) = label_of(run)
        assert label.protects.endswith("of which one is that of whoever is in no batch")
    (label,) = label_of(pe.RandomizedResponse(truth, 3))
    assert label.protects == "one user's answer: two inputs that this user may have"


def test_mixtures_name_the_narrowest_neighbours() -> None:
    """Those of the most likely part were named."""
    drawn, found = pe.dp_sgd(1.0, 0.1, 10), pe.GenericMechanism(1)
    for part, words in ((found, "where the parameters were found"), (known_shuffled(), IN_PLACE)):
        (label,) = label_of(pe.revealed_mixture([(0.9, drawn), (0.1, part)]))
        assert label.protects.endswith(words)


def test_likely_answers_are_not_sampled() -> None:
    """What is likely on the data at hand may not be on a sample of them."""
    for step in (pe.LikelyAnswer(20, 1e-4), pe.pate_votes([[50, 2]], 8)):
        for sample in (
            lambda run: run.poisson_sampled(0.1),
            lambda run: run.sampled_without_replacement(batch_size=1, dataset_size=2),
            lambda run: run.randomly_allocated(4),
        ):
            with pytest.raises(ValueError, match="likely on the data at hand cannot be sampled"):
                sample(step)


def test_every_adjacency_has_words_of_its_own() -> None:
    group = pe.dp_sgd(1.0, 0.1, 10, group_size=3)
    for run in (pe.dp_sgd(1.0, 0.1, 10), group, known_shuffled()):
        orders = {label_of(run, order)[0].protects for order in ("add_remove", "add", "remove")}
        assert len(orders) == 3
        assert all(text.count("null hypothesis") <= 1 for text in orders)
    assert "another record in its place" in label_of(known_shuffled(), "substitute")[0].protects


def known_shuffled(**words: Any) -> pe.Mechanism:
    given = {"batch_size": 256, "dataset_size": 60_000, "epochs": 10, **words}
    return pe.dp_sgd(1.0, sampling="shuffle", **given)


def runs_said_in_words() -> list[Any]:
    sizes = {"batch_size": 256, "dataset_size": 60_000, "epochs": 10}
    shuffled, drawn = known_shuffled(), pe.dp_sgd(1.0, sampling="poisson", **sizes)
    return [
        *(shuffled, drawn, drawn + shuffled, drawn + pe.dp_sgd(1.0, "256/60000", 2344)),
        *(pe.shuffled_lower_bound(1.0, 235, 10), pe.shuffled_lower_bound("11/10", 235, 10)),
        pe.dp_sgd(2.0, "256/60000", 20, group_size=5),
        pe.banded_matrix_factorization(2.0, "1/10", steps=100, bands=4),
        pe.matrix_mechanism(6.0, pe.tree_aggregation_matrix(8)),
        pe.repeat_and_select(shuffled, "geometric", stopping=0.05),
        pe.revealed_mixture([(0.5, shuffled), (0.5, drawn)]),
        *((pe.LaplaceMechanism(2.0) + pe.GaussianMechanism(3.0)).poisson_sampled(0.1),),
        pe.adaptive([drawn.parts[0][0], pe.GaussianMechanism(3.0)], 4),
    ]


@pytest.mark.parametrize("run", runs_said_in_words(), ids=str)
def test_json_keeps_what_answers_must_be_read_with(run: Any) -> None:
    """The bounds of shuffled batches came back as those of Gaussian noise on all records."""
    again = pe.from_json(pe.to_json(run))
    assert again == run
    if isinstance(run, pe.Mechanism):
        assert label_of(again) == label_of(run)
        assert known_leak(again) == known_leak(run)
        rows = json.loads(pe.to_json(pe.compose(run)))["mechanism"]  # as phases of a run file
        if not any(row["mechanism"] == "FinitePair" for row in rows):  # decimals that sum to 1
            assert label_of(composed_of(rows)) == label_of(pe.compose(run))
    assert str(again) == str(run)
    assert pe.to_json(again) == pe.to_json(run)


def test_a_lower_bound_from_a_file_is_no_guarantee(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "run.json").write_text(pe.to_json(pe.shuffled_lower_bound(1.0, 10, 3)), "utf-8")
    assert main(["statement", str(tmp_path / "run.json")]) == 2
    assert "and no guarantee" in capsys.readouterr().err


def test_words_change_no_answer() -> None:
    """They are no part of a mechanism's value, and follow it wherever it goes."""
    sizes = pe.dp_sgd(1.0, batch_size=256, dataset_size=60_000, epochs=10, sampling="poisson")
    plain = pe.dp_sgd(1.0, Fraction(256, 60_000), 2344)
    assert sizes == plain
    assert hash(sizes) == hash(plain)
    assert in_words(sizes) != in_words(plain)
    assert describe(sizes) == describe(plain)
    both = sizes + plain
    assert both == plain.composed(2) == plain + sizes
    assert in_words(both) == [*in_words(sizes), *in_words(plain)]
    assert in_words(sizes + sizes)[0].startswith("DP-SGD, noise multiplier 1, 4,688 steps (20 ep")
    assert in_words(pickle.loads(pickle.dumps(both))) == in_words(both)
    assert "(10 epochs)" not in in_words(pe.compose(sizes, sizes.parts[0][0]))[0]
    group = pe.dp_sgd(1.0, 0.1, 10, group_size=2)
    weights = [Fraction(81, 100), Fraction(18, 100), Fraction(1, 100)]
    same = pe.dp_sgd(1.0, "0.1", 10, group_size=2)
    assert same == pe.GaussianMixtureMechanism(1.0, [0, 1, 2], weights).composed(10)
    assert in_words(same) == in_words(group)
    assert pe.matrix_mechanism(6.0, pe.tree_aggregation_matrix(256)) == pe.GaussianMechanism(2.0)
    noisier = with_group(known_shuffled(), 2)
    assert noisier == pe.GaussianMechanism(Fraction(1, 2)).composed(10)
    assert noisier is not None
    assert IN_PLACE in label_of(noisier)[0].protects


def test_long_fractions_are_not_written_down() -> None:
    rate = Fraction(1, 3) ** 9000
    assert "about" in in_words(pe.dp_sgd(1.0, 1 - rate, 1))[0]


# Shuffled loaders


def test_the_statement_of_a_shuffled_loader(capsys: pytest.CaptureFixture[str]) -> None:
    """One Gaussian step an epoch, its own neighbours, and beside it what certainly leaks."""
    run = known_shuffled(epochs=20)
    assert run == pe.GaussianMechanism(1.0).composed(20)
    leak = known_leak(run)
    assert leak == pe.shuffled_lower_bound(1.0, 235, 20)  # the last batch is a smaller one
    content = privacy_statement(run, 1e-5, kappas=[0.01]).as_object()
    for figure, question in zip(
        content["figures"],
        ("epsilon", "gamma_bound", "gamma_bound", "delta", "gamma_bound"),
        strict=True,
    ):
        ask = getattr(pe, question)
        upper = ask(run, figure["at"], adjacency="add_remove", bounds=True)
        lower = ask(leak, figure["at"], adjacency="add_remove", bounds=True)
        assert figure["value"] == figure["upper"] >= upper.lower
        assert 0.0 < figure["lower"] <= lower.upper < figure["upper"]
    least = content["figures"][0]["lower"]
    assert f"ε is at least {np.floor(least * 1e3) / 1e3}" in content["notes"][0]
    flags = f"--noise 1 {SIZES} --epochs 20 --sampling shuffle".split()
    assert main(["tradeoff", *flags, "--alpha", "0.1"]) == 0
    text = capsys.readouterr().out.splitlines()
    assert "answers: upper bounds of what leaks" in text
    assert text[-2].split() == ["α", "β", "at", "most", "certainty"]
    assert float(text[-1].split()[1]) < float(text[-1].split()[2])
    assert known_leak(pe.GaussianMechanism(1.0).composed(20)) is None
    assert known_leak(pe.compose(run, pe.LaplaceMechanism(2.0))) is None


def test_epochs_of_shuffled_steps_are_counted_from_above() -> None:
    """A loader may leave out the last batch, and start an epoch that it does not end."""
    for steps, epochs in ((1, 1), (234, 1), (235, 2), (4680, 20), (4688, 21)):
        run = known_shuffled(epochs=None, steps=steps)
        assert run == pe.GaussianMechanism(1.0).composed(epochs)
    assert known_shuffled(epochs="2.5") == pe.GaussianMechanism(1.0).composed(3)


@pytest.mark.parametrize(
    ("run", "epochs"),
    [
        (pe.dp_sgd(1.0, batch_size=256, dataset_size=60_000, epochs=10, sampling="poisson"), 10),
        (pe.dp_sgd(1.0, batch_size=256, dataset_size=60_000, steps=2344, sampling="poisson"), 11),
        (pe.dp_sgd(1.0, 0.01, 1000), 10),
        (pe.dp_sgd_allocated(1.0, 100, 7), 7),
    ],
)
def test_other_batches_of_a_run(run: pe.Mechanism, epochs: int) -> None:
    found = without_amplification(run)
    assert found == pe.GaussianMechanism(1.0).composed(epochs)
    epsilon = pe.epsilon(found, 1e-5, bounds=True).upper
    note = privacy_statement(run, 1e-5, proven=False).notes[0]
    assert abs(float(note.split("ε = ")[1].split()[0]) / epsilon - 1.0) < 1e-3
    assert "A loader that shuffles is different" in note


def test_sizes_and_rates_are_shown_as_they_were_given() -> None:
    found = resampled(pe.dp_sgd(1.0, "100/100000", 9)).values()
    assert any("100 of 100,000 records, without" in in_words(each)[0] for each in found)
    drawn = pe.GaussianMechanism(1.0).sampled_with_replacement(batch_size=256, dataset_size=60_000)
    assert "each of a record at a rate of 1/60000" in in_words(drawn)[0]


def test_what_no_loader_shuffles_has_no_such_remark() -> None:
    for run in (
        pe.GaussianMechanism(1.0).composed(3),
        pe.dp_sgd(1.0, 0.1, 10, group_size=3),
        pe.banded_matrix_factorization(1.0, 0.1, 10, 2),
        pe.matrix_mechanism(2.0, np.eye(2), "balls_in_bins", bins=2),
    ):
        assert without_amplification(pe.compose(run)) is None
    different = "A loader that shuffles is different"
    for run, note in (
        (pe.LaplaceMechanism(2.0).poisson_sampled(0.1), ": these figures do not hold for it."),
        (pe.dp_sgd(1.0, 0.1, 10, group_size=3), ": these figures do not hold for it."),
        (pe.GaussianMechanism(1.0), ": give batch_size, dataset_size and sampling shuffle."),
        (pe.LaplaceMechanism(2.0), ""),
        (pe.matrix_mechanism(2.0, np.eye(2)), ""),
    ):
        found = privacy_statement(run, 1e-5, proven=False).notes
        assert found == ((different + note,) if note else ())


def test_a_report_keeps_what_was_given() -> None:
    pytest.importorskip("jinja2")
    pytest.importorskip("matplotlib")
    run = pe.dp_sgd(1.0, batch_size=256, dataset_size=60_000, epochs=10, sampling="poisson")
    report = privacy_report(run, 1e-5, group_sizes=[2], proven=False)
    page = report.html().partition('<script type="application/json"')[0]
    for words in (
        "<dt>batch size</dt><dd>256</dd>",
        "<dt>dataset size</dt><dd>60,000</dd>",
        "<dt>epochs</dt><dd>10</dd>",
        POISSON.format("256/60,000"),
        "256 of 60,000 records, without replacement",
        "DP-SGD on shuffled batches, noise multiplier 1, 10 epochs",
    ):
        assert words in page
    for words in ("8/1875", "1,875", "11 epochs", "11 steps", "weights"):
        assert words not in page
    shuffled = next(each for each in report.alternatives if each.what.startswith("shuffled"))
    truth = pe.epsilon(pe.GaussianMechanism(1.0).composed(10), 1e-5)
    assert shuffled.figures[0].bound == pytest.approx(truth, rel=1e-9)
    (group,) = (each for each in report.alternatives if each.kind == "group_size")
    assert group.mechanism[0].startswith("DP-SGD, groups of 2 records")


def test_the_schema_of_a_statement() -> None:
    content = privacy_statement(pe.dp_sgd(1.0, 0.01, 100), 1e-5).as_object()
    assert content["schema"] == "pyengine-statement/1"
    assert [figure["metric"] for figure in content["figures"]] == [
        "epsilon",
        "true_positive_rate",
        "true_positive_rate",
        "advantage",
        "reconstruction",
        "reconstruction",
    ]
    assert [figure["at"] for figure in content["figures"]] == [1e-5, 0.001, 0.01, 0.0, 1e-4, 0.01]
    for figure in content["figures"]:
        assert all(type(figure[key]) is float for key in ("at", "value", "lower", "upper"))
        assert figure["lower"] <= figure["upper"] == figure["value"] == figure["bound"]
    json.dumps(content, allow_nan=False)


# Batches that an accountant sees, or does not


def optimizer(size: int, expected: float = 100.0, **more: Any) -> Any:
    words = {"noise_multiplier": 1.0, "accumulated_iterations": 1, "expected_batch_size": expected}
    return SimpleNamespace(**{**words, "grad_samples": [np.zeros((size, 3))], **more})


def seen(sizes: list[int], rate: float = 0.1, **more: Any) -> HistoryAccountant:
    made = HistoryAccountant()
    note = made.get_optimizer_hook_fn(sample_rate=rate)
    for size in sizes:
        note(optimizer(size, **more))
    return made


def test_batches_of_one_size_are_no_poisson_samples() -> None:
    """Three epochs of ten batches from a loader that shuffles, as with poisson_sampling=False."""
    made = seen([100] * 30)
    for ask in (
        lambda: made.get_epsilon(1e-5),
        lambda: made.get_delta(1.0),
        lambda: made.get_beta(0.1),
        lambda: made.get_gamma(0.1),
        made.get_advantage,
        lambda: made.get_epsilon(1e-5, proven=False),
        lambda: pe.epsilon(made, 1e-5),
        lambda: privacy_statement(made, 1e-5),
    ):
        with pytest.raises(ValueError, match="but 30 of 30 batches have 100 records"):
            ask()
    holds = made.shuffled_composition()
    assert holds == pe.GaussianMechanism(1.0).composed(3)
    assert IN_PLACE in label_of(holds)[0].protects
    assert pe.epsilon(holds, 1e-5) > 7.87  # what certainly leaks
    again = HistoryAccountant()
    again.load_state_dict(made.state_dict())
    with pytest.raises(ValueError, match="must be Poisson samples"):
        again.get_epsilon(1e-5)


@pytest.mark.parametrize("sizes", [[300, 300, 300, 100] * 3, [256] * 40 + [96]])
def test_a_loader_that_cuts_is_seen(sizes: list[int]) -> None:
    """The last batch of an epoch may be a smaller one."""
    rate = 0.25
    with pytest.raises(ValueError, match="must be Poisson samples"):
        seen(sizes, rate, expected=250.0).get_epsilon(1e-5)


def test_added_gradients_are_no_poisson_samples() -> None:
    with pytest.raises(ValueError, match="added up the gradients of several batches"):
        seen([100], accumulated_iterations=2).get_epsilon(1e-5)


def test_poisson_samples_are_answered() -> None:
    rng = np.random.default_rng(5)
    with warnings.catch_warnings():
        warnings.simplefilter("error")  # sizes are seen, and nothing is said
        for records, rate in ((1000, 0.1), (200, 0.02), (20, 0.25), (60_000, 256 / 60_000)):
            for _ in range(20):
                sizes = rng.binomial(records, rate, 200).tolist()
                made = seen(sizes, rate, expected=records * rate)
                assert made.get_epsilon(1e-5) > 0.0
    whole = seen([100] * 30, 1.0)  # a batch of all records has one size
    assert whole.get_epsilon(1e-5) == pytest.approx(
        pe.epsilon(pe.GaussianMechanism(1.0).composed(30), 1e-5)
    )


def test_parts_of_batches_tell_nothing() -> None:
    """A batch that is run in parts shows the last of them; those that are whole are small ones."""
    made = seen([25] * 30, _is_last_step_skipped=True)
    assert made.get_epsilon(1e-5) > 0.0
    assert "the sizes of 30 batches were not seen" in made.assumption
    mixed = SeenBatches()
    for size in [1] * 40:
        mixed.see(optimizer(size, 5.0), 0.01)
    mixed.see(optimizer(1, 5.0, _is_last_step_skipped=True), 0.01)
    assert not mixed.are_not_poisson()
    assert not mixed.are_told()


@pytest.mark.parametrize(("records", "rate"), [(1, 0.5), (7, 0.3), (100, 0.02), (1000, 0.1)])
def test_largest_mass_is_bounded(records: int, rate: float) -> None:
    p = Fraction(rate).limit_denominator(100)
    exact = max(comb(records, k) * p**k * (1 - p) ** (records - k) for k in range(records + 1))
    found = SeenBatches()
    found.see(optimizer(1, records * rate), rate)
    assert exact <= Fraction(found.mode) <= min(1, 2 * exact)


def test_false_alarms_are_rare() -> None:
    """The bound of their probability, with the sizes of a few batches enumerated."""
    records, rate, number = 12, 0.25, 4
    mass = [comb(records, k) * rate**k * (1 - rate) ** (records - k) for k in range(records + 1)]
    largest = max(mass)
    for most in (1, 2, 3):
        chance = 0.0
        for sizes in np.ndindex(*[records + 1] * number):
            if len(set(sizes)) <= most:
                chance += float(np.prod([mass[size] for size in sizes]))
        assert chance <= comb(number, most) * (most * largest) ** (number - most)


ASKS: dict[str, Callable[[], Any]] = {
    "HistoryAccountant": lambda: unseen().get_epsilon(1e-5),
    "a history": lambda: from_history([(1.0, 0.01, 10)]),
    "PRVAccountant": lambda: prv_accountant.PRVAccountant(
        pe.GaussianMechanism(1.0).poisson_sampled(0.01), 0.1, 1e-9
    ),
    "DPSGDAccountant": lambda: prv_accountant.DPSGDAccountant(1.0, 0.01, 100),
    "find_noise_multiplier": lambda: prv_accountant.find_noise_multiplier(0.01, 100, 1.0, 1e-5),
    "PyenginePrivacyAccountant": lambda: PyenginePrivacyAccountant(
        1000, 0.01, "gaussian", epsilon=1.0, noise_parameter=1.0
    ),
    "riskcal's call": lambda: get_beta_for_dpsgd(1.0, 0.01, 10, 0.1),
    "riskcal's call ": lambda: get_advantage_for_dpsgd(1.0, 0.01, 10),
    " riskcal's call": lambda: find_noise_multiplier_for_advantage(0.1, 0.01, 100),
    " riskcal's call ": lambda: find_noise_multiplier_for_err_rates(0.01, 0.9, 0.01, 100),
}


def unseen() -> HistoryAccountant:
    made = HistoryAccountant()
    made.step(noise_multiplier=1.0, sample_rate=0.01)
    return made


@pytest.mark.parametrize("who", ASKS)
def test_what_is_not_seen_is_said_once(who: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(histories, "_said", set())
    with pytest.warns(SamplingWarning, match=f"{who.strip()} cannot see how batches are drawn"):
        ASKS[who]()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        ASKS[who]()
        ASKS["a history"]()


def test_it_is_said_once_in_a_process() -> None:
    code = (
        "import pyengine as pe\nfrom pyengine.interop import HistoryAccountant\n"
        "for i in range(3):\n"
        "    made = HistoryAccountant()\n"
        "    made.step(noise_multiplier=1.0, sample_rate=0.5)\n"
        "    made.get_epsilon(1e-5); pe.epsilon([(1.0, 0.5, i)], 1e-5)\n"
        "    pe.epsilon([(1.0, 1.0, 1)], 1e-5); pe.epsilon(pe.dp_sgd(1.0, 0.5, 1), 1e-5)\n"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert run.stderr.count("SamplingWarning:") == 1


def test_relations_of_dp_accounting_have_their_neighbours() -> None:
    def event(name: str, **fields: Any) -> Any:
        return type(f"{name}DpEvent", (), fields)()

    gaussian = event("Gaussian", noise_multiplier=2.0)
    sampled = event("PoissonSampled", sampling_probability=0.5, event=gaussian)
    twice = event("SelfComposed", event=sampled, count=2)
    for each, step in ((sampled, pe.dp_sgd(2.0, 0.5, 1)), (twice, pe.dp_sgd(2.0, 0.5, 2))):
        for relation, who in (("ADD_OR_REMOVE_ONE", PRESENT), ("REPLACE_SPECIAL", IN_PLACE)):
            made = mechanism_under(each, relation)
            assert pe.compose(made) == step
            assert label_of(made)[0].protects == f"one record: {who}"
    tree = event("SingleEpochTreeAggregation", noise_multiplier=2.0, step_counts=[3, 8, 7])
    assert IN_PLACE in label_of(mechanism_under(tree, "REPLACE_SPECIAL"))[0].protects


def test_accountants_name_what_they_assume() -> None:
    step = pe.GaussianMechanism(1.0).poisson_sampled(0.01)
    prv = prv_accountant.PRVAccountant(step, 0.1, 1e-9, 100)
    assert prv.assumption == POISSON.format("0.01")
    assert prv.assumption in repr(prv)
    pfl = PyenginePrivacyAccountant(1000, 0.01, "gaussian", epsilon=1.0, noise_parameter=1.0)
    assert "each user joins each cohort independently with probability 0.01" in str(pfl)
    assert privacy_statement(pfl, 1e-5, proven=False).label[0].protects == f"one user: {PRESENT}"
    assert "Each batch must be a Poisson sample" in repr(unseen())
    assert "DP-SGD, noise multiplier 1, 1 step at rate 0.01" in repr(unseen())


# Mechanisms that are made of others


LEAST = pe.shuffled_lower_bound(1.0, 10, 1)
SHUFFLED = pe.dp_sgd(1.0, batch_size=10, dataset_size=100, epochs=1, sampling="shuffle")
CLIENT = pe.dp_sgd(3.0, 0.01, 1, unit="client")
RECORD = pe.dp_sgd(1.0, 0.01, 1)
TARGET = pe.targets.EpsilonDelta(100.0, 1e-5)


@pytest.mark.parametrize(
    "guarantee",
    [
        lambda: privacy_statement(pe.repeat_and_select(LEAST, "geometric", stopping=0.1), 1e-5),
        lambda: privacy_statement(pe.adaptive([LEAST, pe.GaussianMechanism(2.0)], 2), 1e-5),
        lambda: privacy_statement(pe.revealed_mixture([(0.5, LEAST), (0.5, RECORD)]), 1e-5),
        lambda: privacy_report(pe.repeat_and_select(LEAST, "geometric", stopping=0.1), 1e-5),
        lambda: pe.Budget(TARGET).spend(LEAST),
        lambda: pe.Budget(TARGET).allows(RECORD, LEAST),
        lambda: pe.Budget(TARGET).remaining_steps(LEAST),
        lambda: pe.Filter([LEAST, RECORD], TARGET),
        lambda: pe.Odometer([LEAST]),
    ],
)
def test_the_least_that_leaks_is_no_guarantee_of_anything(guarantee: Callable[[], Any]) -> None:
    """A selection of it, or a menu with it, was stated as proven; budgets and filters took it."""
    with pytest.raises(ValueError, match="the least that leaks, and no guarantee") as refused:
        guarantee()
    assert len(str(refused.value)) < 200


@pytest.mark.parametrize(
    "made",
    [
        lambda several: pe.repeat_and_select(pe.compose(*several), "geometric", stopping=0.5),
        lambda several: pe.revealed_mixture([(1 / len(several), each) for each in several]),
    ],
)
def test_what_holds_of_all_parts_is_said_of_the_whole(made: Callable[[Any], pe.Mechanism]) -> None:
    """The words were those of the first part: a client was said to be protected by all."""
    (both,) = label_of(made([CLIENT, RECORD]))
    units, _, neighbours = both.protects.partition(": ")
    assert set(units.split(" or ")) == {"one client, with all its records", "one record"}
    assert neighbours == PRESENT
    assert "each client joins" in both.batches
    assert "each record joins" in both.batches
    (clients,) = label_of(made([CLIENT, pe.dp_sgd(2.0, 0.01, 1, unit="client")]))
    assert clients.protects == f"one client, with all its records: {PRESENT}"
    assert "record joins" not in clients.batches
    for several in ([SHUFFLED, RECORD], [RECORD, SHUFFLED]):
        (empty,) = label_of(made(several))
        assert empty.protects == f"one record: {IN_PLACE}"
        assert empty.known == "upper bound"
    assert privacy_statement(made([RECORD]), 1e-5, proven=False).notes == (
        "A loader that shuffles is different: these figures do not hold for it.",
    )


def test_units_of_different_steps_are_not_mixed_up(capsys: pytest.CaptureFixture[str]) -> None:
    """Beside steps that protect others an ε is neither's; of several runs each has its own."""
    said = "all figures are for data that differ in each kind of step as said of it"
    stated = privacy_statement(CLIENT + RECORD, 1e-5, proven=False)
    for text in (str(stated), stated.latex(), stated.markdown(), stated._repr_html_()):
        assert said in text
    assert said not in str(privacy_statement(RECORD + pe.LaplaceMechanism(9.0), 1e-5))
    phases = ["--phase", "noise=1,p=0.01,steps=1,unit=client", "--phase", "noise=1,p=0.01,steps=1"]
    assert main(["epsilon", *phases, "--delta", "1e-5"]) == 0
    assert f"protects: {said}" in capsys.readouterr().out
    runs = [
        "--run",
        "a",
        "noise=1,p=0.01,steps=1,unit=client",
        "--run",
        "b",
        "noise=1,p=0.01,steps=1",
    ]
    assert main(["epsilon", *runs, "--delta", "1e-5"]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert f"protects: one record: {PRESENT} (adjacency add_remove) (b)" in lines
    assert said not in "\n".join(lines)


def test_a_table_says_which_run_protects_whom(tmp_path: Path) -> None:
    specification = tmp_path / "runs.toml"
    specification.write_text(
        'formats = ["markdown"]\n[epsilon]\ndelta = [1e-5]\nadjacency = ["add_remove"]\n'
        '[[run]]\nname = "a"\nnoise = 1\np = 0.01\nsteps = 1\nunit = "client"\n'
        '[[run]]\nname = "b"\nnoise = 1\np = 0.01\nsteps = 1\n'
    )
    assert tables.run(load(specification), tmp_path / "out") == 0
    text = (tmp_path / "out" / "table.md").read_text(encoding="utf-8")
    assert f"one client, with all its records: {PRESENT} (a); one record: {PRESENT} (b)" in text


def test_what_needs_no_loader_is_told_of_none() -> None:
    for run in (pe.pate_noisy_max(40.0, 10), pe.thresholded_histogram(4.0, 30.0)):
        assert privacy_statement(run, 1e-5, proven=False).notes == ()


NEARLY = (0.0123456789, 0.0123456788)


@pytest.mark.parametrize(
    "made",
    [
        lambda x: pe.repeat_and_select(RECORD, "geometric", stopping=x),
        lambda x: pe.repeat_and_select(RECORD, "poisson", mean=x),
        lambda x: pe.repeat_and_select(RECORD, "binomial", number=3, probability=x),
        lambda x: pe.repeat_and_select(RECORD, "negative_binomial", shape=x, stopping=0.5),
        lambda x: pe.repeat_and_select(RECORD, "negative_binomial", shape=0.5, stopping=x),
        lambda x: pe.revealed_mixture([(x, RECORD), (1 - x, CLIENT)]),
        lambda x: pe.RenyiCurve([1 + x, 3], [0.1, 0.2]),
        lambda x: pe.RenyiCurve([1 + x], [0.1]),
        lambda x: pe.shuffled_lower_bound(1 + x, 10),
        lambda x: pe.report_noisy_max(1 + x, 3, span=1),
        lambda x: pe.report_noisy_max(1.0, 3, span=x),
        lambda x: pe.pate_noisy_max(1 + x, 3),
        lambda x: pe.pate_votes([[9, 1]], 1 + x, threshold=4, threshold_noise=1),
        lambda x: pe.pate_votes([[9, 1]], 1, threshold=4 + x, threshold_noise=1),
        lambda x: pe.pate_votes([[9, 1]], 1, threshold=4, threshold_noise=1 + x),
        lambda x: pe.thresholded_histogram(1 + x, 9),
        lambda x: pe.thresholded_histogram(1, 9 + x),
        lambda x: pe.last_iterate(1.0, 0.1, 10, contraction=x),
        lambda x: pe.last_iterate(1.0, 0.1, 10, contraction=0.5, diameter=x),
    ],
)
def test_words_keep_all_digits_of_what_was_given(made: Callable[[float], Any]) -> None:
    """Six digits of an input are those of another run."""
    one, other = (repr(made(x)) for x in NEARLY)
    assert one != other


def test_numbers_of_many_zeros_have_an_exponent() -> None:
    assert number_in_words(Fraction("1e-320")) == "1e-320"
    assert number_in_words(Fraction("25e40")) == "2.5e41"
    assert number_in_words(Fraction("1e-20")) == "0.00000000000000000001"
    assert "1.5e-310" in repr(pe.GaussianMechanism("1.5e-310"))


def test_choices_are_named_by_what_was_given() -> None:
    """The noise of a vote was shown over √2, and that of a threshold not at all."""
    for run, words in (
        (pe.pate_noisy_max(40.0, 10), "PATE by the noisy maximum of votes, noise 40, 10 labels"),
        (
            pe.pate_votes([[90, 5]], 20.0, threshold=50, threshold_noise=30.0),
            "PATE by the noisy maximum of the votes at hand, noise 20, above 50 with noise 30",
        ),
        (
            pe.report_noisy_max(4.0, 5, span="1/2"),
            "report noisy max of 5 queries, Gaussian noise 4, span 0.5, epsilon 0.",
        ),
        (pe.permute_and_flip("0.1"), "permute-and-flip, epsilon 0.1"),
        (
            pe.thresholded_histogram(4.0, 30.0, keys=2),
            "histogram above a threshold of 30, noise 4: counts",
        ),
        (pe.adaptive([RECORD], 1), "up to 1 step, each chosen from (DP-SGD, noise multiplier 1,"),
        (pe.last_iterate(1.0, 0.1, 10, contraction=0.5), "last iterate of DP-SGD, noise multip"),
    ):
        assert repr(run).startswith(words)
