"""Aliases of modules, and modules that are imported on first use."""

from __future__ import annotations

import sys
from collections.abc import Callable, Collection, Mapping
from importlib import import_module
from importlib.machinery import ModuleSpec
from types import ModuleType
from typing import Any

__all__ = ["MOVED", "SameModule", "finder", "spec_of_moved"]

# Public names of modules, also used by pickles, and where the modules are.
MOVED = {
    "analytic": "mechanisms.expressions",
    "answers": "engines.answers",
    "approximations": "api.approximations",
    "audit": "workbench.audit",
    "baselines": "threat.baselines",
    "caches": "_support.caches",
    "certainty": "_support.certainty",
    "composing": "api",
    "conformance": "accounting.conformance",
    "curves": "engines.curves",
    "decimals": "_support.decimals",
    "explore": "workbench.explore",
    "gaussian_dp": "calibration.gaussian_dp",
    "interop": "accounting.interop",
    "interop.distributions": "api.distributions",
    "interop.dp_events": "api.dp_events",
    "interop.histories": "api.histories",
    "interop.profiles": "api.profiles",
    "interop.prvs": "api.prvs",
    "interop.relations": "api.relations",
    "interop.sampled": "api.sampled",
    "kinds": "laws.kinds",
    "linking": "api.linking",
    "markup": "_support.markup",
    "membership": "threat.membership",
    "numba": "api.numba",
    "pairs": "engines.pairs",
    "papers": "workbench.papers",
    "plots": "workbench.plots",
    "priors": "threat.priors",
    "proven": "calibration.proven",
    "relaxed": "engines.relaxed",
    "report": "workbench.report",
    "resilience": "threat.resilience",
    "risks": "threat.risks",
    "runs": "workbench.runs",
    "schemes": "workbench.schemes",
    "search": "calibration.search",
    "serialization": "accounting.serialization",
    "shuffled": "api.shuffled",
    "statement": "workbench.statement",
    "status": "_support.status",
    "tables": "workbench.tables",
    "targets": "calibration.targets",
    "threat_models": "mechanisms.threat_models",
    "typing": "api.typing",
    "verification": "workbench.verification",
}


def finder(
    package: str, names: Mapping[str, str], modules: Collection[str] = ()
) -> Callable[[str], Any]:
    """Return a ``__getattr__`` for a package that imports modules on first use.

    ``names`` maps modules to the names that the package takes from them, separated by spaces;
    ``modules`` are available by their own names.
    """
    places = {name: module for module, own in names.items() for name in own.split()}

    def find(name: str) -> Any:
        if name in modules:
            return import_module(f"{package}.{name}")
        if name not in places:
            raise AttributeError(f"module {package!r} has no attribute {name!r}")
        found = getattr(import_module(f"{package}.{places[name]}"), name)
        setattr(sys.modules[package], name, found)
        return found

    return find


def spec_of_moved(name: str) -> ModuleSpec | None:
    """Spec of a module for an alias such as "pyengine.audit.bands"; None for other names."""
    package, _, known = name.partition(".")
    room, head, rest = MOVED.get(known), known, ""
    if room is None:
        head, _, rest = known.partition(".")
        room = MOVED.get(head)
    if room is None:
        return None
    loader: Any = SameModule(f"{package}.{room}.{rest}" if rest else f"{package}.{room}")
    return ModuleSpec(name, loader)


class SameModule:
    """Loader of a module under a second name: the same object, executed once."""

    def __init__(self, name: str) -> None:
        self.name = name

    def create_module(self, spec: ModuleSpec) -> ModuleType:  # noqa: ARG002 its name is known
        """Import the module; the import system then overwrites its ``__spec__`` by ``spec``."""
        module = import_module(self.name)
        self.spec = module.__spec__
        return module

    def exec_module(self, module: ModuleType) -> None:
        """Restore the module's own ``__spec__``."""
        module.__spec__ = self.spec

    def get_code(self, name: str) -> Any:  # noqa: ARG002
        """Return the code of the module, for ``python -m``."""
        from importlib.util import find_spec

        spec: Any = find_spec(self.name)
        return spec.loader.get_code(self.name)
