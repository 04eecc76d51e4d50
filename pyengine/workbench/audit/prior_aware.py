"""Prior-aware reconstruction: attacks that identify which of several candidates was trained on."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine.numerics import functions as fn
from pyengine.special import log_ndtr
from pyengine.workbench.audit._inputs import FloatArray, finite_array

__all__ = ["inner_product_scores", "log_likelihood_scores", "orthogonal_success"]

Candidates = npt.ArrayLike | Iterable[npt.ArrayLike]


def inner_product_scores(
    releases: npt.ArrayLike,
    candidates: Candidates,
    *,
    sampling_probability: float = 1.0,
) -> FloatArray:
    """Sum over the steps of the inner products of releases and candidate gradients.

    Parameters
    ----------
    releases : array_like, shape (T, d) or (m, T, d)
        Noisy gradient sum of each step, less the gradients of all known records; three-dimensional
        for m independent runs.
    candidates : array_like, shape (n, d), or iterable of T arrays of that shape
        Clipped gradients of the n candidates: the same at each step, or, for one run, an iterable
        such as a generator that yields those of one step at a time, to save memory.
    sampling_probability : float
        Rate q of Poisson sampling, in (0, 1].  Below 1 only the ⌈qT⌉ largest inner products of each
        candidate are summed.

    Returns
    -------
    ndarray, shape (n,) or (m, n)
        Scores; the attack guesses the candidate with the largest one.

    Raises
    ------
    ValueError
        For mismatched shapes, numbers that are not finite, or a probability outside (0, 1].

    Notes
    -----
    Memory: the candidates of one step, and n T scores if the sampling probability is below 1.
    A candidate whose gradient is 0 has score 0.

    References
    ----------
    J. Hayes, S. Mahloujifar, B. Balle, Bounding training data reconstruction in DP-SGD (2023),
    Algorithm 2 and, below sampling probability 1, Algorithm 3.

    Examples
    --------
    >>> import numpy as np
    >>> from pyengine import audit
    >>> rng = np.random.default_rng(0)
    >>> candidates = np.eye(10, 50)  # orthogonal, of norm 1; the third one is in the data
    >>> releases = candidates[2] + rng.normal(0.0, 2.0, (100, 50))
    >>> int(np.argmax(audit.inner_product_scores(releases, candidates)))
    2
    """
    observed = finite_array("releases", releases, (2, 3))
    rate = _rate(sampling_probability)
    fixed = _fixed(candidates, observed)
    if rate == 1.0:
        if fixed is not None:
            return np.asarray(observed.sum(axis=-2) @ fixed.T)
        total: Any = 0.0
        for release, own in _steps(observed, candidates):
            total = total + own @ release
        return np.asarray(total)
    if fixed is not None:
        products = observed @ fixed.T
    else:
        products = np.array([own @ release for release, own in _steps(observed, candidates)])
    kept = math.ceil(rate * observed.shape[-2])
    largest = np.partition(products, observed.shape[-2] - kept, axis=-2)[..., -kept:, :]
    return np.asarray(largest.sum(axis=-2))


def orthogonal_success(candidates: int, mu: float) -> float:
    """Success probability of the prior-aware attack on orthogonal candidates with full batches.

    Parameters
    ----------
    candidates : int
        Number n of candidates with a uniform prior, >= 1.
    mu : float
        Norm of a candidate's gradients over all steps, in units of the noise; in [0, ∞).  It is
        √T/σ for T steps with gradients of the clipping norm.

    Returns
    -------
    float
        ∫ φ(z) Φ(z + μ)^{n-1} dz: the probability that the score of the right candidate, normal with
        mean μ, exceeds n - 1 standard normal scores.  Trapezoidal rule; relative error about 1e-15.

    Examples
    --------
    >>> from pyengine import audit
    >>> round(audit.orthogonal_success(10, 0.0), 12), round(audit.orthogonal_success(10, 1.0), 6)
    (0.1, 0.340936)
    """
    others = checks.count("candidates", candidates, least=1) - 1
    shift = float(checks.non_negative("mu", mu))
    # the peak lies between 0, where the normal density is, and where Φ(z + μ)^{n-1} nears 1
    step = 2.0**-5  # 1/20 would have a relative error of 2e-11 for 10^15 candidates
    z = np.arange(-12.0, 12.0 + math.sqrt(2.0 * fn.log1p(others)), step)
    density = fn.exp(-0.5 * z * z + others * log_ndtr(z + shift))
    return min(1.0, float(density.sum()) * step / math.sqrt(2.0 * math.pi))


def log_likelihood_scores(
    releases: npt.ArrayLike,
    candidates: Candidates,
    *,
    noise: float,
    sampling_probability: float = 1.0,
    prior: npt.ArrayLike | None = None,
) -> FloatArray:
    """Log posterior of each candidate given the releases, up to a constant: the optimal attack.

    Parameters
    ----------
    releases, candidates
        As in `inner_product_scores`.
    noise : float
        Standard deviation of the noise in each entry of a release, in (0, ∞).
    sampling_probability : float
        Rate q of Poisson sampling, in (0, 1].
    prior : array_like, shape (n,), optional
        Probability of each candidate, >= 0, with sum 1 within 1e-9; uniform if not given.

    Returns
    -------
    ndarray, shape (n,) or (m, n)
        s_z + log p_z with s_z = Σ_t log(1 - q + q e^{(‖g_t‖² - ‖g_t - g_t^z‖²)/(2σ²)}), the
        log posterior probability up to a constant; -∞ where the prior is 0.

    Raises
    ------
    ValueError
        For mismatched shapes, numbers that are not finite, or parameters outside their domain.

    Notes
    -----
    The paper prints the product s_z p_z; since s_z is a log-likelihood, the prior enters as the
    summand log p_z.  Memory: the candidates of one step.

    References
    ----------
    J. Hayes, S. Mahloujifar, B. Balle, Bounding training data reconstruction in DP-SGD (2023),
    Appendix G.
    """
    observed = finite_array("releases", releases, (2, 3))
    deviation = float(checks.positive("noise", noise))
    rate = _rate(sampling_probability)
    fixed = _fixed(candidates, observed)
    total: Any = 0.0
    if fixed is None:
        steps = _steps(observed, candidates)
    else:  # all runs at once
        steps = ((observed[..., t, :], fixed) for t in range(observed.shape[-2]))
    for release, own in steps:
        exponent = (release @ own.T - 0.5 * np.einsum("ij,ij->i", own, own)) / deviation / deviation
        total = total + (
            exponent if rate == 1.0 else fn.logaddexp(fn.log1p(-rate), fn.log(rate) + exponent)
        )
    scores = np.asarray(total)
    if prior is None:
        return scores - fn.log(scores.shape[-1])
    return scores + _log_prior(prior, scores.shape[-1])


def _log_prior(prior: npt.ArrayLike, size: int) -> FloatArray:
    weights = finite_array("prior", prior, (1,))
    if weights.size != size:
        raise ValueError(
            f"prior must have one entry for each of {size} candidates, got {weights.size}"
        )
    if weights.min() < 0.0 or not abs(weights.sum() - 1.0) <= 1e-9:
        raise ValueError(
            f"prior must be non-negative with sum 1, got a least entry of {weights.min():g} and a "
            f"sum of {weights.sum():.12g}"
        )
    with np.errstate(divide="ignore"):
        return np.asarray(fn.log(weights))


def _rate(sampling_probability: float) -> float:
    rate = float(checks.probability("sampling_probability", sampling_probability))
    if rate == 0.0:
        raise ValueError("sampling_probability must be above 0: nothing is released at 0")
    return rate


def _fixed(candidates: Any, observed: FloatArray) -> FloatArray | None:
    """Return the candidates if they are the same at each step, otherwise None."""
    given = isinstance(candidates, np.ndarray | list | tuple) and len(candidates) > 0
    if not given or np.ndim(candidates[0]) != 1:
        return None
    return _matching(finite_array("candidates", candidates, (2,)), observed)


def _matching(own: FloatArray, observed: FloatArray) -> FloatArray:
    if own.shape[1] != observed.shape[-1]:
        raise ValueError(
            f"candidates must have {observed.shape[-1]} columns, as releases have, got shape "
            f"{own.shape}"
        )
    return own


def _steps(observed: FloatArray, candidates: Any) -> Iterator[tuple[FloatArray, FloatArray]]:
    """Yield the release and the candidates' gradients of each step."""
    if observed.ndim == 3:
        raise ValueError(
            "releases of several runs need candidates that are the same at each step, of shape "
            f"(n, {observed.shape[-1]})"
        )
    try:
        given = iter(candidates)
    except TypeError:
        raise ValueError(
            f"candidates must be an array or an iterable of arrays, got {candidates!r}"
        ) from None
    count = None
    for step, release in enumerate(observed):
        try:
            own = finite_array(f"candidates of step {step}", next(given), (2,))
        except StopIteration:
            raise ValueError(
                f"candidates must yield an array for each of {len(observed)} steps, got {step}"
            ) from None
        if count not in (None, len(own)):
            raise ValueError(f"candidates must keep their number, got {count} and then {len(own)}")
        count = len(own)
        yield release, _matching(own, observed)
    if next(given, None) is not None:
        raise ValueError(
            f"candidates must yield {len(observed)} arrays, one for each step, got more"
        )
