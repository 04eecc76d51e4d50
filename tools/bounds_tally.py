"""Tally of answers with bounds against truth: verdicts, engines and widths."""

from __future__ import annotations

import collections
import math
from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np

import pyengine as pe
from pyengine.api import answers

__all__ = ["Case", "Tally", "Truth"]

TINY = 1e-30  # only widths of values above it count
PLAIN = 1e-10  # width that at most one in a hundred may exceed


class Truth(NamedTuple):
    """A question with its true answer and the relative error of that."""

    name: str
    argument: float
    adjacency: str
    truth: Decimal
    doubt: float = 0.0


class Tally:
    """Counts of answers of a method by verdict; refused and wide ones may be listed."""

    def __init__(self, listed: bool = False, method: str = "auto") -> None:
        self._listed, self._method = listed, method
        self.verdicts: collections.Counter[str] = collections.Counter()
        self.engines: collections.Counter[str] = collections.Counter()
        self.kinds: collections.Counter[str] = collections.Counter()
        self.widths: list[float] = []
        self._estimated: list[float] = []
        self._doubts: list[float] = []

    def judge(self, mechanism: pe.Mechanism, asked: Sequence[Truth], where: str) -> None:
        """Ask a mechanism all questions, and print those whose answer is outside its bounds."""
        groups: dict[tuple[str, str], list[Truth]] = collections.defaultdict(list)
        for one in asked:
            groups[one.name, one.adjacency].append(one)
        for members in groups.values():
            self._ask(mechanism, members, [one.argument for one in members], where)

    def _ask(
        self, mechanism: pe.Mechanism, members: Sequence[Truth], x: list[float], where: str
    ) -> None:
        """Ask questions of one function and one order; split them in halves if one is refused."""
        name, adjacency = members[0].name, members[0].adjacency
        try:
            given = {"adjacency": adjacency, "method": self._method}
            found, engines, proven = answers(name, mechanism, x, **given)
        except pe.AccuracyError:
            half = len(x) // 2
            if half:
                self._ask(mechanism, members[:half], x[:half], where)
                self._ask(mechanism, members[half:], x[half:], where)
                return
            self.verdicts["refused"] += 1
            self._list("refused", where, members[0])
            return
        for i, one in enumerate(members):
            engine = engines[i] + ("" if proven[i] else ", estimated")
            self.engines[engine] += 1
            apart = found.upper[i] - found.lower[i]
            width = apart / float(one.truth) if one.truth > TINY else 0.0
            if width > PLAIN or engines[i] == "lattice" or not proven[i]:
                self._list(f"{width:.1e} wide by {engine}", where, one)
            triple = found.lower[i], found.value[i], found.upper[i]
            if not self._holds(*triple, proven[i], one):
                print(
                    f"OUTSIDE: {where}: pe.{name}(mechanism, {one.argument!r}, "
                    f"adjacency={adjacency!r}, bounds=True): {found.lower[i]!r} "
                    f"{found.value[i]!r} {found.upper[i]!r} by {engines[i]}, "
                    f"truth {one.truth:.20e}",
                    flush=True,
                )

    def _list(self, what: str, where: str, one: Truth) -> None:
        if self._listed:
            question = f"{one.name}({one.argument!r}, {one.adjacency})"
            print(f"{what}: {where}: {question}, {one.truth:.3e}", flush=True)

    def _holds(self, lower: float, value: float, upper: float, proven: bool, one: Truth) -> bool:
        self._doubts.append(one.doubt)
        self.kinds[f"{one.name}, {one.adjacency}"] += 1
        if not -math.inf < lower <= value <= upper < math.inf:
            self.verdicts["CROSSED"] += 1
            return False
        low, high, doubt = Decimal(lower), Decimal(upper), one.truth * Decimal(one.doubt)
        if not low - doubt <= one.truth <= high + doubt:
            self.verdicts["OUTSIDE" if proven else "outside of an estimate"] += 1
            return False
        self.verdicts["within" if proven else "within an estimate"] += 1
        if one.truth > TINY:
            widths = self.widths if proven else self._estimated
            widths.append(float((high - low) / one.truth))
        return True

    @property
    def judged(self) -> int:
        """Number of questions answered."""
        return self.verdicts.total() - self.verdicts["refused"]

    def report(self) -> str:
        """Verdicts, engines and quantiles of relative widths."""
        lines = [f"{dict(self.verdicts)}", f"by {dict(self.engines)}", f"of {dict(self.kinds)}"]
        if self._doubts:
            found = np.quantile(self._doubts, [0.5, 0.99, 1.0])
            quantiles = ", ".join(f"{x:.1e}" for x in found)
            lines.append(f"doubts of truths: median, 99 %, largest {quantiles}")
        for what, widths in (("proven", self.widths), ("estimated", self._estimated)):
            if widths:
                found = np.quantile(widths, [0.5, 0.9, 0.99])
                wide = np.mean(np.array(widths) > PLAIN)
                quantiles = ", ".join(f"{x:.1e}" for x in found)
                lines.append(
                    f"relative widths of {len(widths)} {what} bounds above {TINY:g}: median, 90 %, "
                    f"99 % {quantiles}; {100 * wide:.2f} % wider than {PLAIN:g}"
                )
        return "\n".join(lines)


class Case(NamedTuple):
    """A mechanism, its name in lists, and its questions.

    ``ends`` are questions that do not count when deciding whether it has a truth.
    """

    run: pe.Mechanism
    where: str
    truths: Sequence[Truth]
    ends: Sequence[Truth] = ()
