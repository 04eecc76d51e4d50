"""``pyengine budget``: a privacy budget in a file, for releases about the same records."""

from __future__ import annotations

import argparse
from contextlib import suppress
from decimal import ROUND_CEILING, ROUND_FLOOR
from typing import TYPE_CHECKING, Any

from pyengine._support.decimals import number, written
from pyengine._support.markup import shortened
from pyengine.cli import grammar
from pyengine.cli.calibrate import TARGETS, VARIED, figures_of, rounded, targets_of
from pyengine.cli.errors import FOUND, CommandError, user_errors
from pyengine.cli.output import label_lines, print_json, print_lines, print_table
from pyengine.cli.parsers import Part, command, group, option, switch
from pyengine.mechanisms import describe, in_words, label_of

if TYPE_CHECKING:
    from pyengine.accounting import Budget
    from pyengine.calibration.targets import Target

__all__ = ["register"]

DESCRIPTION = """\
Keep the releases about the same records within a target. The budget is a file, which several
processes may use at once. A release is booked only if a proven bound of it and of all that is
booked meets the target; else nothing is booked and the exit code is 1. The releases must be chosen
without looking at what the earlier ones gave."""
EXAMPLES = """\
examples:
  pyengine budget new study.budget --epsilon 1 --delta 1e-6
  pyengine budget split study.budget --share counts 1 mechanism=laplace \\
      --share training 3 p=0.01,steps=1000
  pyengine budget spend study.budget --name counts --mechanism laplace --noise 2.5
  pyengine budget spend study.budget run.toml --name training
  pyengine budget remaining study.budget
  pyengine budget remaining study.budget --p 0.01 --steps 1000
  pyengine budget remaining study.budget --vary steps --noise 4 --p 0.01
  pyengine budget show study.budget"""
SPLIT = """\
Share what is left among releases by weights, and print the noise with which they and all that is
booked meet the target together. Weights are shares of μ² for Gaussian noise, and of ε if δ = 0.
Nothing is booked."""
REMAINING = """\
Print what is spent, and what one more release may be: the least noise of a Gaussian release and the
largest ε of one that is ε-DP, or the missing parameter of the mechanism that is given."""
DIGITS = 10
ASSUMPTION = "no release was chosen in view of what earlier ones gave"


def run(arguments: argparse.Namespace) -> int:
    """Run the chosen action."""
    with user_errors(arguments.budget):
        return int(arguments.act(arguments))


def _opened(arguments: argparse.Namespace) -> Budget:
    from pyengine.accounting import Budget

    return Budget.load(arguments.budget)


def _new(arguments: argparse.Namespace) -> int:
    from pyengine.accounting import Budget

    targets = targets_of(arguments, proven=True)
    if len(targets) > 1:
        raise CommandError("a budget has one target")
    budget = Budget(targets[0], arguments.budget)
    _print(arguments, {"target": _as_object(budget.target)}, [_target_line(budget.target)])
    return 0


def _spend(arguments: argparse.Namespace) -> int:
    from pyengine.errors import BudgetError

    budget = _opened(arguments)
    try:
        release = budget.spend(grammar.read_mechanism(arguments), arguments.name)
    except BudgetError as error:
        _print(arguments, {"booked": False, "reason": str(error)}, [f"refused: {error}"])
        return FOUND
    content = {"booked": True, "name": release.name, "mechanism": describe(release.mechanism)}
    _print(arguments, content, ["booked: " + ", ".join(shortened(in_words(release.mechanism)))])
    return 0


def _split(arguments: argparse.Namespace) -> int:
    budget = _opened(arguments)
    planned = {
        name: grammar.run_file_of_text(phase, f"--share {name}").family("noise")
        for name, _, phase in arguments.share
    }
    if len(planned) < len(arguments.share):
        raise CommandError("--share: each release needs a name of its own")
    shares = budget.split(planned, [weight for _, weight, _ in arguments.share])
    # a rounded noise must serve as well
    noise = [number(share.noise, DIGITS, ROUND_CEILING) for share in shares]
    made = [planned[share.name](text) for share, text in zip(shares, noise, strict=True)]
    content = [
        {"name": share.name, "noise": float(text), "mechanism": describe(mechanism)}
        for share, text, mechanism in zip(shares, noise, made, strict=True)
    ]
    if arguments.json:
        print_json({"split": content})
    else:
        rows = [[share.name, text] for share, text in zip(shares, noise, strict=True)]
        print_table(["release", "noise"], rows)
    return 0


def _remaining(arguments: argparse.Namespace) -> int:
    budget = _opened(arguments)
    achieved = budget.achieved()
    content: dict[str, Any] = {"spent": _as_object(achieved)}
    lines = [_spent_line(budget, achieved)]
    delta = getattr(budget.target, "delta", None)
    if delta is not None:
        content["spent_epsilon"] = {"epsilon": budget.spent_epsilon(), "delta": delta}
    if grammar.is_given(arguments):
        key = arguments.vary
        found: float = _missing(budget, arguments)
        text = rounded(VARIED[key], found, DIGITS)
        content["remaining"] = {key: int(text) if VARIED[key].integer else float(text)}
        lines.append(f"remaining: {key} {text}")
    else:
        content["remaining"], either = {}, ""
        with suppress(ValueError):  # no Gaussian release is ε-DP, and not all budgets have room
            noise = budget.remaining_noise()
            content["remaining"]["noise"], either = noise, "or "
            lines.append(f"remaining: a Gaussian release of noise {_up(noise)} or more")
        with suppress(ValueError):  # only Gaussian releases are μ-GDP without slack
            epsilon = budget.remaining_epsilon()
            content["remaining"]["epsilon"] = epsilon
            sure = number(epsilon, DIGITS, ROUND_FLOOR)
            lines.append(f"remaining: {either}any ε-DP release of ε {sure}")
    _print(arguments, content, lines)
    return 0


def _missing(budget: Budget, arguments: argparse.Namespace) -> Any:
    """The parameter with which one more release fits."""
    from pyengine.api import compose
    from pyengine.calibration import calibrate

    varied = VARIED[arguments.vary]
    make = grammar.run_file_of(arguments).family(arguments.vary, others=True)
    booked = budget.spent
    return calibrate(
        lambda x: compose(booked, make(x)),
        budget.target,
        integer=varied.integer,
        maximize=not varied.improves,
    ).value


def _show(arguments: argparse.Namespace) -> int:
    budget = _opened(arguments)
    releases, achieved = budget.releases, budget.achieved()
    adjacency = budget.target.adjacency
    content = {
        "target": _as_object(budget.target),
        "spent": _as_object(achieved),
        "label": [each._asdict() for each in label_of(budget.spent, adjacency)],
        "assumption": ASSUMPTION,
        "releases": [{"name": r.name, "mechanism": describe(r.mechanism)} for r in releases],
    }
    names = [r.name or "-" for r in releases]
    names = [name if name.isprintable() else repr(name) for name in names]  # of another program
    words = [
        f"{name}: {', '.join(shortened(in_words(release.mechanism)))}"
        for name, release in zip(names, releases, strict=True)
    ]
    lines = [_target_line(budget.target), *words, _spent_line(budget, achieved)]
    label = label_lines(budget.spent, adjacency) if releases else []
    _print(arguments, content, [*lines, *label, f"assumes: {ASSUMPTION}"])
    return 0


def _print(arguments: argparse.Namespace, content: dict[str, Any], lines: list[str]) -> None:
    if arguments.json:
        print_json({**content, "proven": True})
    else:
        print_lines(lines)


def _as_object(target: Target) -> dict[str, Any]:
    kind = {"target": type(target).__name__, "adjacency": target.adjacency}
    return {**kind, **figures_of(target)}


def _target_line(target: Target) -> str:
    return f"target: {target.in_words()} (adjacency {target.adjacency})"


def _spent_line(budget: Budget, found: Target) -> str:
    """Spent figures, rounded so that they hold: ε at the target's δ rather than δ at its ε."""
    from pyengine.calibration.targets import AT_LEAST

    how = f"(adjacency {found.adjacency}; proven)"
    delta = getattr(budget.target, "delta", None)
    if delta is not None:
        return f"spent: ε = {_up(budget.spent_epsilon())} at δ = {written(delta)} {how}"
    figures = (
        f"{name} {number(value, DIGITS, ROUND_FLOOR if name in AT_LEAST else ROUND_CEILING)}"
        for name, value in figures_of(found).items()
    )
    return f"spent: {', '.join(figures)} {how}"


def _up(value: float) -> str:
    return number(value, DIGITS, ROUND_CEILING)


def _action(name: str, summary: str, text: str, act: Any, *parts: Part) -> Part:
    examples = [line for line in EXAMPLES.replace(" \\\n     ", "").splitlines() if name in line]
    shown = "\n".join(["examples:", *examples])
    file = option("budget", "FILE", "the file of the budget")
    acted: Part = lambda parser: parser.set_defaults(act=act)  # noqa: E731
    json = switch("--json", "JSON instead of text")
    return command(name, summary, text, shown, run, acted, file, json, *parts)


def _add_actions(parser: Any) -> None:
    actions = parser.add_subparsers(title="actions", metavar="ACTION", required=True)
    for add in ACTIONS:
        add(actions)


ACTIONS = (
    _action(
        "new",
        "a new file for a target",
        "Make a file for a target.",
        _new,
        group("targets", *TARGETS),
    ),
    _action(
        "spend",
        "book a release that fits",
        "Book a release, or refuse it.",
        _spend,
        option("--name", "TEXT", "what to call the release", default=""),
        grammar.MECHANISM,
    ),
    _action(
        "split",
        "share what is left by weights",
        SPLIT,
        _split,
        option(
            "--share",
            ("NAME", "WEIGHT", "PHASE"),
            "a release that is planned, as of --phase, without its noise; give it again for more",
            nargs=3,
            action="append",
            required=True,
        ),
    ),
    _action(
        "remaining",
        "what may still be released",
        REMAINING,
        _remaining,
        option(
            "--vary",
            "KEY",
            f"what to find of the mechanism: {', '.join(VARIED)} (noise)",
            choices=VARIED,
            default="noise",
        ),
        grammar.MECHANISM,
    ),
    _action("show", "what was released", "Print the target and all releases.", _show),
)
register = command(
    "budget",
    "keep several releases within a target",
    DESCRIPTION,
    EXAMPLES,
    run,
    _add_actions,
)
