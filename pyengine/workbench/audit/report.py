"""The findings of an audit as text, JSON and a picture."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from decimal import ROUND_CEILING, ROUND_FLOOR, Decimal
from typing import Any

import numpy as np

from pyengine._support.decimals import number, written
from pyengine.workbench.audit._inputs import FloatArray
from pyengine.workbench.audit.lower_bounds import epsilon_lower_bound, mu_lower_bound
from pyengine.workbench.audit.trade_off import EmpiricalTradeOff
from pyengine.workbench.plots import style

__all__ = ["Finding", "picture", "report"]

LEVELS = (1e-3, 1e-2, 1e-1)
GAP = ("violated", "attained", "undecided", "verdict", "excess")


@dataclass(frozen=True)
class Finding:
    """One attack compared with one claimed bound.

    Parameters
    ----------
    name : str
        Name of the mechanism and of the attack, for the report.
    curve : EmpiricalTradeOff
        The attack's error rates.
    bound : callable
        Claimed trade-off function: β = f(α) for arrays of α in [0, 1].
    delta : float
        δ of the empirical lower bound on ε.
    """

    name: str
    curve: EmpiricalTradeOff
    bound: Callable[[FloatArray], Any]
    delta: float = 1e-5

    def numbers(self) -> dict[str, Any]:
        """Verdict and figures, as plain values for JSON."""
        gap = self.curve.compare(self.bound)
        levels = np.array(LEVELS)
        measured, claimed = self.curve.upper(levels), np.asarray(self.bound(levels))
        return {
            "name": self.name,
            **{key: getattr(gap, key) for key in GAP},
            "confidence": self.curve.confidence,
            "reversed": self.curve.is_reversed,
            "epsilon_lower_bound": epsilon_lower_bound(self.curve, self.delta),
            "delta": self.delta,
            "mu_lower_bound": mu_lower_bound(self.curve),
            "levels": [
                {"alpha": level, "beta_bound": float(low), "beta_attack_upper": float(high)}
                for level, low, high in zip(LEVELS, claimed, measured, strict=True)
            ],
        }


def report(findings: Sequence[Finding]) -> tuple[str, str]:
    """Return the findings as text for people and as JSON.

    Parameters
    ----------
    findings : sequence of Finding
        The attacks to report.

    Returns
    -------
    text, json : str
        ``beta_attack_upper`` is an upper bound on the attack's β at level α with the stated
        confidence; its difference to the claimed bound shows how much the attack falls short of it.
    """
    rows = [finding.numbers() for finding in findings]
    lines = []
    for row in rows:
        lines += [
            f"{row['name']}: {row['verdict']} (confidence {row['confidence']:g})",
            f"  {_shown(row)}",
        ]
        for level in row["levels"]:
            claimed, attack = level["beta_bound"], level["beta_attack_upper"]
            lines.append(
                f"  alpha = {level['alpha']:<6g} beta: bound {_placed(claimed, ROUND_FLOOR)}, "
                f"attack at most {_placed(attack, ROUND_CEILING)}, difference "
                f"{attack - claimed:+.4f}"
            )
    return "\n".join(lines) + "\n", json.dumps(rows, indent=2) + "\n"


def _placed(value: float, rounding: str) -> str:
    """An error rate with four decimals, rounded so that it stays a bound."""
    return str(Decimal(value).quantize(Decimal("0.0001"), rounding=rounding))


def _shown(row: Mapping[str, Any]) -> str:
    """The lower bounds that an attack shows, in words; a bound of 0 is not mentioned."""
    found = []
    if row["epsilon_lower_bound"] > 0.0:
        least = number(row["epsilon_lower_bound"], 3, ROUND_FLOOR)
        found.append(f"epsilon >= {least} at delta = {written(row['delta'])}")
    if row["mu_lower_bound"] > 0.0:
        found.append(f"mu >= {number(row['mu_lower_bound'], 3, ROUND_FLOOR)}")
    if found:
        return f"shown by the attack: {', '.join(found)}"
    if row["reversed"]:
        return "small scores speak for the record, significantly: negate them"
    if row["undecided"]:
        return "guessing and the bound both fit: more runs, or a stronger attack, would tell"
    return "the attack does not rule out guessing"


def picture(findings: Mapping[str, Sequence[Finding]] | Sequence[Finding]) -> bytes:
    """Draw empirical curves with their bands against the bounds.

    Parameters
    ----------
    findings : sequence of Finding, or mapping from titles to such sequences
        The attacks of a single panel, or of one panel for each title.

    Returns
    -------
    bytes
        A PNG picture.
    """
    panels = findings if isinstance(findings, Mapping) else {"": findings}
    figure = style.figure(4.6 * len(panels), 4.4)
    axes = figure.subplots(1, len(panels), squeeze=False)[0]
    for axis, (title, items) in zip(axes, panels.items(), strict=True):
        _panel(axis, title, items)
    axes[0].set_ylabel("false negative rate β")
    return style.image(figure)


def _panel(axis: Any, title: str, items: Sequence[Finding]) -> None:
    levels = np.concatenate([np.geomspace(1e-4, 0.1, 120), np.linspace(0.1, 1.0, 180)[1:]])
    for index, item in enumerate(items):
        curve, colour = item.curve, style.line(index)["color"]
        axis.plot(
            levels, item.bound(levels), color=colour, lw=1.4, ls="--", label=f"{item.name}: bound"
        )
        axis.plot(curve.alpha, curve.beta, color=colour, lw=1.6, label=f"{item.name}: attack")
        x = np.concatenate([curve.alpha_lower, curve.alpha_upper[::-1]])
        y = np.concatenate([curve.beta_lower, curve.beta_upper[::-1]])
        # overlapping bands are distinguished by their edges, not by their colours
        axis.fill(x, y, facecolor=colour, alpha=0.08, lw=0, zorder=0)
        for part in ("lower", "upper"):
            ends = (getattr(curve, f"{name}_{part}") for name in ("alpha", "beta"))
            axis.plot(*ends, color=colour, lw=0.6, alpha=0.6, zorder=1)
    axis.plot([0, 1], [1, 0], color="0.6", lw=0.8, ls=":")
    style.frame(axis, title=title, xlabel="false positive rate α", xlim=(0, 1), ylim=(0, 1))
    axis.legend(fontsize=7, frameon=False)
