"""Pytest items for ``--pyengine-conformance``, one for each question."""

from __future__ import annotations

import builtins
import sys
from collections.abc import Iterator
from typing import Any

import pytest

from pyengine.accounting.conformance.adapters import Adapter, find
from pyengine.accounting.conformance.grid import Case
from pyengine.accounting.conformance.soundness import chosen, judged, verdict

__all__ = ["items"]


class AccountantQuestion(pytest.Item):
    """One question to one accountant."""

    def __init__(self, *, adapter: Adapter, method: str, case: Case, refusals: Any, **more: Any):
        super().__init__(**more)
        self._asked = (adapter, method, case, refusals)

    def runtest(self) -> None:
        """Ask the question; fail if the answer promises too much privacy."""
        result = judged(*self._asked)
        if result.value is None:
            pytest.skip(result.message)
        wrong = verdict(result)
        if wrong:
            pytest.fail(wrong, pytrace=False)

    def reportinfo(self) -> tuple[Any, None, str]:
        """Name the question."""
        return self.path, None, self.name


def items(session: pytest.Session) -> Iterator[AccountantQuestion]:
    """The tests of all accountants named on the command line.

    UsageError for a name without an accountant, or a refusal that is not an exception class.
    """
    config = session.config
    here = str(config.invocation_params.dir)
    if here not in sys.path:
        sys.path.append(here)  # as with `python -m pytest`
    refusals = tuple(map(_exception, config.getoption("--pyengine-refusal")))
    settings = config.getoption("--pyengine-setting")
    for name in config.getoption("--pyengine-conformance"):
        try:
            adapter = find(name)
            asked = list(chosen(adapter, settings))
        except (ImportError, ValueError) as error:
            raise pytest.UsageError(f"--pyengine-conformance {name}: {error}") from error
        for method, case in asked:
            title = f"{name}[{method}-{case.setting.name}-{case.question}-{case.at}]"
            yield AccountantQuestion.from_parent(
                session,
                name=title,
                nodeid=f"pyengine-conformance::{title}",
                adapter=adapter,
                method=method,
                case=case,
                refusals=refusals,
            )


def _exception(name: str) -> type[Exception]:
    module, _, attribute = name.rpartition(".")
    home = sys.modules.get(module) if module else builtins
    if home is None:
        import importlib

        home = importlib.import_module(module)
    found = getattr(home, attribute, None)
    if not (isinstance(found, type) and issubclass(found, Exception)):
        raise pytest.UsageError(f"--pyengine-refusal must be an exception, got {name!r}")
    return found
