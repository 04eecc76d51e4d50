"""Names of mechanisms and of their parameters, as files and the command line have them.

Every public constructor can be named, and every word of the command line: whoever comes from Python
writes ``dp_sgd`` first.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from pyengine import _checks
from pyengine.kinds import named_kinds

__all__ = ["DP_SGD", "PARAMETERS", "kind_of", "renamed", "words"]

DP_SGD = "dp_sgd"  # a Gaussian whose sampling probability must be said
FUNCTIONS = (
    "from_analytic_densities",
    "from_distributions",
    "from_log_likelihood_ratio",
    "from_profile",
    "AnalyticPair",
    "DistributionPair",
    "LikelihoodRatio",
)
COMPOSITE = (
    "compose",
    "Composition",
    "PoissonSampled",
    "SampledWithoutReplacement",
    "TruncatedPoissonSampled",
)
NESTED = (
    "GaussianReleases",
    "Releases",
    "RenyiCurve",
    "RepeatAndSelect",
    "RevealedMixture",
    "ZeroConcentrated",
    "repeat_and_select",
    "revealed_mixture",
)
PARAMETERS = {"noise": "noise_multiplier", "p": "sampling_probability"}


def words() -> dict[str, str]:
    """Return the words of files and command lines, each with the name of a class."""
    found = {str(kind.word): name for name, kind in named_kinds().items()}
    return {**found, DP_SGD: "GaussianMechanism"}


def kind_of(word: object) -> str:
    """Return the name of the class that a word means.

    Parameters
    ----------
    word : str
        A name of a class or one of `words`.

    Raises
    ------
    ValueError
        For anything else; constructors that take functions or mechanisms are told from misspelt
        names.
    """
    known, named = words(), tuple(named_kinds())
    if isinstance(word, str) and word in named:
        return word
    if isinstance(word, str) and word in known:
        return known[word]
    if word in FUNCTIONS:
        raise ValueError(
            f"mechanism {word!r} is made of functions or distributions, which only Python can hold"
        )
    if word in COMPOSITE:
        raise ValueError(
            f"mechanism {word!r} is said by its parts: phases, steps, sampling_probability, or "
            "batch_size and dataset_size"
        )
    if word in NESTED:
        raise ValueError(f"mechanism {word!r} is one that only Python and JSON can hold")
    hint = _checks.did_you_mean(word, (*known, *named))
    raise ValueError(
        f"mechanism must be one of {', '.join(known)}, or the name of a class such as "
        f"{named[1]}; got {word!r}{hint}"
    )


def renamed(table: Mapping[str, Any], names: Mapping[str, str]) -> dict[str, Any]:
    """Return a table with one name for each of its parameters.

    Parameters
    ----------
    table : mapping
        What a file or a command line holds.
    names : mapping
        From other names to those that are wanted.

    Raises
    ------
    ValueError
        If a parameter is there under two names.
    """
    found: dict[str, Any] = {}
    for key, value in table.items():
        name = names.get(key, key)
        if name in found:
            raise ValueError(f"{name} is given twice, once as {key!r}")
        found[name] = value
    return found
