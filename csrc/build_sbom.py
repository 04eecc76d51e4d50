"""The software bill of materials of a wheel (PEP 770): what of others is compiled into its modules.

CycloneDX 1.6, with neither a time nor a random number: the same build writes the same bytes.
"""

import json
from importlib.metadata import metadata
from pathlib import Path
from typing import Any

# What it is of each that ends up in the modules.
COMPILED_IN = {
    "cffi": "wrappers of pyengine._core, and the reader of declarations behind them",
    "numpy": "the functions of its headers by which pyengine._ufuncs finds NumPy",
}


def write_sbom(folder: Path, name: str, version: str) -> Path:
    """Write the bill of a wheel into the folder ``sboms`` of its metadata.

    Parameters
    ----------
    folder : Path
        ``.dist-info`` of the wheel that is built.
    name, version : str
        Of the package.
    """
    path = folder / "sboms" / f"{name}.cdx.json"
    path.parent.mkdir(parents=True, exist_ok=True)
    text = json.dumps(bill(name, version), indent=2, ensure_ascii=False)
    path.write_text(text + "\n", encoding="utf-8")
    return path


def bill(name: str, version: str) -> dict[str, Any]:
    """Bill of materials of the package, as an object for JSON."""
    own = f"pkg:pypi/{name}@{version}"
    parts = [_component(part, what) for part, what in COMPILED_IN.items()]
    tools = [{"type": "application", **_known("setuptools")}]
    return {
        "$schema": "http://cyclonedx.org/schema/bom-1.6.schema.json",
        "bomFormat": "CycloneDX",
        "specVersion": "1.6",
        "version": 1,
        "metadata": {
            "lifecycles": [{"phase": "build"}],
            "tools": {"components": tools},
            "component": {
                "type": "library",
                "bom-ref": own,
                "name": name,
                "version": version,
                "purl": own,
                "licenses": [{"expression": "Apache-2.0"}],
            },
        },
        "components": parts,
        "dependencies": [
            {"ref": own, "dependsOn": [part["bom-ref"] for part in parts]},
            *({"ref": part["bom-ref"]} for part in parts),
        ],
    }


def _component(name: str, what: str) -> dict[str, Any]:
    """What is compiled in of a package that the build requires."""
    known = _known(name)
    licence = metadata(name).get("License-Expression")
    return {
        "type": "library",
        "bom-ref": known["purl"],
        **known,
        "description": what,
        **({"licenses": [{"expression": licence}]} if licence else {}),
    }


def _known(name: str) -> dict[str, str]:
    version = metadata(name)["Version"]
    return {"name": name, "version": version, "purl": f"pkg:pypi/{name}@{version}"}
