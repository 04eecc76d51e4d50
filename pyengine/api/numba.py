"""Special functions and questions for code that Numba compiles.

Inside a function under ``@numba.njit``, functions of `pyengine.special` take floats and call the C
kernels directly.  Questions take a run made by `prepare` and call Python, in some microseconds
each.  Both return the same bits as outside.

Numba finds this module if the package is installed (entry point ``numba_extensions``); in a source
tree, call `register` first.
"""

from __future__ import annotations

import contextlib
import ctypes
import math
import secrets
import sys
import threading
import warnings
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from pyengine import api, special
from pyengine._support.extras import needed
from pyengine.api.linking import get_library

if TYPE_CHECKING:
    from pyengine.api.typing import Adjacency, Described, Method, ThreatModelWord
    from pyengine.mechanisms.threat_models import ThreatModel

__all__ = [
    "Prepared",
    "delta",
    "delta_bounds",
    "epsilon",
    "epsilon_bounds",
    "gamma_bound",
    "gamma_bound_bounds",
    "prepare",
    "register",
    "trade_off",
    "trade_off_bounds",
]

Triple = tuple[float, float, float]
QUESTIONS = ("trade_off", "gamma_bound", "delta", "epsilon")

_lock = threading.Lock()
_registered: list[bool] = []
_prepared: dict[int, tuple[Any, dict[str, Any]]] = {}  # mechanism and keywords by key


class Prepared(NamedTuple):
    """A run that compiled code can ask about; made by `prepare`.

    Parameters
    ----------
    key : int
        A random number that identifies it in this process.  Other processes refuse it, also from a
        pickle or from code that was cached with ``cache=True``.
    """

    key: int


def prepare(
    mechanism: Described,
    *,
    adjacency: Adjacency | None = None,
    method: Method = "auto",
    threat_model: ThreatModelWord | ThreatModel = "dp",
    tolerance: float | None = None,
) -> Prepared:
    """Prepare a mechanism for questions in compiled code.

    Parameters
    ----------
    mechanism : Mechanism, or an object that describes one
        What is released.  It is kept as long as the process lives.
    adjacency : {"add_remove", "add", "remove", "substitute"}, optional
        As in `pyengine.trade_off`; by default that of each question.
    method, threat_model, tolerance
        As in `pyengine.trade_off`.

    Returns
    -------
    Prepared
        The first argument of the questions of this module.

    Raises
    ------
    ValueError
        For a wrong keyword.

    Examples
    --------
    >>> import pyengine as pe
    >>> run = pe.numba.prepare(pe.dp_sgd(1.0, 0.01, 1000), adjacency="add")
    >>> pe.numba.delta(run, 1.0) == pe.delta(pe.dp_sgd(1.0, 0.01, 1000), 1.0, adjacency="add")
    True
    """
    register()
    words: dict[str, Any] = {"method": method, "threat_model": threat_model, "tolerance": tolerance}
    api.check_words("add" if adjacency is None else adjacency, method, threat_model, tolerance)
    if adjacency is not None:
        words["adjacency"] = adjacency
    with _lock:
        for key, (known, how) in _prepared.items():
            if known is mechanism and how == words:
                return Prepared(key)
        key = secrets.randbits(62)
        _prepared[key] = mechanism, words
        return Prepared(key)


def _known(key: int) -> tuple[Any, dict[str, Any]]:
    if key not in _prepared:
        raise ValueError(
            f"run {key} was not prepared in this process: call prepare here, and pass what it"
            " returns as an argument to code that cache=True keeps"
        )
    return _prepared[key]


def _answer(name: str, key: int, at: float, *, bounds: bool) -> Any:
    """The answer; NaN and a warning in threads whose errors nobody can catch.

    Numba drops the errors of ``prange`` threads and leaves their results uninitialised.  Such
    threads have no caller in Python.
    """
    try:
        mechanism, words = _known(key)
        return getattr(api, name)(mechanism, at, bounds=bounds, **words)
    except Exception:
        asker = sys._getframe(1)
        if asker.f_back is not None:
            raise
        with contextlib.suppress(RuntimeWarning):  # where warnings are errors
            warnings.warn(
                f"{name} answers NaN where it has no answer, as prange loses errors;"
                " ask outside of it for them",
                RuntimeWarning,
                stacklevel=1,
            )
        return (math.nan,) * 3 if bounds else math.nan


def _ask(name: str, key: int, at: float) -> float:
    return float(_answer(name, key, at, bounds=False))


def _ask_bounds(name: str, key: int, at: float) -> Triple:
    lower, value, upper = _answer(name, key, at, bounds=True)
    return float(lower), float(value), float(upper)


def trade_off(run: Prepared, alpha: float) -> float:
    """`pyengine.trade_off` of a run, for compiled code.

    Parameters
    ----------
    run : Prepared
        Made by `prepare`.
    alpha : float
        In [0, 1].

    Returns
    -------
    float
        β(α), the bits of `pyengine.trade_off`.
    """
    return _ask("trade_off", run.key, alpha)


def gamma_bound(run: Prepared, kappa: float) -> float:
    """`pyengine.gamma_bound` of a run, for compiled code.

    Parameters
    ----------
    run : Prepared
        Made by `prepare`.
    kappa : float
        In [0, 1].

    Returns
    -------
    float
        γ(κ), the bits of `pyengine.gamma_bound`.
    """
    return _ask("gamma_bound", run.key, kappa)


def delta(run: Prepared, epsilon: float) -> float:
    """`pyengine.delta` of a run, for compiled code.

    Parameters
    ----------
    run : Prepared
        Made by `prepare`.
    epsilon : float
        In [0, ∞].

    Returns
    -------
    float
        δ(ε), the bits of `pyengine.delta`.
    """
    return _ask("delta", run.key, epsilon)


def epsilon(run: Prepared, delta: float) -> float:
    """`pyengine.epsilon` of a run, for compiled code.

    Parameters
    ----------
    run : Prepared
        Made by `prepare`.
    delta : float
        In [0, 1].

    Returns
    -------
    float
        ε, the bits of `pyengine.epsilon`.
    """
    return _ask("epsilon", run.key, delta)


def trade_off_bounds(run: Prepared, alpha: float) -> Triple:
    """`pyengine.trade_off` with ``bounds=True``, for compiled code.

    Parameters
    ----------
    run, alpha
        As in `trade_off`.

    Returns
    -------
    tuple of float
        Lower bound, value and upper bound; both bounds are proven.
    """
    return _ask_bounds("trade_off", run.key, alpha)


def gamma_bound_bounds(run: Prepared, kappa: float) -> Triple:
    """`pyengine.gamma_bound` with ``bounds=True``, for compiled code.

    Parameters
    ----------
    run, kappa
        As in `gamma_bound`.

    Returns
    -------
    tuple of float
        Lower bound, value and upper bound; both bounds are proven.
    """
    return _ask_bounds("gamma_bound", run.key, kappa)


def delta_bounds(run: Prepared, epsilon: float) -> Triple:
    """`pyengine.delta` with ``bounds=True``, for compiled code.

    Parameters
    ----------
    run, epsilon
        As in `delta`.

    Returns
    -------
    tuple of float
        Lower bound, value and upper bound; both bounds are proven.
    """
    return _ask_bounds("delta", run.key, epsilon)


def epsilon_bounds(run: Prepared, delta: float) -> Triple:
    """`pyengine.epsilon` with ``bounds=True``, for compiled code.

    Parameters
    ----------
    run, delta
        As in `epsilon`.

    Returns
    -------
    tuple of float
        Lower bound, value and upper bound; both bounds are proven.
    """
    return _ask_bounds("epsilon", run.key, delta)


def register() -> None:
    """Register the functions of `pyengine.special` and of this module with Numba, once.

    Raises
    ------
    OSError
        If the package has no shared library (`pyengine.get_library`).
    """
    with _lock:
        if _registered:
            return
        with needed("pyengine.numba", "numba"):
            from numba import types

        library = ctypes.CDLL(get_library())
        triple = types.UniTuple(types.float64, 3)  # type: ignore[no-untyped-call, unused-ignore]
        for name in special.__all__:
            if name != "threaded":
                _register_special(name, library)
        for name in QUESTIONS:
            _register_question(name, _ask, types.float64, "")
            _register_question(name, _ask_bounds, triple, "_bounds")
        _registered.append(True)


def _register_special(name: str, library: ctypes.CDLL) -> None:
    with needed("pyengine.numba", "numba"):
        import llvmlite.binding
        import numba.extending
        from numba import types

    function, symbol = getattr(special, name), f"pyengine_{name}"
    address = ctypes.cast(getattr(library, symbol), ctypes.c_void_p).value
    llvmlite.binding.add_symbol(symbol, address)  # by name, so that compiled code can be cached
    number = function.nin if isinstance(function, np.ufunc) else 1
    signature = types.float64(*[types.float64] * number)
    kernel = types.ExternalFunction(symbol, signature)
    calls: dict[int, Callable[..., Any]] = {
        1: lambda x: kernel(x),
        3: lambda x, y, z: kernel(x, y, z),
        4: lambda x, y, z, w: kernel(x, y, z, w),
    }
    call = calls[number]

    def scalars(*given: Any) -> Callable[..., Any] | None:
        return call if all(map(_is_number, given)) else None

    typing: dict[int, Callable[..., Any]] = {
        1: lambda x: scalars(x),
        3: lambda x, y, z: scalars(x, y, z),
        4: lambda x, y, z, w: scalars(x, y, z, w),
    }
    numba.extending.overload(function)(typing[number])


def _is_number(given: Any) -> bool:
    """Whether a Numba type is that of a real number."""
    with needed("pyengine.numba", "numba"):
        from numba import types

    return isinstance(given, (types.Float, types.Integer))


def _register_question(name: str, asked: Callable[..., Any], kind: Any, suffix: str) -> None:
    with needed("pyengine.numba", "numba"):
        import numba.extending
        from numba.core.errors import TypingError

    function = globals()[f"{name}{suffix}"]

    def typed(run: Any, at: Any) -> Callable[..., Any]:
        if getattr(run, "instance_class", None) is not Prepared or not _is_number(at):
            raise TypingError(f"{name}{suffix} takes a Prepared of `prepare` and a float")

        def call(run: Any, at: Any) -> Any:
            with numba.objmode(found=kind):
                found = asked(name, run.key, at)
            return found  # noqa: RET504 what leaves such a block has a name

        return call

    numba.extending.overload(function)(typed)
