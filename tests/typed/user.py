"""A user's program, which `make types` checks by mypy and pyright, both strict: it is never run.

Lines that a checker must refuse carry a comment for each, and one that is not needed is an error.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Literal

import numpy as np
import numpy.typing as npt

import pyengine as pe
import pyengine.audit
from pyengine.interop import HistoryAccountant
from pyengine.tables.run import run as run_table

if TYPE_CHECKING:
    from typing_extensions import assert_type

    from pyengine.typing import Adjacency, Method

FloatArray = npt.NDArray[np.float64]
run = pe.dp_sgd(noise_multiplier=1.0, sampling_probability=0.01, steps=1000)
levels: FloatArray = np.geomspace(1e-6, 0.1, 50)
listed: Sequence[float] = [0.1, 0.2]

# A float gives a float.
assert_type(pe.delta(run, 1.0), float)
assert_type(pe.delta(run, 1), float)
assert_type(pe.epsilon(run, np.float64(1e-6)), float)
assert_type(pe.gamma_bound(run, kappa=1e-3, method="spectral"), float)
assert_type(pe.trade_off(run, np.float32(0.1), adjacency="remove", tolerance=1e-6), float)

# An array gives an array, and so does a list.
assert_type(pe.delta(run, levels), FloatArray)
assert_type(pe.epsilon(run, listed), FloatArray)
assert_type(pe.gamma_bound(run, [1e-3, 1e-2], threat_model="relaxed"), FloatArray)
assert_type(pe.trade_off(run, np.array([0.1], np.float32), bounds=False), FloatArray)

# Bounds of floats and of arrays.
assert_type(pe.delta(run, 1.0, bounds=True), pe.Bounds[float])
assert_type(pe.delta(run, levels, bounds="estimated"), pe.Bounds[FloatArray])
lower, value, upper = pe.epsilon(run, 1e-6, bounds=True)
assert_type(lower, float)
assert_type(pe.trade_off(run, levels, bounds=True).upper, FloatArray)


def most(words: Sequence[Adjacency], method: Method = "auto") -> float:
    """The largest δ(1) of some adjacencies."""
    return max(pe.delta(run, 1.0, adjacency=word, method=method) for word in words)


def either(known: Literal[True, False]) -> object:
    """Where the checker does not know which bounds are asked for, the type says nothing."""
    return pe.delta(run, 1.0, bounds=known)


# What describes a mechanism as a mechanism does: a history of steps, a profile.
assert_type(pe.delta([(1.0, 0.01, 1000)], 1.0), float)
assert_type(pe.gamma_bound(lambda epsilon: np.exp(-epsilon), 0.1), float)

# Other objects of the package.
target = pe.targets.EpsilonDelta(1.0, 1e-6)


def run_of(noise: float) -> pe.Mechanism:
    """A run of a noise that is looked for."""
    return pe.dp_sgd(noise, 0.01, 1000)


assert_type(pe.calibrate(run_of, target), pe.Calibration)
assert_type(pe.special.ndtr(0.5), float)

# What must be refused: words and arguments that do not exist.
pe.delta(run, 1.0, adjacency="both")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
pe.delta(run, 1.0, method="fft")  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
pe.delta(run, "1")  # type: ignore[arg-type]  # pyright: ignore[reportCallIssue, reportArgumentType]
pe.delta(run, eps=1.0)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue]
pe.delta(1.0, run)  # type: ignore[call-overload]  # pyright: ignore[reportCallIssue, reportArgumentType]
total: float = pe.delta(run, 1.0, bounds=True)  # type: ignore[assignment]  # pyright: ignore[reportAssignmentType]

# Modules are known by the names under which they are documented, and as attributes.
assert_type(HistoryAccountant(), pe.interop.HistoryAccountant)
assert_type(pyengine.audit.count_audit(10, 20, 1, 20).epsilon, float)
pe.audit.count_audit(10, 20)  # type: ignore[call-arg]  # pyright: ignore[reportCallIssue]
run_table(0)  # type: ignore[arg-type, call-arg]  # pyright: ignore[reportCallIssue]
