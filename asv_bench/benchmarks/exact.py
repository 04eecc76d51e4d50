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

# Runs that are kept, and what floats they are asked.
KEPT = {
    "laplace_10": pe.LaplaceMechanism(1.0).composed(10),
    "generic_20": pe.GenericMechanism(0.5, 1e-9).composed(20),
    "response_10": pe.RandomizedResponse(0.7).composed(10),
    "discrete_gaussian_5": MECHANISMS["discrete_gaussian_5"],
}
DRAWN = {
    "gamma_bound": lambda draws: 10.0 ** -draws.uniform(0.0, 9.0, 100),
    "delta": lambda draws: draws.uniform(0.0, 5.0, 100),
    "epsilon": lambda draws: 10.0 ** -draws.uniform(1.0, 7.0, 100),
}


class Questions:
    """One answer with everything that it needs, and its bracket's width."""

    params = tuple(MECHANISMS)
    param_names = ("mechanism",)

    def setup(self, name):
        self.mechanism = MECHANISMS[name]
        pe.delta(self.mechanism, 0.5, method="exact")

    def time_delta(self, name):
        clear_cache()
        pe.delta(self.mechanism, 0.5, method="exact")

    def time_gamma(self, name):
        clear_cache()
        pe.gamma_bound(self.mechanism, 0.01, method="exact")

    def track_width(self, name):
        found = pe.gamma_bound(self.mechanism, 0.01, method="exact", bounds=True)
        return (found.upper - found.lower) / found.value


class Kept:
    """A hundred random floats of a run that is kept, each a question, and their widest bracket."""

    params = (tuple(KEPT), tuple(DRAWN))
    param_names = ("mechanism", "question")

    def setup(self, name, question):
        self.mechanism, self.ask = KEPT[name], getattr(pe, question)
        self.at = DRAWN[question](np.random.default_rng(20261128))
        self.floats = self.at.tolist()
        self.ask(self.mechanism, self.floats[0], method="exact")

    def time_hundred(self, name, question):
        for x in self.floats:
            self.ask(self.mechanism, x, method="exact")

    def track_width(self, name, question):
        found = self.ask(self.mechanism, self.at, method="exact", bounds=True)
        known = (found.value > 0.0) & (found.upper < np.inf)
        return float(((found.upper - found.lower)[known] / found.value[known]).max())


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
