"""The verdicts of a run as CSV, and its pictures and verdicts as a Markdown page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from pyengine.workbench.papers.item import AGREES, Check, Item, Paper
from pyengine.workbench.tables.files import csv_text

__all__ = ["checks_csv", "index_page"]

COLUMNS = ("item", "number", "printed", "computed", "verdict", "reason")
SHOWN = 12  # most lines of verdicts of an item on the page; all are in printed.csv


def checks_csv(checks: Sequence[tuple[str, Sequence[Check]]]) -> str:
    """Verdicts of a paper as CSV."""
    return csv_text(
        COLUMNS,
        (
            [item, c.what, c.printed, repr(c.value), c.verdict, c.reason]
            for item, found in checks
            for c in found
        ),
    )


def index_page(papers: Sequence[Paper], checks: Mapping[tuple[str, str], Sequence[Check]]) -> str:
    """Page with every picture and the verdicts on printed numbers."""
    lines = ["# Figures and tables of the papers", "", "Made by `pyengine papers`.", ""]
    for paper in papers:
        lines += [f"## {paper.reference}", ""]
        for item in paper.items:
            lines += _item(paper, item, checks[paper.name, item.name])
        if paper.left_out:
            lines += [f"Left out: {paper.left_out}", ""]
    return "\n".join(lines).rstrip() + "\n"


def _item(paper: Paper, item: Item, checks: Sequence[Check]) -> list[str]:
    lines = [f"### {item.heading}", ""]
    if item.draw is not None:
        lines += [f"![{item.label}]({paper.name}/{item.name}.png)", ""]
    lines += [f"Rows: `{paper.name}/{item.name}.csv`.", ""]
    if item.chosen:
        lines += [f"Chosen, not printed: {item.chosen}", ""]
    if checks:
        agreeing = sum(check.verdict == AGREES for check in checks)
        lines += [f"Printed numbers: {agreeing} of {len(checks)} agree to the printed digits.", ""]
    others = [check for check in checks if check.verdict != AGREES]
    if others:
        lines += ["| number | printed | here | verdict |", "|---|---|---|---|"]
        for check in others[:SHOWN]:
            reason = f": {check.reason}" if check.reason else ""
            lines.append(
                f"| {check.what} | {check.printed} | {check.value:.6g} | {check.verdict}{reason} |"
            )
        if len(others) > SHOWN:
            lines.append(f"| … | | | {len(others) - SHOWN} more in `printed.csv` |")
        lines.append("")
    return lines
