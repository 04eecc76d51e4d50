"""Every example in the documentation and in the docstrings runs and prints what it says."""

from __future__ import annotations

import doctest
import importlib.util
import pkgutil
import re
from pathlib import Path

import pytest

import pyengine

ROOT = Path(__file__).parents[1]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
# These need the library that they are named for: tests/test_drop_in_peers.py has their docstrings.
HOSTS = ("pyengine.accounting.interop.dp_accounting", "pyengine.accounting.interop.opacus")
MODULES = [
    module.name
    for module in pkgutil.walk_packages(pyengine.__path__, "pyengine.")
    if not module.name.endswith(("._core", ".__main__")) and module.name not in HOSTS
]
OPTIONS = doctest.ELLIPSIS | doctest.NORMALIZE_WHITESPACE


def blocks(page: Path) -> list[str]:
    return re.findall(r"^```python\n(.*?)^```", page.read_text(encoding="utf-8"), re.M | re.S)


PROMPTS = [page for page in PAGES if any(">>>" in block for block in blocks(page))]


@pytest.mark.parametrize("page", PROMPTS, ids=lambda page: str(page.relative_to(ROOT)))
def test_pages(page: Path) -> None:
    """Blocks with a prompt are compared with their output; a page is one session."""
    source = "\n".join(block for block in blocks(page) if ">>>" in block)
    test = doctest.DocTestParser().get_doctest(source, {}, page.name, str(page), 0)
    result = doctest.DocTestRunner(optionflags=OPTIONS).run(test)
    assert result.failed == 0


# names that a block takes from its reader
GIVEN: dict[str, dict[str, object]] = {"docs/developer/testing.md": {"largest_error": 0.0}}
PLAIN = [page for page in PAGES if any(">>>" not in block for block in blocks(page))]


@pytest.mark.parametrize("page", PLAIN, ids=lambda page: str(page.relative_to(ROOT)))
def test_plain_blocks_run(page: Path) -> None:
    """Blocks without a prompt run, one after the other."""
    name = str(page.relative_to(ROOT))
    session = {"__name__": "docs", **GIVEN.get(name, {})}
    for block in blocks(page):
        if ">>>" not in block:
            exec(compile(block, name, "exec"), session)


def has_examples(name: str) -> bool:
    found = importlib.util.find_spec(name)
    assert found is not None
    assert found.origin is not None
    return not found.origin.endswith(".so") and ">>>" in Path(found.origin).read_text("utf-8")


@pytest.mark.parametrize("name", [name for name in MODULES if has_examples(name)])
def test_docstrings(name: str) -> None:
    assert doctest.testmod(importlib.import_module(name), optionflags=OPTIONS).failed == 0
