"""Comparison of ways to draw batches, at equal noise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from decimal import ROUND_FLOOR

from pyengine._support import checks
from pyengine._support.certainty import certainty
from pyengine._support.decimals import number, written
from pyengine.api import answers
from pyengine.api.shuffled import shuffled_lower_bound
from pyengine.errors import AccuracyError
from pyengine.mechanisms import GaussianMechanism, Mechanism, dp_sgd, dp_sgd_allocated

__all__ = ["SCHEMES", "Compared", "Scheme", "SchemeSetting", "compare", "figures", "leaks"]


@dataclass(frozen=True)
class SchemeSetting:
    """Noise multiplier, steps t per epoch and epochs; a batch has the share 1/t of the records."""

    noise: float
    steps_per_epoch: int
    epochs: int

    def __post_init__(self) -> None:
        checks.positive("noise", self.noise)
        checks.count("steps_per_epoch", self.steps_per_epoch, least=1)
        checks.count("epochs", self.epochs, least=1)

    @property
    def texts(self) -> tuple[str, str, str]:
        """The numbers as tables show them."""
        return written(self.noise), str(self.steps_per_epoch), str(self.epochs)


@dataclass(frozen=True)
class Scheme:
    """One way to draw batches, with the adjacencies for which ε is computed.

    ``leak`` makes a mechanism that bounds the loss from below, for schemes whose ``run`` is only
    an upper bound.
    """

    name: str
    run: Callable[[SchemeSetting], Mechanism]
    adjacencies: tuple[str, ...]
    leak: Callable[[SchemeSetting], Mechanism] | None = None


def _without_replacement(setting: SchemeSetting) -> Mechanism:
    step = GaussianMechanism(setting.noise).sampled_without_replacement(
        batch_size=1, dataset_size=setting.steps_per_epoch
    )
    return step.composed(setting.steps_per_epoch * setting.epochs)


SCHEMES = (
    Scheme(
        "Poisson, p = 1/t",
        lambda at: dp_sgd(at.noise, f"1/{at.steps_per_epoch}", at.steps_per_epoch * at.epochs),
        ("remove", "add"),
    ),
    Scheme(
        "random allocation",
        lambda at: dp_sgd_allocated(at.noise, at.steps_per_epoch, at.epochs),
        ("remove", "add"),
    ),
    Scheme("without replacement", _without_replacement, ("add_remove",)),
    Scheme(
        "shuffled, no amplification",
        lambda at: dp_sgd(
            at.noise,
            batch_size=1,
            dataset_size=at.steps_per_epoch,
            epochs=at.epochs,
            sampling="shuffle",
        ),
        ("add_remove",),
        leak=lambda at: shuffled_lower_bound(at.noise, at.steps_per_epoch, at.epochs),
    ),
)


@dataclass(frozen=True)
class Compared:
    """ε of one scheme at one setting; NaN if no engine could compute it.

    ``engine`` is the name of the engine, or the reason of the refusal; ``certainty`` says whether
    its bounds are proven, "" after a refusal.  ``at_least`` is a lower bound of ε for schemes that
    have only an upper bound; it is no guarantee.
    """

    setting: SchemeSetting
    scheme: Scheme
    adjacency: str
    epsilon: float
    engine: str
    certainty: str
    at_least: float = math.nan


def compare(settings: Sequence[SchemeSetting], delta: float) -> Iterator[Compared]:
    """Compute ε at δ of all schemes, setting by setting."""
    if not 0.0 < checks.real("delta", delta) < 1.0:
        raise ValueError(f"delta must lie in (0, 1), got {delta!r}")
    return (
        _asked(setting, scheme, adjacency, delta)
        for setting in settings
        for scheme in SCHEMES
        for adjacency in scheme.adjacencies
    )


def _asked(setting: SchemeSetting, scheme: Scheme, adjacency: str, delta: float) -> Compared:
    try:
        found, engines, certain = answers(
            "epsilon", scheme.run(setting), [delta], adjacency=adjacency, proven=False
        )
    except AccuracyError as error:
        return Compared(setting, scheme, adjacency, math.nan, f"refused: {error}", "")
    word, least = certainty(certain[0]), math.nan
    if scheme.leak is not None:
        leaks, _, _ = answers(
            "epsilon", scheme.leak(setting), [delta], adjacency="add_remove", proven=False
        )
        least = float(leaks.lower[0])
    return Compared(setting, scheme, adjacency, float(found.value[0]), engines[0], word, least)


def figures(rows: Sequence[Compared]) -> tuple[list[str], list[list[str]]]:
    """Column heads and cells of a table: rows are settings, columns are schemes."""
    heads = ["σ", "t", "epochs", *(scheme.name for scheme in SCHEMES)]
    table: dict[SchemeSetting, dict[str, list[str]]] = {}
    for row in rows:
        text = "–" if math.isnan(row.epsilon) else written(row.epsilon, ".5g")
        table.setdefault(row.setting, {}).setdefault(row.scheme.name, []).append(text)
    return heads, [
        [*at.texts, *(" / ".join(cells[scheme.name]) for scheme in SCHEMES)]
        for at, cells in table.items()
    ]


def leaks(rows: Sequence[Compared]) -> tuple[list[str], list[list[str]]]:
    """Column heads and cells of a table of the lower bounds of ε, which are no guarantees."""
    return ["σ", "t", "epochs", "shuffled: ε is at least"], [
        [*row.setting.texts, number(row.at_least, 5, ROUND_FLOOR)]
        for row in rows
        if not math.isnan(row.at_least)
    ]
