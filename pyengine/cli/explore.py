"""``pyengine explore``: a page with sliders, served on this machine only."""

from __future__ import annotations

import argparse
import os
from pathlib import Path

from pyengine._support import checks
from pyengine.cli import grammar
from pyengine.cli.errors import CommandError, require
from pyengine.cli.parsers import command, option, switch

__all__ = ["register"]

DESCRIPTION = """\
Serve a page to this machine: sliders for noise, batches, epochs, neighbours and adversary, several
runs beside each other, figures and curves that follow while a slider moves, and a link that keeps
all of it. Open the address that is printed; Ctrl-C ends the server."""
EPILOG = """\
examples:
  pyengine explore
  pyengine explore run.toml                  begin with the run of a file, or up to four of a grid
  pyengine explore --browser
  pyengine explore --port 0 --seconds 30     any free port; slow answers may take half a minute
"""


def run(arguments: argparse.Namespace) -> int:
    """Serve until interrupted."""
    require("the page", "explore", "jinja2", "starlette", "uvicorn")
    from pyengine.workbench.explore import explore
    from pyengine.workbench.explore.link import link

    runs = ""
    if arguments.run_file is not None:
        file = grammar.read_run_file(arguments.run_file)
        try:
            runs = link(file)
        except ValueError as error:
            raise CommandError(f"{file.source}: {error}") from None

    def ready(address: str) -> None:
        address += runs
        print(f"{address}\nOpen it in a browser of this machine; Ctrl-C ends.", flush=True)
        if arguments.browser:
            import webbrowser

            webbrowser.open(address)

    try:
        port = checks.count("--port", arguments.port)
        seconds = checks.positive("--seconds", arguments.seconds)
        explore(port, seconds=float(seconds), ready=ready)
    except ValueError as error:
        raise CommandError(str(error)) from None
    except OSError as error:
        hint = "; give another --port, or 0 for any that is free"
        what = os.strerror(error.errno) if error.errno else error
        raise CommandError(f"port {arguments.port}: {what}{hint}") from None
    print("ended")
    return 0


register = command(
    "explore",
    "an interactive page about runs, for this machine only",
    DESCRIPTION,
    EPILOG,
    run,
    option("run_file", "RUN", "a file with runs to begin with", nargs="?", type=Path),
    option("--port", "N", "port; 0 for any free one (8765)", default="8765"),
    option("--seconds", "S", "longest time for one answer (10)", default="10"),
    switch("--browser", "open the address in the browser"),
)
