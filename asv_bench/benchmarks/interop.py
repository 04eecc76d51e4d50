"""Other descriptions of a mechanism: time, and how much is lost."""

from __future__ import annotations

import numpy as np

import pyengine as pe

RUN = pe.dp_sgd(0.8, 0.001, 10_000)
HISTORY = [(0.8, 0.001, 10_000)]
KAPPA = np.geomspace(1e-6, 0.5, 20)


class Profile:
    """γ from a callable profile of a symmetric pair, which loses nothing."""

    def setup(self) -> None:
        self.mechanism = pe.GaussianMechanism(1.5)
        self.profile = lambda epsilon: pe.delta(self.mechanism, epsilon)
        pe.gamma_bound(self.profile, KAPPA)

    def time_gamma(self) -> None:
        pe.gamma_bound(self.profile, KAPPA)

    def track_relative_error(self) -> float:
        truth = pe.gamma_bound(self.mechanism, KAPPA)
        return float(np.max(np.abs(pe.gamma_bound(self.profile, KAPPA) / truth - 1)))


class Samples:
    """γ between 200 samples of a trade-off function."""

    def setup(self) -> None:
        alpha = np.concatenate([[0.0], np.geomspace(1e-8, 1.0, 200)])
        self.samples = np.column_stack([alpha, pe.trade_off(RUN, alpha, adjacency="add")])
        pe.gamma_bound(self.samples, KAPPA)

    def time_gamma(self) -> None:
        pe.gamma_bound(self.samples, KAPPA)

    def track_relative_width(self) -> float:
        lower, _, upper = pe.gamma_bound(self.samples, KAPPA, bounds="estimated")
        return float(np.max(upper / lower - 1))


class Conversion:
    """What a history costs beyond the mechanism that it is."""

    def setup(self) -> None:
        pe.gamma_bound(HISTORY, 1e-3)

    def time_history(self) -> None:
        pe.gamma_bound(HISTORY, 1e-3)

    def time_mechanism(self) -> None:
        pe.gamma_bound(RUN, 1e-3)
