"""The noncentral chi-squared distribution and its compositions: time, error beside it."""

import csv
import gzip
import math
from pathlib import Path

import mpmath
import numpy as np

from pyengine import special

SIZE = 4096
SETTINGS = {
    "1, 0.36": (1.0, 0.36),
    "10, 10": (10.0, 10.0),
    "1e4, 1e4": (1e4, 1e4),
    "650, 3.25e5": (650.0, 3.25e5),
    "7.96e5, 7.96e8": (7.96e5, 7.96e8),
    "1e9, 1e10": (1e9, 1e10),
}
FUNCTIONS = ["ncx2_cdf", "ncx2_sf", "ncx2_logsf", "ncx2_pdf", "ncx2_ppf", "ncx2_isf_exp"]
DATA = Path(__file__).parents[2] / "tests" / "data" / "ncx2_reference.csv.gz"


def _arguments(name, df, nc):
    rng = np.random.default_rng(30)
    if name == "ncx2_ppf":
        return rng.random(SIZE)
    if name.endswith("_exp"):
        return -np.exp(rng.uniform(math.log(1e-3), math.log(1e4), SIZE))
    return np.abs(df + nc + math.sqrt(2 * df + 4 * nc) * rng.uniform(-8, 8, SIZE))


class Chi2:
    params = (FUNCTIONS, list(SETTINGS))
    param_names = ("function", "df, nc")

    def setup(self, name, setting):
        self.function = getattr(special, name)
        self.df, self.nc = SETTINGS[setting]
        self.array = _arguments(name, self.df, self.nc)
        self.scalar = float(self.array[0])
        self.function(self.array, self.df, self.nc)

    def time_array(self, name, setting):
        self.function(self.array, self.df, self.nc)

    def time_scalar(self, name, setting):
        self.function(self.scalar, self.df, self.nc)


class Chi2Error:
    """Largest error over the reference points, in units of 2^-52."""

    params = (["tail", "log_tail", "log_pdf"],)
    param_names = ("quantity",)

    def track_error(self, quantity):
        worst = 0.0
        with gzip.open(DATA, "rt", encoding="ascii") as file, mpmath.workdps(40):
            for row in csv.DictReader(file):
                truth = mpmath.mpf(row[quantity])
                args = float(row["x"]), float(row["df"]), float(row["nc"])
                if quantity == "tail":
                    if truth < mpmath.mpf("1e-300"):
                        continue
                    value = getattr(special, f"ncx2_{row['side']}")(*args)
                    error = abs(mpmath.mpf(value) / truth - 1)
                elif quantity == "log_tail":
                    value = getattr(special, f"ncx2_log{row['side']}")(*args)
                    error = abs(mpmath.mpf(value) / truth - 1)
                else:
                    value = special.ncx2_logpdf(*args)
                    error = abs(mpmath.mpf(value) - truth) / max(1, abs(truth))
                worst = max(worst, float(error))
        return worst * 2.0**52

    track_error.unit = "2^-52"
    track_error.timeout = 120


class Compositions:
    params = (["log_one_step_sgd_beta", "log_relaxed_beta", "marcum_q", "marcum_q_inv"],)
    param_names = ("function",)

    def setup(self, name):
        self.function = getattr(special, name)
        p = np.random.default_rng(31).random(SIZE)
        self.arguments = {
            "log_one_step_sgd_beta": (p, 7.96e5, 1e3, 7.96e5),
            "log_relaxed_beta": (p, 1e6, 40.0),
            "marcum_q": (10.0, 100.0, 100.0 + 8 * (p - 0.5)),
            "marcum_q_inv": (10.0, 100.0, p),
        }[name]
        self.function(*self.arguments)

    def time_array(self, name):
        self.function(*self.arguments)


class Threads:
    def setup(self):
        rng = np.random.default_rng(32)
        self.x = 2e4 + 300 * rng.standard_normal(400_000)
        special.threaded(special.ncx2_cdf, self.x, 1e4, 1e4)

    def time_one_thread(self):
        special.ncx2_cdf(self.x, 1e4, 1e4)

    def time_all_threads(self):
        special.threaded(special.ncx2_cdf, self.x, 1e4, 1e4)
