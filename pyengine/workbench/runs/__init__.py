"""Run files: one grammar for Python, the command line, tables, reports and pictures."""

from pyengine.workbench.runs.files import RunFile, load_run, read_runs
from pyengine.workbench.runs.grammar import NamedRun, Phase

__all__ = ["NamedRun", "Phase", "RunFile", "load_run", "read_runs"]
