"""Memory that the C core cannot have is a MemoryError: no NaN, no refusal, no wrong number."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import stats

import pyengine as pe
from pyengine._core import lib
from pyengine._support.status import finished
from pyengine.caches import clear_cache
from pyengine.engines import plan, sector, spectral

RUN, FEW = pe.dp_sgd(1.0, 0.01, 1000), pe.dp_sgd(1.0, 0.05, 2)


class Without:
    """The C core with kernels that return a status and do nothing."""

    def __init__(self, status: int, *names: str) -> None:
        self._status, self._names = status, names

    def __getattr__(self, name: str) -> Any:
        return (lambda *_: self._status) if name in self._names else getattr(lib, name)


LINES = ["pe_pair_new", "pe_pair_solve", "pe_pair_certify_beyond"]


@pytest.mark.parametrize("kernel", LINES)
@pytest.mark.parametrize("argument", [0.1, np.linspace(0.1, 0.2, 9)], ids=["float", "array"])
def test_lines(kernel: str, argument: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    clear_cache()
    monkeypatch.setattr(spectral, "lib", Without(lib.PE_NO_MEMORY, kernel))
    run = RUN
    if kernel == "pe_pair_solve":  # of densities that are known by nodes
        run = pe.from_distributions(stats.logistic(), stats.logistic(0.3)).composed(300)
    elif kernel == "pe_pair_certify_beyond":  # in one call of the core
        monkeypatch.setattr(plan, "plan_one", lambda *_: lib.PE_NO_MEMORY)
    with pytest.raises(MemoryError, match="not enough memory for"):
        pe.gamma_bound(run, argument, adjacency="add")
    clear_cache()


@pytest.mark.parametrize("kernel", ["pe_sector_step", "pe_sector_convolve"])
def test_laws_on_pieces(kernel: str, monkeypatch: pytest.MonkeyPatch) -> None:
    clear_cache()
    monkeypatch.setattr(sector, "lib", Without(lib.PE_NO_MEMORY, kernel))
    with pytest.raises(MemoryError, match="not enough memory for a law"):
        pe.delta(FEW, 1.0, adjacency="remove")
    monkeypatch.setattr(sector, "lib", Without(lib.PE_TOO_COSTLY, kernel))
    found = pe.delta(FEW, 1.0, adjacency="remove", bounds=True)  # of lines alone
    assert found.lower <= 2.673491448847589e-05 <= found.upper
    clear_cache()


def test_other_statuses() -> None:
    assert finished(None, "nothing")
    assert finished(lib.PE_OK, "nothing")
    assert not finished(lib.PE_TOO_COSTLY, "nothing")


# Children with less and less memory ask the same question: an answer has the right bits.
SHORT = """
import os, resource
import pyengine as pe

def ask():
    mechanism = pe.dp_sgd(1.0, 0.01, 100000)
    return [pe.gamma_bound(mechanism, k) for k in (1e-80, 1e-40, 1e-20, 1e-3, 0.3)]

expected = ask()
outcomes = {0: 0, 1: 0}
for blocks in range(0, 400, 8):
    child = os.fork()
    if child == 0:
        code = 2
        pages = int(open("/proc/self/statm").read().split()[0])
        limit = pages * resource.getpagesize()
        filling = []
        try:
            resource.setrlimit(resource.RLIMIT_AS, (limit, limit))
            try:
                for size in (4096, 512):
                    while True:
                        filling.append(bytes(size))
            except MemoryError:
                pass
            del filling[len(filling) - blocks :]
            code = 0 if ask() == expected else 3
        except MemoryError:
            code = 1
        finally:
            os._exit(code)
    code = os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])
    outcomes[code] = outcomes.get(code, 0) + 1
print(outcomes)
"""


@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="needs Linux")
def test_little_memory() -> None:
    run = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", SHORT],
        capture_output=True,
        text=True,
        check=True,
        timeout=600,
    )
    outcomes = eval(run.stdout)
    assert set(outcomes) == {0, 1}, outcomes
    assert outcomes[1] >= 1, outcomes
    assert outcomes[0] >= 1, outcomes


# Functions that return -1 and mean no status.
OTHER_NUMBERS = {
    "compare": "the sign of a difference",
    "by_line": "the order of two thresholds",
    "cut": "the index of a chunk, or none",
    "pe_ncx2_target": "the end at which a quantile lies",
    "rule_for": "the rule of a piece, or none",
    "guard": "the functional that guards another one, or none",
    "by_rate_and_noise": "the order of two kinds of steps",
}
CORE = Path(__file__).parents[1] / "csrc"
FUNCTION = re.compile(r"^(?:static )?(?:PE_CLONES )?int (\w+)\([^;{]*?\) \{.*?^\}", re.M | re.S)


def test_the_core_has_one_kind_of_status() -> None:
    """What can fail says so by `pe_status`: no -1, and no 0 or 1 where memory is asked for."""
    seen = 0
    for path in sorted(CORE.glob("*.c")):
        for found in FUNCTION.finditer(path.read_text(encoding="utf-8")):
            body, name = found[0], found[1]
            returned = re.findall(r"return ([^;]*);", body)
            if re.search(r"\b(?:m|c|re)alloc\(", body):
                seen += 1
                wrong = [value for value in returned if re.fullmatch(r"-?\d+", value)]
                assert not wrong, f"{path.name}: {name} returns {wrong}"
                assert "PE_NO_MEMORY" in body, f"{path.name}: {name}"
            if any(re.search(r"(?:^|: )-1\b", value) for value in returned):
                assert name in OTHER_NUMBERS, f"{path.name}: {name} returns -1"
    assert seen > 20
