"""Analytic densities: time from nothing and with kept lines, and width of brackets."""

import pyengine as pe
import pyengine.analytic as an  # asv takes names such as `number` for settings

from .cold import clear_cache

DENSITIES = {
    "normal": -an.z * an.z / 2 - an.log(2 * an.pi) / 2,
    "logistic": -an.z - 2 * an.log(1 + an.exp(-an.z)),
    "secant": -an.log(an.pi * an.cosh(an.z)),
    "student": an.log(2 / (an.pi * an.sqrt(an.number(3)))) - 2 * an.log(1 + an.z * an.z / 3),
}
QUESTIONS = {"gamma_bound": 1e-3, "delta": 1.0, "epsilon": 1e-6}


class AnalyticDensities:
    """One bracket of both orders."""

    params = (list(DENSITIES), [1, "0.1"], list(QUESTIONS))
    param_names = ("density", "rate", "question")

    def setup(self, density, rate, question):
        log_p = DENSITIES[density]
        step = pe.from_analytic_densities(log_p, log_p.at(an.z - "0.3"))
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


class TinyAnalyticValues:
    """γ below what the usual law knows: time of the law that ends far out, and kept; width."""

    params = (["normal", "logistic"],)
    param_names = ("density",)
    timeout = 120

    def setup(self, density):
        log_p = DENSITIES[density]
        step = pe.from_analytic_densities(log_p, log_p.at(an.z - "0.3"))
        self.mechanism = step.poisson_sampled("0.1").composed(300)
        self.bounds = self.ask()

    def ask(self):
        return pe.gamma_bound(self.mechanism, 1e-90, bounds=True)

    def time_from_nothing(self, density):
        clear_cache()
        self.ask()

    def time_kept(self, density):
        self.ask()

    def track_width(self, density):
        return (self.bounds.upper - self.bounds.lower) / self.bounds.upper

    track_width.unit = "relative width"
