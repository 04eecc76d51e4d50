"""A test that an accountant does not promise more privacy than a run has."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import Any

from pyengine.accounting.conformance.adapters import Adapter, find, supports
from pyengine.accounting.conformance.adapters.classes import adapted
from pyengine.accounting.conformance.grid import Case, load
from pyengine.accounting.conformance.run import UNSAFE, Result

__all__ = ["assert_sound", "chosen", "judged", "verdict"]


def assert_sound(
    accountant: Any,
    *,
    settings: Collection[str] | None = None,
    refusals: type[Exception] | tuple[type[Exception], ...] = (),
    tolerance: float = UNSAFE,
) -> list[Result]:
    """Fail if an accountant promises more privacy than a run has.

    Parameters
    ----------
    accountant : object
        An adapter (`Adapter`), its class, its name or ``"module:Class"``; or a callable without
        arguments, such as a class, that makes an accountant with the methods of those of Opacus and
        riskcal (``step``, ``history``, ``get_epsilon``, and optionally ``get_delta``, ``get_beta``
        and ``get_gamma``) or of dp_accounting (``compose``, ``get_epsilon`` and ``get_delta``).
    settings : collection of str, optional
        Names of the runs to test (docs, Conformance); all that the accountant supports if not
        given.
    refusals : type of exception, or tuple of them
        Exceptions by which the accountant refuses an answer; any other exception is a failure.
    tolerance : float
        Largest relative error on the unsafe side that still passes, >= 0.

    Returns
    -------
    list of Result
        All answers; those that were refused have no value.

    Raises
    ------
    AssertionError
        If an upper bound is NaN, or lies below the value attained on some data sets by more than
        the tolerance; if an exception other than a refusal was raised; or if no question was
        answered.  The message lists all failures.
    ValueError
        For an object that is not an accountant, or an unknown setting.

    Notes
    -----
    The true values are known to 16 digits, those of one setting to 12 (docs, Conformance).  The
    accountant runs in this process, without a time limit.

    Examples
    --------
    In your own tests: ``assert_sound(MyAccountant)``.

    >>> from pyengine.accounting.conformance import assert_sound
    >>> from pyengine.accounting.interop import HistoryAccountant
    >>> results = assert_sound(HistoryAccountant, settings=["b"])
    >>> len(results), all(result.error < 2e-4 for result in results)
    (13, True)
    """
    adapter = find(accountant) if isinstance(accountant, str) else adapted(accountant)
    results, wrong = [], []
    for method, case in chosen(adapter, settings):
        try:
            result = judged(adapter, method, case, refusals)
        except Exception as error:  # reported at the end
            wrong.append(f"{_place(method, case)} raises {type(error).__name__}: {error}")
            continue
        results.append(result)
        line = verdict(result, tolerance)
        if line:
            wrong.append(line)
    if not wrong and all(result.value is None for result in results):
        wrong.append("no question was answered")
    if wrong:  # no assert statement: -O leaves it out and pytest rewrites it
        raise AssertionError("\n".join([f"{adapter.distribution}:", *wrong]))
    return results


def chosen(adapter: Adapter, settings: Collection[str] | None) -> Iterator[tuple[str, Case]]:
    """All pairs of a method and a case that it answers, for the named settings or for all."""
    cases = load()
    known = dict.fromkeys(case.setting.name for case in cases)
    for name in settings or ():
        if name not in known:
            raise ValueError(f"settings must be among {', '.join(known)}, got {name!r}")
    runs = dict.fromkeys(case.setting for case in cases)
    for method, questions in adapter.methods.items():
        asked = {run for run in runs if not settings or run.name in settings}
        answered = {run for run in asked if supports(adapter, method, run)}
        for case in cases:
            if case.question in questions and case.setting in answered:
                yield method, case


def judged(
    adapter: Adapter,
    method: str,
    case: Case,
    refusals: type[Exception] | tuple[type[Exception], ...] = (),
) -> Result:
    """Ask one question in this process; exceptions other than refusals are passed on."""
    value, message = None, ""
    try:
        ask = getattr(adapter, "answer_again", adapter.answer)
        value = float(ask(method, case.setting, case.question, float(case.at)))
    except refusals as error:
        message = f"refused, {type(error).__name__}: {error}"
    return Result(adapter.distribution, "", method, case, value, None, message)


def verdict(result: Result, tolerance: float = UNSAFE) -> str:
    """Return in one line what is wrong with an answer; "" if it is sound.

    Parameters
    ----------
    result : Result
        The answer.
    tolerance : float
        Largest relative error on the unsafe side that still passes.
    """
    if result.value is None:
        return ""
    error, case = result.shortfall, result.case
    if error is not None and error >= -tolerance:
        return ""
    by = "is no number" if error is None else f"is {-100 * error:.3g} % below"
    return f"{_place(result.method, case)}: {result.value:.10g} {by}, {case.attained or case.truth}"


def _place(method: str, case: Case) -> str:
    return f"{method}, {case.question} at {case.at}, {case.setting.words}"
