"""The JSON schema of run files, for editors: the allowed keys with their meanings."""

from __future__ import annotations

from typing import Any

from pyengine._version import __version__
from pyengine.mechanisms.words import UNITS
from pyengine.threat.risks import ASKED
from pyengine.workbench.runs.files import OPTIONS, RUNS, SECTIONS, VARIED
from pyengine.workbench.runs.grammar import ADJACENCIES, SAMPLINGS, keys_of, short
from pyengine.workbench.runs.makers import ALIASES, Maker, makers

__all__ = ["run_schema"]

DRAFT = "http://json-schema.org/draft-07/schema#"  # supported by all editors
WORDS = {
    "runs": ["poisson", "geometric", "negative_binomial", "binomial", "fixed"],
    "participation": ["single", "fixed_order", "min_separation", "balls_in_bins"],
}
MEANINGS = {
    "mechanism": "what a step releases; Gaussian noise if not given",
    "noise_multiplier": "standard deviation or scale of the noise over the sensitivity",
    "sampling_probability": "probability with which each record joins a batch",
    "batch_size": "size of a batch, or the expected one; sampling says how it is drawn",
    "dataset_size": "number of records that batches are drawn from",
    "sampling": "how batches of a size are drawn",
    "steps": "how often the step runs",
    "epochs": "instead of steps: how often they pass over the data; of random allocation, epochs",
    "truncated_batch_size": "largest size of a Poisson sample",
    "group_size": "records of one user",
    "unit": "what joins batches and is protected as a whole, for labels",
    "steps_per_epoch": "random allocation: each record enters one step of an epoch",
    "selected": "random allocation: in so many steps of an epoch",
    "matrix": "file .npy or .csv with C of a matrix mechanism",
    "votes": "file .npy or .csv of numbers of votes: a row for each query, a column for each class",
    "participation": "in which of its steps a record takes part",
    "base": "phases of one run, or the name of a run file",
    "mechanisms": "runs, each as phases or the name of a run file",
    "parts": "phases that release on one sample, or the name of a run file",
    "weights": "probabilities, with a sum of 1",
}
OF_TABLES: dict[str, dict[str, Any]] = {
    "engine": {"enum": ["auto", "reference"]},
    "digits": {"type": "integer", "minimum": 1, "maximum": 200},
    "formats": {"type": "array", "items": {"type": "string"}},
    "special": {"type": "array", "items": {"type": "object"}},
}
NUMBER = {"$ref": "#/definitions/number"}
NUMBERS = {"$ref": "#/definitions/numbers"}
PHASES = {"$ref": "#/definitions/phases"}


def run_schema() -> dict[str, Any]:
    """Return the JSON schema (draft 7) of run files in TOML, JSON and YAML."""
    phase = _phase()
    names = {key: _section(key) for key in SECTIONS}
    common = {**names, **{key: OF_TABLES[key] for key in OPTIONS}, "$schema": {"type": "string"}}
    run = {
        "type": "object",
        "description": "a run with a name: the keys of one phase, or phase",
        "properties": {"name": {"type": "string"}, "phase": PHASES, **phase["properties"]},
        "additionalProperties": False,
        "allOf": _rules("name"),
    }
    # keys such as "delta" are numbers of a phase, or tables with a question
    either = {
        key: {"anyOf": [common[key], value]} if key in common else value
        for key, value in phase["properties"].items()
    }
    several = {"type": "array", "items": {"$ref": "#/definitions/run"}, "minItems": 1}
    return {
        "$schema": DRAFT,
        "title": "A run of pyengine",
        "description": f"Run files of pyengine {__version__}: phases, runs, and what is asked.",
        "anyOf": [PHASES, {"$ref": "#/definitions/file"}],
        "definitions": {
            "number": {
                "description": "a decimal number or a fraction of two, taken exactly",
                "anyOf": [{"type": "number"}, {"type": "string", "pattern": r"^[^A-Za-z_]|^inf$"}],
            },
            "numbers": {
                "description": 'a number; a list or a range, such as "1:100", makes a grid of runs',
                "anyOf": [NUMBER, {"type": "array", "items": NUMBER, "minItems": 1}],
            },
            "phase": phase,
            "phases": {"type": "array", "items": {"$ref": "#/definitions/phase"}, "minItems": 1},
            "run": run,
            "file": {
                "type": "object",
                "properties": {
                    **common,
                    **either,
                    "phase": PHASES,
                    **dict.fromkeys(RUNS, several),
                },
                "additionalProperties": False,
                "allOf": _rules(*common),
            },
        },
    }


def _phase() -> dict[str, Any]:
    """Schema of a phase: all keys, and for each mechanism those that it takes."""
    known = makers()
    properties: dict[str, Any] = {
        "mechanism": {"enum": list(known), "description": MEANINGS["mechanism"]}
    }
    for maker in known.values():
        names = keys_of(maker)
        for key in names:
            for name in (key, *(other for other, long in ALIASES.items() if long == key)):
                found = _value(maker, key)
                properties[name] = _joined(properties.get(name), found)
    return {
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
        "allOf": _rules(),
    }


def _rules(*others: str) -> list[dict[str, Any]]:
    """Rules that restrict the keys, for each mechanism."""
    alike: dict[tuple[str, ...], list[str]] = {}
    for word, maker in makers().items():
        names = keys_of(maker)
        allowed = {"mechanism", *names, *map(short, names), *others}
        allowed |= {other for other, long in ALIASES.items() if long in names}
        alike.setdefault(tuple(sorted(allowed)), []).append(word)
    return [
        {
            "if": {"properties": {"mechanism": {"enum": words}}, "required": ["mechanism"]},
            "then": {"propertyNames": {"enum": list(keys)}},
        }
        for keys, words in alike.items()
    ]


def _joined(known: Any, found: dict[str, Any]) -> dict[str, Any]:
    """Schema of a key that several mechanisms have, with any of their values."""
    if known is None or known == found:
        return found
    several = known["anyOf"] if "anyOf" in known and "description" not in known else [known]
    return {"anyOf": several if found in several else [*several, found]}


def _value(maker: Maker, key: str) -> dict[str, Any]:
    meaning = {"description": MEANINGS[key]} if key in MEANINGS else {}
    if key in ("sampling", "unit"):
        return {**meaning, "enum": list(SAMPLINGS if key == "sampling" else UNITS)}
    if key in maker.texts:
        return {**meaning, **({"enum": WORDS[key]} if key in WORDS else {"type": "string"})}
    if key in maker.nested:
        one = [PHASES, {"$ref": "#/definitions/phase"}, {"type": "string"}]
        if key != "mechanisms":
            return {**meaning, "anyOf": one}
        return {**meaning, "type": "array", "items": {"anyOf": one}, "minItems": 1}
    if key in maker.vectors:
        return {**meaning, "type": "array", "items": NUMBERS, "minItems": 1}
    return {**meaning, "allOf": [NUMBERS]}  # allOf, since other keys beside a $ref are ignored


def _section(name: str) -> dict[str, Any]:
    """Schema of a table with a question or a target."""
    texts: dict[str, Any] = {
        "adjacency": {"enum": list(ADJACENCIES)},
        "title": {"type": "string"},
        "vary": {"enum": list(VARIED)},
        "threat_model": {"type": "string"},
    }
    if name in ASKED:
        for key in ("adjacency", "threat_model"):
            texts[key] = {"anyOf": [texts[key], {"type": "array", "items": texts[key]}]}
    return {
        "type": "object",
        "properties": {key: texts.get(key, NUMBERS) for key in SECTIONS[name]},
        "additionalProperties": False,
    }
