"""Our accountants in the hands of the libraries that they are made for (extra ``peers``)."""

from __future__ import annotations

import doctest
import importlib
import math
import os
import re
import subprocess
import sys
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any, cast

import numpy as np
import pytest

import pyengine as pe
from pyengine.accounting.conformance.adapters.classes import adapted
from pyengine.accounting.conformance.adapters.dp_accounting import DpAccounting
from pyengine.accounting.conformance.soundness import chosen, judged
from pyengine.conformance import assert_sound, load
from pyengine.interop import HistoryAccountant, prv_accountant

RUN = pe.dp_sgd(1.0, 0.01, 100)


@pytest.mark.parametrize("host", ["dp_accounting", "opacus"])
def test_docstrings(host: str) -> None:
    pytest.importorskip(host)
    module = importlib.import_module(f"pyengine.interop.{host}")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # Opacus' own, of a generator that is not secure
        found = doctest.testmod(module, optionflags=doctest.ELLIPSIS)
    assert found.failed == 0
    assert found.attempted > 3


ROOT = Path(__file__).parents[1]
HOSTS = {  # of the sections of docs/hosts.md whose blocks need a library
    "Opacus": "opacus",
    "JAX Privacy and dp-accounting": "dp_accounting",
    "riskcal": "riskcal",
}


@pytest.mark.filterwarnings("ignore")  # of the hosts about themselves
@pytest.mark.parametrize("section", HOSTS)
def test_guides_run(section: str) -> None:
    """Blocks that need a host's library, which tests/test_docs.py leaves out."""
    pytest.importorskip(HOSTS[section])
    page = (ROOT / "docs" / "hosts.md").read_text(encoding="utf-8")
    text = page.split(f"\n## {section}\n")[1].split("\n## ")[0]
    blocks = re.findall(r"^```py\n(.*?)^```", text, re.M | re.S)
    session: dict[str, Any] = {"__name__": "docs"}
    for block in blocks:
        exec(compile(block, section, "exec"), session)
    assert blocks


def test_every_block_that_needs_a_host_is_run() -> None:
    page = (ROOT / "docs" / "hosts.md").read_text(encoding="utf-8")
    sections = [part for part in re.split(r"^## ", page, flags=re.M) if "```py\n" in part]
    assert [part.splitlines()[0] for part in sections] == list(HOSTS)


# Opacus


@pytest.fixture
def digits() -> Callable[..., Any]:
    """A model of scikit-learn's digits that Opacus has made private, with its engine."""
    opacus = pytest.importorskip("opacus")
    import torch
    from sklearn.datasets import load_digits

    import pyengine.interop.opacus  # noqa: F401 - registers the accountant

    images, labels = load_digits(return_X_y=True)
    data = torch.utils.data.TensorDataset(
        torch.tensor(images / 16, dtype=torch.float32), torch.tensor(labels)
    )

    def make(accountant: str, target: float | None = None, **more: Any) -> Any:
        torch.manual_seed(1)
        model = torch.nn.Linear(64, 10)
        optimizer = torch.optim.SGD(model.parameters(), lr=0.5)
        engine = opacus.PrivacyEngine(accountant=accountant)
        parts = {
            "module": model,
            "optimizer": optimizer,
            "data_loader": torch.utils.data.DataLoader(data, batch_size=256),
            "max_grad_norm": 1.0,
            **more,
        }
        if target is None:
            return engine, *engine.make_private(noise_multiplier=1.5, **parts)
        return engine, *engine.make_private_with_epsilon(
            target_epsilon=target, target_delta=1e-5, epochs=2, **parts
        )

    return make


def train(model: Any, optimizer: Any, loader: Any, *, batches_per_step: int = 1) -> None:
    import torch

    optimizer.zero_grad()
    for number, (images, labels) in enumerate(loader, start=1):
        torch.nn.functional.cross_entropy(model(images), labels).backward()
        if number % batches_per_step == 0:
            optimizer.step()
            optimizer.zero_grad()


@pytest.mark.filterwarnings("ignore")  # of Opacus and PyTorch about themselves
def test_opacus_trains_saves_and_resumes(digits: Any, tmp_path: Path) -> None:
    engine, model, optimizer, loader = digits("pyengine")
    train(model, optimizer, loader)
    steps, rate = len(loader), 1 / len(loader)
    assert engine.accountant.history == [(1.5, rate, steps)]
    run = pe.dp_sgd(1.5, rate, steps)
    upper, truth = engine.get_epsilon(1e-5), pe.epsilon(run, 1e-5)
    assert truth <= upper <= truth * 1.0002
    assert pe.epsilon(engine, 1e-5) == pe.epsilon(engine.accountant, 1e-5) == truth
    beside = pe.compose(engine.accountant, pe.LaplaceMechanism(10))
    assert beside == run + pe.LaplaceMechanism(10)

    engine.save_checkpoint(path=tmp_path / "run.pt", module=model, optimizer=optimizer)
    again, model, optimizer, loader = digits("pyengine")
    again.load_checkpoint(path=tmp_path / "run.pt", module=model, optimizer=optimizer)
    train(model, optimizer, loader)
    assert again.accountant.history == [(1.5, rate, 2 * steps)]
    with pytest.raises(ValueError, match="must be that of an accountant 'pyengine', got 'rdp'"):
        again.accountant.load_state_dict({"history": [], "mechanism": "rdp"})


@pytest.mark.filterwarnings("ignore")
def test_opacus_calibrates(digits: Any) -> None:
    engine, _, optimizer, loader = digits("pyengine", target=2.0)
    run = pe.dp_sgd(optimizer.noise_multiplier, 1 / len(loader), 2 * len(loader))
    assert 1.98 < pe.epsilon(run, 1e-5) <= 2.0
    assert len(engine.accountant) == 0


@pytest.mark.filterwarnings("ignore")
def test_opacus_accumulates_gradients(digits: Any) -> None:
    engine, model, optimizer, loader = digits("pyengine", poisson_sampling=False)
    train(model, optimizer, loader, batches_per_step=4)
    rate = 4 / len(loader)
    assert engine.accountant.history == [(1.5, rate, len(loader) // 4)]
    assert len(engine.accountant) == len(loader) // 4
    with pytest.raises(ValueError, match="2 steps added up the gradients of several batches"):
        engine.get_epsilon(1e-5)


@pytest.mark.filterwarnings("ignore")
def test_opacus_without_poisson_samples_is_refused(digits: Any) -> None:
    """A loader that shuffles, and cuts the last batch of an epoch shorter."""
    engine, model, optimizer, loader = digits("pyengine", poisson_sampling=False)
    for _ in range(2):
        train(model, optimizer, loader)
    with pytest.raises(ValueError, match="14 of 16 batches have 256 records"):
        engine.get_epsilon(1e-5)
    with pytest.raises(ValueError, match="must be Poisson samples"):
        pe.gamma_bound(engine, 1e-3)
    with pytest.raises(ValueError, match="must be Poisson samples"):
        pe.statement.privacy_statement(engine, 1e-5)
    holds = engine.accountant.shuffled_composition()
    assert holds == pe.GaussianMechanism(1.5).composed(2)
    sampled, model, optimizer, loader = digits("pyengine")
    for _ in range(2):
        train(model, optimizer, loader)
    assert sampled.get_epsilon(1e-5) < pe.epsilon(holds, 1e-5)
    assert sampled.accountant._batches.are_told()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("largest", [1, 100])
def test_opacus_with_parts_of_batches_is_answered(digits: Any, largest: int) -> None:
    """What is left of a batch of samples says nothing of its size."""
    manager = pytest.importorskip("opacus.utils.batch_memory_manager").BatchMemoryManager
    engine, model, optimizer, loader = digits("pyengine")
    with manager(data_loader=loader, max_physical_batch_size=largest, optimizer=optimizer) as parts:
        train(model, optimizer, parts)
    assert engine.get_epsilon(1e-5) > 0.0
    assert "sizes of 8 batches were not seen" in repr(engine.accountant)


# dp_accounting


def test_the_suite_of_dp_accounting() -> None:
    """The tests that dp_accounting has for every accountant, run on ours."""
    base = pytest.importorskip("dp_accounting.privacy_accountant_test").PrivacyAccountantTest
    import unittest

    import dp_accounting

    from pyengine.interop.dp_accounting import PyengineAccountant

    class Suite(base):  # type: ignore[misc, valid-type]
        def _make_test_accountants(self) -> list[Any]:
            return [PyengineAccountant(each) for each in dp_accounting.NeighboringRelation]

    Suite.__unittest_skip__ = False
    result = unittest.TestResult()
    unittest.defaultTestLoader.loadTestsFromTestCase(Suite).run(result)
    assert result.testsRun >= 10
    assert not result.skipped
    assert not result.failures + result.errors, (result.failures + result.errors)[0][1]


def events(module: Any) -> list[Any]:
    gaussian, laplace = module.GaussianDpEvent(1.5), module.LaplaceDpEvent(2.0)
    return [
        gaussian,
        laplace,
        module.DiscreteLaplaceDpEvent(0.5, 2),
        module.PoissonSampledDpEvent(0.1, gaussian),
        module.PoissonSampledDpEvent(0.1, laplace),
        module.MixtureOfGaussiansDpEvent(1.5, [0.0, 1.0, 2.0], [0.5, 0.25, 0.25]),
        module.TruncatedSubsampledGaussianDpEvent(100, 0.1, 100, 1.5),
    ]


def test_truncated_samples_stay_below_dp_accounting() -> None:
    """It takes the pair of substitution where records are displaced, and calls that loose."""
    module = pytest.importorskip("dp_accounting")
    event = module.dp_event.TruncatedSubsampledGaussianDpEvent(100, 0.1, 15, 1.5)
    ours = pe.interop.from_dp_event(event)
    assert pe.interop.to_dp_event(ours) == event
    theirs = module.pld.PLDAccountant(module.NeighboringRelation.ADD_OR_REMOVE_ONE, 1e-3)
    theirs.compose(event, 10)
    for epsilon in (0.5, 1.0, 2.0):
        bound = theirs.get_delta(epsilon)
        assert 0.5 * bound < pe.delta(ours.composed(10), epsilon) < bound


def test_configuration_for_jax_privacy() -> None:
    dp_accounting = pytest.importorskip("dp_accounting")
    from pyengine.interop.dp_accounting import PyengineAccountant, PyengineAccountantConfig

    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    config = PyengineAccountantConfig(neighboring_relation=relation, proven=False, tolerance=1e-3)
    first, second = config.create_accountant(), config.create_accountant()
    first.compose(dp_accounting.GaussianDpEvent(2.0), 3)
    assert isinstance(first, PyengineAccountant)
    assert first.adjacency == "substitute"
    assert second.get_epsilon(1e-5) == 0.0
    truth = pe.epsilon(pe.GaussianMechanism(2.0).composed(3), 1e-5, adjacency="substitute")
    assert first.get_epsilon(1e-5) == truth


def test_newer_events_stay_below_dp_accounting() -> None:
    """ε of zCDP, selections and (ε, δ) beside its Rényi accountant, which is looser."""
    dp_accounting = pytest.importorskip("dp_accounting")
    from pyengine.interop.dp_accounting import PyengineAccountant

    module = dp_accounting.dp_event
    base = module.GaussianDpEvent(4.0)
    made = {
        "ZCDpEvent": (0.1,),
        "RepeatAndSelectDpEvent": (base, 5.0, math.inf),
        "EpsilonDeltaDpEvent": (0.5, 1e-7),
        "DiscreteGaussianDpEvent": (5.0, 2.0),
        "PermuteAndFlipDpEvent": (0.5,),
    }
    compared = 0
    for name, fields in made.items():
        cls = getattr(module, name, None)
        if cls is None:
            continue
        theirs = dp_accounting.rdp.RdpAccountant().compose(cls(*fields), 3)
        ours = PyengineAccountant().compose(cls(*fields), 3)
        assert 0.5 < ours.get_epsilon(1e-5) / theirs.get_epsilon(1e-5) < 1.0 + 1e-9, name
        compared += 1
    assert compared >= 2


def test_dp_accounting_agrees() -> None:
    """Events and relations that its own PLD accountant supports, too."""
    dp_accounting = pytest.importorskip("dp_accounting")
    from pyengine.interop.dp_accounting import PyengineAccountant

    compared = 0
    for relation in dp_accounting.NeighboringRelation:
        for event in events(dp_accounting.dp_event):
            ours = PyengineAccountant(relation)
            theirs = dp_accounting.pld.PLDAccountant(relation, 1e-3)
            if not theirs.supports(event):
                continue
            ours.compose(event, 3)
            theirs.compose(event, 3)
            epsilon = theirs.get_epsilon(1e-3)
            assert ours.get_epsilon(1e-3) == pytest.approx(epsilon, rel=2e-4), (relation, event)
            adjacency = ours.adjacency
            assert pe.epsilon(theirs, 1e-3, adjacency=adjacency) <= ours.get_epsilon(1e-3)
            assert pe.epsilon(ours, 1e-3, adjacency=adjacency) <= ours.get_epsilon(1e-3)
            compared += 1
    assert compared >= 16


def test_randomized_response_of_dp_accounting() -> None:
    """Once, because its PLD accountant composes it once whatever the count (0.6.0)."""
    dp_accounting = pytest.importorskip("dp_accounting")
    from pyengine.interop.dp_accounting import PyengineAccountant

    event = dp_accounting.RandomizedResponseDpEvent(0.5, 4)
    relations = dp_accounting.NeighboringRelation
    assert not PyengineAccountant(relations.ADD_OR_REMOVE_ONE).supports(event)
    for relation in (relations.REPLACE_ONE, relations.REPLACE_SPECIAL):
        theirs = dp_accounting.pld.PLDAccountant(relation).compose(event)
        ours = PyengineAccountant(relation).compose(event)
        for epsilon in (0.0, 0.25, 0.5):
            assert ours.get_delta(epsilon) == pytest.approx(theirs.get_delta(epsilon), rel=1e-4)
    three = PyengineAccountant(relations.REPLACE_ONE).compose(event, 3)
    assert three.get_epsilon(0.0) == pytest.approx(3 * math.log(5), rel=1e-4)


def test_relations_are_not_mixed_up() -> None:
    dp_accounting = pytest.importorskip("dp_accounting")
    relation = dp_accounting.NeighboringRelation.REPLACE_ONE
    accountant = dp_accounting.pld.PLDAccountant(relation)
    accountant.compose(dp_accounting.GaussianDpEvent(2.0))
    with pytest.raises(ValueError, match="adjacency must be 'substitute' for an accountant of REP"):
        pe.epsilon(accountant, 1e-5)
    with pytest.raises(ValueError, match="compose its ledger"):
        pe.compose(accountant)
    truth = pe.epsilon(pe.GaussianMechanism(2.0), 1e-5, adjacency="substitute")
    assert pe.epsilon(accountant, 1e-5, adjacency="substitute") == truth
    other = dp_accounting.pld.PLDAccountant().compose(dp_accounting.GaussianDpEvent(2.0))
    with pytest.raises(ValueError, match="adjacency must be 'add_remove' for an accountant of ADD"):
        pe.epsilon(other, 1e-5, adjacency="substitute")


def test_dp_accounting_calibrates() -> None:
    dp_accounting = pytest.importorskip("dp_accounting")
    from pyengine.interop.dp_accounting import PyengineAccountant

    def event(noise: float) -> Any:
        gaussian = dp_accounting.GaussianDpEvent(noise)
        step = dp_accounting.PoissonSampledDpEvent(0.01, gaussian)
        return dp_accounting.SelfComposedDpEvent(step, 1000)

    for make in (PyengineAccountant, lambda: PyengineAccountant(proven=False)):
        noise = dp_accounting.calibrate_dp_mechanism(
            make,
            event,
            2.0,
            1e-5,
            dp_accounting.ExplicitBracketInterval(0.5, 5.0),
            tol=1e-3,
        )
        exact = float(pe.calibrate(lambda s: pe.dp_sgd(s, 0.01, 1000), TARGET))
        assert exact <= noise <= exact + 2e-3


TARGET = pe.targets.EpsilonDelta(2.0, 1e-5)


def test_rates_and_gaussian_dp() -> None:
    """What reports of JAX Privacy ask; the PLD accountant of 0.6.0 cannot answer it yet."""
    dp_accounting = pytest.importorskip("dp_accounting")
    from pyengine.interop.dp_accounting import PyengineAccountant

    plain = PyengineAccountant().compose(dp_accounting.GaussianDpEvent(2.0), 9)
    assert plain.get_gdp_parameter_estimate() == pytest.approx(1.5, rel=1e-10)
    sampled = PyengineAccountant().compose(
        dp_accounting.PoissonSampledDpEvent(0.01, dp_accounting.GaussianDpEvent(1.0)), 100
    )
    levels = np.array([1e-6, 1e-3, 0.1])
    rates = sampled.get_true_positive_rates(levels)
    truth = pe.gamma_bound(RUN, levels, adjacency="add_remove")
    assert np.all((truth <= rates) & (rates <= truth * 1.0002))
    assert sampled.get_true_positive_rates(0.1) == pytest.approx(truth[2], rel=2e-4)
    with pytest.raises(ValueError, match=r"false_positive_rates must lie in \(0, 1\)"):
        sampled.get_gdp_parameter_estimate([0.0])


# prv_accountant and riskcal


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
def test_the_signatures_of_prv_accountant() -> None:
    theirs = pytest.importorskip("prv_accountant")
    step = theirs.PoissonSubsampledGaussianMechanism(
        sampling_probability=0.01, noise_multiplier=1.0
    )
    keywords = {"eps_error": 0.1, "delta_error": 1e-8}
    for prvs, numbers in ((step, 100), ([step, theirs.LaplaceMechanism(mu=0.5)], [100, 2])):
        both = [
            module.PRVAccountant(prvs=prvs, max_self_compositions=numbers, **keywords)
            for module in (theirs, prv_accountant)
        ]
        asked = numbers if isinstance(numbers, list) else [numbers]
        for question, at in (("compute_epsilon", 1e-5), ("compute_delta", 0.5)):
            low, value, high = getattr(both[0], question)(at, asked)
            ours = getattr(both[1], question)(at, asked)
            assert low <= ours[0] <= ours[1] <= ours[2] <= high
            assert value == pytest.approx(ours[1], rel=2e-2)
        assert pe.epsilon(both[0], 1e-5) == pe.epsilon(both[1], 1e-5)
    theirs_once, ours_once = (
        module.Accountant(
            noise_multiplier=1.0,
            sampling_probability=0.01,
            delta=1e-5,
            eps_error=0.1,
            max_compositions=100,
        ).compute_epsilon(num_compositions=100)
        for module in (theirs, prv_accountant)
    )
    assert theirs_once[0] <= ours_once[0] <= ours_once[2] <= theirs_once[2]


def test_riskcal_takes_the_accountant() -> None:
    riskcal = pytest.importorskip("riskcal.calibration.blackbox")
    noise = riskcal.find_noise_multiplier_for_epsilon_delta(
        HistoryAccountant,
        sample_rate=0.01,
        num_steps=100,
        epsilon=1.0,
        delta=1e-5,
        eps_error=0.01,
        tolerance=1e-3,
    )
    target = pe.targets.EpsilonDelta(1.0, 1e-5)
    exact = float(pe.calibrate(lambda s: pe.dp_sgd(s, 0.01, 100), target))
    assert noise == pytest.approx(exact, rel=0.02)


# Soundness


def test_the_example_of_soundness() -> None:
    """As a reader of examples/sound_accountant runs it, its file and questions of the plugin."""
    pytest.importorskip("dp_accounting")
    accountant = "dp_accounting.pld:PLDAccountant"
    options = ["-v", "-p", "no:cacheprovider", "-c", os.devnull]
    asked = [f"--pyengine-conformance={accountant}", "--pyengine-setting=a"]
    run = subprocess.run(
        [sys.executable, "-m", "pytest", *options, *asked],
        cwd=ROOT / "examples" / "sound_accountant",
        capture_output=True,
        text=True,
        check=False,
    )
    assert run.returncode == 0, run.stdout
    assert "test_soundness.py::test_soundness PASSED" in run.stdout
    assert "PLDAccountant[PLDAccountant-a-epsilon-1e-7] PASSED" in run.stdout


@pytest.mark.filterwarnings("ignore")
def test_soundness_of_classes() -> None:
    accountants = pytest.importorskip("opacus.accountants")
    from pyengine.interop.opacus import PyengineAccountant

    assert_sound(PyengineAccountant, settings=["b"])
    assert_sound(accountants.RDPAccountant, settings=["a", "b"])
    with pytest.raises(AssertionError, match=r"epsilon at 1e-5.* is 10.2 % below"):
        assert_sound(accountants.GaussianAccountant, settings=["a"])


class Composing:
    """Of the shape of dp_accounting's accountants; counts how often a run is composed."""

    runs = 0

    def compose(self, event: Any) -> None:
        type(self).runs += 1
        self.ours = pe.interop.from_dp_event(event)

    def get_epsilon(self, delta: float) -> float:
        return float(pe.epsilon(self.ours, delta, bounds="estimated").upper)


def test_soundness_composes_a_run_once() -> None:
    pytest.importorskip("dp_accounting")
    asked = assert_sound(Composing)
    assert {case.at for case in (result.case for result in asked)} > {"1e-5"}
    assert Composing.runs == len({result.case.setting for result in asked}) < len(asked)
    adapter = adapted(Composing)
    for result in asked[:2]:
        assert adapter.answer(result.method, result.case.setting, "epsilon", 1e-5) > 0.0
    assert Composing.runs == len({result.case.setting for result in asked}) + 2, "not from nothing"


def answers(adapter: Any, name: str) -> dict[tuple[str, str], float]:
    """Relative errors of the answers to one setting, by question and place."""
    results = [judged(adapter, method, case) for method, case in chosen(adapter, [name])]
    return {(r.method, f"{r.case.question} {r.case.at}"): cast(float, r.error) for r in results}


def test_schemes_of_dp_accounting() -> None:
    """Its PLD accountant has mixtures and cut samples; no accountant of it has an epoch."""
    module = pytest.importorskip("dp_accounting")
    errors = {
        name: answers(DpAccounting(), name)
        for name in ("group", "truncated", "fixed", "replaced", "epoch", "epochs")
    }
    assert {name: sorted({method for method, _ in found}) for name, found in errors.items()} == {
        "group": ["pld"],
        "truncated": ["pld"],
        "fixed": [],
        "replaced": ["rdp"],
        "epoch": [],
        "epochs": [],
    }
    for name in ("group", "truncated"):
        assert len(errors[name]) >= 2
        assert all(0.0 <= error < 0.05 for error in errors[name].values())
    # the classes themselves, and ours
    from pyengine.interop.dp_accounting import PyengineAccountant

    relations = module.NeighboringRelation
    schemes = ["group", "truncated", "fixed", "replaced"]
    asked = assert_sound(module.pld.PLDAccountant, settings=schemes)
    assert {result.case.setting.name for result in asked} == {"group", "truncated"}
    asked = assert_sound(PyengineAccountant, settings=schemes)
    assert {result.case.setting.name for result in asked} == {"group", "truncated", "fixed"}
    asked = assert_sound(lambda: PyengineAccountant(relations.REPLACE_ONE), settings=schemes)
    assert {result.case.setting.name for result in asked} == {"replaced"}


def test_other_mechanisms_of_dp_accounting() -> None:
    """Its errors on runs of all records: two counts that are forgotten, the others are safe."""
    module = pytest.importorskip("dp_accounting")
    later = hasattr(module.dp_event, "ExponentialMechanismDpEvent")  # its main branch
    ways = {
        "laplace": {"pld", "rdp"},
        "geometric": {"pld"},
        "integers": {"rdp"} if later else set(),
        "coins": {"pld", "rdp"},
        "tree": {"rdp"},
        "choices": {"pld", "rdp"} if later else set(),
        "best": {"rdp"},
        "curve": {"rdp"},
    }
    for name, expected in ways.items():
        errors = answers(DpAccounting(), name)
        assert {method for method, _ in errors} == expected, name
        for (method, _), error in errors.items():
            forgotten = (name, method) in {("coins", "pld"), ("choices", "rdp")}
            assert error < -0.8 if forgotten else error > -1e-9, (name, method)


def test_renyi_accountant_takes_noise_unscaled_without_replacement() -> None:
    """Noise of one clipping norm is half of what it means where one record replaces another."""
    module = pytest.importorskip("dp_accounting")
    errors = answers(DpAccounting(), "replaced")
    assert len(errors) == 3
    assert all(error < -0.5 for error in errors.values())
    relation = module.NeighboringRelation.REPLACE_ONE
    with pytest.raises(AssertionError, match=r"substitution: .* below"):
        assert_sound(lambda: module.rdp.RdpAccountant(neighboring_relation=relation))
    scaled = module.rdp.RdpAccountant(neighboring_relation=relation)
    event = module.SampledWithoutReplacementDpEvent(128, 16, module.GaussianDpEvent(0.5))
    scaled.compose(event)
    for case in load():
        if case.setting.name == "replaced" and case.question == "epsilon":
            assert scaled.get_epsilon(float(case.at)) > float(case.truth)
