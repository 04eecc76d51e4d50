"""Choose and write the quadrature nodes of ``csrc/ncx2_core.c`` (``csrc/ncx2_nodes.h``).

The contour integral of a noncentral chi-squared tail (docs/special/ncx2.md) is a
sum over the midpoint grid ``y_k = (k + 1/2) h``.  Its discretisation and truncation
error depends on the curvature ``kappa``, on the mix ``m = 2 D / kappa`` of its two
parts and on the place ``u`` of the pole, and on nothing else.  For each bin of
``kappa`` this script looks for the smallest number of nodes (a multiple of four) and
the step ``h`` for which the error, relative to the tail, stays below ``TARGET`` for
every mix and every pole of a grid, with sums in 80-bit arithmetic; then it tabulates
the functions of ``sinh(y_k)`` from 50-digit values.

No constant is fitted to reference values of the distribution.

Run ``python tools/make_ncx2_nodes.py > csrc/ncx2_nodes.h`` (about ten minutes).
"""

import sys

import mpmath
import numpy as np

L = np.longdouble
PI = L("3.14159265358979323846264338327950288")
TARGET = 8e-17  # 0.36 of 2^-52
FLAT_NODES, FLAT_STEP = 12, 0.4885  # as in csrc/ncx2_core.c
LOW, HIGH = -1, 14  # kappa from 2^LOW to 2^HIGH, four bins an octave

U = np.concatenate(
    [
        np.exp(np.linspace(-12, 12, 121)),
        1 + 10.0 ** np.linspace(-8, -0.3, 50),
        1 - 10.0 ** np.linspace(-8, -0.3, 50),
    ]
)
MIX = np.array([0, 0.02, 0.1, 0.3, 0.5, 0.7, 0.9, 0.98, 1.0])
M, U = (a.ravel().astype(L) for a in np.meshgrid(MIX, U))


def tail(kappa, h, n, flat=False):
    """Tail / exp(phi0) by the n-point rule with step h, for all (M, U); flat: s = y."""
    kappa = L(kappa)
    d = M * kappa / 2
    b = (1 - M) * kappa / 4
    a = b + d
    e = U - 1
    y = (np.arange(n, dtype=L) + L(0.5)) * h
    s, c = (y, np.ones_like(y)) if flat else (np.sinh(y), np.cosh(y))
    q = s * s
    re = (
        -np.multiply.outer(a, q)
        - np.multiply.outer(b, q * (3 + q) / (1 + q) ** 2)
        - np.multiply.outer(d, np.log1p(q))
    )
    im = np.multiply.outer(2 * d, s - np.arctan(s)) + np.multiply.outer(
        2 * b, s * q * (2 + q) / (1 + q) ** 2
    )
    e1 = e[:, None]
    num = np.cos(im) * (e1 - q) - np.sin(im) * s * (e1 + q + 2)
    total = (np.exp(re) * c * num / ((e1 + q) ** 2 + 4 * q)).sum(-1)
    total *= np.where(e < 0, -1, 1) * 2 * h / PI
    small = np.abs(e) < 1e-3
    es = np.where(small, e, 0)
    series = es * es * (L(1) / 2 - es / 3 + es**2 / 4 - es**3 / 5 + es**4 / 6 - es**5 / 7)
    depth = b * e * e / U + d * np.where(small, series, e - np.log(U))
    w = np.abs(e) / (1 + np.sqrt(U))
    eta = w if flat else np.arcsin(np.minimum(w, 1))
    cosine = L(1) if flat else np.sqrt(np.maximum(0, 1 - w * w))
    slope = np.abs(a - b / U**2 - d / U) * 2 * np.sqrt(U) * cosine
    use = (w < np.sqrt(L(0.5))) & (slope < 2 * PI / h)
    pole = np.exp(np.where(use, depth, 0)) / (1 + np.exp(np.where(use, 2 * PI * eta / h, 0)))
    return total + np.where(use, pole, 0)


def truth(kappa):
    """The same with a step so small that no error remains."""
    return tail(kappa, L(0.1) / np.sqrt(L(max(kappa, 4.0))), 320)


def error(kappas, truths, h, n, flat=False):
    """Largest error over (M, U) relative to the tail."""
    worst = 0.0
    for kappa, value in zip(kappas, truths, strict=True):
        err = float(np.max(np.abs(tail(kappa, h, n, flat) / value - 1)))
        worst = max(worst, err)
    return worst


def flat_error(kappa):
    """Error of the rule of csrc/ncx2_core.c for large kappa: FLAT_NODES = 12 nodes in s."""
    return error([kappa], [truth(kappa)], L(FLAT_STEP) / np.sqrt(L(kappa)), FLAT_NODES, flat=True)


def choose(low, high):
    """The smallest n, and the best h for it, over kappa in [low, high)."""
    kappas = (low, high)
    truths = [truth(k) for k in kappas]
    start = 12 if low > 1000 else 14 if low > 200 else 17 if low > 50 else 22 if low > 6 else 24
    for n in range(start, 41):
        steps = [c / np.sqrt(high) for c in np.arange(0.07, 0.53, 0.025)]
        errs = [error(kappas, truths, L(h), n) for h in steps]
        if min(errs) > 300 * TARGET:
            continue
        best = steps[int(np.argmin(errs))]
        fine = [best + t * 0.005 / np.sqrt(high) for t in range(-5, 6)]
        errs = [error(kappas, truths, L(h), n) for h in fine]
        i = int(np.argmin(errs))
        if errs[i] < TARGET:
            break
    return n, fine[i], errs[i]


def main():
    mpmath.mp.dps = 50
    for power in (14, 17, 20):
        print(f"flat, 2^{power}: error={flat_error(2.0**power):.1e}", file=sys.stderr, flush=True)
    bins, rows = [], []
    for octave in range(LOW, HIGH):
        for quarter in range(4):
            low = 2.0**octave * (1 + quarter / 4)
            high = 2.0**octave * (1 + (quarter + 1) / 4)
            n, h, err = choose(low, high)
            h = float(np.float64(np.round(h * 2**20) / 2**20))
            print(
                f"{low:10.4g} n={n} h={h:.6f} c={h * high**0.5:.3f} error={err:.1e}",
                file=sys.stderr,
                flush=True,
            )
            bins.append((len(rows), n, h, low, err))
            hm = mpmath.mpf(h)
            for k in range(n):
                y = (k + mpmath.mpf(1) / 2) * hm
                s, c = mpmath.sinh(y), mpmath.cosh(y)
                q = s * s
                rows.append(
                    (
                        s,
                        q,
                        -(q + q * (3 + q) / (1 + q) ** 2),
                        -(q + mpmath.log1p(q)),
                        2 * (s - mpmath.atan(s)) / mpmath.pi,
                        2 * s * q * (2 + q) / (1 + q) ** 2 / mpmath.pi,
                        c,
                    )
                )
    out = [
        "/* Written by tools/make_ncx2_nodes.py; do not edit. */",
        "#ifndef PE_NCX2_NODES_H",
        "#define PE_NCX2_NODES_H",
        "",
        f"#define PE_NODES_LOW {LOW}",
        f"#define PE_NODES_HIGH {HIGH}",
        f"#define PE_NODES_MAX {max(b[1] for b in bins)}",
        "",
        "/* first node, number of nodes, step, pi-scaled factors; the comment gives the lower end",
        "   of the bin and the largest error of the rule, relative to the tail. */",
        "typedef struct {",
        "    int first, n;",
        "    double h, h2_pi, two_pi_h;",
        "} pe_bin;",
        "",
        "static const pe_bin pe_bins[] = {",
    ]
    for first, n, h, low, err in bins:
        hm = mpmath.mpf(h)
        out.append(
            f"    {{{first}, {n}, {h!r}, {float(2 * hm / mpmath.pi)!r}, "
            f"{float(2 * mpmath.pi / hm)!r}}}, /* {low:g}, {err:.1e} */"
        )
    out += ["};", ""]
    names = ["s", "q", "fb", "fd", "gd", "gb", "ch"]
    for j, name in enumerate(names):
        out.append(f"static const double pe_node_{name}[] = {{")
        vals = [repr(float(r[j])) for r in rows]
        for i in range(0, len(vals), 4):
            out.append("    " + ", ".join(vals[i : i + 4]) + ",")
        out += ["};", ""]
    out.append("#endif")
    print("\n".join(out))


if __name__ == "__main__":
    main()
