"""The worst strategy of a run that adapts, a filter, and records with norms of their own."""

import numpy as np

import pyengine as pe

MENU = [
    pe.GaussianMechanism(noise).poisson_sampled(rate) for noise, rate in ((1.0, 0.02), (2.0, 0.06))
]


class WorstStrategy:
    """40 steps of two choices, asked afresh."""

    params = ([1e-4, 1e-6],)
    param_names = ("tolerance",)

    def time_delta(self, tolerance):
        run = pe.adaptive(MENU, 40)
        pe.delta(run, 0.5, adjacency="remove", bounds=True, tolerance=tolerance)

    def time_gamma(self, tolerance):
        run = pe.adaptive(MENU, 40)
        pe.gamma_bound(run, 1e-3, bounds=True, tolerance=tolerance)


class Filters:
    """A filter is made once; its questions are sums."""

    def setup(self):
        self.filter = pe.Filter(MENU, pe.targets.EpsilonDelta(1.0, 1e-5))

    def time_making(self):
        pe.Filter(MENU, pe.targets.EpsilonDelta(1.0, 1e-5))

    def time_question(self):
        self.filter.allows(1)


class Records:
    """1,000 records with 200 norms each."""

    def setup(self):
        rng = np.random.default_rng(0)
        self.norms = rng.lognormal(-1.2, 0.8, (1000, 1)) * rng.lognormal(0.0, 0.5, (1000, 200))

    def time_pass(self):
        pe.individual(self.norms, noise_multiplier=1.0, rate=0.01, steps=5)
