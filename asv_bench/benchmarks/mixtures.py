"""Steps whose sides are mixtures of normals: time from nothing, and errors against 25 digits."""

import time

import numpy as np

import pyengine as pe

from .cold import clear_cache

MIXTURE = pe.GaussianMixtureMechanism(2, [0, 1, 2], ["0.81", "0.18", "0.01"]).composed(100)
# delta(2) under remove, 25 digits of it, in tests/data/gaussian_mixture.json
EPSILON, DELTA = 2.0, 0.03342521031565289309798733005

MECHANISMS = {
    "mixture": (MIXTURE, "remove"),
    "group_of_3": (pe.dp_sgd(1.0, 0.01, 1000, group_size=3), "add_remove"),
    "substitute": (pe.dp_sgd(1.0, 0.01, 1000), "substitute"),
    "truncated": (
        pe.GaussianMechanism(1.0)
        .truncated_poisson_sampled(0.01, batch_size=120, dataset_size=10_000)
        .composed(1000),
        "add_remove",
    ),
}


class Cold:
    """One answer with everything that it needs."""

    params = tuple(MECHANISMS)
    param_names = ("mechanism",)

    def setup(self, name):
        self.mechanism, self.adjacency = MECHANISMS[name]
        pe.delta(self.mechanism, 1.0, adjacency=self.adjacency)

    def time_gamma(self, name):
        clear_cache()
        pe.gamma_bound(self.mechanism, 1e-3, adjacency=self.adjacency)

    def time_epsilon(self, name):
        clear_cache()
        pe.epsilon(self.mechanism, 1e-5, adjacency=self.adjacency)

    def track_width(self, name):
        found = pe.delta(
            self.mechanism, 1.0, adjacency=self.adjacency, method="spectral", bounds="estimated"
        )
        return (found.upper - found.lower) / found.value


def track_error_mixture():
    return abs(pe.delta(MIXTURE, EPSILON, adjacency="remove") / DELTA - 1.0)


# kinds that share a line, and digits of δ(1) under add_remove by `pyengine.reference`
MIXED = {
    "gaussian_laplace": pe.GaussianMechanism(2.0).composed(10)
    + pe.LaplaceMechanism(2.0).composed(5),
    "sgd_response": pe.dp_sgd(1.1, 0.015625, 400) + pe.RandomizedResponse(0.75).composed(5),
    "five_kinds": pe.dp_sgd(1.0, 0.015625, 500)
    + pe.LaplaceMechanism(3.0).composed(5)
    + pe.ExponentialMechanism(0.25).composed(8)
    + pe.DiscreteGaussianMechanism(3)
    + pe.GenericMechanism(0.25, 1e-6),
}
TRUTHS = {"gaussian_laplace": 0.47129610222332814, "sgd_response": 0.63900814869944912}


class Mixed:
    """One answer about several kinds on one line, with everything that it needs."""

    params = tuple(MIXED)
    param_names = ("mechanism",)

    def setup(self, name):
        self.mechanism = MIXED[name]
        pe.delta(self.mechanism, 1.0)

    def time_gamma(self, name):
        clear_cache()
        pe.gamma_bound(self.mechanism, 1e-3)

    def time_epsilon(self, name):
        clear_cache()
        pe.epsilon(self.mechanism, 1e-5)

    def track_width(self, name):
        found = pe.delta(self.mechanism, 1.0, bounds=True)
        return (found.upper - found.lower) / found.value


class MixedErrors:
    """Errors of answers about several kinds on one line."""

    params = tuple(TRUTHS)
    param_names = ("mechanism",)

    def track_error(self, name):
        return abs(pe.delta(MIXED[name], 1.0) / TRUTHS[name] - 1.0)


def drawn(seed):
    """Up to four kinds of steps beside each other."""
    rng = np.random.default_rng(seed)
    kinds = [
        pe.dp_sgd(
            rng.uniform(0.7, 3.0), 10.0 ** rng.uniform(-3.0, -1.0), int(rng.integers(50, 2000))
        ),
        pe.GaussianMechanism(rng.uniform(1.0, 10.0)).composed(int(rng.integers(1, 30))),
        pe.LaplaceMechanism(rng.uniform(1.0, 8.0)).composed(int(rng.integers(1, 60))),
        pe.LaplaceMechanism(rng.uniform(0.6, 4.0)).poisson_sampled(0.05).composed(200),
        pe.ExponentialMechanism(rng.uniform(0.05, 1.0)).composed(int(rng.integers(1, 40))),
        pe.RandomizedResponse(rng.uniform(0.55, 0.9)).composed(int(rng.integers(1, 8))),
    ]
    some = rng.choice(len(kinds), int(rng.integers(1, 5)), replace=False)
    return pe.compose(*(kinds[i] for i in some))


class Later:
    """Later γ of random compositions, whose lines are kept, between proven bounds."""

    mechanisms = tuple(drawn(seed) for seed in range(30))
    levels = tuple(np.geomspace(1e-5, 0.3, 12).tolist())

    def setup(self):
        for mechanism in self.mechanisms:
            for level in self.levels:
                pe.gamma_bound(mechanism, level, bounds=True)
        self.again = [level * 1.01 for level in self.levels]

    def time_gamma(self):
        for mechanism in self.mechanisms:
            for level in self.again:
                pe.gamma_bound(mechanism, level, bounds=True)

    def track_median(self):
        times = []
        for mechanism in self.mechanisms:
            for level in self.again:
                begin = time.process_time()
                pe.gamma_bound(mechanism, level, bounds=True)
                times.append(time.process_time() - begin)
        return float(np.median(times))

    track_median.unit = "seconds"

    def track_width(self):
        found = [pe.gamma_bound(x, self.again[6], bounds=True) for x in self.mechanisms]
        return float(np.median([(each.upper - each.lower) / each.upper for each in found]))

    track_width.unit = "relative width"
