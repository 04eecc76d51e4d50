"""Audits that may stop at any time: bets against a claim, whose capital is the evidence.

A privacy claim implies, for every test φ with values in [0, 1] and every c >= 0,
E_with φ <= e^c E_without φ + δ_remove(c), and the same with both laws exchanged or with 1 - φ
instead of φ.  Each inequality is a bet: Z = φ(with) - e^c φ(without) - δ(c) has a mean of at most
0, so Π (1 + λ Z), 0 <= λ < 1/(e^c + δ), is a nonnegative supermartingale that starts at 1, and so
is the mean of such products over c, λ and the four inequalities.  The probability that it ever
reaches 1/α is at most α (Ville's inequality), so one may look at any time.
"""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine.api import compose, delta, epsilon
from pyengine.calibration.proven import proven_bounds
from pyengine.errors import AccuracyError
from pyengine.numerics import functions as fn
from pyengine.workbench.audit._inputs import finite_array, probability_level

__all__ = ["SequentialAudit"]

FloatArray = npt.NDArray[np.float64]

TANGENTS = 16  # values of c, each a tangent of the claimed trade-off curve
DECADES = 4.0  # powers of ten from δ at the smallest c to δ at the largest
STAKES = 0.9 * 0.5 ** np.arange(8.0)  # values of λ, as shares of 1/(e^c + δ)
BLOCK = 1024  # pairs of runs processed at once


class SequentialAudit:
    """Test of a privacy claim on a stream of runs, which may be stopped at any time.

    Parameters
    ----------
    claim : Mechanism, or what describes one
        The claimed mechanism; `GenericMechanism(epsilon, delta)` for a claim of (ε, δ)-DP.
    confidence : float
        Level in (0, 1): a true claim is ever refuted with probability at most 1 - confidence,
        however long the stream is and whenever it is stopped.
    adjacency : {"add_remove", "substitute"}
        Whether runs are with and without a record, or with one record and with another one.

    Raises
    ------
    ValueError
        For an argument outside its domain.
    AccuracyError
        If no proven bounds of the claim's profile are known.

    Notes
    -----
    Each pair of runs must be independent of the others, and the guessing rule of a pair fixed
    before its runs; it may depend on all earlier pairs.  The profile of the claim is a proven upper
    bound; the capital is computed in floating point.  The bets use up to 16 values of c, at which
    the claimed δ is between δ(0) and 1e-4 δ(0).

    References
    ----------
    T. González, M. Dulce-Rubio, A. Ramdas, M. Ribero, Sequentially Auditing Differential Privacy
    (2025), arXiv:2509.07055; T. Kutta, M. Dunsche, Y. Wei, V. Zikas, Sequential Auditing for
    f-Differential Privacy (2026), arXiv:2602.06518.

    Examples
    --------
    >>> import numpy as np
    >>> import pyengine as pe
    >>> from pyengine import audit
    >>> test = audit.SequentialAudit(pe.GaussianMechanism(1.0), confidence=0.99)
    >>> rng = np.random.default_rng(0)
    >>> for _ in range(500):  # the noise is half of what is claimed
    ...     with_record, without = rng.normal([1.0, 0.0], 0.5) > 0.5
    ...     if test.update(with_record, without):
    ...         break
    >>> test.is_refuted, test.pairs < 200
    (True, True)
    """

    def __init__(
        self, claim: Any, *, confidence: float = 0.95, adjacency: str = "add_remove"
    ) -> None:
        level = probability_level("confidence", confidence)
        word = checks.choice("adjacency", adjacency, ("add_remove", "substitute"))
        run = compose(claim)
        self._confidence = level
        self._threshold = -fn.log1p(-level)
        orders = ("remove", "add") if word == "add_remove" else ("substitute", "substitute")
        exponents = _exponents(run, word)
        tolerated = [
            np.asarray(proven_bounds("delta", run, exponents, adjacency=order).upper, dtype=float)
            for order in orders
        ]
        # shape (inequalities, tangents)
        self._tolerated = np.stack([tolerated[0], tolerated[1]] * 2)
        self._factor = fn.exp(exponents)
        largest = 1.0 / (self._factor + self._tolerated)
        self._stakes = largest[:, :, None] * STAKES
        self._logs = np.zeros(self._stakes.shape)
        self._pairs = 0
        self._highest = 0.0
        self._refuted_at: int | None = None

    @property
    def pairs(self) -> int:
        """Number of pairs of runs so far."""
        return self._pairs

    @property
    def log_evidence(self) -> float:
        """Log of the capital, which starts at 1; it does not grow on average if the claim holds."""
        return float(_log_mean(self._logs.reshape(1, -1))[0])

    @property
    def p_value(self) -> float:
        """One over the largest capital so far: a p-value whenever the stream is stopped."""
        return fn.exp(-self._highest)

    @property
    def is_refuted(self) -> bool:
        """Whether the claim is refuted at the given confidence."""
        return self._refuted_at is not None

    @property
    def refuted_at(self) -> int | None:
        """Number of pairs after which the claim was refuted; None as long as it is not."""
        return self._refuted_at

    def update(self, with_record: npt.ArrayLike, without_record: npt.ArrayLike) -> bool:
        """Add the guesses for further pairs of runs, in their order.

        Parameters
        ----------
        with_record, without_record : array_like of one shape, one- or zero-dimensional
            Guesses "the record took part" for runs with it and for runs without it: 0, 1, truth
            values, or probabilities in between for randomized tests.

        Returns
        -------
        bool
            `is_refuted`.

        Raises
        ------
        ValueError
            For guesses outside [0, 1], or of different shapes.
        """
        first, second = (
            _guesses(name, value)
            for name, value in (
                ("with_record", with_record),
                ("without_record", without_record),
            )
        )
        if first.shape != second.shape:
            raise ValueError(
                f"without_record must have one guess for each of with_record, {first.size}, got "
                f"{second.size}"
            )
        for start in range(0, first.size, BLOCK):
            self._bet(first[start : start + BLOCK], second[start : start + BLOCK])
        return self.is_refuted

    def _bet(self, first: FloatArray, second: FloatArray) -> None:
        tests = [(first, second), (second, first), (1.0 - first, 1.0 - second)]
        tests.append((1.0 - second, 1.0 - first))
        up, down = (np.stack(x) for x in zip(*tests, strict=True))  # inequalities x pairs
        gain = up[:, None, :] - self._factor[:, None] * down[:, None, :]
        gain -= self._tolerated[:, :, None]
        logs = fn.log1p(self._stakes[:, :, :, None] * gain[:, :, None, :])
        path = self._logs[:, :, :, None] + np.cumsum(logs, axis=-1)
        capital = _log_mean(path.reshape(-1, first.size).T)
        over = np.flatnonzero(capital >= self._threshold)
        if over.size and self._refuted_at is None:
            self._refuted_at = self._pairs + int(over[0]) + 1
        self._highest = max(self._highest, float(capital.max()))
        self._logs = path[..., -1].copy()
        self._pairs += first.size


def _guesses(name: str, value: Any) -> FloatArray:
    array = np.asarray(value)
    if array.dtype.kind == "b":
        array = array.astype(np.float64)
    found = finite_array(name, array, (0, 1)).ravel()
    if found.min() < 0.0 or found.max() > 1.0:
        raise ValueError(f"{name} must hold guesses in [0, 1], got {checks.shown(value)}")
    return found


def _log_mean(logs: FloatArray) -> FloatArray:
    """Log of the mean of the exponentials in each row."""
    top = logs.max(axis=1)
    return np.asarray(top + fn.log(np.mean(fn.exp(logs - top[:, None]), axis=1)))


def _exponents(run: Any, adjacency: str) -> FloatArray:
    """Values of c < 20, from 0 to where the claimed δ is 10^-`DECADES` of that at 0."""
    words: dict[str, Any] = {"adjacency": adjacency}
    most = float(delta(run, 0.0, **words))
    if not most > 0.0:
        return np.zeros(1)
    found = {0.0}
    for decade in np.linspace(0.0, DECADES, TANGENTS)[1:].tolist():
        try:
            exponent = float(epsilon(run, most * 10.0**-decade, **words))
        except AccuracyError:
            continue
        if exponent < 20.0:
            found.add(exponent)
    return np.array(sorted(found))
