"""Questions about one float that a single call of the C core answers (``csrc/plan.c``).

Answers have the same bits as those for arrays.
"""

from __future__ import annotations

from _thread import allocate_lock
from typing import TYPE_CHECKING, Any

from pyengine._core import ffi, lib
from pyengine._support.status import finished
from pyengine.engines.answers import Judged
from pyengine.engines.row_bounds import SLACK
from pyengine.engines.row_sides import CLOSE_ROW, LineSide

if TYPE_CHECKING:
    from pyengine.engines.certified import CertifiedPair

__all__ = [
    "ASKS",
    "FEWEST_STEPS",
    "FEW_STEPS",
    "SMALLEST",
    "FloatPlan",
    "plan_of",
    "settings",
]

FEW_STEPS = 32_768  # up to which sector laws may be closer than lines
FEWEST_STEPS = 150  # up to which sector laws are close enough, and sooner made than lines far out
# Log of the smallest values for sector laws.  Smaller ones are left to lines: where one order's
# profile is negligible beside the other's, Chernoff's bound is enough and a law would be wasted.
SMALLEST = -720.0

ASKS: dict[str, int] = {
    "trade_off": lib.PE_ASKS_BETA,
    "gamma_bound": lib.PE_ASKS_GAMMA,
    "delta": lib.PE_ASKS_DELTA,
    "epsilon": lib.PE_ASKS_EPSILON,
}
PLAN, ANSWER = ffi.typeof("pe_plan *"), ffi.typeof("double[3]")
OK: int = lib.PE_OK
NULL, plan_one = ffi.NULL, lib.pe_plan_one


def settings(widest: tuple[float, float]) -> Any:
    """A C plan with the settings of all questions; widths as of `CertifiedPair`."""
    plan = ffi.new(PLAN)
    plan.widest = widest
    plan.few, plan.fewest = FEW_STEPS, FEWEST_STEPS
    plan.enough, plan.smallest, plan.slack = CLOSE_ROW, SMALLEST, SLACK
    return plan


class FloatPlan:
    """Questions about single floats, on one order, or on both ``add`` and ``remove``.

    ``plan`` is one of `settings`, used by no other object.
    """

    __slots__ = ("_first", "_lock", "_out", "_plan", "_proven", "_second")

    def __init__(
        self, first: LineSide, second: LineSide | None, plan: Any, *, proven: bool
    ) -> None:
        self._first, self._second, self._plan, self._proven = first, second, plan, proven
        self._lock, self._out = allocate_lock(), ffi.new(ANSWER)

    def one(self, name: str, x: float) -> Judged | None:
        """A value, its bounds, and whether they are proven; None where arrays have to answer."""
        out, plan, asked = self._out, self._plan, ASKS[name]
        first, second = self._first.prover(), self._second
        if second is None:
            with self._lock, first.lock:
                status = plan_one(plan, first.handle, NULL, asked, x, out)
                answer = out[0], out[1], out[2], self._proven
        else:
            other = second.prover()
            with self._lock, first.lock, other.lock:
                status = plan_one(plan, first.handle, other.handle, asked, x, out)
                answer = out[0], out[1], out[2], self._proven
        if status == OK:
            return answer
        finished(status, "a proven line of the spectral engine")
        return None


def plan_of(first: CertifiedPair, second: CertifiedPair | None = None) -> FloatPlan | None:
    """Return a plan for one pair, or for the two of ``add`` and ``remove``.

    None for pairs whose floats are answered as arrays.
    """
    one, two = first.lines, None if second is None else second.lines
    if one is None or (second is not None and two is None):
        return None
    plan = settings(first.widest)
    for order, side in zip(plan.order, (one, two), strict=True):
        known = None if side is None else side.known_largest
        if known is not None:
            order.known, order.largest = 1, known
    proven = first.is_proven and (second is None or second.is_proven)
    return FloatPlan(one, two, plan, proven=proven)
