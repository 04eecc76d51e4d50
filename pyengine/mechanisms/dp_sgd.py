"""DP-SGD as a mechanism."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import TYPE_CHECKING, Any, overload

from pyengine._support import checks
from pyengine.mechanisms.core import Composition, PoissonSampled, Step
from pyengine.mechanisms.gaussian import GaussianMechanism

if TYPE_CHECKING:
    from collections.abc import Sequence

    import numpy.typing as npt

    from pyengine.mechanisms.many import Mechanisms

    Array = npt.NDArray[Any] | Sequence[float] | Sequence[Sequence[float]]

__all__ = ["SHUFFLED", "allocated_epoch", "dp_sgd", "dp_sgd_allocated", "equal_gaussian_steps"]


SAMPLINGS = ("poisson", "without_replacement", "with_replacement", "shuffle")
FIXED = ("without_replacement", "with_replacement")
ROUNDING = Fraction(1, 10**14)  # relative error at which a quotient of floats counts as an integer
SHUFFLED = ("shuffle", "shuffled", "shuffling")


@overload
def dp_sgd(
    noise_multiplier: checks.NumberLike,
    sampling_probability: checks.NumberLike | None = None,
    steps: int | None = None,
    *,
    sample_rate: checks.NumberLike | None = None,
    batch_size: int | None = None,
    dataset_size: int | None = None,
    epochs: checks.NumberLike | None = None,
    sampling: str | None = None,
    group_size: int = 1,
    unit: str = "record",
) -> Composition: ...
@overload
def dp_sgd(
    noise_multiplier: Array,
    sampling_probability: checks.NumberLike | Array | None = None,
    steps: int | Array | None = None,
    *,
    sample_rate: checks.NumberLike | Array | None = None,
) -> Mechanisms: ...
@overload
def dp_sgd(
    noise_multiplier: checks.NumberLike | Array,
    sampling_probability: Array,
    steps: int | Array | None = None,
) -> Mechanisms: ...
@overload
def dp_sgd(
    noise_multiplier: checks.NumberLike | Array,
    sampling_probability: checks.NumberLike | Array | None = None,
    *,
    steps: Array,
    sample_rate: checks.NumberLike | Array | None = None,
) -> Mechanisms: ...
def dp_sgd(
    noise_multiplier: Any,
    sampling_probability: Any = None,
    steps: Any = None,
    *,
    sample_rate: Any = None,
    batch_size: int | None = None,
    dataset_size: int | None = None,
    epochs: checks.NumberLike | None = None,
    sampling: str | None = None,
    group_size: int = 1,
    unit: str = "record",
) -> Any:
    """DP-SGD: the Poisson-subsampled Gaussian mechanism, composed.

    Parameters
    ----------
    noise_multiplier : float, or exact number as str, Fraction or Decimal
        Standard deviation of the noise divided by the clipping norm, in (0, ∞).
    sampling_probability : float, or exact number as str, Fraction or Decimal
        Probability with which each record enters a batch, in [0, 1].
    steps : int
        Number of steps, >= 0.
    sample_rate : float, or exact number as str, Fraction or Decimal
        The name of ``sampling_probability`` in Opacus.
    batch_size, dataset_size : int
        Instead of the probability, which is then ``batch_size / dataset_size``, exactly;
        ``sampling`` must be given with them.
    epochs : float, or exact number as str, Fraction or Decimal
        Instead of ``steps``: number of passes over the data, >= 0; the number of steps is rounded
        up (except for rounding errors of floats).
    sampling : {"poisson", "without_replacement", "with_replacement", "shuffle"}
        How batches are drawn.  ``poisson``: each record enters independently, and ``batch_size`` is
        the expected size.  ``without_replacement``: each batch is drawn from all records and has
        exactly ``batch_size``; ``with_replacement``: records may be in it several times.
        ``shuffle``: all records are shuffled once an epoch and cut into batches; answers are upper
        bounds, those of one Gaussian step for each epoch without amplification (docs, how batches
        are chosen), and ``steps`` are rounded up to whole epochs.
    group_size : int
        Number k of records of one user, >= 1.  Each enters a batch independently of the others;
        neighbours differ in all of them.  For Poisson samples only.
    unit : {"record", "user", "client"}
        The unit that joins batches, that sizes count, and that is protected as a whole: in
        federated learning a client, whose update is clipped.  It changes labels and no number.

    Returns
    -------
    Composition, or Mechanisms
        `Mechanisms` if noise, probability or steps are arrays, which are broadcast against each
        other.  Otherwise equal to
        ``GaussianMechanism(noise_multiplier).poisson_sampled(sampling_probability).composed(steps)``
        for one record; for a group, Gaussian mixtures with the binomial weights of 0, 1, ..., k
        records.  ``without_replacement`` stands for ``sampled_without_replacement``,
        ``with_replacement`` for ``sampled_with_replacement``, and ``shuffle`` for
        ``GaussianMechanism(noise_multiplier).composed(epochs)``.

    Raises
    ------
    ValueError
        For an argument outside its domain, or if a number is given twice or not at all.

    Examples
    --------
    >>> import pyengine as pe
    >>> round(pe.gamma_bound(pe.dp_sgd(1.0, 0.01, 1000), kappa=1e-3), 12)
    0.004068447881
    >>> run = pe.dp_sgd(
    ...     noise_multiplier=1.0, batch_size=256, dataset_size=60_000, epochs=10, sampling="poisson"
    ... )
    >>> run == pe.dp_sgd(1.0, "256/60000", steps=2344)
    True
    """
    if not (type(noise_multiplier) is type(sampling_probability) is float and type(steps) is int):
        given = noise_multiplier, sampling_probability, sample_rate, steps
        if any(map(checks.is_many, given)):
            others = batch_size, dataset_size, epochs, sampling, None if unit == "record" else unit
            return _runs(*given, others=others, group_size=group_size)
    if type(unit) is not str or unit != "record":
        from pyengine.mechanisms.report import of_units
        from pyengine.mechanisms.words import UNITS

        checks.choice("unit", unit, UNITS)
        if group_size != 1:
            raise ValueError(
                f"group_size must be 1 where unit is {unit!r}, got {checks.shown(group_size)}"
            )
        plain: Any = dp_sgd(
            noise_multiplier,
            sampling_probability,
            steps,
            sample_rate=sample_rate,
            batch_size=batch_size,
            dataset_size=dataset_size,
            epochs=epochs,
            sampling=sampling,
        )
        return of_units(plain, unit)
    noise = checks.positive("noise_multiplier", noise_multiplier)
    size = checks.count("group_size", group_size, least=1)
    if sampling_probability is None and sample_rate is not None:
        sampling_probability = sample_rate
    elif sample_rate is not None:
        raise checks.both_given(sampling_probability=sampling_probability, sample_rate=sample_rate)
    unusual = batch_size is not None or dataset_size is not None or sampling is not None
    if unusual or sampling_probability is None:
        _check_sampling(sampling, sampling_probability, batch_size, dataset_size)
    if sampling_probability is None:
        batch, records = checks.batch(batch_size, dataset_size)
        probability: checks.Number = Fraction(batch, records)
    else:
        probability = checks.rate("sampling_probability", sampling_probability)
    if steps is not None and epochs is None:
        number = checks.count("steps", steps)
    else:
        number = _steps_of_epochs(steps, epochs, probability)
    if sampling in SHUFFLED:
        if size > 1:
            raise ValueError(
                f"group_size must be 1 where batches are shuffled, got {checks.shown(group_size)}"
            )
        return _shuffled(noise, batch, records, number, epochs)
    if sampling in FIXED:
        if size > 1:
            way = str(sampling).replace("_", " ")
            raise ValueError(f"group_size must be 1 {way}, got {checks.shown(group_size)}")
        plain = GaussianMechanism(noise)
        if sampling == "with_replacement":
            drawn = plain.sampled_with_replacement(batch_size=batch, dataset_size=records)
            return drawn.composed(number)
        step = plain.sampled_without_replacement(batch_size=batch, dataset_size=records)
    elif size > 1:
        from pyengine.mechanisms.mixture import group_sample

        step = group_sample(noise, probability, size)
    else:
        step = GaussianMechanism(noise).poisson_sampled(probability)
    rate = sampling_probability if type(sampling_probability) is str else ""
    if epochs is None and batch_size is None and "/" not in rate:
        return step.composed(number)
    from pyengine.mechanisms.words import as_given

    sizes = None if batch_size is None else (batch, records)
    return as_given(step, number, epochs=epochs, sizes=sizes, rate=rate)


def _runs(
    noise_multiplier: Any, rate: Any, also_rate: Any, steps: Any, *, others: Any, group_size: Any
) -> Mechanisms:
    """`Mechanisms` from arrays; refuses the arguments that go with single runs alone."""
    if any(value is not None for value in others) or group_size != 1:
        raise ValueError(
            "arrays must come with sampling_probability and steps alone: questions take a list of "
            "mechanisms where each is made by other arguments"
        )
    if rate is not None and also_rate is not None:
        raise checks.both_given(sampling_probability=rate, sample_rate=also_rate)
    rate = also_rate if rate is None else rate
    for name, value in (("sampling_probability", rate), ("steps", steps)):
        if value is None:
            raise ValueError(f"{name} must be given where arguments are arrays")
    from pyengine.mechanisms.many import dp_sgd_runs

    return dp_sgd_runs(noise_multiplier, rate, steps)


def equal_gaussian_steps(mechanism: Any) -> tuple[float, float, int] | None:
    """Noise, rate in (0, 1) and number of two or more equal Poisson-sampled Gaussian steps.

    None for other mechanisms, and where noise or rate is not a double.
    """
    if type(mechanism) is not Composition or len(mechanism.parts) != 1:
        return None
    ((step, number),) = mechanism.parts
    if number < 2 or type(step) is not PoissonSampled:
        return None
    inner, rate = step.mechanism, step.probability
    if type(inner) is not GaussianMechanism:
        return None
    noise = inner.noise_multiplier
    if type(noise) is not float or type(rate) is not float or not 0.0 < rate < 1.0:
        return None
    return noise, rate, number


def _shuffled(
    noise: checks.Number, batch: int, records: int, steps: int, epochs: Any
) -> Composition:
    """One Gaussian step for each epoch, since the record is in one batch of each epoch."""
    from pyengine.mechanisms.words import shuffled_words, worded

    checks.batch(batch, records, least=1)
    whole, last = divmod(records, batch)
    passes = math.ceil(Fraction(steps, whole))
    if epochs is not None:
        passes = math.ceil(checks.number("epochs", epochs))
    words = shuffled_words(
        "DP-SGD",
        f" in batches of {batch:,} of {records:,} records",
        given=(
            *(("batch size", f"{batch:,}"), ("dataset size", f"{records:,}")),
            ("epochs", str(epochs)) if epochs is not None else ("steps", f"{steps:,}"),
        ),
        least=(noise, whole + bool(last)),
        sizes=(batch, records),
    )
    return worded(GaussianMechanism(noise), words).composed(passes)


def _check_sampling(sampling: Any, probability: Any, batch_size: Any, dataset_size: Any) -> None:
    """Refuse arguments that give the sampling twice or not at all."""
    if sampling is not None and not (isinstance(sampling, str) and sampling in SHUFFLED):
        checks.choice("sampling", sampling, SAMPLINGS)
    sizes = {"batch_size": batch_size, "dataset_size": dataset_size}
    given = [name for name, value in sizes.items() if value is not None]
    if probability is not None:
        if given:
            name = given[0]
            raise checks.both_given(**{"sampling_probability": probability, name: sizes[name]})
        if sampling in (*FIXED, *SHUFFLED):
            raise ValueError(
                f"sampling {sampling!r} needs batch_size and dataset_size instead of "
                f"sampling_probability, got {checks.shown(probability)}"
            )
        return
    if len(given) < 2:
        raise ValueError(
            "give sampling_probability, or both of batch_size and dataset_size: got "
            f"{given[0] if given else 'none of them'}"
        )
    if sampling is None:
        raise ValueError(
            "sampling must be said with batch_size: 'poisson' (each record joins by itself), "
            "'without_replacement' (fixed size, drawn afresh), 'with_replacement' or 'shuffle' "
            "(once an epoch)"
        )


def _steps_of_epochs(steps: Any, epochs: Any, probability: checks.Number) -> int:
    """Number of steps of the given epochs; refuses steps and epochs together, or neither."""
    if steps is not None:
        raise checks.both_given(steps=steps, epochs=epochs)
    if epochs is None:
        raise ValueError("neither steps nor epochs given; give one")
    passes = Fraction(checks.non_negative("epochs", epochs))
    if probability == 0:
        raise ValueError("epochs must go with a positive sampling probability, got 0")
    number = passes / Fraction(probability)
    if isinstance(probability, float) or isinstance(epochs, float):
        nearest = round(number)
        if abs(number - nearest) <= ROUNDING * number:  # 3 epochs at 0.3 are 10 steps, not 11
            return nearest
    return math.ceil(number)


def dp_sgd_allocated(
    noise_multiplier: checks.NumberLike,
    steps_per_epoch: int,
    epochs: int,
    *,
    selected: int = 1,
) -> Composition:
    """DP-SGD with random allocation: every record enters one random batch (or k) per epoch.

    Parameters
    ----------
    noise_multiplier : float, or exact number as str, Fraction or Decimal
        Standard deviation of the noise divided by the clipping norm, in (0, ∞).
    steps_per_epoch : int
        Number of batches of an epoch, >= 1.
    epochs : int
        Number of epochs, >= 0.
    selected : int
        Number k of batches that a record enters in each epoch, in [1, ``steps_per_epoch``]; for
        k > 1 values are upper bounds (see `GaussianMechanism.randomly_allocated`).

    Returns
    -------
    Composition
        ``GaussianMechanism(noise_multiplier).randomly_allocated(steps_per_epoch, selected)``,
        composed ``epochs`` times.

    Examples
    --------
    >>> import pyengine as pe
    >>> pe.dp_sgd_allocated(1.0, steps_per_epoch=100, epochs=3).steps
    3
    """
    steps = checks.count("steps_per_epoch", steps_per_epoch, least=1)
    epoch = GaussianMechanism(noise_multiplier).randomly_allocated(steps, selected)
    return epoch.composed(checks.count("epochs", epochs))


def allocated_epoch(
    noise_multiplier: checks.NumberLike, steps_per_epoch: int, selected: int = 1
) -> Step:
    """One epoch of `dp_sgd_allocated`; the Gaussian mechanism itself for one step."""
    from pyengine.mechanisms.batches import RandomlyAllocated  # here, as few runs need it

    epoch = RandomlyAllocated(GaussianMechanism(noise_multiplier), steps_per_epoch, selected)
    return epoch if epoch.steps_per_epoch > 1 else epoch.mechanism
