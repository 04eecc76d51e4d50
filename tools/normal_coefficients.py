"""Rational approximations in ``csrc/normal.c``: the source of every coefficient.

Each function is interpolated at Chebyshev nodes by a ratio of polynomials in 80 digits, the
coefficients are rounded to double, and the largest relative error of the approximation itself
(evaluated in high precision, with the rounded coefficients) is printed beside them. Run with
``python tools/normal_coefficients.py`` (needs mpmath); it prints the tables of ``normal.c``.
"""

from __future__ import annotations

from collections.abc import Callable

import mpmath as mp

mp.mp.dps = 80

Real = mp.mpf
CENTRAL_EDGE = Real(185) / 1024
TAIL_EDGE = Real(9) / 4


def log_ndtr_upper(x: Real) -> Real:
    """Logarithm of Phi(-x)."""
    return mp.log(mp.erfc(x / mp.sqrt(2)) / 2)


def scaled_tail(x: Real) -> Real:
    """Phi(-x) exp(x^2/2)."""
    return mp.erfc(x / mp.sqrt(2)) * mp.exp(x * x / 2) / 2


def centre(z: Real) -> Real:
    """(Phi(x) - 1/2)/x as a function of z = x^2."""
    if z == 0:
        return 1 / mp.sqrt(2 * mp.pi)
    x = mp.sqrt(z)
    return mp.erf(x / mp.sqrt(2)) / (2 * x)


def excess(x: Real) -> Real:
    """phi(x)/Phi(-x) - x."""
    return 1 / (mp.sqrt(2 * mp.pi) * scaled_tail(x)) - x


def far_excess(z: Real) -> Real:
    """Excess times x as a function of z = 1/x^2."""
    if z == 0:
        return Real(1)
    x = 1 / mp.sqrt(z)
    return x * excess(x)


def central_quantile(r: Real) -> Real:
    """(Quantile(1/2 + q)/q - sqrt(2 pi))/q^2 as a function of r = 185/1024 - q^2.

    The singularity q = 1/2 lies at negative r, which keeps the coefficients positive.
    """
    if r == CENTRAL_EDGE:
        return mp.sqrt(2 * mp.pi) ** 3 / 6
    q = mp.sqrt(CENTRAL_EDGE - r)
    return (mp.sqrt(2) * mp.erfinv(2 * q) / q - mp.sqrt(2 * mp.pi)) / q**2


def tail_quantile(t: Real) -> Real:
    """Upper quantile x, log Phi(-x) = -s^2/2, as a function of t = s - 9/4."""
    s = t + TAIL_EDGE
    y = -s * s / 2
    start = mp.sqrt(s * s - mp.log(2 * mp.pi * s * s)) if s > 3 else s - 1
    return mp.findroot(lambda x: log_ndtr_upper(x) - y, start)


def fit(name: str, f: Callable[[Real], Real], a: float, b: float, n: int, d: int) -> None:
    """Interpolate f on [a, b] by a rational of degrees n over d and print the table."""
    a_, b_ = mp.mpf(a), mp.mpf(b)
    count = n + d + 1
    nodes = [
        (a_ + b_) / 2 - (b_ - a_) / 2 * mp.cos((2 * k + 1) * mp.pi / (2 * count))
        for k in range(count)
    ]
    matrix, right = mp.matrix(count, count), mp.matrix(count, 1)
    for i, t in enumerate(nodes):
        value = f(t)
        for j in range(n + 1):
            matrix[i, j] = t**j
        for j in range(1, d + 1):
            matrix[i, n + j] = -value * t**j
        right[i] = value
    solution = mp.lu_solve(matrix, right)
    numerator = [mp.mpf(float(solution[j])) for j in range(n + 1)]
    denominator = [mp.mpf(1)] + [mp.mpf(float(solution[n + j])) for j in range(1, d + 1)]
    worst = mp.mpf(0)
    for k in range(601):
        t = a_ + (b_ - a_) * (1 - mp.cos(mp.pi * k / 600)) / 2
        approx = mp.polyval(numerator[::-1], t) / mp.polyval(denominator[::-1], t)
        worst = max(worst, abs(approx / f(t) - 1))
    print(f"/* {name} on [{a!r}, {b!r}]: approximation error {mp.nstr(worst, 2)} */")
    for label, table in (("P", numerator), ("Q", denominator)):
        body = ", ".join(float(c).hex() for c in table)
        print(f"static const double {name}_{label}[{len(table)}] = {{{body}}};")


def legendre(count: int) -> None:
    """Print the lower half of the nodes of the Gauss-Legendre rule on [0, 1], and its weights."""
    nodes, weights = [], []
    for k in range(count // 2):
        root = -mp.cos(mp.pi * (k + mp.mpf(3) / 4) / (count + mp.mpf(1) / 2))
        for _ in range(8):  # Newton's method converges from this start
            value, last = mp.legendre(count, root), mp.legendre(count - 1, root)
            slope = count * (root * value - last) / (root**2 - 1)
            root -= value / slope
        nodes.append((1 + root) / 2)
        weights.append(1 / ((1 - root**2) * slope**2))
    for label, table in (("NODE", nodes), ("WEIGHT", weights)):
        body = ", ".join(float(c).hex() for c in table)
        print(f"static const double LEGENDRE_{label}[{len(table)}] = {{{body}}};")


def main() -> None:
    fit("CENTRE", centre, 0.0, 0.5, 4, 4)
    fit("NEAR", excess, 0.0, 6.0, 9, 10)
    fit("FAR", far_excess, 0.0, 1 / 36, 5, 5)
    fit("QUANTILE", central_quantile, 0.0, float(CENTRAL_EDGE), 8, 8)
    fit("START", tail_quantile, 0.0, 38.0, 7, 6)
    legendre(8)


if __name__ == "__main__":
    main()
