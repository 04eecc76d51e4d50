"""Monte Carlo for records in k random steps of an epoch, beside plain Gaussian steps.

Q = N(0, Iₜ) is the law without the record, P the mean of N(μ 1_S, Iₜ) over the sets S of k steps.
Importance samples have a fixed S, as the order of steps does not matter: the selected steps come
from a mixture of N(aₘ, 1), all others from N(v, 1).  Weights are exact, by the elementary symmetric
polynomials of `csrc/random_steps.c` (2605.07072 has the recursion); aₘ, v and the mixture are
fitted to samples of their own, so that the event of a question is likely.

Weights are unbounded, so samples alone give no upper end of an interval.  But blocks of the epoch
dominate it, and the distance from the true profile up to their profile δ' is the mean of a variable
G >= 0 (docs/estimates).  Means of non-negative variables have lower bounds whatever their
range, by truncation: the lower end is that of the profile's own variable X, the upper end is δ'
minus that of G.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._core import ffi, lib
from pyengine._support.caches import cached_property, kept
from pyengine.engines.answers import (
    PROFILE,
    Answer,
    ErrorCurve,
    FloatArray,
    Found,
    LawQuestion,
    Questions,
)
from pyengine.engines.intervals import empirical_bernstein
from pyengine.engines.shifted_samples import (
    CONFIDENCE,
    DIGIT,
    HITS,
    Drawn,
    answer_of,
    largest_of,
)
from pyengine.errors import AccuracyError, NotDefinedError
from pyengine.mechanisms import Mechanism, in_words, steps_of
from pyengine.numerics import golden_section

__all__ = ["AllocatedSampleQuestions"]

SEED = 0
WORK, FEWEST, MOST = 3e9, 2000, 150_000  # time of a sample in about ns, and numbers of groups
PILOT = 8  # the pilot, which chooses where variables are truncated, has 1/PILOT as many groups
REPLICATES = 8  # draws of the selected steps for each draw of the others
TUNING, ROUNDS = 512, (6, 30)  # groups of a round of fitting; fewest and most rounds
SHARE = 0.1  # fraction of a round's samples that are at least in the event that it is fitted to
SHIFTS, LEAST_WEIGHT = 8, 2e-3  # components of a mixture, 1 apart, and the least weight of one
LANES = 2**14  # normal numbers of one call of the C core
ROOM = 4e6  # normal numbers of a round in memory at once
MOST_NORMALS = 1e6  # of one loss
CUTS = tuple(2.0**j for j in range(-8, 5))  # truncations tried, over the pilot's largest value
DECADES = 300  # one sample serves all profiles of a decade of δ
# relative distances of ε from the estimate at which it is tested, the farthest first
CANDIDATES = tuple(4.0 * 0.7**j for j in range(26))
LOG_SLOPES = (
    -1.0,
    -0.5,
    -0.25,
    -0.12,
    0.0,
    0.12,
    0.25,
    0.5,
    1.0,
)  # log slopes about the best line's


class _Epochs(NamedTuple):
    """Equal epochs; plain Gaussian steps of one kind are a single epoch of one step."""

    mu: float
    steps: int
    selected: int
    number: int


class _Proposal(NamedTuple):
    """The law of the samples for one kind of epochs: aₘ, their weights, and v."""

    means: tuple[float, ...]
    weights: tuple[float, ...]
    shift: float


_Kinds = tuple[_Epochs, ...]
Places = npt.NDArray[np.intp]


def _kinds(mechanism: Mechanism) -> _Kinds:
    found = []
    for step, number in steps_of(mechanism):
        if step.places is not None:
            noise, steps, selected = step.places
            found.append(_Epochs(1.0 / float(noise), steps, selected, number))
        elif step.noise is not None and step.noise.family == "gaussian":
            mu = math.sqrt(number) / float(step.noise.multiplier)
            found.append(_Epochs(mu, 1, 1, 1))
        else:
            raise NotDefinedError(
                "method='monte_carlo' takes random allocation beside plain Gaussian steps, got "
                f"{' and '.join(in_words(mechanism))}"
            )
    normals = sum(kind.steps * kind.number for kind in found)
    if normals > MOST_NORMALS:
        raise AccuracyError(
            f"one loss of {' and '.join(in_words(mechanism))} takes {normals:,} normal numbers, at "
            f"most {MOST_NORMALS:,.0f} are feasible"
        )
    return tuple(found)


class _Batch:
    """Losses of groups of samples; the replicates of a group share the steps without the record.

    For all replicates and groups `loss` is log dP/dQ, `ratio` the log ratio of the sampled law to
    Q, and `blocks` the loss of random blocks.  For each kind `selected` are the values of the
    selected steps, and `mean` the mean values of the others.
    """

    def __init__(
        self,
        kinds: _Kinds,
        laws: Sequence[_Proposal],
        of_p: bool,
        groups: int,
        seed: Sequence[int],
        *,
        keeps: bool = False,
    ) -> None:
        rng = np.random.default_rng(list(seed))
        self.groups, self.of_p = groups, of_p
        replicates = REPLICATES if of_p else 1
        total = np.zeros((3, replicates, groups))
        self.selected: list[FloatArray] = []
        self.mean: list[FloatArray] = []
        for kind, law in zip(kinds, laws, strict=True):
            placed = kind.selected if of_p else 0
            values = np.empty((replicates, placed * kind.number if keeps else 0, groups))
            mean = np.zeros(groups)
            size = int(min(max(LANES // kind.steps, 32), 1024))
            for epoch in range(kind.number):
                for first in range(0, groups, size):
                    part = slice(first, min(first + size, groups))
                    others, x, found = _drawn(kind, law, placed, replicates, part, rng)
                    total[:, :, part] += found
                    if keeps:
                        values[:, epoch * placed : (epoch + 1) * placed, part] = x
                        mean[part] += others / kind.number
            self.selected.append(values)
            self.mean.append(mean)
        if np.isnan(total).any():
            worst = max(kinds, key=lambda kind: kind.mu)
            raise AccuracyError(
                f"the losses of epochs with each record in {worst.selected} of {worst.steps} steps "
                f"at a noise multiplier of {1.0 / worst.mu:g} leave the range of doubles; "
                "method='auto' bounds what is asked for"
            )
        self.loss, self.ratio, self.blocks = total.reshape(3, -1)

    def terms(self, c: float) -> tuple[FloatArray, FloatArray]:
        """Means over each group of X and of G.

        The mean of X is the profile at c: E_P(1 - e^{c-L})₊ for the target P, E_Q(1 - e^{c+L})₊
        for Q.
        """
        x, gap = (
            np.bincount(places % self.groups, weights=values, minlength=self.groups)
            for places, values in self._each(c)
        )
        share = self.groups / self.loss.size
        return np.asarray(x * share), np.asarray(gap * share)

    def weights(self, c: float) -> FloatArray:
        """X + G of each sample, each divided by its sum, of shape (replicates, groups)."""
        total = np.zeros(self.loss.size)
        for places, values in self._each(c):
            whole = float(values.sum())
            if 0.0 < whole < math.inf:
                total[places] += values / whole
        return total.reshape(-1, self.groups)

    def _each(self, c: float) -> tuple[tuple[Places, FloatArray], tuple[Places, FloatArray]]:
        """Indices of samples with X, and of those with G, that may not be 0; and the values."""
        with np.errstate(over="ignore", under="ignore"):
            edge = c if self.of_p else -c
            over = self.loss > edge
            event = np.flatnonzero(over if self.of_p else ~over)
            loss, ratio = self.loss[event], self.ratio[event]
            if self.of_p:
                x = np.exp(loss - ratio) * -np.expm1(np.minimum(c - loss, 0.0))
            else:
                x = np.exp(-ratio) * -np.expm1(np.minimum(c + loss, 0.0))
            other = np.flatnonzero(over != (self.blocks > edge))
            height = c if self.of_p else 0.0  # edge + lift: G = e^lift |e^blocks - e^edge|
            lift = 0.0 if self.of_p else c
            more = np.exp(self.blocks[other] + lift - self.ratio[other])
            gap = np.abs(more - np.exp(height - self.ratio[other]))
        return (event, x), (other, gap)


def _drawn(
    kind: _Epochs,
    law: _Proposal,
    placed: int,
    replicates: int,
    part: slice,
    rng: np.random.Generator,
) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Mean values of the other steps, values of the selected ones, and three rows of losses."""
    n, others = part.stop - part.start, kind.steps - placed
    means, weights = np.array(law.means), np.array(law.weights)
    z = rng.standard_normal((others, n))
    z += law.shift
    x = rng.standard_normal((replicates, placed, n))
    if placed:
        which = np.searchsorted(np.cumsum(weights)[:-1], rng.random(x.shape), side="right")
        x += means[which]
    share = rng.random(x.shape)
    s = ffi.new("pe_random_steps *")
    s.others, s.degree, s.placed, s.replicates = others, kind.selected, placed, replicates
    s.mu, s.odds = kind.mu, kind.selected / kind.steps
    t, k = kind.steps, kind.selected
    s.log_choices = math.lgamma(t + 1) - math.lgamma(k + 1) - math.lgamma(t - k + 1)
    # likelihood ratios of the selected steps' law to the others', N(v, 1)
    s.shifts, s.base = means.size if placed else 0, means[0] - law.shift
    s.level = 0.5 * (law.shift**2 - means[0] ** 2)
    s.spacing = means[1] - means[0] if means.size > 1 else 0.0
    factors = weights * np.exp(0.5 * (means[0] ** 2 - means**2))
    s.weight = held = ffi.from_buffer("double[]", factors)
    work = np.empty(lib.pe_random_steps_room(s, n))
    out = np.empty((replicates, 3, n))
    drawn = [ffi.from_buffer("double[]", array) for array in (z, x, share)]
    room, rows = (ffi.from_buffer("double[]", a, require_writable=True) for a in (work, out))
    lib.pe_random_step_losses(s, n, drawn[0], drawn[1], drawn[2], room, rows)
    del held
    total = z.sum(axis=0) + x.sum(axis=1)
    out[:, 1] += law.shift * total - 0.5 * t * law.shift**2
    return z.sum(axis=0) / max(others, 1), x, out.transpose(1, 0, 2)


def _tuned(kinds: _Kinds, of_p: bool, c: float, mixes: bool, seed: int) -> tuple[_Proposal, ...]:
    """Laws fitted, round by round, to samples weighted with X and G of the profile at c."""
    laws = [_start(kind, mixes) for kind in kinds]
    normals = sum(kind.number * (kind.selected if of_p else 0) for kind in kinds) * REPLICATES
    groups = int(min(max(ROOM / max(normals, 1), 64), TUNING)) * (1 if of_p else REPLICATES)
    for turn in range(ROUNDS[1]):
        batch = _Batch(kinds, laws, of_p, groups, (SEED + 2, seed, turn), keeps=True)
        log_ratio = batch.loss if of_p else -batch.loss
        near = min(c, float(np.quantile(log_ratio, 1.0 - SHARE)))
        weights = batch.weights(near)
        if not weights.any():
            break
        laws = [
            _moved(kind, law, values, mean, weights, mixes)
            for kind, law, values, mean in zip(kinds, laws, batch.selected, batch.mean, strict=True)
        ]
        if near >= c and turn >= ROUNDS[0]:
            break
    return tuple(laws)


def _start(kind: _Epochs, mixes: bool) -> _Proposal:
    if not mixes:
        return _Proposal((kind.mu,), (1.0,), 0.0)
    rest = 0.2 / (SHIFTS - 1)
    means = tuple(kind.mu + m for m in range(SHIFTS))
    return _Proposal(means, (0.8,) + (rest,) * (SHIFTS - 1), 0.0)


def _moved(
    kind: _Epochs,
    law: _Proposal,
    values: FloatArray,
    mean: FloatArray,
    weights: FloatArray,
    mixes: bool,
) -> _Proposal:
    """The law after one step of expectation maximisation on the weighted samples."""
    total = float(weights.sum())
    alone = kind.steps == values.shape[1] // kind.number  # no other steps
    shift = 0.0 if alone else float(weights.sum(axis=0) @ mean) / total
    if not values.size:
        return law._replace(shift=shift)
    if not mixes:
        middle = float((values.mean(axis=1) * weights).sum() / total)
        return _Proposal((middle,), (1.0,), shift)
    means = np.array(law.means)
    own = [w * np.exp(values * a - 0.5 * a * a) for w, a in zip(law.weights, means, strict=True)]
    whole = np.sum(own, axis=0)
    shares = np.array([float(((part / whole).mean(axis=1) * weights).sum()) for part in own])
    shares = np.maximum(shares / shares.sum(), LEAST_WEIGHT)
    shares /= shares.sum()
    base = kind.mu + shift
    return _Proposal(tuple(base + m for m in range(SHIFTS)), tuple(shares.tolist()), shift)


class _Moments(NamedTuple):
    """Sample means of X, G and their products, without truncation."""

    x: float
    gap: float
    xx: float
    gg: float
    xg: float

    @classmethod
    def of(cls, x: FloatArray, gap: FloatArray) -> _Moments:
        """Moments of the groups' means."""
        n = x.size
        rows = (x.sum(), gap.sum(), x @ x, gap @ gap, x @ gap)
        return cls(*(float(row) / n for row in rows))

    def best(self) -> float:
        """The λ in [0, 1] for which (1 - λ) X + λ (δ' - G) has the least variance."""
        vx, vg = self.xx - self.x**2, self.gg - self.gap**2
        both = vx + vg + 2.0 * (self.xg - self.x * self.gap)
        if not both > 0.0:
            return 1.0
        return min(max((vx + self.xg - self.x * self.gap) / both, 0.0), 1.0)

    def spread(self, share: float) -> float:
        """Variance of (1 - λ) X - λ G."""
        square = (1.0 - share) ** 2 * self.xx + share**2 * self.gg
        square -= 2.0 * share * (1.0 - share) * self.xg
        mean = (1.0 - share) * self.x - share * self.gap
        return max(square - mean * mean, 0.0)


class _AllocatedSample:
    """Samples of one law, and an independent pilot, by which laws and truncations are chosen."""

    def __init__(self, kinds: _Kinds, of_p: bool, c: float, size: int, seed: int) -> None:
        self.size, pilot = size, max(size // PILOT, FEWEST // 4)
        found: list[tuple[float, int, _Batch, tuple[_Proposal, ...]]] = []
        for mixes in (False, True) if of_p else (False,):
            laws = _tuned(kinds, of_p, c, mixes, seed)
            batch = _Batch(kinds, laws, of_p, pilot, (SEED + 1, seed, int(mixes)))
            moments = _Moments.of(*batch.terms(c))
            cost = (moments.xx + moments.gg) / max(moments.x, 1e-150) ** 2
            found.append((cost if moments.x > 0.0 else math.inf, len(found), batch, laws))
        _, _, self.pilot, laws = min(found, key=lambda row: row[:2])
        self.main = _Batch(kinds, laws, of_p, size, (SEED, seed, 0))

    def lowest(self, values: FloatArray, tried: FloatArray, failure: float) -> float:
        """Lower end for the mean of values >= 0, truncated where the pilot's is largest."""
        top = float(tried.max())
        if not top > 0.0:
            top = 1.0

        def end(of: FloatArray, cut: float) -> float:
            short = np.minimum(of, cut)
            moments = (np.array([float(short.mean())]), np.array([float(short @ short) / of.size]))
            off = empirical_bernstein(*moments, np.array([cut]), self.size, failure)
            return float(moments[0][0] - off[0])

        best = max((top * cut for cut in CUTS), key=lambda cut: end(tried, cut))
        return max(end(values, best), 0.0)


@kept(8, grows=True)
def _sampled(kinds: _Kinds, of_p: bool, c: float, size: int, seed: int) -> _AllocatedSample:
    return _AllocatedSample(kinds, of_p, c, size, seed)


Profile = Callable[[FloatArray], tuple[FloatArray, FloatArray]]


class _AllocatedTarget:
    """The profile of one law against the other, from samples and from the blocks' profile.

    The target is P or Q.  `blocks` returns the blocks' profile at numbers c and upper bounds of it,
    and `place` the c at which the blocks' profile has a given value.
    """

    def __init__(
        self, kinds: _Kinds, of_p: bool, blocks: Profile, place: Callable[[float], float]
    ) -> None:
        self._kinds, self._of_p, self.blocks, self._place = kinds, of_p, blocks, place
        self._is_exact = all(kind.selected in (1, kind.steps) for kind in kinds)
        cost = 0.0
        for kind in kinds:
            selected = REPLICATES * kind.selected * (60.0 + 6.0 * kind.selected) if of_p else 0.0
            cost += kind.number * (kind.steps * (30.0 + 3.0 * kind.selected) + selected)
        self.size = int(min(max(WORK / cost, FEWEST), MOST))

    def sample(self, c: float) -> _AllocatedSample:
        """Samples for a profile at c: those for the decade of the blocks' profile there."""
        level = float(self.blocks(np.array([c]))[0][0])
        decade = min(int(-math.log10(max(level, 10.0**-DECADES))), DECADES)
        at = self._place(10.0 ** -(decade + 0.5))
        return _sampled(self._kinds, self._of_p, at, self.size, decade)

    def profile(self, c: float, failure: float, sample: _AllocatedSample | None = None) -> Drawn:
        """Value and interval, which fails with probability at most ``failure``."""
        sample = self.sample(c) if sample is None else sample
        blocks, highest = (float(row[0]) for row in self.blocks(np.array([c])))
        x, gap = sample.main.terms(c)
        tried = sample.pilot.terms(c)
        lower = sample.lowest(x, tried[0], 0.5 * failure)
        upper = min(highest - sample.lowest(gap, tried[1], 0.5 * failure), 1.0)
        lower, upper = min(lower, highest), max(upper, 0.0)
        share = _Moments.of(*tried).best()
        found = _Moments.of(x, gap)
        value = (1.0 - share) * found.x + share * (blocks - found.gap)
        # effective numbers of samples, mean² size/square
        enough = found.x**2 * sample.size >= HITS * found.xx > 0.0
        enough |= self._is_exact
        if share > 0.5:
            enough |= found.gap**2 * sample.size >= HITS * found.gg > 0.0
        error = math.sqrt(found.spread(share) / sample.size) if enough else math.inf
        return Drawn(min(max(value, lower), max(upper, lower)), lower, max(upper, lower), error)

    def estimate(self, c: float, sample: _AllocatedSample) -> float:
        """The value of the profile alone."""
        found = _Moments.of(*sample.main.terms(c))
        share = _Moments.of(*sample.pilot.terms(c)).best()
        blocks = float(self.blocks(np.array([c]))[0][0])
        return (1.0 - share) * found.x + share * (blocks - found.gap)

    def epsilon(self, delta: float, failure: float) -> Drawn:
        """ε at a δ in (0, 1), with ends from tests at candidates about the estimate.

        Candidates are tested from the farthest one until a test fails, so that an end is wrong with
        at most the failure probability of one test.  The blocks' ε is an upper end without a test.
        """
        most = self._place(delta)
        if not most > 0.0:
            return Drawn(0.0, 0.0, 0.0, 0.0)
        sample = self.sample(most)
        low, high = 0.0, most
        if self.estimate(0.0, sample) <= delta:
            high = 0.0
        for _ in range(30):
            if high - low <= 1e-6 * high:
                break
            middle = 0.5 * (low + high)
            low, high = (middle, high) if self.estimate(middle, sample) > delta else (low, middle)
        value, lower, upper = high, 0.0, most
        for part in CANDIDATES:
            point = value - part * max(value, 0.1)
            if point <= 0.0:
                continue
            if self.profile(point, failure, sample).lower <= delta:
                break
            lower = point
        for part in CANDIDATES:
            point = value + part * max(value, 0.1)
            if point >= most:
                continue
            if self.profile(point, failure, sample).upper > delta:
                break
            upper = point
        # the value counts as known if the profile there is
        there = self.profile(value, failure, sample)
        known = there.error <= DIGIT * there.value
        return Drawn(min(max(value, lower), upper), lower, upper, 0.0 if known else math.inf)


class AllocatedSampleQuestions(Questions):
    """Questions on epochs of random allocation beside plain Gaussian steps.

    Each interval contains the truth with probability at least 0.99, for itself; several values
    share samples.  That is proven but for the rounding of the samples and for the errors of the
    blocks' answers.  Values without a known digit are refused, for trade-off functions only if they
    are those of the ``wanted`` error.
    """

    def __init__(
        self,
        mechanism: Mechanism,
        adjacency: str,
        blocks: Callable[[str], Questions],
        wanted: str | None = None,
    ) -> None:
        self._kinds, self._adjacency = _kinds(mechanism), adjacency
        self._blocks, self._wanted = blocks, wanted

    @cached_property
    def _asked(self) -> dict[str, Questions]:
        return {order: self._blocks(order) for order in ("add", "remove")}

    def _above(self, c: FloatArray, order: str) -> tuple[FloatArray, FloatArray]:
        """The blocks' profile at c of either sign, and its upper bounds."""
        other = "add" if order == "remove" else "remove"
        values, uppers = np.empty(c.size), np.empty(c.size)
        for where, side in ((c >= 0.0, order), (c < 0.0, other)):
            if where.any():
                found = self._asked[side].profile(np.abs(c[where]))
                values[where], uppers[where] = found.value, found.upper
        below = c < 0.0  # E_P(1 - e^{c-L})₊ = 1 - e^c + e^c E_Q(1 - e^{L-c})₊
        scale = np.exp(c[below])
        for row in (values, uppers):
            row[below] = -np.expm1(c[below]) + scale * row[below]
        return values, np.minimum(uppers * (1.0 + 1e-15), 1.0)

    def _target(self, order: str) -> _AllocatedTarget:
        """The profile of the first law of an order, which has the record for ``remove``."""

        def place(level: float) -> float:
            found = self._asked[order].epsilon(np.array([min(level, 1.0)]))
            return float(found.upper[0])

        return _AllocatedTarget(
            self._kinds, order == "remove", lambda c: self._above(np.asarray(c), order), place
        )

    @cached_property
    def _with(self) -> _AllocatedTarget:
        return self._target("remove")

    @cached_property
    def _without(self) -> _AllocatedTarget:
        return self._target("add")

    def _sides(self, *, of_b: bool) -> list[_AllocatedTarget]:
        """The targets of all orders: A for profiles, B for tests."""
        if self._adjacency == "add_remove":
            return [self._with, self._without]
        return [self._with if (self._adjacency == "remove") != of_b else self._without]

    def _settled(self, alpha: FloatArray) -> tuple[ErrorCurve, npt.NDArray[np.bool_]]:
        """The trivial values at 0 and 1."""
        return ErrorCurve.trivial(alpha), (alpha == 0.0) | (alpha == 1.0)

    def _inside(self, alpha: FloatArray) -> ErrorCurve:
        rows = [self._gamma(float(x)) for x in alpha]
        gamma = answer_of(
            rows if self._wanted == "gamma" else [row._replace(error=0.0) for row in rows]
        )
        low, high = 1.0 - gamma.upper, np.minimum(1.0 - gamma.lower, 1.0 - alpha)
        value = np.clip(1.0 - gamma.value, low, high)
        if self._wanted == "gamma":
            return ErrorCurve(Answer(value, low, high, gamma.engine.copy()), gamma)
        found = zip(value.tolist(), low.tolist(), high.tolist(), rows, strict=True)
        beta = answer_of([Drawn(x, least, most, row.error) for x, least, most, row in found])
        return ErrorCurve(beta, gamma)

    def _gamma(self, alpha: float) -> Drawn:
        """γ(α), the least of αK + D(K) over K = e^c, D the larger profile; near the blocks' K."""
        sides = self._sides(of_b=True)

        def line(c: FloatArray) -> FloatArray:
            above = np.max([side.blocks(c)[0] for side in sides], axis=0)
            return np.asarray(alpha * np.exp(c) + above)

        slopes = np.linspace(-4.0, min(-math.log(alpha), 40.0), 65)
        for _ in range(3):
            c = float(slopes[int(np.argmin(line(slopes)))])
            slopes = np.linspace(c - (slopes[1] - slopes[0]), c + (slopes[1] - slopes[0]), 17)
        samples = [side.sample(c) for side in sides]
        failure = (1.0 - CONFIDENCE) / (len(LOG_SLOPES) * len(sides))
        places = [c + x for x in LOG_SLOPES]
        found = [
            largest_of([s.profile(x, failure, y) for s, y in zip(sides, samples, strict=True)])
            for x in places
        ]
        k = np.exp(places)
        lower, upper = (np.array([row[i] for row in found]) for i in (1, 2))
        highest = min(float((alpha * k + upper).min()), 1.0)
        lowest = max(_least_line(alpha, k, lower, upper), alpha)

        def value(x: FloatArray) -> FloatArray:
            slope = float(x[0])
            pairs = zip(sides, samples, strict=True)
            above = max(s.estimate(slope, sample) for s, sample in pairs)
            return np.array([alpha * math.exp(slope) + above])

        ends = (np.array([place]) for place in (places[0], places[-1]))
        middle = float(golden_section.lowest(value, *ends, rounds=10)[1][0])
        error = found[len(LOG_SLOPES) // 2].error
        highest = max(highest, lowest)
        return Drawn(min(max(middle, lowest), highest), lowest, highest, error)

    def ask(self, question: LawQuestion[Found], x: FloatArray) -> Found:
        """The largest profile, or ε, over all orders."""
        sides = self._sides(of_b=False)
        failure, is_profile = (1.0 - CONFIDENCE) / len(sides), question is PROFILE

        def row(y: float) -> Drawn:
            if is_profile:
                return largest_of([side.profile(y, failure) for side in sides])
            if y in (0.0, 1.0):
                end = 0.0 if y else math.inf
                return Drawn(end, end, end, 0.0)
            return largest_of([side.epsilon(y, failure) for side in sides])

        return question.made(answer_of([row(y) for y in x.tolist()]))


def _least_line(alpha: float, k: FloatArray, lower: FloatArray, upper: FloatArray) -> float:
    """Lower bound of αK + D(K) over K >= 0, for D >= 0 convex, decreasing, within bounds at k.

    On the far side of two points the line through the nearer one's lower end and the farther one's
    upper end lies below D; so does the lower end of the next point on the right.
    """
    least = math.inf
    last = k.size - 1
    ends = [0.0, *k.tolist(), math.inf]
    for i in range(k.size + 1):  # the interval of ends i and i + 1, points i - 1 and i
        lines = [(0.0, 0.0)]  # slopes and heights at K = 0
        if i <= last:
            lines.append((0.0, float(lower[i])))
        for near, far in ((i - 1, i - 2), (i, i + 1)):
            if 0 <= near <= last and 0 <= far <= last:
                slope = float((upper[far] - lower[near]) / (k[far] - k[near]))
                lines.append((slope, float(lower[near]) - slope * float(k[near])))
        low, high = ends[i], ends[i + 1]
        tried = [low] + ([high] if high < math.inf else [])
        for j, (s, h) in enumerate(lines):
            for s2, h2 in lines[:j]:
                if s != s2 and low < (h2 - h) / (s - s2) < high:
                    tried.append((h2 - h) / (s - s2))
        least = min(least, *(alpha * x + max(s * x + h for s, h in lines) for x in tried))
    return least
