"""Running accountants, each in a process of its own with a time limit."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import asdict, dataclass
from decimal import Decimal

from pyengine.accounting.conformance.grid import Case
from pyengine.accounting.conformance.process import NoAnswerError, Worker

__all__ = ["UNSAFE", "Result", "run"]

UNSAFE = 1e-9  # relative error on the unsafe side that counts as rounding


@dataclass(frozen=True)
class Result:
    """An answer together with the truth.

    Parameters
    ----------
    accountant, version, method : str
        The accountant, the version of its distribution, and its method.
    case : Case
        The question and its truth.
    value : float or None
        The answer; None if there is none.
    seconds : float or None
        Processor time of the answer without cached results, imports excluded.
    message : str
        Why there is no answer; otherwise empty.
    supported : bool
        Whether the accountant answers for the setting; if not, it is not asked.
    """

    accountant: str
    version: str
    method: str
    case: Case
    value: float | None
    seconds: float | None
    message: str
    supported: bool = True

    @property
    def error(self) -> float | None:
        """Relative error, negative if the answer lies below the truth; None without a number."""
        return self._beside(self.case.truth)

    @property
    def shortfall(self) -> float | None:
        """As `error`, but relative to the value attained on some data sets."""
        return self._beside(self.case.attained or self.case.truth)

    def _beside(self, truth: str) -> float | None:
        if self.value is None or self.value != self.value:
            return None
        if self.value in (float("inf"), float("-inf")):
            return self.value
        return float(Decimal(self.value) / Decimal(truth) - 1)

    @property
    def unsafe(self) -> bool:
        """Whether an upper bound is NaN or lies below the value attained on some data sets."""
        if self.value is None:
            return False
        return self.shortfall is None or self.shortfall < -UNSAFE


def run(
    names: Iterable[str],
    cases: list[Case],
    *,
    limit: float = 60.0,
    progress: Callable[[int], None] = lambda _: None,
) -> tuple[list[Result], dict[str, str]]:
    """Ask accountants all questions that they can answer.

    Parameters
    ----------
    names : iterable of str
        Accountants, as in `pyengine.conformance.adapters.find`.
    cases : list of Case
        The questions.
    limit : float
        Seconds allowed for one answer; after that the process is ended and a new one started.
    progress : callable
        Called with 1 after each answer.

    Returns
    -------
    list of Result, dict of str to str
        The answers, without a value where a setting is not supported; and, by name, why an
        accountant did not take part.
    """
    results: list[Result] = []
    absent: dict[str, str] = {}
    for name in names:
        try:
            worker = Worker(name)
        except NoAnswerError as error:
            absent[name] = str(error)
            continue
        try:
            if "error" in worker.about:
                absent[name] = worker.about["error"]
                continue
            for method, questions in worker.about["methods"].items():
                for case in cases:
                    if case.question in questions:
                        worker, result = _one(worker, name, method, case, limit)
                        results.append(result)
                        progress(1)
        finally:
            worker.close()
    return results, absent


def _one(worker: Worker, name: str, method: str, case: Case, limit: float) -> tuple[Worker, Result]:
    version = worker.about["version"]
    request = {
        "method": method,
        "setting": asdict(case.setting),
        "question": case.question,
        "at": float(case.at),
    }
    try:
        answer = worker.ask(request, limit)
    except NoAnswerError as error:
        answer = {"error": str(error)}
        worker = Worker(name)
    return worker, Result(
        name,
        version,
        method,
        case,
        answer.get("value"),
        answer.get("seconds"),
        answer.get("error", ""),
        answer.get("supported", True),
    )
