"""What all tests share: the options of the run, and which random examples it draws.

Checks of a change draw the same examples every time, so that a failure comes from the change and
not from chance. ``PYENGINE_EXAMPLES=fresh make test`` draws new ones and remembers those that fail;
the campaign of ``make campaign`` does so on a large scale.
"""

import gc
import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

from pyengine.caches import clear_cache

# Processes of a parallel run have one core each, on which BLAS threads would busy-wait.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

pytest_plugins = ["listed_skips", "processor_time", "progress", "thorough"]

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("fresh", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("PYENGINE_EXAMPLES", "fixed"))


def pytest_collection_finish() -> None:
    """Exclude modules and tests from further garbage collections: they stay anyway."""
    gc.collect()
    gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_runtest_teardown(item: pytest.Item) -> None:
    """Forget what was kept while a test had changed the code that makes it."""
    if "monkeypatch" in getattr(item, "fixturenames", ()):
        clear_cache()


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads that switch as often as possible."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)
