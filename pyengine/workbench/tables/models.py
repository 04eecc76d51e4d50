"""Threat models as words in specifications and files."""

from __future__ import annotations

import re

from pyengine.mechanisms.threat_models import Relaxed, ThreatModel, threat_model_of

__all__ = ["model_of", "model_text"]

RELAXED = re.compile(r"relaxed *\( *(\d+) *(?:, *(weighted|mean) *)?\)", re.ASCII)


def model_of(text: object) -> ThreatModel:
    """Return the threat model that a word denotes, or raise ValueError.

    The words are "dp", "relaxed", "relaxed(DIMENSION)" and "relaxed(DIMENSION, COMBINATION)".
    """
    if isinstance(text, str):
        found = RELAXED.fullmatch(text)
        if found is not None:
            return Relaxed(int(found[1]), found[2] or "weighted")
        if text in ("dp", "relaxed"):
            return threat_model_of(text)
    raise ValueError(
        "threat_model must be 'dp', 'relaxed', 'relaxed(DIMENSION)' or 'relaxed(DIMENSION, "
        f"COMBINATION)', got {text!r}"
    )


def model_text(text: object) -> str:
    """Return the canonical word of a threat model, or raise ValueError."""
    model = model_of(text)
    if not isinstance(model, Relaxed):
        return "dp"
    if model == Relaxed():
        return "relaxed"
    mean = ", mean" if model.combination == "mean" else ""
    return f"relaxed({model.dimension}{mean})"
