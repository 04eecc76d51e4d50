"""The noise multiplier, from noise and clipping norms as training code has them."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from fractions import Fraction
from typing import Any

from pyengine._support import checks
from pyengine.numerics.gaussian_filter import root_below

__all__ = ["noise_multiplier"]

NumberLike = checks.NumberLike


def noise_multiplier(
    std: NumberLike | Sequence[NumberLike],
    clip: NumberLike | Sequence[NumberLike],
    batch_size: NumberLike | None = None,
    *,
    mean: bool | None = None,
    clients: int = 1,
    microbatch_size: int = 1,
) -> float:
    """Noise multiplier of one training step: noise of the sum over the clipping norm.

    Parameters
    ----------
    std : float, exact number or sequence of them
        Standard deviation > 0 of the Gaussian noise on each coordinate; a sequence if groups of
        coordinates, such as layers, have different noise.
    clip : float, exact number or sequence of them
        Euclidean norm > 0 to which the contribution of each unit is clipped: the gradient of a
        record, or the update of a client where clients are protected.  With a sequence, each group
        is clipped by itself.
    batch_size : float or exact number, optional
        The number > 0 by which the sum of contributions is divided, if ``std`` is that of the mean.
        It must be fixed beforehand, such as the expected size of a Poisson sample.
    mean : bool, optional
        Whether the noise is added to the mean (the sum divided by ``batch_size``) or to the sum;
        required with a batch size, and False otherwise.
    clients : int
        Number of independent noises of this size in one released sum: 1 if a trainer or a server
        adds noise once; otherwise the number of clients that certainly add their own, or of
        accumulated micro-batches with noise each.
    microbatch_size : int
        Number of records that are averaged *before* clipping, as one contribution; more than one
        doubles the sensitivity.

    Returns
    -------
    float
        The ``noise_multiplier`` of mechanisms; rounded down, so that it never promises too much.

    Raises
    ------
    ValueError
        For an argument outside its domain, or a batch size without ``mean``.

    Notes
    -----
    For groups g, n noises and the divisor B (1 for a sum), the multiplier is
    B √n / √(Σ_g (clip_g/std_g)²), and half of that for micro-batches of several records.

    See docs/api/noise_multiplier for common mistakes.

    Examples
    --------
    >>> import pyengine as pe
    >>> pe.noise_multiplier(0.004, 1.0, 256, mean=True)  # noise on the mean of 256 gradients
    1.024
    >>> pe.noise_multiplier(2.0, [1.0, 1.0, 1.0, 1.0])  # four layers, each clipped to 1
    1.0
    """
    if batch_size is not None and mean is None:
        raise ValueError(
            "mean must be given with batch_size: True where std is of noise on the mean, False "
            "where it is on the sum"
        )
    divided = False if mean is None else checks.flag("mean", mean)
    if divided and batch_size is None:
        raise ValueError("batch_size must be given for noise on the mean")
    divisor = Fraction(1) if batch_size is None else _exact("batch_size", batch_size)
    noises = checks.count("clients", clients, least=1)
    halved = checks.count("microbatch_size", microbatch_size, least=1) > 1
    ratios = [c / s for s, c in zip(*_groups(std, clip), strict=True)]
    square = noises / sum((ratio**2 for ratio in ratios), start=Fraction(0))
    if divided:
        square *= divisor**2
    return root_below(square / 4 if halved else square)


def _groups(std: Any, clip: Any) -> tuple[list[Fraction], list[Fraction]]:
    """Noise and norm of each group; a single number applies to all groups."""
    stds, clips = _numbers("std", std), _numbers("clip", clip)
    size = max(len(stds), len(clips))
    if {len(stds), len(clips)} - {1, size}:
        raise ValueError(f"std and clip must have as many groups, got {len(stds)} and {len(clips)}")
    return stds * (size // len(stds)), clips * (size // len(clips))


def _numbers(name: str, value: Any) -> list[Fraction]:
    if (
        not isinstance(value, Iterable)
        or isinstance(value, (str, bytes))
        or getattr(value, "ndim", 1) == 0
    ):
        return [_exact(name, value)]
    found = [_exact(name, item) for item in value]
    if not found:
        raise ValueError(f"{name} must hold a number for each group, got none")
    return found


def _exact(name: str, value: Any) -> Fraction:
    return Fraction(checks.positive(name, value))
