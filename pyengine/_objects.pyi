# Functions in the default floating-point environment, and sizes of objects (csrc/python/objects.c).
from collections.abc import Callable
from typing import Any

class Guarded:
    __wrapped__: Any
    def __init__(self, function: Callable[..., Any], /) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...

def size_of(value: object, /) -> int: ...
