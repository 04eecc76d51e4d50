"""Names in the main branches of host libraries that are new to us.

Sources are only read; nothing is imported or installed. It looks for classes and functions in the
files below whose names say that they draw batches, add noise or account for both. An event is known
if `from_dp_event` accepts it; names of other kinds are added here once docs/hosts.md says what
pyengine does with them, or once they need no support.

    python tools/hosts_main.py DIRECTORY

DIRECTORY has checkouts under the names of the repositories; the workflow `hosts` makes them once a
week. Exit code 1 means that a name is new, or that a file or all names of a kind are gone.
"""

from __future__ import annotations

import argparse
import ast
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from pyengine.accounting.interop.flower import ADAPTIVE, FIXED
from pyengine.api.dp_events import _MAKERS
from pyengine.api.relations import ADJACENCY

STRUCTURE = (
    *("Composed", "DiscreteGaussian", "NoOp", "PoissonSampled", "SampledWithoutReplacement"),
    "SelfComposed",
)
EVENTS = {*_MAKERS, *(f"{word}DpEvent" for word in STRUCTURE)}


class Place(NamedTuple):
    """Names of one kind in the sources of a host: known names, and where to look for new ones.

    Matching names, in matching files, are members of the class inside, or of the module.
    """

    repository: str
    files: str
    names: str
    known: set[str]
    inside: str = ""


DP_ACCOUNTING = "python/dp_accounting/dp_accounting"
PLACES = (
    Place(
        "google/differential-privacy",
        f"{DP_ACCOUNTING}/dp_event.py",
        r"\w+DpEvent$",
        {*EVENTS, "UnsupportedDpEvent"},
    ),
    Place(
        "google/differential-privacy",
        f"{DP_ACCOUNTING}/privacy_accountant.py",
        r"[A-Z_]+$",
        set(ADJACENCY),
        "NeighboringRelation",
    ),
    Place(
        "google-deepmind/jax_privacy",
        "jax_privacy/accounting.py",
        r"[a-z]\w*_event$",
        {
            *("dpsgd_event", "fixed_dpsgd_event", "truncated_dpsgd_event"),
            *("amplified_bandmf_event", "truncated_amplified_bandmf_event"),
        },
    ),
    Place(
        "google-deepmind/jax_privacy",
        "jax_privacy/batch_selection.py",
        r"[A-Z]\w+(Sampling|SelectionStrategy)$",
        {
            *("CyclicPoissonSampling", "BallsInBinsSampling", "RandomAllocationSampling"),
            *("FixedBatchSampling", "BMinSepSampling"),
            *("BatchSelectionStrategy", "UserSelectionStrategy"),
        },
    ),
    Place(
        "pytorch/opacus",
        "opacus/accountants/*.py",
        r"\w+Accountant$",
        {"IAccountant", "GaussianAccountant", "PRVAccountant", "RDPAccountant"},
    ),
    Place(
        "pytorch/opacus",
        "opacus/schedulers/*.py",
        r"[A-Z]\w+(Noise|GradClip)$",
        {
            f"{shape}{what}"
            for shape in ("Exponential", "Lambda", "Step")
            for what in ("Noise", "GradClip")
        },
    ),
    Place(
        "pytorch/opacus",
        "opacus/**/*.py",
        r"[A-Z]\w*(Sampler|DataLoader)$",
        {
            *("DPDataLoader", "BatchSplittingSampler"),
            *("UniformWithReplacementSampler", "DistributedUniformWithReplacementSampler"),
        },
    ),
    Place(
        "apple/pfl-research",
        "pfl/privacy/*.py",
        r"\w+Accountant$",
        {
            *("PrivacyAccountant", "JointPrivacyAccountant"),
            *("PLDPrivacyAccountant", "PRVPrivacyAccountant", "RDPPrivacyAccountant"),
        },
    ),
    Place(
        "adap/flower",
        "framework/py/flwr/server*/strategy/*.py",
        r"(DifferentialPrivacy\w+|DPFedAvg\w+)$",
        {*FIXED, *ADAPTIVE, "DPFedAvgAdaptive", "DPFedAvgFixed"},
    ),
)


def defined(file: Path, inside: str) -> Iterator[str]:
    """Names of the classes and functions of a module, or of what a class assigns."""
    tree = ast.parse(file.read_text(encoding="utf-8"))
    for node in tree.body:
        if isinstance(node, ast.ClassDef | ast.FunctionDef) and not inside:
            yield node.name
        if isinstance(node, ast.ClassDef) and node.name == inside:
            targets = (line.targets for line in node.body if isinstance(line, ast.Assign))
            yield from (x.id for each in targets for x in each if isinstance(x, ast.Name))


def differences(directory: Path) -> list[str]:
    """Return what is new and what is gone in checkouts of hosts in a directory, a line each."""
    lines = []
    for place in PLACES:
        root = directory / place.repository.partition("/")[2]
        files = [x for x in sorted(root.glob(place.files)) if not x.stem.endswith("_test")]
        where = f"{place.repository}, {place.files}"
        found = {
            name: file.relative_to(root)
            for file in files
            for name in defined(file, place.inside)
            if re.match(place.names, name)
        }
        if not found:
            lines.append(f"{where}: nothing of the names {place.names}")
        for name in sorted(set(found) - place.known):
            lines.append(f"{place.repository}, {found[name]}: {name} is new")
    return lines


def main(arguments: list[str] | None = None) -> int:
    """Print the differences; 1 if there are any."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("directory", type=Path, help="checkouts of the hosts")
    lines = differences(parser.parse_args(arguments).directory)
    print("\n".join(lines) or "nothing is new")
    return 1 if lines else 0


if __name__ == "__main__":
    sys.exit(main())
