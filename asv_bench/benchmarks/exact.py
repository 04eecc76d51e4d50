"""Exact sums: time of compositions and duality, and what their errors are."""

import numpy as np

import pyengine as pe

from .cold import clear_cache

# mu = 1, 10 steps: gamma at kappa = P(S > 3.3), from a trinomial mixture of Irwin-Hall laws in ball
# arithmetic.
KAPPA, GAMMA = 0.00532690867521527493696617750183, 0.574800617677684589696889180655

MECHANISMS = {
    "laplace_100": pe.LaplaceMechanism(2.0).composed(100),
    "response_1000": pe.RandomizedResponse(0.6, 5).composed(1000),
    "discrete_gaussian_5": pe.DiscreteGaussianMechanism(2.0, 3).composed(5),
}


class Questions:
    """One answer with everything that it needs or with what is kept, and its bracket's width."""

    params = tuple(MECHANISMS)
    param_names = ("mechanism",)

    def setup(self, name):
        self.mechanism = MECHANISMS[name]
        pe.delta(self.mechanism, 0.5, method="exact")

    def time_delta(self, name):
        clear_cache()
        pe.delta(self.mechanism, 0.5, method="exact")

    def time_delta_kept(self, name):
        pe.delta(self.mechanism, 0.5, method="exact")

    def time_gamma(self, name):
        clear_cache()
        pe.gamma_bound(self.mechanism, 0.01, method="exact")

    def track_width(self, name):
        found = pe.gamma_bound(self.mechanism, 0.01, method="exact", bounds=True)
        return (found.upper - found.lower) / found.value


class Laplace:
    """Against an exact value."""

    def track_error(self):
        mechanism = pe.LaplaceMechanism(1.0).composed(10)
        return abs(pe.gamma_bound(mechanism, KAPPA, method="exact") / GAMMA - 1.0)


class Duality:
    """Conversion of a profile that is known as a function."""

    def setup(self):
        self.mechanism = pe.GaussianMechanism(1.0)
        self.kappa = np.array([1e-6, 1e-3, 0.1])

    def time_gamma_from_profile(self):
        pe.duality.gamma_from_profile(lambda e: pe.delta(self.mechanism, e), self.kappa)
