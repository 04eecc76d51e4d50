"""One step of stochastic gradient descent with noise, as the membership attacker sees it."""

from __future__ import annotations

import math
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

import numpy as np
import numpy.typing as npt

from pyengine import special
from pyengine._support import checks
from pyengine.numerics import functions as fn

__all__ = ["NoisySGDStep"]

FloatArray = npt.NDArray[np.float64]
SMALLEST = 1e-290
LARGEST = 1e300  # effective batch size
FLAT = 1e32  # d/(nK) beyond which K is nothing beside d


@dataclass(frozen=True)
class NoisySGDStep:
    """Release of one mean gradient, with or without noise.

    Parameters
    ----------
    batch_size : float
        Number n of gradients in the mean, in (0, ∞); n + τ²n²/C² must exceed 1.
    parameters : int
        Number d of parameters, in [1, 10^9].
    susceptibility : float
        K >= ‖Σ^{-1/2}(θ' - μ)‖², the squared distance of the record's gradient from the mean one,
        in units of the gradients' covariance; in [0, ∞).  About d for a typical record.
    noise : float
        Standard deviation τ of the noise on the mean, in each coordinate; in [0, ∞).
    clip : float
        Norm C to which gradients are clipped, in (0, ∞]; finite if there is noise.

    Notes
    -----
    The trade-off function is that of the likelihood-ratio test between the laws of the mean with
    and without the record, both assumed normal (by the central limit theorem over the batch) with
    covariance Σ/n.  The noise enters as if it had covariance (τ/C)²Σ, which favours the attacker
    because no eigenvalue of Σ exceeds C².  The normal law of the mean is an assumption; the formula
    that follows from it is evaluated exactly.

    References
    ----------
    T. Leemann, M. Pawelczyk, G. Kasneci, Gaussian Membership Inference Privacy (2023), Theorem 5.1
    (equation 8) and Corollary 5.1 (equation 9).

    Examples
    --------
    >>> import pyengine as pe
    >>> step = pe.membership.NoisySGDStep(batch_size=500, parameters=650, susceptibility=650)
    >>> round(step.mu, 6)
    1.139606
    >>> round(step.trade_off(0.1), 6)
    0.556044
    """

    batch_size: checks.Number
    parameters: int
    susceptibility: checks.Number
    noise: checks.Number = 0.0
    clip: checks.Number = math.inf

    def __post_init__(self) -> None:
        _put(self, "batch_size", checks.positive("batch_size", self.batch_size))
        parameters = checks.count("parameters", self.parameters, least=1, most=10**9)
        _put(self, "parameters", parameters)
        for name in ("susceptibility", "noise"):
            _put(self, name, checks.non_negative(name, getattr(self, name)))
        if not (isinstance(self.clip, float) and self.clip == math.inf):
            _put(self, "clip", checks.positive("clip", self.clip))
        elif self.noise > 0:
            raise ValueError(f"clip must be finite if there is noise, got clip={self.clip!r}")
        if not self._size > 1:
            raise ValueError(
                "batch_size must exceed 1, counting the noise as n + τ²n²/C², got "
                f"{self.batch_size!r}"
            )
        if not self._size <= LARGEST:
            raise ValueError(f"noise must leave n + τ²n²/C² a double, got {self.noise!r}")

    @property
    def _size(self) -> Fraction:
        n = Fraction(self.batch_size)
        if self.noise == 0:
            return n
        return n + (Fraction(self.noise) * n / Fraction(self.clip)) ** 2

    @property
    def effective_batch_size(self) -> float:
        """Return n + τ²n²/C²: noise acts like more gradients in the mean."""
        return float(self._size)

    # Map: eq. 9 of Leemann et al. (2023): its normal approximation | test_membership | membership
    @property
    def mu(self) -> float:
        """Parameter μ_step of the normal approximation, for many parameters and large batches.

        Equation 9: (d + (2n - 1)K) / (n √(2d + 4nK)), n the effective batch size.
        """
        n, d, k = self.effective_batch_size, self.parameters, float(self.susceptibility)
        return normal_mu(n, float(d), k)

    # Map: eq. 8 of Leemann et al. (2023): one step | test_membership | membership
    def trade_off(self, alpha: float | npt.ArrayLike) -> Any:
        """Smallest false negative rate of an attack with false positive rate α (equation 8).

        Parameters
        ----------
        alpha : array_like
            In [0, 1].

        Returns
        -------
        float or ndarray
            β(α), exact under the assumptions of the class, to a few dozen units in the last place;
            0 if it underflows: see `log_trade_off`.
        """
        return self._ask(special.one_step_sgd_beta, alpha)

    def __call__(self, alpha: float | npt.ArrayLike) -> Any:
        """Return the same as `trade_off`."""
        return self.trade_off(alpha)

    def log_trade_off(self, alpha: float | npt.ArrayLike) -> Any:
        """Logarithm of the trade-off function.

        Parameters
        ----------
        alpha : array_like
            In [0, 1].

        Returns
        -------
        float or ndarray
            log β(α), to a few units in the last place.
        """
        return self._ask(special.log_one_step_sgd_beta, alpha)

    def power(self, alpha: float | npt.ArrayLike) -> Any:
        """Largest true positive rate of an attack with false positive rate α.

        Parameters
        ----------
        alpha : array_like
            In [0, 1].

        Returns
        -------
        float or ndarray
            1 - β(α), accurate in relative terms where it is small.
        """
        return self._ask(special.one_step_sgd_power, alpha)

    def _ask(self, function: np.ufunc, alpha: float | npt.ArrayLike) -> Any:
        array = checks.real_array("alpha", alpha, 0.0, 1.0)
        value = function(
            array, float(self.parameters), self.effective_batch_size, float(self.susceptibility)
        )
        return value if array.shape else float(value)

    def at_slope(self, c: FloatArray) -> tuple[FloatArray, FloatArray]:
        """Both errors of the test at which the trade-off function has slope -e^c.

        With γ0 = nK, γ1 = (n-1)K and r = n/(n-1) the hypergeometric factors of both densities
        cancel: log(r f_{γ1}(rx) / f_{γ0}(x)) = (d/2) log r + K/2 - x/(2(n-1)).
        """
        n, d, k = self.effective_batch_size, float(self.parameters), float(self.susceptibility)
        x = np.maximum((n - 1.0) * (d * fn.log1p(1.0 / (n - 1.0)) + k - 2.0 * c), 0.0)
        alpha = special.ncx2_cdf(x, d, n * k)
        # if α underflows, β is taken at the threshold itself
        direct = special.ncx2_sf(n / (n - 1.0) * x, d, (n - 1.0) * k)
        return alpha, np.where(alpha > SMALLEST, special.one_step_sgd_beta(alpha, d, n, k), direct)


def normal_mu(size: float, d: float, k: float) -> float:
    """Equation 9 at an effective batch size, in [1, ∞], without overflow between."""
    share = d / size / k if k > 0.0 else math.inf
    if share > FLAT:
        return math.sqrt(0.5 * d) / size
    root = math.sqrt(k) / math.sqrt(size)
    return (2.0 + (share - 1.0 / size)) * root / math.sqrt(4.0 + 2.0 * share)


def _put(step: NoisySGDStep, name: str, value: Any) -> None:
    object.__setattr__(step, name, value)
