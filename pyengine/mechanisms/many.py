"""Many runs of DP-SGD in one object, with their numbers in arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, NoReturn

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine.mechanisms.core import Composition, PoissonSampled
from pyengine.mechanisms.gaussian import GaussianMechanism

__all__ = ["Mechanisms", "dp_sgd_runs"]

FloatArray = npt.NDArray[np.float64]
SHOWN = ("noise_multiplier", "sampling_probability", "steps")


class Mechanisms:
    """Runs of DP-SGD, one for each noise multiplier, rate and number of steps.

    Made by `dp_sgd` from arrays.  `gamma_bound`, `trade_off`, `delta` and `epsilon` take it in the
    place of a mechanism: its shape and that of the argument are broadcast, and the answers are
    computed on all cores.  It is immutable, and compared by value.

    Parameters
    ----------
    noise_multiplier, sampling_probability : ndarray of float
        Of one shape, with at least one axis; checked by `dp_sgd`.
    steps : ndarray of int
        Of the same shape.

    Attributes
    ----------
    noise_multiplier, sampling_probability, steps : ndarray
        Read-only arrays.
    shape : tuple of int
        Their shape.
    ndim, size : int
        Number of axes, and number of mechanisms.

    Notes
    -----
    ``len``, iteration and indexing work as for arrays: an integer for each axis gives a
    `Composition`, any other index `Mechanisms`; ``runs[:, None]`` adds an axis.

    Examples
    --------
    >>> import numpy as np
    >>> import pyengine as pe
    >>> runs = pe.dp_sgd(np.array([0.8, 1.0, 1.2]), 0.01, 1000)
    >>> runs
    Mechanisms(shape=(3,), noise_multiplier=0.8 to 1.2, sampling_probability=0.01, steps=1000)
    >>> runs[1] == pe.dp_sgd(1.0, 0.01, 1000)
    True
    >>> pe.epsilon(runs[:, None], [1e-5, 1e-6]).shape
    (3, 2)
    """

    __slots__ = ("noise_multiplier", "sampling_probability", "steps")
    noise_multiplier: FloatArray
    sampling_probability: FloatArray
    steps: npt.NDArray[np.int64]

    def __init__(
        self,
        noise_multiplier: FloatArray,
        sampling_probability: FloatArray,
        steps: npt.NDArray[np.int64],
    ) -> None:
        for name, given in zip(SHOWN, (noise_multiplier, sampling_probability, steps), strict=True):
            kept = np.array(given, order="C")
            kept.setflags(write=False)
            object.__setattr__(self, name, kept)

    def __setattr__(self, name: str, value: object) -> NoReturn:
        raise AttributeError(f"Mechanisms are not to be changed: cannot set {name}")

    def __delattr__(self, name: str) -> NoReturn:
        raise AttributeError(f"Mechanisms are not to be changed: cannot delete {name}")

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._numbers

    @property
    def _numbers(self) -> tuple[FloatArray, FloatArray, npt.NDArray[np.int64]]:
        return self.noise_multiplier, self.sampling_probability, self.steps

    @property
    def shape(self) -> tuple[int, ...]:
        """Shape of the arrays."""
        return self.noise_multiplier.shape

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return self.noise_multiplier.ndim

    @property
    def size(self) -> int:
        """Number of mechanisms."""
        return self.noise_multiplier.size

    def __len__(self) -> int:
        return self.shape[0]

    def __getitem__(self, key: Any) -> Any:
        """One mechanism if the key has an integer for each axis, else `Mechanisms`."""
        noise, rate, steps = (numbers[key] for numbers in self._numbers)
        if np.ndim(noise) == 0:
            return _run(float(noise), float(rate), int(steps))
        return Mechanisms(noise, rate, steps)

    def __iter__(self) -> Iterator[Any]:
        return (self[i] for i in range(len(self)))

    def at(self, place: int) -> Composition:
        """Return the mechanism at an index of the flattened arrays.

        Parameters
        ----------
        place : int
            From 0 to ``size - 1``; negative ones count from the end.

        Returns
        -------
        Composition
            Equal Gaussian steps on Poisson samples.
        """
        noise, rate, steps = (numbers.flat[place] for numbers in self._numbers)
        return _run(float(noise), float(rate), int(steps))

    def __eq__(self, other: object) -> bool:
        if not isinstance(other, Mechanisms):
            return NotImplemented
        pairs = zip(self._numbers, other._numbers, strict=True)
        return self.shape == other.shape and all(np.array_equal(a, b) for a, b in pairs)

    def __hash__(self) -> int:
        return hash((self.shape, *(numbers.tobytes() for numbers in self._numbers)))

    def __repr__(self) -> str:
        parts = (f"{name}={_range(getattr(self, name))}" for name in SHOWN)
        return f"Mechanisms(shape={self.shape}, {', '.join(parts)})"


def _range(numbers: npt.NDArray[Any]) -> str:
    if not numbers.size:
        return "none"
    least, most = numbers.min().item(), numbers.max().item()
    return repr(least) if least == most else f"{least!r} to {most!r}"


def _run(noise: float, rate: float, steps: int) -> Composition:
    step = GaussianMechanism(noise)
    return (PoissonSampled(step, rate) if rate < 1.0 else step).composed(steps)


def dp_sgd_runs(noise_multiplier: Any, sampling_probability: Any, steps: Any) -> Mechanisms:
    """`Mechanisms` of broadcast arrays; a ValueError names the index of the first wrong number."""
    noise = _real_numbers("noise_multiplier", noise_multiplier)
    rate = _real_numbers("sampling_probability", sampling_probability)
    number = _real_numbers("steps", steps)
    _refuse("noise_multiplier", noise, (noise > 0.0) & (noise < np.inf), "positive and finite")
    _refuse("sampling_probability", rate, (rate >= 0.0) & (rate <= 1.0), "in [0, 1]")
    whole = (number >= 0.0) & (number <= checks.PLAIN_COUNT) & (np.floor(number) == number)
    _refuse("steps", number, whole, "non-negative integers of at most 2^53")
    try:
        parts = np.broadcast_arrays(noise, rate + 0.0, number.astype(np.int64))
    except ValueError:
        shapes = ", ".join(
            f"{name} {x.shape}" for name, x in zip(SHOWN, (noise, rate, number), strict=True)
        )
        raise ValueError(f"shapes must broadcast against each other, got {shapes}") from None
    return Mechanisms(*parts)


def _real_numbers(name: str, value: Any) -> FloatArray:
    if isinstance(value, list | tuple) and any(isinstance(x, str) for x in value):
        raise ValueError(
            f"{name} must hold floats where it is an array, got {checks.shown(value)}: exact "
            "numbers are for mechanisms made one by one, which questions take as a list"
        )
    if isinstance(value, np.ndarray) and value.dtype.kind in "fiu" and type(value) is np.ndarray:
        return value.astype(np.float64)  # keeps NaN: `_refuse` reports its index
    return checks.real_array(name, value, -np.inf, np.inf)


def _refuse(name: str, numbers: FloatArray, good: npt.NDArray[np.bool_], rule: str) -> None:
    if good.all():
        return
    wrong = np.argwhere(~good)[0].tolist()
    index = ", ".join(map(str, wrong))
    place = f" at index [{index}]" if wrong else ""
    raise ValueError(f"{name} must be {rule}, got {float(numbers[tuple(wrong)])!r}{place}")
