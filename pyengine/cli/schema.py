"""``pyengine schema``: the JSON schema of run files."""

from __future__ import annotations

import argparse
import json

from pyengine.cli.parsers import command

__all__ = ["register"]

DESCRIPTION = """\
Print the JSON schema of run files. With it editors complete and check them: TOML (taplo, Even
Better TOML), YAML (yaml-language-server) and JSON."""
EPILOG = """\
examples:
  pyengine schema > run.schema.json

where an editor looks for it:

  first line of run.toml  #:schema ./run.schema.json
  first line of run.yaml  # yaml-language-server: $schema=./run.schema.json
  a key of run.json       "$schema": "./run.schema.json\""""


def run(_: argparse.Namespace) -> int:
    """Print the schema."""
    from pyengine.workbench.runs.schema import run_schema

    print(json.dumps(run_schema(), indent=2, ensure_ascii=False))
    return 0


register = command("schema", "the JSON schema of run files, for editors", DESCRIPTION, EPILOG, run)
