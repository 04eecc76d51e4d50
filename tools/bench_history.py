"""Write the history of the benchmarks, a picture and a table in docs/developer.

    python tools/bench_history.py

`make bench-history` runs it on asv's results. It shows instruction counts, which do not depend on
the load of the machine, each relative to the oldest commit that has it.
"""

import json
import subprocess
from pathlib import Path

import matplotlib
import numpy as np
from asv.results import Results

matplotlib.use("agg")
import matplotlib.pyplot as plt

ROOT = Path(__file__).parents[1]
RESULTS = ROOT / "asv_bench" / "results"
PAGE = ROOT / "docs" / "developer" / "instruction_history.md"
PICTURE = PAGE.with_suffix(".svg")
SHOWN = 8  # graphs with a colour of their own: those that moved most


def _commit(result):
    form = "--format=%h%x09%cs%x09%s"
    command = ["git", "-C", str(ROOT), "show", "-s", form, result.commit_hash]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def _load():
    """Return the commits, oldest first, and for each the instructions of each piece of work."""
    benchmarks = json.loads((RESULTS / "benchmarks.json").read_text(encoding="utf-8"))
    paths = [p for p in RESULTS.glob("*/*.json") if p.name != "machine.json"]
    found = sorted((Results.load(str(p)) for p in paths), key=lambda r: r.date)
    series = {}
    for k, result in enumerate(found):
        for name in result.get_all_result_keys():
            if not name.endswith("track_instructions") or name not in benchmarks:
                continue
            params = benchmarks[name]["params"]
            values = result.get_result_value(name, params)
            for word, value in zip(params[0], values, strict=True):
                line = series.setdefault(word.strip("'"), np.full(len(found), np.nan))
                line[k] = np.nan if value is None else value
    return found, series


def _draw(commits, relative):
    moved = sorted(relative, key=lambda name: -np.nanmax(np.abs(np.log(relative[name]))))
    figure, axes = plt.subplots(figsize=(8.0, 4.0), layout="constrained")
    x = np.arange(len(commits))
    for name in moved[SHOWN:]:
        axes.plot(x, relative[name], color="0.8", linewidth=0.8)
    for name in moved[:SHOWN]:
        axes.plot(x, relative[name], marker="o", markersize=3, label=name)
    axes.set_xticks(x, [line.split("\t")[0] for line in commits], rotation=60, fontsize=8)
    axes.set_ylabel("instructions, relative to the first")
    axes.legend(fontsize=7, loc="center left", bbox_to_anchor=(1.0, 0.5))
    axes.grid(axis="y", linewidth=0.3)
    plt.rcParams["svg.hashsalt"] = "pyengine"  # the same picture from the same results
    figure.savefig(PICTURE, metadata={"Date": None})


def _table(commits, relative):
    lines = [
        "# Instructions over commits",
        "",
        "Instructions of kernels and questions ([Testing](testing.md#instruction-counts)) at past",
        "commits, relative to the oldest one that has them; grey are those that moved least.",
        "Written by `make bench-history`, which also makes asv's own pages, one graph for each",
        "benchmark: where they have been made, `make docs` puts them at `benchmarks/index.html`.",
        "",
        "![Instructions over commits](instruction_history.svg)",
        "",
        "| commit | date | median | largest rise | subject |",
        "|---|---|---|---|---|",
    ]
    all_lines = np.array(list(relative.values()))
    names = list(relative)
    for k, line in enumerate(commits):
        commit, date, subject = line.split("\t", 2)
        now, before = all_lines[:, k], all_lines[:, k - 1] if k else all_lines[:, k]
        change = np.where(np.isnan(now / before), -np.inf, now / before)
        most = int(np.argmax(change))
        rise = f"{names[most]} {change[most] - 1:+.1%}" if change[most] > 1.005 else ""
        lines.append(f"| {commit} | {date} | {np.nanmedian(now):.3f} | {rise} | {subject} |")
    PAGE.write_text("\n".join(lines) + "\n", encoding="utf-8")


def main():
    found, series = _load()
    commits = [_commit(result) for result in found]
    relative = {
        name: line / line[~np.isnan(line)][0]
        for name, line in sorted(series.items())
        if np.count_nonzero(~np.isnan(line)) > 1
    }
    _draw(commits, relative)
    _table(commits, relative)
    print(f"{PAGE}: {len(commits)} commits, {len(relative)} graphs")


main()
