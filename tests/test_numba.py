"""What code under Numba gets: the bits that the same calls return outside of it."""

from __future__ import annotations

import importlib
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import pyengine as pe

numba = pytest.importorskip("numba")
ROOT = Path(__file__).parents[1]
compiled = importlib.import_module("pyengine.numba")
compiled.register()
RUN = pe.dp_sgd(noise_multiplier=1.0, sampling_probability=0.01, steps=1000)
SPECIAL = [name for name in pe.special.__all__ if name != "threaded"]


def arguments(name: str, rng: np.random.Generator) -> list[float]:
    """Of a special function, within its domain."""
    function = getattr(pe.special, name)
    if not isinstance(function, np.ufunc):
        low, high = {"ndtri": (0.0, 1.0), "ndtri_exp": (-50.0, 0.0)}.get(name, (-9.0, 9.0))
        return [rng.uniform(low, high)]
    first = rng.uniform(0.0, 1.0)
    if name.endswith("_exp"):  # where tails near 1 alone have an answer, near 0
        first = rng.uniform(-0.1 if "_sf_" in name else -20.0, 0.0)
    if name.endswith("_inv") or "_inv_" in name:
        return [rng.uniform(1.0, 9.0), rng.uniform(0.5, 5.0), first]
    if re.fullmatch(r"(log_)?marcum_[pq]|ncx2_(log)?(cdf|sf|pdf)", name):
        return list(rng.uniform(0.5, 20.0, 3))
    return [first, *rng.uniform(1.5, 20.0, function.nin - 1)]


@pytest.fixture(scope="module")
def special() -> dict[str, Any]:
    """All special functions, called in one compiled function for each number of arguments."""
    made: dict[str, Any] = {}
    for number in (1, 3, 4):
        names = [n for n in SPECIAL if getattr(getattr(pe.special, n), "nin", 1) == number]
        letters = ", ".join("xyzw"[:number])
        calls = ", ".join(f"special.{name}({letters})" for name in names)
        scope: dict[str, Any] = {"special": pe.special}
        exec(f"def call({letters}):\n    return ({calls},)\n", scope)
        call = numba.njit(scope["call"])
        made.update({name: (call, names.index(name)) for name in names})
    return made


@pytest.mark.parametrize("name", SPECIAL)
def test_special_functions_have_the_same_bits(name: str, special: dict[str, Any]) -> None:
    call, place = special[name]
    rng = np.random.default_rng(SPECIAL.index(name))
    finite = 0
    for _ in range(20):
        given = arguments(name, rng)
        found, truth = call(*given)[place], float(getattr(pe.special, name)(*given))
        assert np.float64(found).tobytes() == np.float64(truth).tobytes() or found != found != truth
        assert (found != found) == (truth != truth)
        finite += np.isfinite(found)
    assert finite > 3


@numba.njit
def all_values(run: Any, x: float) -> tuple[float, float, float, float]:
    return (
        compiled.trade_off(run, x),
        compiled.gamma_bound(run, x),
        compiled.delta(run, x),
        compiled.epsilon(run, x),
    )


@numba.njit
def all_bounds(run: Any, x: float) -> Any:
    return (
        compiled.trade_off_bounds(run, x),
        compiled.gamma_bound_bounds(run, x),
        compiled.delta_bounds(run, x),
        compiled.epsilon_bounds(run, x),
    )


@pytest.mark.parametrize("adjacency", [None, "remove"])
def test_questions_have_the_same_bits(adjacency: Any) -> None:
    words = {} if adjacency is None else {"adjacency": adjacency}
    run = compiled.prepare(RUN, adjacency=adjacency)
    assert compiled.prepare(RUN, adjacency=adjacency) == run
    ask = (pe.trade_off, pe.gamma_bound, pe.delta, pe.epsilon)
    for x in (1e-6, 0.001, 0.3):
        assert all_values(run, x) == tuple(f(RUN, x, **words) for f in ask)
        assert all_bounds(run, x) == tuple(tuple(f(RUN, x, bounds=True, **words)) for f in ask)


def test_errors_come_through() -> None:
    run = compiled.prepare(RUN)
    with pytest.raises(ValueError, match=r"alpha must lie in \[0, 1\], got 2\.0"):
        all_values(run, 2.0)
    with pytest.raises(numba.TypingError, match="takes a Prepared"):
        numba.njit(lambda x: compiled.delta(x, x))(1.0)
    with pytest.raises(ValueError, match="adjacency must be one of"):
        compiled.prepare(RUN, adjacency="both")


def test_runs_of_other_processes_are_refused() -> None:
    """Keys that were counted named another run there."""
    child = f"""
import pickle, sys
import pyengine as pe
pe.numba.prepare(pe.GaussianMechanism(1.0))
try:
    pe.numba.delta(pickle.loads({pickle.dumps(compiled.prepare(RUN))!r}), 1.0)
except ValueError as error:
    print(error)
"""
    done = subprocess.run([sys.executable, "-c", child], capture_output=True, text=True, check=True)
    assert "was not prepared in this process" in done.stdout
    for key in (-1, 0, 1):
        with pytest.raises(ValueError, match="was not prepared in this process"):
            compiled.delta(compiled.Prepared(key), 1.0)


def test_kept_code_never_asks_another_run(tmp_path: Path) -> None:
    """A run that is a global variable is frozen into code that ``cache=True`` keeps."""
    (tmp_path / "kept.py").write_text(
        """
import sys, numba
import pyengine as pe
runs = {}
for noise in map(float, sys.argv[1:]):
    runs[noise] = pe.numba.prepare(pe.GaussianMechanism(noise))
RUN = runs[2.0]
@numba.njit(cache=True)
def frozen(x):
    return pe.numba.delta(RUN, x)
@numba.njit(cache=True)
def given(run, x):
    return pe.numba.delta(run, x)
assert given(RUN, 1.0) == pe.delta(pe.GaussianMechanism(2.0), 1.0)
try:
    print(frozen(1.0))
except ValueError as error:
    print(error)
""",
        encoding="utf-8",
    )
    shown = [
        subprocess.run(
            [sys.executable, "kept.py", *noises],
            capture_output=True,
            text=True,
            check=True,
            cwd=tmp_path,
            env=os.environ | {"PYTHONPATH": str(ROOT)},
        ).stdout
        for noises in (["2", "1"], ["1", "2"])
    ]
    assert float(shown[0]) == pe.delta(pe.GaussianMechanism(2.0), 1.0)
    assert "was not prepared in this process" in shown[1]


@numba.njit(parallel=True)
def spread(run: Any, x: Any) -> Any:
    found = np.full((2, x.size), 0.125)
    for i in numba.prange(x.size):
        found[0, i] = compiled.delta(run, x[i])
        found[1, i] = compiled.delta_bounds(run, x[i])[2]
    return found


@pytest.mark.filterwarnings("ignore:delta answers NaN:RuntimeWarning")
def test_errors_in_a_parallel_loop_leave_no_numbers() -> None:
    """Numba loses what its threads raise: their answers are NaN, and all others are right."""
    run = compiled.prepare(RUN)
    truth = [list(pe.delta(RUN, x, bounds=True))[1:] for x in np.linspace(0.0, 2.0, 40)]
    for place in (0, 13, 39):
        x = np.linspace(0.0, 2.0, 40)
        x[place] = -1.0
        try:
            found = spread(run, x).T
        except (ValueError, SystemError):  # of the part of the loop that the caller's thread ran
            continue
        assert np.isnan(found[place]).all()
        assert np.delete(found, place, 0).tolist() == truth[:place] + truth[place + 1 :]


def test_numba_finds_the_module() -> None:
    text = (ROOT / "pyproject.toml").read_text(encoding="utf-8")
    assert '[project.entry-points.numba_extensions]\ninit = "pyengine.numba:register"\n' in text


def test_example_agrees_within_its_errors(
    capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.syspath_prepend(str(ROOT))
    importlib.import_module("examples.numba_monte_carlo").main()
    lines = capsys.readouterr().out.splitlines()
    apart = [abs(float(line.split()[-1])) for line in lines[1:]]
    assert len(apart) == 5
    assert max(apart) < 5.0
