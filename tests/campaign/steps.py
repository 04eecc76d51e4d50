"""Mechanisms as plain data, and the public constructors and the true laws behind them.

A step is a dictionary ``{"kind", "of", "sampling", "steps"}`` whose numbers are texts, doubles in
hexadecimal or exact fractions, so that a journal holds a question to the last bit.
"""

from __future__ import annotations

import math
import random
from fractions import Fraction
from typing import Any

from flint import arb

import pyengine as pe
from campaign.truth import atoms, lines
from campaign.truth.atoms import Atoms
from campaign.truth.law import Law, Reversed, Sampled, ball
from campaign.truth.products import Product, TwoSteps
from campaign.truth.questions import NoTruthError

__all__ = [
    "between",
    "is_gaussian",
    "laws_of",
    "mechanism_of",
    "number",
    "source_of",
    "text_of",
    "vectors",
]

Step = dict[str, Any]
LARGEST = 40_000  # outcomes of a finite law
MANY = 6  # outcomes beside two integrals


def between(rng: random.Random, low: float, high: float) -> float:
    """A number between two whose logarithm is uniform."""
    return min(max(math.exp(rng.uniform(math.log(low), math.log(high))), low), high)


def vectors(rng: random.Random, size: int) -> dict[str, list[str]]:
    """Two vectors of probabilities of three digits."""
    found = {}
    for name in ("p", "q"):
        cuts = sorted(rng.sample(range(1, 1000), size - 1))
        shares = [b - a for a, b in zip([0, *cuts], [*cuts, 1000], strict=True)]
        found[name] = [f"{share}/1000" for share in shares]
    return found


def text_of(value: float | Fraction) -> str:
    """Text of a number that `number` reads back."""
    return str(value) if isinstance(value, Fraction) else float(value).hex()


def number(text: str) -> float | Fraction:
    """Number of a text: a double, or the fraction that a constructor is given as a string."""
    return float.fromhex(text) if "0x" in text or text in ("inf", "nan") else Fraction(text)


def exactly(text: str) -> Fraction:
    return Fraction(number(text))


def mechanism_of(steps: list[Step]) -> pe.Mechanism:
    """Build the mechanism by the public constructors."""
    parts = [_step(step).composed(int(step["steps"])) for step in steps]
    return parts[0] if len(parts) == 1 else pe.compose(*parts)


def _step(step: Step) -> Any:
    made = _plain(step["kind"], step["of"])
    sampling = step["sampling"]
    if sampling is None:
        return made
    if "p" in sampling:
        return made.poisson_sampled(number(sampling["p"]))
    return made.sampled_without_replacement(
        batch_size=sampling["batch"], dataset_size=sampling["size"]
    )


def _plain(kind: str, of: Step) -> Any:
    if kind == "gaussian":
        return pe.GaussianMechanism(number(of["noise"]))
    if kind == "laplace":
        return pe.LaplaceMechanism(number(of["noise"]))
    if kind == "discrete_gaussian":
        return pe.DiscreteGaussianMechanism(number(of["noise"]), of["sensitivity"])
    if kind == "discrete_laplace":
        return pe.DiscreteLaplaceMechanism(number(of["noise"]), of["sensitivity"])
    if kind == "response":
        return pe.RandomizedResponse(number(of["truth"]), of["categories"])
    if kind == "generic":
        return pe.GenericMechanism(number(of["epsilon"]), number(of["delta"]))
    if kind == "pair":
        return pe.from_probabilities([number(x) for x in of["p"]], [number(x) for x in of["q"]])
    if kind == "distributions":
        return pe.from_distributions(*_scipy(of))
    raise ValueError(f"kind must be that of a step, got {kind!r}")


def _scipy(of: Step) -> tuple[Any, Any]:
    from scipy import stats

    name, x = of["name"], float(number(of["x"]))
    if name == "normal":
        return stats.norm(0.0, 1.0), stats.norm(x, float(number(of["scale"])))
    if name == "uniform":
        return stats.uniform(0.0, 1.0), stats.uniform(x, 1.0)
    if name == "exponential":  # its rate is 1/x
        return stats.expon(0.0, x), stats.expon(0.0, 1.0)
    family = {"laplace": stats.laplace, "logistic": stats.logistic, "cauchy": stats.cauchy}[name]
    return family(0.0, 1.0), family(x, 1.0)


def is_gaussian(steps: list[Step], adjacency: str) -> bool:
    """Whether Gaussian engines answer, whose accuracy is promised to eleven digits."""
    mixed = adjacency == "substitute" and any(step["sampling"] is not None for step in steps)
    return not mixed and all(step["kind"] == "gaussian" for step in steps)


def _scale(step: Step) -> Fraction:
    return exactly(step["of"]["noise"]) * int(step["of"].get("sensitivity", 1))


def _law(step: Step, substitute: bool) -> Law:
    """True pair of one step, A without and B with the record (or one record and another)."""
    kind, sampling = step["kind"], step["sampling"]
    replaced = sampling is not None and "batch" in sampling
    moved = 2 if replaced or substitute else 1
    if substitute and sampling is not None:
        if replaced:
            raise NoTruthError("only bounds are known")
        p, mu = ball(exactly(sampling["p"])), 1 / ball(_scale(step))
        if kind == "gaussian":
            return lines.SubstitutedGaussian(mu, p)
        if kind == "laplace":
            return lines.SubstitutedLaplace(mu, p)
        raise NoTruthError("not undertaken")
    law = _unsampled(step, moved)
    if sampling is None:
        return law
    p = Fraction(sampling["batch"], sampling["size"]) if replaced else exactly(sampling["p"])
    if p == 0:
        return Atoms([(arb(1), arb(1))])
    if p == 1:
        return law
    return law.sampled(ball(p)) if isinstance(law, Atoms) else Sampled(law, ball(p))


def _unsampled(step: Step, moved: int) -> Law:
    kind, of = step["kind"], step["of"]
    if kind == "gaussian":
        return lines.Gaussian(moved / ball(_scale(step)))
    if kind == "laplace":
        return lines.Laplace(moved / ball(_scale(step)))
    if kind == "discrete_gaussian":
        return atoms.discrete_gaussian(_scale(step), moved * of["sensitivity"])
    if kind == "discrete_laplace":
        return atoms.discrete_laplace(_scale(step), moved * of["sensitivity"])
    if kind == "response":
        truth, others = exactly(of["truth"]), of["categories"] - 1
        other = (1 - truth) / others
        rest = 1 - truth - other
        return atoms.pair_of_fractions([truth, other, rest], [other, truth, rest])
    if kind == "generic":
        delta, ratio = ball(exactly(of["delta"])), (-ball(exactly(of["epsilon"]))).exp()
        more = (1 - delta) / (1 + ratio)
        less, none = more * ratio, arb(0)
        return Atoms([(delta, none), (more, less), (less, more), (none, delta)])
    if kind == "pair":
        return atoms.pair_of_fractions(*([exactly(x) for x in of[key]] for key in "pq"))
    return _distributions(of)


def _distributions(of: Step) -> Law:
    name, exact = of["name"], exactly(of["x"])
    x = ball(exact)
    if name == "normal":
        scale = exactly(of["scale"])
        return lines.TwoVariances(x, ball(scale)) if scale != 1 else lines.Gaussian(x)
    if name == "uniform":
        both = 1 - exact
        return atoms.pair_of_fractions([exact, both, Fraction(0)], [Fraction(0), both, exact])
    if name == "exponential":
        return lines.ExponentialPair(1 / x)
    return {"laplace": lines.Laplace, "logistic": lines.Logistic, "cauchy": lines.CauchyPair}[name](
        x
    )


def source_of(steps: list[Step]) -> str:
    """How the truth is computed: ``sums``, ``closed form``, ``quadrature`` or ``reference``."""
    continuous = sum(
        1 if _joins(step) else int(step["steps"])
        for step in _grouped(steps)
        if step["kind"] in ("gaussian", "laplace", "distributions") and not _uniform(step)
    )
    return ("sums", "closed form", "quadrature", "reference")[min(continuous, 3)]


def _uniform(step: Step) -> bool:
    return bool(step["kind"] == "distributions" and step["of"]["name"] == "uniform")


def _joins(step: Step) -> bool:
    """Whether repetitions of a step are one step of another scale: Gaussian, not sampled."""
    return bool(step["kind"] == "gaussian" and step["sampling"] is None)


def _grouped(steps: list[Step]) -> list[Step]:
    """Steps with the unsampled Gaussian ones counted once."""
    plain = [step for step in steps if _joins(step)]
    return [step for step in steps if not _joins(step)] + plain[:1]


def laws_of(steps: list[Step], adjacency: str) -> list[Law]:
    """True laws of the orders that an adjacency asks about."""
    law = _composition(steps, adjacency == "substitute")
    if adjacency in ("add", "substitute"):
        return [law]
    return [Reversed(law)] if adjacency == "remove" else [law, Reversed(law)]


def _composition(steps: list[Step], substitute: bool) -> Law:
    finite: Atoms | None = None
    continuous: list[Law] = []
    square = arb(0)
    for step in steps:
        times = int(step["steps"])
        if times == 0:
            continue
        if _joins(step):
            square += times * (ball(2 if substitute else 1) / ball(_scale(step))) ** 2
            continue
        shared = step["kind"] == "discrete_gaussian" and step["sampling"] is None
        if shared:  # losses on a lattice: all repetitions at once
            moved = 2 if substitute else 1
            found: Law = atoms.discrete_gaussian(
                _scale(step), moved * step["of"]["sensitivity"], times
            )
        else:
            found = _law(step, substitute)
        if not isinstance(found, Atoms):
            continuous += [found] * times
            continue
        if not shared:
            if atoms.size_of_power(len(found.outcomes()), times) > LARGEST:
                raise NoTruthError("too many outcomes")
            found = atoms.power(found, times)
        if finite is not None and len(finite.outcomes()) * len(found.outcomes()) > LARGEST:
            raise NoTruthError("too many outcomes")
        finite = found if finite is None else finite.times(found)
    if square > 0:
        continuous.append(lines.Gaussian(square.sqrt()))
    if not continuous:
        return Atoms([(arb(1), arb(1))]) if finite is None else finite
    if len(continuous) > 2:
        raise NoTruthError("more than two continuous steps")
    law = continuous[0] if len(continuous) == 1 else TwoSteps(*continuous)
    if finite is None:
        return law
    if len(continuous) == 2 and len(finite.outcomes()) > MANY:
        raise NoTruthError("too many outcomes beside two integrals")
    return Product(finite, law)
