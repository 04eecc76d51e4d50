"""The distribution of gradients as known to an attacker: mean and covariance."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from pyengine._support import checks
from pyengine._support.extras import needed
from pyengine.workbench.audit._inputs import FloatArray, finite_array

__all__ = ["GradientDistribution"]

ESTIMATORS = ("ledoit_wolf", "oas", "empirical")
SINGULAR = 1e-12  # smaller ratios of the least to the largest eigenvalue count as singular


@dataclass(frozen=True, eq=False)
class GradientDistribution:
    """Mean and covariance of gradients; made by `known` or `estimated`.

    Parameters
    ----------
    mean : ndarray, shape (d,)
        Mean μ.
    whitening : ndarray, shape (d, d)
        W with W Σ Wᵀ = I for the covariance Σ.
    """

    mean: FloatArray
    whitening: FloatArray

    @classmethod
    def known(cls, mean: npt.ArrayLike, covariance: npt.ArrayLike) -> GradientDistribution:
        """Distribution with known mean and covariance.

        Parameters
        ----------
        mean : array_like, shape (d,)
            Mean of the gradients.
        covariance : array_like, shape (d, d) or (d,)
            Covariance, symmetric positive definite; if one-dimensional, the diagonal of a diagonal
            matrix.

        Returns
        -------
        GradientDistribution
            With the symmetric square root of the inverse covariance as whitening.

        Raises
        ------
        ValueError
            For mismatched shapes or a covariance that is not positive definite: its smallest
            eigenvalue must be above 1e-12 of its largest.
        """
        centre = finite_array("mean", mean, (1,))
        matrix = finite_array("covariance", covariance, (1, 2))
        if matrix.ndim == 1:
            matrix = np.diag(matrix)
        if matrix.shape != (centre.size, centre.size):
            raise ValueError(
                f"covariance must have shape ({centre.size}, {centre.size}) to fit mean, got "
                f"{matrix.shape}"
            )
        if not np.allclose(matrix, matrix.T, rtol=1e-9, atol=0.0):
            raise ValueError("covariance must be symmetric")
        return cls(centre, _inverse_root(matrix))

    @classmethod
    def estimated(
        cls, gradients: npt.ArrayLike, *, estimator: str = "ledoit_wolf"
    ) -> GradientDistribution:
        """Distribution estimated from background gradients.

        Parameters
        ----------
        gradients : array_like, shape (m, d)
            Gradients of m >= 2 records that the attacker has.
        estimator : {"ledoit_wolf", "oas", "empirical"}
            Covariance estimator of scikit-learn.  The first two shrink towards a multiple of the
            identity and work with fewer samples than parameters; "empirical" needs m > d.

        Returns
        -------
        GradientDistribution
            The estimate.

        Raises
        ------
        ValueError
            For fewer than two gradients, a singular estimate (constant gradients; with
            ``estimator="empirical"`` also m <= d) or an unknown estimator.
        """
        with needed("GradientDistribution.estimated", "audit"):
            from sklearn import covariance as sklearn_covariance

        checks.choice("estimator", estimator, ESTIMATORS)
        sample = finite_array("gradients", gradients, (2,))
        size, dimension = sample.shape
        if size < 2:
            raise ValueError(f"gradients must have at least 2 rows, got {size}")
        if estimator == "empirical" and size <= dimension:
            raise ValueError(
                f"gradients must have more rows than columns with estimator='empirical', got shape "
                f"{sample.shape}; estimator='ledoit_wolf' does not need that"
            )
        centre = sample.mean(axis=0)
        if estimator == "empirical":
            matrix = np.atleast_2d(np.cov(sample, rowvar=False))
        elif estimator == "oas":
            matrix = sklearn_covariance.OAS().fit(sample).covariance_
        else:
            matrix = sklearn_covariance.LedoitWolf().fit(sample).covariance_
        return cls(centre, _inverse_root(matrix))

    @property
    def dimension(self) -> int:
        """Number of parameters d."""
        return int(self.mean.size)

    def whiten(self, vectors: FloatArray) -> FloatArray:
        """Return Σ^{-1/2} times vectors in the last axis."""
        return vectors @ self.whitening.T

    def susceptibility(self, gradients: npt.ArrayLike) -> FloatArray:
        """Susceptibility K = ‖Σ^{-1/2}(θ - μ)‖² of gradients.

        Parameters
        ----------
        gradients : array_like, shape (q, d)
            Gradients θ of the tested records.

        Returns
        -------
        ndarray, shape (q,)
            Squared Mahalanobis distances from the mean, >= 0.

        References
        ----------
        T. Leemann, M. Pawelczyk, G. Kasneci, Gaussian membership inference privacy (2023),
        Theorem 5.1.
        """
        points = finite_array("gradients", gradients, (2,))
        _same_dimension("gradients", points, self.dimension)
        return np.asarray(np.sum(self.whiten(points - self.mean) ** 2, axis=-1))


def _same_dimension(name: str, vectors: FloatArray, dimension: int) -> None:
    if vectors.shape[-1] != dimension:
        raise ValueError(
            f"{name} must have {dimension} entries in the last axis, as the distribution, got "
            f"shape {vectors.shape}"
        )


def _inverse_root(matrix: FloatArray) -> FloatArray:
    values, vectors = np.linalg.eigh(matrix)
    if not (values[-1] > 0.0 and values[0] > SINGULAR * values[-1]):
        raise ValueError(
            "covariance must be positive definite, got eigenvalues from "
            f"{values[0]:.3g} to {values[-1]:.3g}; remove parameters whose gradients never vary, "
            "or estimate with shrinkage"
        )
    root: FloatArray = (vectors / np.sqrt(values)) @ vectors.T
    return root
