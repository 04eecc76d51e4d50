"""Tables in Markdown, LaTeX and HTML, and the width of the terminal."""

from __future__ import annotations

import re
import shutil
import sys
from collections.abc import Sequence
from html import escape
from typing import Any

__all__ = [
    "html_table",
    "in_markdown",
    "latex_table",
    "markdown_table",
    "rendered_page",
    "shortened",
    "terminal_width",
]

LATEX = {
    "\\": r"\textbackslash{}",
    "&": r"\&",
    "%": r"\%",
    "$": r"\$",
    "#": r"\#",
    "_": r"\_",
    "{": r"\{",
    "}": r"\}",
    "~": r"\textasciitilde{}",
    "^": r"\textasciicircum{}",
    "<": r"\textless{}",
    ">": r"\textgreater{}",
    "α": r"$\alpha$",
    "β": r"$\beta$",
    "γ": r"$\gamma$",
    "δ": r"$\delta$",
    "ε": r"$\varepsilon$",
    "κ": r"$\kappa$",
    "μ": r"$\mu$",
    "σ": r"$\sigma$",
    "∞": r"$\infty$",
    "·": r"$\cdot$",
    "≈": r"$\approx$",
}


MOST_KINDS = 8  # most lines about kinds of steps that are shown
MARKS = re.compile(r"[\\|<\[*`$]|(?<![^\W_])_|_(?![^\W_])|~(?=~)|&(?=#?\w+;)")  # of Markdown
SCIENTIFIC = re.compile(r"(?<![\w.$])(\d+(?:\.\d+)?)e([+-]?\d+)(?![\w.])")


def terminal_width() -> int:
    """Number of columns of standard output; 0 if it is no terminal."""
    return shutil.get_terminal_size().columns if sys.stdout.isatty() else 0


def shortened(kinds: Sequence[str]) -> list[str]:
    """Lines about kinds of steps; of more than `MOST_KINDS` only the first two and the last one."""
    if len(kinds) <= MOST_KINDS:
        return list(kinds)
    left_out = f"and {len(kinds) - 3:,} more kinds of steps, the last of which:"
    return [*kinds[:2], left_out, kinds[-1]]


def markdown_table(heads: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A table in GitHub Markdown, with escaped cells."""
    lines = [heads, ["---"] * len(heads), *rows]
    return "".join(f"| {' | '.join(map(in_markdown, line))} |\n" for line in lines)


def in_markdown(text: str) -> str:
    """A text in one line, escaped so that Markdown sees no tag, link, code or end of a cell."""
    return " ".join(MARKS.sub(r"\\\g<0>", text).split())


def latex_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()
) -> str:
    """A LaTeX ``tabular`` with booktabs rules, escaped cells, and notes below."""
    lines = [" & ".join(map(_in_latex, row)) + r" \\" for row in (heads, *rows)]
    body = [lines[0], r"\midrule", *lines[1:]]
    if notes:
        wide = rf"\multicolumn{{{len(heads)}}}{{p{{\linewidth}}}}"
        body += [r"\midrule", *(rf"{wide}{{\footnotesize {_in_latex(n)}}} \\" for n in notes)]
    head = rf"\begin{{tabular}}{{{'l' * len(heads)}}}"
    return "\n".join([head, r"\toprule", *body, r"\bottomrule", r"\end{tabular}", ""])


def _in_latex(cell: str) -> str:
    text = "".join(LATEX.get(letter, letter) for letter in " ".join(cell.split()))
    text = text.replace("--", "-{}-")  # keeps two hyphens from becoming a dash
    return SCIENTIFIC.sub(_power, text)


def _power(found: re.Match[str]) -> str:
    """A number such as 2.5e-05 as 2.5 · 10^-5 in LaTeX."""
    factor = "" if found[1] == "1" else rf"{found[1]}\cdot "
    return f"${factor}10^{{{int(found[2])}}}$"


def rendered_page(jinja2: Any, package: str, folder: str, **words: Any) -> str:
    """Render ``page.html.jinja`` of a package's folder with Jinja2; all ``words`` are escaped."""
    environment = jinja2.Environment(
        loader=jinja2.PackageLoader(package, folder),
        autoescape=True,
        undefined=jinja2.StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    return f"{environment.get_template('page.html.jinja').render(**words)}\n"


def html_table(
    heads: Sequence[str], rows: Sequence[Sequence[str]], notes: Sequence[str] = ()
) -> str:
    """An HTML table for notebooks without style sheets or scripts, cells escaped, notes below.

    Without heads the first cell of each row is its head.
    """
    lines = [_row(["th"] * len(heads), heads)] if heads else []
    for row in rows:
        lines.append(_row(["td" if heads else "th", *["td"] * (len(row) - 1)], row))
    below = "".join(f"<p>{_in_html(note)}</p>" for note in notes)
    return f"<table>{''.join(lines)}</table>{below}"


def _row(tags: Sequence[str], cells: Sequence[str]) -> str:
    return f"<tr>{''.join(map(_cell, tags, cells))}</tr>"


def _cell(tag: str, text: str) -> str:
    return f'<{tag} style="text-align:left">{_in_html(text)}</{tag}>'


def _in_html(text: str) -> str:
    return "<br>".join(escape(line) for line in text.splitlines())
