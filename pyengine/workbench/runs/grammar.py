"""The common grammar of mechanisms: a table of keys and values describes a phase of equal steps.

It is used by run files, flags, ``--phase``, tables of many runs, and rows to be verified.  Numbers
are kept as text until a mechanism is made, so that ``0.1`` is exactly 1/10.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from fractions import Fraction
from pathlib import Path
from typing import Any, get_args

from pyengine._support import checks
from pyengine._support.caches import cached_property
from pyengine.api.typing import Adjacency
from pyengine.mechanisms import (
    Mechanism,
    Step,
    TruncatedPoissonSampled,
    compose,
    describe,
    dp_sgd,
    steps_of,
)
from pyengine.mechanisms.dp_sgd import SHUFFLED
from pyengine.mechanisms.report import of_units
from pyengine.mechanisms.words import UNITS, as_given
from pyengine.workbench.runs.makers import (
    ALIASES,
    ALLOCATED,
    DP_SGD,
    MATRIX,
    Maker,
    maker_of,
    renamed,
)
from pyengine.workbench.runs.numbers import Literal, number_text

__all__ = [
    *("ADJACENCIES", "COUNTS", "FILES", "SAMPLING", "SAMPLINGS", "Beside", "NamedRun", "Phase"),
    *("Table", "composed_of", "default_word", "family", "keys_of", "named", "phase", "short"),
]

Table = Mapping[str, Any]
ADJACENCIES: tuple[str, ...] = get_args(Adjacency)


def _no_file(path: Path) -> Mechanism:
    raise ValueError(f"a run file cannot be named here, got {str(path)!r}")


@dataclass(frozen=True)
class Beside:
    """Directory to which file names in a table are relative, and the reader of run files."""

    directory: Path = Path()
    load: Callable[[Path], Mechanism] = _no_file


HERE = Beside()
Value = str | tuple[Any, ...]

SAMPLINGS = ("poisson", "without_replacement", "with_replacement", "shuffle")
BY_DP_SGD = ("with_replacement", *SHUFFLED)  # samplings that only dp_sgd can make
TRUNCATED = "truncated_batch_size"
GROUP = "group_size"
UNIT = "unit"  # the protected unit, which joins batches as a whole; for labels only
SIZES = ("batch_size", "dataset_size")
FILES = ("matrix", "votes")  # keys whose values are names of files
SAMPLING = ("sampling_probability", "batch_size", TRUNCATED, "dataset_size", "sampling")
REPEATED = ("steps", "epochs")
NEEDED = {
    "selected": "steps_per_epoch",
    **dict.fromkeys(("participation", "times", "separation", "bins", "classes"), "matrix"),
}
# Integer parameters, for which FROM:TO is the range of all integers from one to the other.
COUNTS = {
    *("steps", "epochs", "batch_size", TRUNCATED, "dataset_size", "steps_per_epoch", "selected"),
    *(GROUP, "sensitivity", "categories", "users", "number", "queries", "keys", "bands"),
    *("summands", "sides"),
    *("times", "separation", "bins", "classes"),
}
SHORT = {"noise_multiplier": "noise", "sampling_probability": "p"}
UNSAID = (
    "batch_size and dataset_size do not say how batches were drawn, and the ε of Poisson, shuffled "
    "and fixed batches differs by factors: add --sampling poisson (each record joins each batch "
    "independently), --sampling without_replacement (batches of exactly this size, drawn afresh "
    "from all records) or --sampling shuffle (a loader that shuffles the data each epoch); in a "
    'file: sampling = "poisson"'
)


@dataclass(frozen=True)
class Phase:
    """A composition of equal steps with exact parameters.

    ``said`` holds the name of the class and the parameters as given, if JSON has the same ones;
    otherwise it is empty.
    """

    mechanism: Mechanism
    said: tuple[tuple[str, Value], ...] = ()

    @cached_property
    def described(self) -> list[dict[str, Any]]:
        """Name of the class (``mechanism``) and exact texts of the parameters, for each step."""
        if self.said:
            return [dict(self.said)]
        return [_texts(step) for step in describe(self.mechanism)]


def _texts(value: Any) -> Any:
    """Convert all numbers inside to exact texts; words are unchanged, lists become tuples."""
    if isinstance(value, dict):
        return {key: _texts(item) for key, item in value.items()}
    if isinstance(value, list | tuple):
        return tuple(map(_texts, value))
    if isinstance(value, str):
        return value
    return str(value) if isinstance(value, float) and math.isinf(value) else str(Fraction(value))


@dataclass(frozen=True)
class NamedRun:
    """A mechanism with a name, for tables and plots."""

    name: str
    phases: tuple[Phase, ...]

    @cached_property
    def mechanism(self) -> Mechanism:
        """The composition of the phases, with exact parameters."""
        return compose(*(phase.mechanism for phase in self.phases))

    @cached_property
    def described(self) -> list[dict[str, Any]]:
        """As of `Phase`, for all phases."""
        return [step for phase in self.phases for step in phase.described]

    @property
    def kind(self) -> str:
        """Names of the classes of the steps."""
        return " + ".join(step["mechanism"] for step in self.described)

    @property
    def numbers(self) -> dict[str, str] | None:
        """Names and texts of the parameters, if all are single numbers of one kind of step."""
        if len(self.described) != 1:
            return None
        (step,) = self.described
        found = {key: value for key, value in step.items() if key != "mechanism"}
        return found if all(isinstance(value, str) for value in found.values()) else None

    def get(self, parameter: str) -> str | None:
        """Text of a parameter that is a single number; None if there is no such parameter."""
        if len(self.described) != 1:
            return None
        value = self.described[0].get(parameter)
        return value if isinstance(value, str) else None


def short(key: str, own: Iterable[str] = ()) -> str:
    """Return the command-line name of a parameter, if the mechanism has no ``own`` one so named."""
    name = SHORT.get(key, key)
    return key if name in own else name


def default_word(table: Table) -> str:
    """Return the mechanism of a table that names none."""
    if "matrix" in table:
        return MATRIX
    return ALLOCATED if "steps_per_epoch" in table else "gaussian"


def keys_of(maker: Maker) -> tuple[str, ...]:
    """Return the keys allowed in a phase, besides ``mechanism``, by their Python names."""
    group = (GROUP,) if maker.word == "gaussian" else ()
    more = (*SAMPLING, *group, *REPEATED)
    if maker.word == MATRIX or "steps" in maker.parameters:  # the mechanism has all steps
        more = ()
    return (*maker.parameters, *(key for key in more if key not in maker.parameters), UNIT)


def phase(table: Table, beside: Beside = HERE) -> Phase:
    """Make a phase from a table with one value for each key.

    The keys are ``mechanism`` (by default Gaussian), its parameters, those of the sampling, and
    ``steps`` or ``epochs``, by their names in Python or on the command line.  ValueError for
    unknown names, missing parameters, and values outside their domains.
    """
    if "words" in table and isinstance(table["words"], Mapping):  # a row of `pyengine.to_json`
        from pyengine.accounting.serialization import in_words_of

        rest = {key: value for key, value in table.items() if key != "words"}
        words, plain = table["words"], phase(rest, beside)
        said = (in_words_of(step, words).composed(n) for step, n in steps_of(plain.mechanism))
        return Phase(compose(*said), plain.said)
    word, maker, keys = named(table)
    _check_required(word, maker, keys)
    unit = checks.choice(UNIT, keys.pop(UNIT, "record"), UNITS)
    if unit != "record" and GROUP in keys:
        raise ValueError(f"{GROUP} must be left out where {UNIT} is {unit!r}, got {keys[GROUP]}")
    given = {key: _value(maker, key, value, beside) for key, value in keys.items()}
    made = of_units(compose(_made(word, maker, given)), unit)
    return Phase(made, _said(word, maker, given))


def composed_of(tables: Iterable[Table], beside: Beside = HERE) -> Mechanism:
    """Return the composition of phases; ValueError for invalid ones."""
    return NamedRun("", tuple(_each(list(tables), beside))).mechanism


def _each(tables: list[Table], beside: Beside) -> Iterable[Phase]:
    for number, table in enumerate(tables, start=1):
        try:
            yield phase(table, beside)
        except ValueError as error:
            where = f"phase {number}: " if len(tables) > 1 else ""
            raise ValueError(f"{where}{error}") from None


def family(
    tables: list[dict[str, Any]], key: str, beside: Beside = HERE, *, others: bool = False
) -> Callable[[Any], Mechanism]:
    """Return the mechanism as a function of a key that is missing in some phases.

    ``others`` says whether the command can vary other keys, for the error message.
    """
    name = ALIASES.get(key, key)
    free = [name not in renamed(table) for table in tables]
    if not any(free):
        hint = ", or have another key found by --vary" if others else ""
        raise ValueError(
            f"{key} is given in every phase; omit it in the phase where it is to be found{hint}"
        )

    def make(value: Any) -> Mechanism:
        text = value if isinstance(value, str) else repr(value)
        filled = zip(tables, free, strict=True)
        return composed_of(
            [{**table, key: text} if open_ else table for table, open_ in filled], beside
        )

    return make


def named(table: Table) -> tuple[str, Maker, dict[str, Any]]:
    """The mechanism's word in a table, its maker, and the other keys by their Python names.

    ValueError for a key that the mechanism does not take; ``words`` of `pyengine.to_json` is
    dropped.
    """
    word = table.get("mechanism", default_word(table))
    maker = maker_of(word)
    rest = {key: value for key, value in table.items() if key != "mechanism"}
    if isinstance(rest.get("words"), Mapping):
        del rest["words"]
    keys = renamed(rest, maker.parameters)
    for key, other in NEEDED.items():
        if key in keys and key not in maker.parameters and maker.word == "gaussian":
            raise ValueError(f"{key} needs {other}")
    allowed = keys_of(maker)
    for key in keys:
        if key not in allowed:
            if maker.word == MATRIX and key in (*SAMPLING, *REPEATED):
                raise ValueError(f"a matrix takes no {key!r}: all steps are in it")
            brief = [short(each, maker.parameters) for each in allowed]
            hint = checks.did_you_mean(key, (*brief, *allowed))
            names = "" if hint else f"; {word} takes {', '.join(brief)}"
            if key in ("phase", "phases"):
                names = "; phases are tables [[phase]], and within another mechanism a list"
            raise ValueError(f"unknown key {key!r}{hint}{names}")
    return str(word), maker, keys


def _check_required(word: str, maker: Maker, keys: Table) -> None:
    for key in maker.required:
        if key not in keys:
            raise ValueError(f"{word} needs {short(key)}")
    by_size = keys.get("sampling") in ("poisson", *BY_DP_SGD)
    if word == DP_SGD and not by_size and "sampling_probability" not in keys:
        raise ValueError(UNSAID if keys.keys() & set(SIZES) else f"{word} needs p")


def _value(maker: Maker, key: str, value: Any, beside: Beside) -> Any:
    """Argument for a constructor: exact text of a number, a word, a file, or a mechanism."""
    if key in maker.nested:
        return _nested(key, value, beside)
    if key in maker.texts or key == "sampling":
        if not isinstance(value, str) or isinstance(value, Literal):
            raise ValueError(f"{key} must be a word, got {value!r}")
        return beside.directory / value if key in FILES else str(value)
    if key in maker.vectors:
        is_text = isinstance(value, str) and not isinstance(value, Literal)
        entries = value.split() if is_text else value
        if not isinstance(entries, list) or not entries:
            raise ValueError(f"{key} must be a list of numbers, got {value!r}")
        return tuple(_number(maker, key, item, f"{key}[{i}]") for i, item in enumerate(entries))
    return _number(maker, key, value, key)


def _number(maker: Maker, key: str, value: Any, name: str) -> Any:
    rounding = maker.doubles.get(key)
    if rounding is None:
        return number_text(name, value)
    if str(value).lstrip("+") == "inf":
        return math.inf
    return _double(checks.exact(name, number_text(name, value)), rounding)


def _double(exact: Fraction, rounding: str) -> float:
    """The nearest double, or the next one in the direction that ``rounding`` requires."""
    value = checks.as_double(exact)
    if rounding == "up" and value < exact:
        return math.nextafter(value, math.inf)
    if rounding == "down" and value > exact:
        return math.nextafter(value, -math.inf)
    return value


def _nested(key: str, value: Any, beside: Beside) -> Any:
    """The mechanism of phases or of another run file; for "mechanisms" a list of mechanisms."""
    if key == "mechanisms":
        if not isinstance(value, list | tuple) or not value:
            raise ValueError(f"{key} must be a list of runs, got {value!r}")
        return [_whole(f"{key}[{i}]", item, beside) for i, item in enumerate(value)]
    return _whole(key, value, beside)


def _whole(name: str, value: Any, beside: Beside) -> Mechanism:
    if isinstance(value, str):
        return beside.load(beside.directory / value)
    tables = [value] if isinstance(value, Mapping) else value
    if not isinstance(tables, list | tuple) or not all(isinstance(t, Mapping) for t in tables):
        raise ValueError(f"{name} must be phases or the name of a run file, got {value!r}")
    try:
        return composed_of(list(tables), beside)
    except ValueError as error:
        raise ValueError(f"{name}: {error}") from None


def _said(word: str, maker: Maker, given: Table) -> tuple[tuple[str, Value], ...]:
    """Class and parameters as given, if JSON has the same parameters; otherwise empty."""
    own = (*maker.parameters, "sampling_probability", *SIZES, TRUNCATED, GROUP, "steps")
    if maker.kind == "RandomlyAllocated":
        given = {"steps" if key == "epochs" else key: value for key, value in given.items()}
    plain = maker.kind and not maker.nested and not maker.doubles and set(given) <= set(own)
    if not plain or ("batch_size" in given and word != maker.kind):
        return ()
    rows = {"mechanism": maker.kind, **{key: given[key] for key in own if key in given}}
    return tuple({**rows, "steps": given.get("steps", "1")}.items())


def _made(word: str, maker: Maker, keys: dict[str, Any]) -> Mechanism:
    if keys.get("sampling") in BY_DP_SGD:
        return _by_dp_sgd(maker, keys)
    told, keys = _told(keys), _with_rate(word, maker, keys)
    own = {key: keys[key] for key in maker.parameters if key in keys}
    if "steps" in maker.parameters or word == MATRIX:
        return compose(maker.make(**own))
    drawn = [key for key in ("sampling_probability", *SIZES) if key in keys]
    if (drawn or word in (DP_SGD, ALLOCATED)) and not {"steps", "epochs"} & keys.keys():
        if word == ALLOCATED:
            raise ValueError("random allocation needs epochs, got none")
        what = "a sampled mechanism" if drawn else word
        raise ValueError(f"{what} needs steps or epochs; for a single batch give steps 1")
    if GROUP in keys:
        if "sampling_probability" not in keys:
            raise ValueError(f"{GROUP} needs p")
        size = checks.count(GROUP, keys[GROUP], least=1)
        rate, noise = keys["sampling_probability"], keys["noise_multiplier"]
        run = dp_sgd(noise, rate, _steps(keys), group_size=size)
        return compose(*(as_given(step, number, **told) for step, number in run.parts))
    made = maker.make(**own)
    if not made.is_step:
        for key in drawn:
            raise ValueError(
                f"{word} draws no batches, got {short(key, maker.parameters)} {keys[key]}"
            )
        run_of_all: Mechanism = made.composed(_steps(keys))
        return run_of_all
    if maker.word == ALLOCATED and "epochs" in keys and "steps" not in keys:
        keys["steps"] = keys.pop("epochs")  # an epoch is one release
        told = {}
    return as_given(_sampled(made, keys), _steps(keys), **told)


def _told(keys: Table) -> dict[str, Any]:
    """Batch sizes, rate and epochs as given, for the labels."""
    found: dict[str, Any] = {"epochs": keys.get("epochs")}
    if set(SIZES) <= keys.keys():
        found["sizes"] = checks.batch(keys["batch_size"], keys["dataset_size"])
    elif "/" in keys.get("sampling_probability", ""):
        found["rate"] = keys["sampling_probability"]
    return found


def _by_dp_sgd(maker: Maker, keys: Table) -> Mechanism:
    """A dominating mechanism for shuffled batches or batches drawn with replacement."""
    how = keys["sampling"]
    if maker.word != "gaussian" or "sampling_probability" in keys or TRUNCATED in keys:
        raise ValueError(
            f"sampling {how} takes noise, batch_size, dataset_size, and steps or epochs, of "
            f"Gaussian noise only, got {', '.join(f'{short(key)} {keys[key]}' for key in keys)}"
        )
    if not set(SIZES) <= keys.keys():
        raise ValueError(f"sampling {how} needs batch_size and dataset_size")
    names = (*SIZES, *REPEATED, GROUP)
    numbers: dict[str, Any] = {key: keys[key] for key in names if key in keys}
    made: Mechanism = dp_sgd(keys["noise_multiplier"], **{**numbers, "sampling": how})
    return made


def _with_rate(word: str, maker: Maker, keys: Table) -> dict[str, Any]:
    """Keys with the sampling probability instead of sizes, for Poisson samples."""
    found = dict(keys)
    if "sampling" not in found:
        known = {"sampling_probability", TRUNCATED}
        # with the name of a class, as in JSON, batches have exactly this size
        if keys.keys() & set(SIZES) and not keys.keys() & known and word != maker.kind:
            raise ValueError(UNSAID)
        return found
    how = checks.choice("sampling", found.pop("sampling"), SAMPLINGS)
    if how == "poisson" and "sampling_probability" in found and not found.keys() & set(SIZES):
        return found  # as p alone
    if not set(SIZES) <= found.keys():
        raise ValueError(f"sampling {how} needs batch_size and dataset_size")
    if how == "poisson":
        if "sampling_probability" in found:
            rate, size = found["sampling_probability"], found["batch_size"]
            raise checks.both_given(sampling_probability=rate, batch_size=size)
        least = int("epochs" in found)  # empty batches never make one
        batch, records = checks.batch(found.pop("batch_size"), found.pop("dataset_size"), least)
        found["sampling_probability"] = f"{batch}/{records}"
        if TRUNCATED in found:
            found["dataset_size"] = str(records)
    return found


def _steps(keys: Table) -> int:
    """Number of steps, as given or from the number of epochs, rounded up."""
    if "epochs" not in keys:
        return checks.count("steps", keys.get("steps", "1"))
    if "steps" in keys:
        raise checks.both_given(steps=keys["steps"], epochs=keys["epochs"])
    epochs = checks.exact("epochs", keys["epochs"])
    if epochs < 0:
        raise ValueError(f"epochs must be >= 0, got {keys['epochs']}")
    if "batch_size" in keys:
        batch, records = checks.batch(keys["batch_size"], keys["dataset_size"], least=1)
        return math.ceil(epochs * records / batch)
    rate = checks.exact("sampling_probability", keys.get("sampling_probability", "1"))
    if not rate > 0:
        raise ValueError(
            f"sampling_probability must be positive where epochs are given, got {rate}"
        )
    return math.ceil(epochs / rate)


def _sampled(step: Step, keys: Table) -> Step:
    if TRUNCATED in keys:
        for key in ("sampling_probability", "dataset_size"):
            if key not in keys:
                raise ValueError(f"{TRUNCATED} needs {short(key)}")
        if "batch_size" in keys:
            raise ValueError(f"give {TRUNCATED} with p, or batch_size with sampling poisson")
        rate = keys["sampling_probability"]
        return TruncatedPoissonSampled(step, rate, keys[TRUNCATED], keys["dataset_size"])
    sizes = {key: keys[key] for key in SIZES if key in keys}
    if sizes and "sampling_probability" in keys:
        name, size = next(iter(sizes.items()))
        raise checks.both_given(sampling_probability=keys["sampling_probability"], **{name: size})
    if len(sizes) == 1:
        raise ValueError("sampling without replacement needs batch_size and dataset_size")
    if sizes:
        return step.sampled_without_replacement(
            batch_size=checks.count("batch_size", sizes["batch_size"]),
            dataset_size=checks.count("dataset_size", sizes["dataset_size"], least=1),
        )
    if "sampling_probability" in keys:
        return step.poisson_sampled(
            checks.rate("sampling_probability", keys["sampling_probability"])
        )
    return step
