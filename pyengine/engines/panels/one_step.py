"""The law of one tilted step on panels, with an a-priori bound on its distance from the true one.

On each panel the density is interpolated at Gauss nodes.  With E the distance of the density from
the nearest polynomial of that degree, the interpolation is within 2 E of it in total variation, and
E is at most 2 M ρ^-n/(ρ - 1) where the density is at most M on the ellipse of parameter ρ about
the panel (Trefethen 2019, Theorem 8.2).
"""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

from pyengine.engines.panels.law import PanelLaw
from pyengine.engines.panels.legendre import (
    EXTENDED,
    NODES,
    Extended,
    extended_product,
    gauss_nodes,
    growth,
    values,
)
from pyengine.engines.panels.shape import StepShape
from pyengine.numerics.rounding import UNIT

__all__ = ["one_step", "remainder"]

FloatArray = npt.NDArray[np.float64]

ELLIPSES = np.exp(np.linspace(math.log(1.05), math.log(400.0), 40))


def remainder(
    shape: StepShape,
    tilt: float,
    log_scale: float,
    level: int,
    sizes: npt.NDArray[np.intp],
    panels: npt.NDArray[np.intp] | None = None,
) -> FloatArray:
    """Return bounds on the total variation between a step's density and its interpolations.

    Parameters
    ----------
    shape, tilt, log_scale, level
        As of `one_step`.
    sizes : ndarray
        Numbers of coefficients of a panel.
    panels : ndarray, optional
        The panels that count; all if not given.
    """
    number = 1 << -level
    at = (np.arange(number) if panels is None else panels).astype(np.float64)
    half = 0.5 / number
    middle = (2.0 * at + 1.0) * half
    reach = 0.5 * half * (ELLIPSES + 1.0 / ELLIPSES)
    low, high = middle[:, None] - reach, middle[:, None] + reach
    with np.errstate(over="ignore", invalid="ignore"):
        exponent = np.maximum(tilt * low, tilt * high) - log_scale
        most = shape.largest(middle[:, None], low, high) * np.exp(exponent)
        # the polynomial has a degree of at most size - 1
        weight = ELLIPSES ** (1.0 - sizes[:, None]) / (ELLIPSES - 1.0)
        error = 4.0 * most * weight[:, None]
    least = np.nan_to_num(error, nan=np.inf).min(axis=2)
    return np.asarray(least.sum(axis=1) / number * (1.0 + 1e-9))


def one_step(shape: StepShape, tilt: float, log_scale: float, level: int, size: int) -> PanelLaw:
    """Return the law of one step's part of the way, times e^(``tilt`` x - ``log_scale``).

    Parameters
    ----------
    shape : StepShape
        The step.
    tilt, log_scale : float
        Any numbers; the mass is to be about 1.
    level : int
        Panels have the length 2^``level``, at most that of a piece of the density.
    size : int
        Coefficients of a panel.
    """
    panels = 1 << -level
    nodes = gauss_nodes(size)
    x = (np.arange(panels, dtype=Extended)[:, None] + nodes.place) / panels
    weight = np.exp(Extended(tilt) * x - Extended(log_scale))
    density = shape.density(x) * weight / panels
    exact = extended_product(density * nodes.weight, values(size, nodes.place))
    series = exact.astype(np.float64)
    ends = np.exp(Extended(tilt) * np.array([0, 1], dtype=Extended) - Extended(log_scale))
    atoms = (shape.atoms * ends).astype(np.float64)
    exponent = EXTENDED * 8.0 * (abs(tilt) + abs(log_scale) + 4.0)
    # of the values, of the weights, and of the places, by the logarithmic derivative
    steepness = abs(tilt) + 2.0 / min(shape.gap, 1.0) + 3.0 * float(shape.length)
    relative = shape.density_error + exponent + nodes.error + 2.0 * NODES * EXTENDED * steepness
    size_of = float(np.sqrt((density**2 * nodes.weight).sum(axis=1)).sum())
    left = float(remainder(shape, tilt, log_scale, level, np.array([size]))[0])
    error = left + float(atoms.sum()) * (exponent + 8.0 * EXTENDED + 2.0 * UNIT)
    error += size_of * relative + UNIT * float(np.abs(series).sum())
    error += size_of * EXTENDED * float(np.sqrt((growth(size) ** 2).sum()))
    mass = float(atoms.sum() + series[:, 0].sum()) * (1.0 + 4.0 * UNIT * panels) + error
    return PanelLaw(level, 0, series, 0, atoms, mass, error * (1.0 + 1e-9))
