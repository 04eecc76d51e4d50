"""Figures as SVG elements of an HTML page, in the page's fonts and (light or dark) colours."""

from __future__ import annotations

import io
import re
from html import escape
from typing import TYPE_CHECKING, Any

from pyengine._support.extras import needed
from pyengine.workbench.plots.style import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["VARIABLES", "inline_svg"]

# replacements: remove metadata, the style sheet (it would apply to the whole page), identifiers
# that nothing refers to, and fonts
TIDIED = (
    (r"<metadata>.*?</metadata>", ""),
    (r"<defs>\s*<style.*?</defs>", ""),
    (r' id="(?![pm][0-9a-f]{10}")[^"]*"', ""),
    ("xlink:href", "href"),
    (r"(?<=[\" ])font-family: [^;\"]*;? ?", ""),
)
# CSS custom properties that the page sets, by the colours of the figures
VARIABLES = {
    **{colour.lower(): f"var(--series-{index})" for index, colour in enumerate(COLOURS)},
    "#000000": "var(--ink)",
    "#808080": "var(--muted)",
    "#e6e6e6": "var(--grid)",
    "#ffffff": "var(--page)",
}


def inline_svg(figure: Figure, name: str, title: str, description: str) -> str:
    """Text of an ``<svg>`` element that fits its container and loads no other files.

    Equal figures give equal text.  Identifiers start with ``name``, of letters, digits and hyphens.
    Colours in `VARIABLES` become ``var(--series-0)``, ``var(--ink)`` and so on; others stay.  Title
    and description are for screen readers.
    """
    with needed("a picture", "plots"):
        from matplotlib import rc_context

    buffer = io.BytesIO()
    # one font, for measuring: searching the fonts of the default list takes most of the time
    words: dict[Any, Any] = {"svg.fonttype": "none", "svg.hashsalt": name}
    with rc_context({**words, "font.sans-serif": ["DejaVu Sans"]}):
        figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    head, body = buffer.getvalue().decode().split("<svg", 1)[1].split(">", 1)
    for pattern, instead in TIDIED:
        body = re.sub(pattern, instead, body, flags=re.S)
    body = re.sub(r' style="[^"]*"', _styled, body)
    box = re.search(r'viewBox="[^"]*"', head)
    assert box is not None
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" {box[0]} role="img" '
        f'aria-labelledby="{name}-title {name}-description">'
        f'<title id="{name}-title">{escape(title, quote=False)}</title>'
        f'<desc id="{name}-description">{escape(description, quote=False)}</desc>{body.rstrip()}'
    )


def _styled(found: re.Match[str]) -> str:
    """The style attribute with the colours of the page."""
    return re.sub(r"#[0-9a-f]{6}", lambda c: VARIABLES.get(c[0], c[0]), found[0])
