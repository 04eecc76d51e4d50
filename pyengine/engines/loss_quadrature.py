"""The privacy loss of one step as a discrete measure, for the approximations of the papers.

Nodes are log-likelihood ratios s of the unsampled step, with the weights w without the record and
w e^s with it; Poisson sampling makes the ratio 1 + p (e^s - 1).  Gaussian steps have a trapezoidal
rule in z, Laplace steps two atoms and Gauss-Legendre panels between them.

The central limit approximation replaces a subsampled composition by one Gaussian mechanism of the
distance μ̃ = √(Σ n p² χ²), χ² the divergence of one step without sampling: for Gaussian noise
p √(n (e^{μ²} - 1)), μ = 1/noise (Bu et al. 2020).  Kaissis et al. 2023 print e^{μ}; their own
footnote has the square.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyengine._support.caches import kept
from pyengine.errors import AccuracyError, NotDefinedError
from pyengine.mechanisms import Mechanism, Noise, Step, step_in_words, steps_of
from pyengine.numerics.sampled_loss import sampled_loss

__all__ = ["Loss", "base_nodes", "clt_distance", "losses", "parts", "pearson", "ratio"]

FloatArray = npt.NDArray[np.float64]

REACH = 36.0  # standard deviations beyond both means, as tilted laws lie far out
PANEL = 2.0  # largest length of a Laplace step's panels in z
POINTS = 24  # Gauss-Legendre nodes on a panel
MOST_NODES = 2**21  # of a Gaussian step


@dataclass(frozen=True, eq=False)
class Loss:
    """The loss L = log dB/dA of one kind of step: nodes, weights under A and B, number of steps.

    Weights sum to 1.  ``largest`` and ``highest`` are the suprema of -L and of L; one step's
    profile is 0 from ε = ``largest`` on.
    """

    loss: FloatArray
    under_a: FloatArray
    under_b: FloatArray
    steps: int
    largest: float
    highest: float


def losses(mechanism: Mechanism, adjacency: str) -> list[Loss]:
    """The loss of each kind of step, those of sampling probability 0 left out.

    For adjacency ``add`` and ``remove``, and for Gaussian and Laplace steps, plain or on a Poisson
    sample; others are refused.
    """
    if adjacency not in ("add", "remove"):
        raise NotDefinedError(
            f"the approximations know adjacency 'add', 'remove' and 'add_remove', got {adjacency!r}"
        )
    found = []
    for step, number in steps_of(mechanism):
        noise, probability = parts(step)
        if probability > 0.0:
            found.append(_loss(noise, probability, number, reversed_=adjacency == "remove"))
    return found


def parts(step: Step) -> tuple[Noise, float]:
    """Noise and sampling probability of a Gaussian or Laplace step; others are refused."""
    noise = step.inner.noise if step.scheme in ("none", "poisson") else None
    if noise is None:
        raise NotDefinedError(
            "mechanism must be composed of Gaussian and Laplace steps, with or without Poisson "
            f"sampling, for this method; got a step {step_in_words(step)}"
        )
    return noise, float(step.share)


def ratio(s: FloatArray, probability: float) -> FloatArray:
    """Loss log(1 + p (e^s - 1)) of a sampled step."""
    return s if probability == 1.0 else sampled_loss(probability, s)


@kept(256)
def base_nodes(noise: Noise) -> tuple[FloatArray, ...]:
    """Log-likelihood ratios s, and their weights without and with the record."""
    mu = 1.0 / float(noise.multiplier)
    if noise.family == "gaussian":
        # the loss is analytic for |Im z| < π/μ: the rule's error is below e^{-2π²/(μh)}
        count = math.ceil(min((mu + 2.0 * REACH) / min(0.25, 0.5 / mu), 2.0 * MOST_NODES))
        if count > MOST_NODES:
            raise AccuracyError(
                f"the approximations need more than {MOST_NODES} nodes for "
                f"GaussianMechanism({noise.multiplier!r}): its noise_multiplier is too small for "
                "them; method='auto' is exact"
            )
        z = np.linspace(-REACH, mu + REACH, count + 1)
        s = mu * (z - 0.5 * mu)
        log_unit = math.log((z[1] - z[0]) / math.sqrt(2.0 * math.pi))
        without, within = (np.exp(log_unit - 0.5 * (z - m) ** 2) for m in (0.0, mu))
    else:
        x, w = np.polynomial.legendre.leggauss(POINTS)
        edges = np.linspace(0.0, mu, max(1, math.ceil(mu / PANEL)) + 1)
        half = 0.5 * np.diff(edges)[:, None]
        z = ((edges[:-1, None] + half) + half * x).ravel()
        inner = (half * w).ravel() * 0.5
        s = np.concatenate(([-mu], 2.0 * z - mu, [mu]))
        tail = 0.5 * math.exp(-mu)
        without = np.concatenate(([0.5], inner * np.exp(-z), [tail]))
        within = np.concatenate(([tail], inner * np.exp(z - mu), [0.5]))
    return s, without / without.sum(), within / within.sum()


def _loss(
    noise: Noise,
    probability: float,
    steps: int,
    *,
    reversed_: bool,
) -> Loss:
    s, without, within = base_nodes(noise)
    mixture = (1.0 - probability) * without + probability * within
    loss = ratio(s, probability)
    if noise.family == "laplace":
        ends = -float(loss.min()), float(loss.max())
    else:
        ends = (-math.log1p(-probability) if probability < 1.0 else math.inf), math.inf
    if reversed_:
        return Loss(-loss, mixture, without, steps, *ends[::-1])
    return Loss(loss, without, mixture, steps, *ends)


def pearson(mechanism: Mechanism) -> float:
    """Σ χ² of the law with the record from that without, over all steps; infinite if it overflows.

    For a Gaussian step with probability p and μ = 1/noise χ² is p² (e^{μ²} - 1).
    """
    total = 0.0
    for step, number in steps_of(mechanism):
        noise, probability = parts(step)
        mu = 1.0 / float(noise.multiplier)
        with np.errstate(over="ignore"):
            if noise.family == "gaussian":
                one = float(np.expm1(mu * mu))
            else:  # (2 e^μ + e^{-2μ})/3 - 1, without its cancellation
                one = float(2.0 * np.expm1(mu) + np.expm1(-2.0 * mu)) / 3.0
        total += number * probability**2 * one
    return total


# Map: central limit of Bu et al. (2020) | test_approximations | approximations
def clt_distance(mechanism: Mechanism) -> float:
    """The distance μ̃ of the Gaussian pair that approximates a composition."""
    distance = math.sqrt(pearson(mechanism))
    if not math.isfinite(distance):
        raise AccuracyError(
            "the central limit approximation overflows: a noise_multiplier is too small; "
            "method='auto' is exact"
        )
    return distance
