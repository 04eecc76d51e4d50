"""Each error term of deformed and of plain lines dropped, and divided by a hundred: who sees it.

    python tools/audit_deformed.py

Most terms lie far below others, where no comparison sees them.  So each is made to carry the error
by itself, in a copy of the package with switches (``line_switches.py``): a choice of the
discretisation is made coarse, or one operation errs by as much as its term allows, all in one
direction, in units of 2^-26 in the place of those of rounding, and the term counts in that unit.
P and Q are held against ball arithmetic, integrals of lines of two steps against nested Gauss rules
(``nested_steps.py``), scales against ``mpmath``, and what rules may leave out against the largest
values on their ellipses, in balls; plain lines against those of the package, with all their nodes.
Printed is how many lie outside of their bounds: with the term, without it, and with a hundredth of
it.
"""

from __future__ import annotations

import argparse
import sys
import tempfile
from pathlib import Path
from typing import Any

import numpy as np
from deformed_judges import Judge, judges
from line_switches import LOUD, SwitchedLines, build
from term_switches import Term

from pyengine.engines.vertical_lines.build import Remainders
from pyengine.engines.vertical_lines.gauss import EXTENDED, LegendreNodes, gauss_nodes
from pyengine.numerics.rounding import UNIT

C, E, D = "corners.py", "ends.py", "deformed.py"
T, N, L = "tilted.py", "nodes.py", "line.py"
PART, PART_WIDE = LOUD / UNIT, LOUD / EXTENDED
COARSE = {"deformation.LEFT": 0.05, "nodes.SIZES": np.arange(1, 24)}
MASSES = {"masses": LOUD, "factor of step: masses": PART_WIDE}
FEW = {"ends.NODES": 8}
SHORT = {"deformed.CHUNKS": (0, 6), "deformed.MOST_PANELS": 6}
USED = 1  # nodes of the rules that are put in the place of those of 8


def few_nodes(size: int) -> Any:
    """Gauss's rule, but with fewer nodes where 8 are asked for; others have no weight."""
    if size != 8:
        return gauss_nodes(size)
    few = gauss_nodes(USED)
    place, weight = few.place, few.weight
    rest = np.full(size - USED, place[0])
    return LegendreNodes(np.append(place, rest), np.append(weight, 0 * rest), few.error)


TERMS = (
    Term("P and Q: values, sums, exponents", E, "off = ",
         "(chain * np.exp(-DECAY * exponent)) @ moduli.T", "ends",
         {"values of P and Q": LOUD, "exponents of P and Q": LOUD}, PART),
    Term("P and Q: rules", E, "return (", "np.stack(rules, axis=1)", "ends", FEW),
    Term("P and Q: the way back", E, "back.append(",
         "np.minimum(near, 1e300) * end * np.exp(across)", "ways", {}),
    Term("P and Q: the way up", E, "up.append(", "peak * np.exp(-s.imag * height) / s.imag",
         "ways", {}),
    Term("bounds on P and Q: cells", E, "float(", "(f * cells).sum()", "bounds", {}),
    Term("bounds on P and Q: beyond", E, ".sum() + ", "f[0] * fall[-1] / height", "bounds", {}),
    Term("below: terms and sums", D, "(", "moduli * chain", "sums",
         {"terms below the turn": LOUD}, PART),
    Term("below: values", D, "moduli * chain + ", "sums * error", "sums",
         {"sums of a transform": LOUD, "factor of step: sums": PART}),
    Term("step: sums", T, "chain = ",
         "(min(size / LANES, LANES_OF_PART) + size / PART + summed) * UNIT", "sums",
         {"sums of a transform": LOUD}, PART),
    Term("step: what its nodes leave out", T, "step.left *= ",
         "1.01 * max(1.0, float(np.exp(log_mean - float(step.log_mean))))", "sums", COARSE),
    Term("step: its nodes, on ellipses", N, "return np.asarray(", "8.0 * total * SLACK", "nodes",
         {}),
    Term("step: losses", N, "of v\n    return ",
         "EXTENDED * (64.0 * (largest_loss(shape) + d) + 16.0 * mu * steepest)", "sums",
         {"losses": LOUD}, PART_WIDE),
    Term("step: masses", N, "mass_error = nodes.error + ",
         "EXTENDED * (48.0 + 8.0 * float(shape.distance))", "sums", {"masses": LOUD}, PART_WIDE),
    Term("step: masses of tilted losses", T, "            + ",
         "2.0 * abs(tilt) * nodes.loss_error", "sums", {"tilted losses": LOUD}, PART_WIDE),
    Term("below: atoms taken off", D, "error + ", "atoms_error", "sums",
         {"atoms below the turn": LOUD, "factor of atoms below: rounding": PART}),
    Term("atoms below: rounding", D, "off += n * ", "(12.0 + 4.0 * turns) * UNIT", "sums",
         {"atoms below the turn": LOUD, "angles of atoms": LOUD}, PART),
    Term("below: without atoms", D, "atoms_error + ", "2.0 * UNIT * np.abs(value)", "sums",
         {"without atoms": LOUD}, PART),
    Term("below: nodes", D, "self._low_error += ", "UNIT * (sums * t).sum(axis=1) * slope", "sums",
         {"nodes below the turn": LOUD}, PART),
    Term("below: rules", D, "error += ",
         "self.left_below(c, kernels)", "sums",
         {"low_rule.GOAL": 0.0, "low_rule.SIZES": (1, 2, 3)}),
    Term("below: rules, on ellipses", D, "self._rules = ", "rules * kernel.sum(axis=1)", "below",
         {}),
    Term("below: angles", D, "off = ", "ANGLE_ERROR * np.abs(z)", "sums", {"angles": LOUD}, PART),
    Term("below: the centre", D, "np.abs(z) + ", "self._off_centre", "sums", {"centre": LOUD},
         PART_WIDE),
    Term("below: thresholds", D, "self._off_centre + ", "4.0 * EXTENDED * np.abs(c)", "sums",
         {"threshold": LOUD}, PART_WIDE),
    Term("beyond: P and Q", D, "added, ", "scales[:, None] * error", "sums",
         {"values of P and Q": LOUD, "factor of P and Q: values, sums, exponents": PART}),
    Term("beyond: shares and scales", D, "relative = ",
         "step.share_error + step.left + step.log_error", "sums",
         {"ends beyond the turn": 28.0 * LOUD}, PART_WIDE),
    Term("beyond: a_0 + P and a_1 - Q", C, "off = number * (", "FACTOR", "sums",
         {"ends beyond the turn": LOUD}, PART),
    Term("beyond: logarithms", C, "off = number * (FACTOR + ", "6.0 * mean_log(moduli)", "sums",
         {"logarithms beyond the turn": LOUD}, PART),
    Term("beyond: parts of atoms", C, "(factors.relative + ", "PART * UNIT", "sums",
         {"parts of atoms": LOUD}, PART),
    Term("beyond: weights and sums", D, "chain = ",
         "104.0 + NODES * panels.size + 2.0 * self._places.place.size", "sums",
         {"terms beyond the turn": LOUD}, PART),
    Term("beyond: distances", D, "turned = ", "4.0 * self._height * UNIT * (each @ moduli.T)",
         "sums", {"distances": LOUD, "factor of beyond: weights and sums": 0.003 * PART}, PART),
    Term("beyond: places", D, "rounding += ",
         "self._off_place * (moduli * size * np.abs(moved)).sum(axis=1)", "sums",
         {"places": LOUD, "factor of places": PART_WIDE}),
    Term("places", D, "n * (loss_error(shape) + ", "16.0 * EXTENDED * largest_loss(shape)", "sums",
         {"places": LOUD}, PART_WIDE),
    Term("places: losses at the ends", D, "n * (", "loss_error(shape)", "sums",
         {"places": LOUD}, PART_WIDE),
    Term("beyond: rules", D, "rounding + ", "self.left_on(panels)", "sums",
         {"deformed.NODES": 8, "deformed.gauss_nodes": few_nodes, "unused nodes": 8.0 - USED}),
    Term("beyond: rules, on ellipses", D, "/ math.pi * ", "grown", "beyond", {}),
    Term("beyond the last panel: next to a place", D, "far = ", "rest", "sums", SHORT),
    Term("beyond the last panel: exponentials", D, "rest + ", "fallen", "sums",
         {"deformed.FALLEN": 0.7}),
    Term("light places", D, "fallen + ", "100.0 * self._dropped", "sums",
         {"deformed.LIGHT": 0.05}),
    Term("atoms: products", D, "rounding = ",
         "(self._number * 16.0 + 8.0 * self._places.place.size + 32.0) * UNIT", "sums",
         {"atoms": LOUD}, PART),
    Term("atoms: logarithms", D, "rounding += (\n            ", "4.0", "sums",
         {"logarithms of atoms": LOUD}, PART),
    Term("atoms: shares", D, "rounding += sum(\n            ",
         "n * (step.share_error + step.left + step.log_error)", "sums", {"atoms": 5.0 * LOUD},
         PART_WIDE),
    Term("atoms: places", D, "rounding += ", "self._off_place * (1.0 + max(apart))", "sums",
         {"places": LOUD, "factor of places": PART_WIDE}),
    Term("scale: means of steps", D, "self._log_error = sum(\n            ",
         "n * step.log_error", "scales", MASSES),
    Term("scale: their sum", D, "self._log_error += ",
         "EXTENDED * sum(4.0 * n * abs(float(step.log_mean)) for step, n in steps)", "scales",
         {"means": LOUD}, PART_WIDE),
    Term("scale: the exponent", D, "self._log_error + ", "4.0 * EXTENDED * size", "scales",
         {"exponent": LOUD}, PART_WIDE),
    Term("scale: rounding", D, "4.0 * EXTENDED * size + ", "UNIT * np.abs(log)", "scales",
         {"scale": LOUD}, PART),
    Term("plain: aliases", L, "self._residue_errors(c, kernels) + ", "self._aliases(c)", "plain",
         {"build.GOALS": 2 * (Remainders(-6.0, -33.0),)}),
    Term("plain: beyond the last node", L, "(rounding + ends + ", "beyond_all", "plain",
         {"build.GOALS": 2 * (Remainders(-38.0, -3.0),)}),
    Term("plain: terms and sums", L, "rounding = (", "moduli * chain_error(t.size)", "plain",
         {"plain: terms": LOUD}, PART),
    Term("plain: values", L, "chain_error(t.size) + ", "sums * error", "plain",
         {"sums of a transform": LOUD, "factor of step: sums": PART}),
    Term("plain: angles", L, "            ", "ANGLE_ERROR * np.abs(self._distance(c))", "plain",
         {"plain: angles": LOUD}, PART),
    Term("plain: the centre", L, "np.abs(self._distance(c)) + ", "self._off_centre", "plain",
         {"plain: centre": LOUD}, PART_WIDE),
    Term("plain: thresholds", L, "self._off_centre + ", "4.0 * EXTENDED * np.abs(c)", "plain",
         {"plain: threshold": LOUD}, PART_WIDE),
    Term("plain: poles", L, "off = known + ", "16.0 * UNIT * np.abs(moved)", "plain",
         {"build.GOALS": 2 * (Remainders(-30.0, -33.0),), "plain: poles": LOUD}, PART),
    Term("plain: poles, their constants", L, "known += ",
         "8.0 * UNIT * (1.0 + abs(float(self._log_mean)) + fall)", "plain",
         {"build.GOALS": 2 * (Remainders(-30.0, -33.0),), "plain: constants": LOUD}, PART),
    Term("composed: angles", L, "off += ",
         "(2.0 * LIBM + 4.0 * len(steps)) * UNIT * (1.0 + np.abs(angle))", "plain",
         {"composed: angles": LOUD}, PART),
    Term("composed: logarithms", L, "off += ",
         "4.0 * len(steps) * UNIT * np.where(np.isfinite(log), np.abs(log), 0.0)", "plain",
         {"composed: logarithms": LOUD}, PART),
    Term("plain scale: means of steps", L, "self._log_error = sum(\n            ",
         "n * step.log_error", "plain scales", MASSES),
    Term("plain scale: their sum", L, "self._log_error += ",
         "EXTENDED * sum(4.0 * n * abs(float(step.log_mean)) for step, n in steps)",
         "plain scales", {"plain: means": LOUD}, PART_WIDE),
    Term("plain scale: the exponent", L, "self._log_error + ", "4.0 * EXTENDED * size",
         "plain scales", {"plain: exponent": LOUD}, PART_WIDE),
    Term("plain scale: rounding", L, "4.0 * EXTENDED * size + ", "UNIT * np.abs(log)",
         "plain scales", {"plain: scale": LOUD}, PART),
)  # fmt: skip

# Rules err by less than a hundredth of these, as functions are analytic in more than an ellipse;
# so what the bounds are made of is held on the ellipses themselves.  What lies beyond the last node
# of a plain line turns with the threshold, and mostly cancels.
WORST = ("step: what its nodes leave out", "below: rules", "beyond: rules",
         "plain: beyond the last node")  # fmt: skip


def asked(lines: SwitchedLines, judge: Judge, term: Term, factor: float) -> tuple[int, int]:
    """How many are asked, and outside, with a part of a term where it alone must hold."""
    with lines.set_to({**term.loud, term.factor: factor * term.scale}):
        return judge(lines)


def main() -> int:
    """Print the table; 1 where something is outside with its term, or nothing without it."""
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--only", default="", help="terms whose name has this text")
    arguments = parser.parse_args()
    of, failed = judges(), 0
    print("| error term | asked | outside with it | dropped | a hundredth |")
    print("|---|---|---|---|---|")
    with tempfile.TemporaryDirectory() as folder:
        lines = build(Path(folder), TERMS)
        for term in (term for term in TERMS if arguments.only in term.name):
            (number, with_it), *rest = (
                asked(lines, of[term.asks], term, x) for x in (1.0, 0.0, 0.01)
            )
            dropped, part = (found[1] for found in rest)
            failed += with_it > 0 or dropped == 0 or (part == 0) != (term.name in WORST)
            figures = f"{number} {term.asks} | {with_it} | {dropped} | {part}"
            print(f"| {term.name} | {figures} |", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
