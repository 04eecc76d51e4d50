"""Tails and divergences of a total loss at a threshold."""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb

from pyengine.reference.balls import spread

__all__ = ["BallTails", "integrated"]


@dataclass(frozen=True)
class BallTails:
    """Tails and divergences of the total loss S = log dQ/dP at a threshold c.

    P(S > c), P(S <= c), Q(S > c), Q(S <= c), H_{exp(c)}(Q || P), H_{exp(-c)}(P || Q).
    """

    p_above: arb
    p_below: arb
    q_above: arb
    q_below: arb
    h_qp: arb
    h_pq: arb


NONE = arb(0), arb(0)


def integrated(
    place: arb,
    zero: arb,
    one: arb,
    both: arb,
    c: arb,
    lost: tuple[arb, arb] = NONE,
    infinite: tuple[arb, arb] = NONE,
) -> BallTails:
    """Return tails and divergences from three integrals along one contour.

    The contour crosses the real axis at ``place``, which is not 0 or 1.  ``zero``, ``one`` and
    ``both`` are 1/(2 pi i) times the integrals of exp(-lambda c) E_P[exp(lambda S); S finite]
    divided by lambda, lambda - 1 and lambda (lambda - 1).  ``lost`` bounds the masses of P and of Q
    that truncation left out; ``infinite`` are their masses where the other law has none.
    """
    only_p, only_q = infinite
    grow = c.exp()
    one = one * grow
    lost_p, lost_q = (spread(mass) for mass in lost)
    p, q = 1 - only_p - lost_p, 1 - only_q - lost_q
    p_above, p_below = (p + zero, -zero) if place < 0 else (zero, p - zero)
    q_above, q_below = (q + one, -one) if place < 1 else (one, q - one)
    # dQ = exp(S) dP also holds for the truncated laws, whose total masses are p and q
    if place > 1:
        h_qp, h_pq = grow * both, both - q / grow + p
    elif place > 0:
        h_qp, h_pq = grow * both + q, both + p
    else:
        h_qp, h_pq = grow * (both - p) + q, both
    return BallTails(
        p_above + lost_p,
        p_below + lost_p + only_p,
        q_above + lost_q + only_q,
        q_below + lost_q,
        h_qp + lost_q + only_q,
        h_pq + lost_p + only_p,
    )
