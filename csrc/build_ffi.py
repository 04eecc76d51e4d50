"""Build of the extension module ``pyengine._core``: sources, flags and declarations.

``setup.py`` names ``ffibuilder`` below.  The declarations are read from ``pyengine.cdef``; the
compiler checks them against the prototypes of ``pyengine.h``.
"""

import os
import re
import sys
from pathlib import Path

from cffi import FFI

# setuptools wants paths relative to the root of the project, which is where builds run.
SOURCES = [
    "csrc/environment.c",
    "csrc/cpu.c",
    "csrc/normal.c",
    "csrc/doubles.c",
    "csrc/functionals.c",
    "csrc/chebyshev.c",
    "csrc/closed_form.c",
    "csrc/normals.c",
    "csrc/loss_nodes.c",
    "csrc/noise_nodes.c",
    "csrc/strips.c",
    "csrc/contour.c",
    "csrc/contour_rows.c",
    "csrc/node_sums.c",
    "csrc/norm_moments.c",
    "csrc/call_corners.c",
    "csrc/taper.c",
    "csrc/tilted.c",
    "csrc/tilted_lines.c",
    "csrc/tilted_windows.c",
    "csrc/shifted.c",
    "csrc/shifted_height.c",
    "csrc/shifted_nodes.c",
    "csrc/real_nodes.c",
    "csrc/plane_nodes.c",
    "csrc/shifted_values.c",
    "csrc/envelope.c",
    "csrc/certified.c",
    "csrc/mixture_kind.c",
    "csrc/divided.c",
    "csrc/small_losses.c",
    "csrc/pair.c",
    "csrc/spectral.c",
    "csrc/proven.c",
    "csrc/row_bounds.c",
    "csrc/ends.c",
    "csrc/plan.c",
    "csrc/sampling.c",
    "csrc/random_steps.c",
    "csrc/mean_cells.c",
    "csrc/state_cells.c",
    "csrc/lattice.c",
    "csrc/tabulated.c",
    "csrc/sector_cells.c",
    "csrc/sector_group.c",
    "csrc/sector_laws.c",
    "csrc/sector_nodes.c",
    "csrc/sector_panels.c",
    "csrc/sector_pieces.c",
    "csrc/sector_rows.c",
    "csrc/sector_sums.c",
    "csrc/shares.c",
    "csrc/loss_sums.c",
    "csrc/loss_transform.c",
    "csrc/ray_sums.c",
    "csrc/trig_sums.c",
    "csrc/loss_lines.c",
    "csrc/finite_law.c",
    "csrc/laplace_sum.c",
    "csrc/levels.c",
    "csrc/level_search.c",
    "csrc/mixed_law.c",
    "csrc/profile_search.c",
    "csrc/gauss.c",
    "csrc/step_nodes.c",
    "csrc/density_pieces.c",
    "csrc/panels.c",
    "csrc/allocation.c",
    "csrc/epoch_rows.c",
]
# The kernels behind pyengine._ufuncs, which setup.py builds with the same flags.
UFUNC_SOURCES = [
    "csrc/python/ufuncs.c",
    "csrc/environment.c",
    "csrc/ncx2_core.c",
    "csrc/ncx2.c",
    "csrc/ncx2_quantile.c",
    "csrc/ncx2_parameter.c",
    "csrc/marcum.c",
    "csrc/normal.c",
]
# libpyengine, which programs in C link: the same objects, and one of its own.
PUBLIC_SOURCES = ["csrc/public.c", *(name for name in UFUNC_SOURCES if "python" not in name)]
# pyengine._objects, which guards functions of Python and measures objects.
OBJECTS_SOURCES = ["csrc/python/objects.c", "csrc/environment.c"]
HEADERS = [
    "csrc/environment.h",
    "csrc/pyengine.h",
    "csrc/types.h",
    "csrc/functions.h",
    "csrc/contours.h",
    "csrc/kinds.h",
    "csrc/laws.h",
    "csrc/answers.h",
    "csrc/pyengine.cdef",
    "csrc/simd.h",
    "csrc/arithmetic.h",
    "csrc/arithmetic_lanes.h",
    "csrc/elementary.h",
    "csrc/doubles.h",
    "csrc/ncx2_core.h",
    "csrc/ncx2_nodes.h",
    "csrc/lane_trig.h",
    "csrc/lane_log.h",
    "csrc/normal.h",
    "csrc/loss_nodes.h",
    "csrc/noise_nodes.h",
    "csrc/normals.h",
    "csrc/strips.h",
    "csrc/node_sums.h",
    "csrc/pair.h",
    "csrc/proven.h",
    "csrc/spectral.h",
    "csrc/tilted.h",
    "csrc/tilted_cells.h",
    "csrc/sector.h",
    "csrc/sector_group.h",
    "csrc/shifted.h",
    "csrc/shifted_nodes.h",
    "csrc/wide_nodes.h",
    "csrc/taper.h",
    "csrc/certified_parts.h",
    "csrc/divided.h",
    "csrc/certified.h",
    "csrc/tabulated.h",
    "csrc/allocation.h",
    "csrc/convolved.h",
    "csrc/panels.h",
]
depends = HEADERS

# No -ffast-math: the kernels rely on the order of operations.  No -march=native: a wheel runs on
# machines other than the one that built it.  No contraction: the same bits on every machine.
# No debug information, which Python's own flags may ask for: it doubles the compiler's time.
FLAGS = [
    "-O3",
    "-std=c11",
    "-ffp-contract=off",
    "-fno-math-errno",
    "-fno-trapping-math",
    "-g0",
]

if sys.platform == "win32":
    compile_args, libraries = ["/O2", "/std:c11", "/fp:precise"], []
else:
    # PYENGINE_CFLAGS is for the sanitizer and warning builds of the developers.
    compile_args, libraries = FLAGS + os.environ.get("PYENGINE_CFLAGS", "").split(), ["m"]

DECLARED = (Path(__file__).parent / "pyengine.cdef").read_text(encoding="utf-8")
PROTOTYPE = re.compile(r"^(\w[\w ]*?[ *]+)(pe_\w+)\(([^()]*)\);$", re.MULTILINE)


def guarded(kind: str, name: str, parameters: str) -> str:
    """Return C by which every call of a function runs in the default environment."""
    names = [] if parameters == "void" else re.findall(r"(\w+)(?:,|$)", parameters)
    call = f"{name}({', '.join(names)})"
    keep, give = ("", "") if kind == "void " else (f"{kind}found = ", "    return found;\n")
    return (
        f"static {kind}guarded_{name}({parameters}) {{\n"
        "    pe_environment host;\n"
        "    pe_environment_enter(&host);\n"
        f"    {keep}{call};\n"
        "    pe_environment_leave(&host);\n"
        f"{give}}}\n#define {name} guarded_{name}\n"
    )


ffibuilder = FFI()
ffibuilder.cdef(DECLARED)
ffibuilder.set_source(
    "pyengine._core",
    '#include "environment.h"\n#include "pyengine.h"\n'
    + "".join(guarded(*found) for found in PROTOTYPE.findall(DECLARED)),
    sources=SOURCES,
    depends=HEADERS,
    include_dirs=["csrc"],
    libraries=libraries,
    extra_compile_args=compile_args,
)
