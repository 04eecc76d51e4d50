"""The quadrature nodes in csrc/ncx2_nodes.h: values of the table, and the error of each rule."""

from __future__ import annotations

import re
from pathlib import Path

import make_ncx2_nodes as tool
import mpmath
import numpy as np
import pytest

ROOT = Path(__file__).parents[1]
HEADER = (ROOT / "csrc" / "ncx2_nodes.h").read_text(encoding="ascii")
CORE = (ROOT / "csrc" / "ncx2_core.c").read_text(encoding="ascii")
BIN = re.compile(r"^    \{(\d+), (\d+), (\S+), (\S+), (\S+)\}, /\* (\S+), (\S+) \*/", re.M)
BINS = [(int(m[1]), int(m[2]), *map(float, m.groups()[2:])) for m in BIN.finditer(HEADER)]


extended = pytest.mark.skipif(
    np.finfo(np.longdouble).eps > 2e-19, reason="needs an 80-bit or longer long double"
)


def column(name: str) -> list[float]:
    found = re.search(rf"pe_node_{name}\[\] = \{{(.*?)\}};", HEADER, re.S)
    assert found is not None
    return [float(v) for v in found[1].split(",") if v.strip()]


def test_bins_cover_the_range() -> None:
    lows = [b[5] for b in BINS]
    assert len(BINS) == 4 * (tool.HIGH - tool.LOW)
    expected = [2.0**o * (1 + q / 4) for o in range(tool.LOW, tool.HIGH) for q in range(4)]
    assert lows == pytest.approx(expected, rel=1e-9)  # the comments have six digits
    assert [b[0] for b in BINS] == [sum(b[1] for b in BINS[:i]) for i in range(len(BINS))]
    assert f"#define PE_NODES_MAX {max(b[1] for b in BINS)}\n" in HEADER


def test_table() -> None:
    columns = {name: column(name) for name in ("s", "q", "fb", "fd", "gd", "gb", "ch")}
    assert all(len(c) == sum(b[1] for b in BINS) for c in columns.values())
    with mpmath.workdps(50):
        for first, n, h, h2_pi, two_pi_h, *_ in BINS:
            assert h2_pi == float(2 * mpmath.mpf(h) / mpmath.pi)
            assert two_pi_h == float(2 * mpmath.pi / mpmath.mpf(h))
            for k in {0, n // 2, n - 1}:
                y = (k + mpmath.mpf(1) / 2) * mpmath.mpf(h)
                s = mpmath.sinh(y)
                z = (1 + 1j * s) ** 2  # the contour
                q = s * s
                i = first + k
                assert columns["s"][i] == float(s)
                assert columns["q"][i] == float(q)
                assert columns["ch"][i] == float(mpmath.cosh(y))
                # A(z-1) + B(1/z-1) - D log z with A = B + D
                assert columns["fb"][i] == pytest.approx(float((z + 1 / z - 2).real), rel=1e-15)
                real = (z - 1 - mpmath.log(z)).real
                assert columns["fd"][i] == pytest.approx(float(real), rel=1e-15)
                turns = [(z - mpmath.log(z)).imag / mpmath.pi, (z + 1 / z).imag / mpmath.pi]
                assert columns["gd"][i] == pytest.approx(float(turns[0]), rel=1e-15)
                assert columns["gb"][i] == pytest.approx(float(turns[1]), rel=1e-15)


@extended
@pytest.mark.parametrize("index", [0, 7, 13, 22, 33, 45, 59])
def test_error_of_the_rule(index: int) -> None:
    _, n, h, _, _, low, _ = BINS[index]
    high = BINS[index + 1][5] if index + 1 < len(BINS) else 2.0**tool.HIGH
    kappas = [low, high]
    error = tool.error(kappas, [tool.truth(k) for k in kappas], np.longdouble(h), n)
    assert error <= 1.05 * tool.TARGET


@extended
@pytest.mark.parametrize("power", [14, 17, 20])
def test_error_of_the_rule_without_table(power: int) -> None:
    assert f"#define FLAT_NODES {tool.FLAT_NODES}\n" in CORE
    assert f"#define FLAT_STEP {tool.FLAT_STEP}\n" in CORE
    assert tool.flat_error(2.0**power) <= 6e-17


def test_series() -> None:
    """The rest of the series for small parameters, and 1 / Gamma in front of it."""
    defined = dict(re.findall(r"#define (SERIES_\w+) (\S+)", CORE))
    limit, terms = float(defined["SERIES_PARAMETER"]), int(defined["SERIES_TERMS"])
    found = re.search(r"RGAMMA\[RGAMMA_TERMS\] = \{(.*?)\};", CORE, re.S)
    assert found is not None
    rgamma = [mpmath.mpf(float(v)) for v in found[1].split(",")]
    for a in np.linspace(0.25, limit / 2, 11):
        with mpmath.workdps(40):
            powers = [mpmath.mpf(a - 1) ** k for k in range(len(rgamma))]
            value = mpmath.fdot(rgamma, powers) * mpmath.gamma(1 + mpmath.mpf(a))
            assert abs(value - 1) < 6e-18
        for half in np.linspace(0, limit / 2, 7):
            y = a + half  # the largest for these parameters
            term = weight = weights = total = mpmath.mpf(1)
            for m in range(1, terms):
                term *= y / (a + m)
                weight *= half / m
                weights += weight
                total += term * weights
            term *= y / (a + terms)
            rest = term * mpmath.exp(half) / (1 - y / (a + terms + 1))
            assert rest < 3e-18 * total
