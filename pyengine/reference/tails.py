"""Tails and divergences of a total loss at a threshold."""

from __future__ import annotations

from dataclasses import dataclass

from flint import arb

__all__ = ["BallTails"]


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
