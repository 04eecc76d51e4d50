"""Noncentral chi-squared tails in ball arithmetic, by methods that share no formula with csrc.

`contour` is rigorous: adaptive Gauss-Legendre quadrature with error bounds (Johansson, "Numerical
integration in arbitrary-precision ball arithmetic", 2018) of the inversion integral on a finite
piece of a parabola, plus a proven bound on the rest; affordable up to kappa of some 10^3.

`inversion` works everywhere, without a proof: it is used twice, on two curves from two base points
with two steps, and only digits that both runs share are kept.

All arguments are exact binary doubles.
"""

from __future__ import annotations

import math

from flint import acb, arb, ctx

DIGITS = 30


def precision(x: float, d: float, lam: float) -> int:
    return 160 + max(0, math.ceil(math.log2(float(x) + float(d) + float(lam))))


def _enough(value: arb) -> bool:
    return value.rel_accuracy_bits() > 100


def contour(x: float, d: float, lam: float) -> tuple[str, arb, arb]:
    """Side ("sf" or "cdf"), the tail on that side of the mean, the density."""
    bits = precision(x, d, lam)
    for _ in range(4):
        side, tail, density = _contour(x, d, lam, bits)
        if _enough(tail) and _enough(density):
            return side, tail, density
        bits = bits * 3 // 2
    raise ArithmeticError(f"no convergence at x={x!r}, d={d!r}, lam={lam!r}")


def _contour(x: float, d: float, lam: float, bits: int) -> tuple[str, arb, arb]:
    old = ctx.prec
    ctx.prec = bits
    try:
        X, D, LAM = arb(x), arb(d), arb(lam)
        root = (D * D + 4 * LAM * X).sqrt()
        w = ((D + root) / (2 * X)).mid()  # any positive number would do
        a = X * w / 2
        b = LAM / (2 * w)
        kappa = float(2 * (a + b))
        e = float(1 / w - 1)
        side = "sf" if X > D + LAM or (X == D + LAM) else "cdf"
        # Base point c: the curve z = (c + i s)^2 crosses the axis at c^2, left of the pole 1/w for
        # the survival function, right of it for the distribution function.
        gap = 0.7 / math.sqrt(kappa)
        c = 1.0
        if abs(e) < gap:
            c = 1 - min(gap, 0.4) if side == "sf" else 1 + min(gap, 0.4)
        C = arb(c)
        top = math.sqrt(
            (0.35 * bits + 60) / (kappa / 2)
        )  # exp(-kappa/2 s^2) is far below the target
        top = min(max(top, 0.0), math.sqrt((0.7 * bits + 60) / float(a)))
        S = arb(top)

        def exponent(s: acb, analytic: bool) -> acb:
            zeta = C + acb(0, 1) * s
            z = w * zeta * zeta
            log_z = w.log() + 2 * zeta.log(analytic=analytic)
            return -D / 2 * log_z + LAM / 2 * (1 / z - 1) - X / 2 * (1 - z)

        # the size at s = 0 sets the absolute goal of the quadrature
        size = exponent(acb(0), False).real.exp()

        def tail_integrand(s: acb, analytic: bool) -> acb:
            zeta = C + acb(0, 1) * s
            z = w * zeta * zeta
            # at real s the imaginary part is odd and drops out
            return (exponent(s, analytic).exp() / size) * w * 2 * zeta / (1 - z)

        def density_integrand(s: acb, analytic: bool) -> acb:
            zeta = C + acb(0, 1) * s
            return (exponent(s, analytic).exp() / size) * w * zeta

        goal = arb(2) ** (-bits + 40)
        kw = {"rel_tol": arb(2) ** -115, "abs_tol": goal}
        raw = acb.integral(tail_integrand, 0, acb(S), **kw).real
        raw_density = acb.integral(density_integrand, 0, acb(S), **kw).real

        # What is left out: for q = s^2 the real part falls at least like -0.9 a (q - top^2),
        # because d/dq of Re(b/z) is at most b/(108 c^4) < 0.1 a; and the factor is bounded by
        # |c + is| / |1/w - z| <= 1/(2s) + 1/(2c).
        rest = exponent(acb(S), False).real.exp() / size / (1.8 * a * S)
        rest_tail = rest * (1 / S + 1 / C)
        rest_density = rest * w * (C + S) * 2
        tail = (raw + arb(0, rest_tail.upper())) * size / arb.pi()
        density = (raw_density + arb(0, rest_density.upper())) * size / arb.pi()
        if side == "cdf":
            tail = -tail
        return side, +tail, +density
    finally:
        ctx.prec = old


def inversion(
    x: float | arb,
    d: float | arb,
    lam: float | arb,
    side: str,
    bend: str,
    offset: float,
    fineness: float,
) -> tuple[arb, arb]:
    """Tail and density by the midpoint rule on z = c + i t - bend t^2, without error bound.

    `offset` moves the base point c off the pole, `fineness` sets the step.  Two calls that differ
    in all three share no node and no discretisation error.
    """
    old = ctx.prec
    ctx.prec = precision(x, d, lam) + 40
    try:
        X, D, LAM = arb(x), arb(d), arb(lam)
        w = ((D + (D * D + 4 * LAM * X).sqrt()) / (2 * X)).mid()
        kappa = float(X * w + LAM / w)
        u = float(1 / w)
        gap = offset / math.sqrt(kappa)
        c = 1.0
        if abs(u - 1) < gap:
            c = u - min(gap, 0.45 * u) if side == "sf" else u + min(gap, 0.45)
        distance = min(abs(float(1 / w - arb(c))), 0.5, 2.5 / math.sqrt(kappa))
        h = arb(distance / fineness)
        tail, density = arb(0), arb(0)
        first = None
        for k in range(100000):
            t = (k + arb(0.5)) * h
            z = acb(c - arb(bend) * t * t, t)
            zw = z * w
            ex = -D / 2 * zw.log() + LAM / 2 * (1 / zw - 1) - X / 2 * (1 - zw)
            term = ex.exp() * w * acb(arb(1), 2 * arb(bend) * t)
            tail += (term / (1 - zw)).real
            density += term.real / 2
            big = abs(term)
            first = big if first is None else first
            if big < first * arb(2) ** -125:
                break
        scale = h / arb.pi()
        return (tail if side == "sf" else -tail) * scale, density * scale
    finally:
        ctx.prec = old
