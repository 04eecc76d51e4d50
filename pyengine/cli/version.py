"""``pyengine --version``: the version, and the commit if it is known."""

from __future__ import annotations

import argparse
import json
import subprocess
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path

import pyengine._version as own

__all__ = ["ShowVersion", "commit"]

ROOT = Path(own.__file__).parents[1]
DIGITS = 12


class ShowVersion(argparse.Action):
    """Prints the version and exits; the commit is determined only then."""

    def __call__(self, parser: argparse.ArgumentParser, *_: object) -> None:
        """Print, and exit."""
        known = commit()
        print(f"pyengine {own.__version__}{f' (commit {known})' if known else ''}")
        parser.exit()


def commit(root: Path = ROOT) -> str | None:
    """Commit that the package comes from, or None where nothing says it.

    A checkout says its commit, with "-dirty" after it where files were changed.  Elsewhere it is
    that which pip has noted when it installed from a repository.
    """
    if (root / ".git").exists():
        words = ["describe", "--always", "--dirty", "--exclude=*", f"--abbrev={DIGITS}"]
        try:
            run = subprocess.run(
                ["git", "-C", str(root), *words], capture_output=True, text=True, timeout=20
            )
        except (OSError, subprocess.TimeoutExpired):
            return None
        return run.stdout.strip() or None
    try:
        noted = json.loads(distribution(own.DISTRIBUTION).read_text("direct_url.json") or "{}")
    except (PackageNotFoundError, ValueError):
        return None
    found = noted.get("vcs_info", {}).get("commit_id")
    return str(found)[:DIGITS] if found else None
