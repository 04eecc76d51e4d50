"""Small models with the gradient of every record, in NumPy.

A model is a function (parameters, x, y) -> gradients of shape (records, parameters).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Gradients = Callable[[FloatArray, FloatArray, FloatArray], FloatArray]


@dataclass(frozen=True)
class Model:
    """Start of the parameters and gradient of every record."""

    start: FloatArray
    gradients: Gradients


def linear(features: int) -> Model:
    """Linear regression with squared loss; y is a number."""
    return Model(np.zeros(features + 1), _linear)


def softmax(features: int, classes: int) -> Model:
    """Softmax regression; y is a class."""
    return Model(np.zeros((features + 1) * classes), partial(_softmax, classes=classes))


def hidden_layer(features: int, width: int, classes: int, rng: np.random.Generator) -> Model:
    """One hidden layer of tanh units below a softmax; y is a class."""
    first = rng.normal(0.0, 1.0 / np.sqrt(features + 1), (features + 1) * width)
    start = np.concatenate([first, np.zeros((width + 1) * classes)])
    return Model(start, partial(_hidden_layer, width=width, classes=classes))


def _with_one(x: FloatArray) -> FloatArray:
    return np.column_stack([x, np.ones(len(x))])


def _linear(parameters: FloatArray, x: FloatArray, y: FloatArray) -> FloatArray:
    inputs = _with_one(x)
    return (inputs @ parameters - y)[:, None] * inputs


def _class_errors(logits: FloatArray, y: FloatArray) -> FloatArray:
    weights = np.exp(logits - logits.max(axis=1, keepdims=True))
    errors = weights / weights.sum(axis=1, keepdims=True)
    errors[np.arange(len(y)), y.astype(int)] -= 1.0
    return errors


def _softmax(parameters: FloatArray, x: FloatArray, y: FloatArray, classes: int) -> FloatArray:
    inputs = _with_one(x)
    errors = _class_errors(inputs @ parameters.reshape(-1, classes), y)
    return np.einsum("ni,nc->nic", inputs, errors).reshape(len(x), -1)


def _hidden_layer(
    parameters: FloatArray, x: FloatArray, y: FloatArray, width: int, classes: int
) -> FloatArray:
    inputs = _with_one(x)
    split = inputs.shape[1] * width
    first = parameters[:split].reshape(-1, width)
    second = parameters[split:].reshape(-1, classes)
    active = np.tanh(inputs @ first)
    errors = _class_errors(_with_one(active) @ second, y)
    back = (errors @ second[:-1].T) * (1.0 - active**2)
    return np.concatenate(
        [
            np.einsum("ni,nw->niw", inputs, back).reshape(len(x), -1),
            np.einsum("nw,nc->nwc", _with_one(active), errors).reshape(len(x), -1),
        ],
        axis=1,
    )
