"""Pictures of docs/schemes_at_equal_noise.md: δ(ε) of each scheme beside Poisson samples."""

from __future__ import annotations

from pathlib import Path

import pyengine as pe
from pyengine.plots import delta_figure, save

STEP = pe.GaussianMechanism(1.0)
UNEQUAL = [[1, 0.25, 0.25], [0.25, 1, 0.25], [0.25, 0.25, 1]]
POISSON = ("Poisson, p 1/10, 100 steps", pe.dp_sgd(1.0, "1/10", 100))
# of each section: the name of the scheme and its run, then Poisson's
RUNS: dict[str, tuple[tuple[str, pe.Mechanism], tuple[str, pe.Mechanism]]] = {
    "random_allocation": (
        ("random allocation, 10 epochs of 10", pe.dp_sgd_allocated(1.0, 10, 10)),
        POISSON,
    ),
    "without_replacement": (
        (
            "10 of 100 records, 100 steps",
            STEP.sampled_without_replacement(batch_size=10, dataset_size=100).composed(100),
        ),
        POISSON,
    ),
    "truncated_poisson": (
        (
            "Poisson cut at 15 of 100, 100 steps",
            STEP.truncated_poisson_sampled("1/10", batch_size=15, dataset_size=100).composed(100),
        ),
        POISSON,
    ),
    "groups": (
        ("three records of a user", pe.dp_sgd(1.0, "1/10", 100, group_size=3)),
        ("one record", pe.dp_sgd(1.0, "1/10", 100)),
    ),
    "banded": (
        ("two bands, 100 steps", pe.banded_matrix_factorization(1.0, "1/10", steps=100, bands=2)),
        POISSON,
    ),
    "matrix": (
        ("tree over 8 steps", pe.matrix_mechanism(1.0, pe.tree_aggregation_matrix(8))),
        ("Poisson, p 1/8, 8 steps", pe.dp_sgd(1.0, "1/8", 8)),
    ),
    "balls_in_bins": (
        ("three bins", pe.matrix_mechanism(1.5, UNEQUAL, "balls_in_bins", bins=3)),
        ("Poisson, p 1/3, 3 steps", pe.dp_sgd(1.5, "1/3", 3)),
    ),
    "shuffled": (
        ("shuffled, at the least, 10 epochs of 10", pe.shuffled_lower_bound(1.0, 10, 10)),
        POISSON,
    ),
}
PICTURES = len(RUNS)


def make(directory: Path) -> None:
    """Draw all of them."""
    directory.mkdir(parents=True, exist_ok=True)
    for name, runs in RUNS.items():
        save(delta_figure(dict(runs), adjacency="add_remove"), directory / f"{name}.png")
