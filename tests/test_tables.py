"""Tables: the specification, the rows and the files."""

from __future__ import annotations

import csv
import io
import json
import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyengine as pe
from pyengine import api
from pyengine.plots import Curve, gamma_png
from pyengine.tables import files
from pyengine.tables import rows as table_rows
from pyengine.tables.files import COLUMNS, csv_text, json_text, replace_all
from pyengine.tables.rows import Row, compute, curve
from pyengine.tables.spec import SpecificationError, load, parse
from pyengine.tables.summary import summary

ONE_RUN = """
[[workflow]]
name = "run"
noise_multiplier = 1.0
sampling_probability = 0.01
steps = 1000
"""
GAMMA = '[gamma_bound]\nkappa = [1e-3]\nadjacency = ["add"]\n'


@pytest.fixture(scope="module")
def rows() -> list[Row]:
    return [row for group in compute(load(None)) for row in group]


def test_built_in_settings() -> None:
    specification = load(None)
    runs = {
        (run.noise_multiplier, run.sampling_probability, run.steps)
        for run in specification.workflows
    }
    assert runs == {
        (10.5, 4096 / 50000, 1000),
        (1.15, 4096 / 549361, 405),
        (2.5, 16384 / 1281167, 72_000),
        (0.8, 0.001, 10_000),
        (0.6, 1e-4, 1_000_000),
        (4.0, 1.0, 100),
    }
    grids = {grid.question: grid.values for grid in specification.grids}
    assert grids["gamma_bound"] == grids["trade_off"]
    assert (min(grids["gamma_bound"]), max(grids["gamma_bound"])) == (1e-7, 1e-1)
    assert (min(grids["epsilon"]), max(grids["epsilon"])) == (1e-7, 1e-4)
    assert (min(grids["delta"]), max(grids["delta"])) == (0.5, 8.0)


def test_rows_are_the_answers_of_the_package(rows: list[Row]) -> None:
    assert len(rows) == 6 * 3 * (7 + 7 + 4 + 5)
    for row in rows:
        run = pe.dp_sgd(row.noise_multiplier, row.sampling_probability, row.steps)
        expected = getattr(pe, row.question)(run, row.at, adjacency=row.adjacency, bounds=True)
        # alone or within a grid, the last bits may differ, the bounds may not be left
        assert row.value == pytest.approx(expected.value, rel=1e-11, abs=1e-300)
        assert row.lower is not None
        assert row.upper is not None
        assert row.lower <= expected.value <= row.upper
        assert row.lower <= row.value <= row.upper
        assert row.engine in {"exact", "closed_form", "spectral", "convolution"}
        assert not row.message
    assert {row.engine for row in rows if row.workflow == "full batch"} == {"closed_form"}


def test_published_values(rows: list[Row]) -> None:
    """Table 1 of Lebeda et al. 2024, and γ where other tools return less than κ."""
    cells = {(row.workflow, row.question, row.adjacency, row.at): row.value for row in rows}
    for delta, epsilon in ((1e-7, 1.1707628432), (1e-6, 0.9471956872), (1e-5, 0.7823877811)):
        value = cells["Lebeda et al. 2024", "epsilon", "remove", delta]
        assert value == pytest.approx(epsilon, abs=1e-10)
    gamma = cells["Lebeda et al. 2024", "gamma_bound", "add", 1e-5]
    assert gamma == pytest.approx(2.6444857e-5, rel=1e-7)


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> tuple[Row, Row]:
    """Rows for κ = 1e-3 and 1e-2, the second one beyond an engine."""

    def answers(*question: Any, **keywords: Any) -> Any:
        if 1e-2 in question[2]:
            raise pe.AccuracyError("no answer, try more noise")
        return api.answers(*question, **keywords)

    monkeypatch.setattr(table_rows, "answers", answers)
    (group,) = compute(parse(GAMMA.replace("[1e-3]", "[1e-3, 1e-2]") + ONE_RUN, "test"))
    good, refused = group
    return good, refused


def test_refused_value_spares_its_neighbours(refusing: tuple[Row, Row]) -> None:
    good, refused = refusing
    assert good.value is not None
    assert good.message == ""
    assert (refused.value, refused.lower, refused.upper, refused.engine) == (None, None, None, "")
    assert refused.message == "no answer, try more noise"


def test_curve_stays_inside_the_grid() -> None:
    specification = parse(GAMMA.replace("[1e-3]", "[0, 1e-5, 1e-2]") + ONE_RUN, "test")
    line = curve(specification.workflows[0], specification.grids[0], "add", 11)
    assert [row.at for row in line] == pytest.approx(np.geomspace(1e-5, 1e-2, 11))
    assert (line[0].at, line[-1].at) == (1e-5, 1e-2)
    nothing = parse(GAMMA.replace("[1e-3]", "[0]") + ONE_RUN, "test")
    assert curve(nothing.workflows[0], nothing.grids[0], "add", 11) == []


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("kappa = ", "Invalid value"),
        (GAMMA, "no workflow"),
        (ONE_RUN, "no question"),
        (GAMMA + ONE_RUN + "stepz = 3\n", "workflow 1: unknown key 'stepz'"),
        ("title = 'x'\n" + GAMMA + ONE_RUN, "unknown key 'title'"),
        (GAMMA + ONE_RUN + ONE_RUN, "two workflows are named 'run'"),
        (GAMMA + ONE_RUN.replace("steps = 1000", ""), "workflow 1: steps is missing"),
        (GAMMA + ONE_RUN.replace('"run"', "3"), "name must be a printable string, got 3"),
        (GAMMA + ONE_RUN.replace("1000", "-1"), "steps must be a non-negative integer, got -1"),
        (GAMMA + ONE_RUN.replace("1000", "true"), "steps must be a real number, got True"),
        (GAMMA + ONE_RUN.replace("0.01", "1.5"), "sampling_probability must lie in [0, 1]"),
        (GAMMA + ONE_RUN.replace("0.01", '"1/0"'), "sampling_probability must be finite"),
        (GAMMA + ONE_RUN.replace("1.0", "nan"), "noise_multiplier must not be NaN"),
        (GAMMA.replace("[1e-3]", "[2]") + ONE_RUN, "[gamma_bound]: kappa must lie in [0, 1]"),
        (GAMMA.replace("[1e-3]", "[]") + ONE_RUN, "kappa must be a list of numbers, got []"),
        (GAMMA.replace("[1e-3]", "[1, 1]") + ONE_RUN, "kappa holds a value twice"),
        (GAMMA.replace('["add"]', "[]") + ONE_RUN, "adjacency must be a list of 'add'"),
        (GAMMA.replace('"add"', '"sub"') + ONE_RUN, "adjacency must be one of 'add'"),
        ("gamma_bound = 3\n" + ONE_RUN, "[gamma_bound] must be a table, got 3"),
        ("workflow = 3\n" + GAMMA, "no workflow"),
        ("[delta]\nepsilon = [inf]\nadjacency = ['add']\n" + ONE_RUN, "must lie in [0, inf)"),
    ],
)
def test_wrong_specifications(text: str, message: str) -> None:
    with pytest.raises(SpecificationError) as caught:
        parse(text, "my.toml")
    assert message in str(caught.value)
    assert str(caught.value).startswith("my.toml: ")
    assert "\n" not in str(caught.value)


def test_not_utf8(tmp_path: Path) -> None:
    path = tmp_path / "spec.toml"
    path.write_bytes(b"\xff")
    with pytest.raises(SpecificationError, match="not a UTF-8 text"):
        load(str(path))


def test_csv_reads_back(rows: list[Row]) -> None:
    text = csv_text(rows, {"pyengine": "1.0"})
    table = list(csv.DictReader(io.StringIO(text)))
    assert list(table[0]) == [*COLUMNS, "pyengine"]
    for line, row in zip(table, rows, strict=True):
        assert float(line["value"]) == row.value
        assert float(line["at"]) == row.at
        assert float(line["sampling_probability"]) == row.sampling_probability
        assert int(line["steps"]) == row.steps
        assert line["pyengine"] == "1.0"


def test_json_reads_back_and_is_strict(refusing: tuple[Row, Row]) -> None:
    good, refused = refusing
    infinite = Row("w", 1.0, 1.0, 1, "epsilon", "add", "delta", 0.0, np.inf, 1.0, np.inf, "e", "")
    text = json_text([good, refused, infinite], {"pyengine": "1.0"})

    def no_constants(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    table = json.loads(text, parse_constant=no_constants)
    assert table["pyengine"] == "1.0"
    assert table["rows"][0]["value"] == good.value
    assert table["rows"][1]["value"] is None
    assert (table["rows"][2]["value"], table["rows"][2]["lower"]) == ("inf", 1.0)
    assert all(list(row) == COLUMNS for row in table["rows"])


def test_replace_all(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    replace_all(tmp_path, {"a": b"new", "b": b"also"})
    assert (tmp_path / "a").read_text() == "new"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]
    mask = os.umask(0)
    os.umask(mask)
    assert (tmp_path / "b").stat().st_mode & 0o777 == 0o666 & ~mask


@pytest.mark.parametrize("error", [OSError("disk full"), KeyboardInterrupt()])
def test_failure_leaves_the_old_files(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, error: BaseException
) -> None:
    (tmp_path / "a").write_text("old")
    calls = []

    def fsync(descriptor: int) -> None:
        calls.append(descriptor)
        if len(calls) == 2:
            raise error

    monkeypatch.setattr(files.os, "fsync", fsync)
    with pytest.raises(type(error)):
        replace_all(tmp_path, {"a": b"new", "b": b"also"})
    assert [path.name for path in tmp_path.iterdir()] == ["a"]
    assert (tmp_path / "a").read_text() == "old"


def test_directory_in_the_way_leaves_the_old_files(tmp_path: Path) -> None:
    (tmp_path / "a").write_text("old")
    (tmp_path / "b").mkdir()
    with pytest.raises(IsADirectoryError):
        replace_all(tmp_path, {"a": b"new", "b": b"also"})
    assert (tmp_path / "a").read_text() == "old"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a", "b"]


def test_picture() -> None:
    pytest.importorskip("matplotlib")
    line = [(10.0**exponent, 10.0 ** (exponent / 2)) for exponent in range(-7, 0)]
    flat = [(kappa, kappa) for kappa, _ in line]
    png = gamma_png([Curve("_$x_{$ name", line, line[::3]), Curve("flat", flat, flat)], "title")
    assert png.startswith(b"\x89PNG\r\n\x1a\n")
    assert struct.unpack(">II", png[16:24]) == (1650, 690)
    from matplotlib.image import imread

    pixels = imread(io.BytesIO(png))[..., :3]
    assert 0.01 < (pixels < 0.95).any(axis=2).mean() < 0.5
    for colour in ((0x00, 0x72, 0xB2), (0xD5, 0x5E, 0x00)):  # both curves are there
        assert (np.abs(pixels * 255 - colour).max(axis=2) < 2).sum() > 500


def test_summary_is_aligned(rows: list[Row]) -> None:
    specification = load(None)
    lines = summary(specification, rows).splitlines()
    assert max(map(len, lines)) <= 80
    header = next(index for index, line in enumerate(lines) if line.startswith("ε = "))
    table = lines[header : header + 2 + len(specification.workflows)]
    assert len({len(line) for line in table}) == 1
    assert "Lebeda et al. 2024   1.1708   0.9472   0.7824   0.6286" in lines


def test_many_runs_stay_readable() -> None:
    names = "".join(ONE_RUN.replace('"run"', f'"run {index}"') for index in range(30))
    specification = parse(GAMMA + names, "test")
    everything = [row for group in compute(specification) for row in group]
    assert len(everything) == 30
    text = summary(specification, everything)
    assert "run 19 " in text
    assert "run 20 " not in text
    assert text.endswith("... and 10 more workflows in the files")
