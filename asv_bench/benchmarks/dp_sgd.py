"""DP-SGD: time of the questions from nothing and with kept contours, error beside it."""

import numpy as np

import pyengine as pe

from .cold import clear_cache
from .workflows import WORKFLOWS

# noise, probability, steps, kappa and gamma(kappa) for adjacency "add".  Inversions in ball
# arithmetic, 32 digits agreed between two contours; entries of tests/data/dp_sgd_published.json
# (probabilities as published there, so two differ from the ones above in the last digits).
GAMMA = {
    "cifar10_resnet9": (10.5, 0.08192, 1000, 0.1, 0.150566299571587961480591575938),
    "snli_bert": (1.15, 0.00745593516, 405, 1e-5, 2.27762972072348048805023578059e-5),
    "imagenet": (2.5, 0.0127, 72_000, 1e-7, 7.93148374232928498676438809796e-5),
    "lebeda_table1": (0.8, 0.001, 10_000, 1e-5, 2.64448571374666825314746827588e-5),
    "heavy_tailed": (0.6, 1e-4, 10**6, 1e-7, 1.10472270144513541793764858812e-6),
    "full_batch": (4.0, 1.0, 100, 0.01, 0.568930568142324740356261872943),
}

# noise 0.8, probability 0.001, 10,000 steps, adjacency "remove", epsilon 1; same source.
DELTA_AT_1 = 5.31959137797466504814864298892e-7

SMALL = (1.0, 0.01, 2)  # two steps: only the convolution engine answers


def _error(value, truth):
    return abs(value / truth - 1.0)


class FromNothing:
    """One γ, with everything that the question needs."""

    params = (list(WORKFLOWS),)
    param_names = ("workflow",)

    def setup(self, name):
        self.mechanism = pe.dp_sgd(*WORKFLOWS[name])
        pe.gamma_bound(self.mechanism, 1e-5)

    def time_gamma(self, name):
        clear_cache()
        pe.gamma_bound(self.mechanism, 1e-5)

    def time_gamma_of_a_new_mechanism(self, name):
        clear_cache()
        pe.gamma_bound(pe.dp_sgd(*WORKFLOWS[name]), 1e-5)

    def time_gamma_bounds(self, name):
        clear_cache()
        pe.gamma_bound(self.mechanism, 1e-5, bounds=True)

    def time_epsilon(self, name):
        clear_cache()
        pe.epsilon(self.mechanism, 1e-6)

    def track_width_gamma(self, name):
        bounds = pe.gamma_bound(self.mechanism, 1e-5, bounds=True)
        return (bounds.upper - bounds.lower) / bounds.upper

    track_width_gamma.unit = "relative width"

    def track_error_gamma(self, name):
        noise, probability, steps, kappa, truth = GAMMA[name]
        clear_cache()
        return _error(pe.gamma_bound(pe.dp_sgd(noise, probability, steps), kappa), truth)

    track_error_gamma.unit = "relative error"


class Kept:
    """More questions to one mechanism."""

    def setup(self):
        self.mechanism = pe.dp_sgd(0.8, 0.001, 10_000)
        self.kappa = np.geomspace(1e-9, 0.5, 10_000)
        self.delta = np.geomspace(1e-9, 1e-3, 10_000)
        self.epsilon = np.linspace(0.0, 4.0, 10_000)
        pe.gamma_bound(self.mechanism, self.kappa)
        pe.epsilon(self.mechanism, self.delta)

    def time_scalar_gamma(self):
        pe.gamma_bound(self.mechanism, 1e-5)

    def time_scalar_gamma_bounds(self):
        pe.gamma_bound(self.mechanism, 1e-5, bounds=True)

    def time_scalar_delta(self):
        pe.delta(self.mechanism, 1.0)

    def time_10000_kappas(self):
        clear_cache()
        pe.gamma_bound(self.mechanism, self.kappa)

    def time_10000_deltas(self):
        clear_cache()
        pe.epsilon(self.mechanism, self.delta)

    def time_10000_kept_kappas(self):
        pe.gamma_bound(self.mechanism, self.kappa)

    def time_10000_kept_deltas(self):
        pe.epsilon(self.mechanism, self.delta)

    def time_10000_kept_epsilons(self):
        pe.delta(self.mechanism, self.epsilon)

    def track_interpolated_kappas(self):
        parts = np.array_split(self.kappa, 10)
        own = np.concatenate([pe.gamma_bound(self.mechanism, part) for part in parts])
        return float(np.abs(pe.gamma_bound(self.mechanism, self.kappa) / own - 1.0).max())

    track_interpolated_kappas.unit = "relative difference"

    def track_error_delta(self):
        return _error(pe.delta(self.mechanism, 1.0, adjacency="remove"), DELTA_AT_1)

    track_error_delta.unit = "relative error"


class Many:
    """10,000 runs in one call, on all cores, from nothing."""

    params = (["gamma_bound", "delta", "epsilon"], [False, True])
    param_names = ("question", "bounds")

    def setup(self, name, bounds):
        rng, n = np.random.default_rng(1), 10_000
        noise, rate = rng.uniform(0.9, 3.0, n), 10.0 ** rng.uniform(-2.5, -1.0, n)
        steps = (10.0 ** rng.uniform(3.1, 4.0, n)).astype(np.int64)
        self.runs = pe.dp_sgd(noise, rate, steps)
        self.x = 10.0 ** rng.uniform(-8.0, -2.0, n)
        if name == "delta":  # some standard deviations of the loss, about
            self.x = rng.uniform(0.5, 4.0, n) * rate * np.sqrt(steps) / noise

    def time_call(self, name, bounds):
        getattr(pe, name)(self.runs, self.x, bounds=bounds)

    def peakmem_call(self, name, bounds):
        self.time_call(name, bounds)


class Heterogeneous:
    """200 steps, each with its own noise multiplier."""

    def setup(self):
        steps = [pe.dp_sgd(noise, 0.05, 1) for noise in np.linspace(2.0, 4.0, 200)]
        self.mechanism = pe.compose(*steps)
        # nearly the same law as one kind of step and as 200 kinds around it, 2^-51 apart
        self.plain = pe.dp_sgd(2.0, 0.05, 201)
        self.split = pe.compose(*(pe.dp_sgd(2.0 + k * 2.0**-51, 0.05, 1) for k in range(-100, 101)))
        pe.gamma_bound(self.mechanism, 1e-3)

    def time_gamma(self):
        clear_cache()
        pe.gamma_bound(self.mechanism, 1e-3)

    def track_split_against_plain(self):
        return _error(pe.gamma_bound(self.split, 1e-3), pe.gamma_bound(self.plain, 1e-3))

    track_split_against_plain.unit = "relative difference"


class Convolution:
    """Few steps; accuracy against one step, which has a closed form."""

    def setup(self):
        self.mechanism = pe.dp_sgd(*SMALL)
        self.one = pe.dp_sgd(*SMALL[:2], 1)

    def time_gamma(self):
        clear_cache()
        pe.gamma_bound(self.mechanism, 1e-3, method="convolution")

    def track_error_one_step(self):
        value = pe.gamma_bound(self.one, 1e-3, method="convolution")
        return _error(value, pe.gamma_bound(self.one, 1e-3, method="closed_form"))

    track_error_one_step.unit = "relative error"
