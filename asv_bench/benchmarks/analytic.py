"""Analytic densities: time from nothing and with kept lines, and width of brackets."""

import time

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


def of(density, rate):
    """300 steps of a density and its shift, on samples where the rate is not 1."""
    log_p = DENSITIES[density]
    step = pe.from_analytic_densities(log_p, log_p.at(an.z - "0.3"))
    return (step if rate == 1 else step.poisson_sampled(rate)).composed(300)


def relative_width(bounds):
    return (bounds.upper - bounds.lower) / bounds.upper


class AnalyticDensities:
    """One bracket of both orders."""

    params = (list(DENSITIES), [1, "0.1"], list(QUESTIONS))
    param_names = ("density", "rate", "question")

    def setup(self, density, rate, question):
        self.mechanism, self.ask = of(density, rate), getattr(pe, question)
        self.x = QUESTIONS[question]
        self.ask(of("normal", 1), self.x, bounds=True)  # what is imported

    def time_from_nothing(self, density, rate, question):
        clear_cache()
        self.ask(self.mechanism, self.x, bounds=True)


class KeptAnalyticDensities:
    """All of the questions to one mechanism once its lines are kept; width of their brackets."""

    params = (list(DENSITIES), [1, "0.1"])
    param_names = ("density", "rate")

    def setup(self, density, rate):
        self.mechanism = of(density, rate)
        self.ask()

    def ask(self):
        return [getattr(pe, q)(self.mechanism, x, bounds=True) for q, x in QUESTIONS.items()]

    def time_kept(self, density, rate):
        self.ask()


class Widths:
    """Relative widths of brackets, all of which one process finds."""

    params = (list(DENSITIES), [1, "0.1"], list(QUESTIONS))
    param_names = ("density", "rate", "question")

    def setup_cache(self):
        return {
            (density, rate, question): relative_width(getattr(pe, question)(run, x, bounds=True))
            for density in DENSITIES
            for rate in (1, "0.1")
            for run in [of(density, rate)]
            for question, x in QUESTIONS.items()
        }

    def track_width(self, widths, density, rate, question):
        return widths[density, rate, question]

    track_width.unit = "relative width"


def tiny(density):
    return pe.gamma_bound(of(density, "0.1"), 1e-90, bounds=True)


class TinyAnalyticValues:
    """γ below what the usual law knows: from nothing the law that ends far out; width.

    Seconds and width are of one bracket, as a law takes many seconds.
    """

    params = (["normal", "logistic"],)
    param_names = ("density",)

    def setup_cache(self):
        pe.gamma_bound(of("normal", 1), 1e-3, bounds=True)  # what is imported
        found = {}
        for density in self.params[0]:
            clear_cache()
            began = time.perf_counter()
            bounds = tiny(density)
            found[density] = time.perf_counter() - began, relative_width(bounds)
        return found

    def track_time_from_nothing(self, found, density):
        return found[density][0]

    track_time_from_nothing.unit = "seconds"

    def track_width(self, found, density):
        return found[density][1]

    track_width.unit = "relative width"


class KeptTinyAnalyticValues:
    """The same once that law is kept, which takes as long whatever the law."""

    def setup(self):
        tiny("normal")

    def time_kept(self):
        tiny("normal")
