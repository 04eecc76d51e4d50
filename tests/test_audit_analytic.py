"""What is claimed of steps of analytic densities, against integrals in balls."""

from __future__ import annotations

import math

import audit_analytic as tool
import numpy as np
from error_terms import patched


def test_truths_are_those_of_closed_forms() -> None:
    """The integrals of the audit, for a normal step whose transform is known."""
    pair, tilt, t = tool.Pair("normal", "0.7"), 0.5, 2.0
    exact = complex(-0.5 * t * t * 0.49, t * (tilt * 0.49 - 0.245))
    found = tool.transform_of(pair, tilt, t)
    about = complex(float(found.real.mid()), float(found.imag.mid()))
    assert abs(about - np.exp(exact)) < 1e-14
    below, beyond = tool.Pair("normal", "0.5", ends=(-3.0, 4.0)).beyond()
    assert math.isclose(below, 0.5 * (math.erfc(3 / math.sqrt(2)) + math.erfc(4 / math.sqrt(2))))
    assert math.isclose(beyond, math.erfc(3.5 / math.sqrt(2)))


def test_random_claims_hold() -> None:
    rng = np.random.default_rng(5)
    pair = tool.Pair("logistic", "0.8", rate="0.3")
    with patched(tool.PACKAGES, [tool.NOTED]) as engine:
        claims = list(tool.claims_of(engine, pair, (-4.0,), rng))
    known = [claim for claim in claims if not math.isnan(claim.error)]
    assert len(known) > 35
    assert len({claim.kind for claim in known}) > 10
    assert not [claim for claim in known if claim.is_outside]
