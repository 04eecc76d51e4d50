"""Types for annotations: values of keywords, arguments of questions and what they return.

Nothing here is needed at run time.  A function that passes its own ``adjacency`` on to
`pyengine.delta` can annotate it with ``pyengine.typing.Adjacency``; a type checker then refuses
other words.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeVar

import numpy as np
import numpy.typing as npt

if TYPE_CHECKING:
    from typing import TypeAlias, TypedDict

    from pyengine.engines.answers import Answering
    from pyengine.mechanisms import Mechanism
    from pyengine.mechanisms.many import Mechanisms
    from pyengine.mechanisms.threat_models import ThreatModel

__all__ = [
    "Adjacency",
    "Array",
    "BoundsWord",
    "FloatArray",
    "Labelled",
    "LabelledT",
    "Method",
    "Scalar",
    "ThreatModelWord",
]

Adjacency = Literal["add", "remove", "add_remove", "substitute"]
Method = Literal[
    "auto",
    "certified",
    "closed_form",
    "exact",
    "lattice",
    "blocks",
    "reference",
    "edgeworth",
    "clt",
    "monte_carlo",
    "spectral",
    "convolution",
]
ThreatModelWord = Literal["dp", "relaxed"]
BoundsWord = Literal[True, "estimated"]

FloatArray = npt.NDArray[np.float64]
Scalar = float | np.floating[Any] | np.integer[Any]


class SupportsArray(Protocol):
    """Anything that NumPy can convert to an array: tensors of torch, arrays of jax."""

    def __array__(self, *args: Any, **words: Any) -> Any:
        """The numbers."""


class Labelled(Protocol):
    """A Series or a DataFrame of pandas: an array with an index, which answers keep."""

    @property
    def index(self) -> Any:
        """Labels of the rows."""

    @property
    def iloc(self) -> Any:
        """Rows by position."""

    def __array__(self, *args: Any, **words: Any) -> Any:
        """The numbers."""


LabelledT = TypeVar("LabelledT", bound=Labelled)
Array = npt.NDArray[Any] | Sequence[float] | Sequence[Sequence[float]] | SupportsArray

if TYPE_CHECKING:
    Described: TypeAlias = (
        Mechanism
        | Answering
        | Callable[[Any], Any]
        | Mapping[str, Any]
        | npt.NDArray[Any]
        | Sequence[Any]
    )

    Several: TypeAlias = Mechanisms | Sequence[Mechanism]

    class Options(TypedDict, total=False):
        """Keywords that all questions share."""

        adjacency: Adjacency
        method: Method
        threat_model: ThreatModelWord | ThreatModel
        tolerance: float | None

    class Plain(Options, total=False):
        """Keywords of a question whose answers have no bounds."""

        bounds: Literal[False]

    class Proven(Options):
        """Keywords of a question whose answers have bounds."""

        bounds: BoundsWord

    class Either(Options):
        """Keywords of a question that may have bounds, decided at run time."""

        bounds: bool | str
