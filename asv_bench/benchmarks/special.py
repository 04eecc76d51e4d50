"""The normal distribution: time for arrays and scalars, error beside it."""

import math

import mpmath
import numpy as np

from pyengine import special

SIZE = 10_000


def _arguments(name, size):
    rng = np.random.default_rng(20)
    if name == "ndtri":
        return np.exp(rng.uniform(math.log(1e-300), 0.0, size))
    if name == "ndtri_exp":
        return -np.exp(rng.uniform(math.log(1e-3), math.log(1e4), size))
    return rng.uniform(-37.0, 8.0, size)


def _truth(name, x):
    """Value in 40 digits; for the quantiles the start does not enter the result."""
    x = mpmath.mpf(x)
    if name == "normal_pdf":
        return mpmath.npdf(x)
    if name == "ndtr":
        return mpmath.ncdf(x)
    if name == "log_ndtr":
        return mpmath.log(mpmath.ncdf(x))
    log_p = mpmath.log(x) if name == "ndtri" else x
    start = special.ndtri_exp(float(log_p))
    return mpmath.findroot(lambda t: mpmath.log(mpmath.ncdf(t)) - log_p, start)


class Normal:
    params = (["normal_pdf", "ndtr", "log_ndtr", "ndtri", "ndtri_exp"],)
    param_names = ("function",)

    def setup(self, name):
        self.function = getattr(special, name)
        self.array = _arguments(name, SIZE)
        self.scalar = float(self.array[0])
        self.function(self.array)

    def time_array(self, name):
        self.function(self.array)

    def time_scalar(self, name):
        self.function(self.scalar)

    def track_error(self, name):
        worst = 0.0
        with mpmath.workdps(40):
            for x in map(float, self.array[:200]):
                truth = _truth(name, x)
                error = abs(mpmath.mpf(self.function(x)) - truth) / math.ulp(float(truth))
                worst = max(worst, float(error))
        return worst

    track_error.unit = "ulp"


class Import:
    def timeraw_package(self):
        return "import pyengine"

    def timeraw_numpy(self):
        return "import numpy"
