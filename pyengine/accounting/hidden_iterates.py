"""The last iterate of noisy SGD whose other iterates stay hidden, on losses that contract."""

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
from pyengine.api import compose
from pyengine.engines.answers import Answer, Answering, ErrorCurve, Questions, names
from pyengine.errors import NotDefinedError
from pyengine.mechanisms import GaussianMechanism, Label, Mechanism, label_of
from pyengine.numerics import functions as fn
from pyengine.numerics.rounding import UNIT

__all__ = ["LastIterate", "last_iterate"]

FloatArray = npt.NDArray[np.float64]

SHARES = np.linspace(0.02, 0.98, 49)  # of the noise that hides the distance of both runs
COUNTS = 200  # numbers of last steps that are compared
NEAR = (0.6, 0.8, 1.0, 1.25, 1.6)  # times the number of steps that a normal limit prefers
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
        c: every update brings two points nearer by this factor, at least.
    diameter : float
        Of the constraint set, in units of what one record moves an update by.
    """

    noise: checks.NumberLike
    rate: checks.NumberLike
    steps: int
    contraction: float
    diameter: float

    def __str__(self) -> str:
        return self.labels("add_remove")[0].mechanism

    @property
    def parts(self) -> tuple[Mechanism, ...]:
        """The run whose last iterate is released."""
        return (self._step(self.noise).composed(self.steps),)

    def labels(self, adjacency: str) -> list[Label]:
        """What numbers must be read with."""
        (whole,) = label_of(self.parts[0], adjacency)
        within = "" if math.isinf(self.diameter) else f" in a set of diameter {self.diameter:g}"
        words = f"last iterate of {whole.mechanism}, updates contract by {self.contraction:g}"
        return [whole._replace(mechanism=words + within, known="upper bound")]

    def bound(self, last: int, share: float) -> Mechanism:
        """A composition that is no more private than the last iterate, whatever its parameters.

        Parameters
        ----------
        last : int
            Number of last steps that count as sampled steps, in [1, steps].
        share : float
            Share of the noise of each of them that hides the distance between both runs, in (0, 1);
            not used where all steps count, or none are sampled.

        Returns
        -------
        Mechanism
            G(μ_0) beside ``last`` steps of less noise (docs, theory/last_iterate).
        """
        count = checks.count("last", last)
        if not 1 <= count <= self.steps:
            raise ValueError(f"last must be in [1, {self.steps}], got {last}")
        part = checks.real("share", share)
        if not 0.0 < part < 1.0:
            raise ValueError(f"share must be in (0, 1), got {share!r}")
        if self.rate == 1:
            moved = self._distance(self.steps - count) * self.contraction**count
            moved += _series(self.contraction, count)
            mu = moved / float(self.noise) / math.sqrt(_series(self.contraction**2, count))
            return GaussianMechanism(_below(1.0 / (mu * (1.0 + _rounding(self.steps)))))
        apart = self._distance(self.steps - count)
        if apart == 0.0:
            return self._step(self.noise).composed(count)
        left = apart * self.contraction**count / math.sqrt(_series(self.contraction**2, count))
        mu = left / float(self.noise) / math.sqrt(part) * (1.0 + _rounding(self.steps))
        rest = self._step(_below(float(self.noise) * math.sqrt(1.0 - part) * (1.0 - 8.0 * UNIT)))
        steps = rest.composed(count)
        return steps if mu < 1e-300 else GaussianMechanism(_below(1.0 / mu)) + steps

    @cached_property
    def candidates(self) -> tuple[Mechanism, ...]:
        """Compositions that are compared: all are bounds, and the least one is taken."""
        found = [self.bound(self.steps, 0.5)]
        counts = np.unique(np.geomspace(1, self.steps, COUNTS).astype(int))
        noise, p, c = float(self.noise), float(self.rate), self.contraction
        if self.rate == 1:
            sizes = [
                (self._distance(self.steps - n) * c**n + _series(c, n)) ** 2 / _series(c * c, n)
                for n in counts.tolist()
            ]
            return (*found, self.bound(int(counts[int(np.argmin(sizes))]), 0.5))
        apart = np.array([self._distance(self.steps - n) * c**n for n in counts.tolist()])
        left = (apart / noise) ** 2 / np.array([_series(c * c, n) for n in counts.tolist()])
        with np.errstate(over="ignore"):
            each = p * p * fn.expm1(1.0 / (noise * noise * (1.0 - SHARES)))
        sizes = left[:, None] / SHARES + counts[:, None] * each  # squares of μ in the normal limit
        best = int(counts[np.unravel_index(int(np.argmin(sizes)), sizes.shape)[0]])
        for n in sorted({min(max(round(best * factor), 1), self.steps) for factor in NEAR}):
            row = int(np.argmin(np.abs(counts - n)))
            share = float(SHARES[int(np.argmin(sizes[row]))])
            found += [self.bound(n, s) for s in sorted({share, 0.5 * share, 0.5 * (1.0 + share)})]
        return tuple(found)

    def questions(self, adjacency: str, tolerance: float | None) -> Questions:
        """The least of all bounds, each at its own argument."""
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
        """Largest distance of both runs after so many steps, in the units of the diameter."""
        return min(self.diameter, _series(self.contraction, steps)) if steps else 0.0


def last_iterate(
    noise_multiplier: checks.NumberLike,
    rate: checks.NumberLike,
    steps: int,
    *,
    contraction: float,
    diameter: float = math.inf,
) -> LastIterate:
    """The last iterate of noisy (stochastic) gradient descent; all others stay hidden.

    An update is x ↦ Π(x - η g(x) + noise), Π the projection on a convex set, with a gradient g of
    the records of a batch that, without noise, brings any two points nearer by a factor c <= 1.

    Parameters
    ----------
    noise_multiplier : float or exact number
        Standard deviation of the noise over the largest change of the update that one record makes,
        η times its Lipschitz constant over the batch size; > 0.
    rate : float or exact number
        Probability that a record is in a batch (Poisson sampling), in (0, 1]; 1 for full batches.
    steps : int
        Number of updates, >= 1.
    contraction : float
        c in (0, 1], for each batch that may be drawn.  For losses that are m-strongly convex and
        M-smooth the larger of abs(1 - ηm) and abs(1 - ηM), for convex ones with η <= 2 / M it is 1.
        Clipped gradients are those of no such loss.
    diameter : float
        Of the set that Π projects on, over that largest change of an update; infinite if there is
        none.  With c = 1 and no set nothing is gained by hiding.

    Returns
    -------
    LastIterate
        Asked by `delta`, `epsilon`, `gamma_bound` and `trade_off`, with ``adjacency`` "add",
        "remove" or "add_remove": proven upper bounds, the least over how many last steps count and
        over their shifts; ``bound`` has each of them as a mechanism that composes.

    Raises
    ------
    ValueError
        For an argument outside its domain.

    Notes
    -----
    Theorem and proof: docs, theory/last_iterate.  Where all steps count it is the composition of
    all iterates, so hiding never costs.

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
    1.09 7.13
    """
    noise = checks.positive("noise_multiplier", noise_multiplier)
    probability = checks.non_negative("rate", rate)
    if not 0 < Fraction(probability) <= 1:
        raise ValueError(f"rate must be in (0, 1], got {checks.shown(rate)}")
    number = checks.count("steps", steps)
    if number < 1:
        raise ValueError(f"steps must be at least 1, got {steps!r}")
    factor = checks.real("contraction", contraction)
    if not 0.0 < factor <= 1.0:
        raise ValueError(f"contraction must be in (0, 1], got {contraction!r}")
    width = float(diameter)
    if not width > 0.0:
        raise ValueError(f"diameter must be > 0, got {diameter!r}")
    return LastIterate(noise, probability, number, factor, width)


def _series(c: float, count: int) -> float:
    """1 + c + ... + c^(count - 1), within a relative `_rounding` of count."""
    return float(count) if c == 1.0 else -fn.expm1(count * fn.log(c)) / (1.0 - c)


def _rounding(steps: int) -> float:
    """Relative error of μ: powers of c above e^-745, two sums of powers, roots and products."""
    return (1 << 13) * UNIT * (1.0 + 1e-9 * steps)


def _below(noise: float) -> float:
    return math.nextafter(noise * (1.0 - 4.0 * UNIT), 0.0)


@kept(64)
def _questions(run: LastIterate, adjacency: str, tolerance: float | None) -> Questions:
    return LeastOf(run.candidates, adjacency, tolerance)


class LeastOf(Questions):
    """The least of several upper bounds: the best mechanism at each argument.

    Parameters
    ----------
    mechanisms : tuple of Mechanism
        Each of them is no more private than what is asked about.
    adjacency : {"add", "remove", "add_remove"}
        The neighbours.
    tolerance : float, optional
        Largest relative width of bounds.
    """

    def __init__(
        self, mechanisms: tuple[Mechanism, ...], adjacency: str, tolerance: float | None
    ) -> None:
        self._mechanisms = tuple(compose(each) for each in mechanisms)
        self._adjacency, self._tolerance = adjacency, tolerance

    def profile(self, epsilon: FloatArray) -> Answer:
        """δ(ε) at ε >= 0."""
        return self._least(api.delta, epsilon, 1.0)

    def epsilon(self, delta: FloatArray) -> Answer:
        """The smallest ε >= 0 with δ(ε) <= δ."""
        return self._least(api.epsilon, delta, 1.0)

    def trade_off(self, alpha: FloatArray) -> ErrorCurve:
        """β and γ."""
        beta = self._least(api.trade_off, alpha, -1.0)
        return ErrorCurve(beta, self._least(api.gamma_bound, alpha, 1.0))

    def answer(self, name: str, x: FloatArray) -> Answer:
        """As of all questions; of both errors of a test only the one that is asked for."""
        if name == "trade_off":
            return self._least(api.trade_off, x, -1.0)
        if name == "gamma_bound":
            return self._least(api.gamma_bound, x, 1.0)
        return super().answer(name, x)

    def _least(self, ask: Callable[..., object], x: FloatArray, sign: float) -> Answer:
        rows = np.zeros((x.size, 3))
        for i, at in enumerate(x.tolist()):
            rough = [
                sign * float(ask(each, at, adjacency=self._adjacency))  # type: ignore[arg-type]
                for each in self._mechanisms
            ]
            best = self._mechanisms[int(np.argmin(rough))]
            found = ask(best, at, adjacency=self._adjacency, bounds=True, tolerance=self._tolerance)
            rows[i] = found.value, found.lower, found.upper  # type: ignore[attr-defined]
        value, lower, upper = rows.T.copy()
        return Answer(value, lower, upper, names(NAME, x.size), True)
