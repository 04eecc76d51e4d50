"""Parsers of TOML and JSON for all supported Python versions; errors are ValueErrors."""

from __future__ import annotations

import math
import sys
from collections.abc import Callable
from typing import Any

__all__ = ["json_loads", "loads"]

MOST_DIGITS = 4300  # Python's limit on the digits of an integer


def loads(text: str, parse_float: Callable[[str], Any] = float) -> dict[str, Any]:
    """Return the content of a TOML text; ValueError for an invalid one."""
    # imported here, to keep `import pyengine` fast
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
    except ValueError:  # Python's limit on the digits of an integer
        raise ValueError(f"an integer has more than {MOST_DIGITS:,} digits") from None


def json_loads(
    text: str | bytes,
    parse_float: Callable[[str], Any] | None = None,
    parse_constant: Callable[[str], Any] | None = None,
) -> Any:
    """Return the content of a JSON text; ValueError for an invalid one, or if a key is repeated.

    By default, numbers that would overflow or underflow to 0 as a float are errors; so are NaN and
    Infinity, which are not JSON.
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
