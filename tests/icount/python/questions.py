"""Whole questions, with names that every commit has: asv asks old ones, too."""

import contextlib
import runpy
from pathlib import Path

ROOT = Path(__file__).parents[3]
SIX = runpy.run_path(str(ROOT / "asv_bench" / "benchmarks" / "workflows.py"))["WORKFLOWS"]


def _nothing():
    pass


def _import():
    import pyengine  # noqa: F401


def _first_question():
    import pyengine as pe

    pe.gamma_bound(pe.dp_sgd(0.8, 0.001, 10_000), 1e-5)


def stages():
    """Yield questions to an interpreter with NumPy, to a fresh import, and to a used package."""
    import cffi  # noqa: F401
    import numpy as np

    yield {"import": (_nothing, _import)}

    import pyengine as pe

    with contextlib.suppress(ImportError):  # of a commit before there was that module
        try:
            from pyengine.numerics import libm
        except ImportError:  # a commit before there were rooms
            from pyengine import _libm as libm

        # valgrind's long doubles have 53 bits, with which nothing can be proven and all is refused
        libm._Here.refusal = None

    yield {"first_question": (_nothing, _first_question)}

    # Modules that questions import on demand; the mechanisms differ from those below.
    pe.gamma_bound(pe.dp_sgd(1.8, 0.002, 5000), 1e-4)
    pe.gamma_bound(pe.dp_sgd(1.8, 0.002, 5000), 1e-4, bounds=True)
    pe.gamma_bound(pe.dp_sgd(1.8, 0.02, 2), 1e-4)
    pe.gamma_bound(pe.dp_sgd(1.8, 0.02, 1), 1e-4)
    pe.delta(pe.RandomizedResponse(0.9).composed(20), 1.0)
    pe.delta(pe.LaplaceMechanism(2.0).composed(2), 0.25)
    pe.delta(pe.LaplaceMechanism(2.0).poisson_sampled(0.3).composed(3), 0.25, tolerance=1e-2)
    pe.trade_off(pe.GaussianMechanism(1.2), 0.3, threat_model="relaxed")
    pe.calibrate(lambda s: pe.dp_sgd(s, 0.02, 20), pe.targets.EpsilonDelta(1.5, 1e-4))

    try:
        from pyengine.caches import clear_cache as cold
    except ImportError:  # a commit before there was that module
        from pyengine.engines.select import clear_cache as cold

    cold()
    kappas = np.geomspace(1e-9, 0.5, 1000)
    epsilons = np.linspace(0.5, 5.0, 200)  # for some of them no line has a row
    floats = [1e-4 * (1.0 + i / 100) for i in range(100)]
    kept = pe.dp_sgd(1.0, 0.01, 1000)
    laplace = pe.LaplaceMechanism(1.0).poisson_sampled(0.1).composed(100)
    exact = pe.LaplaceMechanism(2.0).composed(100)
    sums = pe.LaplaceMechanism(1.0).composed(10), pe.RandomizedResponse(0.7).composed(10)
    kinds = pe.compose(*(pe.dp_sgd(2.0 + i / 100, 0.05, 1) for i in range(200)))
    mixed = pe.compose(
        pe.dp_sgd(1.0, 1 / 64, 500),
        pe.LaplaceMechanism(3.0).composed(5),
        pe.RandomizedResponse(0.625).composed(2),
    )
    target = pe.targets.EpsilonDelta(1.0, 1e-6)
    gauss = pe.GaussianMechanism(1.0)

    def asked():
        cold()
        pe.gamma_bound(kept, 1e-4)

    def proven():
        cold()
        pe.gamma_bound(kept, 1e-4, bounds=True)

    def summed():
        cold()
        for run in sums:
            pe.epsilon(run, 1e-4)

    def ask(function, *arguments, **options):
        return cold, lambda: function(*arguments, **options)

    yield {
        **{
            f"gamma_{name}": ask(pe.gamma_bound, pe.dp_sgd(*six), 1e-5) for name, six in SIX.items()
        },
        **{
            f"bounds_{name}": ask(pe.gamma_bound, pe.dp_sgd(*SIX[name]), 1e-5, bounds=True)
            for name in ("cifar10_resnet9", "lebeda_table1")
        },
        **{
            f"made_{name}": (cold, lambda six=SIX[name]: pe.gamma_bound(pe.dp_sgd(*six), 1e-5))
            for name in ("cifar10_resnet9", "full_batch")
        },
        "gamma_few_steps": ask(pe.gamma_bound, pe.dp_sgd(1.0, 0.01, 2), 1e-3),
        "deltas_few_steps": ask(pe.delta, pe.dp_sgd(0.8, 0.01, 3), epsilons, adjacency="remove"),
        "gamma_200_kinds": ask(pe.gamma_bound, kinds, 1e-3),
        "gamma_1000_kappas": ask(pe.gamma_bound, kept, kappas),
        "epsilon": ask(pe.epsilon, kept, 1e-6),
        "delta": ask(pe.delta, kept, 1.0),
        "kept_100_gammas": (asked, lambda: [pe.gamma_bound(kept, x) for x in floats]),
        "kept_100_deltas": (asked, lambda: [pe.delta(kept, x) for x in floats]),
        "kept_100_bounds": (proven, lambda: [pe.gamma_bound(kept, x, bounds=True) for x in floats]),
        "kept_exact_epsilons": (
            summed,
            lambda: [pe.epsilon(run, x) for run in sums for x in floats],
        ),
        "kept_exact_gammas": (
            summed,
            lambda: [pe.gamma_bound(run, x) for run in sums for x in floats],
        ),
        "calibrate": ask(pe.calibrate, lambda s: pe.dp_sgd(s, 0.01, 1000), target),
        "bracket_sampled_laplace": ask(pe.delta, laplace, 1.0, bounds=True),
        "exact_laplace": ask(pe.delta, exact, 0.5),
        "gamma_mixed": ask(pe.gamma_bound, mixed, 1e-3, bounds=True),
        "relaxed_gaussian": ask(pe.trade_off, gauss, 0.1, threat_model="relaxed"),
    }
