"""What all tests share: the options of the run, and which random examples it draws.

A run that decides whether a change goes in draws the same examples every time, so that it fails
for the change and not by the luck of a draw.  ``PYENGINE_EXAMPLES=fresh make test`` draws new ones
and remembers the failing; the campaign of ``make campaign`` does so at length.
"""

import gc
import os
import sys
from collections.abc import Iterator

import pytest
from hypothesis import settings

# Processes of a parallel run have a core each, where threads of BLAS wait in loops for each other.
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")

pytest_plugins = ["listed_skips", "processor_time", "progress", "thorough"]

settings.register_profile("fixed", derandomize=True, deadline=None)
settings.register_profile("fresh", deadline=None, print_blob=True)
settings.load_profile(os.environ.get("PYENGINE_EXAMPLES", "fixed"))


def pytest_collection_finish() -> None:
    """Leave modules and tests alone in every collection of garbage to come: they stay."""
    gc.collect()
    gc.freeze()


@pytest.fixture
def hasty() -> Iterator[None]:
    """Threads that take turns as often as they can."""
    before = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(before)
