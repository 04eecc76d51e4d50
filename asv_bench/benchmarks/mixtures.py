"""Steps whose sides are mixtures of normals: time from nothing, and errors against 25 digits."""

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
