"""``--processor-limits`` fails a run of tests that takes too much processor time.

Processor time, child processes included, hardly depends on the load of the machine. It is divided
into tests and into fixtures that several tests share, which each process of a parallel run computes
again. ``tests/data/processor_limits.toml`` has the limit of one test or fixture, that of all
together, and the few that may take more, with the reason.
"""

from __future__ import annotations

import resource
import sys
import time
from collections import Counter
from collections.abc import Generator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LIST = Path(__file__).parent / "data" / "processor_limits.toml"
SHOWN = 15


def used() -> float:
    """Seconds that this process and its ended children have taken."""
    children = resource.getrusage(resource.RUSAGE_CHILDREN)
    return time.process_time() + children.ru_utime + children.ru_stime


class Limits(NamedTuple):
    """Seconds of processor time."""

    each: float
    all: float
    longer: dict[str, float]  # by the name of the test without its parameters, or of the fixture
    expected: float = 0.0  # of all together

    @classmethod
    def read(cls, path: Path) -> Limits:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
        entries = content.pop("longer", [])
        for entry in entries:
            assert set(entry) == {"name", "seconds", "why"}, entry
            assert entry["seconds"] > content["each"], entry
            assert len(entry["why"].split()) > 3, entry
        return cls(**content, longer={e["name"]: float(e["seconds"]) for e in entries})

    def of(self, name: str) -> float:
        return self.longer.get(name.partition("[")[0], self.each)


class Meter:
    """Measures tests and fixtures in this process, and sends the times along with the reports."""

    def __init__(self) -> None:
        self._mark = used()
        self._shared: dict[str, float] = {}  # used by fixtures since the mark

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Generator[None, Any, Any]:
        if fixturedef.scope == "function":
            return (yield)
        began, inner = used(), sum(self._shared.values())
        try:
            return (yield)
        finally:
            name = f"{fixturedef.baseid}::{fixturedef.argname}"
            spent = used() - began - (sum(self._shared.values()) - inner)
            self._shared[name] = self._shared.get(name, 0.0) + spent

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self) -> Generator[None, Any, Any]:
        self._mark = used()
        return (yield)

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_makereport(self, item: Any) -> Generator[None, Any, Any]:
        report = yield
        mark = used()
        shared, self._shared = self._shared, {}
        own = mark - self._mark - sum(shared.values())
        report.processor_time = {item.nodeid: own, **shared}
        self._mark = mark
        return report


class Judge:
    """Adds up the times of all processes, and fails a run that exceeds a limit."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.limits = Limits.read(path)
        self.seconds: Counter[str] = Counter()
        self.largest: dict[str, float] = {}  # of a fixture in one process

    def pytest_runtest_logreport(self, report: Any) -> None:
        for name, seconds in getattr(report, "processor_time", {}).items():
            self.seconds[name] += seconds
            once = self.seconds[name] if name == report.nodeid else seconds
            self.largest[name] = max(once, self.largest.get(name, 0.0))

    def faults(self) -> list[str]:
        found = [
            f"{name}: {seconds:.1f} s, the limit is {self.limits.of(name):g} s"
            for name, seconds in self.largest.items()
            if seconds > self.limits.of(name)
        ]
        total = self.seconds.total()
        if total > self.limits.all:
            found.append(f"all together: {total:.0f} s, the limit is {self.limits.all:g} s")
        return found

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: Any) -> None:
        if self.faults() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        terminalreporter.section(f"processor time: {self.seconds.total():.0f} s")
        for name, seconds in self.seconds.most_common(SHOWN):
            terminalreporter.line(f"{seconds:7.1f} s  {name}")
        if faults := self.faults():
            terminalreporter.section(f"above the limits of {self.path.name}", red=True)
            for line in faults:
                terminalreporter.line(line)


def pytest_addoption(parser: Any) -> None:
    parser.addoption(
        "--processor-limits",
        action="store_true",
        help="print what took most processor time, and fail above the limits",
    )
    parser.addoption("--limits-list", type=Path, default=LIST, help=f"the limits; {LIST.name}")


def pytest_configure(config: Any) -> None:
    if not config.getoption("--processor-limits"):
        return
    config.pluginmanager.register(Meter())
    if not hasattr(config, "workerinput"):  # workers send their reports to the first process
        config.pluginmanager.register(Judge(config.getoption("--limits-list")))
