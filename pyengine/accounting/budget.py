"""A privacy budget: a target, the releases booked so far, and what may still be released."""

from __future__ import annotations

import math
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR
from pathlib import Path
from typing import Any, NamedTuple

from pyengine import api
from pyengine._support import checks
from pyengine._support.decimals import number, written
from pyengine.accounting.ledger import FileLedger, Ledger, MemoryLedger, Release
from pyengine.api import compose
from pyengine.calibration import Calibration, calibrate
from pyengine.calibration.targets import AT_LEAST, Target, single_target
from pyengine.errors import AccuracyError, BudgetError
from pyengine.mechanisms import (
    Composition,
    GaussianMechanism,
    GenericMechanism,
    Mechanism,
    label_of,
)
from pyengine.mechanisms.report import guaranteed

__all__ = ["Budget", "PlannedRelease"]

Maker = Callable[[Any], Mechanism]


class PlannedRelease(NamedTuple):
    """One planned release with its share of a budget; made by `Budget.split`.

    Parameters
    ----------
    name : str
        Its name in the plan.
    noise : float
        The noise that `Budget.split` found for it.
    mechanism : Mechanism
        The release with that noise.
    """

    name: str
    noise: float
    mechanism: Mechanism


class Budget:
    """A privacy budget: a target that all releases about the same records must meet together.

    Parameters
    ----------
    target : Target
        A single target of `pyengine.targets`, such as ``EpsilonDelta(1.0, 1e-6)``,
        ``GaussianDP(0.5)`` or ``TradeOff(0.01, 0.95)``.  It is judged by proven bounds, whatever
        its ``bounds`` says.
    path : str or path, optional
        A new file in which releases are booked, so that the budget outlives the process and other
        processes of this machine can share it; without it releases are kept in memory.

    Raises
    ------
    ValueError
        For anything but a single target.
    OSError
        For a file that exists or cannot be written.

    Notes
    -----
    A release is approved only if the joint composition of everything booked and this release
    meets the target by a proven bound.  This is tighter than adding up the ε of each release.

    The guarantee holds for releases whose *mechanisms* are fixed beforehand; what each of them
    computes may depend on earlier results.  If the noise, the sampling rate or the decision to go
    on depends on what was released, use `Filter`, or `pyengine.duality.GaussianFilter` for Gaussian
    releases alone (docs, api/budgets).

    Threads may share a budget, and processes may share its file: a release is booked only if
    nothing else was booked since its bound was computed; otherwise the bound is computed anew.  The
    file is an SQLite database and should be on a local disk.  A forked child has its own copy of a
    budget in memory, which does not see what the parent spends.  `copy.copy` and `copy.deepcopy`
    return the same budget.  A pickle refers to the file; a budget in memory cannot be pickled.

    Examples
    --------
    >>> import pyengine as pe
    >>> budget = pe.Budget(pe.targets.EpsilonDelta(1.0, 1e-6))
    >>> plan = budget.split(
    ...     {"counts": pe.LaplaceMechanism, "training": lambda s: pe.dp_sgd(s, 0.01, 1000)},
    ...     weights=[1, 3],
    ... )
    >>> for share in plan:
    ...     print(share.name, round(share.noise, 6))
    ...     _ = budget.spend(share.mechanism, share.name)
    counts 2.492439
    training 2.248696
    >>> budget.spend(pe.LaplaceMechanism(1000.0))
    Traceback (most recent call last):
    ...
    pyengine.errors.BudgetError: the release does not fit into EpsilonDelta(epsilon=1, \
delta=1e-6): with it all releases have epsilon 1, delta 1.00037e-6; nothing was booked
    """

    def __init__(self, target: Target, path: str | os.PathLike[str] | None = None) -> None:
        proven = replace(single_target(target), bounds=True)
        self._set(proven, MemoryLedger() if path is None else FileLedger.made(path, proven))

    def _set(self, target: Target, ledger: Ledger) -> None:
        self._target, self._ledger = replace(target, bounds=True), ledger

    @classmethod
    def load(cls, path: str | os.PathLike[str]) -> Budget:
        """Open the file of a budget that `Budget` or `save` made; new releases are booked there.

        Parameters
        ----------
        path : str or path
            The file.

        Returns
        -------
        Budget
            It also sees what other processes book in the file from now on.

        Raises
        ------
        ValueError
            For a file that holds no budget, or a damaged one.
        OSError
            For a file that cannot be read.
        """
        ledger = FileLedger(path)
        made = cls.__new__(cls)
        made._set(ledger.target, ledger)
        return made

    def save(self, path: str | os.PathLike[str]) -> None:
        """Write the target and the releases to a new file, which `load` opens as a budget.

        The file is a copy: what this budget spends afterwards is not booked there.

        Parameters
        ----------
        path : str or path
            The new file; it must not exist.

        Raises
        ------
        ValueError
            For a mechanism or a target that holds functions.
        OSError
            For a file that exists or cannot be written.
        """
        FileLedger.made(path, self._target, self._ledger.read())

    def __reduce__(self) -> tuple[Any, ...]:
        if self.path is None:
            raise TypeError("a budget in memory has no copies, which would spend it twice: save it")
        return type(self).load, (self.path,)

    def __copy__(self) -> Budget:
        return self

    def __deepcopy__(self, memo: Any) -> Budget:
        return self

    def __repr__(self) -> str:
        number = len(self._ledger.read())
        where = "" if self.path is None else f", in {self.path}"
        return f"Budget: {self._target!r}, {number:,} release{'s' * (number != 1)} booked{where}"

    @property
    def target(self) -> Target:
        """The target that all releases must meet together; its ``bounds`` is True."""
        return self._target

    @property
    def path(self) -> Path | None:
        """The file in which releases are booked; None for a budget in memory."""
        return self._ledger.path if isinstance(self._ledger, FileLedger) else None

    @property
    def releases(self) -> tuple[Release, ...]:
        """The booked releases with their names, in the order in which they were booked."""
        return tuple(self._ledger.read())

    @property
    def spent(self) -> Composition:
        """The composition of everything booked, as one mechanism."""
        return _joint(self._ledger.read())

    def achieved(self) -> Target:
        """The tightest target that everything booked meets, with proven figures."""
        return self._target.achieved(self.spent)

    def spent_epsilon(self, delta: float | None = None) -> float:
        """Proven upper bound of the ε of everything booked.

        Parameters
        ----------
        delta : float, optional
            δ in [0, 1]; by default that of the target, if it has one.

        Returns
        -------
        float
            ε at this δ, for the neighbours of the target.
        """
        at = delta if delta is not None else getattr(self._target, "delta", None)
        if at is None:
            kind = type(self._target).__name__
            raise ValueError(f"delta must be given for a target {kind}, which has none")
        words = self._target._keywords()
        return float(api.epsilon(self.spent, checks.scalar("delta", at, 0.0, 1.0), **words).upper)

    def allows(self, *mechanisms: Any) -> bool:
        """Whether further releases fit into the budget together with everything booked.

        Parameters
        ----------
        *mechanisms : Mechanism, or what describes one
            The further releases, as `compose` takes them.

        Returns
        -------
        bool
            True is proven; False means that no proof was found.

        Raises
        ------
        AccuracyError
            If no engine has proven bounds of the composition.
        """
        return self._target.is_met(_joint(self._ledger.read(), *mechanisms))

    def spend(self, mechanism: Any, name: str = "") -> Release:
        """Book a release if it fits; otherwise raise `BudgetError` and book nothing.

        Parameters
        ----------
        mechanism : Mechanism, or what describes one
            The release, as `compose` takes it.  It must not run before it is booked.
        name : str
            A name for it, of printable characters.

        Returns
        -------
        Release
            The booked release; its mechanism is a composition.

        Raises
        ------
        BudgetError
            If the release does not fit.  Nothing was booked, and the release must not be run.
        AccuracyError
            If no engine has proven bounds of the composition; nothing was booked.
        """
        release = Release(checks.printable("name", name), compose(mechanism))
        while True:
            booked = self._ledger.read()
            joint = _joint(booked, release.mechanism)
            if not self._target.is_met(joint):
                raise BudgetError(self._refusal(joint, name))
            if self._ledger.append(release, len(booked)):
                return release

    def _refusal(self, joint: Mechanism, name: str) -> str:
        who = f"the release {name!r}" if name else "the release"
        try:
            figures = _figures(self._target.achieved(joint), self._target)
            found = f"with it all releases have {figures}; "
        except (ValueError, AccuracyError):  # the refusal stands without its figure
            found = ""
        return f"{who} does not fit into {self._target.called()}: {found}nothing was booked"

    def remaining_noise(self, make: Maker = GaussianMechanism) -> float:
        """Smallest noise with which one more release fits.

        Parameters
        ----------
        make : callable
            Makes the mechanism from the noise, as in `calibrate`; by default one Gaussian release,
            whose noise is in multiples of its sensitivity.

        Returns
        -------
        float
            The noise; that a release with exactly this noise fits was checked.

        Raises
        ------
        ValueError
            If no finite noise fits, or every noise does.
        """
        return float(self._more(make, maximize=False).value)

    def remaining_steps(self, step: Any) -> int:
        """Largest number of further repetitions of a step that fits.

        Parameters
        ----------
        step : Mechanism, or what describes one
            One step, or a composition of several.

        Returns
        -------
        int
            This number fits, and one more does not by the same bounds; 0 if none fits.

        Raises
        ------
        ValueError
            If any number of them fits.
        """
        one = compose(step)
        found = self._more(one.composed, maximize=True, integer=True)
        return int(found.value)

    def remaining_epsilon(self, delta: float = 0.0) -> float:
        """Largest ε such that any one further (ε, δ)-DP release fits.

        Parameters
        ----------
        delta : float
            δ of that release, in [0, 1].

        Returns
        -------
        float
            Every (ε, δ)-DP release with this ε fits, `GenericMechanism` included; 0 if none with
            a positive ε fits.

        Raises
        ------
        ValueError
            If every ε fits, as for a target that any mechanism meets.
        """
        given = checks.scalar("delta", delta, 0.0, 1.0)
        if not self.allows(GenericMechanism(SMALLEST, given)):
            return 0.0
        return float(self._more(lambda e: GenericMechanism(e, given), maximize=True).value)

    def _more(self, make: Maker, *, maximize: bool, integer: bool = False) -> Calibration:
        booked = self.spent
        found = calibrate(
            lambda x: compose(booked, make(x)), self._target, maximize=maximize, integer=integer
        )
        guaranteed(label_of(found.mechanism))
        return found

    def split(
        self,
        planned: Mapping[str, Maker] | Sequence[Maker],
        weights: Sequence[checks.NumberLike] | None = None,
    ) -> tuple[PlannedRelease, ...]:
        """Share what is left of the budget among planned releases.

        Parameters
        ----------
        planned : mapping of str to callable, or sequence of callable
            For each release a callable that makes the mechanism from its noise; more noise must
            mean more privacy.
        weights : sequence of float or exact number, optional
            Weight > 0 of each release; equal weights if not given.

        Returns
        -------
        tuple of PlannedRelease
            In the order given.  Together with everything booked they meet the target by proven
            bounds, and use it up to the accuracy of `calibrate`.  Nothing is booked.

        Raises
        ------
        ValueError
            If a release alone fits with any noise or with none, or for an argument outside its
            domain.

        Notes
        -----
        Let s be the noise with which a release alone would use up what is left.  Its planned noise
        is c s/√w, where the weights are scaled to sum to 1 and the common factor c is calibrated in
        the joint composition.  For Gaussian releases, c = 1 and the weights are shares of μ², or of
        the ρ of zCDP.  For a target of pure differential privacy (δ = 0) the noise is c s/w: the
        weights are shares of ε.
        """
        names, makers = _plan(planned)
        shares = _shares(weights, len(makers))
        is_pure = getattr(self._target, "delta", None) == 0.0
        alone = [self.remaining_noise(make) for make in makers]
        unit = [
            noise / (share if is_pure else math.sqrt(share))
            for noise, share in zip(alone, shares, strict=True)
        ]

        def made(c: float) -> list[Mechanism]:
            return [make(c * noise) for make, noise in zip(makers, unit, strict=True)]

        c = float(self._more(lambda c: compose(*made(c)), maximize=False).value)
        return tuple(
            PlannedRelease(name, c * noise, mechanism)
            for name, noise, mechanism in zip(names, unit, made(c), strict=True)
        )


SMALLEST = 2.0**-200  # the smallest parameter that calibrate tries: a smaller ε left counts as 0


def _joint(booked: Sequence[Release], *more: Any) -> Composition:
    """The composition of everything booked and of further releases; their order is irrelevant."""
    guaranteed(label_of(compose(*more)))
    return compose(*(release.mechanism for release in booked), *more)


def _figures(found: Target, target: Target) -> str:
    """The figures found, to six digits, or to all where six would not tell them from the target.

    Six digits are rounded so that the figures hold.
    """

    def shown(name: str) -> str:
        x, asked = (float(getattr(each, name)) for each in (found, target))
        if x != asked and written(x, ".6g") == written(asked, ".6g"):
            return repr(x)
        return number(x, 6, ROUND_FLOOR if name in AT_LEAST else ROUND_CEILING)

    return ", ".join(f"{name} {shown(name)}" for name in found._domains)


def _plan(planned: Any) -> tuple[list[str], list[Maker]]:
    if isinstance(planned, Mapping):
        names, makers = list(planned), list(planned.values())
    else:
        makers = checks.listed("planned", planned)
        names = [str(i + 1) for i in range(len(makers))]
    if not makers or not all(map(callable, makers)) or not all(isinstance(n, str) for n in names):
        raise ValueError(
            "planned must hold one or more callables from noise to a mechanism, got "
            f"{checks.shown(planned)}"
        )
    return names, makers


def _shares(weights: Any, number: int) -> list[float]:
    given = [1] * number if weights is None else checks.listed("weights", weights)
    if len(given) != number:
        raise ValueError(
            f"weights must be one for each of {number} releases, got {checks.shown(weights)}"
        )
    values = [float(checks.positive("weights", weight)) for weight in given]
    total = math.fsum(values)
    return [value / total for value in values]
