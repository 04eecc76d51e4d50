"""The error budget: no fixed tolerances, but the error measured today and an alarm at 4 times it.

``tests/data/error_budget.toml`` holds one number per key, the largest error that the test of that
key measured when the entry was made.  A test calls ``check(key, measured)`` and fails above 4 times
the entry, which leaves room for another libm or compiler but not for a lost digit.

Run the tests with ``PYENGINE_ERROR_BUDGET=record`` to write what they measure: new keys are added
and entries are lowered, never raised.  To raise one, edit the file by hand and say why in the
commit.  A key is ``section.name``; say in the name what is measured (``special.ndtr_left_ulp``).
"""

from __future__ import annotations

import os
import sys
from pathlib import Path

if sys.version_info >= (3, 11):
    import tomllib
else:
    import tomli as tomllib

PATH = Path(__file__).parent / "data" / "error_budget.toml"
FACTOR = 4.0
HEADER = """\
# The largest error that each test measured when its entry was made; it fails above 4 times that.
# Written by the tests run with PYENGINE_ERROR_BUDGET=record, see tests/error_budget.py.
"""

Budget = dict[str, dict[str, float]]


def _load() -> Budget:
    return tomllib.loads(PATH.read_text(encoding="utf-8")) if PATH.exists() else {}


def _dump(budget: Budget) -> str:
    lines = [HEADER]
    for section in sorted(budget):
        lines.append(f"[{section}]")
        lines += [f'"{name}" = {value!r}' for name, value in sorted(budget[section].items())]
        lines.append("")
    return "\n".join(lines)


_recorded = _load()  # as it was when the run began
_worst: dict[tuple[str, str], float] = {}  # what this run has measured


def _record(section: str, name: str) -> None:
    # Two digits rounded up are enough, and keep the file from changing with every libm.
    worst = _worst[section, name]
    digits = float(f"{worst:.1e}")
    value = digits if digits >= worst else float(f"{worst * 1.05:.1e}")
    limit = _recorded.get(section, {}).get(name)
    budget = _load()
    budget.setdefault(section, {})[name] = value if limit is None else min(limit, value)
    PATH.write_text(_dump(budget), encoding="utf-8")


def check(key: str, measured: float) -> None:
    """Fail if an error exceeds 4 times its entry in the budget.

    Parameters
    ----------
    key : str
        ``section.name``; a key may be checked several times, its entry is then the largest.
    measured : float
        The error, not negative; NaN fails.
    """
    section, _, name = key.partition(".")
    measured = float(measured)
    assert section, f"error budget: the key must be section.name, got {key!r}"
    assert name, f"error budget: the key must be section.name, got {key!r}"
    assert measured >= 0.0, f"{key}: the error must be a number >= 0, got {measured}"
    if os.environ.get("PYENGINE_ERROR_BUDGET") == "record":
        _worst[section, name] = max(measured, _worst.get((section, name), 0.0))
        _record(section, name)
    limit = _load().get(section, {}).get(name)
    assert limit is not None, f"{key}: no entry in {PATH.name}; see {Path(__file__).name}"
    assert measured <= FACTOR * limit, (
        f"{key}: error {measured:.3g} exceeds {FACTOR:g} times the recorded {limit:.3g}"
    )
