"""Arrays of other libraries: what comes in, what comes out, and what is refused in words."""

from __future__ import annotations

import importlib
from typing import Any, get_args

import numpy as np
import pytest

import pyengine as pe
from pyengine.engines.registry import ADJACENCIES, METHODS
from pyengine.threat_models import THREAT_MODELS
from pyengine.typing import Adjacency, Method, ThreatModelWord

RUN = pe.dp_sgd(noise_multiplier=1.0, sampling_probability=0.01, steps=1000)
KAPPA = np.array([0.001, 0.01, 0.1])
ASKED = {
    "trade_off": pe.trade_off,
    "gamma_bound": pe.gamma_bound,
    "delta": pe.delta,
    "epsilon": pe.epsilon,
    "bayes_risk": pe.bayes_risk,
}


def tensors(library: str) -> Any:
    """The module, or a skip where a library is not installed; `make peers` has both."""
    return pytest.importorskip(library)


def test_words_of_types_are_those_that_are_taken() -> None:
    assert get_args(Adjacency) == ADJACENCIES
    assert get_args(Method) == METHODS
    assert get_args(ThreatModelWord) == THREAT_MODELS


@pytest.mark.parametrize("name", ASKED)
def test_pandas_keeps_its_labels(name: str) -> None:
    pandas = pytest.importorskip("pandas")
    ask = ASKED[name]
    plain = np.asarray(ask(RUN, KAPPA))
    series = pandas.Series(KAPPA, index=["a", "b", "c"], name="asked")
    found = ask(RUN, series)
    assert isinstance(found, pandas.Series)
    assert (list(found.index), found.name, found.to_list()) == (list("abc"), name, plain.tolist())
    bounds = ask(RUN, series, bounds=True)
    assert [list(part.index) for part in bounds] == [list("abc")] * 3
    assert (bounds.lower <= bounds.upper).all()
    frame = pandas.DataFrame({"x": KAPPA[:2], "y": KAPPA[1:]}, index=[7, 9])
    found = ask(RUN, frame)
    assert (list(found.index), list(found.columns)) == ([7, 9], ["x", "y"])
    assert found.to_numpy().tolist() == np.asarray(ask(RUN, frame.to_numpy())).tolist()
    frame["answer"] = ask(RUN, frame["x"])
    assert frame["answer"].to_list() == plain[:2].tolist()


@pytest.mark.parametrize("library", ["torch", "jax.numpy"])
def test_tensors_come_in_as_their_numbers(library: str) -> None:
    tensor = getattr(tensors(library), "tensor" if library == "torch" else "array")
    plain = pe.gamma_bound(RUN, KAPPA.astype(np.float32))
    found = pe.gamma_bound(RUN, tensor(KAPPA.astype(np.float32)))
    assert type(found) is np.ndarray
    assert found.tolist() == plain.tolist()
    assert type(pe.delta(RUN, tensor(1.0))) is float


def test_gradients_are_refused_in_words() -> None:
    torch = tensors("torch")
    with pytest.raises(
        ValueError, match="kappa must be numbers that NumPy can read now: there are"
    ):
        pe.gamma_bound(RUN, torch.tensor(KAPPA, requires_grad=True))


def test_traced_arrays_are_refused_in_words() -> None:
    jax = tensors("jax")
    numbers = importlib.import_module("jax.numpy").array(KAPPA)
    for traced in (jax.jit, jax.grad, jax.vmap):
        with pytest.raises(ValueError, match="kappa must be numbers that NumPy can read now"):
            traced(lambda kappa: pe.gamma_bound(RUN, kappa).sum())(numbers)
