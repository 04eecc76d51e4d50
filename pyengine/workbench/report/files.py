"""Privacy reports as files."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import TYPE_CHECKING, Any

from pyengine._support import toml
from pyengine.workbench.tables.files import replace_all

if TYPE_CHECKING:
    from pyengine.workbench.report.content import PrivacyReport

__all__ = ["report_data", "save_report"]

DATA = re.compile(r'<script type="application/json" id="pyengine-report">(.*?)</script>', re.S)


def save_report(report: PrivacyReport, path: str | os.PathLike[str]) -> None:
    """Write a report as one page of HTML; an older file stays whole if that fails.

    Parameters
    ----------
    report : PrivacyReport
        What to write.
    path : str or path-like
        Where.

    Raises
    ------
    ValueError
        If ``path`` is no path.
    OSError
        If the file cannot be written.
    """
    if not isinstance(path, str | os.PathLike):
        raise ValueError(f"path must be a string or a path, got {path!r}")
    target = Path(path)
    replace_all(target.parent, {target.name: report.html().encode()})


def report_data(page: str) -> dict[str, Any]:
    """The numbers of a page, as `PrivacyReport.as_object` gave them.

    Parameters
    ----------
    page : str
        Text of the page.

    Returns
    -------
    dict
        Its entries ``mechanism`` and ``answer``, as JSON again, are what `pyengine.from_json`
        reads.

    Raises
    ------
    ValueError
        If the text is no page of this package.
    """
    found = DATA.search(page)
    if found is None:
        raise ValueError("page must be a privacy report of pyengine: it holds no data")
    content: dict[str, Any] = toml.json_loads(found[1])
    return content
