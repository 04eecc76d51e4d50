"""Runs of tables: what they survive, and that their files do not depend on what happened."""

from __future__ import annotations

import contextlib
import errno
import json
import os
import resource
import signal
import sqlite3
import subprocess
import sys
import time
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Executor, ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
import slow_table

from pyengine.cli import main
from pyengine.tables import execute, files, units
from pyengine.workbench.tables.execute import WorkersError
from pyengine.workbench.tables.journal import Journal, JournalError
from pyengine.workbench.tables.run import JOURNAL, Interrupted, run
from pyengine.workbench.tables.spec import Specification, parse
from pyengine.workbench.tables.units import Unit

pytest.importorskip("matplotlib")
pytest.importorskip("pyarrow")

SPEC = """
formats = ["csv", "jsonl"]
[trade_off]
alpha = ["1e-3", 0.1]
adjacency = ["add", "remove"]
[epsilon]
delta = [1e-5]
adjacency = ["add_remove"]
[[workflow]]
name = "runs"
noise_multiplier = [0.8, 1, 2]
sampling_probability = [0.01, "1/30"]
steps = [1, 100]
"""
UNITS = 36
# The values of a mechanism share transforms and sums.
REFERENCE = """
engine = "reference"
digits = 30
formats = ["csv", "jsonl"]
[gamma_bound]
kappa = ["1e-3", "1e-1"]
adjacency = ["add", "remove"]
[[workflow]]
name = "steps"
noise_multiplier = ["2", "3"]
sampling_probability = "1/100"
steps = 2000
[[workflow]]
name = "noise"
mechanism = "LaplaceMechanism"
noise_multiplier = "3"
steps = 8
"""
FILES = ("table.csv", "table.jsonl")
TESTS = Path(__file__).parent


@pytest.fixture(autouse=True)
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """File in which the slow solvers note what they did."""
    path = tmp_path / "log"
    path.touch()
    monkeypatch.setenv(slow_table.LOG, str(path))
    return path


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    path = tmp_path / "spec.toml"
    path.write_text(SPEC, encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def specification() -> Specification:
    return parse(SPEC, "test")


@pytest.fixture(scope="module")
def expected(
    specification: Specification, tmp_path_factory: pytest.TempPathFactory
) -> dict[str, bytes]:
    """Content of the files, computed in this process without a break."""
    directory = tmp_path_factory.mktemp("expected")
    assert run(specification, directory, workers=0) == 0
    assert not (directory / JOURNAL).exists()
    return content(directory)


def content(directory: Path) -> dict[str, bytes]:
    return {name: (directory / name).read_bytes() for name in FILES}


def hold(log: Path, units: int) -> Path:
    """Let the slow solvers wait once so many units are done, until the file is gone."""
    path = Path(f"{log}.hold")
    path.write_text(str(units))
    return path


def computed(log: Path) -> list[int]:
    return [int(line) for line in log.read_text(encoding="utf-8").split()]


def records(directory: Path, mode: str = "mode=rw") -> list[dict[str, Any]]:
    """What a journal holds that nobody holds; what a kill left half done is rolled back first."""
    address = f"{(directory / JOURNAL).as_uri()}?{mode}"
    with contextlib.closing(sqlite3.connect(address, uri=True)) as database:
        found = database.execute("SELECT record FROM done ORDER BY number").fetchall()
    return [json.loads(text) for (text,) in found]


def is_being_written(directory: Path) -> bool:
    """Whether a transaction that a kill would roll back has begun; ``OSError`` before the first."""
    return any(Path(f"{directory / JOURNAL}-journal").read_bytes()[:8])


def records_under_way(directory: Path) -> list[dict[str, Any]]:
    """What a journal holds while a run holds it; nothing before it is there or while it writes.

    What a transaction has written counts once it has ended, so the end is looked for after reading.
    """
    with contextlib.suppress(OSError, sqlite3.DatabaseError):
        if not is_being_written(directory):
            found = records(directory, "mode=ro&immutable=1")
            if not is_being_written(directory):
                return found
    return []


def kept(directory: Path) -> set[int]:
    return {record["unit"] for record in records(directory)}


def test_processes_change_no_byte(tmp_path: Path) -> None:
    text = SPEC.replace("[trade_off]\nalpha", "[gamma_bound]\nkappa")
    specification = parse(text.replace('"jsonl"', '"jsonl", "parquet"'), "test")
    for workers in (0, 2):
        assert run(specification, tmp_path / str(workers), workers=workers) == 0
    names = {"table.csv", "table.jsonl", "table.parquet", "gamma.png", "metadata.json"}
    assert {path.name for path in (tmp_path / "2").iterdir()} == names
    for name in names - {"metadata.json"}:
        assert (tmp_path / "0" / name).read_bytes() == (tmp_path / "2" / name).read_bytes()


@pytest.fixture(scope="module")
def truth(tmp_path_factory: pytest.TempPathFactory) -> dict[str, bytes]:
    """Content of the files of the reference table, from this process alone."""
    directory = tmp_path_factory.mktemp("truth")
    assert run(parse(REFERENCE, "test"), directory, workers=0) == 0
    return content(directory)


def test_values_that_share_work_go_together_and_change_no_byte(
    truth: dict[str, bytes], tmp_path: Path
) -> None:
    specification = parse(REFERENCE, "test")
    assert run(specification, tmp_path, workers=2) == 0
    assert content(tmp_path) == truth
    metadata = json.loads((tmp_path / "metadata.json").read_text(encoding="utf-8"))
    workers = {unit["unit"]: unit["where"] for unit in metadata["units"]}
    for mechanism in range(2):  # of the last units each worker gets its share
        assert len({workers[4 * mechanism + k] for k in range(4)}) == 1


def test_threads_change_no_byte_of_a_reference_table(
    truth: dict[str, bytes], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    # a batch comes back after one value
    monkeypatch.setattr(units, "TOGETHER_SECONDS", 0.0)
    monkeypatch.setattr(units, "TOGETHER_TIMES", 0.0)
    with ThreadPoolExecutor(3) as executor:
        assert run(parse(REFERENCE, "test"), tmp_path, executor=executor, workers=3) == 0
    assert content(tmp_path) == truth


def test_an_interrupt_between_values_that_share_work_changes_no_byte(
    truth: dict[str, bytes], tmp_path: Path
) -> None:
    done: list[int] = []

    def interrupted(batch: Sequence[Unit]) -> list[dict[str, Any]]:
        if len(done) == 6:
            raise KeyboardInterrupt
        records = units.solve(batch)
        done.extend(record["unit"] for record in records)
        time.sleep(execute.BATCH_SECONDS)  # so that each is written at once
        return records

    specification = parse(REFERENCE, "test")
    with pytest.raises(Interrupted):
        run(specification, tmp_path, workers=0, solver=interrupted)
    assert sorted(kept(tmp_path)) == done == list(range(6))
    assert run(specification, tmp_path, workers=0) == 0
    assert content(tmp_path) == truth


def test_batches() -> None:
    todo = deque("aaaabbbcd")
    pulled = []
    while todo:
        pulled.append("".join(execute._batch(todo, 1, 2, lambda one, other: one == other)))
    assert pulled == ["aaaa", "bbb", "c", "d"]
    # of the last units each worker gets its share
    todo = deque("aaaaa")
    pulled = []
    while todo:
        pulled.append("".join(execute._batch(todo, 1, 2, lambda one, other: one == other)))
    assert pulled == ["aaa", "a", "a"]


def test_any_executor_changes_no_byte(
    specification: Specification, expected: dict[str, bytes], tmp_path: Path
) -> None:
    executor: Executor
    with ThreadPoolExecutor(3) as executor:
        assert run(specification, tmp_path / "out", executor=executor, workers=3) == 0
        assert executor.submit(int).result() == 0  # it is not ours to close
    assert content(tmp_path / "out") == expected


def start(
    spec: Path, directory: Path, *arguments: str, limit: Callable[[], None] | None = None
) -> subprocess.Popen[str]:
    """``pyengine table`` with a slow solver, in a process of its own."""

    def prepare() -> None:
        # what runs in the background of a shell inherits deafness to interrupts
        signal.signal(signal.SIGINT, signal.SIG_DFL)
        if limit is not None:
            limit()

    # bytecode that is cut off by a limit on files would break every later process
    own = {
        "PYTHONPATH": os.pathsep.join([*sys.path, str(TESTS)]),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    environment = {**os.environ, **own}
    if limit is not None:  # which a child that measures its coverage would run into itself
        environment.pop("COVERAGE_PROCESS_CONFIG", None)
    return subprocess.Popen(
        [sys.executable, TESTS / "slow_table.py", spec, "-o", directory, *arguments],
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=prepare,
    )


def wait_for(condition: Callable[[], bool], seconds: float = 30.0) -> None:
    deadline = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < deadline, "it does not happen"
        time.sleep(0.005)


def has_kept(directory: Path, number: int) -> Callable[[], bool]:
    return lambda: len(records_under_way(directory)) >= number


@pytest.mark.parametrize("workers", ["0", "2"])
def test_killed_run_loses_nothing(
    spec: Path, expected: dict[str, bytes], tmp_path: Path, log: Path, workers: str
) -> None:
    directory = tmp_path / "out"
    held = hold(log, 12)
    process = start(spec, directory, "--workers", workers)
    wait_for(has_kept(directory, 4))
    process.kill()
    process.communicate()
    held.unlink()
    done = kept(directory)
    assert 4 <= len(done) < UNITS
    assert not (directory / "table.csv").exists()
    before = computed(log)
    resumed = start(spec, directory, "--workers", workers)
    _, messages = resumed.communicate()
    assert resumed.returncode == 0
    assert " from an earlier run)" in messages
    assert content(directory) == expected
    assert not (directory / JOURNAL).exists()
    # nothing that was done is done again
    assert done.isdisjoint(computed(log)[len(before) :])


def test_killed_run_leaves_no_workers(spec: Path, tmp_path: Path, log: Path) -> None:
    directory = tmp_path / "out"
    hold(log, 12)
    process = start(spec, directory, "--workers", "2")
    found: list[dict[str, Any]] = []

    def two() -> bool:
        found[:] = records_under_way(directory)
        return len(found) >= 2

    wait_for(two)
    workers = {int(record["where"].rsplit(":", 1)[1]) for record in found}
    assert process.pid not in workers
    process.kill()
    process.communicate()
    wait_for(lambda: not any(is_alive(pid) for pid in workers))


@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGKILL])
def test_workers_that_do_not_listen_end_with_the_run(
    spec: Path, tmp_path: Path, log: Path, monkeypatch: pytest.MonkeyPatch, how: signal.Signals
) -> None:
    monkeypatch.setenv(slow_table.SOLVER, "deaf")
    process = start(spec, tmp_path / "out", "--workers", "2")
    wait_for(lambda: len(list(log.parent.glob("log.*"))) == 2)
    workers = [int(path.suffix[1:]) for path in log.parent.glob("log.*")]
    process.send_signal(how)
    process.communicate()
    wait_for(lambda: not any(is_alive(pid) for pid in workers), seconds=20.0)


def test_half_a_result_does_not_keep_the_run(tmp_path: Path) -> None:
    """A worker that is ended while it sends leaves the executor with half of what it reads."""
    code = "import sys, slow_table; slow_table.abandon_a_worker_that_sends(sys.argv[1])"
    subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "sends")],
        cwd=Path(__file__).parent,
        check=True,
        timeout=30.0,
    )


def is_alive(pid: int) -> bool:
    try:
        state = Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rsplit(")", 1)[1].split()[0]
    except FileNotFoundError:
        return False
    return state != "Z"


@pytest.mark.parametrize("workers", ["0", "2"])
def test_interrupt_tells_how_to_go_on(
    spec: Path, expected: dict[str, bytes], tmp_path: Path, log: Path, workers: str
) -> None:
    directory = tmp_path / "out"
    hold(log, 12)
    process = start(spec, directory, "--workers", workers)
    wait_for(has_kept(directory, 4))
    process.send_signal(signal.SIGINT)
    _, messages = process.communicate()
    assert process.returncode == 130
    last = messages.splitlines()[-1]
    assert last.startswith("pyengine: interrupted; ")
    assert last.endswith(
        f"values are kept in {directory / JOURNAL}; the same command goes on from there"
    )
    assert "Traceback" not in messages
    assert main(["table", str(spec), "-o", str(directory), "--workers", "0"]) == 0
    assert content(directory) == expected


def test_killed_worker_loses_nothing(
    specification: Specification, expected: dict[str, bytes], tmp_path: Path, log: Path
) -> None:
    directory = tmp_path / "out"
    assert run(specification, directory, workers=2, solver=slow_table.dies_once) == 0
    assert Path(f"{log}.died").exists()
    assert content(directory) == expected


def test_unit_that_kills_every_worker_ends_the_run(
    specification: Specification,
    expected: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("pyengine.workbench.tables.execute.BREAKS", 1)
    directory = tmp_path / "out"
    with pytest.raises(WorkersError, match=r"died 2 times in a row .* at: runs"):
        run(specification, directory, workers=1, solver=slow_table.always_dies)
    assert 7 not in kept(directory)
    assert len(kept(directory)) >= 7
    assert run(specification, directory, workers=0) == 0
    assert content(directory) == expected


def test_a_journal_that_is_cut_off_is_refused(tmp_path: Path) -> None:
    """What a disk loses of a file is not taken for work that was not done."""
    path = tmp_path / JOURNAL
    with Journal(path, {"run": 1}) as journal:
        journal.append([{"unit": number} for number in range(500)])
    whole = path.read_bytes()
    with Journal(path, {"run": 1}) as journal:
        assert [record["unit"] for record in journal.found] == list(range(500))
    for cut in (10, 100, 4096, len(whole) // 2, len(whole) - 4096):
        path.write_bytes(whole[:cut])
        with pytest.raises((JournalError, OSError), match=JOURNAL):
            Journal(path, {"run": 1})


def interrupted(spec: Path, directory: Path, log: Path) -> None:
    """Leave a journal of an interrupted run beside an older table."""
    directory.mkdir()
    hold(log, 12)
    for name in FILES:
        (directory / name).write_text("old")
    process = start(spec, directory, "--workers", "0")
    wait_for(has_kept(directory, 2))
    process.kill()
    process.communicate()


def untouched(directory: Path) -> bool:
    return all((directory / name).read_text() == "old" for name in FILES)


def test_changed_specification(
    spec: Path, tmp_path: Path, log: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "out"
    interrupted(spec, directory, log)
    journal = (directory / JOURNAL).read_bytes()
    spec.write_text(SPEC.replace("1e-3", "1e-4"), encoding="utf-8")
    assert main(["table", str(spec), "-o", str(directory)]) == 2
    message = capsys.readouterr().err
    assert "an interrupted run of another table left this (specification " in message
    assert "--restart" in message
    assert message.count("\n") == 1
    assert untouched(directory)
    assert (directory / JOURNAL).read_bytes() == journal
    assert main(["table", str(spec), "-o", str(directory), "--restart"]) == 0
    assert '"at": 0.0001,' in (directory / "table.jsonl").read_text()


def test_other_version(
    spec: Path,
    tmp_path: Path,
    log: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    directory = tmp_path / "out"
    interrupted(spec, directory, log)
    monkeypatch.setattr("pyengine.workbench.tables.run.__version__", "99")
    assert main(["table", str(spec), "-o", str(directory)]) == 2
    assert ", now 99)" in capsys.readouterr().err
    assert untouched(directory)


def test_foreign_file_is_no_journal(tmp_path: Path) -> None:
    path = tmp_path / JOURNAL
    path.write_text("dear diary\n")
    with pytest.raises(JournalError, match="not a journal of this program"):
        Journal(path, {})
    assert path.read_text() == "dear diary\n"


def test_two_runs_in_one_directory(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with Journal(tmp_path / JOURNAL, {}):
        assert main(["table", str(spec), "-o", str(tmp_path)]) == 2
        assert "another run is writing this table" in capsys.readouterr().err


def test_full_disk(spec: Path, expected: dict[str, bytes], tmp_path: Path) -> None:
    """A limit on the size of files stands for the end of the disk; both are errors of write."""
    directory = tmp_path / "out"
    directory.mkdir()
    for name in FILES:
        (directory / name).write_text("old")

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (16_384, resource.RLIM_INFINITY))

    process = start(spec, directory, "--workers", "0", limit=limit)
    _, messages = process.communicate()
    assert process.returncode == 2
    assert messages == f"pyengine: error: {directory / JOURNAL}: disk I/O error\n"
    assert untouched(directory)
    done = kept(directory)
    assert 0 < len(done) < UNITS
    assert main(["table", str(spec), "-o", str(directory), "--workers", "0"]) == 0
    assert content(directory) == expected


def test_disk_full_at_the_end(
    spec: Path,
    expected: dict[str, bytes],
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    directory = tmp_path / "out"
    directory.mkdir()
    for name in FILES:
        (directory / name).write_text("old")

    def fsync(descriptor: int) -> None:
        if ".tmp" in os.readlink(f"/proc/self/fd/{descriptor}"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(files.os, "fsync", fsync)
    assert main(["table", str(spec), "-o", str(directory), "--workers", "0"]) == 2
    assert capsys.readouterr().err.endswith("table.csv: No space left on device\n")
    assert untouched(directory)
    monkeypatch.undo()
    assert len(kept(directory)) == UNITS
    assert main(["table", str(spec), "-o", str(directory), "--workers", "0"]) == 0
    assert content(directory) == expected


def test_unwritable_directory(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["table", str(spec), "-o", "/proc/none"]) == 2
    assert capsys.readouterr().err.startswith("pyengine: error: /proc/none: ")


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["--workers", "x"], "must be an integer >= 0, got 'x'"),
        (["--workers", "-1"], "must be an integer >= 0, got '-1'"),
        (["--shard", "3"], "must be I/N with 1 <= I <= N, such as 3/8, got '3'"),
        (["--shard", "0/2"], "must be I/N with 1 <= I <= N"),
        (["--shard", "1/2", "--merge"], "not allowed with"),
        (["--workers", "2", "--dask", "tcp://127.0.0.1:1"], "not allowed with"),
    ],
)
def test_wrong_arguments(
    spec: Path, capsys: pytest.CaptureFixture[str], arguments: list[str], message: str
) -> None:
    with pytest.raises(SystemExit) as caught:
        main(["table", str(spec), "-o", "out", *arguments])
    assert caught.value.code == 2
    assert message in capsys.readouterr().err


def test_formats(spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = tmp_path / "out"
    assert main(["table", str(spec), "-o", str(out), "--formats", "csv,parquet"]) == 0
    names = {path.name for path in out.iterdir()}
    assert names == {"table.csv", "table.parquet", "metadata.json"}
    capsys.readouterr()
    assert main(["table", str(spec), "-o", str(out), "--formats", "xls"]) == 2
    message = capsys.readouterr().err
    assert (
        message == "pyengine: error: formats must be one of 'csv', 'jsonl', 'parquet', 'markdown', "
        "'latex'; got 'xls'\n"
    )


def test_shards_and_their_merger_change_no_byte(
    spec: Path, expected: dict[str, bytes], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "out"
    arguments = ["table", str(spec), "-o", str(directory)]
    assert main([*arguments, "--merge"]) == 2  # nothing there
    for shard in ("2/3", "1/3"):
        assert main([*arguments, "--shard", shard, "--workers", "0"]) == 0
    assert "once all shards are done, --merge makes the table" in capsys.readouterr().out
    assert main([*arguments, "--merge"]) == 2
    assert "not done: shard 3 of 3; run each again with --shard" in capsys.readouterr().err
    assert {path.name for path in directory.iterdir()} == {
        f"table.shard-{index}-of-3.journal" for index in (1, 2)
    }
    assert main([*arguments, "--shard", "3/3", "--workers", "0"]) == 0
    assert main([*arguments, "--shard", "3/3"]) == 0  # again: nothing to do
    assert main([*arguments, "--merge", "--workers", "2"]) == 2
    assert main([*arguments, "--merge"]) == 0
    assert content(directory) == expected
    assert {path.name for path in directory.iterdir()} == {*FILES, "metadata.json"}


def test_merging_sees_what_does_not_belong_together(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    directory = tmp_path / "out"
    arguments = ["table", str(spec), "-o", str(directory)]
    for shard in ("1/2", "2/2", "1/3"):
        assert main([*arguments, "--shard", shard, "--workers", "0"]) == 0
    assert main([*arguments, "--merge"]) == 2
    assert "shards of 2 and of 3 of a table" in capsys.readouterr().err
    (directory / "table.shard-1-of-3.journal").unlink()
    with Journal(directory / "table.shard-2-of-2.journal", {}) as journal:
        journal.append([])
        assert main([*arguments, "--merge"]) == 2
        assert "another run is writing this table" in capsys.readouterr().err
    spec.write_text(SPEC.replace("1e-3", "1e-4"), encoding="utf-8")
    assert main([*arguments, "--merge"]) == 2
    assert "an interrupted run of another table left this" in capsys.readouterr().err


@pytest.mark.parametrize("number", [1, 2, 5, 36, 100])
def test_shards_are_all_of_the_table(specification: Specification, number: int) -> None:
    for work in (units.units(specification), units.units(parse(REFERENCE, "test"))):
        shards = [units.shard_of(work, index, number) for index in range(1, number + 1)]
        together = sorted(unit.index for shard in shards for unit in shard)
        assert together == list(range(len(work)))
        fair = -(-len(work) // number)
        assert max(map(len, shards)) <= 2 * fair


def test_tables_need_nothing_of_posix(spec: Path, tmp_path: Path) -> None:
    """Modules that Windows lacks are hidden, from workers as well."""
    hidden = tmp_path / "hidden"
    hidden.mkdir()
    for name in ("fcntl", "resource", "termios", "pwd", "grp"):
        (hidden / f"{name}.py").write_text("raise ImportError('not on this system')\n")
    for program in (
        "import pkgutil, importlib, pyengine.tables, pyengine.cli\n"
        "for package in (pyengine.tables, pyengine.cli):\n"
        "    for found in pkgutil.iter_modules(package.__path__, package.__name__ + '.'):\n"
        "        importlib.import_module(found.name)\n",
        "import sys\nfrom pyengine.cli import main\n"
        "if __name__ == '__main__':\n"
        f"    sys.exit(main(['table', {str(spec)!r}, '-o', {str(tmp_path / 'out')!r}, "
        "'--workers', '2']))\n",
    ):
        script = tmp_path / "script.py"
        script.write_text(program)
        path = os.pathsep.join([str(hidden), str(TESTS.parent)])
        done = subprocess.run(
            [sys.executable, str(script)],
            env={**os.environ, "PYTHONPATH": path},
            capture_output=True,
            text=True,
            check=False,
        )
        assert done.returncode == 0, done.stderr
