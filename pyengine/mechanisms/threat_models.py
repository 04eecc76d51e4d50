"""Threat models: what the adversary knows."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from pyengine._support import checks

__all__ = ["THREAT_MODELS", "DifferentialPrivacy", "Relaxed", "ThreatModel", "threat_model_of"]

THREAT_MODELS = ("dp", "relaxed")
LARGEST_DIMENSION = 1_000_000_000


class ThreatModel:
    """Base of the threat models; made by its subclasses only."""


@dataclass(frozen=True)
class DifferentialPrivacy(ThreatModel):
    """The adversary of differential privacy, who knows everything but whether the record took part.

    The word for it is ``"dp"``.
    """


@dataclass(frozen=True)
class Relaxed(ThreatModel):
    """An adversary who does not know the record, and can only reject that it was absent.

    They know the data without the record and the noise, and test whether the output lies too far
    from where it would lie without the record: only the length of the difference can be used.

    Parameters
    ----------
    dimension : int
        Dimension d of a Gaussian query as the adversary meets it, in [1, 10^9].  At 1, the default
        and the worst case, data confine the record's influence to one coordinate.  It is a part of
        the threat model, not of the mechanism: the guarantee of differential privacy does not
        depend on it.  Laplace mechanisms are covered in one dimension.
    combination : {"weighted", "mean"}
        How the adversary adds up the outputs of several Gaussian steps: weighted by 1/noise², which
        is optimal, or with equal weights, as in Lemma 8 of the paper.  Both are the same if all
        steps have the same noise.

    Notes
    -----
    The word ``"relaxed"`` stands for ``Relaxed()``.  A guarantee against this adversary is *not*
    differential privacy: it fails against one who learns about the record elsewhere, and it is not
    closed under adaptive composition.  Report it beside the differential privacy of the same
    mechanism, never instead of it.

    References
    ----------
    G. Kaissis, A. Ziller, S. Kolek, A. Riess, D. Rueckert, Optimal privacy guarantees for a relaxed
    threat model, NeurIPS 2023, Section 3.

    Examples
    --------
    >>> import pyengine as pe
    >>> model = pe.threat_models.Relaxed(dimension=30)
    >>> mechanism = pe.GaussianMechanism(noise_multiplier=1.0)
    >>> print(f"{pe.trade_off(mechanism, 0.1, threat_model=model):.6f}")
    0.873415
    >>> print(f"{pe.trade_off(mechanism, 0.1):.6f}")
    0.610856
    """

    dimension: int = 1
    combination: str = "weighted"

    def __post_init__(self) -> None:
        dimension = checks.count("dimension", self.dimension, least=1, most=LARGEST_DIMENSION)
        object.__setattr__(self, "dimension", dimension)
        checks.choice("combination", self.combination, ("weighted", "mean"))


_BY_WORD = dict(zip(THREAT_MODELS, (DifferentialPrivacy(), Relaxed()), strict=True))


def threat_model_of(value: Any) -> ThreatModel:
    """Return the threat model of a word; a threat model is returned as it is."""
    if isinstance(value, ThreatModel):
        return value
    if isinstance(value, str) and value in _BY_WORD:
        return _BY_WORD[value]
    raise ValueError(
        "threat_model must be one of 'dp', 'relaxed' or an object of pyengine.threat_models; got "
        f"{checks.shown(value)}"
    )
