"""The words for bounds that are proven and for bounds that follow from an estimate."""

from __future__ import annotations

__all__ = ["ESTIMATE", "PROVEN", "certainty"]

PROVEN, ESTIMATE = "proven", "estimate"


def certainty(certified: bool) -> str:
    """Return "proven" or "estimate" for bounds, by what their answer says of them."""
    return PROVEN if certified else ESTIMATE
