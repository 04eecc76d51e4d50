"""Checks of arguments, and grids of levels."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from pyengine.mechanisms.threat_models import Relaxed, ThreatModel, threat_model_of
from pyengine.numerics import functions as fn

__all__ = ["FloatArray", "levels_between", "relaxed_model"]

FloatArray = npt.NDArray[np.float64]


def relaxed_model(threat_model: str | ThreatModel) -> Relaxed:
    """Return the relaxed threat model of a word or an object."""
    model = threat_model_of(threat_model)
    if not isinstance(model, Relaxed):
        raise ValueError(f"threat_model must be the relaxed one, got {model}")
    return model


def levels_between(low: float, high: float, number: int) -> FloatArray:
    """Levels at equal distances on the scale log(α/(1 - α))."""
    ends = (fn.log(low) - fn.log1p(-low), fn.log(high) - fn.log1p(-high))
    logits = np.linspace(*ends, number)
    return np.asarray(
        np.where(
            logits < 0.0,
            fn.exp(-np.abs(logits)) / (1.0 + fn.exp(-np.abs(logits))),
            1.0 / (1.0 + fn.exp(-np.abs(logits))),
        )
    )
