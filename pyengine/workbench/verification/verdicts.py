"""Verdicts on claimed values: their distance from the truth, and whether they are safe."""

from __future__ import annotations

import math
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from fractions import Fraction

from pyengine.workbench.tables.cells import Cell
from pyengine.workbench.tables.specials import FUNCTIONS
from pyengine.workbench.tables.spread import spread
from pyengine.workbench.tables.units import Unit, cells_of, solve
from pyengine.workbench.verification.claims import Claim

__all__ = ["FAILURES", "Rule", "Verdict", "judge", "truths"]

SAFE, AGREES, WITHIN = "safe", "agrees", "within tolerance"
UNSAFE, LOOSE, WRONG_BOUND, WRONG = "UNSAFE", "TOO LOOSE", "WRONG BOUND", "WRONG"
NO_VALUE, NO_TRUTH = "no value", "NO TRUTH"
FAILURES = (UNSAFE, LOOSE, WRONG_BOUND, WRONG, NO_TRUTH)

Number = Fraction | float  # a float is inf or -inf


@dataclass(frozen=True)
class Rule:
    """Tolerance for claims.

    Parameters
    ----------
    tolerance : Fraction
        Largest relative error on the unsafe side that passes, >= 0.
    both_sides : bool
        Whether a larger error on the safe side fails, too.
    """

    tolerance: Fraction
    both_sides: bool = False


@dataclass(frozen=True)
class Verdict:
    """The result of comparing a claim with the truth.

    Parameters
    ----------
    claim : Claim
        The claim.
    truth : Cell
        The true value, with its bounds.
    word : str
        One of the words of this module; those in `FAILURES` fail.
    error : float or None
        (value - truth)/truth; NaN if the value is NaN, None if there is no truth or no value.
    """

    claim: Claim
    truth: Cell
    word: str
    error: float | None

    @property
    def failed(self) -> bool:
        """Whether the claim fails."""
        return self.word in FAILURES


def truths(
    claims: Sequence[Claim],
    engine: str,
    digits: int,
    workers: int | None,
    advance: Callable[[int], None],
) -> list[Cell]:
    """Compute the true value for each claim, by the reference or by the engines.

    Parameters
    ----------
    claims : sequence of Claim
        The claims.
    engine : {"reference", "auto"}
        Whether to use the reference or the engines.
    digits : int
        Significant digits of the reference.
    workers : int or None
        As for `pyengine.tables.run.run`.
    advance : callable
        Called with the number of new answers.
    """
    units = []
    for index, claim in enumerate(claims):
        asked = (claim.workflow, claim.mechanism, claim.question, claim.adjacency, (claim.at,))
        units.append(Unit(index, *asked, engine, digits, claim.threat_model))
    found: dict[int, Cell] = {}
    for records in spread(deque(units), solve, workers=workers):
        for record in records:
            (found[record["unit"]],) = cells_of(record)
        advance(len(records))
    return [found[unit.index] for unit in units]


def judge(claim: Claim, truth: Cell, rule: Rule) -> Verdict:
    """Compare a claim with the truth.

    Parameters
    ----------
    claim : Claim
        The claim.
    truth : Cell
        The answer to the same question.
    rule : Rule
        The tolerance.

    Returns
    -------
    Verdict
        Its word is one of `FAILURES` if the claim fails.

    Notes
    -----
    The truth is known only to lie between two bounds; a claim between them agrees with it.  For γ,
    δ and ε a value above the truth is safe, for β a value below it; special functions have no safe
    side.
    """
    if claim.value is None:
        return Verdict(claim, truth, NO_VALUE, None)
    if truth.value is None or truth.lower is None or truth.upper is None:
        return Verdict(claim, truth, NO_TRUTH, None)
    if claim.value == "nan":
        return Verdict(claim, truth, WRONG if claim.question in FUNCTIONS else UNSAFE, math.nan)
    value, lower, upper = _number(claim.value), _number(truth.lower), _number(truth.upper)
    error = _relative(value, _number(truth.value))
    below = claim.question == "trade_off"
    word = AGREES
    if _wrong(claim, lower, upper):
        word = WRONG_BOUND
    elif value < lower or value > upper:
        bound = lower if value < lower else upper
        beyond = _beyond(value, bound, rule.tolerance)
        if claim.question in FUNCTIONS:
            word = WRONG if beyond else WITHIN
        elif (value < lower) == below:
            word = LOOSE if rule.both_sides and beyond else SAFE
        else:
            word = UNSAFE if beyond else WITHIN
    return Verdict(claim, truth, word, error)


def _wrong(claim: Claim, lower: Number, upper: Number) -> bool:
    """Whether the truth lies outside the claimed bounds."""
    below = claim.lower is not None and not _number(claim.lower) <= upper
    above = claim.upper is not None and not _number(claim.upper) >= lower
    return below or above


def _beyond(value: Number, bound: Number, tolerance: Fraction) -> bool:
    """Whether the distance of a value from a bound exceeds the tolerance, relative to the bound."""
    if isinstance(value, float) or isinstance(bound, float):
        return True  # one is infinite and the other one is not
    return abs(value - bound) > tolerance * bound


def _number(text: str) -> Number:
    return float(text) if text in ("inf", "nan") else Fraction(text)


def _relative(value: Number, truth: Number) -> float:
    if value == truth:
        return 0.0
    if truth == 0:
        return math.copysign(math.inf, value)
    if math.isinf(truth):
        return -1.0
    try:
        return float((value - truth) / truth)
    except OverflowError:
        return math.copysign(math.inf, value - truth)
