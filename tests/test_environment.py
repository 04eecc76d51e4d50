"""Whatever floating-point environment the host has, answers have the same bits, and it keeps it."""

from __future__ import annotations

import contextlib
import inspect
import math
import os
import pickle
import pkgutil
import re
import runpy
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from fractions import Fraction
from functools import cache, cached_property
from importlib import import_module
from pathlib import Path
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
import pytest
from environments import (
    ENVIRONMENTS,
    MXCSR,
    QUESTIONS,
    SETTABLE,
    WHY_NOT,
    X87,
    afresh,
    bits,
    control_words,
    environment,
    host,
)
from thorough import sampled

import pyengine as pe
from pyengine._core import lib
from pyengine._objects import Guarded
from pyengine._support import environment as guards

ROOT = Path(__file__).parents[1]
set_here = pytest.mark.skipif(not SETTABLE, reason=WHY_NOT)
DEFAULT = (MXCSR, X87)
OTHERS = [name for name in ENVIRONMENTS if name != "nearest"]

# ---- answers -------------------------------------------------------------------------------------

# Questions that were answered wrongly, or not at all, each with its environment and the truth to 20
# digits: by the line inversion of pyengine.reference in balls, and by exact sums of lattice masses.
WRONG: list[tuple[str, Callable[[], Any], str]] = [
    (
        "upward",
        lambda: pe.delta(pe.dp_sgd(1.0, 0.01, 1000), 2.0, adjacency="remove", bounds=True),
        "2.66557192476179100e-6",
    ),
    (
        "FTZ and DAZ",
        lambda: pe.gamma_bound(pe.DiscreteGaussianMechanism(2.0).composed(3), 3e-308, bounds=True),
        "2.68438736018001203e-294",
    ),
]


@set_here
@pytest.mark.parametrize(("name", "question", "truth"), WRONG, ids=["upward", "flushed"])
def test_brackets_hold_the_truth(name: str, question: Callable[[], Any], truth: str) -> None:
    pe.caches.clear_cache()
    with environment(name):
        found = question()
    assert Fraction(found.lower) <= Fraction(truth) <= Fraction(found.upper)


@set_here
def test_subnormal_numbers_end_no_question() -> None:
    """It was a math domain error."""
    mixed = pe.compose(pe.dp_sgd(1.0, 0.01, 100), pe.LaplaceMechanism(3.0))
    right = afresh(lambda: pe.delta(mixed, 0.5, method="lattice"))
    with environment("FTZ and DAZ"):
        assert afresh(lambda: pe.delta(mixed, 0.5, method="lattice")) == right


@cache
def in_default(engine: str) -> Any:
    return afresh(QUESTIONS[engine])


@sampled(3)
@set_here
@pytest.mark.filterwarnings("ignore::pyengine.ApproximationWarning")
@pytest.mark.parametrize("name", OTHERS)
def test_same_bits_in_every_environment(name: str) -> None:
    for engine in QUESTIONS:
        right = in_default(engine)
        assert not isinstance(right, str), (engine, right)
        with environment(name):
            found = afresh(QUESTIONS[engine])
        assert found == right, engine


@set_here
@pytest.mark.parametrize("name", OTHERS)
def test_kernels_guard_themselves(name: str) -> None:
    """The C core gives the same bits to whoever calls it."""
    x = [-37.5, -1.1, 0.3, 8.2]
    right = [(lib.pe_ndtr(y), lib.pe_log_ndtr(y), lib.pe_ndtri_exp(-abs(y))) for y in x]
    with environment(name):
        found = [(lib.pe_ndtr(y), lib.pe_log_ndtr(y), lib.pe_ndtri_exp(-abs(y))) for y in x]
    assert found == right


@set_here
@pytest.mark.parametrize("name", OTHERS)
def test_ufuncs_guard_themselves(name: str) -> None:
    """Their conversions, which NumPy does, and its ways around the call included."""
    tiny = np.array([1e-41, 0.7], dtype=np.float32)  # subnormal as a float32
    whole = np.array([2**63 - 1, 3])  # which no double has
    values = [1e-310, 0.2, 3.0]

    def asked() -> list[Any]:
        return [
            pe.special.ncx2_pdf(tiny, 2.0, 1.0),
            pe.special.ncx2_logsf(whole, 3.0, 2.0),
            pe.special.ncx2_cdf(values, 3.0, 7.0, out=np.empty(3)),
            *(pe.special.ncx2_cdf(value, 3.0, 7.0) for value in values),
        ]

    right = bits(asked())
    with environment(name):
        assert bits(asked()) == right


def test_every_kernel_is_guarded() -> None:
    build = runpy.run_path(str(ROOT / "csrc" / "build_ffi.py"))
    guarded = {name for _, name, _ in build["PROTOTYPE"].findall(build["DECLARED"])}
    functions = {name for name in dir(lib) if callable(getattr(lib, name))}
    asked_by_kernels = set(re.findall(r'extern "Python" \w+ (\w+)\(', build["DECLARED"]))
    assert guarded == functions - asked_by_kernels


# ---- what the host has is given back -------------------------------------------------------------


def asked_wrongly() -> None:
    with pytest.raises(ValueError, match="epsilon must lie in"):
        pe.delta(pe.GaussianMechanism(1.0), -1.0)


def refused() -> None:
    with pytest.raises(pe.AccuracyError):
        pe.delta(pe.dp_sgd(1.0, 0.01, 1000), 0.5, method="clt", bounds=True)


def interrupted() -> None:
    def make(_: float) -> pe.Mechanism:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        pe.calibrate(make, pe.targets.EpsilonDelta(1.0, 1e-5))


@set_here
@pytest.mark.parametrize("name", ENVIRONMENTS)
@pytest.mark.parametrize("fails", [asked_wrongly, refused, interrupted])
def test_environment_is_given_back_after_an_error(name: str, fails: Callable[[], None]) -> None:
    with environment(name):  # which checks it
        fails()


@set_here
def test_flags_of_the_host_are_given_back() -> None:
    """What the host was told of its own operations, it is told still; ours are not its own."""
    divided, inexact = 0x04, 0x20
    upward = ENVIRONMENTS["upward"]
    try:
        host().host_set(upward[0] | divided, upward[1])
        pe.delta(pe.GaussianMechanism(1.0), 0.37)
        assert host().host_mxcsr() & 0x3F == divided
        host().host_set(upward[0] | inexact, upward[1])
        pe.delta(pe.GaussianMechanism(1.0), 0.38)
        assert host().host_mxcsr() & 0x3F == inexact
    finally:
        host().host_set(*DEFAULT)


@set_here
def test_traps_of_the_host_stay_set() -> None:
    """A raised flag that met a trap as it was set again would end the process."""
    with environment("traps"):
        assert pe.delta(pe.GaussianMechanism(1.0), math.inf) == 0.0
        assert math.isinf(pe.epsilon(pe.RandomizedResponse(0.9).composed(2), 0.0)) is False
        assert math.isnan(pe.special.ncx2_cdf(-1.0, -1.0, 2.0))


@set_here
def test_generators_are_resumed_in_the_default_environment() -> None:
    seen = []

    def numbers() -> Iterator[int]:
        for i in range(2):
            seen.append(control_words())
            yield i

    with environment("downward"):
        found = guards.guarded(numbers)()
        for i in range(2):
            assert next(found) == i
            assert control_words() == ENVIRONMENTS["downward"]
        with pytest.raises(StopIteration):
            next(found)
    assert seen == [DEFAULT] * 2


# ---- callbacks -----------------------------------------------------------------------------------


class Logistic:
    """A law with the methods of scipy.stats, which leave another environment behind."""

    def __init__(self, shift: float, called: Callable[[], None]) -> None:
        self.shift, self.called = shift, called

    def logpdf(self, x: Any) -> Any:
        z = -np.abs(np.asarray(x) - self.shift)
        found = z - 2.0 * np.log1p(np.exp(z))
        self.called()
        return found

    def ppf(self, p: Any) -> Any:
        found = self.shift + np.log(p) - np.log1p(-np.asarray(p))
        self.called()
        return found

    def isf(self, p: Any) -> Any:
        found = self.shift + np.log1p(-np.asarray(p)) - np.log(p)
        self.called()
        return found

    def support(self) -> tuple[float, float]:
        self.called()
        return -math.inf, math.inf


NOISE = pe.GaussianMechanism(1.3)


def curve(called: Callable[[], None]) -> Callable[[Any], Any]:
    """A trade-off function that is called."""

    def f(alpha: Any) -> Any:
        called()
        found = pe.trade_off(NOISE, alpha)
        called()
        return found

    return f


def profile(called: Callable[[], None]) -> Callable[[Any], Any]:
    def f(epsilon: Any) -> Any:
        found = pe.delta(NOISE, epsilon)
        called()
        return found

    return f


def calibrated(called: Callable[[], None]) -> Any:
    def make(noise: float) -> pe.Mechanism:
        called()
        return pe.dp_sgd(noise, 0.01, 100)

    return pe.calibrate(make, pe.targets.EpsilonDelta(1.5, 1e-5)).value


def noise_made(called: Callable[[], None]) -> Any:
    def make(noise: float) -> pe.Mechanism:
        called()
        return pe.GaussianMechanism(noise)

    adversary = pe.threat_models.Relaxed(dimension=10)
    return list(pe.resilience.equivalent_noise(make, 2.0, threat_model=adversary))


def over_a_law(called: Callable[[], None]) -> Any:
    def member(k: float) -> Any:
        called()
        return pe.membership.GaussianTradeOff(k)

    law = SimpleNamespace(ppf=lambda p: 1.0 + np.asarray(p), isf=lambda p: 2.0 - np.asarray(p))
    return pe.membership.stochastic_composition_over(member, law, 0.1)


def distances(called: Callable[[], None]) -> Any:
    def error(point: Any, points: Any) -> Any:
        called()
        return np.abs(points - point).sum(axis=1) / 3.0

    points = np.random.default_rng(0).normal(size=(20, 2))
    return list(pe.priors.kappa_of_points(points, radius=0.3, error=error))


CALLBACKS: dict[str, Callable[[Callable[[], None]], Any]] = {
    "calibrate": calibrated,
    "equivalent_noise": noise_made,
    "kappa_of_points": distances,
    "stochastic_composition_over": over_a_law,
    "from_distributions": lambda called: pe.delta(
        pe.from_distributions(Logistic(0.0, called), Logistic(0.7, called)), 0.3
    ),
    "from_profile": lambda called: pe.delta(pe.from_profile(profile(called)), 0.4),
    "a profile": lambda called: pe.gamma_bound(profile(called), 0.1),
    "repeat_and_select": lambda called: pe.duality.repeat_and_select(
        profile(called), 3.0, runs="poisson", mean=5.0
    ),
    "ConvexTradeOff": lambda called: pe.membership.ConvexTradeOff(curve(called))(0.21),
    "trade_off_from_profile": lambda called: list(
        pe.duality.trade_off_from_profile(profile(called), [0.1, 0.3])
    ),
}


@sampled(4)
@set_here
@pytest.mark.parametrize("name", ["upward", "FTZ and DAZ", "x87 at 24 bits"])
@pytest.mark.parametrize("what", CALLBACKS)
def test_callbacks_run_in_the_default_environment(what: str, name: str) -> None:
    """What they change ends with their return."""
    ask = CALLBACKS[what]
    right = afresh(lambda: ask(lambda: None))
    assert not isinstance(right, str), right
    seen = set()

    def called() -> None:
        seen.add(control_words())

    with environment(name):
        assert afresh(lambda: ask(called)) == right
    assert seen == {DEFAULT}
    assert afresh(lambda: ask(lambda: host().host_set(*ENVIRONMENTS[name]))) == right
    assert control_words() == DEFAULT


# ---- libraries, threads and processes ------------------------------------------------------------


@pytest.fixture(scope="module")
def fast_math(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A library linked with ``-ffast-math``: loading it flushes subnormal numbers."""
    place = tmp_path_factory.mktemp("fast")
    (place / "fast.c").write_text("int fast(void) { return 1; }\n")
    found = subprocess.run(
        ["gcc", "-print-file-name=crtfastmath.o"], capture_output=True, text=True, check=True
    )
    command = ["gcc", "-shared", "-fPIC", "-ffast-math", str(place / "fast.c")]
    # before version 13 -ffast-math alone links it to libraries, too
    version = subprocess.run(["gcc", "-dumpversion"], capture_output=True, text=True, check=True)
    if int(version.stdout.split(".")[0]) > 12:
        command.append(found.stdout.strip())
    subprocess.run([*command, "-o", str(place / "fast.so")], check=True)
    return place / "fast.so"


QUESTION = "pe.gamma_bound(pe.DiscreteGaussianMechanism(2.0).composed(3), 3e-308, bounds=True)"
PRINTED = f"print(*(x.hex() for x in {QUESTION}))"


def run(code: str, **variables: str) -> str:
    done = subprocess.run(
        [sys.executable, "-c", code],
        capture_output=True,
        text=True,
        env={**os.environ, "PYTHONPATH": str(ROOT / "tests"), **variables},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@set_here
@pytest.mark.parametrize("when", ["before", "within", "after"])
def test_library_linked_with_fast_math(fast_math: Path, when: str) -> None:
    load = f"ctypes.CDLL({str(fast_math)!r})"
    within = f"pe.calibrate(lambda s: ({load}, pe.dp_sgd(s, 0.1, 9))[1], goal)"
    steps = {
        "before": [load, "import pyengine as pe", PRINTED],
        "after": ["import pyengine as pe", load, PRINTED],
        "within": [
            *("import pyengine as pe", "goal = pe.targets.EpsilonDelta(1.0, 1e-5)"),
            *(f"a = {within}.value", f"assert a == {within}.value", PRINTED),
        ],
    }
    host_has = "environments.control_words()[0] & 0x8040"
    code = ["import ctypes, environments", *steps[when], f"print({host_has})"]
    found = run("\n".join(code)).splitlines()
    assert found[0] == " ".join(x.hex() for x in eval(QUESTION, {"pe": pe}))
    assert int(found[1]) == (0 if when == "within" else 0x8040)


@sampled(2)
@set_here
@pytest.mark.parametrize("name", ["upward", "FTZ and DAZ"])
def test_modules_are_compiled_and_executed_in_the_default_environment(
    name: str, tmp_path: Path
) -> None:
    """Python misreads literals upward, and would keep them so in its ``.pyc``."""
    words = ", ".join(map(str, ENVIRONMENTS[name]))
    code = f"""
import ctypes, sys
ctypes.CDLL({{library!r}}).host_set({words})
import pyengine.engines.lattice.compose, pyengine.engines.exact, pyengine.special
import pyengine.engines.smooth, pyengine.reference, pyengine.membership
found = {{}}
for name, module in sorted(sys.modules.items()):
    if name.startswith("pyengine"):
        for key, value in sorted(vars(module).items()):
            if isinstance(value, float):
                found[name, key] = ctypes.c_uint64.from_buffer(ctypes.c_double(value)).value
            elif type(value).__name__ == "ndarray" and value.dtype == float:
                found[name, key] = value.tobytes()
print(found)
"""
    library = tmp_path / "host.so"
    source = ROOT / "tests" / "c" / "environment" / "host.c"
    subprocess.run(["gcc", "-shared", "-fPIC", str(source), "-o", str(library)], check=True)
    code = code.replace("{library!r}", repr(str(library)))
    found = run(code, PYTHONPYCACHEPREFIX=str(tmp_path / name))
    right = run(code.replace(words, f"{MXCSR}, {X87}"), PYTHONPYCACHEPREFIX=str(tmp_path / "right"))
    assert len(right) > 1000
    assert found == right


@set_here
@pytest.mark.parametrize("name", ["upward", "FTZ and DAZ"])
def test_threads_of_the_host(name: str) -> None:
    """A new thread has the environment of the one that started it."""
    question = QUESTIONS["certified"]
    right = in_default("certified")
    found: list[Any] = []

    def asked() -> None:
        before = control_words()
        found.append((before, afresh(question), control_words()))

    with environment(name):
        thread = threading.Thread(target=asked)
        thread.start()
        thread.join()
        with ThreadPoolExecutor(2) as pool:
            for done in [pool.submit(asked) for _ in range(2)]:
                done.result()
    assert found == [(ENVIRONMENTS[name], right, ENVIRONMENTS[name])] * 3


@set_here
def test_threads_of_the_package() -> None:
    """Those of a pool outlive the call, and so the environment in which they were started."""
    code = """
import numpy as np, pyengine as pe, environments as e
x = np.linspace(0.1, 90.0, 20_000)
FEW = pe.dp_sgd(0.7, 0.05, 3)
def asked():
    drawn = pe.delta(FEW, 0.5, method="monte_carlo")
    return e.bits([pe.special.threaded(pe.special.ncx2_sf, x, 5.0, 9.0, workers=2), drawn])
with e.environment({0!r}):
    first = e.afresh(asked)
with e.environment({1!r}):
    second = e.afresh(asked)
assert first == second == e.afresh(asked)
"""
    for name in ("downward", "FTZ and DAZ"):
        run(code.format(name, "nearest"))
    run(code.format("nearest", "upward"))


@set_here
@pytest.mark.filterwarnings("ignore:.*fork.*:DeprecationWarning")
def test_child_forked_in_another_environment() -> None:
    right = in_default("certified")
    with environment("upward"):
        child = os.fork()
        if child == 0:
            with contextlib.suppress(BaseException):
                os._exit(afresh(QUESTIONS["certified"]) != right)
            os._exit(2)
        _, status = os.waitpid(child, 0)
    assert status == 0


@set_here
def test_command_line_beside_a_library(fast_math: Path) -> None:
    """Preloaded, so that all of the process has its environment, from the first import on."""
    question = ["delta", "--noise", "1", "--p", "0.01", "--steps", "1000", "--epsilon", "700"]
    command = [sys.executable, "-m", "pyengine", *question]

    def printed(**variables: str) -> str:
        env = {**os.environ, **variables}
        return subprocess.run(command, capture_output=True, text=True, check=True, env=env).stdout

    assert printed(LD_PRELOAD=str(fast_math)) == printed()


# ---- what is guarded -----------------------------------------------------------------------------


def public_modules() -> Iterator[Any]:
    for found in pkgutil.walk_packages(pe.__path__, "pyengine."):
        if guards._is_public(found.name) and not found.name.endswith("__main__"):
            try:
                yield import_module(found.name)
            except ImportError:  # of an accountant that is not installed
                continue


def plain_functions(holder: Any) -> Iterator[str]:
    """Public functions of a class or module that are not guarded."""
    names = vars(holder) if isinstance(holder, type) else getattr(holder, "__all__", ())
    for name in names:
        value = vars(holder).get(name)
        if isinstance(value, property):
            value = value.fget
        elif isinstance(value, cached_property):
            value = value.func
        elif isinstance(value, classmethod | staticmethod):
            value = value.__func__
        private = name.startswith("_") and not name.endswith("__")
        written = getattr(value, "__module__", "").startswith("pyengine.")
        if isinstance(value, FunctionType) and written and not private:
            yield name


def test_all_that_is_public_is_guarded() -> None:
    counted, plain = 0, set()
    for module in public_modules():
        holders = [module]
        for name in getattr(module, "__all__", ()):
            value = getattr(module, name)
            counted += isinstance(value, Guarded)
            if isinstance(value, type) and value.__module__.startswith("pyengine."):
                holders.append(value)
        for holder in holders:
            plain |= {
                f"{holder.__name__}.{name}"
                for name in plain_functions(holder)
                if name not in guards._PLAIN
            }
    assert counted > 300
    assert not plain
    assert all(
        isinstance(getattr(pe, name), Guarded | type | float | str)
        for name in pe.__all__
        if not inspect.ismodule(getattr(pe, name))
    )


def test_guards_are_not_seen() -> None:
    """They have the names, words and signatures of their functions, and are pickled by name."""
    signature = inspect.signature(pe.delta)
    assert list(signature.parameters)[:2] == ["mechanism", "epsilon"]
    assert pe.delta.__doc__.startswith("Privacy profile δ(ε)")
    assert (pe.delta.__name__, pe.delta.__module__) == ("delta", "pyengine.api")
    assert "function delta" in repr(pe.delta)
    assert pickle.loads(pickle.dumps(pe.delta)) is pe.delta
    assert inspect.isroutine(pe.delta)
    assert inspect.getsource(pe.delta).startswith("def delta(")
    composed = pe.GaussianMechanism(1.0).composed
    assert composed.__self__ == pe.GaussianMechanism(1.0)
    assert composed(2) == pe.GaussianMechanism.composed(pe.GaussianMechanism(1.0), 2)


@pytest.mark.parametrize("wrong", [(), (1,), (abs, abs)])
def test_only_functions_are_guarded(wrong: tuple[Any, ...]) -> None:
    with pytest.raises(TypeError):
        Guarded(*wrong)
    with pytest.raises(TypeError):
        Guarded(abs, name=1)
