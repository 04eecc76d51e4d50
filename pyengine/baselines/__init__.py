"""Bounds on reconstruction that came before γ(κ), to be compared with it."""

from pyengine.baselines.information import (
    fano_success,
    gaussian_information,
    orthogonal_information,
)

__all__ = ["fano_success", "gaussian_information", "orthogonal_information"]
