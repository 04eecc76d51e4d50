"""``--only-listed-skips`` fails the run for skipped tests, which nobody sees fail.

Allowed reasons are in ``tests/data/allowed_skips.toml``, each with why nothing is lost.
"""

from __future__ import annotations

import os
import re
import sys
from pathlib import Path
from typing import Any

import pytest

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

LIST = Path(__file__).parent / "data" / "allowed_skips.toml"


def allowed(path: Path, environment: dict[str, str]) -> list[re.Pattern[str]]:
    """The patterns of the list, without those that the environment switches off."""
    entries = tomllib.loads(path.read_text(encoding="utf-8"))["skip"]
    for entry in entries:
        assert set(entry) <= {"reason", "why", "unless"}, entry
        assert len(entry["why"].split()) > 3, entry
    return [re.compile(e["reason"]) for e in entries if not environment.get(e.get("unless", ""))]


class ListedSkips:
    """Collects reasons of skipped tests and files, and fails a run with one that is not listed."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.allowed = allowed(path, dict(os.environ))
        self.unlisted: list[str] = []

    def note(self, report: Any) -> None:
        # expected failures are reported as skipped, too, but they have run
        if not report.skipped or hasattr(report, "wasxfail"):
            return
        detail = report.longrepr
        reason = str(detail[2] if isinstance(detail, tuple) else detail).removeprefix("Skipped: ")
        if not any(pattern.fullmatch(reason) for pattern in self.allowed):
            self.unlisted.append(f"{report.nodeid}: {reason}")

    def pytest_runtest_logreport(self, report: Any) -> None:
        self.note(report)

    def pytest_collectreport(self, report: Any) -> None:
        self.note(report)

    @pytest.hookimpl(trylast=True)
    def pytest_sessionfinish(self, session: Any) -> None:
        if self.unlisted and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: Any) -> None:
        if self.unlisted:
            terminalreporter.section(
                f"skipped for reasons that are not in {self.path.name}", red=True
            )
            for line in self.unlisted:
                terminalreporter.line(line)


def pytest_addoption(parser: Any) -> None:
    parser.addoption(
        "--only-listed-skips",
        action="store_true",
        help="fail if a test is skipped for a reason that is not in the list",
    )
    parser.addoption("--skips-list", type=Path, default=LIST, help=f"the list; {LIST.name}")


def pytest_configure(config: Any) -> None:
    # workers send their reports to the first process
    if config.getoption("--only-listed-skips") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(ListedSkips(config.getoption("--skips-list")))
