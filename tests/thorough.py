"""Slow work done once for all processes of a run, or in part until a thorough run.

``PYENGINE_ALL_POINTS=1`` is the thorough run of ``make accuracy``: tests then have all their cases
and points. It computes again the truths of our own slow code that are stored in
``tests/data/slow_truths.json``, which must be the same. To store another truth, run its test with
``PYENGINE_TRUTHS=record``.
"""

from __future__ import annotations

import datetime
import fcntl
import functools
import hashlib
import importlib.metadata
import json
import math
import os
import pickle
from collections.abc import Callable, Iterable
from decimal import Decimal
from pathlib import Path
from typing import Any, TypeVar

import pytest

ALL = bool(os.environ.get("PYENGINE_ALL_POINTS"))
RECORD = os.environ.get("PYENGINE_TRUTHS") == "record"
TRUTHS = Path(__file__).parent / "data" / "slow_truths.json"
Case = TypeVar("Case")
PACKAGES = ("mpmath", "numpy", "python-flint", "scipy")


def once(directories: pytest.TempPathFactory, name: str, compute: Callable[[], Any]) -> Any:
    """Return the result of a function, which one process computes for all of a parallel run.

    The name identifies the value in all tests; the value must survive pickling.
    """
    directory = directories.getbasetemp()
    if "PYTEST_XDIST_WORKER" in os.environ:
        directory = directory.parent  # id of the workers' parent
    kept = directory / f"{name}.pickle"
    with (directory / f"{name}.lock").open("w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        if not kept.exists():
            unfinished = directory / f"{name}.unfinished"
            unfinished.write_bytes(pickle.dumps(compute()))
            unfinished.rename(kept)
    return pickle.loads(kept.read_bytes())


def some(cases: Iterable[Case], every: int) -> list[Case]:
    """Return all of many similar cases in a thorough run, else every nth, from the first one on.

    For cases that take seconds each, when a mistake would show in most of them.
    """
    return list(cases)[:: 1 if ALL else every]


@functools.cache
def _entries() -> dict[str, Any]:
    """Contents of the file, read once in a process."""
    entries: dict[str, Any] = json.loads(TRUTHS.read_text(encoding="utf-8"))
    return entries


def sampled(every: int) -> pytest.MarkDecorator:
    """Run all cases of a test in a thorough run, else one in so many at random.

    The sample is the same in each run, and a new one each day with ``PYENGINE_EXAMPLES=fresh``.
    """
    return pytest.mark.sampled(every)


def pytest_configure(config: Any) -> None:
    """Register the mark."""
    config.addinivalue_line("markers", "sampled(every): a random part; all with `make accuracy`")


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: Any, items: list[Any]) -> None:
    """Keep only the sample of each marked test."""
    if ALL:
        return
    cases: dict[str, list[Any]] = {}
    for item in items:
        if item.get_closest_marker("sampled"):
            cases.setdefault(item.nodeid.partition("[")[0], []).append(item)
    fresh = os.environ.get("PYENGINE_EXAMPLES") == "fresh"
    salt = datetime.date.today().isoformat() if fresh else ""
    left_out: list[Any] = []
    for found in cases.values():
        (every,) = found[0].get_closest_marker("sampled").args
        found.sort(key=lambda item: hashlib.sha256((salt + item.nodeid).encode()).digest())
        left_out += found[math.ceil(len(found) / every) :]
    if left_out:
        config.hook.pytest_deselected(items=left_out)
        gone = set(left_out)
        items[:] = [item for item in items if item not in gone]


def stored(key: str, compute: Callable[[], Any], digits: int | None = None) -> Any:
    """Return a truth of the file; in a thorough run compute it anew and hold both together.

    The key is the whole question, so that another one has no answer; values are strings, doubles
    or lists of them.  A number that is known to so many ``digits`` only is held to these.  What a
    thorough run asks alone need not be kept.
    """
    entries = _entries()
    if RECORD and key not in entries:
        versions = {name: importlib.metadata.version(name) for name in PACKAGES}
        made = datetime.date.today().isoformat()
        entries[key] = {"value": compute(), "made": made, "versions": versions}
        text = json.dumps(dict(sorted(entries.items())), indent=1, ensure_ascii=False)
        TRUTHS.write_text(text + "\n", encoding="utf-8")
    if not ALL:
        assert key in entries, f"no stored truth of {key!r}; see {Path(__file__).name}"
        return entries[key]["value"]
    value = compute()
    if key in entries:
        kept = entries[key]["value"]
        if digits is None:
            assert value == kept, key
        else:
            off = abs(Decimal(value) - Decimal(kept))
            assert off <= Decimal(10) ** (1 - digits) * abs(Decimal(kept)), (key, value, kept)
    return value
