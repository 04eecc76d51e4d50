"""An accountant for dp_accounting, its calibration, and JAX Privacy."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from pyengine import api
from pyengine._support.extras import needed
from pyengine._support.forks import Booking
from pyengine.api.histories import assume_poisson, assumed
from pyengine.api.relations import ADJACENCY, mechanism_under
from pyengine.calibration.proven import proven_bounds
from pyengine.mechanisms import Composition, GenericMechanism, compose, in_words
from pyengine.special import ndtri

if TYPE_CHECKING:
    from pyengine.api.typing import Adjacency

with needed("pyengine.interop.dp_accounting", "dp-accounting"):
    from dp_accounting import NeighboringRelation, PrivacyAccountant
    from dp_accounting.dp_event import ComposedDpEvent, DpEvent, SelfComposedDpEvent

__all__ = ["PyengineAccountant", "PyengineAccountantConfig"]

NON_PRIVATE = GenericMechanism(0, 1)
LEVELS = np.geomspace(1e-12, 0.5, 500)  # false positive rates of dp_accounting's own estimate


class PyengineAccountant(PrivacyAccountant):  # type: ignore[misc]
    """``PrivacyAccountant`` of dp_accounting with proven bounds.

    Parameters
    ----------
    neighboring_relation : NeighboringRelation
        ``ADD_OR_REMOVE_ONE``, ``REPLACE_ONE`` or ``REPLACE_SPECIAL``.  Randomized response is not
        defined under the first, sampling without replacement not under the last.
    proven : bool
        Whether answers are the safe ends of proven bounds.  Otherwise they are the values of
        `pyengine.epsilon` and the other questions: closer to the truth and faster, but without a
        guarantee.
    tolerance : float, optional
        Largest relative width of proven bounds; see ``method="certified"``.

    Notes
    -----
    A ``PoissonSampledDpEvent`` says that batches are Poisson samples.  This cannot be checked here;
    `pyengine.errors.SamplingWarning` says so once.

    The events of `pyengine.interop.from_dp_event` are supported.  Sampling without replacement
    under ``REPLACE_ONE`` doubles the sensitivity, as one record leaves and another one comes.
    dp_accounting's Rényi accountant does not double it: its noise multiplier is in units of the
    whole difference.

    Threads may share it: answers include every event that was composed.  Its ``ledger`` is
    dp_accounting's own, which is not protected by a lock.

    Examples
    --------
    >>> import dp_accounting
    >>> from pyengine.accounting.interop.dp_accounting import PyengineAccountant
    >>> step = dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0))
    >>> accountant = PyengineAccountant().compose(step, 1000)
    >>> print(f"{accountant.get_epsilon(1e-5):.3f} {accountant.get_delta(1.0):.4g}")
    1.828 0.002612
    """

    def __init__(
        self,
        neighboring_relation: Any = NeighboringRelation.ADD_OR_REMOVE_ONE,
        *,
        proven: bool = True,
        tolerance: float | None = None,
    ) -> None:
        super().__init__(neighboring_relation)
        self._proven, self._tolerance = proven, tolerance
        self._composed = compose()

    @property
    def adjacency(self) -> Adjacency:
        """The neighbouring relation as ``adjacency`` of the questions of `pyengine`."""
        return ADJACENCY[self.neighboring_relation.name]

    @property
    def composition(self) -> Composition:
        """The mechanism of all events so far, for questions with the accountant's `adjacency`."""
        return self._composed

    @property
    def assumption(self) -> str:
        """How batches must have been drawn for the answers to hold."""
        return assumed(self._composed)

    def __repr__(self) -> str:
        phases = "; ".join(in_words(self._composed))
        relation = self.neighboring_relation.name
        return f"<{type(self).__name__}, {relation}: {phases}. {self.assumption}>"

    def _maybe_compose(self, event: DpEvent, count: int, do_compose: bool) -> Any:
        if isinstance(event, SelfComposedDpEvent):
            return self._maybe_compose(event.event, event.count * count, do_compose)
        if isinstance(event, ComposedDpEvent):
            found = (self._maybe_compose(part, count, do_compose) for part in event.events)
            return next((details for details in found if details is not None), None)
        try:
            made = mechanism_under(event, self.neighboring_relation.name)
        except ValueError as error:
            return self.CompositionErrorDetails(invalid_event=event, error_message=str(error))
        if do_compose:
            with Booking.lock:
                self._composed = compose(self._composed, made.composed(count))
        return None

    def get_epsilon(self, target_delta: float) -> float:
        """Smallest ε of the events so far, from above.

        Parameters
        ----------
        target_delta : float
            In [0, 1].

        Returns
        -------
        float
            inf where no ε is enough and, as dp_accounting requires of accountants, at every δ after
            a ``NonPrivateDpEvent``.
        """
        if any(step == NON_PRIVATE for step, _ in self._composed.parts):
            return math.inf
        return float(self._upper("epsilon", target_delta))

    def get_delta(self, target_epsilon: float) -> float:
        """δ of the events so far, from above.

        Parameters
        ----------
        target_epsilon : float
            In [0, ∞].

        Returns
        -------
        float
            In [0, 1].
        """
        return float(self._upper("delta", target_epsilon))

    def get_true_positive_rates(
        self, false_positive_rates: npt.ArrayLike, deltas: npt.ArrayLike | None = None
    ) -> Any:
        """Largest true positive rates of tests, from above.

        Parameters
        ----------
        false_positive_rates : array_like
            In [0, 1].
        deltas : array_like, optional
            Ignored; dp_accounting's PLD accountant takes it.  Here the trade-off function itself is
            computed.

        Returns
        -------
        float or ndarray of the shape of ``false_positive_rates``
            For the worse of both orders of the neighbours.
        """
        del deltas
        return self._upper("gamma_bound", false_positive_rates)

    def get_gdp_parameter_estimate(
        self,
        false_positive_rates: npt.ArrayLike | None = None,
        deltas: npt.ArrayLike | None = None,
    ) -> float:
        """Smallest μ whose Gaussian trade-off function lies below at some false positive rates.

        Parameters
        ----------
        false_positive_rates : array_like, optional
            In (0, 1); 500 from 1e-12 to 0.5 if not given.
        deltas : array_like, optional
            As in `get_true_positive_rates`.

        Returns
        -------
        float
            An estimate: between these rates a larger μ may be needed.  The target
            `pyengine.targets.GaussianDP` holds at all rates.
        """
        del deltas
        level = np.asarray(LEVELS if false_positive_rates is None else false_positive_rates, float)
        if not ((level > 0.0) & (level < 1.0)).all():
            raise ValueError(f"false_positive_rates must lie in (0, 1), got {level!r}")
        found = api.gamma_bound(self._composed, level, adjacency=self.adjacency)
        return max(float(np.max(ndtri(found) - ndtri(level))), 0.0)

    def _upper(self, name: str, argument: Any) -> Any:
        assume_poisson(type(self).__name__, self._composed)
        how: dict[str, Any] = {"adjacency": self.adjacency, "tolerance": self._tolerance}
        if not self._proven:
            return getattr(api, name)(self._composed, argument, **how)
        return proven_bounds(name, self._composed, argument, **how).upper


@dataclass(frozen=True, kw_only=True)
class PyengineAccountantConfig:
    """A ``DpAccountantConfig`` for functions of JAX Privacy.

    Parameters
    ----------
    neighboring_relation, proven, tolerance
        As in `PyengineAccountant`.

    Examples
    --------
    >>> from pyengine.accounting.interop.dp_accounting import PyengineAccountantConfig
    >>> PyengineAccountantConfig().create_accountant()
    <PyengineAccountant, ADD_OR_REMOVE_ONE: no steps. >
    """

    neighboring_relation: Any = NeighboringRelation.ADD_OR_REMOVE_ONE
    proven: bool = True
    tolerance: float | None = None

    def create_accountant(self) -> PyengineAccountant:
        """Return an accountant without events."""
        return PyengineAccountant(
            self.neighboring_relation, proven=self.proven, tolerance=self.tolerance
        )
