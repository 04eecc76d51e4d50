"""Writing privacy reports to files, and reading their numbers."""

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
    """Write a report as one HTML page; if that fails, an older file stays intact.

    Parameters
    ----------
    report : PrivacyReport
        The report.
    path : str or path-like
        The file.

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
    """Extract the numbers of a page, in the form of `PrivacyReport.as_object`.

    Parameters
    ----------
    page : str
        HTML text of the page.

    Returns
    -------
    dict
        The entries ``mechanism`` and ``answer``, converted to JSON, can be read by
        `pyengine.from_json`.

    Raises
    ------
    ValueError
        If the text is not a page written by this package.
    """
    found = DATA.search(page)
    if found is None:
        raise ValueError("page must be a privacy report of pyengine: it holds no data")
    content: dict[str, Any] = toml.json_loads(found[1])
    return content
