"""Parts of the reference's line: transforms enclosed and bounds kept, against integrals."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import pytest
from thorough import some

import pyengine as pe

pytest.importorskip("flint")
from flint import acb, arb

from pyengine import reference
from pyengine.reference.atomic.legendre_pieces import PiecesSource
from pyengine.reference.balls import precision
from pyengine.reference.inversion.line import LineNodes, PlacedPart, PlainGaussian, make_plan
from pyengine.reference.inversion.normal_pair import Mixture, NormalPair
from pyengine.reference.mixed.many_laplace import ManyLaplace

SAMPLED = Mixture((Fraction(9, 10), Fraction(1, 10)), (0, 1))
GROUP = Mixture((Fraction(1, 2), Fraction(1, 4), Fraction(1, 4)), (Fraction(1, 3), 1, 2))
PAIRS = {
    "sampled": NormalPair(SAMPLED),
    "group": NormalPair(GROUP),
    "substituted": NormalPair(SAMPLED, SAMPLED),
    "two groups": NormalPair(GROUP, SAMPLED),
}
STEPS, DEPTH = 40, 40.0


def placed(part: Any, threshold: float, number: int) -> tuple[PlacedPart, LineNodes, int]:
    """The part on the line of a plan, and the working precision."""
    plan = make_plan(((part, number),), threshold, DEPTH, 12.0, 45.0)
    line = LineNodes(arb(plan.tilt), arb(plan.spacing), plan.count, plan.depth)
    ((sizes, nodes, _),) = plan.parts
    with precision(plan.bits):
        return sizes.placed(nodes, line), line, plan.bits


def integral(pair: NormalPair, one: Any, place: acb) -> acb:
    """E exp(lambda Y) of the law that is cut off, by the library's integrator."""
    upper, lower = pair.upper.balls(), pair.lower.balls() if pair.lower else None
    front = arb(pair.lower.least.numerator) / pair.lower.least.denominator if pair.lower else arb(1)

    def density(z: acb, analytic: bool) -> acb:
        exponent = -z * z / 2 + place * upper.at(z).log(analytic=analytic)
        if lower:
            exponent += (1 - place) * lower.at(-z).log(analytic=analytic)
        return exponent.exp()

    left, right = (acb(end) for end in one.ends)
    found: acb = acb.integral(density, left, right, rel_tol=arb(10) ** -25, abs_tol=arb(10) ** -25)
    return found * front / (2 * arb.pi()).sqrt()


@pytest.mark.parametrize("name", PAIRS)
@pytest.mark.parametrize("away", some([-2.0, 0.5, 2.0], 2))
def test_pairs_of_mixtures(name: str, away: float) -> None:
    pair = PAIRS[name]
    law = pair.measure(12.0, 45.0)
    mean, variance = law.mean_variance(0.0)
    threshold = STEPS * mean + away * math.sqrt(STEPS * variance)
    one, line, bits = placed(pair, threshold, STEPS)
    with precision(bits):
        values, bound = one.values(), one.modulus(-10.0)
        for k in (0, line.count // 3, line.count - 1):
            truth = integral(pair, one, acb(line.tilt, k * line.spacing))
            assert values[k].overlaps(truth)
            assert abs(values[k] - truth) < abs(values[0]) * arb(10) ** -15
        for factor in (1.0, 1.3, 4.0):
            t = line.reach * factor
            size = abs(integral(pair, one, acb(line.tilt, t)))
            assert size <= bound.largest
            assert size <= bound.far / t
        for theta in (-1.5, 0.5, 2.5):
            truth = integral(pair, one, acb(theta)).real.log()
            assert truth < one.log_above(arb(theta)).upper() + arb(10) ** -20


def test_many_laplace_steps() -> None:
    """Against powers of sums over the atoms and an integral over the density, few terms less."""
    source = PiecesSource(2.0, Fraction(1, 10), 300, substituted=False)
    part = ManyLaplace([source])
    mean, variance = part.measure().mean_variance(0.0)
    one, line, bits = placed(part, mean - math.sqrt(variance), 1)
    with precision(bits):
        step = source.step()

        def transform(place: acb) -> acb:
            atoms = sum(
                (m * (place * (step.low + k * step.width)).exp() for k, m in enumerate(step.atoms)),
                acb(0),
            )

            def density(s: acb, _: bool) -> acb:
                value: acb = step.density(0, s) * (place * (step.low + s * step.width)).exp()
                return value

            tolerance = arb(10) ** -25
            inside: acb = acb.integral(
                density, acb(0), acb(1), rel_tol=tolerance, abs_tol=tolerance
            )
            few = sum(
                (math.comb(300, m) * atoms ** (300 - m) * inside**m for m in range(4)), acb(0)
            )
            result: acb = (atoms + inside) ** 300 - few
            return result

        values, bound = one.values(), one.modulus(-10.0)
        for k in (0, line.count // 3, line.count - 1):
            truth = transform(acb(line.tilt, k * line.spacing))
            assert abs(values[k] - truth) < abs(values[0]) * arb(10) ** -12
        for factor in (1.0, 2.0):
            t = line.reach * factor
            size = abs(transform(acb(line.tilt, t)))
            assert size <= bound.largest * (1 + arb(10) ** -12)
            assert size <= bound.far / t * (1 + arb(10) ** -12)


def test_plain_steps_decay_as_they_say() -> None:
    one, line, bits = placed(PlainGaussian(2.0), 0.3, 5)
    with precision(bits):
        bound = one.modulus(0.0)
        for factor in (1.0, 1.5):
            t = line.reach * factor
            place = acb(line.tilt, t)
            size = abs((place * (place - 1) / 8).exp())
            assert size <= bound.largest * (1 + arb(10) ** -10)
            assert size <= bound.far / t * (1 + arb(10) ** -10)


def test_a_mixture_that_moves_nothing() -> None:
    nothing = pe.GaussianMixtureMechanism("1", [0], ["1"]).composed(5)
    assert reference.delta(nothing, 0) == 0
    noise = pe.GaussianMechanism("2")
    both = reference.delta(nothing + noise, "0.1", digits=20)
    assert both == reference.delta(noise, "0.1", digits=20)
