"""The last iterate of noisy SGD with contractive updates, if all other iterates stay hidden."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass
from fractions import Fraction

import numpy as np
import numpy.typing as npt

from pyengine import api
from pyengine._support import checks
from pyengine._support.caches import cached_property, kept
from pyengine._support.decimals import written
from pyengine.api import compose
from pyengine.engines.answers import Answer, Answering, ByFunction, Questions, names
from pyengine.errors import AccuracyError, NotDefinedError
from pyengine.mechanisms import GaussianMechanism, Label, Mechanism, label_of
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["LastIterate", "last_iterate"]

FloatArray = npt.NDArray[np.float64]

SHARES = np.linspace(0.02, 0.98, 49)  # tried shares of the noise variance that hide the distance
COUNTS = 200  # tried values of `last`, the number of last steps
MOVES = (0.2, 0.7, 0.7)  # step sizes of the search in log(last), log(over) and logit(share)
MOST_LAST = 2**62  # largest value of `last` that is tried
MOST_TRIED = 60  # evaluated bounds in a search, about
LEAST_SHARE = 2.0**-9
Place = tuple[int, int, float]  # arguments of a bound: last, over and share
NAME = "last_iterate"


@dataclass(frozen=True)
class LastIterate(Answering):
    """An upper bound for the last iterate of noisy SGD; made by `last_iterate`.

    Parameters
    ----------
    noise : float or exact number
        Noise multiplier.
    rate : float or exact number
        Sampling probability.
    steps : int
        Number of steps.
    contraction : float
        Factor c by which every update at least shrinks the distance of two points.
    diameter : float
        Diameter of the constraint set, over the largest change of an update by one record.
    """

    noise: checks.NumberLike
    rate: checks.NumberLike
    steps: int
    contraction: float
    diameter: float

    def __repr__(self) -> str:
        return self.labels("add_remove")[0].mechanism

    @property
    def parts(self) -> tuple[Mechanism, ...]:
        """The composition that releases all iterates."""
        return (self._step(self.noise).composed(self.steps),)

    def labels(self, adjacency: str) -> list[Label]:
        """What the figures hold for, in words; they are upper bounds."""
        (whole,) = label_of(self.parts[0], adjacency)
        words = (
            f"last iterate of {whole.mechanism}, updates contract by {written(self.contraction)}"
        )
        if not math.isinf(self.diameter):
            words += f" in a set of diameter {written(self.diameter)}"
        return [whole._replace(mechanism=words, known="upper bound")]

    def bound(self, last: int, share: float, over: int | None = None) -> Mechanism:
        """A composition that is at most as private as the last iterate, for any arguments.

        Parameters
        ----------
        last : int
            Number of last steps that are accounted for as released, in [1, steps].
        share : float
            Share of the noise variance, in (0, 1), that hides the distance between both runs before
            these steps; unused if all steps count or the rate is 1.
        over : int, optional
            Number of final steps, in [1, last], whose noise is shared so; all if not given.

        Returns
        -------
        Mechanism
            G(μ_0) composed with ``last`` steps, ``over`` of which have less noise (docs,
            theory/last_iterate).
        """
        count = self._count("last", last, self.steps)
        hiding = count if over is None else self._count("over", over, count)
        part = checks.real("share", share)
        if not 0.0 < part < 1.0:
            raise ValueError(f"share must be in (0, 1), got {checks.shown(share)}")
        c, noise = self.contraction, float(self.noise)
        apart = self._distance(self.steps - count)
        if self.rate == 1:
            moved = apart * c**count + _series(c, count)
            mu = moved / noise / math.sqrt(_series(c * c, count))
            return GaussianMechanism(_below(1.0 / (mu * (1.0 + _rounding(self.steps)))))
        if apart == 0.0:
            return self._step(self.noise).composed(count)
        left = apart * c**count / math.sqrt(_series(c * c, hiding))
        mu = left / noise / math.sqrt(part) * (1.0 + _rounding(self.steps))
        rest = self._step(_below(noise * math.sqrt(1.0 - part) * (1.0 - 8.0 * UNIT)))
        steps = compose(rest.composed(hiding), self._step(self.noise).composed(count - hiding))
        return steps if mu < 1e-300 else GaussianMechanism(_below(1.0 / mu)) + steps

    @staticmethod
    def _count(name: str, given: int, most: int) -> int:
        count = checks.count(name, given)
        if not 1 <= count <= most:
            raise ValueError(f"{name} must be in [1, {most}], got {given}")
        return count

    @cached_property
    def start(self) -> Place:
        """Start of the search: the arguments of the least `bound` in the normal limit."""
        noise, p, c = float(self.noise), float(self.rate), self.contraction
        rests = np.append(1.0, 1.0 - SHARES)

        def least(n: int) -> tuple[float, Place]:
            apart = np.float64(self._distance(self.steps - n) * c**n)
            if self.rate == 1:
                return float((apart + _series(c, n)) ** 2 / _series(c * c, n)), (n, n, 0.5)
            over = _spread(n, COUNTS // 4)
            left = np.array([(apart / noise) ** 2 / _series(c * c, m) for m in over.tolist()])
            sizes = left[:, None] / SHARES + over[:, None] * (less - whole) + n * whole
            sizes = np.where(np.isnan(sizes), math.inf, sizes)  # products of 0 and infinity
            row, column = np.unravel_index(int(np.argmin(sizes)), sizes.shape)
            return float(sizes[row, column]), (n, int(over[row]), float(SHARES[column]))

        with np.errstate(all="ignore"):  # where a search begins, which may be anywhere
            each = p * p * fn.expm1(1.0 / (noise * noise * rests))
            whole, less = each[0], each[1:]
            return min(least(n) for n in _spread(self.steps, COUNTS).tolist())[1]

    def least(self, size: Callable[[Mechanism], float]) -> Mechanism:
        """The smallest `bound` that a local search finds; never worse than releasing all iterates.

        Parameters
        ----------
        size : callable
            Size of a mechanism, to be minimized; infinite if it is not known.
        """
        every = self.bound(self.steps, 0.5)
        known: dict[Place, float] = {}

        def at(place: Place) -> float:
            if place not in known:
                known[place] = size(self.bound(place[0], place[2], place[1]))
            return known[place]

        best, moves = self.start, [(1, 0, 0), (0, 1, 0), (0, 0, 1), (0, 1, -1)]
        for scale in (1.0, 0.4) if self.rate != 1 else (0.1, 0.01):
            moved = True
            while moved and len(known) < MOST_TRIED:
                moved = False
                for move in [tuple(sign * k for k in move) for move in moves for sign in (1, -1)]:
                    while at(place := self._moved(best, move, scale)) < at(best):
                        best, moved = place, True
        return self.bound(best[0], best[2], best[1]) if at(best) < size(every) else every

    def _moved(self, place: Place, move: tuple[int, ...], scale: float) -> Place:
        """Arguments of `bound` one search step away from the given ones, clipped to their range."""
        last, over, share = place
        factors = [fn.exp(k * scale * size) for k, size in zip(move, MOVES, strict=True)]
        count = min(max(round(last * factors[0]), 1), self.steps)
        odds = share / (1.0 - share) * factors[2]
        return (
            count,
            min(max(round(over * factors[1]), 1), count),
            min(max(odds / (1.0 + odds), LEAST_SHARE), 1.0 - LEAST_SHARE),
        )

    def questions(self, adjacency: str, tolerance: float | None) -> Questions:
        """The object that computes the least of all bounds, for each argument anew."""
        if adjacency == "substitute":
            raise NotDefinedError(
                "adjacency must be 'add', 'remove' or 'add_remove' for a last iterate, got "
                "'substitute'"
            )
        return _questions(self, adjacency, tolerance)

    def _step(self, noise: checks.NumberLike) -> Mechanism:
        step = GaussianMechanism(noise)
        return step if self.rate == 1 else step.poisson_sampled(self.rate)

    def _distance(self, steps: int) -> float:
        """Largest distance of the runs on neighbours after ``steps``, in units of the diameter."""
        return min(self.diameter, _series(self.contraction, steps)) if steps else 0.0


def last_iterate(
    noise_multiplier: checks.NumberLike,
    rate: checks.NumberLike,
    steps: int,
    *,
    contraction: float,
    diameter: float = math.inf,
) -> LastIterate:
    """The last iterate of noisy (stochastic) gradient descent, if all others stay hidden.

    An update is x ↦ Π(x - η g(x) + noise), where Π is the projection on a convex set and g the
    gradient of a batch.  Without noise it must be a contraction: it brings any two points nearer by
    a factor c <= 1.

    Parameters
    ----------
    noise_multiplier : float or exact number
        Standard deviation of the noise, divided by the largest change of an update by one record,
        which is η times the Lipschitz constant of its loss over the batch size; > 0.
    rate : float or exact number
        Probability that a record is in a batch (Poisson sampling), in (0, 1]; 1 for full batches.
    steps : int
        Number of updates, >= 1.
    contraction : float
        c in (0, 1], for every batch that may be drawn.  For m-strongly convex, M-smooth losses it
        is the larger of abs(1 - ηm) and abs(1 - ηM); for convex, M-smooth losses with η <= 2 / M it
        is 1.  Clipped gradients are not covered: they do not come from such losses.
    diameter : float
        Diameter of the set that Π projects on, divided by the largest change of an update by one
        record; infinite if there is no projection.  With c = 1 and no projection, hiding the other
        iterates gains nothing.

    Returns
    -------
    LastIterate
        For `delta`, `epsilon`, `gamma_bound` and `trade_off`, with ``adjacency`` "add", "remove" or
        "add_remove": proven upper bounds, the least of a family.  ``bound`` gives a member of the
        family as a mechanism, which can be composed with others.

    Raises
    ------
    ValueError
        For an argument outside its domain.

    Notes
    -----
    Theorem and proof: docs, theory/last_iterate.  The composition of all iterates is one of the
    bounds, so the result is never worse than it.

    References
    ----------
    J. Bok, W. Su and J. Altschuler, Shifted interpolation for differential privacy, ICML 2024,
    arXiv 2403.00278.

    Examples
    --------
    >>> import pyengine as pe
    >>> hidden = pe.last_iterate(2.0, 0.02, 20_000, contraction=0.99)
    >>> shown = pe.GaussianMechanism(2.0).poisson_sampled(0.02).composed(20_000)
    >>> print(f"{pe.epsilon(hidden, 1e-5):.2f} {pe.epsilon(shown, 1e-5):.2f}")
    1.02 7.13
    """
    noise = checks.positive("noise_multiplier", noise_multiplier)
    probability = checks.non_negative("rate", rate)
    if not 0 < Fraction(probability) <= 1:
        raise ValueError(f"rate must be in (0, 1], got {checks.shown(rate)}")
    number = checks.count("steps", steps)
    if number < 1:
        raise ValueError(f"steps must be at least 1, got {checks.shown(steps)}")
    factor = checks.real("contraction", contraction)
    if not 0.0 < factor <= 1.0:
        raise ValueError(f"contraction must be in (0, 1], got {checks.shown(contraction)}")
    width = checks.real("diameter", diameter)
    if not width > 0.0:
        raise ValueError(f"diameter must be > 0, got {checks.shown(diameter)}")
    return LastIterate(noise, probability, number, factor, width)


def _spread(most: int, size: int) -> npt.NDArray[np.int64]:
    """About ``size`` distinct integers from 1 to ``most``, in geometric progression."""
    return np.unique(np.geomspace(1, min(most, MOST_LAST), size).astype(np.int64))


def _series(c: float, count: int) -> float:
    """1 + c + ... + c^(count - 1), with a relative error of at most ``_rounding(count)``."""
    return float(count) if c == 1.0 else -fn.expm1(count * fn.log(c)) / (1.0 - c)


def _rounding(steps: int) -> float:
    """Bound of the relative error of μ: a power of c above e^-745, two series, roots, products."""
    return (1 << 13) * UNIT * (1.0 + 1e-9 * steps)


def _below(noise: float) -> float:
    return math.nextafter(noise * (1.0 - 4.0 * UNIT), 0.0)


@kept(64)
def _questions(run: LastIterate, adjacency: str, tolerance: float | None) -> Questions:
    return LeastBound(run, adjacency, tolerance)


class LeastBound(ByFunction):
    """The least upper bound at each argument, for one adjacency and width of bounds."""

    def __init__(self, run: LastIterate, adjacency: str, tolerance: float | None) -> None:
        self._run, self._adjacency, self._tolerance = run, adjacency, tolerance

    def _own(self, name: str, x: FloatArray) -> Answer:
        ask, sign = getattr(api, name), -1.0 if name == "trade_off" else 1.0
        rows = np.zeros((x.size, 3))
        for i, at in enumerate(x.tolist()):

            def size(run: Mechanism, at: float = at) -> float:
                try:
                    return sign * float(ask(run, at, adjacency=self._adjacency))
                except AccuracyError:
                    return math.inf

            best = self._run.least(size)
            found = ask(best, at, adjacency=self._adjacency, bounds=True, tolerance=self._tolerance)
            rows[i] = found.value, found.lower, found.upper
        value, lower, upper = rows.T.copy()
        return Answer(value, lower, upper, names(NAME, x.size), True)
