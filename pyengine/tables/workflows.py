"""Workflows: a mechanism with a name, made of the names and numbers that files hold."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from pyengine import _checks
from pyengine.kinds import named_kinds
from pyengine.mechanisms import (
    Mechanism,
    Step,
    TruncatedPoissonSampled,
    compose,
    dp_sgd,
    steps_of,
)
from pyengine.mechanisms.names import DP_SGD, PARAMETERS, kind_of, renamed
from pyengine.mechanisms.words import Words, worded
from pyengine.tables.numbers import number_text

__all__ = ["WORDS", "Phase", "Workflow", "parameters", "phase", "workflows"]

SAID = ("noise_multiplier", "sampling_probability", "steps")  # of DP-SGD
TRUNCATED = "truncated_batch_size"  # of Gaussian steps on Poisson samples
SAMPLING = ("sampling_probability", "batch_size", TRUNCATED, "dataset_size")
GROUP = "group_size"  # of Gaussian steps on Poisson samples
MANY = 1_000_000  # runs of one workflow: more is a slip of the pen

EPOCHS = {"epochs": "steps"}  # of random allocation, where an epoch is one release

WORDS = "words"  # key of words of a matrix, which no file can hold

Value = str | tuple[str, ...]


@dataclass(frozen=True)
class Phase:
    """Equal steps of one kind.

    Parameters
    ----------
    kind : str
        The name of a class that files can name.
    parameters : tuple of (str, str or tuple of str)
        Those of the kind, of its sampling, and ``steps``; numbers are exact text.
    words : Words, optional
        Those of a matrix mechanism, of which the parameters do not tell.
    """

    kind: str
    parameters: tuple[tuple[str, Value], ...]
    words: Words | None = None

    @cached_property
    def mechanism(self) -> Mechanism:
        """The steps, composed; its parameters are exact."""
        made = self._made()
        return made if self.words is None else compose(*_worded(made, self.words))

    def _made(self) -> Mechanism:
        given = dict(self.parameters)
        steps = given.pop("steps")
        sampling = {key: given.pop(key) for key in SAMPLING if key in given}
        if GROUP in given:
            grouped: dict[str, Any] = {**given, **sampling}
            return dp_sgd(**grouped, steps=_count(steps))
        step = named_kinds()[self.kind].maker(**given)
        if TRUNCATED in sampling:
            return _truncated(step, **sampling).composed(_count(steps))
        if "sampling_probability" in sampling:
            step = step.poisson_sampled(_number(sampling["sampling_probability"]))
        elif sampling:
            sizes: dict[str, Any] = sampling
            step = step.sampled_without_replacement(**sizes)
        return step.composed(_count(steps))


def _worded(made: Mechanism, words: Words) -> Iterator[Mechanism]:
    for step, number in steps_of(made):
        yield worded(step, words).composed(number)


def _truncated(
    step: Step, sampling_probability: Value, truncated_batch_size: Value, dataset_size: Value
) -> Step:
    return TruncatedPoissonSampled(step, sampling_probability, truncated_batch_size, dataset_size)


def _count(value: Value) -> int:
    return _checks.count("steps", value)


def _number(value: Value) -> str:
    assert isinstance(value, str)  # vectors are parameters of kinds, not of sampling
    return value


@dataclass(frozen=True)
class Workflow:
    """What tables compute on, and the name that they give it."""

    name: str
    phases: tuple[Phase, ...]

    @cached_property
    def mechanism(self) -> Mechanism:
        """The phases, composed; its parameters are exact."""
        return compose(*(phase.mechanism for phase in self.phases))

    @property
    def kind(self) -> str:
        """Name of the kind of the steps, or of each phase's."""
        return " + ".join(phase.kind for phase in self.phases)

    def get(self, parameter: str) -> str | None:
        """Text of a parameter that is one number; None where there is no such one."""
        if len(self.phases) > 1:
            return None
        value = dict(self.phases[0].parameters).get(parameter)
        return value if isinstance(value, str) else None


def parameters(kind: str) -> tuple[str, ...]:
    """Return the names that a phase of a kind may set."""
    group = (GROUP,) if kind == "GaussianMechanism" else ()
    return (*named_kinds()[kind].parameters, *SAMPLING, *group, "steps")


def phase(table: Mapping[str, object]) -> Phase:
    """Phase of a table of names and numbers, with one value for each.

    Parameters
    ----------
    table : mapping
        ``mechanism`` (by default ``dp_sgd``), its parameters, those of its sampling and ``steps``,
        under the names of Python or those of the command line.

    Raises
    ------
    ValueError
        For unknown names, missing parameters, and values outside their domains.
    """
    table = _named(table)
    words = table.get(WORDS)
    said = words if isinstance(words, Words) else None
    if said is not None:
        del table[WORDS]
    kind, keys = _keys(table)
    made = Phase(kind, tuple((key, _value(key, table[key])) for key in keys), said)
    made.mechanism  # noqa: B018 - checks the values
    return made


def _named(table: Mapping[str, object]) -> dict[str, object]:
    """Table with the long names of its parameters."""
    kind = kind_of(table.get("mechanism", DP_SGD))
    if kind == "FinitePair":  # it has a p of its own
        return dict(table)
    return renamed(table, PARAMETERS | EPOCHS if kind == "RandomlyAllocated" else PARAMETERS)


def _keys(table: Mapping[str, object]) -> tuple[str, list[str]]:
    """Kind of a table and the names of its parameters, in the order of the kind."""
    word = table.get("mechanism", DP_SGD)
    kind = kind_of(word)
    allowed = parameters(kind)
    for key in table:
        if key not in allowed and key != "mechanism":
            names = ", ".join(("mechanism", *allowed))
            hint = _checks.did_you_mean(key, allowed)
            raise ValueError(f"unknown key {key!r}; {kind} allows {names}{hint}")
    needed = list(named_kinds()[kind].required)
    # without the word, it is DP-SGD, where no sampling is not a matter of course
    needed = list(SAID) if word == DP_SGD else [*needed, "steps"]
    if word == DP_SGD and (
        "batch_size" in table or ("dataset_size" in table and TRUNCATED not in table)
    ):
        raise ValueError(
            "DP-SGD is sampled by Poisson, with sampling_probability; batch_size and dataset_size "
            'go with mechanism = "GaussianMechanism"'
        )
    for key in needed:
        if key not in table:
            raise ValueError(f"{key} is missing")
    sizes = {"batch_size", "dataset_size"} - ({"dataset_size"} if TRUNCATED in table else set())
    if "sampling_probability" in table and sizes & table.keys():
        raise ValueError("give sampling_probability or batch_size and dataset_size, not both")
    pairs = [
        (TRUNCATED, "sampling_probability"),
        (TRUNCATED, "dataset_size"),
        ("batch_size", "dataset_size"),
        ("dataset_size", TRUNCATED if TRUNCATED in table else "batch_size"),
        (GROUP, "sampling_probability"),
    ]
    for key, other in pairs:
        if key in table and other not in table:
            raise ValueError(f"{key} needs {other}")
    return kind, [key for key in allowed if key in table]


def _vectors() -> set[str]:
    """Parameters for which a list of numbers is one value; elsewhere it is a grid."""
    return {parameter for kind in named_kinds().values() for parameter in kind.vectors}


def _value(key: str, value: object) -> Value:
    if key not in _vectors():
        return number_text(key, value)
    if not isinstance(value, list):
        raise ValueError(f"{key} must be a list of numbers, got {value!r}")
    return tuple(number_text(f"{key}[{index}]", entry) for index, entry in enumerate(value))


def workflows(name: str, tables: Iterable[Mapping[str, object]]) -> Iterator[Workflow]:
    """Return the workflows of a grid: one for each choice from the lists that parameters hold.

    Parameters
    ----------
    name : str
        Of the grid; what was chosen is added.
    tables : iterable of mapping
        One table for each phase.

    Raises
    ------
    ValueError
        As in `phase`, and for empty lists.
    """
    phases = [_named(table) for table in tables]
    axes = [
        (index, key, value)
        for index, table in enumerate(phases)
        for key, value in table.items()
        if isinstance(value, list) and (key not in _vectors() or _is_grid(value))
    ]
    number = 1
    for _, key, value in axes:
        if not value:
            raise ValueError(f"{key} must be a number or a list of numbers, got []")
        number *= len(value)
    if number > MANY:
        raise ValueError(f"a grid must have at most {MANY:,} runs, got {number:,}")
    for chosen in itertools.product(*(value for _, _, value in axes)):
        words = []
        for (index, key, _), value in zip(axes, chosen, strict=True):
            phases[index][key] = value
            where = f"phase {index + 1} " if len(phases) > 1 else ""
            words.append(f"{where}{key}={_in_words(key, value)}")
        label = f"{name} ({', '.join(words)})" if words else name
        try:
            yield Workflow(label, tuple(phase(table) for table in phases))
        except ValueError as error:
            at = f" ({', '.join(words)})" if words else ""
            raise ValueError(f"{error}{at}") from None


def _is_grid(value: list[object]) -> bool:
    return bool(value) and all(isinstance(entry, list) for entry in value)


def _in_words(key: str, value: object) -> str:
    text = _value(key, value)
    return text if isinstance(text, str) else f"[{', '.join(text)}]"
