"""The page on how batches are chosen says what the engines do."""

from __future__ import annotations

import doctest
import re
from pathlib import Path

import pytest

import pyengine as pe
from pyengine.mechanisms import label_of

PAGE = Path(__file__).parents[1] / "docs" / "batch_selection.md"
TEXT = PAGE.read_text(encoding="utf-8")
ROWS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in TEXT.splitlines()
    if line.startswith("| [")
]
# of single epochs with several steps, whose values are bounds by blocks
REFERENCE = "Several random steps in an epoch"


def runs() -> dict[str, pe.Mechanism]:
    """The ``run`` of each section; a page is one session."""
    found, session = {}, {"pe": pe}
    for section in re.split(r"^## ", TEXT, flags=re.M)[1:]:
        for block in re.findall(r"^```python\n(.*?)^```", section, re.M | re.S):
            for example in doctest.DocTestParser().get_examples(block):
                if re.match(r"\w+ = ", example.source):
                    exec(example.source, session)
            found[section.splitlines()[0]] = session["run"]
    return found


RUNS = runs()


def proven(run: pe.Mechanism, method: str = "auto") -> bool:
    """Whether bounds of a profile's value are proven."""
    import numpy as np

    from pyengine.engines.registry import questions

    answer = questions(
        run, adjacency="add_remove", method=method, threat_model="dp", tolerance=None
    ).profile(np.array([0.5]))
    assert float(answer.lower[0]) <= float(answer.value[0]) <= float(answer.upper[0])
    return bool(np.all(answer.certified))


def test_the_table_has_each_section() -> None:
    names = [re.fullmatch(r"\[(.*)\]\(#(.*)\)", row[0]) for row in ROWS]
    assert [name[1] for name in names if name] == list(RUNS)
    assert all(name[2] == name[1].lower().replace(" ", "-") for name in names if name)


@pytest.mark.parametrize("row", ROWS, ids=lambda row: row[0])
def test_rows_are_what_the_engines_say(row: list[str]) -> None:
    title, answers, bounds = row
    title = title[1:].partition("]")[0]
    run = RUNS[title]
    certified = proven(run)
    assert certified or bounds != "always"
    if not certified:
        assert proven(run, "reference" if title == REFERENCE else "certified")
    known = {each.known for each in label_of(run)} - {""}
    assert known <= {answers.replace("*", "")}
    if "bound" not in answers:
        assert answers == "the truth"


def test_table_of_equal_noise() -> None:
    line = next(x for x in TEXT.splitlines() if x.startswith("| 100 |"))
    poisson, allocated, plain = (cell.strip() for cell in line.strip("|").split("|")[1:])
    run = pe.dp_sgd(1.0, 0.01, 10_000)
    found = [f"{pe.epsilon(run, 1e-5, adjacency=order):.4f}" for order in ("remove", "add")]
    assert poisson == " / ".join(found)
    run = pe.dp_sgd_allocated(1.0, 100, 100)
    found = [f"{pe.epsilon(run, 1e-5, adjacency=order):.4f}" for order in ("remove", "add")]
    assert allocated == " / ".join(found)
    leak = pe.epsilon(pe.shuffled_lower_bound(1.0, 100, 100), 1e-5)
    assert f"ε is at least {leak:.2f} there" in TEXT
    assert plain == f"{pe.epsilon(pe.GaussianMechanism(1.0).composed(100), 1e-5):.2f}"


MEASURED = (PAGE.parent / "schemes_measured.md").read_text(encoding="utf-8")
SETTINGS = [
    [cell.strip() for cell in line.strip("|").split("|")]
    for line in MEASURED.partition("\n\n")[0].splitlines()[2:]
]


@pytest.mark.parametrize("row", SETTINGS[5::16], ids=lambda row: "-".join(row[:3]))
def test_compared_settings_are_what_is_computed(row: list[str]) -> None:
    noise, steps, epochs = float(row[0]), int(row[1]), int(row[2])
    poisson = pe.dp_sgd(noise, f"1/{steps}", steps * epochs)
    allocated = pe.dp_sgd_allocated(noise, steps, epochs)
    for printed, run in ((row[3], poisson), (row[4], allocated)):
        for digits, adjacency in zip(printed.split(" / "), ("remove", "add"), strict=True):
            assert f"{pe.epsilon(run, 1e-5, adjacency=adjacency):.5g}" == digits


def test_every_setting_has_its_row() -> None:
    assert len(SETTINGS) == 64
    assert all(len(row) == 7 for row in SETTINGS)
    leaks = [line.strip("|").split("|") for line in MEASURED.splitlines()[-64:]]
    for row, leak in zip(SETTINGS, leaks, strict=True):
        assert [cell.strip() for cell in leak[:3]] == row[:3]
        assert float(leak[3]) < float(row[6])
