"""Base classes of mechanisms: steps, sampled steps and compositions.

A mechanism says what is released; engines know how to compute with it.  Mechanisms are frozen,
hashable and comparable: compositions of the same steps are equal, in whatever order they were
given.  Parameters are floats, or exact fractions where they were given as exact numbers.
"""

from __future__ import annotations

from dataclasses import dataclass, fields, replace
from fractions import Fraction
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple

from pyengine._support import checks

if TYPE_CHECKING:
    from collections.abc import Iterable

    from pyengine.mechanisms.words import Words

__all__ = [
    "Composition",
    "Mechanism",
    "Noise",
    "Places",
    "PoissonSampled",
    "SampledWithoutReplacement",
    "Stage",
    "Step",
    "as_mechanism",
    "checked_mechanism",
    "compose",
    "phases_of",
    "steps_of",
]


Scheme = Literal["none", "poisson", "without_replacement", "truncated_poisson", "allocated"]


class Noise(NamedTuple):
    """Gaussian or Laplace noise: its deviation or scale, over the sensitivity of the query."""

    family: Literal["gaussian", "laplace"]
    multiplier: checks.Number


class Stage(NamedTuple):
    """What a step runs on a batch, the probability that a record is in it, number of batches."""

    mechanism: Step
    rate: checks.Number
    batches: int


class Places(NamedTuple):
    """An epoch of Gaussian steps; a record is in ``selected`` of them, drawn uniformly."""

    noise_multiplier: checks.Number
    steps: int
    selected: int

    @property
    def has_pairs(self) -> bool:
        """Whether the record takes part in two steps of three or more."""
        return self.selected == 2 < self.steps


class Mechanism:
    """Base class of all mechanisms; use its subclasses, which are frozen dataclasses.

    Threads may share mechanisms and ask about them at the same time, and processes may fork
    meanwhile.
    """

    is_step: ClassVar[bool] = False  # whether it releases one thing, once

    def composed(self, steps: int) -> Composition:
        """Repeat the mechanism, each time with fresh randomness.

        Parameters
        ----------
        steps : int
            Number of repetitions, >= 0.

        Returns
        -------
        Composition
            The adaptive composition of ``steps`` runs.
        """
        number = checks.count("steps", steps)
        return _collect([(step, number * times) for step, times in phases_of(self)])

    def __add__(self, other: Mechanism) -> Composition:
        """Compose with another mechanism on the same data."""
        if not isinstance(other, Mechanism):
            return NotImplemented
        return compose(self, other)


@dataclass(frozen=True, init=False, repr=False, eq=False)
class Step(Mechanism):
    """Base class of single releases.

    Holds the default of everything that engines and reports ask of a step: `scheme`, how records
    are drawn; `is_analytic`, whether it is given by analytic densities; `inner`, what runs on a
    sample; `share`; `noise`; `multiplier`; `stage`; `places` and `enclosing` of epochs; `revealed`;
    and the words of its label.
    """

    is_step: ClassVar[bool] = True
    is_analytic: ClassVar[bool] = False
    scheme: ClassVar[Scheme] = "none"
    _words: ClassVar[Words | None] = None  # a label that replaces `own_words`; see `worded`

    def composed(self, steps: int) -> Composition:
        """Repeat the step, as `Mechanism.composed`."""
        number = checks.count("steps", steps)
        return _composition(((self, number),) if number else ())

    @property
    def inner(self) -> Step:
        """The step that runs on the sample; the step itself if it is not sampled."""
        return self

    @property
    def share(self) -> checks.Number:
        """Probability with which a record takes part; 0 if the release cannot depend on it."""
        return 1

    @property
    def noise(self) -> Noise | None:
        """The continuous noise of an unsampled query of sensitivity 1; None for other steps."""
        return None

    @property
    def multiplier(self) -> checks.Number | None:
        """The ``noise_multiplier`` of the step or of what it runs; None where there is none."""
        run = self.stage.mechanism
        if run is not self:
            return run.multiplier
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return values.get("noise_multiplier")

    def with_multiplier(self, value: checks.NumberLike) -> Step:
        """Return the step with another noise multiplier; only for steps with a `multiplier`."""
        run = self.stage.mechanism
        changed: dict[str, Any] = {"noise_multiplier": value}
        if run is not self:
            changed = {"mechanism": run.with_multiplier(value)}
        made = replace(self, **changed)
        if self._words is not None:
            object.__setattr__(made, "_words", self._words)
        return made

    @property
    def words(self) -> Words:
        """Label of the step: its name, batches and neighbours in words."""
        return self._words or self.own_words()

    def own_words(self) -> Words:
        """Label that follows from the step itself; by default one that runs on all records."""
        from pyengine.mechanisms.words import Words  # here, as only labels need it

        name = type(self).__name__.removesuffix("Mechanism")
        return Words(name, "none are drawn: each step may use every record")

    @property
    def on_batches(self) -> str:
        """Name of the step where it runs on batches."""
        noise = self.noise
        if noise is not None and noise.family == "gaussian":
            return "DP-SGD"
        return self.words.name

    @property
    def stage(self) -> Stage:
        """What runs on each batch, the sampling rate of a record, and the number of batches."""
        return Stage(self, 1, 1)

    @property
    def places(self) -> Places | None:
        """Noise and numbers of an epoch whose record takes part in random steps; else None."""
        return None

    @property
    def enclosing(self) -> tuple[Mechanism, tuple[Step, ...]] | None:
        """A dominating mechanism and dominated steps, if only such bounds are known; else None."""
        return None

    def blocks(self) -> Mechanism:
        """Dominating epochs with one random step per record, for one with several; else itself."""
        return self

    @property
    def pure_epsilon(self) -> Fraction | None:
        """The exact ε of a release whose parameters make it ε-DP; else None."""
        return None

    @property
    def summed(self) -> Step | None:
        """The sum of all releases of an epoch, if it is a step of its own; else None."""
        return None

    @property
    def repeated(self) -> tuple[Mechanism, dict[str, Any]] | None:
        """One run and the law of the number of runs, if the best run is released; else None."""
        return None

    @property
    def revealed(self) -> tuple[tuple[checks.Number, Mechanism], ...]:
        """Probabilities and mechanisms, if one is drawn and the release names it; else none."""
        return ()

    @property
    def within(self) -> tuple[Mechanism, ...]:
        """Mechanisms that the step chooses from, or runs to choose the best; else none."""
        return ()

    def described(self) -> dict[str, Any]:
        """Class name and parameters, those of the sampling last."""
        values = {field.name: getattr(self, field.name) for field in fields(self)}
        return {"mechanism": type(self).__name__, **values}

    def poisson_sampled(self, probability: checks.NumberLike) -> Step:
        """Run on a Poisson sample of the records.

        Parameters
        ----------
        probability : float, or exact number as str, Fraction or Decimal
            Probability with which each record takes part, independently, in [0, 1].

        Returns
        -------
        Step
            The sampled mechanism; the mechanism itself at probability 1.
        """
        value = checks.rate("probability", probability)
        return self if value == 1 else PoissonSampled(self, value)

    def sampled_without_replacement(self, *, batch_size: int, dataset_size: int) -> Step:
        """Run on a batch of fixed size, drawn uniformly without replacement.

        Parameters
        ----------
        batch_size : int
            Number of records in the batch, in [0, ``dataset_size``].
        dataset_size : int
            Number of records, >= 1.

        Returns
        -------
        Step
            The sampled mechanism; the mechanism itself if the batch is the whole data set.

        Notes
        -----
        An added record pushes another one out of a batch.  Parameters that describe neighbours,
        such as ε and δ of `GenericMechanism`, must therefore hold for replacing a record; on
        Poisson samples and in random allocation they must hold for adding one.
        """
        sampled = SampledWithoutReplacement(self, batch_size, dataset_size)
        return self if sampled.batch_size == sampled.dataset_size else sampled

    def randomly_allocated(self, steps: int, selected: int = 1) -> Mechanism:
        """Run once in each step of an epoch, with each record in a random set of the steps.

        Parameters
        ----------
        steps : int
            Number t of steps of the epoch, >= 1.
        selected : int
            Number k of steps in which a record takes part, in [1, ``steps``]; the set of them is
            drawn uniformly and independently for each record.

        Returns
        -------
        Mechanism
            The epoch, one release of all steps; for k = t the composition of t runs.

        Raises
        ------
        ValueError
            For a step that is sampled, or cannot be; an `AccuracyError`, when a question is asked,
            where the losses of one step are too large.

        Notes
        -----
        Answers are exact for mechanisms with few outcomes: t steps, k of them with the record, may
        have at most 20,000 different counts of the likelihood ratios.  Other laws are enclosed
        between two: proven bounds of δ are about 1e-7 apart, relatively, for few steps and 1e-3 for
        thousands.  For k > 1 their values are those of k epochs of t/k steps, which dominate; no
        bound from below is known.

        Examples
        --------
        >>> import pyengine as pe
        >>> epoch = pe.RandomizedResponse("3/4").randomly_allocated(10)
        >>> f"{pe.epsilon(epoch, 1e-2):.3f} {pe.epsilon(epoch.mechanism, 1e-2):.3f}"
        '0.903 1.085'
        """
        raise NotImplementedError  # replaced in `pyengine.mechanisms`, which knows the epochs


def only_single(mechanism: Any) -> None:
    if not isinstance(mechanism, Step) or mechanism.inner is not mechanism:
        raise ValueError(
            f"mechanism must be a single step that is not sampled, got {checks.shown(mechanism)}"
        )


@dataclass(frozen=True, init=False, repr=False)
class Sampled(Step):
    """Base class of a mechanism that runs on one batch of records."""

    mechanism: Step

    @property
    def inner(self) -> Step:
        """What runs on the batch."""
        return self.mechanism

    @property
    def stage(self) -> Stage:
        """One batch, and the probability that a record is in it."""
        return Stage(self.mechanism, self.share, 1)


@dataclass(frozen=True, init=False, repr=False)
class PoissonSampled(Sampled):
    """A mechanism on a Poisson sample; see `Step.poisson_sampled`."""

    scheme: ClassVar[Scheme] = "poisson"
    probability: checks.Number

    def __init__(self, mechanism: Step, probability: Any) -> None:
        only_single(mechanism)
        rate = checks.rate("probability", probability)
        vars(self).update(mechanism=mechanism, probability=rate)

    @property
    def share(self) -> checks.Number:
        """Probability that a record is sampled."""
        return self.probability

    def described(self) -> dict[str, Any]:
        """Parameters of the mechanism and the probability."""
        return {**self.mechanism.described(), "sampling_probability": self.probability}

    def own_words(self) -> Words:
        """Label: each record joins each batch independently."""
        # here, as only labels need it
        from pyengine.mechanisms.words import Words, neighbours_on_batches, number_in_words

        rate = number_in_words(self.probability)
        inner = self.mechanism.words
        return Words(
            self.mechanism.on_batches,
            f"each record joins each batch independently with probability {rate} "
            "(Poisson sampling)",
            f" at rate {rate}",
            inner.unit,
            neighbours_on_batches(inner.neighbours),
            rate=rate,
            hidden=inner.hidden,
            known=inner.known,
        )


@dataclass(frozen=True, init=False, repr=False)
class SampledWithoutReplacement(Sampled):
    """A mechanism on a batch of fixed size; see `Step.sampled_without_replacement`."""

    scheme: ClassVar[Scheme] = "without_replacement"
    batch_size: int
    dataset_size: int

    def __init__(self, mechanism: Step, batch_size: int, dataset_size: int) -> None:
        only_single(mechanism)
        batch, size = checks.batch(batch_size, dataset_size)
        vars(self).update(mechanism=mechanism, batch_size=batch, dataset_size=size)

    @property
    def share(self) -> checks.Number:
        """Probability that a record is in the batch."""
        return Fraction(self.batch_size, self.dataset_size)

    def described(self) -> dict[str, Any]:
        """Parameters of the mechanism and both sizes."""
        sizes = {"batch_size": self.batch_size, "dataset_size": self.dataset_size}
        return {**self.mechanism.described(), **sizes}

    def own_words(self) -> Words:
        """Label: batches of one size, each drawn from all records."""
        # here, as only labels need it
        from pyengine.mechanisms.words import Words, neighbours_on_batches

        sizes = f"{self.batch_size:,} of {self.dataset_size:,} records"
        return Words(
            self.mechanism.on_batches,
            f"each batch is {sizes}, drawn anew and uniformly (without replacement)",
            f" of {sizes}, without replacement",
            f"one record of {self.dataset_size:,}",
            neighbours_on_batches(self.mechanism.words.neighbours, replaces=True),
            sizes=(self.batch_size, self.dataset_size),
            hidden=self.mechanism.words.hidden,
            known=self.mechanism.words.known,
        )


@dataclass(frozen=True, init=False, repr=False)
class Composition(Mechanism):
    """Adaptive composition of steps; made by `Mechanism.composed` and `compose`.

    Parameters
    ----------
    parts : sequence of (step, int)
        Steps, each with its number of repetitions >= 0; equal steps are merged and all are sorted.
    """

    parts: tuple[tuple[Step, int], ...]
    _hash: ClassVar[int | None] = None  # computed on first use
    # the parts with their labels, where equal steps have different ones (see `worded`)
    _phases: ClassVar[tuple[tuple[Step, int], ...]] = ()

    def __init__(self, parts: Iterable[tuple[Step, int]]) -> None:
        vars(self).update(vars(_collect([_part(part) for part in checks.listed("parts", parts)])))

    def __hash__(self) -> int:
        value = self._hash
        if value is None:
            value = hash(self.parts)
            object.__setattr__(self, "_hash", value)
        return value

    def __getstate__(self) -> dict[str, Any]:
        # a step may hold functions, whose hashes hold in one process only
        return {"parts": self.parts, **({"_phases": self._phases} if self._phases else {})}

    @property
    def steps(self) -> int:
        """Total number of steps."""
        return sum(number for _, number in self.parts)

    def on_one_sample(self) -> Step:
        """Return one step that releases what all steps do, on the same records.

        Returns
        -------
        Step
            A composition of one step is that step.

        Raises
        ------
        ValueError
            For steps that are sampled, or cannot be.
        """
        raise NotImplementedError  # replaced in `pyengine.mechanisms`, which knows all steps

    def poisson_sampled(self, probability: checks.NumberLike) -> Mechanism:
        """Run all steps on **one** Poisson sample of the records.

        Parameters
        ----------
        probability : float, or exact number as str, Fraction or Decimal
            Probability with which each record takes part, independently, in [0, 1].

        Returns
        -------
        Mechanism
            One sampled step; the composition itself at probability 1.

        Raises
        ------
        ValueError
            As `on_one_sample`.

        Notes
        -----
        Steps that each draw their own sample leak **less**: compose sampled steps only where the
        samples are independent.  If several steps have infinitely many outcomes (all Gaussian ones
        count as one), the law is enclosed between two; for Gaussian beside Laplace noise proven
        bounds of δ are 1e-6 to 1e-4 apart, relatively.

        Examples
        --------
        >>> import pyengine as pe
        >>> two = pe.GaussianMechanism(1.0) + pe.GaussianMechanism(2.0)
        >>> run = two.poisson_sampled(0.01).composed(1000)
        >>> apart = pe.dp_sgd(1.0, 0.01, 1000) + pe.dp_sgd(2.0, 0.01, 1000)
        >>> pe.epsilon(apart, 1e-5) < pe.epsilon(run, 1e-5)
        True
        """
        value = checks.rate("probability", probability)
        if value == 1 or not self.parts:
            return self
        return self.on_one_sample().poisson_sampled(value)

    def sampled_without_replacement(self, *, batch_size: int, dataset_size: int) -> Mechanism:
        """Run all steps on **one** batch of fixed size, drawn uniformly without replacement.

        Parameters
        ----------
        batch_size : int
            Number of records in the batch, in [0, ``dataset_size``].
        dataset_size : int
            Number of records, >= 1.

        Returns
        -------
        Mechanism
            One sampled step; the composition itself if the batch is the whole data set.

        Raises
        ------
        ValueError
            As `on_one_sample`.
        """
        batch, size = checks.batch(batch_size, dataset_size)
        if batch == size or not self.parts:
            return self
        step = self.on_one_sample()
        return step.sampled_without_replacement(batch_size=batch, dataset_size=size)

    def randomly_allocated(self, steps: int, selected: int = 1) -> Mechanism:
        """Run all steps on each batch of an epoch, with each record in random batches.

        Parameters
        ----------
        steps, selected : int
            As in `Step.randomly_allocated`.

        Returns
        -------
        Mechanism
            The epoch; the composition itself for one batch.

        Raises
        ------
        ValueError
            As `on_one_sample`.
        """
        if checks.count("steps", steps, least=1) == 1 or not self.parts:
            return self
        return self.on_one_sample().randomly_allocated(steps, selected)


def as_mechanism(value: Any) -> Mechanism | None:
    """Return a value if it is a mechanism of any kind; None for any other value."""
    return value if isinstance(value, Mechanism) else None


def checked_mechanism(value: Any) -> Mechanism:
    """Return the value if it is a mechanism; raise ValueError otherwise."""
    if isinstance(value, Mechanism):
        return value
    raise ValueError(f"mechanism must be a Mechanism, got {checks.shown(value)}")


def steps_of(mechanism: Mechanism) -> list[tuple[Step, int]]:
    """Return the different steps of a mechanism, each with its number of repetitions."""
    if isinstance(mechanism, Composition):
        return list(mechanism.parts)
    if isinstance(mechanism, Step):
        return [(mechanism, 1)]
    raise ValueError(f"mechanism must be a Mechanism, got {checks.shown(mechanism)}")


def phases_of(mechanism: Mechanism) -> list[tuple[Step, int]]:
    """Return the steps as `steps_of` does, but equal steps with different labels separately."""
    if isinstance(mechanism, Composition) and mechanism._phases:
        return list(mechanism._phases)
    return steps_of(mechanism)


def _sort_key(value: Any) -> tuple[Any, ...]:
    """Key to sort steps by type and parameters; functions are sorted by identity."""
    if isinstance(value, Step):
        inner = (_sort_key(getattr(value, field.name)) for field in fields(value))
        return (0, type(value).__name__, *inner)
    if isinstance(value, tuple):
        return (1, *map(_sort_key, value))
    if isinstance(value, int | float | Fraction):
        return (2, value)
    if isinstance(value, Composition):
        return _sort_key(value.parts)
    if isinstance(value, str):
        return (4, value)
    return (3, id(value))


def _part(value: Any) -> tuple[Step, int]:
    """Check one of the parts that a caller gave: a step and its number of repetitions."""
    if isinstance(value, tuple | list) and len(value) == 2 and isinstance(value[0], Step):
        return value[0], checks.count("repetitions", value[1])
    raise ValueError(f"parts must be pairs of a step and a number, got {checks.shown(value)}")


def _composition(parts: tuple[tuple[Step, int], ...]) -> Composition:
    """Composition of parts that are sorted, distinct and checked already."""
    made = object.__new__(Composition)
    vars(made)["parts"] = parts
    return made


def _collect(steps: list[tuple[Step, int]]) -> Composition:
    numbers: dict[Step, int] = {}
    has_labels = False
    for step, number in steps:
        numbers[step] = numbers.get(step, 0) + number
        has_labels = has_labels or step._words is not None
    made = _composition(_sorted(numbers.items()))
    if has_labels:
        labelled: dict[tuple[Step, Words | None], tuple[Step, int]] = {}
        for step, number in steps:
            key = step, step._words
            labelled[key] = step, labelled.get(key, (step, 0))[1] + number
        if len(labelled) > len(numbers):
            object.__setattr__(made, "_phases", _sorted(labelled.values()))
    return made


def _sorted(parts: Iterable[tuple[Step, int]]) -> tuple[tuple[Step, int], ...]:
    return tuple(sorted((part for part in parts if part[1]), key=lambda part: _sort_key(part[0])))


def compose(*mechanisms: Mechanism) -> Composition:
    """Compose mechanisms; `pyengine.compose` also takes objects of other libraries."""
    return _collect([part for mechanism in mechanisms for part in phases_of(mechanism)])
