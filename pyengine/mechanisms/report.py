"""Mechanisms in words and numbers, for reports."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

from pyengine.mechanisms.core import (
    Mechanism,
    PoissonSampled,
    SampledWithoutReplacement,
    Step,
    steps_of,
)

__all__ = ["describe"]


def describe(mechanism: Mechanism) -> list[dict[str, Any]]:
    """Return the parameters of each kind of step.

    Parameters
    ----------
    mechanism : Mechanism
        What is released.

    Returns
    -------
    list of dict
        For each kind of step ``mechanism``, the name of its class, its parameters, those of its
        sampling, and ``steps``, the number of repetitions.
    """
    return [{**_parameters(step), "steps": number} for step, number in steps_of(mechanism)]


def _parameters(step: Step) -> dict[str, Any]:
    if isinstance(step, PoissonSampled):
        return {**_parameters(step.mechanism), "sampling_probability": step.probability}
    if isinstance(step, SampledWithoutReplacement):
        sizes = {"batch_size": step.batch_size, "dataset_size": step.dataset_size}
        return {**_parameters(step.mechanism), **sizes}
    values = {field.name: getattr(step, field.name) for field in fields(step)}
    return {"mechanism": type(step).__name__, **values}
