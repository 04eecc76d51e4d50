"""The lower bound for shuffled batches."""

import pyengine as pe

from .cold import clear_cache


class Shuffled:
    params = ([1, 100],)
    param_names = ("epochs",)

    def setup(self, epochs):
        self.time_epsilon(epochs)

    def time_epsilon(self, epochs):
        pe.epsilon(pe.shuffled_lower_bound(1.0, 100, epochs), 1e-6, bounds=True)


class Randomizer:
    """Shuffled messages of local randomizers, one round and several."""

    params = ([1, 20],)
    param_names = ("rounds",)

    def setup(self, rounds):
        self.run = pe.ShuffledRandomizer(1.0, 1000).composed(rounds)

    def time_epsilon(self, rounds):
        clear_cache()
        pe.epsilon(self.run, 1e-6, bounds=True)

    def track_relative_width(self, rounds):
        lower, value, upper = pe.epsilon(self.run, 1e-6, bounds=True)
        return (upper - lower) / value
