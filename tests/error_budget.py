"""The error budget: no fixed tolerances, but the error measured today and an alarm at 4 times it.

``tests/data/error_budget.toml`` holds one number per key, the largest error that the test of that
key measured when the entry was made.  A test calls ``check(key, measured)`` and fails above 4 times
the entry, which leaves room for another libm or compiler but not for a lost digit.

Run the tests with ``PYENGINE_ERROR_BUDGET=record`` to write what they measure: new keys are added
and entries are lowered, never raised.  To raise one, edit the file by hand and say why in the
commit.  A key is ``section.name``; say in the name what is measured (``special.ndtr_left_ulp``).

An entry that is far above what is measured is an alarm that cannot ring.  ``make accuracy`` runs
all tests of the budget on all of their points with ``PYENGINE_MEASURED=FILE``, which collects what
they measure.  ``python tests/error_budget.py FILE`` then puts it into ``error_measured.toml`` and
fails if an entry is more than 4 times as large; tests/test_error_budget.py holds both together.
"""

from __future__ import annotations

import json
import os
import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Any

import numpy as np

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PATH = Path(__file__).parent / "data" / "error_budget.toml"
MEASURED = Path(__file__).parent / "data" / "error_measured.toml"
FACTOR = 4.0
MEASURED_HEADER = """\
# The largest error that each test measured on all of its points, when `make accuracy` ran last.
"""
HEADER = """\
# The largest error that each test measured when its entry was made; it fails above 4 times that.
# Written by the tests run with PYENGINE_ERROR_BUDGET=record, see tests/error_budget.py.
"""

Budget = dict[str, dict[str, float]]


def _load(path: Path | None = None) -> Budget:
    path = PATH if path is None else path
    return tomllib.loads(path.read_text(encoding="utf-8")) if path.exists() else {}


def _dump(budget: Budget, header: str = HEADER) -> str:
    lines = [header]
    for section in sorted(budget):
        lines.append(f"[{section}]")
        lines += [f'"{name}" = {value!r}' for name, value in sorted(budget[section].items())]
        lines.append("")
    return "\n".join(lines)


_recorded = _load()  # the budget when the run began
_worst: dict[tuple[str, str], float] = {}  # errors measured in this run


def _record(section: str, name: str) -> None:
    # Two digits, rounded up, so that the file does not change with every libm.
    worst = _worst[section, name]
    digits = float(f"{worst:.1e}")
    value = digits if digits >= worst else float(f"{worst * 1.05:.1e}")
    limit = _recorded.get(section, {}).get(name)
    budget = _load()
    budget.setdefault(section, {})[name] = value if limit is None else min(limit, value)
    PATH.write_text(_dump(budget), encoding="utf-8")


def check(key: str, measured: float, *, whole: bool = True) -> None:
    """Fail if an error exceeds 4 times its entry in the budget, or is NaN or negative.

    If a key ``section.name`` is checked several times, its entry is the largest error. Nothing is
    recorded unless the ``whole`` test is asked, not only some of its points.
    """
    section, _, name = key.partition(".")
    measured = float(measured)
    assert section, f"error budget: the key must be section.name, got {key!r}"
    assert name, f"error budget: the key must be section.name, got {key!r}"
    assert measured >= 0.0, f"{key}: the error must be a number >= 0, got {measured}"
    collected = os.environ.get("PYENGINE_MEASURED")
    if collected and whole:
        with open(collected, "a", encoding="utf-8") as file:
            file.write(json.dumps([section, name, measured]) + "\n")
    if os.environ.get("PYENGINE_ERROR_BUDGET") == "record" and whole:
        _worst[section, name] = max(measured, _worst.get((section, name), 0.0))
        _record(section, name)
    limit = _load().get(section, {}).get(name)
    assert limit is not None, f"{key}: no entry in {PATH.name}; see {Path(__file__).name}"
    assert measured <= FACTOR * limit, (
        f"{key}: error {measured:.3g} exceeds {FACTOR:g} times the recorded {limit:.3g}"
    )


def check_near(key: str, found: Any, truth: Any, *, absolute: bool = False) -> None:
    """The same for the largest error of some numbers, relative to those that are not 0."""
    exact = np.asarray(truth, dtype=float)
    size = np.where((exact == 0.0) | absolute, 1.0, np.abs(exact))
    check(key, float(np.max(np.abs(np.asarray(found, dtype=float) - exact) / size)))


def _two_digits(value: float) -> float:
    return float(f"{value:.1e}")


def slack(budget: Budget, measured: Budget) -> list[str]:
    """Name the entries that are far from what was measured, a line each.

    That is: more than 4 times as large, without a measured error, or measured but not in the
    budget.
    """
    found = []
    keys = {(s, n) for part in (budget, measured) for s, names in part.items() for n in names}
    for section, name in sorted(keys):
        entry, error = budget.get(section, {}).get(name), measured.get(section, {}).get(name)
        if entry is None or error is None:
            found.append(f"{section}.{name}: entry {entry}, measured {error}")
        elif entry > FACTOR * error:
            found.append(f"{section}.{name}: entry {entry:.2g} is above 4 times {error:.2g}")
    return found


def publish(lines: Iterable[str]) -> list[str]:
    """Write collected errors to ``error_measured.toml`` and return the result of `slack`."""
    worst: dict[tuple[str, str], float] = {}
    for line in lines:
        section, name, error = json.loads(line)
        worst[section, name] = max(error, worst.get((section, name), 0.0))
    measured = _load(MEASURED)
    for (section, name), error in worst.items():
        measured.setdefault(section, {})[name] = _two_digits(error)
    MEASURED.write_text(_dump(measured, MEASURED_HEADER), encoding="utf-8")
    return slack(_load(), measured)


if __name__ == "__main__":
    complaints = publish(Path(sys.argv[1]).read_text(encoding="utf-8").splitlines())
    print(*complaints, sep="\n")
    sys.exit(1 if complaints else 0)
