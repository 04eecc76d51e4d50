"""Names of mechanisms in run files and on the command line, and their constructors.

Every public constructor can also be named as in Python.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from pyengine import mechanisms
from pyengine._support import checks
from pyengine._support.caches import cached_property, kept
from pyengine.laws.kinds import Kind, named_kinds
from pyengine.workbench.runs.matrices import matrix_of_file, votes_of_file

__all__ = ["ALIASES", "ALLOCATED", "DP_SGD", "MATRIX", "Maker", "maker_of", "makers", "renamed"]

DP_SGD = "dp_sgd"  # Gaussian steps whose sampling must be given
ALLOCATED = "dp_sgd_allocated"
MATRIX = "matrix_mechanism"
FUNCTIONS = (
    *("from_analytic_densities", "from_distributions", "from_log_likelihood_ratio"),
    *("from_profile", "AnalyticPair", "DistributionPair", "LikelihoodRatio"),
)
COMPOSITE = (
    *("compose", "Composition", "PoissonSampled", "SampledWithoutReplacement"),
    "TruncatedPoissonSampled",
)
# Other names of parameters: on the command line, and in other libraries.
ALIASES = {
    "noise": "noise_multiplier",
    "p": "sampling_probability",
    "rate": "sampling_probability",
    "sample_rate": "sampling_probability",
}


@dataclass(frozen=True)
class Maker:
    """A constructor of mechanisms from named parameters.

    ``word`` is its name in files; ``kind`` is the class that it makes, "" if another maker has that
    class.  ``make`` takes parameters that may be exact texts; ``vectors``, ``nested``, ``texts``
    and ``doubles`` are as in `pyengine.laws.kinds.Kind`.
    """

    word: str
    kind: str
    make: Callable[..., Any]
    vectors: tuple[str, ...] = ()
    nested: tuple[str, ...] = ()
    texts: tuple[str, ...] = ()
    doubles: Mapping[str, str] = field(default_factory=dict)

    @classmethod
    def of_kind(cls, kind: Kind) -> Maker:
        """Return the maker of a kind of step."""
        lists = (kind.vectors, kind.nested, kind.texts)
        return cls(str(kind.word), kind.name, kind.maker, *lists, kind.doubles)

    @cached_property
    def parameters(self) -> tuple[str, ...]:
        """Names of all parameters."""
        return tuple(inspect.signature(self.make).parameters)

    @cached_property
    def required(self) -> tuple[str, ...]:
        """Names of the parameters without defaults."""
        given = inspect.signature(self.make).parameters.values()
        return tuple(item.name for item in given if item.default is item.empty)


def _blt(
    noise_multiplier: Any,
    buffer_decay: Any,
    output_scale: Any,
    steps: Any,
    participation: str = "single",
    times: Any = None,
    separation: Any = None,
) -> Any:
    """Return the mechanism of a buffered linear Toeplitz matrix."""
    coefficients = mechanisms.blt_coefficients(buffer_decay, output_scale, steps)
    words = {"times": times, "separation": separation}
    make = mechanisms.toeplitz_mechanism
    return make(noise_multiplier, coefficients, steps, participation, **words)


# Constructors whose steps belong to other kinds.
PATTERNS: dict[str, dict[str, Any]] = {
    "report_noisy_max": {},
    "permute_and_flip": {},
    "pate_noisy_max": {},
    "pate_votes": {"make": votes_of_file, "texts": ("votes",)},
    "thresholded_histogram": {"doubles": {"threshold": "down"}},
    "banded_matrix_factorization": {},
    "toeplitz_mechanism": {
        "vectors": ("coefficients",),
        "texts": ("participation",),
        "doubles": {"coefficients": "near"},
    },
    "blt_mechanism": {
        "make": _blt,
        "vectors": ("buffer_decay", "output_scale"),
        "texts": ("participation",),
        "doubles": {"buffer_decay": "near", "output_scale": "near"},
    },
    MATRIX: {"make": matrix_of_file, "texts": ("matrix", "participation")},
}


def makers() -> dict[str, Maker]:
    """Return all makers by their words in files and by the names of classes."""
    return _makers(tuple(named_kinds()))


@kept(1)
def _makers(names: tuple[str, ...]) -> dict[str, Maker]:
    kinds = {name: named_kinds()[name] for name in names}
    found = {str(kind.word): Maker.of_kind(kind) for kind in kinds.values()}
    found[DP_SGD] = found["gaussian"]
    for word, how in PATTERNS.items():
        make = how.get("make") or getattr(mechanisms, word)
        rest = {key: value for key, value in how.items() if key != "make"}
        found[word] = Maker(word, "", make, **rest)
    return {**found, **{name: found[str(kind.word)] for name, kind in kinds.items()}}


def maker_of(word: object) -> Maker:
    """Return the maker for a key of `makers`.

    ValueError for anything else, with different messages for constructors that take functions, for
    composite mechanisms, and for misspelt names.
    """
    known = makers()
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
    hint = checks.did_you_mean(word, tuple(known))
    words = ", ".join(name for name in known if name not in named_kinds())
    raise ValueError(f"mechanism must be one of {words}; got {checks.shown(word)}{hint}")


def renamed(table: Mapping[str, Any], own: tuple[str, ...] = ()) -> dict[str, Any]:
    """Return a table with the Python names of all parameters.

    Names in ``own`` are parameters of the mechanism and stay.  ValueError if a parameter is given
    under two names.
    """
    found: dict[str, Any] = {}
    for key, value in table.items():
        name = key if key in own else ALIASES.get(key, key)
        if name in found:
            raise ValueError(f"{name} is given twice, once as {key!r}")
        found[name] = value
    return found
