"""What made a table: versions, machine, time and specification."""

from __future__ import annotations

import os
import platform
from datetime import datetime, timezone
from typing import Any

import numpy as np

from pyengine._version import __version__
from pyengine.tables.spec import Specification

__all__ = ["metadata", "provenance"]


def provenance() -> dict[str, str]:
    """Version of the package and what it ran on, as columns of a table."""
    return {"pyengine": __version__, "platform": platform.platform()}


def metadata(specification: Specification, start: datetime, seconds: float) -> dict[str, Any]:
    """Everything needed to compute a table again.

    Parameters
    ----------
    specification : Specification
        What was computed.
    start : datetime
        When, with its time zone.
    seconds : float
        How long it took.
    """
    return {
        "pyengine": __version__,
        "python": platform.python_version(),
        "numpy": np.__version__,
        "platform": platform.platform(),
        "machine": platform.machine(),
        "processors": os.cpu_count(),
        "time": start.astimezone(timezone.utc).isoformat(timespec="seconds"),
        "seconds": round(seconds, 3),
        "specification": {
            "source": specification.source,
            "sha256": specification.sha256,
            "text": specification.text,
        },
    }
