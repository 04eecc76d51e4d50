"""Every public mechanism goes through every door: questions, JSON, files, tables, words, docs."""

from __future__ import annotations

import csv
import json
import math
from pathlib import Path

import pytest
from scipy import stats

import pyengine as pe
from pyengine.cli import main
from pyengine.laws.kinds import kinds
from pyengine.mechanisms import Mechanism, steps_of
from pyengine.mechanisms.report import NEIGHBOURS, in_words, label_of
from pyengine.workbench.runs.files import parse_runs

DOCS = Path(__file__).parent.parent / "docs"
GAUSSIAN, LAPLACE = pe.GaussianMechanism("2"), pe.LaplaceMechanism("4")
FIXED = {"batch_size": 2, "dataset_size": 9}
Z = pe.analytic.z
LOGISTIC = -Z - 2 * pe.analytic.log(1 + pe.analytic.exp(-Z))
RUNS: dict[str, Mechanism] = {
    "GaussianMechanism": GAUSSIAN,
    "LaplaceMechanism": LAPLACE,
    "DiscreteGaussianMechanism": pe.DiscreteGaussianMechanism("2"),
    "DiscreteLaplaceMechanism": pe.DiscreteLaplaceMechanism("2"),
    "SkellamMechanism": pe.SkellamMechanism("3"),
    "DiscreteGaussianSum": pe.DiscreteGaussianSum("2", 3),
    "RandomizedResponse": pe.RandomizedResponse("3/4"),
    "GenericMechanism": pe.GenericMechanism("1/2", "1/1000"),
    "from_probabilities": pe.from_probabilities(["1/4", "3/4"], ["1/2", "1/2"]),
    "GaussianMixtureMechanism": pe.GaussianMixtureMechanism("2", [0, 1, 2], ["1/2", "1/4", "1/4"]),
    "GaussianReleases": pe.GaussianReleases(["2", "3"]),
    "RenyiCurve": pe.RenyiCurve([2.0, 3.0], [0.25, 0.5]),
    "ZeroConcentrated": pe.ZeroConcentrated("1/20"),
    "repeat_and_select": pe.repeat_and_select(GAUSSIAN, "geometric", stopping=0.25),
    "revealed_mixture": pe.revealed_mixture([("1/4", GAUSSIAN), ("3/4", LAPLACE)]),
    "Releases": (GAUSSIAN + LAPLACE).on_one_sample().poisson_sampled("1/4"),
    "RandomlyAllocated": LAPLACE.randomly_allocated(3),
    "ExponentialMechanism": pe.ExponentialMechanism("1/2"),
    "ShuffledRandomizer": pe.ShuffledRandomizer("1", 100),
    "TruncatedPoissonSampled": GAUSSIAN.truncated_poisson_sampled(
        "1/4", batch_size=20, dataset_size=50
    ),
    "PoissonSampled": GAUSSIAN.poisson_sampled("1/4"),
    "SampledWithoutReplacement": GAUSSIAN.sampled_without_replacement(**FIXED),
    "dp_sgd": pe.dp_sgd("2", "1/10", 5),
    "dp_sgd_allocated": pe.dp_sgd_allocated("2", 5, 2),
    "group_size": pe.dp_sgd("2", "1/10", 5, group_size=2),
    "with_replacement": pe.dp_sgd("2", **FIXED, steps=2, sampling="with_replacement"),
    "shuffle": pe.dp_sgd("2", **FIXED, epochs=2, sampling="shuffle"),
    "banded_matrix_factorization": pe.banded_matrix_factorization("2", "1/4", 8, 2),
    "toeplitz_mechanism": pe.toeplitz_mechanism("2", [1.0, 0.5], 8),
    "matrix_mechanism": pe.matrix_mechanism("2", [[1.0, 0.0], [0.5, 1.0]]),
    "AboveThreshold": pe.AboveThreshold("8", "4", 100, sides=1),
    "report_noisy_max": pe.report_noisy_max("3", 4, span="5"),
    "permute_and_flip": pe.permute_and_flip("1/2"),
    "pate_noisy_max": pe.pate_noisy_max("20", 3),
    "pate_votes": pe.pate_votes([[30, 2], [9, 8]], "5", threshold=12, threshold_noise="4"),
    "LikelyAnswer": pe.LikelyAnswer("5", "1/100"),
    "thresholded_histogram": pe.thresholded_histogram("3", "20"),
}
# Made of functions, which no file holds; those of doubles have no proof.
IN_PYTHON: dict[str, Mechanism] = {
    "from_analytic_densities": pe.from_analytic_densities(
        LOGISTIC, LOGISTIC.at(Z - "0.1")
    ).composed(100),
}
UNPROVEN: dict[str, Mechanism] = {
    "from_distributions": pe.from_distributions(stats.norm(0, 1), stats.norm(0.5, 1)),
    "from_log_likelihood_ratio": pe.from_log_likelihood_ratio(
        lambda z: 0.5 * z - 0.125, stats.norm(0, 1)
    ),
    "from_profile": pe.from_profile(lambda e: max(0.0, 0.75 - 0.25 * math.exp(e))),
}
ALL = {**RUNS, **IN_PYTHON, **UNPROVEN}
OTHERS = {"Mechanism", "Mechanisms", "Composition"}  # bases, and many at once
TOOLS = {"blt_coefficients", "matrix_sensitivity", "noise_multiplier", "tree_aggregation_matrix"}


def test_all_are_here() -> None:
    public = {name: getattr(pe, name) for name in pe.__all__}
    classes = {n for n, x in public.items() if isinstance(x, type) and issubclass(x, Mechanism)}
    shown = {type(step).__name__ for run in ALL.values() for step, _ in steps_of(run)}
    shown |= {type(step.inner).__name__ for run in ALL.values() for step, _ in steps_of(run)}
    assert classes - OTHERS == shown - {"Releases"} | {"Releases"} & classes
    own = (kind for kind in kinds() if kind.mechanism.__module__.startswith("pyengine"))
    assert {kind.name for kind in own} <= shown
    functions = {
        name
        for name, x in public.items()
        if callable(x) and not isinstance(x, type) and x.__module__.startswith("pyengine.mech")
    }
    assert functions - TOOLS <= ALL.keys() | {"compose"}


@pytest.mark.parametrize("name", ALL)
def test_questions(name: str) -> None:
    """Proven ends hold each other's inverse, and what is said of neighbours."""
    run = ALL[name]
    proven = "estimated" if name in UNPROVEN else True
    found = pe.delta(run, 0.1, bounds=proven)
    assert 0.0 <= found.lower <= found.value <= found.upper < 1.0
    back = pe.epsilon(run, max(found.upper, 1e-9), bounds=proven)
    assert back.lower <= 0.1 + 1e-9
    beta, gamma = (ask(run, 0.2, adjacency="add") for ask in (pe.trade_off, pe.gamma_bound))
    assert beta + gamma == pytest.approx(1.0, rel=1e-12)
    for adjacency in NEIGHBOURS["present"]:
        for label in label_of(run, adjacency):
            assert all((label.mechanism, label.batches, label.protects))
            assert label.known in ("", "upper bound", "lower bound")
    assert in_words(run)
    assert repr(run).count("\n") == 0


@pytest.mark.parametrize("name", ALL)
def test_substitution_is_answered_or_refused(name: str) -> None:
    """And leaks no less than a record that is missing, whose place an empty one may take."""
    if name in SILENT:
        with pytest.raises(pe.NotDefinedError, match="what another record does"):
            pe.delta(ALL[name], 0.1, adjacency="substitute")
        return
    found = pe.delta(ALL[name], 0.1, adjacency="substitute")
    assert found >= pe.delta(ALL[name], 0.1) * (1.0 - 1e-9)


SILENT = {
    *("from_probabilities", "from_analytic_densities", "from_distributions", "from_profile"),
    *("from_log_likelihood_ratio", "Releases"),
}


@pytest.mark.parametrize("name", RUNS)
def test_json_and_files(name: str) -> None:
    run = pe.compose(RUNS[name])
    text = pe.to_json(run)
    assert pe.from_json(text) == run
    assert parse_runs(text, "run.json").only().mechanism == run


@pytest.mark.parametrize("name", [*IN_PYTHON, *UNPROVEN])
def test_functions_are_in_no_file(name: str) -> None:
    if name == "from_profile":  # which its values stand for
        return
    with pytest.raises(ValueError, match="which holds functions"):
        pe.to_json(ALL[name])


def test_a_table_of_all(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Rows have the values of Python; the page of docs names all."""
    spec = {
        "run": [
            {"name": name, "phase": json.loads(pe.to_json(pe.compose(run)))["mechanism"]}
            for name, run in RUNS.items()
        ],
        "delta": {"epsilon": [0.1], "adjacency": ["add"]},
    }
    file = tmp_path / "all.json"
    file.write_text(json.dumps(spec), "utf-8")
    assert main(["table", str(file), "-o", str(tmp_path / "out")]) == 0
    capsys.readouterr()
    with (tmp_path / "out" / "table.csv").open(encoding="utf-8") as rows:
        found = {row["workflow"]: float(row["value"]) for row in csv.DictReader(rows)}
    for name, run in RUNS.items():
        assert found[name] == pytest.approx(pe.delta(run, 0.1, adjacency="add"), rel=1e-9), name


def test_documentation_names_all() -> None:
    mechanisms = (DOCS / "mechanisms.md").read_text("utf-8")
    batches = (DOCS / "batch_selection.md").read_text("utf-8")
    reference = "".join(page.read_text("utf-8") for page in (DOCS / "api").glob("*.md"))
    for name in ALL:
        assert name in mechanisms + batches + reference, name
        if hasattr(pe, name):
            assert name in reference, name
