"""What laws say of themselves to engines, which never ask which law it is."""

from __future__ import annotations

from fractions import Fraction
from typing import Any

import numpy as np
import pytest

import pyengine as pe
from pyengine.laws.allocation import AllocatedLaw
from pyengine.laws.base import PoissonSampledLaw, ReversedLaw, StepLaw
from pyengine.laws.gaussian import GaussianLaw
from pyengine.laws.laplace import LaplaceLaw
from pyengine.laws.laplace_parameters import LaplaceParameters
from pyengine.laws.substituted import SubstitutedLaplace

SIXTH = Fraction(1, 6)
PLAIN, EPOCH = LaplaceLaw(2.0), AllocatedLaw(1.0, 25)


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (PLAIN, LaplaceParameters(2.0)),
        (ReversedLaw(PLAIN), LaplaceParameters(2.0)),
        (PoissonSampledLaw(PLAIN, SIXTH), LaplaceParameters(2.0, SIXTH)),
        (
            ReversedLaw(PoissonSampledLaw(PLAIN, SIXTH)),
            LaplaceParameters(2.0, SIXTH, is_reversed=True),
        ),
        (ReversedLaw(ReversedLaw(PoissonSampledLaw(PLAIN, 0.1))), LaplaceParameters(2.0, 0.1)),
        (SubstitutedLaplace(3.0, 0.1), LaplaceParameters(3.0, 0.1, is_substituted=True)),
        (
            ReversedLaw(SubstitutedLaplace(3.0, 0.1)),
            LaplaceParameters(3.0, 0.1, is_substituted=True),
        ),
        (PoissonSampledLaw(PoissonSampledLaw(PLAIN, 0.5), 0.5), None),
        (PoissonSampledLaw(SubstitutedLaplace(3.0, 0.1), 0.5), None),
        (GaussianLaw(1.0), None),
        (EPOCH, None),
    ],
)
def test_laws_say_whether_they_are_laplace_steps(
    law: StepLaw, expected: LaplaceParameters | None
) -> None:
    assert law.laplace() == expected


@pytest.mark.parametrize(
    ("law", "expected"),
    [
        (EPOCH, (EPOCH, False)),
        (ReversedLaw(EPOCH), (EPOCH, True)),
        (ReversedLaw(ReversedLaw(EPOCH)), (EPOCH, False)),
        (AllocatedLaw(0.05, 25), None),
        (ReversedLaw(AllocatedLaw(0.05, 25)), None),
        (ReversedLaw(PLAIN), None),
    ],
)
def test_laws_say_whether_they_have_a_table(law: StepLaw, expected: Any) -> None:
    assert law.tabulated() == expected


@pytest.mark.parametrize("law", [EPOCH, ReversedLaw(EPOCH), PLAIN, ReversedLaw(PLAIN)])
def test_laws_say_whether_they_have_cells(law: StepLaw) -> None:
    below, above = law.enclosed(None)
    assert below.has_cells
    assert above.has_cells
    if law.has_cells:
        assert below == above == law
    else:
        # both orders have the same laws, exchanged
        edges = np.array([0.0])
        back, mirrored = ReversedLaw(below).cells(edges), below.cells(edges)
        assert float(back.log_a[0]) == float(mirrored.log_b[1])
        with pytest.raises(pe.AccuracyError, match="between two others"):
            law.cells(edges)
