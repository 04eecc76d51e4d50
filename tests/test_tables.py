"""Tables: the specification, the rows and the files."""

from __future__ import annotations

import csv
import io
import json
import os
import struct
from decimal import Decimal
from fractions import Fraction
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from error_budget import check_near
from table_texts import EVERY_KIND, GAMMA, LAPLACE, ONE_RUN, PHASES
from thorough import some

import pyengine as pe
from pyengine import api, mechanisms
from pyengine.engines.registry import ADJACENCIES
from pyengine.laws.kinds import named_kinds
from pyengine.plots import Curve, gamma_png
from pyengine.tables import cells as table_cells
from pyengine.tables import files
from pyengine.workbench.runs.numbers import fraction
from pyengine.workbench.tables.files import csv_text, jsonl_text, parquet_bytes, replace_all
from pyengine.workbench.tables.picture import _label, draws, line
from pyengine.workbench.tables.rows import INTEGERS, Row, columns, numeric, record, rows
from pyengine.workbench.tables.run import run
from pyengine.workbench.tables.spec import Specification, load, parse
from pyengine.workbench.tables.summary import summary
from pyengine.workbench.tables.units import cells_of, solve, units


def table_of(specification: Specification) -> list[Row]:
    work = units(specification)
    cells: dict[int, list[table_cells.Cell]] = {}
    while len(cells) < len(work):  # `solve` works for some seconds
        rest = [unit for unit in work if unit.index not in cells]
        cells |= {found["unit"]: cells_of(found) for found in solve(rest)}
    return list(rows(specification, work, cells))


@pytest.fixture(scope="module")
def built_in() -> list[Row]:
    return table_of(load(None))


def test_built_in_settings() -> None:
    specification = load(None)
    runs = {workflow.mechanism for workflow in specification.workflows}
    assert runs == {
        pe.dp_sgd("10.5", "4096/50000", 1000),
        pe.dp_sgd("1.15", "4096/549361", 405),
        pe.dp_sgd("2.5", "16384/1281167", 72_000),
        pe.dp_sgd("0.8", "0.001", 10_000),
        pe.dp_sgd("0.6", "1e-4", 1_000_000),
        pe.dp_sgd("4", 1.0, 100),
    }
    grids = {grid.question: list(map(fraction, grid.values)) for grid in specification.grids}
    assert grids["gamma_bound"] == grids["trade_off"]
    assert grids["gamma_bound"] == [Fraction(1, 10**n) for n in range(7, 0, -1)]
    assert (min(grids["epsilon"]), max(grids["epsilon"])) == (
        Fraction(1, 10**7),
        Fraction(1, 10**4),
    )
    assert (min(grids["delta"]), max(grids["delta"])) == (Fraction(1, 2), 8)


def test_rows_are_the_answers_of_the_package(built_in: list[Row]) -> None:
    assert len(built_in) == 6 * 3 * (7 + 7 + 4 + 5)
    for row in some(built_in, 5):  # the questions of a workflow are a prime number
        noise, probability, steps = (
            float(fraction(row.workflow.get(name) or ""))
            for name in ("noise_multiplier", "sampling_probability", "steps")
        )
        at = float(row.at)
        run = pe.dp_sgd(noise, probability, int(steps))
        expected = getattr(pe, row.question)(run, at, adjacency=row.adjacency, bounds=True)
        cell = row.cell
        assert None not in (cell.value, cell.lower, cell.upper, cell.error)
        lower, value, upper = (float(text or "") for text in (cell.lower, cell.value, cell.upper))
        # alone or within a grid, the last bits may differ, the bounds may not be left
        assert value == pytest.approx(expected.value, rel=1e-11, abs=1e-300)
        assert lower <= expected.value <= upper
        assert lower <= value <= upper
        assert float(cell.error or "") == max(value - lower, upper - value)
        assert cell.engine in {"exact", "closed_form", "certified"}
        assert not cell.message
    engines = {row.cell.engine for row in built_in if row.workflow.name == "full batch"}
    assert engines == {"closed_form"}


def test_published_values(built_in: list[Row]) -> None:
    """Table 1 of Lebeda et al. 2024, and γ where other tools return less than κ."""
    cells = {
        (row.workflow.name, row.question, row.adjacency, float(row.at)): float(row.cell.value or "")
        for row in built_in
    }
    for delta, epsilon in ((1e-7, 1.1707628432), (1e-6, 0.9471956872), (1e-5, 0.7823877811)):
        value = cells["Lebeda et al. 2024", "epsilon", "remove", delta]
        assert value == pytest.approx(epsilon, abs=1e-10)
    gamma = cells["Lebeda et al. 2024", "gamma_bound", "add", 1e-5]
    check_near("printed.lebeda_gamma", gamma, 2.6444857e-5)


REFUSING = GAMMA.replace("[1e-3]", "[1e-3, 1e-2]") + ONE_RUN


@pytest.fixture
def refusing(monkeypatch: pytest.MonkeyPatch) -> list[Row]:
    """Rows for κ = 1e-3 and 1e-2, the second one beyond an engine."""

    def answers(*question: Any, **keywords: Any) -> Any:
        if 1e-2 in question[2]:
            raise pe.AccuracyError("no answer, try more noise")
        return api.answers(*question, **keywords)

    monkeypatch.setattr(table_cells, "risk_answers", answers)
    return table_of(parse(REFUSING, "test"))


def test_refused_value_spares_its_neighbours(refusing: list[Row]) -> None:
    good, refused = (row.cell for row in refusing)
    assert good.value is not None
    assert good.message == ""
    assert refused == table_cells.Cell(message="no answer, try more noise")


def test_curve_stays_inside_the_grid() -> None:
    specification = parse(GAMMA.replace("[1e-3]", "[0, 1e-5, 1e-2]") + ONE_RUN, "test")
    pairs = line(specification.workflows[0], specification.grids[0], "add", 11)
    assert [kappa for kappa, _ in pairs] == pytest.approx(np.geomspace(1e-5, 1e-2, 11))
    assert (pairs[0][0], pairs[-1][0]) == (1e-5, 1e-2)
    nothing = parse(GAMMA.replace("[1e-3]", "[0]") + ONE_RUN, "test")
    assert line(nothing.workflows[0], nothing.grids[0], "add", 11) == []
    assert draws(specification)
    assert not draws(nothing)


def test_phases_compose() -> None:
    first, second = parse(GAMMA + PHASES, "test").workflows
    assert [first.name, second.name] == [
        f"two phases (phase 2 batch_size={size})" for size in (10, 20)
    ]
    sampled = pe.GaussianMechanism("2").sampled_without_replacement(batch_size=20, dataset_size=100)
    whole = pe.GaussianMechanism("1.5").composed(3) + sampled.composed(5)
    assert second.mechanism == whole
    assert second.get("steps") is None


def test_every_mechanism_has_a_name() -> None:
    found = parse(GAMMA + ONE_RUN + LAPLACE + EVERY_KIND, "test").workflows
    kinds = {type(step) for run in found for step, _ in mechanisms.steps_of(run.mechanism)}
    sampled = {mechanisms.PoissonSampled}
    assert kinds - sampled - {pe.TruncatedPoissonSampled} == {
        getattr(mechanisms, name) for name in named_kinds()
    } - {
        pe.LaplaceMechanism,  # sampled here
        pe.GaussianMechanism,
    }
    assert [run.name for run in found[-7:-5]] == [
        "finite (q=[3/4, 0.25])",
        "finite (q=[1/2, 1/2])",
    ]
    assert [run.mechanism for run in found[-5:]] == [
        pe.GaussianMixtureMechanism("2", ["0", "1"], ["0.9", "0.1"]).composed(3),
        pe.dp_sgd_allocated("2", 10, 3),
        pe.dp_sgd_allocated("2", 20, 3),
        pe.dp_sgd("2", "0.1", 4, group_size=3),
        pe.GaussianMechanism("2")
        .truncated_poisson_sampled("0.1", batch_size=15, dataset_size=100)
        .composed(4),
    ]
    single = {
        name
        for name in mechanisms.__all__
        if isinstance(value := getattr(mechanisms, name), type)
        and issubclass(value, mechanisms.Step)
    }
    sampling = {"Step", "PoissonSampled", "SampledWithoutReplacement", "TruncatedPoissonSampled"}
    no_numbers = {"AnalyticPair", "DistributionPair", "LikelihoodRatio"}
    assert single - sampling - no_numbers == set(named_kinds())


def test_columns_hold_single_numbers_and_json_the_rest() -> None:
    specification = parse(GAMMA + PHASES + EVERY_KIND, "test")
    cell = table_cells.Cell("0.5", "0.4", "0.6", "0.1", "estimate", "test")
    work = units(specification)
    table = rows(specification, work, {unit.index: [cell] for unit in work})
    names = columns(specification)
    found = [dict(zip(names, record(row, specification), strict=True)) for row in table]
    assert names[:5] == [
        "workflow",
        "mechanism",
        "noise_multiplier",
        "sampling_probability",
        "steps",
    ]
    discrete = next(row for row in found if row["workflow"] == "discrete Gaussian")
    assert (discrete["mechanism"], discrete["sensitivity"]) == ("DiscreteGaussianMechanism", "3")
    assert discrete["categories"] is None
    phases = json.loads(found[0]["mechanism"] or "")
    assert phases == [
        {"mechanism": "GaussianMechanism", "noise_multiplier": "1.5", "steps": "3"},
        {
            "mechanism": "GaussianMechanism",
            "noise_multiplier": "2",
            "batch_size": "10",
            "dataset_size": "100",
            "steps": "5",
        },
    ]
    assert found[0]["steps"] is None
    finite, mixture, allocated, group = found[-6], found[-5], found[-3], found[-2]
    assert json.loads(finite["mechanism"] or "")[0]["q"] == ["1/2", "1/2"]
    assert finite["steps"] is None
    assert json.loads(mixture["mechanism"] or "")[0]["shifts"] == ["0", "1"]
    assert allocated["mechanism"] == "RandomlyAllocated"
    assert (allocated["steps_per_epoch"], allocated["steps"]) == ("20", "3")
    assert (group["mechanism"], group["group_size"]) == ("GaussianMechanism", "3")


def test_csv_reads_back(built_in: list[Row]) -> None:
    specification = load(None)
    names = columns(specification)
    text = csv_text(names, (record(row, specification) for row in built_in))
    table = list(csv.DictReader(io.StringIO(text)))
    assert list(table[0]) == names
    for cells, row in zip(table, built_in, strict=True):
        assert float(cells["value"]) == float(row.cell.value or "")
        assert float(cells["at"]) == float(fraction(row.at))
        probability = row.workflow.get("sampling_probability") or ""
        assert float(cells["sampling_probability"]) == float(fraction(probability))
        assert cells["steps"] == row.workflow.get("steps")


def test_json_reads_back_and_is_strict(refusing: list[Row]) -> None:
    specification = parse(REFUSING, "test")
    names = columns(specification)
    infinite = table_cells.Cell("inf", "1.0", "inf", "inf", "estimate", "test")
    records = [record(row, specification) for row in refusing]
    records.append(records[0][: -len(ANSWERED)] + [getattr(infinite, name) for name in ANSWERED])

    def no_constants(name: str) -> None:
        raise AssertionError(f"{name} is no JSON")

    text = jsonl_text(names, records, numeric(specification))
    good, refused, last = (
        json.loads(row, parse_constant=no_constants) for row in text.splitlines()
    )
    assert repr(good["value"]) == refusing[0].cell.value
    assert (good["noise_multiplier"], good["steps"], good["at"]) == (1.0, 1000, 1e-3)
    assert refused["value"] is None
    assert (last["value"], last["lower"]) == ("inf", 1.0)
    assert all(list(row) == names for row in (good, refused, last))


ANSWERED = ("value", "lower", "upper", "error", "certainty", "engine", "message")


def test_parquet_reads_back(refusing: list[Row]) -> None:
    pytest.importorskip("pyarrow")
    import pyarrow.parquet

    specification = parse(REFUSING, "test")
    names = columns(specification)
    records = [record(row, specification) for row in refusing]
    data = parquet_bytes(names, records, numeric(specification), set(INTEGERS))
    assert data == parquet_bytes(names, records, numeric(specification), set(INTEGERS))
    table = pyarrow.parquet.read_table(io.BytesIO(data)).to_pydict()
    assert list(table) == names
    assert table["value"] == [float(refusing[0].cell.value or ""), None]
    assert table["steps"] == [1000, 1000]
    assert table["message"] == ["", "no answer, try more noise"]


def test_reference_values_are_decimal_strings() -> None:
    """What the reference answers, with a neighbour of 1/3 in place of it."""
    mpmath = pytest.importorskip("mpmath")

    class Answer(mpmath.mpf):  # type: ignore[misc]
        error = mpmath.mpf("1e-33")
        certified = True

    with mpmath.workdps(50):
        cell = table_cells.from_mpf(Answer(mpmath.mpf(1) / 3), 30, 1.0)
    assert cell.value == "0." + 30 * "3"
    assert cell.certainty == "proven"
    assert None not in (cell.error, cell.lower, cell.upper)
    assert Decimal(cell.error or "") >= Decimal("0.333e-30")
    assert Fraction(cell.lower or "") < Fraction(1, 3) < Fraction(cell.upper or "")
    with mpmath.workdps(50):
        one = table_cells.from_mpf(Answer(1), 30, 1.0)
    assert (one.value, one.upper) == ("1", "1")
    infinite = table_cells.from_mpf(Answer("inf"), 30, None)
    assert (infinite.value, infinite.error) == ("inf", "0")


def test_table_of_the_reference(tmp_path: Path) -> None:
    pytest.importorskip("flint")
    pytest.importorskip("pyarrow")
    import pyarrow.parquet

    specification = parse(
        'engine = "reference"\ndigits = 40\nformats = ["csv", "jsonl", "parquet"]\n'
        + GAMMA
        + ONE_RUN.replace("0.01", '"1/100"'),
        "test",
    )
    assert run(specification, tmp_path, workers=0) == 0
    assert not (tmp_path / "gamma.png").exists()
    (row,) = csv.DictReader(io.StringIO((tmp_path / "table.csv").read_text(encoding="utf-8")))
    # rounded to 30 digits it is in dp_sgd_published.json
    assert f"{Decimal(row['value']):.32f}" == "0.00406844788114256585600747542889"
    assert len(row["value"].replace("0.00", "")) == 40
    assert (row["sampling_probability"], row["at"], row["engine"]) == ("1/100", "1e-3", "reference")
    assert row["certainty"] in ("proven", "estimate")
    assert Decimal(row["error"]) < Decimal("1e-41")
    assert json.loads((tmp_path / "table.jsonl").read_text(encoding="utf-8")) == row
    assert pyarrow.parquet.read_table(tmp_path / "table.parquet").to_pylist() == [row]


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


def test_summary_is_aligned(built_in: list[Row]) -> None:
    specification = load(None)
    lines = summary(specification, built_in).splitlines()
    assert max(map(len, lines)) <= 80
    header = next(index for index, line in enumerate(lines) if line.startswith("ε = "))
    table = lines[header : header + 2 + len(specification.workflows)]
    assert len({len(line) for line in table}) == 1
    assert "Lebeda et al. 2024   1.1708   0.9472   0.7824   0.6286" in lines


@pytest.mark.parametrize("adjacency", ADJACENCIES)
def test_summary_of_every_adjacency(adjacency: str) -> None:
    specification = parse(GAMMA.replace("add", adjacency) + ONE_RUN, "test")
    text = summary(specification, table_of(specification))
    assert f"(adjacency {adjacency}: " in text


def test_summary_of_other_mechanisms() -> None:
    text = "[delta]\nepsilon = [1]\nadjacency = ['add']\n" + PHASES + LAPLACE + EVERY_KIND
    specification = parse(text, "test")
    cell = table_cells.Cell("1e-4333", "1e-4333", "1e-4333", "0", "proven", "test")
    work = units(specification)
    table = list(rows(specification, work, {unit.index: [cell] for unit in work}))
    lines = summary(specification, table).splitlines()
    assert lines[0].split()[:2] == ["workflow", "mechanism"]
    assert "GaussianMechanism + GaussianMechanism" in lines[2]


def test_many_runs_stay_readable() -> None:
    names = "".join(ONE_RUN.replace('"run"', f'"run {index}"') for index in range(30))
    specification = parse(GAMMA + names, "test")
    everything = table_of(specification)
    assert len(everything) == 30
    text = summary(specification, everything)
    assert "run 19 " in text
    assert "run 20 " not in text
    assert text.endswith("... and 10 more workflows in the files")


def test_the_summary_and_the_picture_name_no_other_run() -> None:
    """Six digits of a noise or a rate are another run's."""
    given = parse(
        "[gamma_bound]\nkappa = [0.1]\n"
        '[[run]]\nname = "a"\nnoise = 1.123456789\np = "256/60000"\nsteps = 3\n'
        '[[run]]\nname = "b"\nnoise = "1/3"\np = 0.0123456789\nsteps = 3\n'
        '[[run]]\nname = "c"\nnoise = 0.30000000000000004\np = 0.25\nsteps = 3\n',
        "example",
    )
    lines = summary(given, table_of(given)).splitlines()
    assert [line.split()[1:] for line in lines[2:5]] == [
        ["1.123456789", "256/60000", "3"],
        ["1/3", "0.0123456789", "3"],
        ["0.30000000000000004", "0.25", "3"],
    ]
    drawn = [_label(run) for run in given.workflows]
    assert drawn[0] == "a\np = 256/60000, noise 1.123456789, 3 steps"
    assert drawn[1] == "b\np = 0.0123456789, noise 1/3, 3 steps"
