"""Tables on a dask.distributed cluster: a scheduler and two workers, here, as real processes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
import slow_table
from test_table_runs import (
    FILES,
    REFERENCE,
    SPEC,
    TESTS,
    UNITS,
    computed,
    has_kept,
    hold,
    kept,
    start,
    wait_for,
)

from pyengine.cli import main
from pyengine.workbench.tables.run import JOURNAL, run
from pyengine.workbench.tables.spec import parse

pytest.importorskip("distributed")


class Cluster:
    """Scheduler and workers on the loopback interface."""

    def __init__(self, directory: Path, log: Path) -> None:
        self.file = directory / "scheduler.json"
        self.directory = directory
        self.environment = {
            **os.environ,
            "PYTHONPATH": os.pathsep.join([*sys.path, str(TESTS)]),
            slow_table.LOG: str(log),
        }
        self.processes: list[subprocess.Popen[bytes]] = []
        here = ["--host", "127.0.0.1", "--no-dashboard", "--scheduler-file", str(self.file)]
        self._start("scheduler", [*here, "--port", "0"])
        self.workers = []
        for number in range(2):
            own = [
                "--no-nanny",
                "--nthreads",
                "1",
                "--local-directory",
                str(directory / f"{number}"),
            ]
            self.workers.append(self._start("worker", [*here, *own]))
        wait_for(lambda: self.file.exists() and self.file.stat().st_size > 0)
        self.address = json.loads(self.file.read_text(encoding="utf-8"))["address"]

    def _start(self, what: str, arguments: list[str]) -> subprocess.Popen[bytes]:
        with (self.directory / "messages").open("ab") as messages:
            process = subprocess.Popen(
                [
                    sys.executable,
                    "-m",
                    f"distributed.cli.dask_{what}",
                    "--no-dashboard",
                    *arguments,
                ],
                env=self.environment,
                stdout=messages,
                stderr=messages,
            )
        self.processes.append(process)
        return process

    def stop(self) -> None:
        for process in reversed(self.processes):
            process.kill()
            process.wait()


@pytest.fixture
def log(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    path = tmp_path / "log"
    path.touch()
    monkeypatch.setenv(slow_table.LOG, str(path))
    return path


@pytest.fixture
def cluster(tmp_path: Path, log: Path) -> Iterator[Cluster]:
    directory = tmp_path / "cluster"
    directory.mkdir()
    found = Cluster(directory, log)
    yield found
    found.stop()


def test_killed_worker_and_killed_run_change_no_byte(
    cluster: Cluster, tmp_path: Path, log: Path
) -> None:
    # values that share work, with nobody killed
    reference = parse(REFERENCE, "test")
    assert run(reference, tmp_path / "truth" / "dask", dask=cluster.address) == 0
    assert run(reference, tmp_path / "truth" / "here", workers=0) == 0
    for name in FILES:
        found, truth = (tmp_path / "truth" / where / name for where in ("dask", "here"))
        assert found.read_bytes() == truth.read_bytes()

    spec = tmp_path / "spec.toml"
    spec.write_text(SPEC, encoding="utf-8")
    directory = tmp_path / "out"

    # the run is killed
    held = hold(log, 12)
    process = start(spec, directory, "--dask", cluster.address)
    wait_for(has_kept(directory, 4))
    process.kill()
    process.communicate()
    done = kept(directory)
    assert 4 <= len(done) < UNITS - 6
    before = len(computed(log))
    hold(log, before + 12)

    # the next one goes on, and loses a worker
    resumed = start(spec, directory, "--dask", cluster.address)
    wait_for(has_kept(directory, len(done) + 4))
    cluster.workers[0].kill()
    held.unlink()
    _, messages = resumed.communicate()
    assert resumed.returncode == 0, messages
    assert cluster.workers[1].poll() is None
    assert not (directory / JOURNAL).exists()

    metadata = json.loads((directory / "metadata.json").read_text(encoding="utf-8"))
    assert len({unit["where"] for unit in metadata["units"]}) == 2
    again = computed(log)[before:]
    assert done.isdisjoint(again)
    assert run(parse(SPEC, "test"), tmp_path / "expected", workers=0) == 0
    for name in FILES:
        assert (directory / name).read_bytes() == (tmp_path / "expected" / name).read_bytes()


def test_no_scheduler(tmp_path: Path) -> None:
    spec = tmp_path / "spec.toml"
    spec.write_text(SPEC, encoding="utf-8")
    code = (
        "import sys; from pyengine.tables import pools; pools.CONNECT_SECONDS = 0.5; "
        "from pyengine.cli import main; sys.exit(main(sys.argv[1:]))"
    )
    found = subprocess.run(
        [
            sys.executable,
            "-c",
            code,
            "table",
            spec,
            "-o",
            tmp_path / "out",
            "--dask",
            "tcp://127.0.0.1:1",
        ],
        env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path)},
        capture_output=True,
        text=True,
        check=False,
    )
    assert found.returncode == 2
    assert "pyengine: error: no dask scheduler answers at tcp://127.0.0.1:1" in found.stderr
    assert "Traceback" not in found.stderr
    assert main(["table", str(spec), "-o", str(tmp_path / "out"), "--workers", "0"]) == 0
