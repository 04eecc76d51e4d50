"""The README as an index shows it: alone, where links to other files lead nowhere."""

import re
from pathlib import Path

RELATIVE = re.compile(r"\[([^\]]+)\]\((?!https?://|#|mailto:)([^)\s]+)\)")


def long_description(readme: Path, home: str | None) -> str:
    """Text for the metadata of archive and wheel.

    Parameters
    ----------
    readme : Path
        In Markdown.
    home : str or None
        Address of the source, below which the files of the project are found; links to them become
        absolute.  Without one they become plain text.
    """
    text = readme.read_text(encoding="utf-8")
    if home is None:
        return RELATIVE.sub(r"\1", text)
    return RELATIVE.sub(rf"[\1]({home.rstrip('/')}/\2)", text)
