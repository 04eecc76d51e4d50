"""Analytic densities: time from nothing and with kept lines, and width of brackets."""

import pyengine as pe
from pyengine.analytic import cosh, exp, log, number, pi, sqrt, z

from .cold import clear_cache

DENSITIES = {
    "normal": -z * z / 2 - log(2 * pi) / 2,
    "logistic": -z - 2 * log(1 + exp(-z)),
    "secant": -log(pi * cosh(z)),
    "student": log(2 / (pi * sqrt(number(3)))) - 2 * log(1 + z * z / 3),
}
QUESTIONS = {"gamma_bound": 1e-3, "delta": 1.0, "epsilon": 1e-6}


class AnalyticDensities:
    """One bracket of both orders."""

    params = (list(DENSITIES), [1, "0.1"], list(QUESTIONS))
    param_names = ("density", "rate", "question")

    def setup(self, density, rate, question):
        log_p = DENSITIES[density]
        step = pe.from_analytic_densities(log_p, log_p.at(z - "0.3"))
        self.mechanism = (step if rate == 1 else step.poisson_sampled(rate)).composed(300)
        self.ask, self.x = getattr(pe, question), QUESTIONS[question]
        self.bounds = self.ask(self.mechanism, self.x, bounds=True)

    def time_from_nothing(self, density, rate, question):
        clear_cache()
        self.ask(self.mechanism, self.x, bounds=True)

    def time_kept(self, density, rate, question):
        self.ask(self.mechanism, self.x, bounds=True)

    def track_width(self, density, rate, question):
        return (self.bounds.upper - self.bounds.lower) / self.bounds.upper

    track_width.unit = "relative width"
