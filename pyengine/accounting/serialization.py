"""Mechanisms, adaptive runs, targets and answers as JSON with a version, and back."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import fields
from fractions import Fraction
from typing import TYPE_CHECKING, Any

import numpy as np

from pyengine._support import checks, toml
from pyengine.api import Bounds
from pyengine.calibration import targets
from pyengine.calibration.targets import Target
from pyengine.engines.answers import Answering
from pyengine.laws.kinds import named_kinds
from pyengine.mechanisms import (
    Mechanism,
    Step,
    TruncatedPoissonSampled,
    as_mechanism,
    compose,
)
from pyengine.mechanisms.core import phases_of
from pyengine.mechanisms.report import NEIGHBOURS
from pyengine.mechanisms.words import Words, worded

if TYPE_CHECKING:
    from pyengine.accounting.noise_range import NoiseRange
    from pyengine.accounting.runs import AdaptiveRun

__all__ = ["SCHEMA", "from_json", "in_words_of", "plain", "to_json"]

SCHEMA = "pyengine/1"
COUNTS = {
    *("batch_size", "truncated_batch_size", "dataset_size", "steps", "steps_per_epoch", "selected"),
    *("sensitivity", "categories", "users", "number"),
}
TARGETS = ("EpsilonDelta", "Gamma", "TradeOff", "Advantage", "GaussianDP")
WORDS = ("adjacency", "method", "threat_model", "tolerance", "bounds")
RANGE = ("noise", "rate", "family")
ADAPTIVE = ("menu", "steps", "costs", "limits", "budget", "order")
INFINITE = {"inf": math.inf, "-inf": -math.inf}  # JSON has no infinity
SAMPLING = (
    "sampling_probability",
    "batch_size",
    "truncated_batch_size",
    "dataset_size",
    "steps",
)


def to_json(value: Mechanism | AdaptiveRun | Target | Bounds, *, indent: int | None = None) -> str:
    """Write a mechanism, a target or an answer as JSON; `from_json` reads it back.

    Parameters
    ----------
    value : Mechanism, AdaptiveRun, Target or Bounds
        What to write.  Mechanisms that hold distributions or functions cannot be written.
    indent : int, optional
        Number of spaces for each level; everything on one line if not given.

    Returns
    -------
    str
        A JSON object with ``schema``, which is "pyengine/1", and one of ``mechanism``,
        ``adaptive``, ``target`` and ``answer``.  Floats are written so that they read back as the
        same double; exact numbers are strings such as "1/3", and infinities "inf" and "-inf".

    Raises
    ------
    ValueError
        For any other value.

    Examples
    --------
    >>> import pyengine as pe
    >>> text = pe.to_json(pe.dp_sgd(1.0, "0.01", 10))
    >>> print(text[24:])
    "mechanism": [{"mechanism": "GaussianMechanism", "noise_multiplier": 1.0, \
"sampling_probability": "1/100", "steps": 10}]}
    >>> pe.from_json(text) == pe.dp_sgd(1.0, "0.01", 10)
    True
    """
    mechanism = as_mechanism(value)
    if mechanism is not None:
        content: dict[str, Any] = {"mechanism": _described(mechanism)}
    elif isinstance(value, Answering):
        content = {"adaptive": _adaptive(value)}
    elif isinstance(value, Target):
        content = {"target": _target(value)}
    elif isinstance(value, Bounds):
        content = {"answer": value._asdict()}
    else:
        raise ValueError(
            f"value must be a Mechanism, an AdaptiveRun, a Target or Bounds, got {value!r}"
        )
    if indent is not None:
        indent = checks.count("indent", indent, most=80)
    import json  # not needed by most programs that import pyengine

    return json.dumps({"schema": SCHEMA, **plain(content)}, indent=indent, allow_nan=False)


def from_json(text: str) -> Any:
    """Read a mechanism, a target or an answer that `to_json` wrote.

    Parameters
    ----------
    text : str
        JSON of the schema "pyengine/1".

    Returns
    -------
    Mechanism, AdaptiveRun, Target or Bounds
        Equal to what was written; the arrays of an answer are of dtype float64.

    Raises
    ------
    ValueError
        For any text or key that is not understood; nothing is ignored silently.
    """
    if not isinstance(text, str):
        raise ValueError(f"text must be a string, got {checks.shown(text)}")
    try:
        content = toml.json_loads(text)
    except ValueError as error:
        raise ValueError(f"text must be JSON: {error}") from None
    if not isinstance(content, dict) or content.pop("schema", None) != SCHEMA:
        raise ValueError(f"text must be a JSON object whose schema is {SCHEMA!r}")
    readers: dict[str, Callable[[Any], Any]] = {
        "mechanism": _read_mechanism,
        "adaptive": _read_adaptive,
        "target": _read_target,
        "answer": _read_answer,
    }
    if len(content) != 1 or not set(content) <= set(readers):
        raise ValueError(f"text must hold one of {', '.join(readers)}, got {', '.join(content)}")
    ((kind, value),) = content.items()
    try:
        return readers[kind](value)
    except RecursionError:  # nested too deeply for us, though not for the JSON parser
        raise ValueError(f"{kind} must be nested less deeply") from None


def _described(mechanism: Mechanism) -> list[dict[str, Any]]:
    described = _phases(mechanism)
    if mechanism.is_step:
        del described[0]["steps"]  # a step is not the composition of one step
    return described


def _phases(mechanism: Mechanism) -> list[dict[str, Any]]:
    """For each kind of step, its parameters, the words of its label, and how often it occurs."""
    return [{**_step(step), "steps": number} for step, number in phases_of(mechanism)]


def _adaptive(run: Answering) -> dict[str, Any]:
    # imported here, because the ledger of that package imports this module
    from pyengine.accounting.noise_range import NoiseRange
    from pyengine.accounting.runs import AdaptiveRun

    if not isinstance(run, AdaptiveRun):
        raise ValueError(f"value must be an AdaptiveRun, got {checks.shown(run)}")
    menu = [
        {name: getattr(choice, name) for name in RANGE}
        if isinstance(choice, NoiseRange)
        else _described(choice)
        for choice in run.menu
    ]
    limits = [{"choices": some, "most": most} for some, most in run.limits]
    found = {"menu": menu, "steps": run.steps, "costs": run.costs, "limits": limits}
    if run.budget is not None:
        found["budget"] = run.budget
    return {**found, "order": run.order}


def _step(step: Step) -> dict[str, Any]:
    described = step.described()
    name = described["mechanism"]
    if name not in named_kinds():
        raise ValueError(f"value must be made of numbers, got a {name}, which holds functions")
    inner: Any = step.inner
    if "parts" in described:
        described["parts"] = [{**_step(part), "steps": number} for part, number in inner.parts]
    elif "mechanisms" in described:
        described["mechanisms"] = [_phases(each) for each in inner.mechanisms]
    elif "base" in described and hasattr(inner, "base"):
        described["base"] = _phases(inner.base)
    own = step.own_words()._asdict()
    words = {key: text for key, text in step.words._asdict().items() if text != own[key]}
    return {**described, "words": words} if words else described


def _target(target: Target) -> dict[str, Any]:
    values = {item.name: getattr(target, item.name) for item in fields(target)}
    if not isinstance(values["threat_model"], str):
        raise ValueError(
            f"value must have a threat_model that is a word, got {values['threat_model']!r}"
        )
    return {"target": type(target).__name__, **values}


def plain(value: Any) -> Any:
    """Convert a value to what JSON can hold: arrays to lists, fractions and infinities to text."""
    if isinstance(value, dict):
        return {key: plain(item) for key, item in value.items()}
    if isinstance(value, np.ndarray):
        return plain(value.tolist())
    if isinstance(value, list | tuple):
        return [plain(item) for item in value]
    if isinstance(value, Fraction):
        try:
            return str(value)
        except ValueError:  # Python's limit on the digits of an integer
            most = f"{toml.MOST_DIGITS:,} digits"
            raise ValueError(f"value must have numbers of at most {most}") from None
    if isinstance(value, float) and math.isinf(value):
        return "inf" if value > 0 else "-inf"
    return value


def _table(name: str, value: Any, word: str, allowed: tuple[str, ...]) -> dict[str, Any]:
    """A copy of an object, after a check that its entry ``word`` is one of those allowed."""
    if not isinstance(value, dict):
        raise ValueError(f"{name} must be an object, got {checks.shown(value)}")
    checks.choice(f"{name}.{word}", value.get(word), allowed)
    return dict(value)


def _read_mechanism(value: Any) -> Mechanism:
    if not isinstance(value, list):
        raise ValueError(f"mechanism must be a list of steps, got {checks.shown(value)}")
    steps = [_read_step(item) for item in value]
    return steps[0] if len(steps) == 1 else compose(*steps)


def _read_adaptive(value: Any) -> AdaptiveRun:
    from pyengine.accounting.runs import adaptive

    if not isinstance(value, dict) or not {"menu", "steps"} <= set(value) <= set(ADAPTIVE):
        raise ValueError(
            f"adaptive must be an object with menu and steps, and with none but "
            f"{', '.join(ADAPTIVE)}, got {checks.shown(value)}"
        )
    given = dict(value)
    menu = [_read_choice(choice) for choice in checks.listed("menu", given.pop("menu"))]
    most: dict[int | tuple[int, ...], Any] = {}
    for limit in checks.listed("limits", given.pop("limits", [])):
        if not isinstance(limit, dict) or set(limit) != {"choices", "most"}:
            raise ValueError(f"limits must hold choices and most, got {checks.shown(limit)}")
        most[tuple(checks.listed("choices", limit["choices"]))] = limit["most"]
    return adaptive(menu, given.pop("steps"), most=most, **given)


def _read_choice(value: Any) -> Mechanism | NoiseRange:
    from pyengine.accounting.noise_range import NoiseRange

    if not isinstance(value, dict):
        return _read_mechanism(value)
    if set(value) != set(RANGE):
        raise ValueError(f"menu must hold ranges of {', '.join(RANGE)}, got {checks.shown(value)}")
    return NoiseRange(value["noise"], value["rate"], value["family"])


def _read_step(value: Any) -> Mechanism:
    given = _table("mechanism", value, "mechanism", tuple(named_kinds()))
    kind = given.pop("mechanism")
    for key in COUNTS & given.keys():
        if isinstance(given[key], float):
            # such as 1e1
            raise ValueError(
                f"{key} must be an integer without point or exponent, got {given[key]!r}"
            )
    for key, read in NESTED.items():
        if key in given:
            given[key] = read(key, given[key])
    words = given.pop("words", None)
    how = {key: given.pop(key) for key in SAMPLING if key in given}
    count = how.pop("steps", None)
    try:
        step = named_kinds()[kind].maker(**given)
        if "truncated_batch_size" in how:
            step = _truncated(step, **how)
            how = {}
        elif "sampling_probability" in how:
            step = step.poisson_sampled(
                checks.rate("sampling_probability", how.pop("sampling_probability"))
            )
        elif how:
            step = step.sampled_without_replacement(**how)
            how = {}
    except TypeError as error:
        raise ValueError(f"mechanism {kind}: {error}") from None
    if how:
        size = next(iter(how))
        rate = value["sampling_probability"]
        raise checks.both_given(**{"sampling_probability": rate, size: how[size]})
    if words is not None:
        step = in_words_of(step, words)
    return step if count is None else step.composed(count)


def in_words_of(step: Step, value: Any) -> Step:
    """Return an equal step whose label has the words of a JSON object, after checking them."""
    if not isinstance(value, dict) or not set(value) <= set(Words._fields):
        raise ValueError(
            f"words must be an object with none but {', '.join(Words._fields)}, got "
            f"{checks.shown(value)}"
        )
    given = dict(value)
    for key, read in TUPLES.items():
        if key in given:
            items = checks.listed(f"words.{key}", given[key])
            readers = read if isinstance(read, tuple) else (read,) * len(items)
            if len(items) != len(readers):
                raise ValueError(f"words.{key} must hold {len(readers)} items, got {len(items)}")
            named = (f"words.{key}[{i}]" for i in range(len(items)))
            given[key] = tuple(map(_applied, readers, named, items))
    for key in given.keys() - TUPLES.keys():
        checks.printable(f"words.{key}", given[key])
    checks.choice("words.neighbours", given.get("neighbours", "present"), tuple(NEIGHBOURS))
    checks.choice("words.known", given.get("known", ""), KNOWN)
    return worded(step, step.own_words()._replace(**given))


def _applied(read: Callable[[str, Any], Any], name: str, value: Any) -> Any:
    return read(name, value)


def _pair(name: str, value: Any) -> tuple[str, ...]:
    items = [] if isinstance(value, str) else checks.listed(name, value)
    if len(items) != 2:
        raise ValueError(f"{name} must be a name and a text, got {checks.shown(value)}")
    return tuple(checks.printable(name, item) for item in items)


def _several(name: str, value: Any) -> list[Mechanism]:
    """Read the component mechanisms of a step, each from a list of its steps."""
    rows = [checks.listed(name, item) for item in checks.listed(name, value)]
    return [compose(*map(_read_step, row)) for row in rows]


def _base(name: str, value: Any) -> Mechanism:
    """Read the component mechanism of a step from a list of its steps."""
    return compose(*map(_read_step, checks.listed(name, value)))


def _infinite(name: str, value: Any) -> list[Any]:
    """A list of numbers, in which "inf" and "-inf" stand for infinities."""
    items = checks.listed(name, value)
    return [INFINITE.get(item, item) if isinstance(item, str) else item for item in items]


def _truncated(
    step: Step, sampling_probability: Any, truncated_batch_size: Any, dataset_size: Any
) -> Step:
    return TruncatedPoissonSampled(step, sampling_probability, truncated_batch_size, dataset_size)


def _exact_text(name: str, value: Any) -> str:
    """A text after a check that it is an exact number; it is returned unchanged."""
    checks.exact(name, checks.printable(name, value))
    return str(value)


KNOWN = ("", "upper bound", "lower bound")
# Entries of words that are lists, and what reads each item (a tuple) or all items.
TUPLES: dict[str, Any] = {
    "hidden": checks.printable,
    "given": _pair,
    "sizes": (checks.count, checks.count),
    "epochs": (checks.count, _exact_text),
    "least": (checks.positive, checks.count),
}
# Entries of a step that are neither a number nor a list of finite numbers, and what reads them.
NESTED: dict[str, Callable[[str, Any], Any]] = {
    "parts": _base,
    "mechanisms": _several,
    "values": _infinite,
    "base": _base,
}


def _read_target(value: Any) -> Target:
    given = _table("target", value, "target", TARGETS)
    make = getattr(targets, given.pop("target"))
    words = {key: given.pop(key) for key in WORDS if key in given}
    try:
        made: Target = make(**{k: _floats(k, v) for k, v in given.items()}, **words)
    except TypeError as error:
        raise ValueError(f"target: {error}") from None
    return made


def _read_answer(value: Any) -> Bounds:
    if not isinstance(value, dict) or set(value) != set(Bounds._fields):
        names = ", ".join(Bounds._fields)
        raise ValueError(f"answer must hold {names}, got {checks.shown(value)}")
    found = Bounds(**{key: _floats(key, item) for key, item in value.items()})
    if not np.shape(found.lower) == np.shape(found.value) == np.shape(found.upper):
        shapes = ", ".join(f"{key} {np.shape(item)}" for key, item in found._asdict().items())
        raise ValueError(f"answer must hold numbers, or lists of one shape, got {shapes}")
    if not np.all((found.lower <= found.value) & (found.value <= found.upper)):
        raise ValueError(f"answer must have lower <= value <= upper, got {checks.shown(value)}")
    return found


def _floats(name: str, value: Any) -> Any:
    """A float, or an array of floats."""
    if isinstance(value, list):
        try:
            return np.array([_floats(name, item) for item in value], dtype=np.float64)
        except ValueError as error:
            if str(error).startswith(name):
                raise
            raise ValueError(f"{name} must be a regular list of numbers") from None
    if isinstance(value, str) and value in INFINITE:
        return INFINITE[value]
    return checks.real(name, value)
