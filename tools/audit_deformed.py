"""Error terms of deformed and of plain lines, each dropped, and divided by a hundred.

Units of rounding are enlarged to 2^-26. P and Q are compared with ball arithmetic, integrals of
lines of two steps with nested Gauss rules (``nested_steps.py``), scales with ``mpmath``, and the
error bounds of rules with the largest values on their ellipses, in balls. Plain lines are compared
with the same lines without switches, and with all their nodes.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
from deformed_judges import Judge
from error_terms import Asked, Patched, Switch, Term, operation, patched, times

from pyengine.engines.vertical_lines.build import Remainders
from pyengine.engines.vertical_lines.gauss import EXTENDED, LegendreNodes, gauss_nodes
from pyengine.numerics.rounding import UNIT

PACKAGE = "pyengine.engines.vertical_lines"
LOUD = 2.0**-26  # enlarged unit of rounding of an operation that is made to err
C, E, D = "corners.py", "ends.py", "deformed.py"
T, N, L = "tilted.py", "nodes.py", "line.py"
PART, PART_WIDE = LOUD / UNIT, LOUD / EXTENDED
SWITCHES = (
    # one step
    operation("masses", (N, "two_doubles(end), (atom.high, atom.low)",
                          "two_doubles(end), (atom.high * (1.0 + 47.0 * {x}), atom.low)")),
    operation("losses", (N, "    mass_error = gauss.error",
                          "    loss[0, :2] += 60.0 * {x} * float(shape.length)\n"
                          "    mass_error = gauss.error")),
    operation("tilted losses", (T, "array(nodes.loss),\n            array(nodes.mass)",
                                 "array((Wide(*nodes.loss) + 180.0 * {x} "
                                 "* float(nodes.loss[0, 1] - nodes.loss[0, 0]) "
                                 "* (np.arange(nodes.power.size) == 1)).parts),\n"
                                 "            array(nodes.mass)")),
    operation("sums of a transform", (T, "        # terms are at most |t",
                                       "        x *= 1.0 + 18.0 * {x}\n"
                                       "        y *= 1.0 + 18.0 * {x}\n"
                                       "        # terms are at most |t")),
    # P and Q
    operation("values of P and Q", (E, "(_density(shape, y) * step)[None]",
                                     "(_density(shape, y) * step)[None] * (1.0 + 50.0 * {x} "
                                     "+ 0.25 * NODES * (count + 1.0) * {x})")),
    operation("exponents of P and Q", (E, ".sums(s, used,", ".sums(s * (1.0 + 6.0 * {x}), used,")),
    # below the turn
    operation("terms below the turn", (D, "terms = value * kernels\n",
                                        "terms = value * kernels * "
                                        "(1.0 + 0.9 * {x} * (chain_error(t.size) / UNIT + "
                                        "16.0))\n")),
    operation("nodes below the turn",
               (D, "composed(self._steps, t)", "composed(self._steps, t * (1.0 + {x}))"),
               (D, "self._atoms_transform(t)", "self._atoms_transform(t * (1.0 + {x}))"),
               (D, "s = tilt + 1j * t\n", "s = tilt + 1j * t * (1.0 + {x})\n")),
    operation("atoms below the turn", (D, "fn.power_by_squares(one, n)",
                                        "fn.power_by_squares(one * np.exp(10.5 * {x}), n)")),
    operation("angles of atoms", (D, "fn.turn(t[:, None] * apart)",
                                   "fn.turn(t[:, None] * apart * (1.0 + 3.5 * {x}))")),
    operation("without atoms", (D, "value - atoms, error", "(value - atoms) * (1.0 + 1.9 * {x}), "
                                 "error")),
    # beyond the turn
    operation("ends beyond the turn", (D, "factor = shares + added\n",
                                        "factor = (shares + added) * (1.0 + 15.0 * {x})\n")),
    operation("logarithms beyond the turn", (C, "table = (number - j)",
                                              "table = (1.0 + 5.5 * {x}) * (number - j)")),
    operation("parts of atoms", (C, "part = added / shares\n",
                                  "part = added / shares * (1.0 + 35.0 * {x})\n")),
    operation("terms beyond the turn", (D, "weights = terms[:, None, :] * kernels\n",
                                         "weights = terms[:, None, :] * kernels * (1.0 + {x} * "
                                         "(90.0 + NODES * panels.size))\n")),
    operation("distances", (D, "RayWeights.of(moved, weights)",
                             "RayWeights.of(moved * (1.0 + 3.5 * {x}), weights)")),
    operation("places", (D, "np.ascontiguousarray(self._places.place)",
                          "(Wide(*self._places.place) + 7.5 * {x} * self._span).parts")),
    # nodes of the rules that have no weight in the ones that are put in their place
    Switch("unused nodes", 0.0,
           ((D, "fn.power(RATIO, -2.0 * NODES)", "fn.power(RATIO, -2.0 * (NODES - {x}))"),)),
    # atoms
    operation("atoms", (D, "        return np.asarray(fn.exp(self._places.log_atom))",
                         "        return np.asarray(fn.exp(self._places.log_atom)) * (1.0 + {x} * "
                         "(16.0 * self._number + 8.0 * self._places.log_atom.size + 30.0))")),
    operation("logarithms of atoms", (D, "corners.log_terms(_atoms(corners, step), n)",
                                       "corners.log_terms(_atoms(corners, step) "
                                       "** (1.0 + 3.5 * {x}), n)")),
    # lines that are not deformed
    operation("plain: terms", (L, "weight = value * kernels\n",
                                "weight = value * kernels * (1.0 + 0.9 * {x} * "
                                "chain_error(t.size) / UNIT)\n")),
    operation("plain: angles", (L, "frequency = np.concatenate([t, np.full(more, t[-1])])",
                                 "frequency = np.concatenate([t, np.full(more, t[-1])]) * "
                                 "(1.0 + 0.9 * {x} * ANGLE_ERROR / UNIT)")),
    operation("plain: centre", (L, "_pair(self._centre)",
                                 "_pair(self._centre * (1.0 + 3.5 * {x}))")),
    operation("plain: threshold", (L, "asked = c.size, array(c), ",
                                    "asked = c.size, array(c * (1.0 + 3.5 * {x})), ")),
    operation("plain: poles", (L, "CrossedPole(sign, apart, constant, known)",
                                "CrossedPole(sign, apart * (1.0 + 15.0 * {x}), constant, known)")),
    operation("plain: constants", (L, "constant = -float(self._log_mean) - fall",
                                    "constant = 7.0 * {x} * (1.0 + abs(float(self._log_mean)) "
                                    "+ fall) - float(self._log_mean) - fall")),
    operation("composed: angles", (L, "return modulus * fn.turn(angle), error",
                                    "return modulus * fn.turn(angle) * (1.0 + 11.0 * {x} * "
                                    "(1.0 + np.abs(angle))), error")),
    operation("composed: logarithms", (L, "modulus = fn.exp(log)\n",
                                        "modulus = fn.exp(log * (1.0 + 3.5 * {x}))\n")),
    operation("plain: means", (L, "_pair(self._log_mean)",
                                "_pair(self._log_mean * (1.0 + 3.5 * {x}))")),
    operation("plain: exponent", (L, "c.size, array(c), *room)\n        return log",
                                   "c.size, array(c * (1.0 + 3.5 * {x})), *room)\n"
                                   "        return log")),
    operation("plain: scale", (L, "return log, error\n",
                                "return log * (1.0 + 0.9 * {x}), error\n")),
)  # fmt: skip

COARSE = {"deformation.LEFT": 0.05, "nodes.SIZES": np.arange(1, 24)}
MASSES = {"masses": LOUD, "factor of step: masses": PART_WIDE}
FEW = {"ends.NODES": 8}
SHORT = {"deformed.CHUNKS": (0, 6), "deformed.MOST_PANELS": 6}
USED = 1  # nodes of the rules that are put in the place of those of 8


def few_nodes(size: int) -> Any:
    """Gauss's rule with fewer nodes where 8 are asked for; the others have no weight."""
    if size != 8:
        return gauss_nodes(size)
    few = gauss_nodes(USED)
    rest = np.tile(few.place[:, :1], size - USED)
    place = np.concatenate([few.place, rest], axis=1)
    return LegendreNodes(place, np.concatenate([few.weight, 0.0 * rest], axis=1), few.error)


TERMS = (
    times("P and Q: values, sums, exponents", E, "off = ",
         "(chain * fn.exp(-DECAY * exponent)) @ moduli.T", "ends",
         {"values of P and Q": LOUD, "exponents of P and Q": LOUD}, PART),
    times("P and Q: rules", E, "return (", "np.stack(rules, axis=1)", "ends", FEW),
    times("P and Q: the way back", E, "back.append(",
         "np.minimum(near, 1e300) * end * fn.exp(across)", "ways", {}),
    times("P and Q: the way up", E, "up.append(", "peak * fn.exp(-s.imag * height) / s.imag",
         "ways", {}),
    times("bounds on P and Q: cells", E, "float(", "(f * cells).sum()", "bounds", {}),
    times("bounds on P and Q: beyond", E, ".sum() + ", "f[0] * fall[-1] / height", "bounds", {}),
    times("below: terms and sums", D, "(", "moduli * chain", "sums",
         {"terms below the turn": LOUD}, PART),
    times("below: values", D, "moduli * chain + ", "sums * error", "sums",
         {"sums of a transform": LOUD, "factor of step: sums": PART}),
    times("step: sums", T, "chain = ",
         "(min(size / LANES, LANES_OF_PART) + size / PART + summed) * UNIT", "sums",
         {"sums of a transform": LOUD}, PART),
    times("step: what its nodes leave out", T, "self.left *= ",
         "1.01 * max(1.0, float(fn.exp(log_mean - float(self.log_mean))))", "sums", COARSE),
    times("step: its nodes, on ellipses", N, "return np.asarray(", "8.0 * total * SLACK", "nodes",
         {}),
    times("step: losses", N, "    return ",
         "EXTENDED * (64.0 * (largest_loss(shape) + d) + 16.0 * mu * steepest)", "sums",
         {"losses": LOUD}, PART_WIDE),
    times("step: masses", N, "mass_error = gauss.error + ",
         "EXTENDED * (48.0 + 8.0 * float(shape.distance))", "sums", {"masses": LOUD}, PART_WIDE),
    times("step: masses of tilted losses", T, "            + ",
         "2.0 * abs(tilt) * nodes.loss_error", "sums", {"tilted losses": LOUD}, PART_WIDE),
    times("below: atoms taken off", D, "error + ", "atoms_error", "sums",
         {"atoms below the turn": LOUD, "factor of atoms below: rounding": PART}),
    times("atoms below: rounding", D, "off += n * ", "(12.0 + 4.0 * turns) * UNIT", "sums",
         {"atoms below the turn": LOUD, "angles of atoms": LOUD}, PART),
    times("below: without atoms", D, "atoms_error + ", "2.0 * UNIT * fn.modulus(value)", "sums",
         {"without atoms": LOUD}, PART),
    times("below: nodes", D, "low_error += ", "UNIT * (sums * t).sum(axis=1) * slope", "sums",
         {"nodes below the turn": LOUD}, PART),
    times("below: rules", D, "left = ", "rules * kernel.sum(axis=1)", "sums",
         {"low_rule.GOAL": 0.0, "low_rule.SIZES": (1, 2, 3)}),
    times("below: rules, on ellipses", D, "left = ", "rules * kernel.sum(axis=1)", "below",
         {}),
    times("beyond: P and Q", D, "added, ", "scales[:, None] * error", "sums",
         {"values of P and Q": LOUD, "factor of P and Q: values, sums, exponents": PART}),
    times("beyond: shares and scales", D, "relative = ",
         "step.share_error + step.left + step.log_error", "sums",
         {"ends beyond the turn": 28.0 * LOUD}, PART_WIDE),
    times("beyond: a_0 + P and a_1 - Q", C, "off = number * (", "FACTOR", "sums",
         {"ends beyond the turn": LOUD}, PART),
    times("beyond: logarithms", C, "off = number * (FACTOR + ", "6.0 * mean_log(moduli)", "sums",
         {"logarithms beyond the turn": LOUD}, PART),
    times("beyond: parts of atoms", C, "(factors.relative + ", "PART * UNIT", "sums",
         {"parts of atoms": LOUD}, PART),
    times("beyond: weights and sums", D, "chain = ",
         "104.0 + NODES * panels.size + 2.0 * self._places.log_atom.size", "sums",
         {"terms beyond the turn": LOUD}, PART),
    times("beyond: distances", D, "turned = ", "4.0 * self._height * UNIT * (each @ moduli.T)",
         "sums", {"distances": LOUD, "factor of beyond: weights and sums": 0.003 * PART}, PART),
    times("beyond: places", D, "rounding += ",
         "self._off_place * (moduli * size * fn.modulus(moved)).sum(axis=1)", "sums",
         {"places": LOUD, "factor of places": PART_WIDE}),
    times("places", D, "n * (loss_error(shape) + ", "16.0 * EXTENDED * largest_loss(shape)", "sums",
         {"places": LOUD}, PART_WIDE),
    times("places: losses at the ends", D, "n * (", "loss_error(shape)", "sums",
         {"places": LOUD}, PART_WIDE),
    times("beyond: rules", D, "rounding + ", "self.left_on(panels)", "sums",
         {"deformed.NODES": 8, "deformed.gauss_nodes": few_nodes, "unused nodes": 8.0 - USED}),
    times("beyond: rules, on ellipses", D, "/ math.pi * ", "grown", "beyond", {}),
    times("beyond the last panel: next to a place", D, "far = ", "rest", "sums", SHORT),
    times("beyond the last panel: exponentials", D, "rest + ", "fallen", "sums",
         {"deformed.FALLEN": 0.7}),
    times("light places", D, "fallen + ", "100.0 * self._dropped", "sums",
         {"deformed.LIGHT": 0.05}),
    times("atoms: products", D, "rounding = ",
         "(self._number * 16.0 + 8.0 * self._places.log_atom.size + 32.0) * UNIT", "sums",
         {"atoms": LOUD}, PART),
    times("atoms: logarithms", D, "rounding += (\n            ", "4.0", "sums",
         {"logarithms of atoms": LOUD}, PART),
    times("atoms: shares", D, "rounding += sum(\n            ",
         "n * (step.share_error + step.left + step.log_error)", "sums", {"atoms": 5.0 * LOUD},
         PART_WIDE),
    times("atoms: places", D, "rounding += ", "self._off_place * (1.0 + max(apart))", "sums",
         {"places": LOUD, "factor of places": PART_WIDE}),
    times("plain: aliases", L, "aliases = ", "np.full(KERNELS, 1.0 + 1e-6)", "plain",
         {"build.GOALS": 2 * (Remainders(-6.0, -33.0),)}),
    times("plain: beyond the last node", L, "(rounding + ends + ", "beyond_all", "plain",
         {"build.GOALS": 2 * (Remainders(-38.0, -3.0),)}),
    times("plain: terms and sums", L, "rounding = (", "moduli * chain_error(t.size)", "plain",
         {"plain: terms": LOUD}, PART),
    times("plain: values", L, "chain_error(t.size) + ", "sums * error", "plain",
         {"sums of a transform": LOUD, "factor of step: sums": PART}),
    times("plain: angles", L, '"angle_unit": ', "ANGLE_ERROR", "plain",
         {"plain: angles": LOUD}, PART),
    times("plain: the centre", L, '"off_centre": ', "self._off_centre", "plain",
         {"plain: centre": LOUD}, PART_WIDE),
    times("plain: thresholds", L, '"threshold_unit": ', "4.0 * EXTENDED", "plain",
         {"plain: threshold": LOUD}, PART_WIDE),
    times("plain: poles", L, '"pole_unit": ', "16.0 * UNIT", "plain",
         {"build.GOALS": 2 * (Remainders(-30.0, -33.0),), "plain: poles": LOUD}, PART),
    times("plain: poles, their constants", L, "known += ",
         "8.0 * UNIT * (1.0 + abs(float(self._log_mean)) + fall)", "plain",
         {"build.GOALS": 2 * (Remainders(-30.0, -33.0),), "plain: constants": LOUD}, PART),
    times("composed: angles", L, "off += ",
         "(2.0 * ELEMENTARY + 4.0 * len(steps)) * UNIT * (1.0 + np.abs(angle))", "plain",
         {"composed: angles": LOUD}, PART),
    times("composed: logarithms", L, "off += ",
         "4.0 * len(steps) * UNIT * np.where(np.isfinite(log), np.abs(log), 0.0)", "plain",
         {"composed: logarithms": LOUD}, PART),
    times("plain scale: means of steps", L, "self._log_error = sum(",
         "float(n) * step.log_error", "plain scales", MASSES),
    times("plain scale: their sum", L, "self._log_error += ",
         "EXTENDED * sum(4.0 * n * abs(float(step.log_mean)) for step, n in steps)",
         "plain scales", {"plain: means": LOUD}, PART_WIDE),
    times("plain scale: the exponent", L, '"exponent_unit": ', "4.0 * EXTENDED", "plain scales",
         {"plain: exponent": LOUD}, PART_WIDE),
    times("plain scale: rounding", L, '"log_unit": ', "UNIT", "plain scales",
         {"plain: scale": LOUD}, PART),
)  # fmt: skip

# Rules err by less than a hundredth of these, as functions are analytic in more than an ellipse;
# so what the bounds are made of is held on the ellipses themselves.  What lies beyond the last node
# of a plain line turns with the threshold, and mostly cancels.
WORST = ("step: what its nodes leave out", "below: rules", "beyond: rules",
         "plain: beyond the last node")  # fmt: skip


@contextmanager
def switched() -> Iterator[Patched]:
    """The engine's lines with all switches."""
    with patched([PACKAGE], SWITCHES, TERMS) as lines:
        yield lines


def asked(lines: Patched, of: dict[str, Judge], term: Term, part: float) -> Asked:
    """How many are asked, and outside, with a part of a term that must cover the error alone."""
    with lines.set_to(term.with_part(part)):
        return of[term.asks](lines)
