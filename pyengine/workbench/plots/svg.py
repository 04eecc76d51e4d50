"""Figures as SVG inside a page: its fonts, its colours by day and by night, and no metadata."""

from __future__ import annotations

import io
import re
from typing import TYPE_CHECKING, Any
from xml.etree import ElementTree

from pyengine._support.extras import needed
from pyengine.workbench.plots.style import COLOURS

if TYPE_CHECKING:
    from matplotlib.figure import Figure

__all__ = ["VARIABLES", "inline_svg"]

SVG, XLINK = "{http://www.w3.org/2000/svg}", "{http://www.w3.org/1999/xlink}"
# Custom properties of CSS that the page sets, by the colours that figures are drawn in.
VARIABLES = {
    **{colour.lower(): f"--series-{index}" for index, colour in enumerate(COLOURS)},
    "#000000": "--ink",
    "#808080": "--muted",
    "#e6e6e6": "--grid",
    "#ffffff": "--page",
}


def inline_svg(figure: Figure, name: str, title: str, description: str) -> str:
    """Text of an ``<svg>`` element that scales with its place and loads nothing.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
        What to write.
    name : str
        Letters, figures and hyphens; all its identifiers start with it.
    title, description : str
        For those who do not see the picture.

    Returns
    -------
    str
        The same for the same figure.  Colours are ``var(--series-0)``, ``var(--ink)`` and so on,
        see `VARIABLES`; other colours stay.
    """
    with needed("a picture", "plots"):
        from matplotlib import rc_context

    buffer = io.BytesIO()
    # one font, for sizes: looking for those of the default list takes most of the time
    words: dict[Any, Any] = {
        "svg.fonttype": "none",
        "svg.hashsalt": name,
        "font.sans-serif": ["DejaVu Sans"],
    }
    with rc_context(words):
        figure.savefig(buffer, format="svg", metadata={"Date": None}, transparent=True)
    root = ElementTree.fromstring(buffer.getvalue())
    for useless in (f"{SVG}metadata", f"{SVG}defs"):
        for element in root.findall(useless):
            # the definitions at the top are a style sheet, which would hold for the whole page
            if element.find(f"{SVG}style") is not None or useless.endswith("metadata"):
                root.remove(element)
    _tidy(root, name)
    for key in ("width", "height", "version"):
        root.attrib.pop(key, None)
    root.set("role", "img")
    root.set("aria-labelledby", f"{name}-title {name}-description")
    for place, (tag, text) in enumerate((("title", title), ("desc", description))):
        element = ElementTree.Element(f"{SVG}{tag}")
        element.text = text
        element.set("id", f"{name}-{'title' if tag == 'title' else 'description'}")
        root.insert(place, element)
    ElementTree.register_namespace("", SVG.strip("{}"))
    return ElementTree.tostring(root, encoding="unicode")


def _tidy(root: ElementTree.Element, name: str) -> None:
    """Prefix identifiers that something refers to and drop the others; let the page say fonts."""
    named = set(re.findall(r"#([\w-]+)", " ".join(_values(root))))
    for element in root.iter():
        for key, value in list(element.attrib.items()):
            if key == "id":
                del element.attrib[key]
                if value in named:
                    element.set("id", f"{name}-{value}")
            elif key == f"{XLINK}href":
                del element.attrib[key]
                element.set("href", f"#{name}-{value.removeprefix('#')}")
            elif key == "style":
                element.set("style", _styled(value))
            elif key == "clip-path":
                element.set(key, value.replace("url(#", f"url(#{name}-"))


def _values(root: ElementTree.Element) -> list[str]:
    """Attributes that may refer to identifiers."""
    keys = (f"{XLINK}href", "clip-path")
    return [element.attrib[key] for element in root.iter() for key in keys if key in element.attrib]


def _styled(text: str) -> str:
    kept = [part for part in text.split("; ") if not part.startswith("font-family")]
    return re.sub(r"#[0-9a-fA-F]{6}", _variable, "; ".join(kept))


def _variable(found: re.Match[str]) -> str:
    colour = found[0].lower()
    return f"var({VARIABLES[colour]})" if colour in VARIABLES else colour
