"""Specifications shared by several tests of tables."""

from __future__ import annotations

ONE_RUN = """
[[workflow]]
name = "run"
noise_multiplier = 1.0
sampling_probability = 0.01
steps = 1000
"""

GAMMA = '[gamma_bound]\nkappa = [1e-3]\nadjacency = ["add"]\n'

LAPLACE = """
[[workflow]]
name = "laplace"
mechanism = "LaplaceMechanism"
noise_multiplier = ["1/2", 2]
sampling_probability = "0.5"
steps = [1, 10]
"""

PHASES = """
[[workflow]]
name = "two phases"
[[workflow.phase]]
mechanism = "GaussianMechanism"
noise_multiplier = "1.5"
steps = 3
[[workflow.phase]]
mechanism = "GaussianMechanism"
noise_multiplier = 2
batch_size = [10, 20]
dataset_size = 100
steps = 5
"""

EVERY_KIND = """
[[workflow]]
name = "curve"
mechanism = "renyi_curve"
orders = [1.5, 2, 4]
values = [0.1, 0.2, inf]
steps = 2
[[workflow]]
name = "first above"
mechanism = "AboveThreshold"
noise_multiplier = 4
threshold_noise = 4
queries = 3
steps = 1
[[workflow]]
name = "likely"
mechanism = "likely_answer"
noise = 4
missed = 0.01
steps = 2
[[workflow]]
name = "Skellam"
mechanism = "skellam"
noise = 3
steps = 2
[[workflow]]
name = "sum"
mechanism = "discrete_gaussian_sum"
noise = 2
summands = 4
steps = 2
[[workflow]]
name = "concentrated"
mechanism = "zero_concentrated"
rho = "1/50"
steps = 2
[[workflow]]
name = "tuned"
mechanism = "repeat_and_select"
runs = "fixed"
number = 3
base = [{ noise = 2, p = "0.1", steps = 4 }]
[[workflow]]
name = "either"
mechanism = "revealed_mixture"
weights = ["1/10", "9/10"]
mechanisms = [{ noise = 1 }, { noise = 4 }]
steps = 2
[[workflow]]
name = "one sample"
mechanism = "releases"
parts = [{ noise = 2 }, { mechanism = "laplace", noise = 3 }]
[[workflow]]
name = "several"
mechanism = "gaussian_releases"
noise_multipliers = [2, "7/2"]
steps = 4
[[workflow]]
name = "discrete Gaussian"
mechanism = "DiscreteGaussianMechanism"
noise_multiplier = "2"
sensitivity = 3
steps = 1
[[workflow]]
name = "discrete Laplace"
mechanism = "DiscreteLaplaceMechanism"
noise_multiplier = "2"
steps = 1
[[workflow]]
name = "randomized response"
mechanism = "RandomizedResponse"
truth_probability = "3/4"
categories = 5
steps = 1
[[workflow]]
name = "generic"
mechanism = "GenericMechanism"
epsilon = "1"
delta = "1e-6"
steps = 1
[[workflow]]
name = "shuffled"
mechanism = "shuffled_randomizer"
local_epsilon = "1/2"
users = 10
steps = 2

[[workflow]]
name = "exponential"
mechanism = "exponential"
epsilon = "1/2"
steps = 3
[[workflow]]
name = "finite"
mechanism = "FinitePair"
p = ["1/4", "3/4"]
q = [["3/4", 0.25], ["1/2", "1/2"]]
steps = 7
[[workflow]]
name = "mixture"
mechanism = "gaussian_mixture"
noise = 2
shifts = [0, 1]
weights = ["0.9", "0.1"]
steps = 3
[[workflow]]
name = "allocated"
mechanism = "dp_sgd_allocated"
noise = 2
steps_per_epoch = [10, 20]
epochs = 3
[[workflow]]
name = "group"
noise = 2
p = "0.1"
group_size = 3
steps = 4
[[workflow]]
name = "cut"
noise = 2
p = "0.1"
truncated_batch_size = 15
dataset_size = 100
steps = 4
"""
