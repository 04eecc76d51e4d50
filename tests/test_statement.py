"""Privacy statements, and tables as Markdown and LaTeX."""

from __future__ import annotations

import json
import re
from fractions import Fraction
from pathlib import Path

import numpy as np
import pytest

import pyengine as pe
from pyengine._support.decimals import written
from pyengine._support.markup import in_markdown, latex_table, markdown_table
from pyengine.cli import main
from pyengine.mechanisms.words import worded
from pyengine.statement import privacy_statement
from pyengine.tables import run as tables
from pyengine.workbench.tables.spec import load

RUN = pe.dp_sgd(1.0, 0.01, 100)


def test_figures_are_on_the_safe_side() -> None:
    statement = privacy_statement(RUN, 1e-5, false_positive_rates=[0.01], kappas=[1e-4])
    truths = [
        pe.epsilon(RUN, 1e-5),
        pe.gamma_bound(RUN, 0.01, adjacency="add_remove"),
        pe.delta(RUN, 0.0),
        pe.gamma_bound(RUN, 1e-4, adjacency="add_remove"),
    ]
    assert len(statement.figures) == len(truths)
    for figure, truth in zip(statement.figures, truths, strict=True):
        assert truth <= figure.bound <= truth * 1.0002
        assert figure.bound <= float(figure.printed) <= figure.bound * 1.001
        assert figure.certainty == "proven"
    assert "All bounds are proven" in str(statement)
    assert "DP-SGD, noise multiplier 1, 100 steps at rate 0.01" in str(statement)


def test_estimates_are_called_so() -> None:
    few = pe.dp_sgd_allocated(1.0, 20, 2)  # whose proofs take longer
    quick = privacy_statement(few, 1e-5, proven=False)
    assert {figure.certainty for figure in quick.figures} == {"estimate"}
    assert "are not proven" in str(quick)
    for run in (pe.GaussianMechanism(2.0), RUN):
        plain = privacy_statement(run, 1e-5, proven=False)
        assert {figure.certainty for figure in plain.figures} == {"proven"}


def test_what_is_stated() -> None:
    replaced = privacy_statement([(2.0, 1.0, 3)], 1e-5, adjacency="substitute")
    assert "another record in its place" in str(replaced)
    truth = pe.epsilon(pe.GaussianMechanism(2.0).composed(3), 1e-5, adjacency="substitute")
    assert replaced.figures[0].bound == pytest.approx(truth, rel=1e-12)
    wide = privacy_statement(pe.GenericMechanism(0, 1), 1e-5)
    assert [row[1] for row in wide.rows()] == ["inf", "1", "1", "1", "1", "1"]
    with pytest.raises(ValueError, match="the least that leaks, and no guarantee"):
        privacy_statement(pe.shuffled_lower_bound(1.0, 10), 1e-5)
    for delta in (-1e-9, 1.0):
        with pytest.raises(ValueError, match=r"delta must lie in \[0, 1\)"):
            privacy_statement(RUN, delta)
    with pytest.raises(ValueError, match="delta must be positive, got 0: no ε holds"):
        privacy_statement(RUN, 0.0)
    with pytest.raises(ValueError, match="adjacency must be one of"):
        privacy_statement(RUN, 1e-5, adjacency="both")


def test_command(capsys: pytest.CaptureFixture[str]) -> None:
    run = ["statement", "--noise", "2", "--steps", "3", "--delta", "1e-5", "--fpr", "1/100"]
    found = {}
    for word in ("text", "markdown", "latex", "json"):
        assert main([*run, "--format", word]) == 0
        found[word] = capsys.readouterr().out
    content = json.loads(found["json"])
    assert [figure["certainty"] for figure in content["figures"]] == ["proven"] * 5
    assert found["text"].startswith("Mechanism  Gaussian, noise multiplier 2, 3 steps\n")
    assert "| true positive rate at false positive rate 0.01 | " in found["markdown"]
    assert found["latex"].startswith("\\begin{tabular}{lll}\n\\toprule\n")
    assert main([*run, "--kappa", "2"]) == 2
    assert "--kappa must lie in [0, 1], got 2" in capsys.readouterr().err
    assert main(["statement", "--noise", "2", "--delta", "0"]) == 2
    assert "delta must be positive, got 0" in capsys.readouterr().err


def test_titles_and_labels_have_all_digits() -> None:
    """A bound at 0.0012345649 is none at 0.00123456: six digits of a level were shown."""
    level, noise = 0.001234564901, 1.2345649012
    run = pe.dp_sgd(noise, 0.012345649012, 10)
    made = privacy_statement(
        run, level, false_positive_rates=[level], kappas=[level], priors=[level]
    )
    for figure in made.figures:
        found = re.findall(r"[\d.]+(?:e-?\d+)?", figure.what)
        assert [float(text) for text in found] == [level] * (figure.metric != "advantage")
    assert "noise multiplier 1.2345649012, 10 steps at rate 0.012345649012" in str(made)
    assert written(1e22) == "1e22"
    assert written(123456789.0) == "123456789"
    rng = np.random.default_rng(5)
    for value in np.concatenate([np.exp(rng.uniform(-700, 700, 500)), rng.normal(size=500)]):
        assert float(written(float(value))) == value


def test_words_of_files_are_escaped() -> None:
    """The words of a step in JSON are whatever a file says."""
    run = pe.dp_sgd(1.0, 0.01, 10)
    named = run.parts[0][0].words._replace(name="<img src=x>")
    made = privacy_statement(worded(run.parts[0][0], named), 1e-5, kappas=[])
    assert r"- **Mechanism**: \<img src=x>, noise multiplier 1" in made.markdown()
    assert "<img" not in made._repr_html_()


def test_markup_is_escaped() -> None:
    numbers = [["1e-05", "2.64e-12"], ["ε at δ = 1e-05", "x1e5 1.5e+03"]]
    made = latex_table(["", ""], numbers).splitlines()
    assert made[4] == r"$10^{-5}$ & $2.64\cdot 10^{-12}$ \\"
    assert made[5] == r"$\varepsilon$ at $\delta$ = $10^{-5}$ & x1e5 $1.5\cdot 10^{3}$ \\"
    heads, rows = ["a|b", "ε"], [["50 %_{x}", "a\nb\\"]]
    assert markdown_table(["<b>"], [["[a](b) `c` *d*"]]).splitlines() == [
        r"| \<b> |",
        "| --- |",
        r"| \[a](b) \`c\` \*d\* |",
    ]
    assert markdown_table(heads, rows) == (
        "| a\\|b | ε |\n| --- | --- |\n| 50 %\\_{x} | a b\\\\ |\n"
    )
    # what would be emphasis, a formula, a stroke or an entity; words with underscores stay
    assert in_markdown("_a_ __b__ add_remove") == r"\_a\_ \_\_b\_\_ add_remove"
    assert in_markdown("$x$ ~~y~~ &lt; a & b") == r"\$x\$ \~~y\~~ \&lt; a & b"
    lines = latex_table(heads, rows).splitlines()
    assert lines[0] == r"\begin{tabular}{ll}"
    assert lines[2] == r"a|b & $\varepsilon$ \\"
    assert lines[4] == r"50 \%\_\{x\} & a b\textbackslash{} \\"


def test_tables_to_print(tmp_path: Path) -> None:
    (tmp_path / "my.toml").write_text(
        'formats = ["csv", "markdown", "latex"]\n'
        "[gamma_bound]\nkappa = [1e-3]\nadjacency = ['add']\n"
        "[[workflow]]\nname = 'A & <B>'\nnoise_multiplier = 2\n"
        "sampling_probability = 1\nsteps = 3\n"
    )
    assert tables.run(load(tmp_path / "my.toml"), tmp_path / "out", workers=0) == 0
    markdown = (tmp_path / "out" / "table.md").read_text(encoding="utf-8").splitlines()
    row = re.split(r" *\| *", markdown[2].strip("| "))
    assert row[:4] == [r"A & \<B>", "γ(κ)", "add", "1e-3"]
    lower, value, upper = map(Fraction, row[4:7])
    truth = pe.gamma_bound(pe.GaussianMechanism(2.0).composed(3), 1e-3)
    assert lower <= truth <= upper
    assert float(value) == pytest.approx(truth, rel=1e-5)
    assert row[7] == "proven"
    assert markdown[4].startswith(r"- A & \<B>: Gaussian, noise multiplier 2")
    assert r"A \& \textless{}B\textgreater{} & $\gamma$($\kappa$)" in (
        tmp_path / "out" / "table.tex"
    ).read_text("utf-8")


def test_long_schedules_are_shortened() -> None:
    """A screen shows the ends of a schedule of many phases; JSON has all of them."""
    run = pe.compose(*(pe.dp_sgd(1.0 + k / 100, 0.01, 5) for k in range(20)))
    stated = privacy_statement(run, 1e-5, false_positive_rates=[], kappas=[], proven=False)
    (_, lines), *_ = stated.head()
    assert lines == [
        *stated.mechanism[:2],
        "and 17 more kinds of steps, the last of which:",
        stated.mechanism[-1],
    ]
    assert len(stated.as_object()["mechanism"]) == 20


def test_notes_stand_apart_from_how_batches_are_drawn() -> None:
    run = pe.dp_sgd(1.0, batch_size=100, dataset_size=10_000, epochs=1, sampling="poisson")
    stated = privacy_statement(run, 1e-5, false_positive_rates=[], kappas=[], proven=False)
    (note,) = stated.notes
    assert f"\n  - {note}\n" in stated.markdown()
    assert "(Poisson sampling). A loader that shuffles is different" in stated.latex()
    assert "a -{}- b" in latex_table(["x"], [["a -- b"]])  # no dash


def test_the_note_on_a_shuffling_loader_says_whom_its_figure_protects() -> None:
    """Its neighbours are others, and clients were called records."""
    empty = "and one with an empty (record|client) in its place"
    for words, adjacency, who in (
        ({"unit": "client"}, "add_remove", f"one client, with all its records: .* {empty}"),
        ({}, "add_remove", f"one record: .* {empty}"),
        ({}, "substitute", ""),
    ):
        run = pe.dp_sgd(1.0, "1/10", 20, **words)
        (note,) = privacy_statement(run, 1e-5, adjacency=adjacency, proven=False).notes
        end = f", which protects {who}" if who else ""
        assert re.search(rf"\(give batch_size, dataset_size and sampling shuffle\){end}\.$", note)


def test_a_tuned_run_covers_the_runs_that_it_counts() -> None:
    run = pe.GaussianMechanism(4.0)
    tuned = pe.repeat_and_select(run, "geometric", stopping=0.1)
    for mechanism, words in (
        (run, "the same data, other"),
        (tuned, "data beyond these runs, other"),
    ):
        assert words in str(privacy_statement(mechanism, 1e-5))


def test_pure_differential_privacy() -> None:
    """ε at δ = 0, of the statement and of the report, for who reports pure privacy."""
    run = pe.LaplaceMechanism(2.0).composed(3)
    first = privacy_statement(run, 0).figures[0]
    assert first.what == "ε at δ = 0"
    assert first.lower <= 1.5 <= first.bound <= 1.5 * (1 + 2**-50)
    table = pe.report.privacy_report(run, 0).tables[0]
    assert table.argument.tolist() == [0.0]
    assert pe.report.privacy_report(run, 1e-6).tables[0].argument.size == 3
