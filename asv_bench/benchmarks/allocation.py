"""Random allocation: from nothing to one answer."""

import pyengine as pe

from .cold import clear_cache


class Allocation:
    params = ([100, 10_000], [1, 100])
    param_names = ("steps", "epochs")

    def setup(self, steps, epochs):
        self.time_epsilon(steps, epochs)

    def time_epsilon(self, steps, epochs):
        clear_cache()
        pe.epsilon(pe.dp_sgd_allocated(1.0, steps, epochs), 1e-5)

    def time_another(self, steps, epochs):
        pe.epsilon(pe.dp_sgd_allocated(1.0, steps, epochs), 1e-5)
