"""Nodes of one quadrature rule, computed per panel on first use.

A law truncated far out has thousands of panels, of which a line needs some dozens.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from pyengine._support.forks import BallArithmetic
from pyengine.engines.vertical_lines.nodes import PanelRule, StepNodes

__all__ = ["Interval", "MadeNodes", "PanelNodes"]

FloatArray = npt.NDArray[np.float64]
Interval = tuple[float, float]


class MadeNodes(NamedTuple):
    """Nodes on some panels.

    Parameters
    ----------
    loss, mass : ndarray of shape (panels, 2, nodes)
        Sums of two doubles; a mass is ``mass`` 2^``power``.
    power : ndarray of shape (panels, nodes)
        Exponents of the masses.
    loss_error, mass_error : ndarray of shape (panels,)
        Bounds on the absolute errors of losses, and on the relative errors of masses.
    """

    loss: FloatArray
    mass: FloatArray
    power: FloatArray
    loss_error: FloatArray
    mass_error: FloatArray


class PanelNodes:
    """Nodes of one rule on all panels, computed on first use.

    Parameters
    ----------
    rule : PanelRule
        The rule.
    edges : ndarray
        Ends of all panels.
    make : callable
        Computes nodes of the rule on given panels.
    """

    def __init__(
        self,
        rule: PanelRule,
        edges: FloatArray,
        make: Callable[[list[Interval], PanelRule], MadeNodes],
    ) -> None:
        self._rule, self._edges, self._make = rule, edges, make
        count = edges.size - 1
        loss, mass = np.zeros((2, count, 2, rule.size))
        errors = np.zeros((2, count))
        self._made = MadeNodes(loss, mass, np.zeros((count, rule.size)), *errors)
        self._known = np.zeros(count, dtype=np.bool_)

    def on(self, panels: npt.NDArray[np.bool_] | None = None) -> StepNodes:
        """Return the nodes on the panels of a mask, or on all."""
        wanted = np.ones_like(self._known) if panels is None else panels
        if (wanted & ~self._known).any():
            with BallArithmetic.lock:  # threads share the nodes of a mechanism
                self._make_missing(np.flatnonzero(wanted & ~self._known))
        *parts, power, loss_error, mass_error = (each[wanted] for each in self._made)
        loss, mass = (np.swapaxes(x, 0, 1).reshape(2, -1) for x in parts)
        errors = float(loss_error.max()), float(mass_error.max())
        return StepNodes(loss, mass, power.ravel(), *errors, self._rule)

    def _make_missing(self, missing: npt.NDArray[np.intp]) -> None:
        if not missing.size:
            return  # another thread has made them meanwhile
        left, right = self._edges[missing].tolist(), self._edges[missing + 1].tolist()
        made = self._make(list(zip(left, right, strict=True)), self._rule)
        for kept, new in zip(self._made, made, strict=True):
            kept[missing] = new
        self._known[missing] = True  # last: others read it without the lock
