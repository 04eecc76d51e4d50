"""``--progress``: without a terminal, prints a line a minute instead of a dot for each test.

The first line says how many tests there are and how long a whole run takes, by the expected
processor time (tests/processor_time.py).
"""

from __future__ import annotations

import sys
import time
from collections.abc import Generator
from typing import Any

import pytest
from processor_time import LIST, Limits

EVERY = 60.0  # seconds


def processes(config: Any) -> int:
    """Number of processes that run tests: the workers of pytest-xdist, or this one."""
    return len(config.getoption("tx", None) or [None])


class Progress:
    """Counts finished tests, in the process that reports."""

    def __init__(self, config: Any) -> None:
        self.config = config
        self.began = self.said = time.monotonic()
        self.ended = self.failed = 0
        self.all = 0
        self.is_over = False

    def line(self, text: str) -> None:
        reporter = self.config.pluginmanager.get_plugin("terminalreporter")
        reporter.ensure_newline()
        reporter.write_line(text)
        reporter.flush()

    def start(self, tests: int) -> None:
        """Print how many tests there are, once that is known."""
        self.all = tests
        number = processes(self.config)
        limits = Limits.read(self.config.getoption("limits_list", LIST))
        minutes = limits.expected / number / 60.0
        cores = "1 free core" if number == 1 else f"{number} free cores"
        self.line(f"{tests:,} tests; a whole run takes about {minutes:.0f} min on {cores}")

    def pytest_collection_finish(self, session: Any) -> None:
        if session.items:
            self.start(len(session.items))

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        if not self.all:
            self.start(len(ids))

    @pytest.hookimpl(wrapper=True)
    def pytest_report_teststatus(self) -> Generator[None, Any, Any]:
        """Print no letters: failures get a line, and all results are counted."""
        status = yield
        return status if self.is_over else (status[0], "", "")

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self) -> None:
        """Name the outcomes again in the summary."""
        self.is_over = True

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.ended += report.when == "teardown"
        if report.failed:
            self.failed += 1
            self.line(f"FAILED {report.nodeid}")
        now = time.monotonic()
        if now - self.said >= EVERY:
            self.said = now
            self.line(
                f"{(now - self.began) / 60.0:.0f} min: "
                f"{self.ended:,} of {self.all:,} tests, {self.failed} failed"
            )


def pytest_addoption(parser: Any) -> None:
    parser.addoption(
        "--progress", action="store_true", help="a line a minute where output is no terminal"
    )


@pytest.hookimpl(trylast=True)  # after pytest-xdist has set its workers
def pytest_configure(config: Any) -> None:
    here = not hasattr(config, "workerinput")
    if here and config.getoption("--progress") and not sys.stdout.isatty():
        config.pluginmanager.register(Progress(config))
