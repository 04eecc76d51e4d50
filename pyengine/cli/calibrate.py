"""``pyengine calibrate``: the smallest noise, or another parameter, that meets a target."""

from __future__ import annotations

import argparse
import math
from dataclasses import replace
from decimal import ROUND_CEILING, ROUND_FLOOR, Context
from fractions import Fraction
from typing import TYPE_CHECKING, Any, NamedTuple

from pyengine._support import checks
from pyengine._support.certainty import PROVEN, certainty
from pyengine._support.decimals import number
from pyengine._support.markup import shortened
from pyengine.api import answers
from pyengine.cli import grammar
from pyengine.cli.errors import CommandError, read_count
from pyengine.cli.numbers import read_exact
from pyengine.cli.output import label_lines, print_json, print_lines, remark, remarks_on
from pyengine.cli.parsers import command, group, option, switch
from pyengine.errors import AccuracyError
from pyengine.mechanisms import Mechanism, describe, in_words, label_of

if TYPE_CHECKING:
    from pyengine.calibration.targets import Target

__all__ = ["TARGETS", "VARIED", "figures_of", "register", "rounded", "targets_of"]

DESCRIPTION = """\
Find the smallest noise, the largest sampling probability or the most steps that meet a target, or
several at once. The number that is printed is rounded to the safe side and then checked: with it
the engine's bounds meet the target."""
EPILOG = f"""\
examples:
  pyengine calibrate --p 0.01 --steps 10000 --epsilon 1 --delta 1e-6
  pyengine calibrate run.toml                a run without noise, and a table [target]
  pyengine calibrate --p 0.01 --steps 1000 --kappa 1e-3 --gamma 0.01
  pyengine calibrate --vary steps --noise 1 --p 0.01 --epsilon 2 --delta 1e-6
  pyengine calibrate --phase p=0.01,steps=100 --phase p=0.02,steps=900 --epsilon 2 --delta 1e-6

targets:
  --epsilon E --delta D     (E, D)-differential privacy
  --kappa K --gamma G       reconstruction from prior K succeeds with probability at most G
  --alpha A --beta B        every test of level A has a type-II error of at least B
  --advantage H             membership advantage at most H
  --mu M [--slack D]        Gaussian differential privacy, up to D in δ

All phases without the varied key get the value that is found. The table [target] of a run file may
hold these targets, adjacency and vary.

{grammar.HELP}"""

MOST_DIGITS = 15


class Varied(NamedTuple):
    """A parameter to calibrate: description, whether an integer, whether privacy grows with it."""

    words: str
    integer: bool
    improves: bool


VARIED = {
    "noise": Varied("noise", integer=False, improves=True),
    "p": Varied("sampling probability", integer=False, improves=False),
    "steps": Varied("number of steps", integer=True, improves=False),
    "truth_probability": Varied("truth probability", integer=False, improves=False),
}
PAIRS = (("epsilon", "delta"), ("kappa", "gamma"), ("alpha", "beta"))
NUMBERS = (*(name for pair in PAIRS for name in pair), "advantage", "mu", "slack")
TARGETS = (
    *(option(f"--{name}", "X", None) for name in NUMBERS),
    option("--adjacency", "WORD", "neighbours, for all targets (each target has a default)"),
)


def run(arguments: argparse.Namespace) -> int:
    """Calibrate, and print the parameter with the figures it achieves."""
    from pyengine.calibration import calibrate

    file = grammar.run_file_of(arguments)
    _take_targets(arguments, file.section("target"))
    varied = VARIED[arguments.vary]
    digits = read_count("--digits", arguments.digits, MOST_DIGITS)
    targets: list[Target] = []
    try:
        targets = targets_of(arguments, proven=arguments.proven)
        make = file.family(arguments.vary, others=True)
        found = calibrate(make, targets, integer=varied.integer, maximize=not varied.improves)
        shown = rounded(varied, found.value, digits)
        mechanism = make(shown)
        achieved = [target.achieved(mechanism) for target in targets]
        sure = [
            _certainty(target, each, mechanism)
            for target, each in zip(targets, achieved, strict=True)
        ]
    except ValueError as error:
        text = str(error).replace("parameter", varied.words, 1)
        for target in targets:
            text = text.replace(target.called(), target.in_words())
        raise CommandError(text) from None
    limits = _limits(arguments)
    asked = {name: [checks.as_double(limits[name])] for name in PAIRS[0] if name in limits}
    remarks = remarks_on(
        deltas=asked.get("delta", ()),
        epsilons=asked.get("epsilon", ()),
        records=grammar.records_of(file),
    )
    if arguments.json:
        figures = [
            {"target": type(each).__name__, **figures_of(each), "certainty": word}
            for each, word in zip(achieved, sure, strict=True)
        ]
        value = found.value if varied.integer else float(shown)
        content = {"vary": arguments.vary, "value": value, "unrounded": found.value}
        label = [each._asdict() for each in label_of(mechanism, targets[0].adjacency)]
        made = {"mechanism": describe(mechanism), "label": label, "achieved": figures}
        print_json({**content, **made, "remarks": remarks})
        remark(remarks)
        return 0
    print(f"{arguments.vary} {shown}")
    print_lines(
        f"achieves {_in_words(target, limits, digits)}, {word}"
        for target, word in zip(achieved, sure, strict=True)
    )
    said = label_lines(mechanism, targets[0].adjacency)
    print_lines((*shortened(in_words(mechanism)), *said))
    remark(remarks)
    return 0


def _take_targets(arguments: argparse.Namespace, said: dict[str, Any]) -> None:
    """Take the targets of the run file, unless flags give one."""
    vary = arguments.vary or str(said.get("vary", "noise"))
    if vary not in VARIED:
        hint = checks.did_you_mean(vary, tuple(VARIED))
        raise CommandError(f"[target]: vary must be one of {', '.join(VARIED)}; got {vary!r}{hint}")
    arguments.vary = vary
    if any(getattr(arguments, name) is not None for name in NUMBERS):
        return
    for name in NUMBERS:
        if name in said and not isinstance(said[name], str):
            raise CommandError(f"[target]: {name} must be a number, got {said[name]!r}")
        setattr(arguments, name, said.get(name))
    if arguments.adjacency is None:
        arguments.adjacency = said.get("adjacency")


def targets_of(arguments: argparse.Namespace, *, proven: bool) -> list[Target]:
    """The targets given by the flags in `TARGETS`; at least one."""
    from pyengine.calibration import targets as kinds

    given = {name: _strictest(name, exact) for name, exact in _limits(arguments).items()}
    words: dict[str, Any] = {"bounds": True} if proven else {}
    if arguments.adjacency is not None:
        words["adjacency"] = arguments.adjacency
    makers = (kinds.EpsilonDelta, kinds.Gamma, kinds.TradeOff)
    found: list[Target] = []
    for pair, maker in zip(PAIRS, makers, strict=True):
        numbers = [given[name] for name in pair if name in given]
        if len(numbers) == 1:
            raise CommandError(f"--{pair[0]} and --{pair[1]} go together")
        if numbers:
            found.append(maker(*numbers, **words))
    if "advantage" in given:
        found.append(kinds.Advantage(given["advantage"], **words))
    if "mu" in given:
        found.append(kinds.GaussianDP(given["mu"], given.get("slack", 0.0), **words))
    elif "slack" in given:
        raise CommandError("--slack goes with --mu")
    if not found:
        raise CommandError("no target: give --epsilon and --delta, or another one of --help")
    return found


def _limits(arguments: argparse.Namespace) -> dict[str, Fraction]:
    """The numbers of the targets exactly as given, by name."""
    texts = {name: getattr(arguments, name) for name in NUMBERS}
    return {
        name: read_exact(name, text, math.inf if name in ("epsilon", "mu") else 1.0)
        for name, text in texts.items()
        if text is not None
    }


def _certainty(target: Target, achieved: Target, mechanism: Mechanism) -> str:
    """Whether the bound that met a target is proven, by request or because the engine proves it.

    For μ, which is compared at many ε, it is proven if proven bounds meet the printed figures.
    """
    from pyengine.calibration.targets import Advantage, EpsilonDelta, Gamma, TradeOff

    if target.bounds is True:
        return PROVEN
    match target:
        case EpsilonDelta(delta=0.0):
            question, at = "epsilon", 0.0
        case EpsilonDelta():
            question, at = "delta", float(target.epsilon)
        case Gamma():
            question, at = "gamma_bound", float(target.kappa)
        case TradeOff():
            question, at = "trade_off", float(target.alpha)
        case Advantage():
            question, at = "delta", 0.0
        case _:
            return certainty(_is_proven(achieved, mechanism))
    _, _, proven = answers(question, mechanism, [at], adjacency=target.adjacency, proven=False)
    return certainty(proven[0])


def _is_proven(achieved: Target, mechanism: Mechanism) -> bool:
    try:
        return replace(achieved, bounds=True).is_met(mechanism)
    except AccuracyError:
        return False


def _strictest(name: str, exact: Fraction) -> float:
    """Return the double next to a number that is at least as strict as a target."""
    value = checks.as_double(exact)
    if name in ("kappa", "alpha", "beta") and value < math.inf:
        return value if Fraction(value) >= exact else math.nextafter(value, math.inf)
    if math.isinf(value) or Fraction(value) > exact:
        value = math.nextafter(value, 0.0)
    if value == 0.0 and exact > 0:
        raise CommandError(f"--{name} must be 0 or at least {math.ulp(0.0)!r}, got {exact}")
    return value


def rounded(varied: Varied, value: float, digits: int) -> str:
    """Text of the parameter, rounded in the direction in which the target is still met."""
    if varied.integer:
        return str(value)
    return number(value, digits, ROUND_CEILING if varied.improves else ROUND_FLOOR)


def figures_of(target: Target) -> dict[str, float]:
    """The numbers of a target, by name."""
    return {name: float(getattr(target, name)) for name in target._domains}


def _in_words(found: Target, limits: dict[str, Fraction], digits: int) -> str:
    """Figures of a target that was met, each rounded in the direction in which they hold.

    Enough digits are printed that no rounded figure misses the target.
    """
    from pyengine.calibration.targets import Advantage, EpsilonDelta, Gamma, TradeOff

    figures = figures_of(found)
    limits = {"slack": Fraction(0), "eta": limits.get("advantage", Fraction(0)), **limits}
    up, down = (
        {key: _rounded(value, limits[key], digits, how) for key, value in figures.items()}
        for how in (ROUND_CEILING, ROUND_FLOOR)
    )
    adjacency = f"(adjacency {found.adjacency})"
    if isinstance(found, EpsilonDelta):
        return f"epsilon {up['epsilon']}, delta {up['delta']} {adjacency}"
    if isinstance(found, Gamma):
        # a bound at the requested prior holds at smaller ones, too
        return f"gamma({number(figures['kappa'], digits, ROUND_FLOOR)}) {up['gamma']} {adjacency}"
    if isinstance(found, TradeOff):
        level = number(figures["alpha"], digits, ROUND_FLOOR)
        return f"beta({level}) {down['beta']} {adjacency}"
    if isinstance(found, Advantage):
        return f"advantage {up['eta']} {adjacency}"
    return f"mu {up['mu']}, slack {up['slack']}"


def _rounded(value: float, limit: Fraction, digits: int, rounding: str) -> str:
    """Text of a figure with ``digits`` digits, or more if rounding would cross its limit."""
    shown = number(value, digits, rounding)
    if not math.isfinite(value):
        return shown
    up = rounding == ROUND_CEILING
    if (value > limit) if up else (value < limit):  # the figure itself is beyond the limit
        return shown
    while (Fraction(shown) > limit) if up else (Fraction(shown) < limit):
        digits += 1
        shown = str(Context(prec=digits, rounding=rounding).create_decimal(value))
    return shown


register = command(
    "calibrate",
    "noise, sampling probability or steps that meet a target",
    DESCRIPTION,
    EPILOG,
    run,
    option("--vary", "KEY", f"{', '.join(VARIED)} (noise)", choices=VARIED),
    group(
        "targets",
        *TARGETS,
        switch("--proven", "let proven bounds decide, where estimated ones do by default"),
    ),
    grammar.MECHANISM,
    option("--digits", "N", "significant digits (10)", default="10"),
    switch("--json", "JSON instead of text"),
)
