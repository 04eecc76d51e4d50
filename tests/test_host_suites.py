"""Test suites that hosts ship, run on our accountants in their place (extra ``peers``)."""

from __future__ import annotations

import importlib
import math
import unittest
from types import ModuleType
from typing import Any

import pytest

# Tests of dp_accounting's own PLD accountant that ours answers otherwise, and why.
PLD_OTHERWISE = {
    # a release without noise on a sample of 10 % tells of a record with probability 0.1, not 1
    "test_additive_noise_mechanisms_with_zero_noise_multiplier3",
    "test_additive_noise_mechanisms_with_zero_noise_multiplier4",
    # without noise the true bucket against a uniform one: 2/3, not 1
    "test_randomized_response_with_zero_noise_parameter",
    # its value for truncated samples is an upper bound
    "test_truncated_subsampled_gaussian_basic",
    # ours knows Laplace noise where one record takes the place of another
    "test_poisson_subsampling_laplace_not_supported_for_replace_one",
    "test_composition_errors_for_neighboring_relation1",
    "test_composition_errors_for_neighboring_relation2",
    "test_composition_errors_for_neighboring_relation3",
    # refused by both, in other words
    "test_composition_errors_for_neighboring_relation0",
    "test_composition_errors_for_neighboring_relation4",
}
# Tests of Opacus that expect the digits of its own accountants, all of which lie above ours.
OPACUS_OTHERWISE = {
    "test_accountant_load_state_dict",
    "test_get_noise_multiplier_gdp",
    "test_get_noise_multiplier_prv_epochs",
    "test_get_noise_multiplier_prv_steps",
    "test_get_noise_multiplier_rdp_epochs",
    "test_get_noise_multiplier_rdp_steps",
    "test_prv_accountant",
    "test_rdp_accountant",
}


def run(module: ModuleType) -> unittest.TestResult:
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromModule(module).run(result)
    return result


def names(found: list[tuple[unittest.TestCase, str]]) -> set[str]:
    return {test.id().split()[0].rpartition(".")[2] for test, _ in found}


def test_dp_accounting(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("dp_accounting")
    suite = importlib.import_module("dp_accounting.pld.pld_privacy_accountant_test")
    from pyengine.interop.dp_accounting import PyengineAccountant

    monkeypatch.setattr(suite.pld_privacy_accountant, "PLDAccountant", PyengineAccountant)
    result = run(suite)
    assert result.testsRun >= 60
    assert not result.errors, result.errors[0][1]
    assert names(result.failures) == PLD_OTHERWISE


@pytest.mark.slow
@pytest.mark.filterwarnings("ignore")  # of Opacus and PyTorch about themselves
def test_opacus(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("opacus")
    suite = importlib.import_module("opacus.tests.accountants_test")
    registry = importlib.import_module("opacus.accountants.registry")
    from pyengine.interop.opacus import PyengineAccountant

    for word in ("rdp", "prv", "gdp"):
        monkeypatch.setitem(registry._ACCOUNTANTS, word, PyengineAccountant)
    for name in ("RDPAccountant", "PRVAccountant"):
        monkeypatch.setattr(suite, name, PyengineAccountant)
    result = run(suite)
    assert result.testsRun >= 15
    assert not result.errors, result.errors[0][1]
    assert names(result.failures) == OPACUS_OTHERWISE


@pytest.mark.filterwarnings("ignore")
def test_digits_of_opacus_lie_above() -> None:
    """What `OPACUS_OTHERWISE` says of them: 1.5, 0.04, 2250 steps is the setting of its tests."""
    accountants = pytest.importorskip("opacus.accountants")
    from pyengine.interop.opacus import PyengineAccountant

    ours = PyengineAccountant()
    ours.history = [(1.5, 0.04, 2250)]
    for name in ("RDPAccountant", "PRVAccountant"):
        theirs = getattr(accountants, name)()
        theirs.history = list(ours.history)
        assert ours.get_epsilon(1e-5) < theirs.get_epsilon(delta=1e-5)


def jax_privacy_events(module: Any) -> list[Any]:
    """Events of the shapes that jax_privacy's accounting makes, as functions of the noise."""
    return [
        lambda noise: module.SelfComposedDpEvent(
            module.PoissonSampledDpEvent(0.01, module.GaussianDpEvent(noise)), 128
        ),
        lambda noise: module.SelfComposedDpEvent(
            module.PoissonSampledDpEvent(0.16, module.GaussianDpEvent(noise)), 8
        ),
        lambda noise: module.SelfComposedDpEvent(
            module.TruncatedSubsampledGaussianDpEvent(1000, 0.01, 16, noise), 128
        ),
    ]


@pytest.mark.parametrize("index", range(3))
def test_the_calibration_that_jax_privacy_calls(index: int) -> None:
    """From no noise on, which dp_accounting tries first."""
    dp_accounting = pytest.importorskip("dp_accounting")
    from pyengine.interop.dp_accounting import PyengineAccountant

    event = jax_privacy_events(dp_accounting)[index]
    assert PyengineAccountant().compose(event(0.0)).get_epsilon(1e-6) == math.inf
    noise = dp_accounting.calibrate_dp_mechanism(PyengineAccountant, event, 1.0, 1e-6)
    found = PyengineAccountant().compose(event(noise)).get_epsilon(1e-6)
    assert 1.0 - 5e-5 < found <= 1.0 + 1e-12


@pytest.mark.slow
def test_a_search_goes_where_narrow_bounds_are_out_of_reach() -> None:
    """As riskcal's does: δ 2e-3 below the probability of being sampled at all."""
    pytest.importorskip("riskcal")
    from pyengine.interop import HistoryAccountant

    made = HistoryAccountant()
    made.history = [(0.09880371093750001, 0.01, 100)]
    found, truth = (made.get_epsilon(0.6321813530585169, proven=p) for p in (True, False))
    assert truth < found < 1.01 * truth


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_riskcal_searches_with_its_own_words() -> None:
    riskcal = pytest.importorskip("riskcal.calibration.blackbox")
    from pyengine.interop import HistoryAccountant

    noise = riskcal.find_noise_multiplier_for_advantage(
        HistoryAccountant, advantage=0.1, sample_rate=0.01, num_steps=100, grid_step=1e-2
    )
    theirs = importlib.import_module("riskcal.accountants").CTDAccountant()
    theirs.history = [(noise, 0.01, 100)]
    assert theirs.get_advantage() == pytest.approx(0.1, abs=2e-3)
