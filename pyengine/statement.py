"""What to report about a run: one privacy statement, with what is proven in it."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from decimal import ROUND_CEILING
from typing import Any

from pyengine import _checks
from pyengine._version import __version__
from pyengine.api import answers
from pyengine.certainty import ESTIMATE, PROVEN, certainty
from pyengine.composing import compose
from pyengine.decimals import number
from pyengine.errors import AccuracyError
from pyengine.markup import latex_table, markdown_table
from pyengine.mechanisms import Mechanism, in_words
from pyengine.proven import proven_bounds

__all__ = ["Figure", "Statement", "privacy_statement"]

DIGITS = 4
NEIGHBOURS = {
    "add_remove": "a data set with the record, and one without it",
    "add": "a data set with the record, and one without it, which is the null hypothesis",
    "remove": "a data set with the record, which is the null hypothesis, and one without it",
    "substitute": "a data set with the record, and one with another in its place",
}
HEADS = ("what", "at most", "bound")


@dataclass(frozen=True)
class Figure:
    """One number of a statement, on its safe side.

    Parameters
    ----------
    what : str
        What it bounds, with the argument.
    bound : float
        The upper bound, not rounded.
    certainty : {"proven", "estimate"}
        Whether the bound is proven, floating point included.
    """

    what: str
    bound: float
    certainty: str

    @property
    def printed(self) -> str:
        """Four significant digits, rounded up."""
        return number(self.bound, DIGITS, ROUND_CEILING)

    def as_object(self) -> dict[str, Any]:
        """The figure as an object of strings and a number, for JSON."""
        return {"what": self.what, "bound": self.bound, "certainty": self.certainty}


@dataclass(frozen=True)
class Statement:
    """What to report about a run; ``str()`` gives the text.

    Parameters
    ----------
    mechanism : tuple of str
        One line for each kind of step.
    adjacency : str
        The word of the questions.
    figures : tuple of Figure
        ε at δ, true positive rates, advantage, reconstruction.
    version : str
        Of this package.
    """

    mechanism: tuple[str, ...]
    adjacency: str
    figures: tuple[Figure, ...]
    version: str

    def rows(self) -> list[list[str]]:
        """Cells of the table: what is bounded, the bound rounded up, and how sure that is."""
        return [[each.what, each.printed, each.certainty] for each in self.figures]

    def __str__(self) -> str:
        width = max(len(each.what) for each in self.figures)
        lines = [f"{a:<{width}}  {b:<9}  {c}" for a, b, c in (HEADS, *self.rows())]
        return "\n".join([*self._head(), "", *lines, "", self._tail()])

    def markdown(self) -> str:
        """The statement in Markdown."""
        table = markdown_table(HEADS, self.rows())
        return "\n".join([*(f"- {line}" for line in self._head()), "", table, self._tail(), ""])

    def latex(self) -> str:
        """The table of the statement as a ``tabular`` of LaTeX (package booktabs)."""
        return latex_table(HEADS, self.rows())

    def as_object(self) -> dict[str, Any]:
        """The statement as an object of strings, numbers and lists, for JSON."""
        return {
            "mechanism": list(self.mechanism),
            "adjacency": self.adjacency,
            "figures": [each.as_object() for each in self.figures],
            "pyengine": self.version,
        }

    def _head(self) -> list[str]:
        return [
            f"Mechanism: {'; '.join(self.mechanism)}",
            f"Neighbours ({self.adjacency}): {NEIGHBOURS[self.adjacency]}",
        ]

    def _tail(self) -> str:
        kinds = {each.certainty for each in self.figures}
        if kinds == {PROVEN}:
            sure = "All bounds are proven, rounding included."
        elif kinds == {ESTIMATE}:
            sure = "Bounds follow from estimates of the error and are not proven."
        else:
            sure = "Bounds marked as estimates follow from estimates of the error."
        return f"{sure} Computed by pyengine {self.version}."


def privacy_statement(
    mechanism: Any,
    delta: float,
    *,
    adjacency: str = "add_remove",
    false_positive_rates: Iterable[float] = (0.001, 0.01),
    kappas: Iterable[float] = (0.0001, 0.01),
    proven: bool = True,
) -> Statement:
    """State what a run protects: ε at δ, tests of membership and reconstruction, on the safe side.

    Parameters
    ----------
    mechanism : Mechanism, or what describes one
        The run; a privacy engine of Opacus, for instance.
    delta : float
        In (0, 1).
    adjacency : {"add_remove", "add", "remove", "substitute"}
        As in `pyengine.delta`, for all figures.
    false_positive_rates : iterable of float
        Of tests whether the record took part, in [0, 1].
    kappas : iterable of float
        Success probabilities of a reconstruction without the release, in [0, 1].
    proven : bool
        Whether to take the time for proofs where the fastest engine estimates its error,
        milliseconds for DP-SGD.  A figure that cannot be proven is an estimate and says so.

    Returns
    -------
    Statement
        Text by ``str()``, Markdown, LaTeX, or an object for JSON.

    Raises
    ------
    ValueError
        For an argument outside its domain.
    AccuracyError
        Where not even an estimate is known.

    Examples
    --------
    >>> import pyengine as pe
    >>> run = pe.dp_sgd(1.0, batch_size=100, dataset_size=10_000, epochs=10, sampling="poisson")
    >>> print(pe.statement.privacy_statement(run, delta=1e-5, kappas=[1e-4]))
    Mechanism: Gaussian, noise 1, p 0.01, 1,000 steps
    Neighbours (add_remove): a data set with the record, and one without it
    <BLANKLINE>
    what                                                  at most    bound
    ε at δ = 1e-05                                        1.829      proven
    true positive rate at false positive rate 0.001       0.004069   proven
    true positive rate at false positive rate 0.01        0.02914    proven
    advantage of a test, true minus false positive rate   0.1611     proven
    reconstruction, where a guess succeeds at 0.0001 (κ)  0.0005475  proven
    <BLANKLINE>
    All bounds are proven, rounding included. Computed by pyengine ...
    """
    run = compose(mechanism)
    level = _checks.real("delta", delta)
    if not 0.0 < level < 1.0:
        raise ValueError(f"delta must lie in (0, 1), got {delta!r}")
    _checks.choice("adjacency", adjacency, tuple(NEIGHBOURS))
    sure = _checks.flag("proven", proven)
    ask: Callable[..., Figure] = _Asker(run, adjacency, sure).figure
    figures = [ask(f"ε at δ = {level:g}", "epsilon", level)]
    for rate in real_levels("false_positive_rates", false_positive_rates):
        title = f"true positive rate at false positive rate {rate:g}"
        figures.append(ask(title, "gamma_bound", rate))
    figures.append(ask("advantage of a test, true minus false positive rate", "delta", 0.0))
    for kappa in real_levels("kappas", kappas):
        title = f"reconstruction, where a guess succeeds at {kappa:g} (κ)"
        figures.append(ask(title, "gamma_bound", kappa))
    return Statement(tuple(in_words(run)), adjacency, tuple(figures), __version__)


class _Asker:
    """Asks a mechanism for figures."""

    def __init__(self, run: Mechanism, adjacency: str, proven: bool) -> None:
        self._run, self._adjacency, self._proven = run, adjacency, proven

    def figure(self, what: str, name: str, argument: float) -> Figure:
        """One figure, proven if that is wanted and can be."""
        if self._proven:
            try:
                found = proven_bounds(name, self._run, argument, adjacency=self._adjacency)
            except AccuracyError:
                pass
            else:
                return Figure(what, found.upper, PROVEN)
        bounds, _, proven = answers(
            name, self._run, [argument], adjacency=self._adjacency, proven=False
        )
        return Figure(what, float(bounds.upper[0]), certainty(proven[0]))


def real_levels(name: str, given: Any) -> list[float]:
    """Return levels of an argument that holds several."""
    return [_checks.real(name, level) for level in _checks.listed(name, given)]
