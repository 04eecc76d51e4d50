"""Privacy statements: the figures to report about a run, and which of them are proven."""

from __future__ import annotations

import contextlib
import math
from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import Any

from pyengine._support import checks
from pyengine._support.certainty import ESTIMATE, PROVEN, certainty
from pyengine._support.decimals import number, written
from pyengine._support.markup import (
    html_table,
    in_markdown,
    latex_table,
    markdown_table,
    shortened,
)
from pyengine._version import __version__
from pyengine.api import answers, compose
from pyengine.api.shuffled import known_leak, without_amplification
from pyengine.calibration.proven import proven_bounds
from pyengine.engines.answers import Answering
from pyengine.errors import AccuracyError
from pyengine.mechanisms import Label, Mechanism, label_of, steps_of
from pyengine.mechanisms.core import phases_of
from pyengine.mechanisms.report import JOINTLY, NEIGHBOURS, guaranteed
from pyengine.mechanisms.words import Words
from pyengine.threat.risks import RISKS, risk_answers

__all__ = ["ADJACENCIES", "Figure", "Statement", "privacy_statement"]

SCHEMA = "pyengine-statement/1"
DIGITS = 4
UP = 1.0 + 2.0**-51
SHUFFLE = "give batch_size, dataset_size and sampling shuffle"
DIFFERENT = "A loader that shuffles is different"
NO_FIGURES = f"{DIFFERENT}: these figures do not hold for it."
HEADS = ("what", "at most", "bound")
ADJACENCIES = tuple(NEIGHBOURS["present"])
METRICS = (
    *("epsilon", "true_positive_rate", "advantage", "reconstruction", "right_guess"),
    *("gaussian_mu", "gaussian_regret"),
)


@dataclass(frozen=True)
class Figure:
    """One figure of a statement, an upper bound.

    Parameters
    ----------
    what : str
        The bounded quantity in words, with its argument.
    bound : float
        The upper bound, not rounded to printed digits.
    certainty : {"proven", "estimate"}
        Whether the bound is proven, floating point included.
    metric : str
        One of "epsilon", "true_positive_rate", "advantage", "reconstruction", "right_guess",
        "gaussian_mu" and "gaussian_regret".
    at : float
        Its argument: δ, false positive rate, κ, prior or slack; 0 for the advantage, which is δ at
        ε = 0.
    lower : float
        The lower bound.
    """

    what: str
    bound: float
    certainty: str
    metric: str = ""
    at: float = 0.0
    lower: float = 0.0

    @property
    def printed(self) -> str:
        """Four significant digits, rounded up."""
        return number(self.bound, DIGITS, ROUND_CEILING)

    def as_object(self) -> dict[str, Any]:
        """The figure as a dictionary of strings and numbers, for JSON (docs, tables)."""
        numbers = {"at": self.at, "value": self.bound, "lower": self.lower, "upper": self.bound}
        words = {"what": self.what, "bound": self.bound, "certainty": self.certainty}
        return {"metric": self.metric, **numbers, **words}


@dataclass(frozen=True)
class Statement:
    """A privacy statement about a run; ``str()`` gives the text.

    Parameters
    ----------
    label : tuple of Label
        What the figures hold for: for each kind of step the mechanism, how batches were drawn, and
        what is protected from whom.
    adjacency : str
        The neighbours, as in `pyengine.delta`.
    figures : tuple of Figure
        ε at δ, true positive rates, advantage, reconstruction.
    version : str
        Version of this package.
    notes : tuple of str
        Notes on the batches: figures for a loader that shuffles, or lower bounds of ε.
    tuned : bool
        Whether the figures include the runs from which a tuned one was selected.
    """

    label: tuple[Label, ...]
    adjacency: str
    figures: tuple[Figure, ...]
    version: str
    notes: tuple[str, ...] = ()
    tuned: bool = False

    @property
    def mechanism(self) -> tuple[str, ...]:
        """Description of each kind of step."""
        return tuple(each.mechanism for each in self.label) or ("no steps",)

    def head(self) -> list[tuple[str, list[str]]]:
        """The lines about mechanism, batches and protected unit, each with its title."""
        batches, protects = (
            list(dict.fromkeys(column))
            for column in (
                [each.batches for each in self.label],
                [each.protects for each in self.label],
            )
        )
        jointly = [JOINTLY] if len(protects) > 1 else []
        return [
            ("Mechanism", shortened(self.mechanism)),
            ("Batches", [*(batches or ["none are drawn"]), *self.notes]),
            (
                "Protects",
                [*(f"{each} (adjacency {self.adjacency})" for each in protects), *jointly]
                or ["all records: nothing is released"],
            ),
        ]

    def rows(self) -> list[list[str]]:
        """Cells of the table: bounded quantity, bound rounded up, and whether it is proven."""
        return [[each.what, each.printed, f"{each.certainty}, rounded up"] for each in self.figures]

    def __str__(self) -> str:
        width = max(len(each.what) for each in self.figures)
        lines = [f"{a:<{width}}  {b:<9}  {c}" for a, b, c in (HEADS, *self.rows())]
        head = [
            f"{title if i == 0 else '':<9}  {text}"
            for title, texts in self.head()
            for i, text in enumerate(texts)
        ]
        return "\n".join([*head, "", *lines, "", *self.tail()])

    def markdown(self) -> str:
        """The statement in Markdown."""
        table = markdown_table(HEADS, self.rows())
        head = (
            f"  - {in_markdown(text)}"
            if text in self.notes
            else f"- **{title}**: {in_markdown(text)}"
            for title, texts in self.head()
            for text in texts
        )
        return "\n".join([*head, "", table, *self.tail(), ""])

    def latex(self) -> str:
        """The statement as a LaTeX ``tabular`` (package booktabs), with its label below."""
        head = []
        for title, texts in self.head():
            said = "; ".join(text for text in texts if text not in self.notes)
            head.append(". ".join([f"{title}: {said}", *(n for n in self.notes if n in texts)]))
        return latex_table(HEADS, self.rows(), [*head, *self.tail()])

    def _repr_html_(self) -> str:
        """The statement in HTML, for notebooks."""
        head = [[title, "\n".join(texts)] for title, texts in self.head()]
        return html_table((), head) + html_table(HEADS, self.rows(), self.tail())

    def as_object(self) -> dict[str, Any]:
        """The statement as a dictionary of strings, numbers and lists, for JSON (docs, tables)."""
        return {
            "schema": SCHEMA,
            "mechanism": list(self.mechanism),
            "label": [each._asdict() for each in self.label],
            "adjacency": self.adjacency,
            "notes": list(self.notes),
            "figures": [each.as_object() for each in self.figures],
            "pyengine": self.version,
        }

    def tail(self) -> list[str]:
        """The lines below the figures: whether all are proven, and what they do not cover."""
        kinds = {each.certainty for each in self.figures}
        if kinds == {PROVEN}:
            sure = "All bounds are proven, rounding included."
        elif kinds == {ESTIMATE}:
            sure = "Bounds follow from estimates of the error and are not proven."
        else:
            sure = "Bounds marked as estimates follow from estimates of the error."
        beyond = " beyond these runs" if self.tuned else ""
        return [
            f"{sure} Computed by pyengine {self.version}.",
            f"Not covered: hyperparameters tuned on the same data{beyond}, other releases.",
        ]


def privacy_statement(
    mechanism: Any,
    delta: float,
    *,
    adjacency: str = "add_remove",
    false_positive_rates: Iterable[float] = (0.001, 0.01),
    kappas: Iterable[float] = (0.0001, 0.01),
    priors: Iterable[float] = (),
    slack: float | None = None,
    proven: bool = True,
) -> Statement:
    """Make a privacy statement of upper bounds: ε at δ, membership tests and reconstruction.

    Parameters
    ----------
    mechanism : Mechanism, or what describes one
        The run, such as a mechanism, a privacy engine of Opacus, or a run of `pyengine.adaptive`.
    delta : float
        δ in [0, 1); 0 only if ε is finite at δ = 0, as for Laplace noise.
    adjacency : {"add_remove", "add", "remove", "substitute"}
        As in `pyengine.delta`, for all figures.
    false_positive_rates : iterable of float
        False positive rates, in [0, 1], of tests whether a record took part.
    kappas : iterable of float
        Success probabilities without the release, in [0, 1], of an attacker who reconstructs
        a record, infers an attribute or re-identifies a person: one bound holds for all of these.
    priors : iterable of float
        Prior probabilities, in [0, 1], that the record took part; for each, the probability of
        a right guess is stated.
    slack : float, optional
        If given, μ of Gaussian differential privacy up to this δ, and its regret, are stated, as by
        `pyengine.gaussian_fit`.
    proven : bool
        Whether to compute proven bounds even if the fastest engine only estimates its error, which
        takes milliseconds for DP-SGD.  Figures that cannot be proven are marked as estimates.

    Returns
    -------
    Statement
        Convertible to text by ``str()``, to Markdown, to LaTeX and to an object for JSON.

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
    >>> print(pe.statement.privacy_statement(run, delta=1e-5, kappas=[1e-4]))
    Mechanism  DP-SGD, noise multiplier 1, 1,000 steps (10 epochs) of about 100 of 10,000 records
    Batches    each record joins each batch independently with probability 100/10,000 (Poisson ...)
               A loader that shuffles is different: for it, report ε = 17.86 (give batch_size, ...
    Protects   one record: two data sets that differ by adding or removing it (adjacency add_remove)
    <BLANKLINE>
    what                                                  at most    bound
    ε at δ = 1e-5                                         1.829      proven, rounded up
    true positive rate at false positive rate 0.001       0.004069   proven, rounded up
    true positive rate at false positive rate 0.01        0.02914    proven, rounded up
    advantage of a test, true minus false positive rate   0.1611     proven, rounded up
    reconstruction or inference, where a guess succeeds at 0.0001 (κ)  0.0005475  proven, rounded up
    <BLANKLINE>
    All bounds are proven, rounding included. Computed by pyengine ...
    Not covered: hyperparameters tuned on the same data, other releases.
    """
    run = mechanism if isinstance(mechanism, Answering) else compose(mechanism)
    level = checks.real("delta", delta)
    if not 0.0 <= level < 1.0:
        raise ValueError(f"delta must lie in [0, 1), got {delta!r}")
    checks.choice("adjacency", adjacency, ADJACENCIES)
    label = tuple(run.labels(adjacency) if isinstance(run, Answering) else label_of(run, adjacency))
    guaranteed(label)
    wanted = checks.flag("proven", proven)
    leak = None if isinstance(run, Answering) else known_leak(run)

    def ask(what: str, name: str, argument: float, metric: str) -> Figure:
        lower, upper, sure = _bounds(run, name, argument, adjacency, wanted)
        if leak is not None and name not in RISKS:
            # the lower bound must hold for the run itself, not for the mechanism that dominates it
            lower = least(name, leak, argument, adjacency)
        return Figure(what, upper, sure, metric, argument, lower)

    rates = real_levels("false_positive_rates", false_positive_rates)
    guesses = real_levels("kappas", kappas)
    asked = [(f"ε at δ = {written(level)}", "epsilon", level, METRICS[0])]
    title = "true positive rate at false positive rate"
    asked += [(f"{title} {written(rate)}", "gamma_bound", rate, METRICS[1]) for rate in rates]
    asked.append(("advantage of a test, true minus false positive rate", "delta", 0.0, METRICS[2]))
    title = "reconstruction or inference, where a guess succeeds at"
    asked += [
        (f"{title} {written(guess)} (κ)", "gamma_bound", guess, METRICS[3]) for guess in guesses
    ]
    figures = [ask(*each) for each in asked]
    if level == 0.0 and figures[0].bound == math.inf:
        raise ValueError("delta must be positive, got 0: no ε holds at δ = 0 for this mechanism")
    for prior in real_levels("priors", priors):
        title = f"right guess whether the record took part, at prior {written(prior)}"
        figures.append(_right_guess(ask(title, "bayes_risk", prior, METRICS[4])))
    if slack is not None:
        apart = checks.scalar("slack", slack, 0.0, 1.0)
        figures.append(
            ask(f"μ of Gaussian DP, up to δ = {written(apart)}", "gaussian_mu", apart, METRICS[5])
        )
        title = "regret of that μ, in the chance of a right guess"
        figures.append(ask(title, "gaussian_regret", apart, METRICS[6]))
    notes = _notes_alone(run) if isinstance(run, Answering) else _notes(run, level, adjacency)
    tuned = not isinstance(run, Answering) and any(step.repeated for step, _ in steps_of(run))
    return Statement(label, adjacency, tuple(figures), __version__, notes, tuned)


def _notes_alone(run: Answering) -> tuple[str, ...]:
    """Notes for an adaptive run, for which no figures for a loader that shuffles are known."""
    sampled = any(without_amplification(choice) is not None for choice in run.parts)
    return (NO_FIGURES,) if sampled else ()


def _notes(run: Mechanism, delta: float, adjacency: str) -> tuple[str, ...]:
    """Notes with the ε of a loader that shuffles instead of Poisson sampling, or a lower bound."""
    leak = known_leak(run)
    if leak is not None:
        shown = number(least("epsilon", leak, delta, adjacency), DIGITS, ROUND_FLOOR)
        return (f"For some data sets ε is at least {shown}: the true ε lies between the two.",)
    other = without_amplification(run)
    noises = [step.noise for step, _ in steps_of(run if other is None else other)]
    gaussian = all(noise is not None and noise.family == "gaussian" for noise in noises)
    if other is None or not gaussian:
        if other is not None or any(each.rate for each in _words(run)):
            return (NO_FIGURES,)
        plain = gaussian and any(
            each.neighbours == "present" and each.counted == "step" for each in _words(run)
        )
        return (f"{DIFFERENT}: {SHUFFLE}.",) if plain else ()
    bound = float(proven_bounds("epsilon", other, delta, adjacency=adjacency).upper)
    # its protected unit differs if a removed record leaves its place empty
    own, others = ({each.protects for each in label_of(m, adjacency)} for m in (run, other))
    who = "; ".join(sorted(others - own))
    shown = f"report ε = {number(bound, DIGITS, ROUND_CEILING)} ({SHUFFLE})"
    return (f"{DIFFERENT}: for it, {shown}{', which protects ' * bool(who)}{who}.",)


def _words(run: Mechanism) -> Iterator[Words]:
    """Words of all steps, including those inside selections and revealed mixtures."""
    for step, _ in phases_of(run):
        yield step.words
        for thing in step.within:
            yield from _words(thing)


def least(question: str, leak: Mechanism, argument: float, adjacency: str) -> float:
    """Proven lower bound by a mechanism that certainly leaks; "substitute" uses add_remove."""
    order = "add_remove" if adjacency == "substitute" else adjacency
    return float(proven_bounds(question, leak, argument, adjacency=order).lower)


def _bounds(
    run: Any, name: str, argument: float, adjacency: str, proven: bool
) -> tuple[float, float, str]:
    """Lower and upper bound and their certainty; proven ones if wanted and available."""
    if proven and name not in RISKS:
        with contextlib.suppress(AccuracyError):
            found = proven_bounds(name, run, argument, adjacency=adjacency)
            return found.lower, found.upper, PROVEN
    ask: Any = risk_answers if name in RISKS else answers
    words = {"adjacency": adjacency, "proven": proven and name in RISKS}
    bounds, _, certain = ask(name, run, [argument], **words)
    return float(bounds.lower[0]), float(bounds.upper[0]), certainty(certain[0])


def _right_guess(risk: Figure) -> Figure:
    """The probability of a right guess from that of a wrong one, rounded outwards."""
    lower, upper = (1.0 - bound for bound in (risk.bound, risk.lower))
    return replace(risk, bound=min(upper * UP, 1.0), lower=lower / UP)


def real_levels(name: str, given: Any) -> list[float]:
    """Return levels of an argument that holds several."""
    return [checks.real(name, level) for level in checks.listed(name, given)]
