"""The data file: one record per line, replaced as a whole."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

from .model import QUANTITIES, Phase, Point
from .solve import Answer

ABOUT = (
    "Poisson-subsampled Gaussian composed over steps: P = N(0, 1), Q = (1 - p) N(0, 1) + "
    "p N(1/noise, 1) per step, S = the sum of log dQ/dP. noise, p, steps (lists: one entry per "
    "phase) and c are exact doubles. p_above = P(S > c), p_below = P(S <= c), q_above, q_below: "
    "the same under Q; h_qp = H_{exp(c)}(Q || P), h_pq = H_{exp(-c)}(P || Q). Quantities below "
    "1e-305 are left out. digits = leading digits on which two runs agree that differ in contour, "
    "truncation, node spacings and precision (L = vertical line, H = hyperbola), at most 30; for "
    "closed_form, digits proven by ball arithmetic."
)


def record(solved: Point, answer: Answer) -> dict[str, Any]:
    """Return the JSON form of a solved point."""
    kept = [name for name in QUANTITIES if name in answer.values]
    return {
        "stratum": solved.stratum,
        **parameters(solved),
        **{name: answer.values[name] for name in kept},
        "digits": [answer.digits[name] for name in kept],
        "method": answer.method,
    }


def parameters(of: Point) -> dict[str, Any]:
    """Return noise, probability and steps by phase, and the threshold."""
    return {
        "noise": [phase.noise for phase in of.phases],
        "p": [phase.probability for phase in of.phases],
        "steps": [phase.steps for phase in of.phases],
        "c": of.threshold,
    }


def write(
    path: Path,
    provenance: dict[str, Any],
    points: list[dict[str, Any]],
    failures: list[dict[str, Any]],
) -> None:
    """Replace the data file atomically."""
    head = json.dumps({"about": ABOUT, "provenance": provenance}, indent=1)[:-2]
    body = ",\n".join(json.dumps(p, separators=(",", ":")) for p in points)
    failed = ",\n".join(json.dumps(p, separators=(",", ":")) for p in failures)
    text = f'{head},\n "points": [\n{body}\n],\n "failures": [\n{failed}\n]}}\n'
    json.loads(text)
    part = path.with_name(path.name + ".part")
    part.write_text(text, encoding="utf-8")
    os.replace(part, path)


def read(path: Path) -> tuple[int, list[dict[str, Any]], list[dict[str, Any]]]:
    """Return the number of draws, the points and the failures of a data file."""
    data = json.loads(path.read_text(encoding="utf-8"))
    return data["provenance"]["drawn"], data["points"], data["failures"]


def point(record: dict[str, Any]) -> Point:
    """Return the point of a record."""
    phases = zip(record["noise"], record["p"], record["steps"], strict=True)
    return Point(tuple(Phase(*phase) for phase in phases), record["c"], record.get("stratum", ""))
