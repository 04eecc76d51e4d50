"""Settings and questions with known answers."""

from __future__ import annotations

import importlib.resources
import json
from dataclasses import dataclass
from fractions import Fraction

__all__ = ["Case", "Setting", "load"]

DRAWN = "noise {noise_multiplier:g}, p {sampling_probability:.6g}, "
SCHEMES = {
    "poisson": DRAWN,
    "group": DRAWN + "groups of {group_size}, ",
    "truncated_poisson": DRAWN + "cut to {batch_size} of {dataset_size:,}, ",
    "without_replacement": DRAWN + "{batch_size} of {dataset_size:,} without replacement, ",
    "random_allocation": DRAWN + "random allocation, {epochs} x ",
    "tree": "noise {noise_multiplier:g} on the nodes of a tree, ",
    "selection": "noise {noise_multiplier:g}, the best of {runs:g} runs (geometric mean), ",
    "laplace": "Laplace noise {noise_multiplier:g}, ",
    "discrete_laplace": "discrete Laplace noise {noise_multiplier:g}, ",
    "discrete_gaussian": "discrete Gaussian noise {noise_multiplier:g}, ",
    "randomized_response": "a coin in place of a bit with probability {noise_multiplier:g}, ",
    "exponential": "exponential mechanism of range {noise_multiplier:g}, ",
    "zcdp": "any {noise_multiplier:g}-zCDP mechanism, ",
}


@dataclass(frozen=True)
class Setting:
    """A run of DP-SGD or of another mechanism, with doubles as an accountant takes them.

    Parameters
    ----------
    name : str
        Short name.
    noise_multiplier, sampling_probability : float
        As in `pyengine.dp_sgd`; if batches are not Poisson samples, the second is the share of the
        steps in which a record takes part.  For mechanisms without noise the first is the parameter
        that ``scheme`` names.
    steps : int
        Number of steps, of all epochs together.
    scheme : str
        How batches are drawn: ``poisson``; ``group``, each of the ``group_size`` records of a user
        independently; ``truncated_poisson``, cut to ``batch_size`` of ``dataset_size`` records;
        ``without_replacement``, batches of exactly that size; or ``random_allocation``, every
        record in one step of each of ``epochs`` epochs of equal length.  Or a release of all
        records: ``tree`` with ``steps`` leaves; ``selection``, the best of a geometric number of
        runs with mean ``runs``; ``laplace``, ``discrete_laplace`` or ``discrete_gaussian`` noise;
        ``randomized_response`` of a bit, with the probability of a fair coin; ``exponential`` with
        its range ε; or ``zcdp`` with ρ.
    adjacency : {"add_remove", "substitute"}
        Which data sets are neighbours.
    group_size, batch_size, dataset_size, epochs : int
        As the scheme needs them; otherwise 1, 0, 0 and 0.
    runs : float
        Mean number of runs of a selection; otherwise 0.
    """

    name: str
    noise_multiplier: float
    sampling_probability: float
    steps: int
    scheme: str = "poisson"
    adjacency: str = "add_remove"
    group_size: int = 1
    batch_size: int = 0
    dataset_size: int = 0
    epochs: int = 0
    runs: float = 0.0

    @property
    def words(self) -> str:
        """The run in words, on one line."""
        steps = self.steps // self.epochs if self.epochs else self.steps
        order = ", substitution" if self.adjacency == "substitute" else ""
        many = f"{steps:,} step{'' if steps == 1 else 's'}{order}"
        return SCHEMES[self.scheme].format(**vars(self)) + many


@dataclass(frozen=True)
class Case:
    """A question with its true answer.

    Parameters
    ----------
    setting : Setting
        The run.
    question : {"gamma", "delta", "epsilon"}
        γ at κ, δ at ε, or ε at δ.
    at : str
        κ, ε or δ; the nearest double is meant.
    truth : str
        The answer to 16 digits, or to 12 for several epochs of random allocation.  For γ, H0 is the
        data without the record; δ and ε are the larger ones of both orders.  Under substitution
        both orders are the same.  For selections and exponential mechanisms it is the largest value
        that data sets are known to attain: no upper bound is known to be tight.
    attained : str
        The value that two data sets are known to attain, if it is less than ``truth``, which then
        is the answer of a pair that dominates all neighbours; otherwise empty.
    """

    setting: Setting
    question: str
    at: str
    truth: str
    attained: str = ""


def load() -> list[Case]:
    """All cases, in the order of the settings."""
    file = importlib.resources.files("pyengine.conformance").joinpath("grid.json")
    content = json.loads(file.read_text(encoding="utf-8"))
    settings = {name: _setting(name, row) for name, row in content["settings"].items()}
    return [Case(settings[row.pop("setting")], **row) for row in content["truths"]]


def _setting(name: str, row: dict[str, object]) -> Setting:
    told = {key: row[key] for key in row if key not in ("noise", "p", "provenance")}
    noise, share = float(str(row["noise"])), float(Fraction(str(row["p"])))
    return Setting(name, noise, share, **told)  # type: ignore[arg-type]
