"""Certified bounds of DP-SGD: time from nothing and with kept lines, and width of the bounds."""

import pyengine as pe

from .cold import clear_cache

RUNS = {
    "dp_sgd_1000": pe.dp_sgd(1.0, 0.01, 1000),
    "dp_sgd_10000": pe.dp_sgd(0.8, 0.001, 10_000),
    "dp_sgd_72000": pe.dp_sgd(2.5, 0.0128, 72_000),
    "few_steps": pe.dp_sgd(5.3, 0.11, 17),
    "rare_large_losses": pe.dp_sgd(0.3, 1e-5, 1000),  # lines of divided laws
    "few_rare_steps": pe.dp_sgd(1.0, 1e-4, 6),  # sector laws
    "epochs": pe.dp_sgd_allocated(1.0, 16, epochs=3),  # the same of epochs of random allocation
    "beside_response": pe.compose(pe.dp_sgd(1.0, 0.01, 1000), pe.RandomizedResponse(0.75)),
}


class Epsilon:
    """ε at δ = 1e-5 between proven bounds."""

    params = (list(RUNS),)
    param_names = ("run",)

    def setup(self, name):
        self.run = RUNS[name]
        self.bounds = self.ask()

    def ask(self):
        return pe.epsilon(self.run, 1e-5, method="certified", bounds=True)

    def time_from_nothing(self, name):
        clear_cache()
        self.ask()

    def time_kept(self, name):
        self.ask()

    def time_estimate_from_nothing(self, name):
        clear_cache()
        pe.epsilon(self.run, 1e-5, bounds=True)

    def track_width(self, name):
        return (self.bounds.upper - self.bounds.lower) / self.bounds.upper

    track_width.unit = "relative width"
