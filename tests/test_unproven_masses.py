"""Laws whose masses nobody has proven: no answer about them is called proven."""

from __future__ import annotations

from typing import Any

import pytest
from scipy import stats
from thorough import sampled

import pyengine as pe
from pyengine.api import answers

LOGISTIC = pe.from_distributions(stats.logistic(), stats.logistic(0.2))
RATIO = pe.from_log_likelihood_ratio(lambda x: 0.3 * x - 0.045, stats.norm())
SGD = pe.dp_sgd(noise_multiplier=2, sampling_probability="0.05", steps=20)
RUNS = {
    "one": LOGISTIC.composed(1),
    "two": LOGISTIC.composed(2),
    "twelve": LOGISTIC.composed(12),
    "many": LOGISTIC.composed(300),
    "two on samples": LOGISTIC.poisson_sampled(0.1).composed(2),
    "many on samples": LOGISTIC.poisson_sampled(0.1).composed(300),
    "batches": LOGISTIC.sampled_without_replacement(batch_size=3, dataset_size=30).composed(5),
    "a ratio": RATIO.composed(3),
    "many of a ratio": RATIO.composed(300),
    "beside Gaussian steps": LOGISTIC.composed(5) + pe.GaussianMechanism(3).composed(2),
    "beside sampled steps": LOGISTIC.composed(2) + SGD,
    "beside an epoch": LOGISTIC.composed(2) + pe.dp_sgd_allocated(2.0, 10, 1),
    "beside randomized response": LOGISTIC.composed(3) + pe.RandomizedResponse(0.6),
    "beside both": LOGISTIC.composed(2) + SGD + pe.RandomizedResponse(0.6),
    "beside Laplace steps": LOGISTIC.composed(2) + pe.LaplaceMechanism(2).composed(3),
    "of two kinds": LOGISTIC.composed(2) + RATIO.composed(2),
}
ASKED = (("delta", 0.3), ("epsilon", 1e-3), ("gamma_bound", 0.01), ("trade_off", 0.7))


@sampled(2)
@pytest.mark.parametrize("name", RUNS)
@pytest.mark.parametrize("adjacency", ["add", "remove", "add_remove"])
@pytest.mark.parametrize("method", ["auto", "certified", "lattice"])
def test_nothing_is_called_proven(name: str, adjacency: str, method: str) -> None:
    run: Any = RUNS[name]
    for question, x in ASKED:
        try:
            _, _, proven = answers(question, run, [x], adjacency=adjacency, method=method)
        except pe.AccuracyError:
            continue
        assert not any(proven)
        with pytest.raises(pe.AccuracyError, match=r"proves|has no bracket"):
            getattr(pe, question)(run, x, adjacency=adjacency, bounds=True)
