"""Specifications of tables: what may be written, what it means, and what is refused."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from table_texts import EVERY_KIND, GAMMA, LAPLACE, ONE_RUN, PHASES

import pyengine as pe
from pyengine.laws.kinds import named_kinds
from pyengine.workbench.runs import makers as mechanism_names
from pyengine.workbench.runs.makers import maker_of
from pyengine.workbench.tables.spec import SpecificationError, load, parse


def test_numbers_are_exact() -> None:
    text = ONE_RUN.replace("0.01", "0.1").replace("1.0", '"1/3"').replace("1000", "1_000")
    (workflow,) = parse(GAMMA + text, "test").workflows
    assert workflow.mechanism == pe.dp_sgd("1/3", "0.1", 1000)
    assert workflow.mechanism != pe.dp_sgd("1/3", 0.1, 1000)


def test_lists_make_grids() -> None:
    found = parse(GAMMA + LAPLACE, "test").workflows
    assert [(run.name, run.mechanism) for run in found] == [
        (
            f"laplace (noise_multiplier={noise}, steps={steps})",
            pe.LaplaceMechanism(noise).poisson_sampled("0.5").composed(steps),
        )
        for noise in ("1/2", "2")
        for steps in (1, 10)
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kappa = ", "Invalid value"),
        (GAMMA, "no run: add one with [[run]]"),
        (ONE_RUN, "no question"),
        (GAMMA + ONE_RUN + "stepz = 3\n", "workflow 1: unknown key 'stepz'"),
        ("title = 'x'\n" + GAMMA + ONE_RUN, "unknown key 'title' beside [[workflow]]"),
        (GAMMA + ONE_RUN + ONE_RUN, "two runs are named 'run'"),
        (
            GAMMA + ONE_RUN.replace("steps = 1000", ""),
            "workflow 1: a sampled mechanism needs steps or epochs",
        ),
        (GAMMA + ONE_RUN.replace('"run"', "3"), "name must be a printable string, got 3"),
        (GAMMA + ONE_RUN.replace("1000", "-1"), "steps must be a non-negative integer, got '-1'"),
        (GAMMA + ONE_RUN.replace("1000", "true"), "steps must be a real number, got True"),
        (GAMMA + ONE_RUN.replace("1000", "[]"), "steps must be a number or a list of numbers"),
        (GAMMA + ONE_RUN.replace("1000", "[2, 2]"), "two runs are named 'run (steps=2)'"),
        (GAMMA + ONE_RUN.replace("1000", "[2, -2]"), "non-negative integer, got '-2' (steps=-2)"),
        (
            GAMMA + ONE_RUN.replace("0.01", "1.5"),
            "sampling_probability must lie in [0, 1], got '1.5'",
        ),
        (GAMMA + ONE_RUN.replace("0.01", '"1/0"'), "sampling_probability must be finite"),
        (GAMMA + ONE_RUN.replace("0.01", '"a"'), "sampling_probability must be a number"),
        (GAMMA + ONE_RUN.replace("1.0", "nan"), "noise_multiplier must not be NaN, got nan"),
        (GAMMA + ONE_RUN.replace("1.0", "-inf"), "noise_multiplier must be finite, got -inf"),
        (GAMMA.replace("[1e-3]", "[2]") + ONE_RUN, "[gamma_bound]: kappa must lie in [0, 1]"),
        (GAMMA.replace("[1e-3]", "[]") + ONE_RUN, "kappa must be a list of numbers, got []"),
        (GAMMA.replace("[1e-3]", '[1, "2/2"]') + ONE_RUN, "kappa holds a value twice"),
        (GAMMA.replace('["add"]', "[]") + ONE_RUN, "adjacency must be a list of 'add'"),
        (GAMMA.replace('"add"', '"sub"') + ONE_RUN, "adjacency must be one of 'add'"),
        (GAMMA.replace('"add"', '"add", "add"') + ONE_RUN, "adjacency holds a value twice"),
        ("gamma_bound = 3\n" + ONE_RUN, "[gamma_bound] must be a table, got 3"),
        ("workflow = 3\n" + GAMMA, "no run: workflow must be tables [[workflow]], got 3"),
        ("workflow = [3]\n" + GAMMA, "workflow 1 must be a table, got 3"),
        ("[delta]\nepsilon = [inf]\nadjacency = ['add']\n" + ONE_RUN, "must lie in [0, inf)"),
        ("engine = 'fast'\n" + GAMMA + ONE_RUN, "engine must be one of 'auto', 'reference'"),
        ("digits = 30\n" + GAMMA + ONE_RUN, 'digits needs engine = "reference"'),
        ("engine = 'reference'\ndigits = 0\n" + GAMMA + ONE_RUN, "digits must be an integer >= 1"),
        ("engine = 'reference'\ndigits = 999\n" + GAMMA + ONE_RUN, "digits must be at most 200"),
        ("formats = ['xls']\n" + GAMMA + ONE_RUN, "formats must be one of 'csv'"),
        ("formats = []\n" + GAMMA + ONE_RUN, "formats must be a list of csv, jsonl, parquet"),
        (GAMMA + LAPLACE.replace("Laplace", "Cauchy"), "mechanism must be one of gaussian"),
        (
            GAMMA + LAPLACE + "sensitivity = 1\n",
            "unknown key 'sensitivity'; LaplaceMechanism takes",
        ),
        (
            GAMMA + LAPLACE + "batch_size = 1\n",
            "sampling_probability and batch_size both given (0.5 and 1); give one",
        ),
        (
            GAMMA + PHASES.replace("batch_size", "# "),
            "sampling without replacement needs batch_size and dataset_size",
        ),
        (GAMMA + PHASES.replace('name = "two', 'steps = 3\nname = "two'), "unknown key 'steps'"),
        (
            GAMMA + ONE_RUN.replace("1000", str(list(range(1001)))) + "phase = 1",
            "beside phases: write it into each",
        ),
        (GAMMA + EVERY_KIND.replace('["1/4", "3/4"]', "3"), "p must be a list of numbers, got 3"),
        (GAMMA + EVERY_KIND.replace('["1/4",', '["1/3",'), "p must add up to 1"),
    ],
)
def test_wrong_specifications(text: str, message: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        parse(text, "my.toml")
    assert message in str(caught.value)
    assert re.match(r"my.toml(, line \d+)?: ", str(caught.value))
    assert "\n" not in str(caught.value)


def test_huge_grid_is_a_slip() -> None:
    sizes = ONE_RUN.replace("1000", str(list(range(1001)))).replace("0.01", str([0.1] * 1000))
    with pytest.raises(SpecificationError, match="at most 1,000,000 runs, got 1,001,000"):
        parse(GAMMA + sizes, "my.toml")


def test_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_bytes(b"\xff")
    with pytest.raises(SpecificationError, match="not a UTF-8 text"):
        load(str(path))


def one(text: str) -> pe.Mechanism:
    (workflow,) = parse(f"{GAMMA}[[workflow]]\nname = 'run'\n{text}", "test").workflows
    return workflow.mechanism


@pytest.mark.parametrize(
    "text",
    [
        "mechanism = 'dp_sgd'\nnoise_multiplier = 1\nsampling_probability = '0.01'\nsteps = 9",
        "mechanism = 'dp_sgd'\nnoise = 1\np = '0.01'\nsteps = 9",
        "noise = 1\np = '0.01'\nsteps = 9",
        "mechanism = 'gaussian'\nnoise = 1\np = '0.01'\nsteps = 9",
        "mechanism = 'GaussianMechanism'\nnoise = 1\nsampling_probability = '0.01'\nsteps = 9",
        "[[workflow.phase]]\nmechanism = 'dp_sgd'\nnoise = 1\np = '0.01'\nsteps = 9",
    ],
)
def test_dp_sgd_by_its_name(text: str) -> None:
    assert one(text) == pe.dp_sgd("1", "0.01", 9)


def test_every_public_constructor_is_named_or_told_why_not() -> None:
    """Whatever ``pyengine`` exports that makes a mechanism has a name, or a reason to have none."""
    made = {
        name
        for name in pe.__all__
        if name.startswith("from_")
        or name in ("dp_sgd", "dp_sgd_allocated", "compose", "report_noisy_max", "permute_and_flip")
        or name in ("pate_noisy_max", "pate_votes", "thresholded_histogram")
        or name in ("toeplitz_mechanism", "matrix_mechanism", "banded_matrix_factorization")
        or name in ("revealed_mixture", "repeat_and_select")
        or (isinstance(getattr(pe, name), type) and issubclass(getattr(pe, name), pe.Mechanism))
    }
    for name in made - {"Mechanism", "from_json"}:
        unnamed = mechanism_names.FUNCTIONS + mechanism_names.COMPOSITE
        if name in unnamed:
            with pytest.raises(ValueError, match=r"only Python|by its parts"):
                maker_of(name)
        else:
            assert name in (maker_of(name).word, maker_of(name).kind, "dp_sgd")
    assert {maker.kind for maker in mechanism_names.makers().values()} - {""} == set(named_kinds())


def test_words_of_the_command_line() -> None:
    assert one("mechanism = 'laplace'\nnoise = '2'\nsteps = 3") == pe.LaplaceMechanism(
        "2"
    ).composed(3)
    pair = one("mechanism = 'from_probabilities'\np = ['1/4', '3/4']\nq = ['1/2', '1/2']\nsteps=1")
    assert pair == pe.from_probabilities(["1/4", "3/4"], ["1/2", "1/2"]).composed(1)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mechanism = 'dp_sgd'\nnoise = 1\nsteps = 9", "dp_sgd needs p"),
        ("mechanism = 'gaussian'\nnoise = 1\ngroup_size = 2\nsteps = 9", "group_size needs"),
        ("mechanism = 'laplace'\nnoise = 1\ngroup_size = 2\nsteps = 9", "unknown key 'group_size'"),
        (
            "mechanism = 'dp_sgd_allocated'\nnoise = 1\nepochs = 2",
            "dp_sgd_allocated needs steps_per_epoch",
        ),
        (
            "mechanism = 'dp_sgd_allocated'\nnoise = 1\nsteps_per_epoch = 2\nepochs = 2\nsteps = 3",
            "steps and epochs both given (3 and 2); give one",
        ),
        (
            "mechanism = 'gaussian_mixture'\nnoise = 1\nshifts = 1\nweights = [1]\nsteps = 1",
            "shifts must be a list",
        ),
        ("mechanism = 'dpsgd'", "did you mean 'dp_sgd'?"),
        ("mechanism = 'Laplace'", "did you mean 'laplace'?"),
        ("mechanism = 'from_profile'", "made of functions or distributions, which only Python"),
        ("mechanism = 'compose'", "is said by its parts: phases, steps"),
        ("noise = 1\nnoise_multiplier = 1\np = 1\nsteps = 1", "noise_multiplier is given twice"),
        ("noise = 1\nsample_probability = 1\nsteps = 1", "did you mean 'sampling_probability'?"),
        (
            "noise = 1\nbatch_size = 1\ndataset_size = 9\nsteps = 1",
            "do not say how batches were drawn",
        ),
        ("mechanism = ['laplace', 'gaussian']\nnoise = 1\nsteps = 1", "mechanism must be one of"),
    ],
)
def test_names_that_are_wrong(text: str, message: str) -> None:
    with pytest.raises(SpecificationError, match=re.escape(message)):
        one(text)
