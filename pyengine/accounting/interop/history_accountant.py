"""An accountant of steps of DP-SGD, with the methods that Opacus and riskcal call."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, MutableMapping
from copy import deepcopy
from typing import Any

import numpy.typing as npt

from pyengine import api
from pyengine._support import checks
from pyengine._support.forks import Booking
from pyengine.accounting.filters import Filter
from pyengine.accounting.interop.batches import SeenBatches
from pyengine.accounting.runs import AdaptiveRun
from pyengine.api import Bounds
from pyengine.api.histories import ASSUMED, assume_poisson, composed_history
from pyengine.api.shuffled import without_amplification
from pyengine.calibration.proven import proven_bounds
from pyengine.mechanisms import Composition, in_words

__all__ = ["HistoryAccountant"]

# keywords of the accountants of Opacus and riskcal for their own discretisation
HOSTS = ("alphas", "delta_error", "eps_error", "grid_step", "poisson", "use_connect_dots")


class HistoryAccountant:
    """An accountant that records steps of DP-SGD and answers by proven bounds.

    It has the methods of an accountant of Opacus and of riskcal's ``CTDAccountant``, and needs
    neither library.  `pyengine.interop.opacus` registers it with Opacus.

    Attributes
    ----------
    history : list of tuple
        (noise multiplier, sampling probability, number of steps) of each phase.

    Notes
    -----
    Adjacency is ``add_remove``, and batches must be Poisson samples.  The hook of an Opacus
    optimizer sees the size of each batch.  If more batches have equal sizes than is plausible for
    Poisson samples (probability below 1e-9), as with ``poisson_sampling=False``, answers are
    refused; `shuffled_composition` answers for a loader that shuffles.  If too few batches were
    seen to tell, `pyengine.errors.SamplingWarning` says so once.

    By default answers are the safe ends of proven bounds.  With ``proven=False`` they are the
    values of `pyengine.epsilon` and the other questions: closer to the truth and faster, but
    without a guarantee.

    Keywords that set the discretisation of Opacus' and riskcal's own accountants (``alphas``,
    ``delta_error``, ``eps_error``, ``grid_step``, ``poisson``, ``use_connect_dots``) are accepted
    and ignored, so that calls need no change.

    Steps that added up the gradients of several batches are refused, too: Opacus adds them up only
    if the loader is not a Poisson sampler.

    Steps must have been chosen beforehand; for runs that adapt, use `take_filter`.

    Threads may share it: `step` loses no step.  Changes of ``history`` itself are not protected.

    Examples
    --------
    >>> from pyengine.accounting.interop import HistoryAccountant
    >>> accountant = HistoryAccountant()
    >>> for _ in range(1000):
    ...     accountant.step(noise_multiplier=1.0, sample_rate=0.01)
    >>> accountant.history, len(accountant)
    ([(1.0, 0.01, 1000)], 1000)
    >>> print(f"{accountant.get_epsilon(delta=1e-5):.3f} {accountant.get_beta(alpha=0.01):.3f}")
    1.828 0.971
    """

    def __init__(self) -> None:
        self.history: list[tuple[float, float, int]] = []
        self._batches = SeenBatches()
        self._filter: Filter | None = None
        self._admitted = 0  # steps that the filter has booked

    def __repr__(self) -> str:
        phases = "; ".join(in_words(composed_history(self.history)))
        return f"<{type(self).__name__}: {phases}. {self.assumption}>"

    @property
    def assumption(self) -> str:
        """What must be true of the batches for the answers to hold, and the sizes seen."""
        return f"{ASSUMED[0].upper()}{ASSUMED[1:]}; {self._batches.in_words()}"

    @classmethod
    def mechanism(cls) -> str:
        """Name of the accountant in checkpoints: "pyengine"."""
        return "pyengine"

    def __len__(self) -> int:
        """Number of steps so far."""
        return sum(steps for _, _, steps in self.history)

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        """Record one step.

        Parameters
        ----------
        noise_multiplier : float
            Standard deviation of the noise divided by the clipping norm, in (0, ∞).
        sample_rate : float
            Probability with which a record enters a batch, in [0, 1].

        Raises
        ------
        ValueError
            For a parameter outside its domain.
        """
        checks.positive("noise_multiplier", noise_multiplier)
        checks.rate("sample_rate", sample_rate)
        step = noise_multiplier, sample_rate
        with Booking.lock:
            if self.history and tuple(self.history[-1][:2]) == step:
                self.history[-1] = (*step, self.history[-1][2] + 1)
            else:
                self.history.append((*step, 1))
            if self._filter is None:
                return
            choice = self._filter.covering(
                noise_multiplier=noise_multiplier, sample_rate=sample_rate
            )
            if not self._filter.spend(choice):
                raise ValueError(
                    f"a step of noise_multiplier={noise_multiplier!r} and sample_rate="
                    f"{sample_rate!r} was made that the filter does not admit: ask allows() "
                    "before each step"
                )
            self._admitted += 1

    def take_filter(self, budget: Filter) -> None:
        """Let a filter admit all steps, which may then depend on what was released before.

        Each step is booked as the cheapest choice that covers it, `Filter.covering`.  Answers are
        those of the worst run within the filter's whole budget, however much of it was spent, and
        hold whenever the run stops.

        Parameters
        ----------
        budget : Filter
            A filter that has booked the steps so far; a new one if there are none.  After
            `load_state_dict`, it is the filter that booked them: `state_dict` does not hold it, but
            it can be pickled.

        Raises
        ------
        ValueError
            If the filter has not booked the steps of `history`.
        """
        if not isinstance(budget, Filter):
            raise ValueError(f"budget must be a Filter, got {budget!r}")
        with Booking.lock:
            needed: Counter[int] = Counter()
            for noise, rate, steps in self.history:
                needed[budget.covering(noise_multiplier=noise, sample_rate=rate)] += steps
            missing = needed - Counter(budget.choices)
            if missing:
                raise ValueError(
                    "budget must have booked the steps of the history, and lacks "
                    f"{missing.total():,} of {len(self):,}"
                )
            self._filter, self._admitted = budget, len(self)

    def allows(self, *, noise_multiplier: float, sample_rate: float) -> bool:
        """Whether the filter admits a step: its target then holds whatever comes after it.

        Parameters
        ----------
        noise_multiplier, sample_rate : float
            As in `step`.

        Raises
        ------
        ValueError
            Without a filter, or for a step that none of its choices covers.
        """
        if self._filter is None:
            raise ValueError("allows() must follow take_filter(): no filter was given")
        return self._filter.allows(
            self._filter.covering(noise_multiplier=noise_multiplier, sample_rate=sample_rate)
        )

    @property
    def run(self) -> Composition | AdaptiveRun:
        """The object of all answers: the composition of all steps, or all runs a filter admits.

        ValueError as in `composition`, or if a step was made that the filter did not admit.
        """
        with Booking.lock:
            budget, refused = self._filter, len(self) - self._admitted
        run = self._fixed()
        if budget is None:
            return run
        if refused:
            raise ValueError(
                f"all steps must have been admitted by the filter, and {refused:,} were not: "
                "nothing is proven of the run"
            )
        return budget.run_of(budget.budget)

    def composition(self) -> Composition:
        """Return the mechanism of all steps so far, for the questions of `pyengine`.

        Raises
        ------
        ValueError
            If the batches that were seen are not Poisson samples.  Also with a filter: a run that
            adapts is no composition of fixed steps.
        """
        if self._filter is not None:
            raise ValueError(
                "composition() must be asked without a filter: ask pyengine about accountant.run"
            )
        return self._fixed()

    def _fixed(self) -> Composition:
        """The composition of all steps; ValueError if batches cannot be Poisson samples."""
        run = composed_history(self.history)
        if all(step.scheme != "poisson" for step, _ in run.parts):
            return run
        if self._batches.are_not_poisson():
            raise ValueError(
                f"batches must be Poisson samples, but {self._batches.in_words()}; with Opacus, "
                "make_private(..., poisson_sampling=True) draws them. For a loader that shuffles "
                "once an epoch, ask pyengine about accountant.shuffled_composition()"
            )
        if not self._batches.are_told():
            assume_poisson(type(self).__name__, run)
        return run

    def shuffled_composition(self) -> Composition:
        """Return a mechanism for the steps so far if the loader shuffles once an epoch.

        Returns
        -------
        Composition
            One Gaussian step for each epoch, without amplification; answers are upper bounds.
            Neighbours differ by one record that is replaced by an empty one.

        Raises
        ------
        ValueError
            With a filter: it admits Poisson samples.
        """
        if self._filter is not None:
            raise ValueError("shuffled_composition() must be asked without a filter")
        run = composed_history(self.history)
        return without_amplification(run) or run

    def get_epsilon(
        self, delta: float, *, proven: bool = True, tolerance: float | None = None, **host: Any
    ) -> float:
        """Smallest ε for which the steps so far are (ε, δ)-differentially private, from above.

        Parameters
        ----------
        delta : float
            In [0, 1].
        proven : bool
            Whether the answer is the upper one of proven bounds; else it is the value of
            `pyengine.epsilon`.
        tolerance : float, optional
            Largest relative width of proven bounds; see ``method="certified"``.  By default up to
            0.1 is accepted where nothing narrower can be proven.
        **host
            Keywords of other accountants, ignored; see the Notes of the class.

        Returns
        -------
        float
            An upper bound, proven unless ``proven=False``; inf where no ε is enough.

        Raises
        ------
        AccuracyError
            Where no bound can be proven; the message has the estimate.
        """
        return float(self._asked("epsilon", delta, proven, tolerance, host).upper)

    def get_delta(
        self, epsilon: float, *, proven: bool = True, tolerance: float | None = None, **host: Any
    ) -> float:
        """δ(ε) of the steps so far, from above.

        Parameters
        ----------
        epsilon : float
            In [0, ∞].
        proven, tolerance, **host
            As in `get_epsilon`.

        Returns
        -------
        float
            An upper bound, proven unless ``proven=False``.
        """
        return float(self._asked("delta", epsilon, proven, tolerance, host).upper)

    def get_beta(
        self, alpha: npt.ArrayLike, *, proven: bool = True, tolerance: Any = None, **host: Any
    ) -> Any:
        """Smallest false negative rate of a test with false positive rates ``alpha``, from below.

        Parameters
        ----------
        alpha : array_like
            In [0, 1].
        proven, tolerance, **host
            As in `get_epsilon`.

        Returns
        -------
        float or ndarray of the shape of ``alpha``
            A lower bound, proven unless ``proven=False``.
        """
        return self._asked("trade_off", alpha, proven, tolerance, host).lower

    def get_gamma(
        self, kappa: npt.ArrayLike, *, proven: bool = True, tolerance: Any = None, **host: Any
    ) -> Any:
        """Largest probability of reconstruction where it is ``kappa`` without the release.

        Parameters
        ----------
        kappa : array_like
            In [0, 1].
        proven, tolerance, **host
            As in `get_epsilon`.

        Returns
        -------
        float or ndarray of the shape of ``kappa``
            An upper bound, proven unless ``proven=False``; H0 is the data without the record.
        """
        return self._asked("gamma_bound", kappa, proven, tolerance, host, "add").upper

    def get_advantage(
        self, *, proven: bool = True, tolerance: float | None = None, **host: Any
    ) -> float:
        """Largest difference of true and false positive rate, δ(0), from above.

        Parameters
        ----------
        proven, tolerance, **host
            As in `get_epsilon`.

        Returns
        -------
        float
            An upper bound, proven unless ``proven=False``.
        """
        return self.get_delta(0.0, proven=proven, tolerance=tolerance, **host)

    def _asked(
        self,
        name: str,
        argument: Any,
        proven: bool,
        tolerance: float | None,
        host: Mapping[str, Any],
        adjacency: str = "add_remove",
    ) -> Bounds:
        unknown = sorted(set(host) - set(HOSTS))
        if unknown:
            raise TypeError(
                "keywords must be proven, tolerance or those of other accountants, "
                f"{', '.join(HOSTS)}, got {', '.join(unknown)}"
            )
        run: Any = self.run  # all questions take a run that adapts, too
        if tolerance is None and self._filter is not None:
            tolerance = self._filter.target.tolerance
        if proven:
            return proven_bounds(name, run, argument, adjacency=adjacency, tolerance=tolerance)
        value = getattr(api, name)(run, argument, adjacency=adjacency, tolerance=tolerance)
        return Bounds(value, value, value)

    def get_optimizer_hook_fn(self, sample_rate: float) -> Callable[[Any], None]:
        """Return the hook that an Opacus optimizer calls after each step.

        Parameters
        ----------
        sample_rate : float
            Probability with which a record enters one batch.
        """

        def note(optimizer: Any) -> None:
            self._batches.see(optimizer, sample_rate)
            self.step(
                noise_multiplier=optimizer.noise_multiplier,
                sample_rate=sample_rate * optimizer.accumulated_iterations,
            )

        return note

    def state_dict(self, destination: MutableMapping[str, Any] | None = None) -> Any:
        """History and name, for a checkpoint.

        Parameters
        ----------
        destination : mapping, optional
            Where to put them; a new dictionary if not given.

        Returns
        -------
        mapping
            ``history`` (a copy), ``batches`` (the sizes seen) and ``mechanism``.
        """
        found: MutableMapping[str, Any] = {} if destination is None else destination
        found["history"] = deepcopy(self.history)
        found["batches"] = self._batches.as_dict()
        found["mechanism"] = self.mechanism()
        return found

    def load_state_dict(self, state_dict: MutableMapping[str, Any]) -> None:
        """Restore the history of a checkpoint.

        Parameters
        ----------
        state_dict : mapping
            The result of `state_dict`.

        Raises
        ------
        ValueError
            For the state of another accountant, or an empty one.
        """
        if not state_dict or not {"history", "mechanism"} <= set(state_dict):
            raise ValueError(
                f"state_dict must have 'history' and 'mechanism', got {sorted(state_dict or ())}"
            )
        if state_dict["mechanism"] != self.mechanism():
            raise ValueError(
                f"state_dict must be that of an accountant {self.mechanism()!r}, got "
                f"{state_dict['mechanism']!r}; its history can be assigned to `history`"
            )
        self.history = deepcopy(state_dict["history"])
        self._batches = SeenBatches(**state_dict.get("batches", {}))
