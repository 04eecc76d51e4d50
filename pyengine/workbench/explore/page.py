"""The HTML text and the style sheet of the page."""

from __future__ import annotations

from importlib.resources import files
from typing import NamedTuple

from pyengine._support.extras import needed
from pyengine._support.markup import rendered_page
from pyengine.workbench.explore.settings import RANGES
from pyengine.workbench.statement import ADJACENCIES

__all__ = ["Control", "page", "style"]


class Control(NamedTuple):
    """A logarithmic slider with a number field, which also accepts numbers beyond the slider."""

    name: str
    label: str
    value: float
    low: float
    high: float

    @property
    def whole(self) -> bool:
        """Whether the number is an integer."""
        return RANGES[self.name][2]


# controls of one run; the choice `size` says which of them are used
OF_A_RUN = (
    Control("noise_multiplier", "Noise multiplier", 1.0, 0.3, 30.0),
    Control("batch_size", "Batch size", 256, 1, 100_000),
    Control("dataset_size", "Records", 60_000, 100, 10_000_000),
    Control("epochs", "Epochs", 10, 1, 1000),
    Control("sampling_probability", "Sampling probability", 0.01, 1e-6, 1.0),
    Control("steps", "Steps", 1000, 1, 1_000_000),
    Control("dimension", "Dimension of the query", 1, 1, 1_000_000_000),
)
SHARED = (
    Control("delta", "δ of ε", 1e-5, 1e-12, 0.1),
    Control("false_positive_rate", "False positive rate", 1e-3, 1e-6, 0.5),
    Control("kappa", "Prior κ", 1e-4, 1e-9, 0.5),
    Control("prior", "Prior of membership", 0.5, 1e-4, 0.999),
)
SIZES = {"batch": "batch size, records, epochs", "rate": "probability, steps"}
SAMPLING = {
    "poisson": "Poisson samples",
    "without_replacement": "fixed size, no replacement",
    "shuffle": "a loader that shuffles",
    "allocation": "random allocation",
    "none": "the record in every step",
}
THREATS = {
    "dp": "differential privacy",
    "relaxed": "relaxed threat model",
}


def page(version: str) -> str:
    """HTML text of the page, the same for all users."""
    with needed("the page", "explore"):
        import jinja2

    return rendered_page(
        *(jinja2, "pyengine.explore", "assets"),
        version=version,
        controls=OF_A_RUN,
        shared=SHARED,
        choices={
            "size": ("Given by", SIZES),
            "sampling": ("Batches", SAMPLING),
            "adjacency": ("Neighbours", {word: word.replace("_", " or ") for word in ADJACENCIES}),
            "threat_model": ("Adversary", THREATS),
        },
    )


def style() -> str:
    """Style sheet of the page: the one of reports, with additions."""
    of_reports = files("pyengine.report").joinpath("templates", "style.css")
    own = files("pyengine.explore").joinpath("assets", "explore.css")
    return of_reports.read_text(encoding="utf-8") + own.read_text(encoding="utf-8")
