"""Runs questions, each in a child of its own beside a child that only prepares; see c/driver.c.

    python driver.py questions.py [NAME ...]

The file defines ``stages()``, a generator.  What it yields are the questions of a stage: a name,
and what to do before counting and what to count, both without arguments.  What it does before, such
as imports, all children of the stage find done.
"""

import gc
import os
import runpy
import sys
import traceback


def child(prepare, run):
    """Return the id of a child that has prepared, and called ``run`` unless that is None."""
    pid = os.fork()
    if pid == 0:
        status = 1
        try:
            prepare()
            gc.collect()
            gc.disable()  # whose work depends on earlier allocations of the interpreter
            if run is not None:
                run()
            status = 0
        except BaseException:
            traceback.print_exc()
        finally:
            os._exit(status)  # without the interpreter's own shutdown
    _, status = os.waitpid(pid, 0)
    return pid, status


def measure(name, prepare, run):
    """Print the ids of the processes without and with the work."""
    without, failed = child(prepare, None)
    if not failed:
        with_work, failed = child(prepare, run)
    print(name, *(("failed with status", failed) if failed else (without, with_work)), flush=True)


def nothing():
    """Do nothing."""


def main(path, *names):
    """Measure all or the named questions of a file."""
    for questions in runpy.run_path(path)["stages"]():
        for _ in range(2):  # the first fork of a stage may cost more than others
            measure("nothing", nothing, nothing)
        for name, (prepare, run) in questions.items():
            if name in names or not names:
                measure(name, prepare, run)


main(*sys.argv[1:])
os._exit(0)
