"""Several releases computed on the same sample: one step, which is sampled as a whole.

Gaussian releases of noise σᵢ are equivalent to one of noise (Σ σᵢ⁻²)^-½: the sum of the releases,
weighted by σᵢ⁻², is a sufficient statistic.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from pyengine._support import checks
from pyengine.mechanisms.core import Composition, Step, only_single
from pyengine.mechanisms.gaussian import GaussianMechanism
from pyengine.mechanisms.report import describe, step_in_words
from pyengine.mechanisms.words import Words, of_all

__all__ = ["GaussianReleases", "Releases", "merged_noise", "on_one_sample"]

# An irrational noise is replaced by the middle of its cell of this many bits: then every number of
# fewer bits lies on the same side of both.
BITS = 4096
SHOWN = 3  # releases that a name lists


def merged_noise(rows: list[tuple[checks.Number, int]]) -> checks.Number:
    """Return (Σ nᵢ σᵢ⁻²)^-½ of noises σᵢ, each used nᵢ times.

    A double if it is one, the exact fraction if it is rational, and otherwise a fraction within a
    relative 2^-4095 that lies on the same side of all numbers of fewer bits: the doubles next to it
    enclose the noise.
    """
    total = sum((number / Fraction(noise) ** 2 for noise, number in rows), Fraction(0))
    top, bottom = total.denominator, total.numerator  # of the square of the noise
    roots = math.isqrt(top), math.isqrt(bottom)
    if roots[0] ** 2 == top and roots[1] ** 2 == bottom:
        exact = Fraction(*roots)
        near = checks.as_double(exact)
        return near if near < math.inf and Fraction(near) == exact else exact
    places = BITS - (top.bit_length() - bottom.bit_length()) // 2
    up, down = max(places, 0), max(-places, 0)
    root = math.isqrt((top << 2 * up) // (bottom << 2 * down))
    return Fraction((2 * root + 1) << down, 2 << up)


@dataclass(frozen=True, init=False, repr=False)
class GaussianReleases(GaussianMechanism):
    """Several Gaussian releases of one sample; made by sampling their composition.

    Parameters
    ----------
    noise_multipliers : sequence of float or exact number
        Standard deviation of the noise of each release over its sensitivity, in (0, ∞).
    times : sequence of int, optional
        How often each of them is used, >= 1; once if not given.

    Attributes
    ----------
    noise_multiplier : float or Fraction
        That of the one Gaussian release that leaks as much, (Σ nᵢ σᵢ⁻²)^-½: exact if it is
        rational, else a fraction between the same two doubles.

    Examples
    --------
    >>> import pyengine as pe
    >>> step = (pe.GaussianMechanism(2.0) + pe.GaussianMechanism(2.0)).on_one_sample()
    >>> step.noise_multiplier == pe.GaussianMechanism(2.0).composed(2).on_one_sample().noise[1]
    True
    >>> pe.GaussianMechanism(2.0).composed(4).on_one_sample().noise_multiplier
    1.0
    """

    noise_multipliers: tuple[checks.Number, ...]
    times: tuple[int, ...]

    def __init__(self, noise_multipliers: Any, times: Any = None) -> None:
        noises = [
            checks.positive("noise_multipliers", noise)
            for noise in checks.listed("noise_multipliers", noise_multipliers)
        ]
        counts = [1] * len(noises)
        if times is not None:
            counts = [checks.count("times", n, least=1) for n in checks.listed("times", times)]
        if not noises or len(counts) != len(noises):
            raise ValueError(
                "times must have one entry for each of at least one noise multiplier, got "
                f"{len(counts)} for {len(noises)}"
            )
        rows: dict[checks.Number, int] = {}
        for noise, number in zip(noises, counts, strict=True):
            rows[noise] = rows.get(noise, 0) + number
        parts = sorted(rows.items())
        merged = checks.positive("noise of all releases together", merged_noise(parts))
        vars(self).update(
            noise_multiplier=merged,
            noise_multipliers=tuple(noise for noise, _ in parts),
            times=tuple(number for _, number in parts),
        )

    @property
    def on_batches(self) -> str:
        """Name on batches: DP-SGD with the number of releases."""
        return f"DP-SGD with {sum(self.times):,} Gaussian releases of each batch"

    def with_multiplier(self, value: checks.NumberLike) -> Step:
        """Return one Gaussian release of this noise, which leaks as much as all of them."""
        return GaussianMechanism(value)

    def described(self) -> dict[str, Any]:
        """Noise of each release, and how often each is used if that is not once."""
        own = {"mechanism": type(self).__name__, "noise_multipliers": self.noise_multipliers}
        return own if set(self.times) == {1} else {**own, "times": self.times}

    def own_words(self) -> Words:
        """Label of a Gaussian query, with the number of releases."""
        name = f"{sum(self.times):,} Gaussian releases of the same records"
        return super().own_words()._replace(name=name)


@dataclass(frozen=True, init=False, repr=False)
class Releases(Step):
    """Several releases of one sample that are not all Gaussian; made by sampling a composition.

    Parameters
    ----------
    parts : tuple of (Step, int)
        The different releases and how often each is used; Gaussian ones are one part.
    """

    parts: tuple[tuple[Step, int], ...]

    def __init__(self, parts: Any) -> None:
        vars(self).update(parts=Composition(parts).parts)
        if not self.parts:
            raise ValueError(f"parts must hold at least one release, got {checks.shown(parts)}")
        for step, _ in self.parts:
            only_single(step)

    def described(self) -> dict[str, Any]:
        """Parameters of each part, and how often it is used."""
        parts = tuple(describe(Composition(self.parts)))
        return {"mechanism": type(self).__name__, "parts": parts}

    def own_words(self) -> Words:
        """Label: the names of all parts, and what holds for all of them."""
        shown = [_in_words(step, number) for step, number in self.parts[:SHOWN]]
        if self.parts[SHOWN:]:
            shown.append(f"{len(self.parts) - SHOWN:,} more")
        words = of_all([step.words for step, _ in self.parts], "; ") or super().own_words()
        return words._replace(
            name=f"releases of the same records ({' + '.join(shown)})",
            batches=super().own_words().batches,
            hidden=("parts",),
        )


def _in_words(step: Step, number: int) -> str:
    return step_in_words(step) if number == 1 else f"{number:,} x {step_in_words(step)}"


def on_one_sample(composition: Composition) -> Step:
    """Return one step that releases what all steps of a composition do; see `Composition`."""
    gaussian: list[tuple[checks.Number, int]] = []
    others: list[tuple[Step, int]] = []
    if not composition.parts:
        raise ValueError("a composition of one sample must have at least one step, got none")
    for step, number in composition.parts:
        _check_single(step)
        noise = step.noise
        if noise is not None and noise.family == "gaussian":
            gaussian.append((noise.multiplier, number))
        else:
            others.append((step, number))
    if composition.steps == 1:
        return composition.parts[0][0]
    if gaussian:
        merged = GaussianReleases(*zip(*gaussian, strict=True))
        if not others:
            return merged
        plain = len(gaussian) == 1 and gaussian[0][1] == 1
        others.insert(0, (GaussianMechanism(gaussian[0][0]) if plain else merged, 1))
    return Releases(others)


def _check_single(step: Step) -> None:
    """Refuse a step that is sampled already, or cannot be, for which its own message says why."""
    if step.inner is not step:
        raise ValueError(
            "steps that run on one sample must not draw samples of their own, got "
            f"{step_in_words(step)}"
        )
    if type(step).poisson_sampled is not Step.poisson_sampled:
        step.poisson_sampled(Fraction(1, 2))
        raise ValueError(
            f"{step_in_words(step)} must be sampled alone: it draws its records in a way of its own"
        )
