"""The alarm for tests that take long rings, in one process and in several."""

from __future__ import annotations

from pathlib import Path

import pytest
from plugin_run import WORKERS, plugin_run
from processor_time import Limits

TESTS = Path(__file__).parent
MODULE = """
import subprocess, sys, time
import pytest

BURN = "import time\\nwhile time.process_time() < {}: pass"

def burn(seconds):
    end = time.process_time() + seconds
    while time.process_time() < end:
        pass

@pytest.fixture(scope="module")
def shared():
    burn(0.25)

def test_quick():
    time.sleep(0.3)  # takes no processor time

def test_with_what_is_shared(shared):
    pass

@pytest.mark.parametrize("seconds", [0.3])
def test_long(seconds):
    burn(seconds)

def test_child():
    subprocess.run([sys.executable, "-S", "-c", BURN.format(0.35)], check=True)
"""


def outcome(directory: Path, limits: str, *options: str) -> tuple[int, list[str], str]:
    (directory / "test_module.py").write_text(MODULE)
    listed = directory / "limits.toml"
    listed.write_text(limits)
    words = ("-q", "--processor-limits", f"--limits-list={listed}", *options)
    code, printed = plugin_run(directory, "processor_time", *words)
    _, _, faults = printed.partition("above the limits")
    return code, sorted(x.partition(": ")[0] for x in faults.splitlines()[1:-1]), printed


@WORKERS
def test_what_takes_long_fails_the_run(tmp_path: Path, options: tuple[str, ...]) -> None:
    code, faults, printed = outcome(tmp_path, "each = 0.2\nall = 100.0\n", *options)
    assert code == 1, printed
    long = ["test_child", "test_long[0.3]", "shared"]
    assert faults == sorted(f"test_module.py::{name}" for name in long), printed
    assert "4 passed" in printed


@pytest.mark.parametrize("name", ["processor_limits.toml", "thorough_limits.toml"])
def test_limits_leave_room_and_are_not_far(name: str) -> None:
    """What is expected says how long a run takes, so it may not stay behind."""
    limits = Limits.read(TESTS / "data" / name)
    assert limits.expected < limits.all <= 2.0 * limits.expected


def test_listed_names_and_the_sum(tmp_path: Path) -> None:
    entry = '[[longer]]\nname = "test_module.py::{}"\nseconds = 50.0\nwhy = "it is of this test"\n'
    longer = "".join(entry.format(name) for name in ("test_child", "test_long", "shared"))
    code, faults, printed = outcome(tmp_path, "each = 0.2\nall = 100.0\n" + longer)
    assert code == 0, printed
    assert not faults
    code, faults, printed = outcome(tmp_path, "each = 50.0\nall = 0.6\n")
    assert code == 1, printed
    assert faults == ["all together"], printed


@pytest.mark.parametrize("listed", ["processor_limits.toml", "thorough_limits.toml"])
def test_the_limits_are_of_tests_that_exist(listed: str) -> None:
    from processor_time import Limits

    for name in Limits.read(TESTS / "data" / listed).longer:
        path, _, function = name.partition("::")
        assert f"def {function}(" in (TESTS.parent / path).read_text(encoding="utf-8"), name
