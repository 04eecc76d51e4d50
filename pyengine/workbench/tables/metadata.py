"""What made a table: specification, versions, machine, times; it differs from run to run."""

from __future__ import annotations

import importlib.metadata
import json
import os
import platform
from collections.abc import Iterable, Mapping
from datetime import datetime, timezone
from typing import Any

from pyengine._version import __version__
from pyengine.workbench.tables.spec import Specification

__all__ = ["metadata_text"]

PACKAGES = ("numpy", "cffi", "python-flint", "mpmath", "pyarrow", "distributed")


def metadata_text(
    specification: Specification,
    start: datetime,
    seconds: float,
    files: Mapping[str, str],
    records: Iterable[Mapping[str, Any]],
) -> str:
    """Everything that is needed to compute a table again, and what it cost, as JSON.

    Parameters
    ----------
    specification : Specification
        What was computed.
    start : datetime
        When, with its time zone.
    seconds : float
        How long this run took.
    files : mapping
        The SHA-256 of each file of the table.
    records : iterable of mapping
        Those of the units of work: ``unit``, ``seconds`` and ``where`` go into the file.
    """
    head = {
        "pyengine": __version__,
        "python": platform.python_version(),
        "packages": {name: version for name in PACKAGES if (version := _version(name))},
        "platform": platform.platform(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "time": start.astimezone(timezone.utc).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "specification": {
            "source": specification.source,
            "sha256": specification.sha256,
            "text": specification.text,
            "inputs": dict(specification.inputs),
        },
        "sha256": dict(files),
    }
    lines = [
        json.dumps(
            {
                "unit": record["unit"],
                "cells": len(record["cells"]),
                "seconds": record["seconds"],
                "where": record["where"],
            }
        )
        for record in records
    ]
    text = json.dumps(head, indent=2, ensure_ascii=False, allow_nan=False)
    body = ",\n    ".join(lines)
    return f'{text[:-2]},\n  "units": [\n    {body}\n  ]\n}}\n'


def _version(package: str) -> str | None:
    try:
        return importlib.metadata.version(package)
    except importlib.metadata.PackageNotFoundError:
        return None
