"""A child process that asks one question after another and reports its progress."""

from __future__ import annotations

import faulthandler
import os
import resource
import time
import traceback
import warnings
from collections.abc import Callable
from multiprocessing.connection import Connection
from typing import Any

__all__ = ["ask", "run"]

GIB = 1 << 30
CHEAP = ("sums", "closed form")  # truths that are worth their time if few answers are in doubt


def _limit(gibibytes: float) -> None:
    """Limit the memory beyond what is mapped now."""
    with open("/proc/self/statm", encoding="ascii") as file:
        mapped = int(file.read().split()[0]) * os.sysconf("SC_PAGE_SIZE")
    most = mapped + int(gibibytes * GIB)
    resource.setrlimit(resource.RLIMIT_AS, (most, most))


def run(connection: Connection, seed: str, memory: float) -> None:
    """Serve indices until the connection closes; each gives one message for each phase."""
    import scipy.stats  # noqa: F401 - mapped before the limit is set

    import pyengine.reference  # noqa: F401

    faulthandler.enable()
    resource.setrlimit(resource.RLIMIT_CORE, (0, 0))
    _limit(memory)
    while True:
        try:
            index = connection.recv()
        except EOFError:
            return
        for message in ask(seed, index):
            connection.send(message)


def ask(seed: str, index: int) -> Any:
    """Pose a question, ask it and judge the answers; yields ``(phase, what is known)``."""
    from campaign.find import argument_of, delta_at, truth_of
    from campaign.judge import judge
    from campaign.ordinary import ORDINARY
    from campaign.pose import pose
    from campaign.steps import source_of
    from campaign.truth.questions import NoTruthError

    record: dict[str, Any] = {"index": index}
    try:
        question = pose(seed, index)
        record.update(question)
        argument, c = argument_of(question)
        record["at"] = argument.hex()
    except (NoTruthError, ArithmeticError, MemoryError, ValueError) as error:
        yield "done", {**record, "verdict": "no truth", "why": _words(error)}
        return
    yield "posed", dict(record)
    start = time.process_time()
    answers, failure = _answers(question, argument)
    record["seconds"] = round(time.process_time() - start, 4)
    if failure is not None:
        record.update(failure)
        yield "done", record
        return
    record["answers"] = [[x.hex() for x in answer] for answer in answers]
    yield "answered", dict(record)
    if seed.startswith(ORDINARY) and not _is_cheap(question["steps"], source_of):
        yield "done", {**record, "verdict": "no truth", "why": "it would cost too much"}
        return
    start = time.process_time()
    try:
        truth = truth_of(question, argument, c)

        def judged(question: dict[str, Any]) -> dict[str, Any]:
            return judge(
                question, argument, answers, truth.value, lambda value: delta_at(question, value)
            )

        found = judged(question)
        if found["wrong"]:  # the promise depends on the engine that answered
            found = judged({**question, "engine": _engine(question, argument)})
    except (NoTruthError, ArithmeticError, MemoryError) as error:
        yield "done", {**record, "verdict": "no truth", "why": _words(error)}
        return
    record["truth_seconds"] = round(time.process_time() - start, 4)
    record["source"] = truth.source
    record["truth"] = "inf" if truth.value is None else truth.value.str(25, radius=False)
    record["error"] = found["error"]
    if found["wrong"]:
        record["wrong"] = found["wrong"]
    if found["outside"] is not None:
        record["outside"] = found["outside"]
    if found["wrong"] or found["outside"] is not None:
        record["engine"] = _engine(question, argument)
    record["verdict"] = (
        "wrong" if found["wrong"] else "outside" if found["outside"] is not None else "right"
    )
    yield "done", record


def _is_cheap(steps: list[dict[str, Any]], source_of: Callable[[Any], str]) -> bool:
    """Whether the truth takes no more time than many answers."""
    wide = any(step["kind"] == "discrete_gaussian" and step["steps"] > 3 for step in steps)
    return source_of(steps) in CHEAP and not wide


def _words(error: BaseException) -> str:
    return f"{type(error).__name__}: {error}"[:400]


def _answers(
    question: dict[str, Any], argument: float
) -> tuple[list[list[float]], dict[str, Any] | None]:
    """All answers, each as (lower, value, upper), or the exception instead."""
    import numpy as np

    import pyengine as pe
    from campaign.steps import mechanism_of
    from pyengine.errors import NotDefinedError

    function = getattr(pe, question["question"])
    keywords = {"adjacency": question["adjacency"], "method": question["method"]}
    answers: list[list[float]] = []
    with warnings.catch_warnings(record=True) as heard:
        warnings.simplefilter("always")
        try:
            mechanism = mechanism_of(question["steps"])
            if question["form"] == "scalar":
                answers = [list(_bounded(function, mechanism, argument, keywords))]
            elif question["form"] == "both":
                value = function(mechanism, argument, **keywords)
                bounds = _bounded(function, mechanism, argument, keywords)
                answers = [[0.0, value, float("inf")], list(bounds)]
            else:
                array = np.array([argument, 0.5, argument])
                value = function(mechanism, array, **keywords)
                bounds = _bounded(function, mechanism, array, keywords)
                for i in (0, 2):
                    answers.append([0.0, float(value[i]), float("inf")])
                    answers.append([float(part[i]) for part in bounds])
        except (pe.AccuracyError, NotDefinedError) as error:
            # an engine that is named may decline the question
            verdict = "declined"
            if question["method"] == "auto":
                verdict = "refused" if isinstance(error, pe.AccuracyError) else "crashed"
            return [], {"verdict": verdict, "why": _words(error)}
        except MemoryError as error:
            return [], {"verdict": "memory", "why": _words(error)}
        except Exception as error:
            where = traceback.extract_tb(error.__traceback__)[-1]
            place = f" at {os.path.basename(where.filename)}:{where.lineno}"
            return [], {"verdict": "crashed", "why": _words(error) + place}
    answers = [[float(x) for x in answer] for answer in answers]
    if heard and all(issubclass(w.category, pe.ApproximationWarning) for w in heard):
        # an approximation that reports when it is outside its range
        return [], {"verdict": "declined", "why": str(heard[0].message)[:400]}
    if heard:
        return answers, {"verdict": "crashed", "why": f"warned: {heard[0].message}"[:400]}
    return answers, None


def _bounded(
    function: Callable[..., Any], mechanism: Any, argument: Any, keywords: dict[str, Any]
) -> Any:
    """Proven bounds, or estimated ones where no engine proves any."""
    import pyengine as pe

    try:
        return function(mechanism, argument, bounds=True, **keywords)
    except pe.AccuracyError:
        return function(mechanism, argument, bounds="estimated", **keywords)


def _engine(question: dict[str, Any], argument: float) -> str:
    """Name of the engine behind an answer, by which its bounds are said to be proven or not."""
    from campaign.steps import mechanism_of
    from pyengine.api import answers

    try:
        _, engines, _ = answers(
            question["question"],
            mechanism_of(question["steps"]),
            [argument],
            adjacency=question["adjacency"],
            method=question["method"],
        )
    except Exception as error:
        return _words(error)
    return engines[0]
