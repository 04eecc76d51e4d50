"""Layout of help texts for terminals of any width."""

from __future__ import annotations

import argparse
import re
import textwrap
from collections.abc import Iterator

__all__ = ["HelpFormatter", "laid_out"]

LEAST = 20  # least width of the column of explanations, in characters
GAP = re.compile(r"(?<=\S)(?: {2,})(?=\S)")
CONTINUED = re.compile(r" \\\n *")
QUOTED = re.compile(r'"[^"]*"')
OPTION = re.compile(r'(?<= )(--?[a-z-]+) (?=[^\s"-])')  # beside its value
HELD = "\0"  # stands for a space at which no line may break


class HelpFormatter(argparse.HelpFormatter):
    """Lay out descriptions and examples for the width of the terminal."""

    def _fill_text(self, text: str, width: int, indent: str) -> str:  # noqa: ARG002 - argparse's
        return laid_out(text, width)


def laid_out(text: str, width: int) -> str:
    """Break lines of a text that are longer than ``width``; longer words are not broken.

    Unindented paragraphs are refilled if a line is too long.  Indented lines are either commands,
    which are continued with a backslash, but not inside quotes that fit a line, or words followed
    by two spaces and an explanation.
    """
    blocks = re.split(r"(\n\s*\n)", text)
    return "".join(block if not block.strip() else _block(block, width) for block in blocks)


def _block(block: str, width: int) -> str:
    lines = block.split("\n")
    if max(map(len, lines)) <= width:
        return block
    lines = CONTINUED.sub(" ", block).split("\n")
    return "\n".join(line for group in _groups(lines) for line in _lines(group, width))


def _groups(lines: list[str]) -> Iterator[str]:
    """Join each paragraph into one line; indented lines are unchanged."""
    paragraph: list[str] = []
    for line in lines:
        # a line that ends with a colon is a heading, unless it is inside a paragraph
        if not line.startswith(" ") and (paragraph or not line.endswith(":")):
            paragraph.append(line)
            continue
        if paragraph:
            yield " ".join(paragraph)
            paragraph = []
        yield line
    if paragraph:
        yield " ".join(paragraph)


def _lines(line: str, width: int) -> list[str]:
    if len(line) <= width:
        return [line]
    body = line.lstrip(" ")
    indent = " " * (len(line) - len(body))
    gap = GAP.search(line)
    if gap is not None:
        head, rest = line[: gap.start()], line[gap.end() :]
        column = gap.end()
        if width - column < LEAST:  # the explanation goes below
            column = len(indent) + 4
            below = _wrapped(rest, width, " " * column, " " * column)
            return [*_lines(head, width), *below]
        first, *others = _wrapped(rest, width, " " * column, " " * column)
        return [head + first[len(head) :], *others]
    if indent and body.startswith(("pyengine ", "--")):
        room = width - len(indent) - 6

        def hold(word: re.Match[str]) -> str:
            return word[0].replace(" ", HELD) if len(word[0]) <= room else word[0]

        held = QUOTED.sub(hold, body)
        held = OPTION.sub(rf"\1{HELD}", held)
        found = _wrapped(held, width - 2, indent, indent + "    ")
        found = [part + " \\" for part in found[:-1]] + found[-1:]
        return [part.replace(HELD, " ") for part in found]
    return _wrapped(body, width, indent, indent)


def _wrapped(text: str, width: int, first: str, others: str) -> list[str]:
    return textwrap.wrap(
        text,
        width,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )
