"""Parsing of run files in TOML, JSON, YAML or CSV, recognized by content, with line numbers."""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

from pyengine._support import toml
from pyengine._support.extras import MissingPackageError, needed
from pyengine.workbench.runs.grammar import keys_of
from pyengine.workbench.runs.makers import ALIASES, makers
from pyengine.workbench.runs.numbers import Literal

__all__ = ["SEPARATORS", "Content", "SpecificationError", "json_value", "read_text"]

READS = "pyengine reads TOML, JSON, YAML, and CSV with columns such as noise, rate, steps"
SEPARATORS = (",", ";", "\t")
DEEPEST = 50  # most levels of nesting; valid run files have at most seven
BEGIN = ("[", "{", "<block mapping start>", "<block sequence start>")  # YAML tokens
END = ("]", "}", "<block end>")
Path = tuple[str | int, ...]
HEADER = re.compile(r"\s*\[(\[)?\s*([^\[\]]+?)\s*\]\]?\s*(?:#.*)?$")


class SpecificationError(ValueError):
    """A file is no valid run file; the message says where and why."""


@dataclass(frozen=True)
class Content:
    """The value of a parsed text, with line numbers.

    A list of phases is stored as ``phase``; numbers are `Literal`.  ``lines`` maps the path of
    a table and a key in it to the line of the key, or to None if it is not found.
    """

    value: Any
    lines: Callable[[Path, str], int | None]


def read_text(text: str, suffix: str = "") -> Content:
    """Parse a text in any of the formats; ValueError if it is in none of them.

    The suffix of the file's name determines which parser's error is reported.
    """
    text = text.removeprefix("\ufeff")
    start = text.lstrip()[:1]
    if start == "{" or (start == "[" and suffix == ".json"):
        return _json(text) if suffix == ".json" else _json_or_yaml(text)
    rows = _csv(text)
    if rows is not None:
        return rows
    try:
        value = toml.loads(text, parse_float=Literal)
    except ValueError as error:
        return _other(text, suffix, error)
    return Content(_literal(value), _toml_lines(text))


def _json_or_yaml(text: str) -> Content:
    """Parse a text that begins with a brace: JSON or YAML."""
    try:
        return _json(text)
    except ValueError as error:
        try:
            return _yaml(text)
        except ValueError:
            raise error from None


def _other(text: str, suffix: str, error: ValueError) -> Content:
    """Parse a text that is not TOML; ``error`` is that of the TOML parser."""
    if text.lstrip().startswith("["):
        try:
            return _json(text)
        except ValueError:
            pass
    looks = re.search(r"^[ \t-]*[A-Za-z_]\w*[ \t]*:(?:[ \t]|$)", text, re.M)
    if suffix in (".yaml", ".yml") or (looks and suffix != ".toml"):
        return _yaml(text)
    # the error of the TOML parser would mislead for another format
    if suffix in (".toml", "") and text.strip():
        raise ValueError(f"not a run file: {error}; {READS}") from None
    raise ValueError(f"not a run file; {READS}") from None


def _literal(value: Any, depth: int = 0) -> Any:
    """The value with integers as texts, too: a list is told from a number by its kind alone."""
    if depth > DEEPEST:
        raise ValueError("nested too deeply")
    if isinstance(value, dict):
        return {key: _literal(item, depth + 1) for key, item in value.items()}
    if isinstance(value, list):
        return [_literal(item, depth + 1) for item in value]
    return Literal(value) if isinstance(value, int) and not isinstance(value, bool) else value


def json_value(text: str) -> Any:
    """Value of a text of JSON, with numbers digit for digit; ValueError if it is none."""
    return toml.json_loads(text, parse_float=Literal, parse_constant=Literal)


def _json(text: str) -> Content:
    try:
        value = json_value(text)
    except ValueError as error:
        raise ValueError(f"not a run file: JSON: {error}; {READS}") from None
    value = _literal({"phase": value} if isinstance(value, list) else value)
    return Content(value, _lines_by_order(text, value))


def _yaml(text: str) -> Content:
    try:
        with needed("a run file in YAML", "yaml"):
            import yaml
    except MissingPackageError as error:
        raise ValueError(str(error)) from None
    try:
        depth = 0
        for token in yaml.scan(text):  # whose time grows with the square of the depth
            # a few lines of aliases can stand for more than memory holds
            if isinstance(token, yaml.AliasToken):
                raise ValueError("not a run file: YAML: an alias, where values must be written out")
            depth += token.id in BEGIN
            depth -= token.id in END
            if depth > DEEPEST:
                raise ValueError("nested too deeply")
        node = yaml.compose(text, Loader=yaml.SafeLoader)
        if node is None:
            raise ValueError(f"not a run file; {READS}")
        value = _of_node(node, 0)
        value = {"phase": value} if isinstance(value, list) else value
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        at = f"line {mark.line + 1}: " if mark else ""
        raise ValueError(f"not a run file: YAML: {at}{error.problem}; {READS}") from None
    except yaml.YAMLError:
        raise ValueError(f"not a run file: YAML: no text of Unicode; {READS}") from None
    except RecursionError:
        raise ValueError("nested too deeply") from None
    return Content(value, _lines_by_order(text, value))


def _of_node(node: Any, depth: int) -> Any:
    """The value of a node of YAML; what is not quoted is a number, or a word."""
    if depth > DEEPEST:
        raise ValueError("nested too deeply")
    if node.id == "mapping":
        found: dict[str, Any] = {}
        for key, item in node.value:
            name = str(key.value)
            if name in found:
                raise ValueError(
                    f"line {key.start_mark.line + 1}: the key {name[:60]!r} is given twice"
                )
            found[name] = _of_node(item, depth + 1)
        return found
    if node.id == "sequence":
        return [_of_node(item, depth + 1) for item in node.value]
    text = str(node.value)
    if node.tag.endswith((":int", ":float")):
        return Literal(text.lstrip(".") if text.lstrip("+-.").lower() in ("inf", "nan") else text)
    if node.tag.endswith(":bool"):
        return text.lower() in ("true", "yes", "on")
    return None if node.tag.endswith(":null") else text


def _csv(text: str) -> Content | None:
    """Rows of a table whose header names keys of phases; None for what has no such header."""
    lines = [(i, line) for i, line in enumerate(text.splitlines(), start=1) if line.strip()]
    if not lines:
        return None
    first = lines[0][1]
    marks = [mark for mark in SEPARATORS if mark in first]
    names = [name.strip().strip('"') for name in first.split(marks[0])] if marks else []
    known = {"mechanism", *ALIASES}.union(*(keys_of(maker) for maker in makers().values()))
    # a header of two known names is none by chance; a misspelt third one is named later
    if len(marks) != 1 or len(known.intersection(names)) < 2 or not all(map(_is_name, names)):
        return None
    if len(set(names)) < len(names):
        raise ValueError(f"line {lines[0][0]}: a column is named twice")
    reader = csv.reader((line for _, line in lines[1:]), delimiter=marks[0], skipinitialspace=True)
    rows = []
    try:
        for (number, _), cells in zip(lines[1:], reader, strict=True):
            if len(cells) != len(names):
                raise ValueError(f"line {number}: must have {len(names)} cells, as the header has")
            cells = [cell.strip() for cell in cells]
            rows.append({k: _cell(c) for k, c in zip(names, cells, strict=True) if c})
    except csv.Error as error:
        raise ValueError(f"not a run file: CSV: {error}") from None
    if not rows:
        raise ValueError(f"line {lines[0][0]}: no row below the header")
    places: dict[Path, int] = {("phase", i): number for i, (number, _) in enumerate(lines[1:])}

    def line(path: Path, key: str) -> int | None:
        # a column that no mechanism has is wrong in the header, not in a row
        return lines[0][0] if key and key not in known else places.get(path[:2])

    return Content({"phase": rows}, line)


def _is_name(text: str) -> bool:
    return re.fullmatch(r"[A-Za-z_]\w*", text) is not None


def _cell(text: str) -> str:
    return Literal(text) if re.match(r"[-+.\d]", text) else text


def _toml_lines(text: str) -> Callable[[Path, str], int | None]:
    """Lines of keys in TOML, by the headers above them."""
    found: dict[tuple[Path, str], int] = {}
    counts: dict[Path, int] = {}
    where: Path = ()
    for number, line in enumerate(text.splitlines(), start=1):
        header = HEADER.match(line)
        if header:
            names = [name.strip().strip("\"'") for name in header[2].split(".")]
            where = ()
            for i, name in enumerate(names):
                where = (*where, name)
                if header[1] and i == len(names) - 1:
                    counts[where] = counts.get(where, -1) + 1
                if where in counts:
                    where = (*where, counts[where])
            found[where, ""] = number
            continue
        for key in re.findall(r"(?:^|[{,])\s*[\"']?([A-Za-z_]\w*)[\"']?\s*=", line.split("#")[0]):
            found.setdefault((where, key), number)
    return lambda path, key: found.get((path, key), found.get((path, "")))


def _lines_by_order(text: str, value: Any) -> Callable[[Path, str], int | None]:
    """Lines of keys in JSON and YAML: the n-th time that a text has a key is the n-th in order."""
    seen: dict[str, list[int]] = {}
    for match in re.finditer(r"[\"']?([A-Za-z_$]\w*)[\"']?[ \t]*:(?=\s|[\"'\[{\d.-])", text):
        seen.setdefault(match[1], []).append(text.count("\n", 0, match.start()) + 1)
    used: dict[str, int] = {}
    found: dict[tuple[Path, str], int] = {}
    for path, key in _keys_in_order(value, ()):
        lines, n = seen.get(key, []), used.get(key, 0)
        used[key] = n + 1
        if n < len(lines):
            found[path, key] = lines[n]
            found.setdefault((path, ""), lines[n])
    return lambda path, key: found.get((path, key), found.get((path, "")))


def _keys_in_order(value: Any, path: Path) -> Iterator[tuple[Path, str]]:
    if isinstance(value, dict):
        for key, item in value.items():
            yield path, key
            yield from _keys_in_order(item, (*path, key))
    elif isinstance(value, list):
        for i, item in enumerate(value):
            yield from _keys_in_order(item, (*path, i))
