"""``pyengine gamma|tradeoff|delta|epsilon``: the four questions."""

from __future__ import annotations

import argparse
import math
from collections.abc import Callable
from decimal import ROUND_CEILING, ROUND_FLOOR, ROUND_HALF_EVEN
from typing import Any, NamedTuple

from pyengine._support import checks
from pyengine._support.certainty import PROVEN, certainty
from pyengine._support.decimals import number
from pyengine._support.extras import needed
from pyengine.api import ESTIMATED, QUESTIONS, answers
from pyengine.api.shuffled import known_leak
from pyengine.cli import grammar
from pyengine.cli.errors import CommandError, read_count, user_errors
from pyengine.cli.numbers import read_exact, read_numbers
from pyengine.cli.output import decimal, print_json, print_label, print_table, remark, remarks_on
from pyengine.cli.parsers import Commands, command, group, option, switch
from pyengine.cli.statement import as_texts
from pyengine.engines.registry import ADJACENCIES, METHODS, THREAT_MODELS
from pyengine.errors import AccuracyError
from pyengine.mechanisms import Mechanism, describe, label_of
from pyengine.workbench.runs.files import RunFile
from pyengine.workbench.runs.grammar import NamedRun

__all__ = ["register"]

SCHEMA = "pyengine-answers/1"
ROW = ("value", "lower", "upper", "engine", "certainty")  # keys of an answer
DEFAULT_DIGITS = 10
DOUBLE = 15  # decimal digits of a double
APART = 2e-4  # relative width of bounds above which a value may be only one of its bounds
BESIDE = 1e-4  # distance from a bound, in widths, within which a value counts as that bound
MOST_DIGITS = 200


class Command(NamedTuple):
    """One question as a command."""

    name: str
    question: str  # name of the function in pyengine.api
    adjacency: str
    symbol: str
    argument: str  # symbol of the argument
    summary: str
    text: str
    examples: tuple[str, ...]


COMMANDS = (
    Command(
        "gamma",
        "gamma_bound",
        "add",
        "γ",
        "κ",
        "reconstruction robustness γ(κ)",
        "The largest success probability γ of a reconstruction attack that succeeds with\n"
        "probability κ without the release.",
        (
            "pyengine gamma --noise 0.8 --p 0.001 --steps 10000 --kappa 1e-5 1e-3",
            "pyengine gamma --noise 2.5 --p 0.0128 --steps 72000 --kappa 1e-7:0.1:7 --bounds",
            "pyengine gamma run.toml --kappa 1e-3",
        ),
    ),
    Command(
        "tradeoff",
        "trade_off",
        "add_remove",
        "β",
        "α",
        "trade-off function β(α)",
        "The smallest type-II error β of a level-α test that a record took part.",
        (
            "pyengine tradeoff --noise 1 --p 0.01 --steps 1000 --alpha 0.01 0.1",
            "pyengine tradeoff --noise 1 --p 0.01 --steps 1000 --alpha 0.1 --adjacency add --json",
        ),
    ),
    Command(
        "delta",
        "delta",
        "add_remove",
        "δ",
        "ε",
        "privacy profile δ(ε)",
        "The smallest δ for which the mechanism is (ε, δ)-DP.",
        (
            "pyengine delta --noise 0.8 --p 0.001 --steps 10000 --epsilon 1 4 8",
            "pyengine delta --phase noise=2,steps=9 --phase noise=1,p=0.1,steps=90 --epsilon 9",
        ),
    ),
    Command(
        "epsilon",
        "epsilon",
        "add_remove",
        "ε",
        "δ",
        "smallest ε at a given δ",
        "The smallest ε for which the mechanism is (ε, δ)-DP.",
        (
            "pyengine epsilon --noise 1 --p 0.01 --steps 1000 --delta 1e-6",
            'pyengine epsilon --noise "0.8 1" --p 256/60000 --epochs 10:100:4 --delta 1e-5',
            "pyengine epsilon --noise 1 --p 0.01 --steps 1000 --delta 1e-12:1e-5:8 --digits 6",
        ),
    ),
)
ADJACENCY = "which data set is the null hypothesis"
SHOWN = group(
    "what to print",
    option(
        "--bounds",
        "WORD",
        f"print lower and upper bounds: {PROVEN} (default; other answers are refused), or "
        f"{ESTIMATED} (of the fastest engine; each answer says whether they are proven)",
        nargs="?",
        const=PROVEN,
        choices=(PROVEN, ESTIMATED),
    ),
    option(
        "--digits",
        "N",
        f"significant digits ({DEFAULT_DIGITS}), fewer where the bounds are wide; more than "
        f"{DOUBLE} take arbitrary precision",
        default=str(DEFAULT_DIGITS),
    ),
    switch("--verbose", "name the engines, too"),
    switch("--json", "JSON instead of a table"),
)
NUMBERS = """\
values: numbers, or FROM:TO:COUNT for a range (evenly spaced in the logarithm; ε evenly itself). If
none are given, those of the run file's table [{}]"""


def register(commands: Commands) -> None:
    """Add the commands to the parser."""
    for asked in COMMANDS:
        _register(commands, asked)


def _register(commands: Commands, asked: Command) -> None:
    flag = f"--{QUESTIONS[asked.question].argument}"
    examples = "\n".join(f"  {example}" for example in asked.examples)
    epilog = f"examples:\n{examples}\n\n{grammar.HELP}\n\n{NUMBERS.format(asked.question)}"
    add = command(
        asked.name,
        asked.summary,
        asked.text,
        epilog,
        run,
        option(flag, "X", asked.argument, dest="values", nargs="+"),
        grammar.MECHANISM,
        grammar.NAMED_RUNS,
        group(
            "how to answer",
            *(
                option(flag, "WORD", f"{text}: {', '.join(words)} ({default})", choices=words)
                for flag, words, default, text in (
                    ("--adjacency", ADJACENCIES, asked.adjacency, ADJACENCY),
                    ("--method", METHODS, "auto", "engine"),
                    ("--threat-model", THREAT_MODELS, "dp", "what the adversary knows"),
                )
            ),
        ),
        SHOWN,
    )
    parser = add(commands)
    parser.set_defaults(asked=asked)
    parser.needed = (flag,)


class Answered(NamedTuple):
    """A run with the answers at all values of the argument."""

    run: NamedRun
    rows: list[dict[str, Any]]
    leaks: bool


def run(arguments: argparse.Namespace) -> int:
    """Answer a question and print the answers; returns 1 if any was refused."""
    asked: Command = arguments.asked
    question = QUESTIONS[asked.question]
    digits = read_count("--digits", arguments.digits, MOST_DIGITS)
    files = grammar.run_files(arguments)
    given = _take_words(arguments, files[0])
    runs = grammar.runs_of(arguments, files)
    if not runs:
        raise CommandError(f"{files[0].source}: no run")
    texts = read_numbers(question.argument, given, logarithmic=question.upper == 1.0)
    name, upper = question.argument, question.upper
    values = [checks.as_double(read_exact(name, text, upper)) for text in texts]
    found = [_found(each, arguments, texts, values, digits) for each in runs]
    rows = [row for each in found for row in each.rows]
    remarks = _remarks(values, rows, files) if asked.question == "epsilon" else []
    if arguments.json:
        answers = [_as_object(each, arguments, values) for each in found]
        content = answers[0] if len(answers) == 1 else {"runs": answers}
        head = {"schema": SCHEMA, "question": asked.question, "metric": asked.question}
        print_json({**head, **content, "remarks": remarks})
    else:
        _print(asked, found, arguments, texts, digits)
    remark(remarks)
    return 1 if any(row["value"] is None for row in rows) else 0


def _take_words(arguments: argparse.Namespace, file: RunFile) -> list[str]:
    """Set missing flags from the run file or to their defaults; return the argument's values."""
    asked: Command = arguments.asked
    said = file.section(asked.question)
    option = QUESTIONS[asked.question].argument
    words = (("adjacency", asked.adjacency, ADJACENCIES), ("threat_model", "dp", THREAT_MODELS))
    for name, default, allowed in words:
        if getattr(arguments, name) is None:
            word = said.get(name, default)
            if isinstance(word, list) and len(word) == 1:
                (word,) = word
            try:
                setattr(arguments, name, checks.choice(name, word, allowed))
            except ValueError as error:
                raise CommandError(f"{file.source}: [{asked.question}]: {error}") from None
    arguments.method = arguments.method or "auto"
    if arguments.values is not None:
        return list(arguments.values)
    if option not in said:
        raise CommandError(
            f"required: --{option}, or {option} in a table [{asked.question}] of a run file"
        )
    return as_texts(asked.question, option, said[option])


def _found(
    run: NamedRun, arguments: argparse.Namespace, texts: list[str], values: list[float], digits: int
) -> Answered:
    """Answers for one run."""
    if digits > DOUBLE:
        rows = _precisely(run.mechanism, arguments, texts, digits)
    else:
        rows = _answered(run.mechanism, arguments, texts, values, digits)
    if arguments.bounds == PROVEN:
        rows = [_held_to_proofs(row) for row in rows]
    if arguments.threat_model != "dp":
        # a relaxed guarantee is always shown together with that of differential privacy
        for row, worst in zip(rows, _under_dp(run.mechanism, arguments, values), strict=True):
            row["dp"] = worst["value"]
    leaks = _known_leak(run.mechanism, arguments, values)
    for row, least in zip(rows, leaks, strict=False):
        row["upper" if arguments.asked.question == "trade_off" else "lower"] = least
    return Answered(run, rows, bool(leaks))


def _as_object(
    found: Answered, arguments: argparse.Namespace, values: list[float]
) -> dict[str, Any]:
    label = label_of(found.run.mechanism, arguments.adjacency)
    argument = QUESTIONS[arguments.asked.question].argument
    return {
        **({"run": found.run.name} if found.run.name else {}),
        "mechanism": describe(found.run.mechanism),
        "label": [each._asdict() for each in label],
        "adjacency": arguments.adjacency,
        "threat_model": arguments.threat_model,
        "rows": [
            {argument: value, "at": value, **row}
            for value, row in zip(values, found.rows, strict=True)
        ],
    }


def _remarks(values: list[float], rows: list[dict[str, Any]], files: list[RunFile]) -> list[str]:
    """Remarks on the given δ and the computed ε."""
    found = [float(row["value"]) for row in rows if row["value"] is not None]
    records = max(filter(None, map(grammar.records_of, files)), default=None)
    return remarks_on(deltas=values, epsilons=found, records=records)


def _quickly(
    mechanism: Mechanism, arguments: argparse.Namespace, values: list[float]
) -> list[dict[str, Any]]:
    """Rows in double precision; refused values get rows of their own."""
    words = {key: getattr(arguments, key) for key in ("adjacency", "method", "threat_model")}

    def ask(some: list[float]) -> list[dict[str, Any]]:
        bounds, engines, proven = answers(
            arguments.asked.question, mechanism, some, **words, proven=arguments.bounds != ESTIMATED
        )
        numbers = (bounds.value.tolist(), bounds.lower.tolist(), bounds.upper.tolist())
        columns = (*numbers, engines, map(certainty, proven))
        return [dict(zip(ROW, row, strict=True)) for row in zip(*columns, strict=True)]

    return _each(ask, values)


def _each(
    ask: Callable[[list[Any]], list[dict[str, Any]]], values: list[Any]
) -> list[dict[str, Any]]:
    """Rows of all values at once, or one by one if some are refused."""
    try:
        return ask(values)
    except AccuracyError as error:
        if len(values) == 1:
            return [_refused(error)]
        return [row for value in values for row in _each(ask, [value])]


def _answered(
    mechanism: Mechanism,
    arguments: argparse.Namespace,
    texts: list[str],
    values: list[float],
    digits: int,
) -> list[dict[str, Any]]:
    """Rows in double precision, or from the reference for arguments that round to 0 or 1.

    For example 1e-400 and 1 - 1e-30, whose answers differ from those at 0 and 1.
    """
    inner = [_is_representable(text, value) for text, value in zip(texts, values, strict=True)]
    doubles = [value for value, good in zip(values, inner, strict=True) if good]
    quick = iter(_quickly(mechanism, arguments, doubles) if doubles else [])

    def row(text: str, good: bool) -> dict[str, Any]:
        if good:
            return next(quick)
        if arguments.method not in ("auto", "reference"):
            message = f"{text} is no double: --method auto answers in arbitrary precision"
            return _refused(AccuracyError(message))
        return _precisely(mechanism, arguments, [text], digits)[0]

    return [row(text, good) for text, good in zip(texts, inner, strict=True)]


def _is_representable(text: str, value: float) -> bool:
    """Whether a number is a normal double, and exactly 0 or 1 if it rounds to these."""
    exact = checks.exact("number", text)
    if value in (0.0, 1.0):
        return exact == int(value)
    return math.ulp(0.0) * 2.0**52 <= value < math.inf


def _under_dp(
    mechanism: Mechanism, arguments: argparse.Namespace, values: list[float]
) -> list[dict[str, Any]]:
    same = {**vars(arguments), "threat_model": "dp", "method": "auto"}
    return _quickly(mechanism, argparse.Namespace(**same), values)


def _known_leak(
    mechanism: Mechanism, arguments: argparse.Namespace, values: list[float]
) -> list[float]:
    """Lower bounds of the true loss, if the answers are upper bounds for shuffled batches."""
    leak = known_leak(mechanism)
    if leak is None or arguments.threat_model != "dp":
        return []
    order = "add_remove" if arguments.adjacency == "substitute" else arguments.adjacency
    question = arguments.asked.question
    bounds, _, _ = answers(question, leak, values, adjacency=order, proven=True)
    found: list[float] = (bounds.upper if question == "trade_off" else bounds.lower).tolist()
    return found


def _precisely(
    mechanism: Mechanism, arguments: argparse.Namespace, texts: list[str], digits: int
) -> list[dict[str, Any]]:
    """Rows in arbitrary precision, as decimal strings."""
    if digits > DOUBLE and arguments.method not in ("auto", "reference"):
        raise CommandError(f"--digits above {DOUBLE} takes --method auto or reference")
    purpose = f"--digits above {DOUBLE}" if digits > DOUBLE else f"the number {texts[0]}"
    with needed(purpose, "reference"):
        from pyengine import reference
    ask = getattr(reference, arguments.asked.question)

    words = {key: getattr(arguments, key) for key in ("adjacency", "threat_model")}

    def answer(text: list[str]) -> list[dict[str, Any]]:
        found = ask(mechanism, *text, **words, digits=digits)
        numbers = (
            decimal(found, digits, ROUND_HALF_EVEN),
            decimal(found.lower, digits, ROUND_FLOOR),
            decimal(found.upper, digits, ROUND_CEILING),
        )
        engine = "reference" if found.certified else "reference, error estimated"
        return [dict(zip(ROW, (*numbers, engine, certainty(found.certified)), strict=True))]

    with user_errors():
        return [row for text in texts for row in _each(answer, [text])]


def _held_to_proofs(row: dict[str, Any]) -> dict[str, Any]:
    """The row if its bounds are proven, otherwise a refusal."""
    if row["value"] is None or row["certainty"] == PROVEN:
        return row
    advice = f"--bounds {ESTIMATED} prints estimates of them"
    return _refused(AccuracyError(f"{row['engine']} does not prove bounds here: {advice}"))


def _refused(error: AccuracyError) -> dict[str, Any]:
    return {**dict.fromkeys(ROW), "message": str(error)}


def _print(
    asked: Command,
    found: list[Answered],
    arguments: argparse.Namespace,
    texts: list[str],
    digits: int,
) -> None:
    print_label([each.run for each in found], arguments.adjacency)
    relaxed = arguments.threat_model != "dp"
    if relaxed:
        print(f"threat model {arguments.threat_model}; differential privacy in column dp")
    print()
    several, leaks = len(found) > 1, any(each.leaks for each in found)
    heads, shown = [asked.argument, asked.symbol], {"value": ROUND_HALF_EVEN}
    if arguments.bounds:
        heads += ["lower", "upper"]
        shown |= {"lower": ROUND_FLOOR, "upper": ROUND_CEILING}
    elif leaks and asked.question == "trade_off":
        heads.append("at most")
        shown["upper"] = ROUND_CEILING
    elif leaks:
        heads.append("at least")
        shown["lower"] = ROUND_FLOOR
    heads += [*(["dp"] if relaxed else []), "certainty"]
    table = []
    for each in found:
        for text, row in zip(texts, each.rows, strict=True):
            said = [each.run.name] if several else []
            if row["value"] is None:
                blank = [""] * (len(heads) - 2)
                table.append([*said, text, "refused", *blank, row["message"]])
                continue
            kept = _known(row, digits)
            cells = [
                _shown(row[key], kept if key == "value" else digits, how)
                for key, how in shown.items()
            ]
            if relaxed:
                worst = row["dp"]
                cells.append("refused" if worst is None else number(worst, min(digits, DOUBLE)))
            notes = [row["engine"] if arguments.verbose else "", _only_a_bound(row)]
            note = ", ".join(filter(None, notes))
            table.append([*said, text, *cells, row["certainty"], note])
    last = "engine" if arguments.verbose else ""
    print_table([*(["run"] if several else []), *heads, last], table)


def _shown(value: float | str, digits: int, rounding: str) -> str:
    return value if isinstance(value, str) else number(value, digits, rounding)


def _only_a_bound(row: dict[str, Any]) -> str:
    """A remark if a value equals one of its bounds, far from the other one; otherwise ""."""
    lower, value, upper = (float(row[key]) for key in ("lower", "value", "upper"))
    if not (value > 0.0 and APART * value < upper - lower < math.inf):
        return ""
    near = BESIDE * (upper - lower)
    if upper - value <= near:
        return "upper bound"
    return "lower bound" if value - lower <= near else ""


def _known(row: dict[str, Any], digits: int) -> int:
    """Digits to print: those fixed by the bounds and one more, at least two; all for a bound."""
    if isinstance(row["value"], str) or not 0.0 < row["value"] < math.inf or _only_a_bound(row):
        return digits
    width = (row["upper"] - row["lower"]) / row["value"]
    if not width > 0.0:
        return digits
    return 2 if width == math.inf else min(digits, max(2, 1 + math.floor(-math.log10(width))))
