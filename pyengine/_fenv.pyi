# Functions that run in the default floating-point environment, written in C (csrc/python/fenv.c).
from collections.abc import Callable
from typing import Any

class Guarded:
    __wrapped__: Any
    def __init__(self, function: Callable[..., Any], /) -> None: ...
    def __call__(self, *args: Any, **kwargs: Any) -> Any: ...
