"""The one grammar of mechanisms: flags, ``--phase KEY=VALUE,...`` and TOML files.

A phase is a step and its repetitions, written as keys and values; flags give one phase, files any
number of them.  Numbers stay text until a mechanism is made, so that ``0.1`` is exactly that.
"""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from pyengine import _checks, _toml
from pyengine.cli.errors import CommandError
from pyengine.kinds import Kind, named_kinds
from pyengine.mechanisms import Mechanism, Step, TruncatedPoissonSampled, compose, dp_sgd
from pyengine.mechanisms.dp_sgd import SHUFFLED
from pyengine.mechanisms.names import DP_SGD, PARAMETERS, kind_of, renamed
from pyengine.mechanisms.words import as_given
from pyengine.tables.matrices import MATRIX, MATRIX_KEYS, matrix_of

__all__ = [
    "FLAGS",
    "HELP",
    "Phase",
    "add_mechanism",
    "family",
    "phases_of",
    "phases_of_text",
    "read_mechanism",
    "records_of",
    "to_mechanism",
]

HELP = """\
a mechanism:
  --noise 1.0 --p 0.01 --steps 1000          Poisson-sampled Gaussian: DP-SGD
  --noise 1.0 --p 256/60000 --epochs 10      as many steps as pass ten times over the data
  --mechanism laplace --noise 2 --steps 10   noise is the scale divided by the sensitivity
  --noise 1.0 --batch-size 256 --dataset-size 60000 --sampling poisson --epochs 10
  --noise 1.0 --batch-size 256 --dataset-size 60000 --sampling without_replacement --steps 100
  --noise 1.0 --batch-size 256 --dataset-size 60000 --sampling shuffle --epochs 10
  --noise 1.0 --p 0.01 --steps 1000 --group-size 3    three records of one user
  --noise 1.0 --steps-per-epoch 100 --epochs 10       random allocation: each record once an epoch
  --noise 1.0 --steps-per-epoch 100 --selected 3 --epochs 10    in three random steps of an epoch
  --noise 1.0 --p 0.01 --truncated-batch-size 150 --dataset-size 10000 --steps 1000
  --noise 6 --matrix C.npy --participation fixed_order --times 4 --separation 100
  --phase "mechanism=gaussian_mixture,noise=1,shifts=0 1,weights=1/2 1/2,steps=10"
  --phase noise=2,p=0.01,steps=100 --phase noise=1,p=0.01,steps=900
  --phase mechanism=exponential,epsilon=0.1,steps=10
  --file run.toml      tables [[phase]] with the keys of --phase

numbers: decimal (1e-5) or a fraction (256/60000), taken exactly"""


ALLOCATED = "dp_sgd_allocated"
TRUNCATED = "truncated_batch_size"
SAMPLING = ("p", "batch_size", TRUNCATED, "dataset_size", "sampling", "steps", "epochs")
SAMPLINGS = ("poisson", "without_replacement", "shuffle")
NEEDED = {"selected": "steps_per_epoch", **dict.fromkeys(MATRIX_KEYS[1:], MATRIX)}
SIZES = {"batch_size", "dataset_size"}
SAMPLED = {"p", *SIZES}
UNSAID = (
    "batch_size and dataset_size do not say how batches were drawn, and the ε of Poisson, shuffled "
    "and fixed batches differs by factors: add --sampling poisson (each record joins each batch "
    "independently), --sampling without_replacement (batches of exactly this size, drawn afresh "
    "from all records) or --sampling shuffle (a loader that shuffles the data each epoch); in a "
    'file: sampling = "poisson"'
)
GROUP = "group_size"
LONG = {long: short for short, long in PARAMETERS.items()}
FLAGS = (
    "mechanism",
    "noise",
    "p",
    "steps",
    "epochs",
    "batch_size",
    "dataset_size",
    "sampling",
    "steps_per_epoch",
    "selected",
    "group_size",
    "truncated_batch_size",
    *MATRIX_KEYS,
)

Phase = dict[str, str]


def _flagged() -> dict[str, Kind]:
    """Kinds that flags can say, by their words."""
    return {str(kind.word): kind for kind in named_kinds().values() if kind.is_flag}


def add_mechanism(parser: argparse.ArgumentParser) -> None:
    """Add the flags that describe a mechanism."""
    group = parser.add_argument_group("mechanism")
    group.add_argument(
        "--mechanism",
        choices=(DP_SGD, *_flagged(), *(kind.name for kind in _flagged().values())),
        metavar="NAME",
        help=f"{', '.join((DP_SGD, *_flagged()))}, or the name of the class in Python",
    )
    group.add_argument("--noise", "--noise-multiplier", metavar="X", help="noise multiplier")
    group.add_argument(
        "--p", "--sampling-probability", metavar="P", help="Poisson sampling probability (1)"
    )
    group.add_argument("--steps", metavar="N", help="number of steps (1, unless sampled)")
    group.add_argument("--epochs", metavar="E", help="instead of steps: E / p, rounded up")
    group.add_argument("--batch-size", metavar="B", help="instead of p: batch size")
    group.add_argument("--dataset-size", metavar="D", help="... out of so many records")
    group.add_argument(
        "--sampling",
        choices=SAMPLINGS,
        metavar="WORD",
        help="how batches of that size are drawn, which must be said: poisson, where it is the "
        "expected size; without_replacement; shuffle: a loader that shuffles once an epoch, of "
        "which upper bounds are known, without amplification",
    )
    group.add_argument(
        "--steps-per-epoch",
        metavar="T",
        help="random allocation: each record takes part in one of T steps of each of E epochs",
    )
    group.add_argument(
        "--selected",
        metavar="K",
        help="... in K of the T steps, of which upper bounds are known (1)",
    )
    group.add_argument(
        "--truncated-batch-size",
        metavar="B",
        help="largest size of a Poisson sample: records beyond it are left out at random",
    )
    group.add_argument(
        "--group-size", metavar="K", help="records of a user, each sampled by itself (1)"
    )
    group.add_argument(
        "--matrix",
        metavar="FILE",
        help="C of a matrix mechanism, .npy or .csv: noise is that of C x + z, unscaled",
    )
    group.add_argument(
        "--participation",
        metavar="WORD",
        help="at which of its steps a record takes part: single (default), fixed_order, "
        "min_separation, balls_in_bins",
    )
    group.add_argument("--times", metavar="K", help="... so often at most")
    group.add_argument("--separation", metavar="B", help="... at least so many steps apart")
    group.add_argument("--bins", metavar="B", help="number of bins of balls_in_bins")
    group.add_argument(
        "--classes", metavar="C", help="... in so many classes, bounded by themselves (the best)"
    )
    group.add_argument(
        "--phase",
        action="append",
        default=[],
        metavar="KEY=VALUE,...",
        help="one kind of step and how often; give it again for further ones",
    )
    group.add_argument("--file", type=Path, metavar="FILE.toml", help="read the phases from a file")


def phases_of(arguments: argparse.Namespace) -> list[Phase]:
    """Phases that the flags, ``--phase`` and ``--file`` describe; they may not be mixed."""
    flags = {key: getattr(arguments, key) for key in FLAGS}
    flags = {key: value for key, value in flags.items() if value is not None}
    ways = {"flags such as --noise": flags, "--phase": arguments.phase, "--file": arguments.file}
    given = [way for way, value in ways.items() if value]
    if len(given) > 1:
        raise CommandError(f"give the mechanism once, by {given[0]} or by {given[1]}")
    if arguments.file:
        return _read(arguments.file)
    if arguments.phase:
        return [_parse(text) for text in arguments.phase]
    if flags:
        return [flags]
    raise CommandError("no mechanism: give --noise, --phase or --file")


def phases_of_text(text: str) -> list[Phase]:
    """Phases of one text: ``KEY=VALUE,...``, several apart by semicolons, or a file of TOML."""
    if text.endswith(".toml"):
        return _read(Path(text))
    return [_parse(part) for part in text.split(";")]


def read_mechanism(arguments: argparse.Namespace) -> Mechanism:
    """Mechanism that the arguments describe."""
    phases = phases_of(arguments)
    try:
        return to_mechanism(phases)
    except ValueError as error:
        raise CommandError(str(error)) from None


def records_of(arguments: argparse.Namespace) -> int | None:
    """Number of records that the arguments of a mechanism name, if they do."""
    sizes = [phase["dataset_size"] for phase in phases_of(arguments) if "dataset_size" in phase]
    return max((_checks.count("dataset_size", size) for size in sizes), default=None)


def to_mechanism(phases: list[Phase]) -> Mechanism:
    """Composition of phases; ValueError for what makes none."""
    if len(phases) == 1:
        return compose(_make(phases[0]))
    made = []
    for number, phase in enumerate(phases, start=1):
        try:
            made.append(_make(phase))
        except ValueError as error:
            raise ValueError(f"phase {number}: {error}") from None
    return compose(*made)


def family(phases: list[Phase], key: str, *, others: bool = False) -> Callable[[Any], Mechanism]:
    """Return the mechanism as a function of a key: of the phases that do not say it.

    ``others`` says whether the command can find another key as well.
    """
    names = {key, *(name for name, short in LONG.items() if short == key)}
    free = [not names & phase.keys() for phase in phases]
    if not any(free):
        hint = ", or have another key found by --vary" if others else ""
        raise CommandError(
            f"{key} is given in every phase; omit it in the phase where it is to be found{hint}"
        )

    def make(value: Any) -> Mechanism:
        text = value if isinstance(value, str) else repr(value)
        filled = zip(phases, free, strict=True)
        return to_mechanism([{**phase, key: text} if open_ else phase for phase, open_ in filled])

    return make


def _make(phase: Mapping[str, str]) -> Mechanism:
    keys = renamed(phase, LONG)
    if MATRIX in keys:
        return matrix_of(keys)
    for key, other in NEEDED.items():
        if key in keys and other not in keys and "mechanism" not in keys:
            raise ValueError(f"{key} needs {other}")
    word = keys.pop("mechanism", ALLOCATED if "steps_per_epoch" in keys else "gaussian")
    kind = named_kinds()[kind_of(word)]
    if not kind.is_flag:
        raise ValueError(
            f"mechanism {word!r} has vectors, which a table of pyengine table can hold"
        )
    name = str(kind.word)
    allowed = {LONG.get(parameter, parameter): parameter for parameter in kind.parameters}
    sampling = (*SAMPLING, GROUP) if name == "gaussian" else SAMPLING
    for key in keys:
        if key not in allowed and key not in sampling:
            keys_allowed = ", ".join(["mechanism", *allowed, *sampling])
            hint = _checks.did_you_mean(key, (*LONG, *allowed, *sampling))
            raise ValueError(f"{name} takes no {key!r}; keys: {keys_allowed}{hint}")
    by_size = keys.get("sampling") in ("poisson", *SHUFFLED)
    said = ("p",) if word == DP_SGD and not by_size else ()
    for key in (*(LONG.get(parameter, parameter) for parameter in kind.required), *said):
        if key not in keys:
            raise ValueError(f"{word} needs {key}")
    if keys.get("sampling") in SHUFFLED:
        return _shuffled(name, keys)
    told, keys = _told(keys), _said(keys)
    sampled = not SAMPLED.isdisjoint(keys)
    if (sampled or word in (DP_SGD, ALLOCATED)) and keys.keys().isdisjoint(("steps", "epochs")):
        what = "a sampled mechanism" if sampled else word
        raise ValueError(f"{what} needs steps or epochs; for a single batch give steps 1")
    if GROUP in keys:
        if "p" not in keys:
            raise ValueError(f"{GROUP} needs p")
        size = _checks.count(GROUP, keys[GROUP], least=1)
        run = dp_sgd(keys["noise"], keys["p"], _steps(keys), group_size=size)
        return compose(*(as_given(step, number, **told) for step, number in run.parts))
    given = {
        parameter: keys[key].split() if parameter in kind.vectors else keys[key]
        for key, parameter in allowed.items()
        if key in keys
    }
    step = kind.maker(**given)
    if name == ALLOCATED and "epochs" in keys and "steps" not in keys:
        keys["steps"] = keys.pop("epochs")  # an epoch is one release
        told = {}
    return as_given(_sampled(step, keys), _steps(keys), **told)


def _told(keys: Mapping[str, str]) -> dict[str, Any]:
    """Batches and epochs as they were given, for the words of reports."""
    found: dict[str, Any] = {"epochs": keys.get("epochs")}
    if {"batch_size", "dataset_size"} <= keys.keys():
        found["sizes"] = _checks.batch(keys["batch_size"], keys["dataset_size"])
    elif "/" in keys.get("p", ""):
        found["rate"] = keys["p"]
    return found


def _shuffled(name: str, keys: Mapping[str, str]) -> Mechanism:
    """What dominates a run on batches of a loader that shuffles."""
    if name != "gaussian" or "p" in keys or TRUNCATED in keys:
        raise ValueError(
            "sampling shuffle takes noise, batch_size, dataset_size, and steps or epochs, of "
            f"Gaussian noise only, got {', '.join(f'{key} {keys[key]}' for key in keys)}"
        )
    if not {"batch_size", "dataset_size"} <= keys.keys():
        raise ValueError("sampling shuffle needs batch_size and dataset_size")
    numbers: dict[str, Any] = {key: keys[key] for key in (*SAMPLING, GROUP) if key in keys}
    return dp_sgd(keys["noise"], **{**numbers, "sampling": "shuffle"})


def _said(keys: Mapping[str, str]) -> dict[str, str]:
    """Keys with p where batches of a size are Poisson samples."""
    found = dict(keys)
    if "sampling" not in found:
        if keys.keys() & SIZES and not keys.keys() & {"p", TRUNCATED}:
            raise ValueError(UNSAID)
        return found
    word = _checks.choice("sampling", found.pop("sampling"), SAMPLINGS)
    if not {"batch_size", "dataset_size"} <= found.keys():
        raise ValueError(f"sampling {word} needs batch_size and dataset_size")
    if word == "poisson":
        if "p" in found:
            raise _checks.both_given(p=found["p"], batch_size=found["batch_size"])
        batch, records = _checks.batch(found.pop("batch_size"), found.pop("dataset_size"))
        found["p"] = f"{batch}/{records}"
        if TRUNCATED in found:
            found["dataset_size"] = str(records)
    return found


def _steps(keys: Mapping[str, str]) -> int:
    """Number of steps, said or as many as pass over the data so often, rounded up."""
    if "epochs" not in keys:
        return _checks.count("steps", keys.get("steps", "1"))
    if "steps" in keys:
        raise _checks.both_given(steps=keys["steps"], epochs=keys["epochs"])
    epochs = _checks.exact("epochs", keys["epochs"])
    rate = _checks.exact("p", keys.get("p", "1"))
    if "batch_size" in keys:
        rate = _checks.exact("batch_size", keys["batch_size"]) / _checks.exact(
            "dataset_size", keys["dataset_size"]
        )
    if not (epochs >= 0 and rate > 0):
        raise ValueError(
            f"epochs must be >= 0 and the sampling rate positive, got {keys['epochs']} and {rate}"
        )
    return math.ceil(epochs / rate)


def _sampled(step: Step, keys: Mapping[str, str]) -> Step:
    if TRUNCATED in keys:
        for key in ("p", "dataset_size"):
            if key not in keys:
                raise ValueError(f"{TRUNCATED} needs {key}")
        if "batch_size" in keys:
            raise ValueError(f"give {TRUNCATED} with p, or batch_size with sampling poisson")
        return TruncatedPoissonSampled(step, keys["p"], keys[TRUNCATED], keys["dataset_size"])
    sizes = {key: keys[key] for key in ("batch_size", "dataset_size") if key in keys}
    if sizes and "p" in keys:
        name, size = next(iter(sizes.items()))
        raise _checks.both_given(**{"p": keys["p"], name: size})
    if len(sizes) == 1:
        raise ValueError("sampling without replacement needs batch_size and dataset_size")
    if sizes:
        return step.sampled_without_replacement(
            batch_size=_checks.count("batch_size", sizes["batch_size"]),
            dataset_size=_checks.count("dataset_size", sizes["dataset_size"], least=1),
        )
    return step.poisson_sampled(_checks.rate("p", keys["p"])) if "p" in keys else step


def _parse(text: str) -> Phase:
    phase: Phase = {}
    for item in text.split(","):
        key, equals, value = (part.strip() for part in item.partition("="))
        if not (key and equals and value):
            raise CommandError(f"--phase {text}: expected KEY=VALUE,..., got {item!r}")
        if key in phase:
            raise CommandError(f"--phase {text}: {key} is given twice")
        phase[key] = value
    return phase


def _read(path: Path) -> list[Phase]:
    try:
        content = _toml.loads(path.read_text(encoding="utf-8"), parse_float=str)
    except OSError as error:
        raise CommandError(f"{path}: {error.strerror}") from None
    except ValueError as error:  # also of TOML's syntax and of UTF-8
        # what TOML's parser says of another format would mislead
        is_toml = path.suffix == ".toml" and not isinstance(error, UnicodeDecodeError)
        why = f": {error}" if is_toml else f", got {path.suffix or 'no suffix'}"
        if isinstance(error, UnicodeDecodeError):
            why = ", got no text in UTF-8"
        raise CommandError(
            f"{path}: not a run file; pyengine reads TOML (.toml) with tables [[phase]]{why}"
        ) from None
    unknown = sorted(set(content) - {"phase"})
    phases = content.get("phase")
    if unknown or not isinstance(phases, list) or not phases:
        hint = f"unknown key {unknown[0]!r}" if unknown else "no phase"
        raise CommandError(f"{path}: {hint}; a file holds tables [[phase]]")
    vectors = {parameter for kind in _flagged().values() for parameter in kind.vectors}
    for phase in phases:
        if not isinstance(phase, dict):
            raise CommandError(f"{path}: a phase must be a table, got {phase!r}")
        for key, value in phase.items():
            if key in vectors and isinstance(value, list):
                phase[key] = value = " ".join(map(str, value))
            if isinstance(value, bool) or not isinstance(value, str | int):
                raise CommandError(f"{path}: {key} must be a number or a string, got {value!r}")
            if key == MATRIX:  # beside the file that names it
                phase[key] = str(path.parent / str(value))
    return [{key: str(value) for key, value in phase.items()} for phase in phases]
