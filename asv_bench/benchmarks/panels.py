"""Laws on panels: time from nothing and with kept laws, and width of brackets."""

import pyengine as pe

from .cold import clear_cache

STEPS = (10, 100, 1000, 10_000)
MECHANISMS = {
    "sampled": pe.LaplaceMechanism(1.0).poisson_sampled(0.1),
    "plain": pe.LaplaceMechanism(2.0),
    "rare": pe.LaplaceMechanism(0.5).poisson_sampled(1e-3),
    "steep": pe.LaplaceMechanism(0.3).poisson_sampled(1e-3),
}
QUESTIONS = {"gamma_bound": 1e-3, "delta": 0.05, "epsilon": 1e-6}


class Panels:
    """One bracket of both orders."""

    params = (list(MECHANISMS), list(STEPS), list(QUESTIONS))
    param_names = ("mechanism", "steps", "question")

    def setup(self, name, steps, question):
        self.mechanism = MECHANISMS[name].composed(steps)
        self.ask, self.x = getattr(pe, question), QUESTIONS[question]
        self.bounds = self.ask(self.mechanism, self.x, bounds=True)

    def time_from_nothing(self, name, steps, question):
        clear_cache()
        self.ask(self.mechanism, self.x, bounds=True)

    def time_kept(self, name, steps, question):
        self.ask(self.mechanism, self.x, bounds=True)

    def track_width(self, name, steps, question):
        return (self.bounds.upper - self.bounds.lower) / self.bounds.upper

    track_width.unit = "relative width"


KINDS = {
    "one": pe.LaplaceMechanism(0.3).poisson_sampled(1e-3).composed(2000),
    "two": pe.LaplaceMechanism(1.0).poisson_sampled(0.1).composed(300)
    + pe.LaplaceMechanism(2.0).poisson_sampled(0.2).composed(500),
}


class LaplaceLines:
    """One bracket of both orders on vertical lines: little noise, and two kinds of steps."""

    params = (list(KINDS), list(QUESTIONS))
    param_names = ("kinds", "question")

    def setup(self, kinds, question):
        self.mechanism = KINDS[kinds]
        self.ask, self.x = getattr(pe, question), QUESTIONS[question]
        self.bounds = self.ask(self.mechanism, self.x, bounds=True)

    def time_from_nothing(self, kinds, question):
        clear_cache()
        self.ask(self.mechanism, self.x, bounds=True)

    def time_kept(self, kinds, question):
        self.ask(self.mechanism, self.x, bounds=True)

    def track_width(self, kinds, question):
        return (self.bounds.upper - self.bounds.lower) / self.bounds.upper

    track_width.unit = "relative width"
