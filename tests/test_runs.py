"""Run files: one grammar in four formats, for Python and for every command."""

from __future__ import annotations

import json
import math
import re
import sys
import time
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from table_texts import EVERY_KIND, GAMMA, LAPLACE, ONE_RUN, PHASES

import pyengine as pe
from pyengine._support import toml
from pyengine.cli import calibrate, main
from pyengine.workbench.runs.files import VARIED, SpecificationError, parse_runs, read_runs
from pyengine.workbench.runs.makers import makers

TWO = pe.dp_sgd("2", "0.01", 100) + pe.dp_sgd("1", "1/50", 900)
TWO_PHASES = {
    "run.toml": '[[phase]]\nnoise = 2\np = 0.01\nsteps = 100\n[[phase]]\nnoise = 1\np = "1/50"\n'
    "steps = 900\n",
    "run.json": '{"phase": [{"noise": 2, "p": 0.01, "steps": 100},\n'
    ' {"noise": 1, "p": "1/50", "steps": 900}]}',
    "list.json": '[{"noise": 2, "p": 0.01, "steps": 100}, {"noise": 1, "p": "1/50", "steps": 900}]',
    "run.yaml": "phase:\n- noise: 2\n  p: 0.01\n  steps: 100\n- noise: 1\n  p: 1/50\n"
    "  steps: 900\n",
    "run.csv": "noise,rate,steps\n2,0.01,100\n1,1/50,900\n",
    "semicolons": "steps; noise; p\n\n100; 2; 0.01\n900; 1; 1/50\n",
    "tabs.txt": "noise_multiplier\tsample_rate\tsteps\n2\t0.01\t100\n1\t1/50\t900\n",
    "wire.json": pe.to_json(TWO),
}


def write(folder: Path, name: str, text: str) -> Path:
    path = folder / name
    path.write_text(text, encoding="utf-8")
    return path


def one(text: str, source: str = "run.toml") -> pe.Mechanism:
    return parse_runs(text, source).only().mechanism


@pytest.mark.parametrize("name", TWO_PHASES)
def test_formats_are_told_by_what_is_in_them(name: str, tmp_path: Path) -> None:
    assert pe.load_run(write(tmp_path, name, TWO_PHASES[name])) == TWO
    assert pe.load_run(write(tmp_path, "no_suffix", TWO_PHASES[name])) == TWO


def test_numbers_are_those_that_are_written() -> None:
    for text in ("noise = 0.1\np = 1e-1\nsteps = 1_000", "{noise: 0.1, p: 1e-1, steps: 1000}"):
        assert one(text, "") == pe.dp_sgd("1/10", "1/10", 1000)
        assert one(text, "") != pe.dp_sgd(0.1, 0.1, 1000)


DOWN = math.nextafter(
    0.05, 0.0
)  # the double below 1/20: the nearest one lies above, and tells less
SAME: list[tuple[str, Any]] = [
    ("noise = 1", pe.GaussianMechanism("1").composed(1)),
    (
        'noise = 1\nbatch_size = 256\ndataset_size = 60000\nsampling = "poisson"\nepochs = 10',
        pe.dp_sgd("1", "256/60000", 2344),
    ),
    (
        'noise = 1\nbatch_size = 256\ndataset_size = 60000\nsampling = "shuffle"\nepochs = 10',
        pe.GaussianMechanism("1").composed(10),
    ),
    (
        'noise = 1\nbatch_size = 4\ndataset_size = 1000\nsampling = "with_replacement"\nsteps = 7',
        pe.GaussianMechanism("1")
        .sampled_with_replacement(batch_size=4, dataset_size=1000)
        .composed(7),
    ),
    (
        'mechanism = "releases"\nsampling_probability = "1/10"\nsteps = 3\n'
        'parts = [{ noise = 2, steps = 2 }, { mechanism = "laplace", noise = 3 }]',
        (pe.GaussianMechanism("2").composed(2) + pe.LaplaceMechanism("3"))
        .on_one_sample()
        .poisson_sampled("1/10")
        .composed(3),
    ),
    (
        'mechanism = "gaussian_releases"\nnoise_multipliers = [2, 3]\np = 0.5\nsteps = 3',
        pe.GaussianReleases(["2", "3"]).poisson_sampled("1/2").composed(3),
    ),
    (
        'mechanism = "revealed_mixture"\nweights = [0.25, 0.75]\n'
        "mechanisms = [{ noise = 1 }, [{ noise = 2 }, { noise = 3, steps = 2 }]]",
        pe.revealed_mixture(
            [
                ("1/4", pe.GaussianMechanism("1")),
                ("3/4", pe.GaussianMechanism("2") + pe.GaussianMechanism("3").composed(2)),
            ]
        ).composed(1),
    ),
    (
        'mechanism = "repeat_and_select"\nruns = "geometric"\nstopping = 0.05\n'
        "[base]\nnoise = 1\np = 0.01\nsteps = 100",
        pe.repeat_and_select(pe.dp_sgd("1", "0.01", 100), "geometric", stopping=DOWN).composed(1),
    ),
    (
        'mechanism = "renyi_curve"\norders = [1.5, 2]\nvalues = [0.5, inf]\nsteps = 4',
        pe.RenyiCurve([1.5, 2.0], [0.5, float("inf")]).composed(4),
    ),
    (
        'mechanism = "zero_concentrated"\nrho = "1/20"\nxi = 0.5\nsteps = 2',
        pe.ZeroConcentrated("1/20", "1/2").composed(2),
    ),
    (
        'mechanism = "report_noisy_max"\nnoise = 2\nqueries = 10\nspan = 5\nsteps = 4',
        pe.report_noisy_max("2", 10, span="5").composed(4),
    ),
    (
        'mechanism = "above_threshold"\nnoise = 8\nthreshold_noise = 4\nqueries = 100\nsteps = 3',
        pe.AboveThreshold("8", "4", 100).composed(3),
    ),
    ('mechanism = "permute_and_flip"\nepsilon = 0.1', pe.permute_and_flip("0.1").composed(1)),
    ('mechanism = "likely_answer"\nnoise = 5\nmissed = 0.01', pe.LikelyAnswer("5", "0.01")),
    ('mechanism = "pate_noisy_max"\nnoise = 100\nqueries = 7', pe.pate_noisy_max("100", 7)),
    (
        'mechanism = "thresholded_histogram"\nnoise = 5\nthreshold = 28\nkeys = 2\nsteps = 3',
        pe.thresholded_histogram("5", 28.0, keys=2).composed(3),
    ),
    (
        'mechanism = "banded_matrix_factorization"\nnoise = 1\np = 0.1\nsteps = 100\nbands = 4',
        pe.banded_matrix_factorization("1", "0.1", 100, 4),
    ),
    (
        'mechanism = "toeplitz_mechanism"\nnoise = 2\ncoefficients = [1, 0.5]\nsteps = 1000\n'
        'participation = "fixed_order"\ntimes = 4\nseparation = 250',
        pe.toeplitz_mechanism("2", [1.0, 0.5], 1000, "fixed_order", times=4, separation=250),
    ),
    (
        'mechanism = "blt_mechanism"\nnoise = 2\nbuffer_decay = [0.5]\noutput_scale = [0.25]\n'
        "steps = 100",
        pe.toeplitz_mechanism("2", pe.blt_coefficients([0.5], [0.25], 100), 100),
    ),
    (
        'steps_per_epoch = 5\nepochs = 2\n[base]\nmechanism = "laplace"\nnoise = 3',
        pe.LaplaceMechanism("3").randomly_allocated(5).composed(2),
    ),
    ('mechanism = "skellam"\nnoise = 3', pe.SkellamMechanism("3").composed(1)),
    (
        'mechanism = "discrete_gaussian_sum"\nnoise = 2\nsummands = 4\nsensitivity = 3',
        pe.DiscreteGaussianSum("2", 4, 3).composed(1),
    ),
    (
        'mechanism = "from_probabilities"\np = ["1/4", "3/4"]\nq = ["1/2", "1/2"]\n'
        "sampling_probability = 0.1\nsteps = 3",
        pe.from_probabilities(["1/4", "3/4"], ["1/2", "1/2"]).poisson_sampled("0.1").composed(3),
    ),
]


@pytest.mark.parametrize(("text", "made"), SAME, ids=range(len(SAME)))
def test_every_mechanism_has_words(text: str, made: pe.Mechanism) -> None:
    assert one(text) == pe.compose(made)
    # what a table writes down of it reads back as the same
    (run,) = parse_runs(text, "run.toml").runs()
    assert one(json.dumps(run.described), "run.json") == pe.compose(made)


def test_every_word_is_shown_once() -> None:
    said = {text.split('mechanism = "')[1].split('"')[0] for text, _ in SAME if "mechanism" in text}
    older = {"gaussian", "laplace", "discrete_gaussian", "discrete_laplace", "gaussian_mixture"}
    older |= {"randomized_response", "generic", "dp_sgd", "dp_sgd_allocated", "exponential"}
    words = {maker.word for maker in makers().values()} | {"dp_sgd"}
    assert words - older - {"shuffled_randomizer", "matrix_mechanism", "pate_votes"} == said - older


def test_decimals_of_a_curve_are_rounded_to_the_safe_side() -> None:
    found = one('mechanism = "renyi_curve"\norders = [1.1]\nvalues = [0.3]\n')
    (part,) = found.parts  # type: ignore[attr-defined]
    assert Fraction(part[0].orders[0]) <= Fraction("1.1")
    assert Fraction(part[0].values[0]) >= Fraction("0.3")


GRID = 'noise = [0.8, 1.0]\np = "1/100"\nepochs = "1:3"\n'


def test_lists_and_ranges_are_grids(tmp_path: Path) -> None:
    runs = list(parse_runs(GRID, "grid.toml").runs())
    assert [run.mechanism for run in runs] == [
        pe.dp_sgd(noise, "1/100", 100 * epochs) for noise in ("0.8", "1") for epochs in (1, 2, 3)
    ]
    assert runs[1].name == "grid (noise_multiplier=0.8, epochs=2)"
    assert len(list(parse_runs('noise = "0.5:2:5"\nsteps = "1:100:3"', "x.toml").runs())) == 15
    with pytest.raises(SpecificationError, match="6 runs where one is asked for"):
        pe.load_run(write(tmp_path, "grid.toml", GRID))


@pytest.mark.parametrize(
    ("name", "text", "message"),
    [
        ("a.toml", "noise = 1\nstep = 3", "a.toml, line 2: unknown key 'step'; did you mean 'step"),
        ("a.toml", "# noise = 2\n\nnoise = -1", "a.toml, line 3: noise_multiplier must be"),
        (
            "a.toml",
            "[[phase]]\nnoise = 1\n[[phase]]\nnoise = 2\nstep = 3",
            "a.toml, line 5: phase 2: unknown key 'step'",
        ),
        (
            "a.toml",
            '[[run]]\nname = "a"\n[[run.phase]]\nnoise = 1\n[[run]]\nname = "b"\n[[run.phase]]\n'
            "noise = 1\n[[run.phase]]\nnoise = true",
            "a.toml, line 10: run 2: phase 2: noise_multiplier must be a real number, got True",
        ),
        ("a.toml", "phase = [{ noise = 1 },\n{ noise = 2, p = 3 }]", "a.toml: phase 2: a sampled"),
        ("a.json", '{"noise": 1,\n "nois": 2}', "a.json, line 2: unknown key 'nois'"),
        (
            "a.json",
            '[{"noise": 1,\n "steps": 1},\n {"noise": 1,\n "steps": "x"}]',
            "a.json, line 4: phase 2: steps must be",
        ),
        ("a.yaml", "phase:\n- noise: 1\n- noise: 2\n  stpes: 3", "a.yaml, line 4: phase 2: unkn"),
        ("a.yaml", "noise: 1\nnoise: 2", "a.yaml: line 2: the key 'noise' is given twice"),
        ("a.yaml", "a: &a [1, 1]\nnoise: [*a, *a]", "YAML: an alias, where values must be"),
        ("a.yaml", "noise: [1", "a.yaml: not a run file: YAML: line 1: "),
        ("a.csv", "noise,rate,steps\n1,0.1,3\n\n1,0.1,x", "a.csv, line 4: phase 2: steps must"),
        ("a.csv", "noise,rate,steps\n1,0.1", "a.csv: line 2: must have 3 cells"),
        ("a.csv", "noise,rate,stepz\n1,0.1,3", "a.csv, line 1: unknown key 'stepz'; did you mean"),
        ("a.csv", "noise,steps", "a.csv: line 1: no row below the header"),
        ("a.csv", "red,green\n1,2", "a.csv: not a run file; pyengine reads TOML, JSON, YAML, and"),
        ("a.toml", "", "a.toml: no run: give the keys of one"),
        (
            "a.toml",
            "noise = 1\n[targets]\nmu = 1",
            "unknown table [targets]; did you mean 'target'",
        ),
        ("a.toml", "noise = 1\n[target]\nmy = 1", "a.toml, line 3: [target]: unknown key 'my'"),
        ("a.toml", 'noise = 1\nbase = "a.toml"', "unknown key 'base'"),
        ("a.toml", "noise = []", "a.toml, line 1: noise_multiplier must be a number or a list"),
        ("a.toml", 'noise = 1\nsteps = "3:1"', "line 2: steps 3:1: from 3 to 1 is no range"),
        ("a.toml", "noise = 1\nbatch_size = 3", "do not say how batches were drawn"),
        ("a.toml", 'mechanism = "renyi"', "line 1: mechanism must be one of gaussian, laplace"),
        ("a.json", '{"schema": "pyengine/2"}', "schema must be 'pyengine/1' of pyengine.to_json"),
    ],
)
def test_messages_name_the_line(name: str, text: str, message: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        parse_runs(text, name).only()
    assert message in str(caught.value)
    assert str(caught.value).startswith(name)


def test_files_name_other_files(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(tmp_path, "run.csv", TWO_PHASES["run.csv"])
    tuned = 'mechanism = "repeat_and_select"\nbase = "run.csv"\nruns = "fixed"\nnumber = 3\n'
    found = pe.load_run(write(tmp_path, "tuned.toml", tuned))
    assert found == pe.repeat_and_select(TWO, "fixed", number=3).composed(1)
    write(tmp_path, "self.toml", tuned.replace("run.csv", "self.toml"))
    with pytest.raises(SpecificationError, match=r"self.toml is made of itself"):
        pe.load_run(tmp_path / "self.toml")
    phase = f"mechanism=repeat_and_select,base={tmp_path / 'run.csv'},runs=fixed,number=3"
    assert main(["delta", "--phase", phase, "--epsilon", "2", "--json"]) == 0
    (row,) = json.loads(capsys.readouterr().out)["rows"]
    assert row["value"] == pytest.approx(pe.delta(found, 2.0), rel=1e-9)
    assert main(["delta", "--phase", phase.replace("run.csv", "x"), "--epsilon", "2"]) == 2
    assert "x: No such file" in capsys.readouterr().err


def test_a_budget_stands_for_what_is_booked(tmp_path: Path) -> None:
    budget = pe.Budget(pe.targets.EpsilonDelta(1.0, 1e-6), tmp_path / "study.budget")
    budget.spend(pe.GaussianMechanism(20.0), "a")
    budget.spend(pe.LaplaceMechanism(30.0), "b")
    assert pe.load_run(tmp_path / "study.budget") == budget.spent
    assert not read_runs(tmp_path / "study.budget").section("target")


def test_yaml_without_its_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "yaml", None)
    with pytest.raises(SpecificationError, match=r"needs yaml: pip install 'pyengine-dp\[yaml\]'"):
        parse_runs("noise: 1", "run.yaml")


# ---- one file, every command ----

WHOLE = """
noise = 1.1
batch_size = 256
dataset_size = 60000
sampling = "poisson"
epochs = 5

[statement]
delta = 1e-6
fpr = 0.01
kappa = ["1/100"]

[epsilon]
delta = [1e-6]

[gamma_bound]
kappa = "1e-3:1e-1:3"
"""
RUN = pe.dp_sgd("1.1", "256/60000", 1172)


@pytest.fixture
def whole(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return write(tmp_path, "run.toml", WHOLE)


def said(capsys: pytest.CaptureFixture[str], *words: str, code: int = 0) -> str:
    assert main(list(words)) == code
    return capsys.readouterr().out


def test_the_file_alone_prints_the_statement(
    whole: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    text = said(capsys, "run.toml")
    assert text == said(capsys, "statement", str(whole))
    assert text == said(capsys, "statement", "--file", "run.toml")
    assert "ε at δ = 1e-6" in text
    assert "1,172 steps (5 epochs) of about 256 of 60,000 records" in text
    figures = json.loads(said(capsys, "run.toml", "--format", "json"))["figures"]
    assert [figure["at"] for figure in figures if figure["at"]] == [1e-6, 0.01, 0.01]
    assert figures[0]["value"] == pytest.approx(pe.epsilon(RUN, 1e-6), rel=1e-9)
    assert "ε at δ = 1e-7" in said(capsys, "run.toml", "--delta", "1e-7")


@pytest.mark.usefixtures("whole")
def test_questions_of_the_file(capsys: pytest.CaptureFixture[str]) -> None:
    rows = json.loads(said(capsys, "epsilon", "run.toml", "--json"))["rows"]
    assert [(row["at"], row["value"]) for row in rows] == [
        (1e-6, pytest.approx(pe.epsilon(RUN, 1e-6), rel=1e-9))
    ]
    rows = json.loads(said(capsys, "gamma", "run.toml", "--json"))["rows"]
    assert [row["at"] for row in rows] == pytest.approx([1e-3, 1e-2, 1e-1])
    # the file may stand behind an option of several values
    assert "1e-7" in said(capsys, "epsilon", "--delta", "1e-5", "1e-7", "run.toml")
    assert main(["delta", "run.toml"]) == 2
    assert "required: --epsilon, or epsilon in a table [delta]" in capsys.readouterr().err


@pytest.mark.usefixtures("whole")
def test_table_and_verify(capsys: pytest.CaptureFixture[str]) -> None:
    assert "run " in said(capsys, "table", "run.toml", "-o", "out", "--workers", "0")
    assert said(capsys, "verify", "out/table.csv", "--engine", "auto").endswith("4 agrees\n")


def test_runs_of_a_grid_side_by_side(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = str(write(tmp_path, "grid.toml", GRID))
    answers = json.loads(said(capsys, "epsilon", path, "--delta", "1e-5", "--json"))["runs"]
    assert answers[0]["run"] == "grid (noise_multiplier=0.8, epochs=1)"
    found = [answer["rows"][0]["value"] for answer in answers]
    assert found == pytest.approx(
        [pe.epsilon(run.mechanism, 1e-5) for run in read_runs(path).runs()], rel=1e-9
    )
    text = said(capsys, "epsilon", path, "--delta", "1e-5")
    assert "\nand 3 more\n" in text
    assert text.count("(noise_multiplier=1.0, epochs=3)") == 1
    assert main(["statement", path]) == 2
    assert "6 runs where one is asked for" in capsys.readouterr().err
    flags = ["--noise", "0.8 1.0", "--p", "1/100", "--epochs", "1:3"]
    rows = json.loads(said(capsys, "epsilon", *flags, "--delta", "1e-5", "--json"))["runs"]
    assert [row["rows"] for row in rows] == [answer["rows"] for answer in answers]


TARGET = 'p = 0.01\nsteps = 1000\n[target]\nepsilon = 2\ndelta = "1e-6"\n'


def test_calibrate_and_budget(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    write(tmp_path, "plan.toml", TARGET)
    flags = ["--p", "0.01", "--steps", "1000", "--epsilon", "2", "--delta", "1e-6"]
    assert said(capsys, "calibrate", "plan.toml") == said(capsys, "calibrate", *flags)
    write(tmp_path, "steps.toml", TARGET.replace("steps = 1000", "noise = 1") + 'vary = "steps"\n')
    assert said(capsys, "calibrate", "steps.toml").startswith("steps ")
    write(tmp_path, "wrong.toml", TARGET + 'vary = "stepz"\n')
    assert main(["calibrate", "wrong.toml"]) == 2
    assert "did you mean 'steps'" in capsys.readouterr().err
    said(capsys, "budget", "new", "study.budget", "--epsilon", "2", "--delta", "1e-6")
    write(tmp_path, "run.toml", "noise = 10\n")
    assert said(capsys, "budget", "spend", "study.budget", "run.toml").startswith("booked")
    assert "remaining: noise " in said(capsys, "budget", "remaining", "study.budget", "plan.toml")
    assert "Gaussian, noise multiplier 10" in said(capsys, "statement", "study.budget")


def test_pictures_and_reports(whole: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("matplotlib")
    assert said(capsys, "plot", "tradeoff", "run.toml", "-o", "one.svg") == "one.svg\n"
    write(whole.parent, "grid.toml", 'noise = [0.8, 1]\np = "1/100"\nsteps = 3\n')
    assert said(capsys, "plot", "delta", "grid.toml", "-o", "two.svg") == "two.svg\n"
    assert "noise_multiplier=0.8" in Path("two.svg").read_text()
    pytest.importorskip("jinja2")
    title = WHOLE.replace("delta = 1e-6", 'delta = 1e-6\ntitle = "Model 7"\ngroups = 3', 1)
    whole.write_text(title)
    said(capsys, "report", "run.toml", "-o", "run.html", "--estimate")
    page = Path("run.html").read_text()
    assert "<title>Model 7" in page
    assert "1,172 steps" in page


# ---- the schema ----


def validator() -> Any:
    jsonschema = pytest.importorskip("jsonschema")
    from pyengine.workbench.runs.schema import run_schema

    schema = run_schema()
    jsonschema.Draft7Validator.check_schema(schema)
    return jsonschema.Draft7Validator(schema)


def loaded(text: str) -> Any:
    """A text as editors see it: numbers are numbers."""
    return toml.json_loads(text) if text.lstrip().startswith(("{", "[{")) else toml.loads(text)


@pytest.mark.parametrize(
    ("name", "text"),
    [
        ("flow.yaml", "{" * 3000),
        ("flow.txt", "a: " + "[" * 3000),
        ("braces.toml", "{" * 3000),
        ("dotted.toml", f"[a.{'.'.join('b' * 3000)}]"),
        ("dotted", f"a.{'.'.join('b' * 3000)} = 1"),
    ],
)
def test_deep_files_are_refused_at_once(
    name: str, text: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """Three kilobytes took 13 s, and dotted keys ended in an internal error."""
    (tmp_path / name).write_text(text)
    began = time.process_time()
    assert main(["epsilon", str(tmp_path / name), "--delta", "1e-5"]) == 2
    assert time.process_time() - began < 3.0
    assert re.search("nested too deeply|not a run file", capsys.readouterr().err)


def test_messages_quote_no_escapes(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What a message quotes of a file neither ends its line nor reaches the terminal."""
    step = {"mechanism": "GaussianMechanism", "noise_multiplier": 1, "x\npyengine: \x1b[2J": 1}
    long = {"mechanism": "GaussianMechanism", "noise_multiplier": 1, "x" * 5000: 1}
    for each in (step, long):
        path = tmp_path / "run.json"
        path.write_text(json.dumps({"schema": "pyengine/1", "mechanism": [each]}))
        assert main(["epsilon", str(path), "--delta", "1e-5"]) == 2
        said = capsys.readouterr().err
        assert said.removesuffix("\n").isprintable()
        assert len(said) < 1100


def test_schema_knows_all_examples() -> None:
    """Every run file in the documentation, the gold tables and the tests of tables."""
    root = Path(__file__).parents[1]
    pages = [*(root / "docs").rglob("*.md"), root / "README.md"]
    texts = [
        block
        for page in pages
        if page.exists()
        for block in re.findall(r"^```toml\n(.*?)^```", page.read_text("utf-8"), re.M | re.S)
        if "project" not in block
    ]
    texts += [path.read_text("utf-8") for path in (root / "gold").rglob("spec.toml")]
    texts += [text for text, _ in SAME]
    texts += [WHOLE, GRID, TARGET, GAMMA + ONE_RUN, GAMMA + EVERY_KIND, GAMMA + LAPLACE + PHASES]
    texts += [text for name, text in TWO_PHASES.items() if name in ("run.toml", "list.json")]
    check = validator()
    assert len(texts) > 30
    for text in texts:
        errors = [f"{list(e.path)}: {e.message}" for e in check.iter_errors(loaded(text))]
        assert not errors, f"{text}\n{errors}"


@pytest.mark.parametrize(
    "text",
    [
        "noise = 1\nstep = 3",
        'mechanism = "lapalce"\nnoise = 1',
        'mechanism = "laplace"\nnoise = 1\ngroup_size = 3',
        "[[phase]]\nnoise = true",
        'noise = 1\nsampling = "poison"',
        "noise = 1\n[statement]\ndetla = 1",
        '[[run]]\nnoise = 1\nnames = "a"',
        'noise = 1\n[target]\nvary = "stepz"',
    ],
)
def test_schema_refuses_what_commands_refuse(text: str) -> None:
    assert not validator().is_valid(loaded(text))


def test_schema_is_printed(capsys: pytest.CaptureFixture[str]) -> None:
    from pyengine.workbench.runs.schema import run_schema

    assert json.loads(said(capsys, "schema")) == run_schema()
    assert set(VARIED) == set(calibrate.VARIED)
    editors = {"$schema": "./run.schema.json", "noise": "1", "steps": "3"}
    assert one(json.dumps(editors), "run.json") == pe.GaussianMechanism("1").composed(3)
    assert validator().is_valid(editors)
