"""`assert_sound` and the plugin for pytest."""

from __future__ import annotations

import importlib.metadata
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

import pyengine as pe
from pyengine.accounting.conformance.adapters import find
from pyengine.accounting.conformance.adapters.own import Pyengine
from pyengine.conformance import assert_sound, load
from pyengine.interop import HistoryAccountant

EXAMPLE = Path(__file__).parents[1] / "examples" / "sound_accountant"


class Estimates(HistoryAccountant):
    """Of the shape of Opacus' accountants, without the proofs, which take longer."""

    def get_epsilon(self, delta: float) -> float:
        return super().get_epsilon(delta, proven=False)

    def get_delta(self, epsilon: float) -> float:
        return super().get_delta(epsilon, proven=False)

    def get_gamma(self, kappa: float) -> float:
        return float(super().get_gamma(kappa, proven=False))


class Careless(Estimates):
    def get_delta(self, epsilon: float) -> float:
        return 0.999 * super().get_delta(epsilon)

    def get_gamma(self, kappa: float) -> float:
        return float("nan") if kappa == 1e-3 else super().get_gamma(kappa)


class OnlyBeta:
    """Of the shape of riskcal's accountant."""

    def __init__(self) -> None:
        self.history: list[Any] = []

    def step(self, *, noise_multiplier: float, sample_rate: float) -> None:
        raise NotImplementedError

    def get_epsilon(self, *, delta: float) -> float:
        raise OverflowError(f"not at {delta}")

    def get_beta(self, *, alpha: float) -> float:
        return float(pe.trade_off(self.history, alpha))


def test_sound_ones_pass() -> None:
    results = assert_sound(Estimates)
    assert {result.case.question for result in results} == {"gamma", "delta", "epsilon"}
    assert len(results) == 35
    assert {result.method for result in results} == {"Estimates"}
    every = assert_sound("pyengine")  # which answers for all schemes
    assert len(every) == len(load()) > 35
    some = ["b", "fixed", "epochs", "best"]  # as an adapter of its own
    asked = assert_sound(Pyengine(), settings=some)
    assert len(asked) == sum(result.case.setting.name in some for result in every) > 4
    assert len(assert_sound(lambda: Estimates(), settings=["b", "c1"])) < 35


def test_unsafe_ones_are_told() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_sound(Careless, settings=["b"])
    lines = str(caught.value).splitlines()
    assert re.search(
        r"delta at 1, noise 1, .* 1,000 steps: 0\.0026098\d+ is 0\.1 % below", lines[2]
    )
    assert any("gamma at 1e-3" in line and "nan is no number" in line for line in lines)
    cases = [result.case for result in assert_sound(Estimates, settings=["b"])]
    # besides the heading and the γ that is no number
    assert len(lines) == 2 + sum(case.question == "delta" for case in cases)
    with pytest.raises(AssertionError, match=r"gamma at 1e-3.*no number"):
        assert_sound(Careless, settings=["b"], tolerance=0.01)


def test_refusals_are_named() -> None:
    with pytest.raises(
        AssertionError, match=r"epsilon at 1e-5.* raises OverflowError: not at 1e-05"
    ):
        assert_sound(OnlyBeta, settings=["b"])
    results = assert_sound(OnlyBeta, settings=["b"], refusals=OverflowError)
    assert {r.case.question for r in results if r.value is not None} == {"gamma"}
    assert any(r.message == "refused, OverflowError: not at 1e-05" for r in results)

    class Nothing(OnlyBeta):
        def get_beta(self, *, alpha: float) -> float:
            raise OverflowError(alpha)

    with pytest.raises(AssertionError, match="no question was answered"):
        assert_sound(Nothing, refusals=(OverflowError, ValueError))


def test_what_is_no_accountant() -> None:
    for thing in (3, object, dict):
        with pytest.raises(ValueError, match="accountant must be an adapter, or a class"):
            assert_sound(thing)
    with pytest.raises(ValueError, match=r"settings must be among a, b, .*, curve, got 'd'"):
        assert_sound(Estimates, settings=["d"])


def test_a_class_that_says_nothing_is_asked_of_poisson_samples_only() -> None:
    with pytest.raises(AssertionError, match="no question was answered"):
        assert_sound(Estimates, settings=["group", "epoch"])


def test_schemes_are_judged_by_what_data_sets_attain() -> None:
    class Tight(Pyengine):
        share = 0.0

        def answer(self, method: str, setting: Any, question: str, at: float) -> float:  # noqa: ARG002
            (case,) = (
                case
                for case in load()
                if case.setting == setting and (case.question, float(case.at)) == (question, at)
            )
            low, high = float(case.attained or case.truth), float(case.truth)
            return low + self.share * (high - low)

    class Below(Tight):
        share = -1e-3

    assert len(assert_sound(Tight(), settings=["truncated", "group"])) == 7
    with pytest.raises(AssertionError, match=r"cut to 20 of 2,048, 1 step: .* below") as caught:
        assert_sound(Below(), settings=["truncated"])
    assert len(str(caught.value).splitlines()) == 1 + 4


def test_classes_go_by_their_path() -> None:
    found = find("pyengine.interop:HistoryAccountant")
    assert found.distribution == "pyengine-dp"
    assert dict(found.methods) == {"HistoryAccountant": ("epsilon", "delta", "gamma")}


def run_pytest(directory: Path, *options: str) -> subprocess.CompletedProcess[str]:
    environment = {k: v for k, v in os.environ.items() if not k.startswith("PYTEST_")}
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-c", os.devnull, *options],
        capture_output=True,
        text=True,
        check=False,
        cwd=directory,
        env=environment,
    )


def test_the_plugin_asks_each_question(tmp_path: Path) -> None:
    names = {point.name for point in importlib.metadata.entry_points(group="pytest11")}
    assert "pyengine" in names, "install the package again: it has a new entry point"
    (tmp_path / "clt.py").write_text((EXAMPLE / "clt.py").read_text())
    run = run_pytest(
        tmp_path,
        "--pyengine-conformance=clt:CentralLimit",
        "--pyengine-conformance=pyengine",
        "-v",
        "--pyengine-setting=a",
    )
    assert run.returncode == 1, run.stderr
    assert "pyengine-conformance::pyengine[auto-a-gamma-0.1] PASSED" in run.stdout
    assert "pyengine-conformance::clt:CentralLimit[clt-a-epsilon-1e-5] FAILED" in run.stdout
    assert "is 10.2 % below, 0.78238778" in run.stdout
    assert "b-epsilon" not in run.stdout


def test_the_plugin_refuses_what_is_wrong(tmp_path: Path) -> None:
    run = run_pytest(tmp_path, "--pyengine-conformance=nobody")
    assert run.returncode == pytest.ExitCode.USAGE_ERROR
    assert "accountant must be one of pyengine, dp_accounting" in run.stderr


def test_the_plugin_is_light(tmp_path: Path) -> None:
    """Every run of pytest loads it, so it must not load the package."""
    (tmp_path / "test_modules.py").write_text(
        "import sys\n\n\ndef test_modules():\n    assert 'pyengine' not in sys.modules\n"
    )
    run = run_pytest(tmp_path, "--pyengine-setting", "a", "test_modules.py")
    assert run.returncode == 0, run.stdout
