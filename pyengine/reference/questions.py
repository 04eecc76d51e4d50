"""Trade-off function, γ(κ), δ(ε) and ε(δ) in arbitrary precision."""

from __future__ import annotations

import math
from collections.abc import Callable
from fractions import Fraction
from typing import Any

from flint import arb

from pyengine._support import checks
from pyengine.errors import NotDefinedError
from pyengine.mechanisms import Mechanism
from pyengine.mechanisms.threat_models import Relaxed, ThreatModel, threat_model_of
from pyengine.reference.answers import BallAnswer, Pair, hull, larger
from pyengine.reference.balls import exact, precision
from pyengine.reference.exclusive import exclusive
from pyengine.reference.pairs import ADJACENCIES, SIGNS, pair_of
from pyengine.reference.relaxed import length_pair
from pyengine.reference.value import MOST_DIGITS, Value, make

__all__ = ["delta", "epsilon", "gamma_bound", "trade_off"]

FEW_DIGITS = 6  # of δ(0), where a comparison with δ needs no more
Asked = tuple[Pair | None, tuple[int, ...], int]  # the pair, its orders, digits


@exclusive
def trade_off(
    mechanism: Mechanism,
    alpha: checks.NumberLike,
    *,
    adjacency: str = "add_remove",
    threat_model: str | ThreatModel = "dp",
    digits: int = 30,
) -> Value:
    """Type-II error β of the best test at level α, in arbitrary precision.

    Parameters
    ----------
    mechanism : Mechanism
        Strings and fractions as parameters are exact; floats are taken as their binary values.
    alpha : float or exact number (str, Fraction, Decimal)
        Level of the test, in [0, 1].
    adjacency : {"add_remove", "add", "remove", "substitute"}
        As in `pyengine.trade_off`.
    threat_model : {"dp", "relaxed"} or ThreatModel
        As in `pyengine.trade_off`; relaxed answers are estimates on which two computations agree.
    digits : int
        Significant decimal digits, in [1, 200].

    Returns
    -------
    Value
        β with ``error`` (at most 10^-digits of it) and ``certified``: True if the error is proven,
        False if it is an estimate.

    Raises
    ------
    ValueError
        For an argument outside its domain.
    AccuracyError
        Where the digits are out of reach.

    Notes
    -----
    Methods, proofs and what is only estimated: docs, theory/ground_truth.

    References
    ----------
    J. Dong, A. Roth, W. Su, Gaussian Differential Privacy, JRSS B 84 (2022), Definitions 2.1 and
    F.1.

    Examples
    --------
    >>> import pyengine as pe
    >>> mechanism = pe.dp_sgd("1", "0.01", 1000)
    >>> pe.reference.trade_off(mechanism, "0.1", adjacency="add")
    Value('0.8057988683720467150104861614...', error=..., certified)
    """
    return _curve(_asked(mechanism, adjacency, digits, threat_model), "alpha", alpha, "beta")


@exclusive
def gamma_bound(
    mechanism: Mechanism,
    kappa: checks.NumberLike,
    *,
    adjacency: str = "add",
    threat_model: str | ThreatModel = "dp",
    digits: int = 30,
) -> Value:
    """Reconstruction robustness γ(κ), in arbitrary precision.

    Parameters
    ----------
    mechanism
        As in `trade_off`.
    kappa : float or exact number (str, Fraction, Decimal)
        Success probability of the adversary without the release, in [0, 1].
    adjacency : {"add", "remove", "add_remove", "substitute"}
        As in `pyengine.gamma_bound`.
    threat_model, digits
        As in `trade_off`.

    Returns
    -------
    Value
        γ = 1 - T(κ) with its ``error``, as in `trade_off`.

    Raises
    ------
    ValueError, AccuracyError
        As in `trade_off`.

    References
    ----------
    G. Kaissis, J. Hayes, A. Ziller, D. Rueckert, Bounding data reconstruction attacks with the
    hypothesis testing interpretation of differential privacy (2023).

    Examples
    --------
    >>> import pyengine as pe
    >>> pe.reference.gamma_bound(pe.dp_sgd("1", "0.01", 1000), "1e-3", digits=20).decimal(20)
    '0.004068447881142565856'
    """
    return _curve(_asked(mechanism, adjacency, digits, threat_model), "kappa", kappa, "gamma")


@exclusive
def delta(
    mechanism: Mechanism,
    epsilon: checks.NumberLike,
    *,
    adjacency: str = "add_remove",
    threat_model: str | ThreatModel = "dp",
    digits: int = 30,
) -> Value:
    """Privacy profile δ(ε), in arbitrary precision.

    Parameters
    ----------
    mechanism
        As in `trade_off`.
    epsilon : float or exact number (str, Fraction, Decimal)
        In [0, ∞].
    adjacency : {"add_remove", "add", "remove", "substitute"}
        As in `pyengine.delta`.
    threat_model, digits
        As in `trade_off`.

    Returns
    -------
    Value
        δ with its ``error``, as in `trade_off`.

    Raises
    ------
    ValueError, AccuracyError
        As in `trade_off`.

    References
    ----------
    C. J. Lebeda, M. Regehr, G. Kamath, T. Steinke, Avoiding Pitfalls for Privacy Accounting of
    Subsampled Mechanisms under Composition (2024), Section 2.

    Examples
    --------
    >>> import pyengine as pe
    >>> pe.reference.delta(pe.dp_sgd("0.8", "0.001", 10_000), 1, digits=12).decimal(12)
    '5.31959137797e-7'
    """
    pair, signs, places = _asked(mechanism, adjacency, digits, threat_model)
    if isinstance(epsilon, float) and epsilon == math.inf:
        return _largest(
            signs, places, lambda sign, _: BallAnswer(_infinite(pair, sign), True, None)
        )
    bound = Fraction(checks.non_negative("epsilon", epsilon))
    if pair is None:
        return _exactly(Fraction(0))
    return _largest(signs, places, lambda sign, more: pair.profile(bound, sign, more))


@exclusive
def epsilon(
    mechanism: Mechanism,
    delta: checks.NumberLike,
    *,
    adjacency: str = "add_remove",
    threat_model: str | ThreatModel = "dp",
    digits: int = 30,
) -> Value:
    """Inverse of the privacy profile, in arbitrary precision.

    Parameters
    ----------
    mechanism
        As in `trade_off`.
    delta : float or exact number (str, Fraction, Decimal)
        In [0, 1].
    adjacency : {"add_remove", "add", "remove", "substitute"}
        As in `pyengine.epsilon`.
    threat_model, digits
        As in `trade_off`.

    Returns
    -------
    Value
        The smallest ε >= 0 with δ(ε) <= ``delta``, with its ``error``, as in `trade_off`; inf where
        there is none.

    Raises
    ------
    ValueError, AccuracyError
        As in `trade_off`.

    References
    ----------
    C. J. Lebeda, M. Regehr, G. Kamath, T. Steinke, Avoiding Pitfalls for Privacy Accounting of
    Subsampled Mechanisms under Composition (2024), Table 1.

    Examples
    --------
    >>> import pyengine as pe
    >>> lebeda = pe.dp_sgd("0.8", "0.001", 10_000)
    >>> pe.reference.epsilon(lebeda, "1e-7", adjacency="remove", digits=12).decimal(12)
    '1.17076284323'
    """
    bound = Fraction(checks.probability("delta", delta))
    pair, signs, places = _asked(mechanism, adjacency, digits, threat_model)
    if pair is None:
        return _exactly(Fraction(0))
    return _largest(signs, places, lambda sign, more: _epsilon(pair, bound, sign, more))


def _infinite(pair: Pair | None, sign: int) -> arb:
    return arb(0) if pair is None else pair.infinite(sign)


def _epsilon(pair: Pair, bound: Fraction, sign: int, digits: int) -> BallAnswer:
    start = pair.profile(Fraction(0), sign, min(FEW_DIGITS, digits))
    with precision(int(4 * digits) + 200):
        goal = exact(bound)
        if start.value.overlaps(goal):
            start = pair.profile(Fraction(0), sign, digits)
        if not start.value > goal:
            return BallAnswer(arb(0), start.certified, None)
        if pair.infinite(sign) > goal:
            return BallAnswer(arb("inf"), True, None)
        if bound == 0:
            top = pair.largest(sign)
            return BallAnswer(arb("inf") if top is None else top, True, None)
    return pair.epsilon(bound, sign, digits)


def _curve(asked: Asked, name: str, level: Any, wanted: str) -> Value:
    alpha = Fraction(checks.probability(name, level))
    pair, signs, places = asked
    if pair is None or alpha == 1:
        return _exactly(1 - alpha if wanted == "beta" else alpha)
    if alpha == 0:
        with precision(4 * places + 64):
            free = max((pair.infinite(-sign) for sign in signs), key=float)
            return make(1 - free if wanted == "beta" else +free, certified=True)
    if len(signs) > 1:
        answer = hull(pair, alpha, wanted, places)
    else:
        answer = pair.trade_off(alpha, signs[0], wanted, places)
    return make(answer.value, certified=answer.certified)


def _asked(
    mechanism: Mechanism, adjacency: str, digits: int, threat_model: str | ThreatModel
) -> Asked:
    word = checks.choice("adjacency", adjacency, ADJACENCIES)
    places = checks.count("digits", digits, least=1, most=MOST_DIGITS)
    model = threat_model_of(threat_model)
    if isinstance(model, Relaxed):
        if word not in SIGNS:
            raise NotDefinedError(
                f"adjacency must be 'add', 'remove' or 'add_remove' there, got {checks.shown(word)}"
            )
        return length_pair(mechanism, model), SIGNS[word], places
    pair, signs = pair_of(mechanism, word)
    return pair, signs, places


def _largest(
    signs: tuple[int, ...], digits: int, question: Callable[[int, int], BallAnswer]
) -> Value:
    answer = question(signs[0], digits)
    for sign in signs[1:]:
        answer = larger(answer, question(sign, digits))
    return make(answer.value, certified=answer.certified)


def _exactly(value: Fraction) -> Value:
    with precision(2000):
        return make(exact(value), certified=True)
