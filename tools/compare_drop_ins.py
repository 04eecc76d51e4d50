"""Times and answers of our drop-in accountants, beside those that they replace.

Needs the extra ``peers``: ``make .venv-peers/peers.stamp``, then ``.venv-peers/bin/python
tools/compare_drop_ins.py``; it takes a minute. Times are processor times with empty caches. Our
answers are the safe ends of proven bounds.
"""

from __future__ import annotations

import logging
import statistics
import time
import warnings
from collections.abc import Callable, Iterator
from typing import Any

from pyengine.caches import clear_cache
from pyengine.interop import HistoryAccountant, prv_accountant
from pyengine.interop.dp_accounting import PyengineAccountant

NOISE, RATE, STEPS, DELTA, TARGET = 1.0, 0.01, 1000, 1e-5, 2.0

Row = tuple[str, str, Callable[[], Any]]


def opacus() -> Iterator[Row]:
    """``get_epsilon`` of a history, and Opacus' own search."""
    from opacus.accountants import create_accountant
    from opacus.accountants.utils import get_noise_multiplier

    import pyengine.interop.opacus  # noqa: F401 - registers the accountant

    def epsilon(word: str) -> float:
        made = create_accountant(word)
        made.history = [(NOISE, RATE, STEPS)]
        return float(made.get_epsilon(delta=DELTA))

    def noise(word: str) -> float:
        target = {"target_epsilon": TARGET, "target_delta": DELTA}
        return get_noise_multiplier(**target, sample_rate=RATE, steps=STEPS, accountant=word)

    for word in ("rdp", "prv", "pyengine"):
        yield "Opacus get_epsilon", word, lambda word=word: epsilon(word)
    for word in ("rdp", "prv", "pyengine"):
        yield "Opacus get_noise_multiplier", word, lambda word=word: noise(word)


def dp_accounting() -> Iterator[Row]:
    """``get_epsilon`` of an event, and its calibration."""
    import dp_accounting as host

    makers = {
        "rdp": host.rdp.RdpAccountant,
        "pld": host.pld.PLDAccountant,
        "pyengine": PyengineAccountant,
    }

    def event(noise: float) -> Any:
        step = host.PoissonSampledDpEvent(RATE, host.GaussianDpEvent(noise))
        return host.SelfComposedDpEvent(step, STEPS)

    for word, make in makers.items():
        yield (
            "dp_accounting get_epsilon",
            word,
            lambda make=make: make().compose(event(NOISE)).get_epsilon(DELTA),
        )
    for word, make in makers.items():
        yield (
            "dp_accounting calibrate_dp_mechanism",
            word,
            lambda make=make: host.calibrate_dp_mechanism(make, event, TARGET, DELTA),
        )


def prv() -> Iterator[Row]:
    """Upper bounds of ``compute_epsilon``, and its search."""
    from prv_accountant import Accountant, dpsgd

    def epsilon(make: Any) -> float:
        made = make(NOISE, RATE, delta=DELTA, max_compositions=STEPS, eps_error=0.1)
        return float(made.compute_epsilon(num_compositions=STEPS)[2])

    for word, make in (("its own", Accountant), ("pyengine", prv_accountant.Accountant)):
        yield "prv_accountant compute_epsilon", word, lambda make=make: epsilon(make)
    for word, module in (("its own", dpsgd), ("pyengine", prv_accountant)):
        yield (
            "prv_accountant find_noise_multiplier",
            word,
            lambda module=module: module.find_noise_multiplier(RATE, STEPS, TARGET, DELTA),
        )


def riskcal() -> Iterator[Row]:
    """ε and advantage of a history, and the black-box search."""
    from riskcal.accountants import CTDAccountant
    from riskcal.calibration.blackbox import find_noise_multiplier_for_epsilon_delta

    makers = (("its own", CTDAccountant), ("pyengine", HistoryAccountant))

    def run(make: Any) -> Any:
        made = make()
        made.history = [(NOISE, RATE, STEPS)]
        return made

    for word, make in makers:
        yield "riskcal get_epsilon", word, lambda make=make: run(make).get_epsilon(delta=DELTA)
    for word, make in makers:
        yield "riskcal get_advantage", word, lambda make=make: run(make).get_advantage()
    for word, make in makers:
        words = {"sample_rate": RATE, "num_steps": STEPS, "epsilon": TARGET, "delta": DELTA}
        yield (
            "riskcal find_noise_multiplier",
            word,
            lambda make=make, words=words: find_noise_multiplier_for_epsilon_delta(make, **words),
        )


def measured(action: Callable[[], Any]) -> tuple[float, float]:
    """Answer, and median processor time of three runs, or of as many as fit in a second."""
    times: list[float] = []
    while len(times) < 3 and sum(times) < 5.0:
        clear_cache()
        start = time.process_time()
        answer = action()
        times.append(time.process_time() - start)
    return float(answer), statistics.median(times)


def main() -> None:
    logging.disable(logging.WARNING)  # of the hosts
    warnings.simplefilter("ignore")
    print(
        f"DP-SGD, noise {NOISE:g}, rate {RATE:g}, {STEPS:,} steps, δ = {DELTA:g}; noise for ε = "
        f"{TARGET:g}\n"
    )
    print("| question | accountant | answer | time |\n|---|---|---|---|")
    for host in (opacus, dp_accounting, prv, riskcal):
        for question, word, action in host():
            answer, seconds = measured(action)
            print(f"| {question} | {word} | {answer:.6f} | {1e3 * seconds:,.1f} ms |", flush=True)


if __name__ == "__main__":
    main()
