"""Ticks of logarithmic axes, with readable labels."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING

from pyengine._support.decimals import written
from pyengine._support.extras import needed

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.axis import Axis

__all__ = ["number_text", "ticked"]

SUPERSCRIPTS = str.maketrans("-0123456789", "⁻⁰¹²³⁴⁵⁶⁷⁸⁹")
MANY, FEW = 3.0, 0.8  # decades of an axis: powers of ten from the first, even ticks below the last


def number_text(value: float) -> str:
    """Short text of a tick: "0.05", "2000", "10⁻⁶" or "2·10⁻⁶"."""
    if value == 0.0 or 1e-3 <= abs(value) < 1e4:
        return written(value, ".6g")
    mantissa, exponent = f"{value:.5e}".split("e")
    mantissa = mantissa.rstrip("0").rstrip(".")
    power = f"10{str(int(exponent)).translate(SUPERSCRIPTS)}"
    return power if mantissa == "1" else f"{mantissa}·{power}"


def _power_text(value: float) -> str:
    """As `number_text`, with the same form on both sides of 1."""
    exponent = round(math.log10(value)) if value > 0.0 else 0
    return f"10{str(exponent).translate(SUPERSCRIPTS)}" if exponent else "1"


def ticked(axes: Axes) -> None:
    """Set the ticks of logarithmic axes, whose limits must be final."""
    for axis in (axes.xaxis, axes.yaxis):
        if axis.get_scale() == "log":
            _tick(axis)


def _tick(axis: Axis) -> None:
    with needed("a picture", "plots"):
        from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullFormatter

    low, high = sorted(axis.get_view_interval())
    decades = math.log10(high / low)
    if decades >= MANY:
        axis.set_major_locator(LogLocator(numticks=9))
        axis.set_major_formatter(FuncFormatter(lambda value, _: _power_text(value)))
    else:
        even = MaxNLocator(6, steps=[1, 2, 2.5, 5, 10])
        axis.set_major_locator(even if decades < FEW else LogLocator(subs=(1.0, 2.0, 5.0)))
        axis.set_major_formatter(FuncFormatter(lambda value, _: number_text(value)))
    axis.set_minor_formatter(NullFormatter())
