"""The words for proven bounds and for bounds that follow from an error estimate."""

from __future__ import annotations

__all__ = ["ESTIMATE", "PROVEN", "certainty"]

PROVEN, ESTIMATE = "proven", "estimate"


def certainty(certified: bool) -> str:
    """Return "proven" for certified bounds, otherwise "estimate"."""
    return PROVEN if certified else ESTIMATE
