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


class OtherMechanisms:
    params = (["few outcomes", "Laplace"], [10, 1000])
    param_names = ("mechanism", "steps")

    def setup(self, mechanism, steps):
        self.step = pe.LaplaceMechanism(1.0) if mechanism == "Laplace" else pe.GenericMechanism(1.0)
        self.time_delta(mechanism, steps)

    def time_delta(self, mechanism, steps):
        clear_cache()
        pe.delta(self.step.randomly_allocated(steps), 0.05, bounds=True)
