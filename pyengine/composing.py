"""Composition of mechanisms and of what describes one."""

from __future__ import annotations

from typing import Any

from pyengine import mechanisms as values
from pyengine.mechanisms import Composition, Mechanism, as_mechanism

__all__ = ["compose"]


def compose(*mechanisms: Any) -> Composition:
    """Compose mechanisms that run on the same data, adaptively.

    Parameters
    ----------
    *mechanisms : Mechanism, or what describes one
        Any number of mechanisms; none gives the mechanism that releases nothing.  Objects of other
        libraries that stand for steps are taken as they are: a privacy engine of Opacus,
        accountants, events and histories, see `pyengine.interop`.

    Returns
    -------
    Composition
        Equal steps are counted together; the order does not matter.

    Raises
    ------
    ValueError
        For what does not describe steps, such as a privacy profile.

    Examples
    --------
    >>> import pyengine as pe
    >>> warm_up, main = pe.dp_sgd(2.0, 0.01, 100), pe.dp_sgd(1.0, 0.02, 900)
    >>> pe.compose(warm_up, main).steps
    1000
    >>> history = [(2.0, 0.01, 100), (1.0, 0.02, 900)]
    >>> pe.compose(history, pe.LaplaceMechanism(10)).steps
    1001
    """
    return values.compose(*map(_mechanism, mechanisms))


def _mechanism(thing: Any) -> Mechanism:
    found = as_mechanism(thing)
    if found is not None:
        return found
    from pyengine.interop.recognise import mechanism_of

    return mechanism_of(thing)
