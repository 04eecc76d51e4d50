"""The contents of a privacy report: statement, tables, curves, alternatives, measured attacks."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine._support.decimals import written
from pyengine.accounting.serialization import plain, to_json
from pyengine.api import compose
from pyengine.mechanisms import Mechanism
from pyengine.workbench.plots.series import Series, asked
from pyengine.workbench.report.alternatives import Alternative, alternatives
from pyengine.workbench.report.noise_curve import noise_curve
from pyengine.workbench.report.variants import noise_of
from pyengine.workbench.statement import Figure, Statement, privacy_statement, real_levels

__all__ = ["SCHEMA", "Attack", "PrivacyReport", "privacy_report"]

SCHEMA = "pyengine-report/1"
TITLE = "Privacy report"
POINTS = 81  # points of a curve
LOWEST = 1e-6  # smallest level of a curve
ENDS = (1e-12, 1e-6)  # δ at which the curve δ(ε) ends: the first one with an answer
EPSILONS = (0.0, 0.5, 1.0, 2.0, 4.0, 8.0)
LEVELS = (1e-5, 1e-4, 1e-3, 1e-2, 1e-1)
ORDERS = ("add", "remove", "add_remove")

FloatArray = npt.NDArray[np.float64]


@dataclass(frozen=True)
class Attack:
    """A measured membership test, to be drawn with the bounds.

    Parameters
    ----------
    name : str
        Name in the report.
    false_positive_rate, true_positive_rate : float
        Estimated rates in [0, 1], such as those of an audit.
    """

    name: str
    false_positive_rate: float
    true_positive_rate: float

    def __post_init__(self) -> None:
        for name in ("false_positive_rate", "true_positive_rate"):
            value = checks.real(name, getattr(self, name))
            if not 0.0 <= value <= 1.0:
                raise ValueError(f"{name} must lie in [0, 1], got {value!r}")
            object.__setattr__(self, name, value)


@dataclass(frozen=True, eq=False)
class PrivacyReport:
    """A privacy report; `pyengine.report.save_report` writes it as an HTML page.

    Parameters
    ----------
    title : str
        Heading of the page.
    mechanism : Mechanism
        The run.
    statement : Statement
        The privacy statement about it.
    delta : float
        δ of the statement and of the noise curve.
    tables : tuple of Series
        ε(δ), γ(κ), β(α) and δ(ε).
    curves : dict of str to tuple of Series
        ``trade_off``, ``gamma``, ``delta``, and ``noise``: ε at δ for each of ``noises``.
    noises : ndarray
        Noise multipliers, or factors of the noise if steps differ in it; empty without noise.
    noise : float or None
        The noise multiplier of the run; None if steps differ in it.
    stated : tuple of Figure
        Those figures of the run that are also given for the alternatives.
    alternatives : tuple of Alternative
        Figures of the same run with one change.
    attacks : tuple of (Attack, Figure)
        Measured tests, each with the bound of the true positive rate at its false positive rate.
    """

    title: str
    mechanism: Mechanism
    statement: Statement
    delta: float
    tables: tuple[Series, ...]
    curves: dict[str, tuple[Series, ...]]
    noises: FloatArray
    noise: float | None
    stated: tuple[Figure, ...]
    alternatives: tuple[Alternative, ...]
    attacks: tuple[tuple[Attack, Figure], ...]

    def as_object(self) -> dict[str, Any]:
        """The whole report as a dictionary of strings, numbers and lists, for JSON."""
        try:
            mechanism = json.loads(to_json(self.mechanism))
        except ValueError:  # a mechanism that holds functions
            mechanism = None
        found: dict[str, Any] = {
            "schema": SCHEMA,
            "title": self.title,
            "mechanism": mechanism,
            "delta": self.delta,
            "statement": self.statement.as_object(),
            "tables": [table.as_object() for table in self.tables],
            "curves": {
                name: [table.as_object() for table in tables]
                for name, tables in self.curves.items()
            },
            "noises": self.noises,
            "stated": [figure.as_object() for figure in self.stated],
            "alternatives": [
                {**vars(each), "figures": [figure.as_object() for figure in each.figures]}
                for each in self.alternatives
            ],
            "attacks": [
                {**vars(attack), "bound": figure.bound, "certainty": figure.certainty}
                for attack, figure in self.attacks
            ],
        }
        content: dict[str, Any] = plain(found)
        return content

    def html(self) -> str:
        """The page as one HTML text, which loads no other files."""
        from pyengine.workbench.report.page import page

        return page(self)


def privacy_report(
    mechanism: Any,
    delta: float,
    *,
    adjacency: str = "add_remove",
    false_positive_rates: Sequence[float] = (0.001, 0.01),
    kappas: Sequence[float] = (0.0001, 0.01),
    priors: Sequence[float] = (),
    slack: float | None = None,
    proven: bool = True,
    group_sizes: Iterable[int] = (2, 5),
    attacks: Iterable[Attack] = (),
    title: str = TITLE,
) -> PrivacyReport:
    """Compute a privacy report: statement, tables, curves, and figures of changed runs.

    Parameters
    ----------
    mechanism, delta, adjacency, false_positive_rates, kappas, priors, slack, proven
        As in `pyengine.statement.privacy_statement`; rows about other neighbours name them.
    group_sizes : iterable of int
        Numbers of records of one user, >= 2, each sampled independently.
    attacks : iterable of Attack
        Measured membership tests.
    title : str
        Heading of the page.

    Returns
    -------
    PrivacyReport
        All figures are upper bounds; those that are not proven are marked as estimates.  Tables and
        curves have lower and upper bounds.

    Raises
    ------
    ValueError
        For an argument outside its domain.
    AccuracyError
        If not even an estimate is known.

    Examples
    --------
    >>> import pyengine as pe
    >>> run = pe.dp_sgd(1.0, batch_size=100, dataset_size=10_000, epochs=10, sampling="poisson")
    >>> report = pe.report.privacy_report(run, 1e-5, group_sizes=[])
    >>> report.statement.figures[0].printed
    '1.829'
    >>> [each.what for each in report.alternatives if each.kind == "sampling"][0]
    'batches of fixed size, each drawn without replacement'
    """
    if not title.strip():
        raise ValueError(f"title must not be blank, got {title!r}")
    groups = checks.listed("group_sizes", group_sizes)
    sizes = [checks.count("group_sizes", size, least=2) for size in groups]
    rates = real_levels("false_positive_rates", false_positive_rates)
    guesses = real_levels("kappas", kappas)
    measured = list(attacks)
    for attack in measured:
        if not isinstance(attack, Attack):
            raise ValueError(f"attacks must be of Attack, got {attack!r}")
    run = compose(mechanism)
    statement = privacy_statement(
        run,
        delta,
        adjacency=adjacency,
        false_positive_rates=rates,
        kappas=guesses,
        priors=priors,
        slack=slack,
        proven=proven,
    )
    level = float(delta)

    def ask(question: str, argument: npt.ArrayLike, word: str = adjacency) -> Series:
        return asked(question, word, run, argument, adjacency=word, proven=proven)

    def curves(question: str, argument: FloatArray) -> tuple[Series, ...]:
        """One series; for "add_remove" also those of both orders."""
        words = ORDERS if adjacency == "add_remove" else (adjacency,)
        return tuple(ask(question, argument, word) for word in words)

    def bound(rate: float) -> Figure:
        found = ask("gamma_bound", [rate])
        return Figure(
            f"TPR at FPR {written(rate)}", float(found.bounds.upper[0]), found.certainty[0]
        )

    first = [(f"ε at δ = {written(level)}", "epsilon", level)]
    first += [(f"TPR at FPR {written(x)}", "gamma_bound", float(x)) for x in rates[:1]]
    first += [(f"γ at κ = {written(x)}", "gamma_bound", float(x)) for x in guesses[:1]]
    places = [0, *([1] if rates else []), *([2 + len(rates)] if guesses else [])]
    noises, noise = noise_curve(run, level, adjacency, proven=proven)
    levels = sorted({*LEVELS, *map(float, rates), *map(float, guesses)})
    fine = np.geomspace(min([LOWEST, *(x for x in levels if x > 0.0)]), 1.0, POINTS)
    ends = [x for x in ask("epsilon", ENDS).bounds.value.tolist() if 0.0 < x < np.inf]
    return PrivacyReport(
        title,
        run,
        statement,
        level,
        (
            ask("epsilon", [level, *_below(level)] if level else [level]),
            ask("gamma_bound", levels),
            ask("trade_off", levels),
            ask("delta", EPSILONS),
        ),
        {
            "trade_off": curves("trade_off", np.linspace(0.0, 1.0, POINTS)),
            "gamma": curves("gamma_bound", fine),
            "delta": curves("delta", np.linspace(0.0, max(ends, default=1.0), POINTS)),
            "noise": noise,
        },
        noises,
        noise_of(run),
        tuple(
            Figure(title, statement.figures[place].bound, statement.figures[place].certainty)
            for place, (title, _, _) in zip(places, first, strict=True)
        ),
        tuple(alternatives(run, adjacency, first, sizes, proven=proven)),
        tuple((attack, bound(attack.false_positive_rate)) for attack in measured),
    )


def _below(level: float) -> list[float]:
    """A tenth and a hundredth of a level, by moving the decimal point: without rounding."""
    return [float(Decimal(repr(level)).scaleb(-places)) for places in (1, 2)]
