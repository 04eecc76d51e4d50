"""The best of several runs, where only the best is released, as in hyperparameter tuning."""

from __future__ import annotations

import math
from dataclasses import dataclass, fields
from typing import Any, ClassVar

from pyengine._support import checks
from pyengine.mechanisms.core import Composition, Mechanism, Step, phases_of, steps_of
from pyengine.mechanisms.finite import GenericMechanism
from pyengine.mechanisms.report import describe, summary
from pyengine.mechanisms.unsampled import UnsampledStep
from pyengine.mechanisms.words import Words, number_in_words, of_all
from pyengine.numerics.selection import check_runs

__all__ = ["RepeatAndSelect", "repeat_and_select"]

RUNS = ("poisson", "geometric", "negative_binomial", "binomial", "fixed")


@dataclass(frozen=True, init=False, repr=False)
class RepeatAndSelect(UnsampledStep):
    """The best of a number of runs of one mechanism; see `repeat_and_select`.

    Parameters
    ----------
    base : Mechanism
        What one run releases, and what its score is computed from.
    runs : str
        Law of the number of runs.
    mean, shape, stopping, number, probability : float, int or None
        Its parameters.
    """

    refusal: ClassVar[str] = "a selection among runs cannot be sampled: sample what a run does"
    base: Mechanism
    runs: str
    mean: float | None = None
    shape: float | None = None
    stopping: float | None = None
    number: int | None = None
    probability: float | None = None

    def __init__(
        self,
        base: Any,
        runs: Any,
        mean: Any = None,
        shape: Any = None,
        stopping: Any = None,
        number: Any = None,
        probability: Any = None,
    ) -> None:
        if not isinstance(base, Mechanism):
            raise ValueError(f"mechanism must be a Mechanism, got {checks.shown(base)}")
        if isinstance(base, Composition) and base.steps == 1:
            base = phases_of(base)[0][0]
        word = checks.choice("runs", runs, RUNS)
        given = {
            "mean": mean,
            "shape": shape,
            "stopping": stopping,
            "number": number,
            "probability": probability,
        }
        check_runs(word, given)
        numbers = {k: None if value is None else _number(k, value) for k, value in given.items()}
        vars(self).update(base=base, runs=word, **numbers)

    @property
    def share(self) -> checks.Number:
        """0 if a run releases nothing about the record, else 1."""
        return 1 if any(step.share for step, _ in steps_of(self.base)) else 0

    @property
    def within(self) -> tuple[Mechanism, ...]:
        """One run."""
        return (self.base,)

    @property
    def enclosing(self) -> tuple[Mechanism, tuple[Step, ...]] | None:
        """For a fixed number, all runs published, which dominate; nothing is known from below."""
        if self.number is None or self.runs != "fixed":
            return None
        nothing = GenericMechanism(0)
        return self.base.composed(self.number), (nothing, nothing)

    @property
    def repeated(self) -> tuple[Mechanism, dict[str, Any]] | None:
        """One run, and the law of the number of runs as `pyengine.duality` takes it."""
        if self.runs == "fixed":
            return None
        law = self._numbers()
        if self.runs == "geometric":
            return self.base, {"runs": "negative_binomial", "shape": 1.0, **law}
        return self.base, {"runs": self.runs, **law}

    def _numbers(self) -> dict[str, Any]:
        """Parameters of the law that are given."""
        values = {item.name: getattr(self, item.name) for item in fields(self)[2:]}
        return {name: value for name, value in values.items() if value is not None}

    def described(self) -> dict[str, Any]:
        """Parameters of all steps of a run, and of the law of the number of runs."""
        own = {"mechanism": type(self).__name__, "base": tuple(describe(self.base))}
        return {**own, "runs": self.runs, **self._numbers()}

    def own_words(self) -> Words:
        """Label: the law of the number of runs, and what holds for a run."""
        words = of_all([step.words for step, _ in phases_of(self.base)], "; ")
        words = super().own_words() if words is None else words
        return words._replace(
            name=f"best of {self._how_many()} of ({summary(self.base)})",
            counted="selection",
            hidden=("base", "runs", *self._numbers()),
            known=words.known or "upper bound",
        )

    def _how_many(self) -> str:
        if self.runs == "fixed":
            return f"{self.number:,} runs"
        if self.runs == "poisson":
            return f"a Poisson number of runs, mean {number_in_words(self.mean)},"
        if self.runs == "geometric" and self.stopping is not None:
            return f"a geometric number of runs, mean {number_in_words(1.0 / self.stopping)},"
        if self.runs == "binomial":
            rate = number_in_words(self.probability)
            return f"a binomial number of runs, {self.number:,} at {rate},"
        shape, stopping = number_in_words(self.shape), number_in_words(self.stopping)
        return f"a negative binomial number of runs, η = {shape}, γ = {stopping},"


def _number(name: str, value: Any) -> float | int:
    """Check a parameter of the law of the number of runs."""
    if name == "number":
        return checks.count(name, value, least=1)
    found = checks.real(name, value)
    if name == "mean" and not 0.0 < found < math.inf:
        raise ValueError(f"mean must be positive and finite, got {checks.shown(value)}")
    if name == "shape" and not -1.0 < found < math.inf:
        raise ValueError(f"shape must be finite and above -1, got {checks.shown(value)}")
    if name in ("stopping", "probability") and not 0.0 < found < 1.0:
        raise ValueError(f"{name} must lie in (0, 1), got {checks.shown(value)}")
    return found


def repeat_and_select(
    mechanism: Mechanism,
    runs: str,
    *,
    mean: float | None = None,
    shape: float | None = None,
    stopping: float | None = None,
    number: int | None = None,
    probability: float | None = None,
) -> RepeatAndSelect:
    """Run a mechanism several times and release only the best run, as in hyperparameter tuning.

    Parameters
    ----------
    mechanism : Mechanism
        What one run releases, including the score by which the best run is chosen.  Runs may differ
        in parameters that do not affect its privacy, drawn anew for each run.
    runs : {"poisson", "geometric", "negative_binomial", "binomial", "fixed"}
        Law of the number K of runs, which stays secret; nothing is released for K = 0.  With
        ``fixed`` the guarantee is that of publishing all runs.
    mean : float
        E K of ``poisson``, in (0, ∞).
    shape : float
        η > -1 of the truncated law ``negative_binomial``, as in `duality.repeat_and_select`.
    stopping : float
        γ in (0, 1), of ``geometric`` and ``negative_binomial``.  Each ``geometric`` run is the last
        one with probability γ, so E K = 1/γ.
    number : int
        Runs of ``fixed``, and n of ``binomial``, >= 1.
    probability : float
        p of ``binomial``, in (0, 1).

    Returns
    -------
    RepeatAndSelect
        A step that composes and answers all questions.  Values are **upper bounds** of γ, δ and ε
        and lower ones of β; nothing is known from the other side, and ``bounds`` say so.

    Raises
    ------
    ValueError
        For arguments outside their domains; an `AccuracyError`, when a question is asked, where
        the profile of a run is not proven.

    Notes
    -----
    The pair dominates: its profile joins the bound of `duality.repeat_and_select`, computed from
    the proven profile of one run, by chords.  They add less than 3e-2 of δ, plus 1e-17.

    References
    ----------
    N. Papernot, T. Steinke, Hyperparameter Tuning with Rényi Differential Privacy (2022),
    arXiv:2110.03620; A. Koskela, R. Redberg, Y.-X. Wang, Privacy Profiles for Private Selection
    (2024), arXiv:2402.06701.

    Examples
    --------
    >>> import pyengine as pe
    >>> run = pe.dp_sgd(1.1, "256/60000", 4688)
    >>> tuned = pe.repeat_and_select(run, "geometric", stopping=1 / 20)
    >>> published = pe.repeat_and_select(run, "fixed", number=20)
    >>> [f"{pe.epsilon(m, 1e-5):.2f}" for m in (run, tuned, published)]
    ['1.32', '2.84', '7.00']
    """
    return RepeatAndSelect(mechanism, runs, mean, shape, stopping, number, probability)
