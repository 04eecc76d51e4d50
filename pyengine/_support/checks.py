"""Checks of arguments, with messages of one form: the argument's name, the rule and the value.

Valid floats and integers are returned at once, since mechanisms check every argument twice: when
it is given and when it is stored.
"""

from __future__ import annotations

import math
import re
import sys
from collections.abc import Sequence
from decimal import Context, Decimal
from fractions import Fraction
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
Number = float | Fraction
Word = TypeVar("Word", bound=str)
NumberLike = float | str | Fraction | Decimal  # strings: decimal numbers and fractions of two

# At most three digits of exponent: Fraction("1e999999999") would compute that integer.
# At most as many digits as Python reads; the pattern does not backtrack over them.
DIGITS = r"\d{1,4300}"
DECIMAL = rf"[+-]?(?:{DIGITS}(?:\.(?:{DIGITS})?)?|\.{DIGITS})(?:[eE][+-]?\d{{1,3}})?"
PLAIN_COUNT = 2**53  # integers up to here are exact doubles
LONG = 120  # longer representations of a value are shortened in messages
# Other words of the field for those of this package, for hints; similar spellings need no entry.
SYNONYMS = {
    **dict.fromkeys(("replace", "replace_one", "change_one", "swap", "bounded"), "substitute"),
    **dict.fromkeys(("unbounded", "both", "add_or_remove", "add_or_remove_one"), "add_remove"),
    "proven": "certified",
    "fixed": "without_replacement",
    "normal": "gaussian",
}
HUGE = 10**40  # larger integers are shown rounded
NUMBER = rf"\s*({DECIMAL})\s*(?:/\s*({DECIMAL})\s*)?"


def shown(value: object) -> str:
    """Return the text of a value for a message: its repr, shortened if it is long."""
    if isinstance(value, int) and abs(value) >= HUGE:
        return f"about {Context(prec=4).create_decimal(value):.3e}"
    if isinstance(value, Fraction) and max(abs(value.numerator), value.denominator) >= HUGE:
        numerator, denominator = Decimal(value.numerator), Decimal(value.denominator)
        return f"about {Context(prec=4).divide(numerator, denominator):.3e}"
    if hasattr(value, "is_step"):  # a mechanism, whose repr is short
        return repr(value)
    try:
        text = " ".join(repr(value).split())
    except ValueError:  # an integer with more digits than Python converts to text
        return f"{type(value).__name__} of very long numbers"
    return _cut(text)


def said(value: object) -> str:
    """As `shown`, but texts and fractions as they were given."""
    if isinstance(value, str):
        return _cut(value)
    brief = isinstance(value, Fraction) and max(abs(value.numerator), value.denominator) < HUGE
    return _cut(str(value)) if brief else shown(value)


def _cut(text: str) -> str:
    return text if len(text) <= LONG else f"{text[: LONG // 2]}... ({len(text):,} characters)"


def both_given(**given: object) -> ValueError:
    """Return the error for two arguments of which only one may be given."""
    values = " and ".join(map(said, given.values()))
    return ValueError(f"{' and '.join(given)} both given ({values}); give one")


def exact(name: str, text: str) -> Fraction:
    """Return the exact value of a text: a decimal number, or a fraction of two of them."""
    match = re.fullmatch(NUMBER, text, re.ASCII)
    if not match:
        word = text.strip().lower().lstrip("+-")
        rule = "a number or a fraction of two numbers"
        if word in ("inf", "infinity", "nan"):
            rule = "a finite number"
        elif re.fullmatch(r"[\d.]+e[+-]?\d{4,}", word, re.ASCII):
            rule = "a number whose exponent has three digits at most"
        raise ValueError(f"{name} must be {rule}, got {shown(text)}")
    numerator, denominator = match.groups()
    try:
        return Fraction(numerator) / Fraction(denominator or 1)
    except ZeroDivisionError:
        raise ValueError(f"{name} must be finite, got {shown(text)}") from None


def number(name: str, value: Any) -> Number:
    """Return a real number: a Fraction if the value was given exactly, otherwise a float.

    Exact are strings with decimal numbers or fractions, and values of type Decimal and Fraction.
    """
    if isinstance(value, float):
        return real(name, value)
    if isinstance(value, str):
        return exact(name, value)
    if isinstance(value, Fraction):
        return value
    if isinstance(value, Decimal):
        if not value.is_finite():
            raise ValueError(f"{name} must be finite, got {shown(value)}")
        return Fraction(value)
    return real(name, value)


def real(name: str, value: Any) -> float:
    """Return a real number as a float, or raise ValueError."""
    if isinstance(value, float):
        number = value
    elif (
        isinstance(value, (bool, np.bool_, str, bytes))
        or value is None
        or np.ma.is_masked(value)
        # NumPy would drop the imaginary part
        or (not isinstance(value, (list, tuple)) and np.iscomplexobj(value))
    ):
        raise ValueError(f"{name} must be a real number, got {shown(value)}")
    else:
        try:
            number = float(value)
        except OverflowError:
            rule = f"{name} must be at most {sys.float_info.max:.4g}, the largest double"
            raise ValueError(f"{rule}, got {shown(value)}") from None
        except (TypeError, ValueError):
            raise ValueError(f"{name} must be a real number, got {shown(value)}") from None
    if math.isnan(number):
        raise ValueError(f"{name} must not be NaN, got {shown(value)}")
    return number


def positive(name: str, value: Any) -> Number:
    """Return a number that is finite and > 0, also after conversion to a double."""
    if type(value) is float and 0.0 < value < math.inf:
        return value
    result = number(name, value)
    if not 0.0 < as_double(result) < math.inf:
        raise ValueError(f"{name} must be positive and finite, got {shown(value)}")
    return result


def non_negative(name: str, value: Any) -> Number:
    """Return a finite number >= 0."""
    result = number(name, value)
    if not (result >= 0 and as_double(result) < math.inf):
        raise ValueError(f"{name} must be finite and >= 0, got {shown(value)}")
    return result


def probability(name: str, value: Any) -> Number:
    """Return a number in [0, 1]."""
    if type(value) is float and 0.0 <= value <= 1.0:
        return value
    result = number(name, value)
    if not 0 <= result <= 1:
        raise ValueError(f"{name} must lie in [0, 1], got {shown(value)}")
    return result


def rate(name: str, value: Any) -> Number:
    """Return a sampling probability in [0, 1], which engines would take for 0 below all doubles."""
    result = probability(name, value)
    if float(result) == 0.0 < result:
        raise ValueError(f"{name} must be 0 or at least {math.ulp(0.0)!r}, got {shown(value)}")
    return result


def as_double(value: Number) -> float:
    """Return the nearest double; inf beyond the largest."""
    try:
        return float(value)
    except OverflowError:
        return math.inf


def flag(name: str, value: Any) -> bool:
    """Return True or False; other values are rejected, even if they are truthy."""
    if not isinstance(value, (bool, np.bool_)):
        raise ValueError(f"{name} must be True or False, got {shown(value)}")
    return bool(value)


def listed(name: str, value: Any) -> list[Any]:
    """Return an iterable as a list; strings are rejected."""
    try:
        if not isinstance(value, (str, bytes)):
            return list(value)
    except TypeError:
        pass
    raise ValueError(f"{name} must be a sequence, got {shown(value)}")


def is_many(value: object) -> bool:
    """Whether an argument is a list or an array of numbers, not one number."""
    return isinstance(value, list | tuple | range) or getattr(value, "ndim", 0) > 0


def scalar(name: str, value: Any, low: float, high: float) -> float:
    """Return a real number within [low, high]."""
    array = real_array(name, value, low, high)
    if array.ndim:
        raise ValueError(f"{name} must be one number, got {shown(value)}")
    return float(array)


def count(name: str, value: Any, least: int = 0, most: int | None = None, limit: str = "") -> int:
    """Return an integer from ``least`` to ``most``; integral floats are accepted.

    ``limit`` names the largest one in messages: "steps = " in "must be at most steps = 10".
    """
    if type(value) is int and least <= value <= (PLAIN_COUNT if most is None else most):
        return value
    rule = "a non-negative integer" if least == 0 else f"an integer >= {least}"
    if isinstance(value, str) and not re.fullmatch(NUMBER, value, re.ASCII):
        raise ValueError(f"{name} must be {rule}, got {shown(value)}")
    size = number(name, value)
    whole = size.denominator == 1 if isinstance(size, Fraction) else size.is_integer()
    if not (whole and size >= least):
        raise ValueError(f"{name} must be {rule}, got {shown(value)}")
    if most is not None and size > most:
        raise ValueError(f"{name} must be at most {limit}{most:,}, got {shown(value)}")
    return int(value) if isinstance(value, int) else int(size)


def batch(batch_size: Any, dataset_size: Any, least: int = 0) -> tuple[int, int]:
    """Return both sizes as integers: ``least`` <= ``batch_size`` <= ``dataset_size``, and >= 1."""
    size = count("dataset_size", dataset_size, least=1)
    taken = count("batch_size", batch_size, least)
    if taken > size:
        raise ValueError(
            f"batch_size must be at most dataset_size = {shown(size)}, got {shown(taken)}"
        )
    return taken, size


def printable(name: str, value: Any) -> str:
    """Return a text of printable characters only, without line ends and escapes."""
    if not isinstance(value, str) or not value.isprintable():
        raise ValueError(f"{name} must be a printable text, got {shown(value)}")
    return value


def did_you_mean(word: object, words: Sequence[str]) -> str:
    """Return "; did you mean 'steps'?" for a word similar to one of several, otherwise ""."""
    meant = SYNONYMS.get(str(word).lower().replace("-", "_").replace(" ", "_"))
    if meant in words:
        return f"; did you mean {meant!r}?"
    import difflib  # needed for errors only

    near = difflib.get_close_matches(str(word).lower(), [w.lower() for w in words], 1)
    found = [w for w in words if near and w.lower() == near[0]]
    return f"; did you mean {found[0]!r}?" if found else ""


def choice(name: str, value: Any, allowed: tuple[Word, ...]) -> Word:
    """Return one of the allowed words."""
    if not isinstance(value, str) or value not in allowed:
        words = ", ".join(repr(word) for word in allowed)
        hint = did_you_mean(value, allowed)
        raise ValueError(f"{name} must be one of {words}; got {shown(value)}{hint}")
    return allowed[allowed.index(value)]


def real_array(name: str, value: Any, low: float, high: float) -> FloatArray:
    """Return an array of real numbers within [low, high], of the shape of ``value``."""
    try:
        array = np.asarray(value)
    except ValueError:
        raise ValueError(
            f"{name} must be a number or a regular array, got {shown(value)}"
        ) from None
    except (RuntimeError, TypeError) as error:  # tensors with gradients, traced or on a GPU
        raise ValueError(
            f"{name} must be numbers that NumPy can read now: there are no gradients, and nothing "
            f"is traced by jit or computed on a GPU; got {shown(value)} ({error})"
        ) from error
    if isinstance(value, np.ma.MaskedArray) and np.ma.is_masked(value):
        raise ValueError(f"{name} must hold no masked values, got {shown(value)}")
    if array.dtype.kind not in "fiu":
        if array.size == 0:
            return np.zeros(array.shape)
        if isinstance(value, int) and not isinstance(value, bool):
            real(name, value)  # raises for an integer beyond the doubles
        raise ValueError(
            f"{name} must hold real numbers, got {shown(value)}"
            if array.size < 8
            else f"{name} must hold real numbers, got an array of dtype {array.dtype}"
        )
    array = np.asarray(array, dtype=np.float64)
    outside = ~((array >= low) & (array <= high))
    if outside.any():
        interval = f"[{low:g}, {high:g}]" if high < math.inf else f"[{low:g}, inf]"
        raise ValueError(f"{name} must lie in {interval}, got {float(array[outside].flat[0])!r}")
    return array


def shaped(name: str, flat: FloatArray, shape: tuple[int, ...], like: Any) -> Any:
    """Return answers in the shape of their arguments: a float, an array or a pandas object.

    A Series or a DataFrame keeps its labels; a Series gets the question's name.
    """
    if not shape:
        return float(flat[0])
    values = flat.reshape(shape)
    if not hasattr(like, "iloc"):  # not from pandas
        return values
    if len(shape) == 2:
        return type(like)(values, index=like.index, columns=like.columns)
    return type(like)(values, index=like.index, name=name)
