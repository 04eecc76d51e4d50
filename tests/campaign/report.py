"""Results of a campaign, as tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from campaign.judge import PROVEN
from campaign.steps import number

__all__ = ["COLUMNS", "add_row", "columns_of", "python_of", "snippet", "summary"]

COLUMNS = (
    "questions",
    "wrong",
    "outside, proven",
    "outside, estimate",
    "refused",
    "declined",
    "slow",
    "crashed",
    "memory",
    "no truth",
)
MARK = "<!-- rows -->"


def columns_of(record: dict[str, Any]) -> set[str]:
    """Columns in which a record counts; a value may be both wrong and outside its bounds."""
    found = {"questions"}
    if record["verdict"] in COLUMNS:
        found.add(record["verdict"])
    if record.get("outside") is not None:
        proven = record.get("engine") in PROVEN and not _estimated(record)
        found.add("outside, proven" if proven else "outside, estimate")
    return found


def _estimated(record: dict[str, Any]) -> bool:
    """Whether masses are integrals of densities, whose error is an estimate for every engine."""
    return any(step["kind"] == "distributions" for step in record["steps"])


def _counts(records: Iterable[dict[str, Any]]) -> Counter[str]:
    return Counter(column for record in records for column in columns_of(record))


def summary(records: list[dict[str, Any]]) -> str:
    """Table of families and verdicts in Markdown, with the times of the answers."""
    families = sorted({record.get("family", "?") for record in records})
    head = ["family", *COLUMNS, "median s", "largest s"]
    lines = ["| " + " | ".join(head) + " |", "|---" + "|---:" * (len(head) - 1) + "|"]
    for family in [*families, None]:
        chosen = [r for r in records if family is None or r.get("family", "?") == family]
        counts = _counts(chosen)
        times = sorted(r["seconds"] for r in chosen if "seconds" in r) or [0.0]
        cells = [family or "all", *(str(counts[column]) for column in COLUMNS)]
        cells += [f"{times[len(times) // 2]:.4f}", f"{times[-1]:.2f}"]
        lines.append("| " + " | ".join(cells) + " |")
    sources = Counter(record["source"] for record in records if "source" in record)
    lines.append("")
    lines.append("truths: " + ", ".join(f"{n} by {name}" for name, n in sources.most_common()))
    return "\n".join(lines)


def snippet(record: dict[str, Any]) -> str:
    """The question as a line of Python, and its result."""
    if "steps" not in record or "at" not in record:
        return f"{record['seed']}/{record['index']}: {record['verdict']} {record.get('why', '')}"
    argument = float.fromhex(record["at"])
    text = f"float({argument!r})" if argument in (float("inf"),) else repr(argument)
    keywords = f"adjacency={record['adjacency']!r}"
    if record["method"] != "auto":
        keywords += f", method={record['method']!r}"
    if record["form"] == "array":
        text = f"np.array([{text}, 0.5])"
    call = f"pe.{record['question']}({python_of(record['steps'])}, {text}, {keywords}, bounds=True)"
    parts = [f"{record['seed']}/{record['index']} {record['verdict']}: {call}"]
    if "truth" in record:
        last = [float.fromhex(x) for x in record["answers"][-1]]
        parts.append(f"    truth {record['truth']} ({record['source']}), answer {last}")
    for key in ("why", "wrong", "outside", "engine"):
        if key in record:
            parts.append(f"    {key}: {record[key]}")
    return "\n".join(parts)


def python_of(steps: list[dict[str, Any]]) -> str:
    """The mechanism as Python."""

    def text(value: Any) -> str:
        if isinstance(value, list):
            return "[" + ", ".join(text(x) for x in value) + "]"
        if not isinstance(value, str):
            return repr(value)
        found = number(value)
        return repr(found) if isinstance(found, float) else repr(value)

    names = {
        "gaussian": "GaussianMechanism",
        "laplace": "LaplaceMechanism",
        "discrete_gaussian": "DiscreteGaussianMechanism",
        "discrete_laplace": "DiscreteLaplaceMechanism",
        "response": "RandomizedResponse",
        "generic": "GenericMechanism",
        "pair": "from_probabilities",
    }
    parts = []
    for step in steps:
        of = {key: text(value) for key, value in step["of"].items() if key != "name"}
        numbers = list(of.values())
        if step["kind"] == "distributions":
            made = _distributions(step["of"]["name"], numbers)
        else:
            made = f"pe.{names[step['kind']]}({', '.join(numbers)})"
        sampling = step["sampling"]
        if sampling and "p" in sampling:
            made += f".poisson_sampled({text(sampling['p'])})"
        elif sampling:
            made += (
                f".sampled_without_replacement(batch_size={sampling['batch']}, "
                f"dataset_size={sampling['size']})"
            )
        parts.append(made + f".composed({step['steps']})")
    return parts[0] if len(parts) == 1 else f"pe.compose({', '.join(parts)})"


def _distributions(name: str, x: list[str]) -> str:
    """Pair of distributions as Python, as `campaign.steps` makes it."""
    family, first, second = {
        "normal": ("norm", "0, 1", ", ".join(x)),
        "uniform": ("uniform", "0, 1", f"{x[0]}, 1"),
        "exponential": ("expon", f"0, {x[0]}", "0, 1"),
    }.get(name, (name, "0, 1", f"{x[0]}, 1"))
    return f"pe.from_distributions(stats.{family}({first}), stats.{family}({second}))"


def add_row(path: Path, date: str, commit: str, seed: str, records: list[dict[str, Any]]) -> None:
    """Add a row to the table of a page, after its last one."""
    counts = _counts(records)
    row = "| " + " | ".join([date, commit, seed, *(str(counts[c]) for c in COLUMNS)]) + " |"
    text = path.read_text(encoding="utf-8")
    if MARK not in text:
        raise ValueError(f"{path} must have a line {MARK} after its table")
    path.write_text(text.replace(MARK, f"{row}\n{MARK}"), encoding="utf-8")
