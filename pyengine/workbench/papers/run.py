"""Regenerate papers: items in parallel processes, complete files only, verdicts at the end."""

from __future__ import annotations

import re
import sys
import textwrap
import warnings
from collections.abc import Generator, Sequence
from concurrent.futures import as_completed
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path

from pyengine.errors import ApproximationWarning
from pyengine.workbench.papers import paper
from pyengine.workbench.papers.item import DIFFERS, Cell, Check, Item, Table
from pyengine.workbench.papers.pages import checks_csv, index_page
from pyengine.workbench.tables.files import csv_text, prepare, replace_all
from pyengine.workbench.tables.pools import Processes
from pyengine.workbench.tables.progress import Progress

__all__ = ["Made", "make", "run"]

CHARACTERS = 11.0  # of a title per inch of a picture's width


@dataclass(frozen=True)
class Made:
    """Files of one item, by name, and its verdicts."""

    paper: str
    item: str
    files: dict[str, bytes]
    checks: list[Check]


def make(paper_name: str, item_name: str) -> Made:
    """Compute one item: its CSV file, its picture and its verdicts."""
    item = paper(paper_name).item(item_name)
    with warnings.catch_warnings():
        # the papers' figures show approximations outside their range
        warnings.simplefilter("ignore", ApproximationWarning)
        table = item.rows()
    files = {f"{item.name}.csv": _csv(table).encode()}
    if item.draw is not None:
        files[f"{item.name}.png"] = _png(item, table)
    return Made(paper_name, item_name, files, list(item.checks(table)))


def _text(cell: Cell | None) -> str | None:
    if cell is None or isinstance(cell, str):
        return cell
    # numpy's own repr names the type
    return repr(cell.item() if hasattr(cell, "item") else cell)


def _csv(table: Table) -> str:
    return csv_text(table.columns, ([_text(cell) for cell in row] for row in table.rows))


def _png(item: Item, table: Table) -> bytes:
    from pyengine.workbench.plots.style import figure, image, titled

    made = figure(*item.size)
    assert item.draw is not None
    item.draw(table, made)
    titled(made, _filled(item.heading, int(CHARACTERS * item.size[0])), item.adjacency)
    return image(made, dpi=110, metadata={"Software": None})


def _filled(text: str, most: int) -> str:
    """Lines of about equal length, not broken beside an equals sign or within (ε, δ)."""
    whole = re.sub(r" (?==)|(?<==) |(?<=,) (?=\S+\))", "\N{NO-BREAK SPACE}", text)

    def wrapped(width: int) -> list[str]:
        return textwrap.wrap(whole, width, break_on_hyphens=False)

    lines = len(wrapped(most))
    widths = range(len(whole) // lines, most)
    return "\n".join(wrapped(next((w for w in widths if len(wrapped(w)) == lines), most)))


def run(names: Sequence[str], output: Path, workers: int) -> int:
    """Regenerate papers and print the verdicts on their numbers.

    Each paper gets a directory of its own, and ``index.md`` shows all.  Returns 1 if a printed
    number differs without a known reason, otherwise 0.  After an OSError all written files are
    complete; BrokenExecutor means that a worker process died.
    """
    papers = [paper(name) for name in names]
    for name in names:
        prepare(output / name)
    jobs = [(p.name, item.name) for p in papers for item in p.items]
    made: dict[tuple[str, str], Made] = {}
    # after an interrupt the results are closed at once, so that the workers end
    with (
        Progress(len(jobs), "figures and tables", sys.stderr) as progress,
        closing(_results(jobs, workers)) as results,
    ):
        for done in results:
            replace_all(output / done.paper, done.files)
            made[done.paper, done.item] = done
            progress.advance(1)
    for p in papers:
        checks = [(i.name, made[p.name, i.name].checks) for i in p.items]
        replace_all(output / p.name, {"printed.csv": checks_csv(checks).encode()})
    verdicts = {key: done.checks for key, done in made.items()}
    replace_all(output, {"index.md": index_page(papers, verdicts).encode()})
    return _summary(list(made.values()), output)


def _results(jobs: list[tuple[str, str]], workers: int) -> Generator[Made, None, None]:
    if workers == 1:
        yield from (make(*job) for job in jobs)
        return
    pool, complete = Processes(workers), False
    try:
        for future in as_completed([pool.executor.submit(make, *job) for job in jobs]):
            yield future.result()
        complete = True
    finally:
        pool.close(abandon=not complete)


def _summary(made: list[Made], output: Path) -> int:
    checks = [check for done in made for check in done.checks]
    counts: dict[str, int] = {}
    for check in checks:
        counts[check.verdict] = counts.get(check.verdict, 0) + 1
    words = ", ".join(f"{count} {verdict}" for verdict, count in counts.items())
    print(f"{len(made)} figures and tables in {output}; {len(checks)} printed numbers: {words}")
    unexplained = 0
    for done in made:
        for check in done.checks:
            if check.verdict == DIFFERS:
                unexplained += not check.reason
                reason = check.reason or "for no known reason"
                print(
                    f"  {done.paper} {done.item}, {check.what}: printed {check.printed}, "
                    f"here {check.value:.6g}: {reason}"
                )
    return 1 if unexplained else 0
