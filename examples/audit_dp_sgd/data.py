"""Three real data sets that come with scikit-learn, and a model for each."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from models import FloatArray, Model, hidden_layer, linear, softmax
from sklearn import datasets

NAMES = ("digits", "breast_cancer", "diabetes")


@dataclass(frozen=True)
class Task:
    """Standardised records and the model that is trained on them."""

    name: str
    x: FloatArray
    y: FloatArray
    model: Model


def load(name: str) -> Task:
    """Digits with softmax regression, breast cancer with a hidden layer, diabetes with a line."""
    x, y = getattr(datasets, f"load_{name}")(return_X_y=True)
    x = np.asarray(x, dtype=np.float64)
    spread = x.std(axis=0)
    x = (x - x.mean(axis=0)) / np.where(spread > 0.0, spread, 1.0)
    x /= np.sqrt(x.shape[1])  # records of length about 1
    y = np.asarray(y, dtype=np.float64)
    if name == "diabetes":
        return Task(name, x, (y - y.mean()) / y.std(), linear(x.shape[1]))
    classes = int(y.max()) + 1
    if name == "digits":
        return Task(name, x, y, softmax(x.shape[1], classes))
    return Task(name, x, y, hidden_layer(x.shape[1], 8, classes, np.random.default_rng(0)))
