"""TOML and JSON texts on every Python, with one kind of error."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["json_loads", "loads"]

MOST_DIGITS = 4300  # of an integer, more than which Python refuses on its own account


def loads(text: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """Return the content of a TOML text; ValueError for whatever is none."""
    # imported here: `import pyengine` needs no parser
    if sys.version_info >= (3, 11):
        import tomllib
    else:
        import tomli as tomllib

    try:
        return tomllib.loads(text, parse_float=parse_float)
    except RecursionError:
        raise ValueError("nested too deeply") from None
    except tomllib.TOMLDecodeError:
        raise
    except ValueError:  # of Python, about an integer
        raise ValueError(f"an integer has more than {MOST_DIGITS:,} digits") from None


def json_loads(
    text: str | bytes,
    parse_float: Callable[[str], Any] | None = None,
    parse_constant: Callable[[str], Any] | None = None,
) -> Any:
    """Return the content of a JSON text; ValueError for whatever is none, or says a key twice.

    By default a number that is not 0 but would be the float 0 or infinite is an error; so are NaN
    and Infinity, which are not JSON.
    """
    import json

    try:
        return json.loads(
            text,
            parse_float=parse_float or _double,
            parse_constant=parse_constant or _no_constant,
            parse_int=_integer,
            object_pairs_hook=_once,
        )
    except RecursionError:
        raise ValueError("nested too deeply") from None


def _double(text: str) -> float:
    value = float(text)
    if math.isinf(value) or (value == 0.0 and text.lower().partition("e")[0].strip("-0.")):
        raise ValueError(f"the number {text[:60]} is beyond the doubles")
    return value


def _no_constant(text: str) -> Any:
    raise ValueError(f"{text} is no number of JSON")


def _integer(text: str) -> int:
    if len(text) > MOST_DIGITS:
        raise ValueError(f"an integer has more than {MOST_DIGITS:,} digits")
    return int(text)


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) < len(pairs):
        names = [name for name, _ in pairs]
        twice = next(name for name in names if names.count(name) > 1)
        raise ValueError(f"the key {twice[:60]!r} is given twice")
    return found
