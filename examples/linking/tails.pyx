# cython: language_level=3, boundscheck=False
"""Marcum's Q at many points, in a loop that needs no Python and no lock."""

cdef extern from "libpyengine.h":
    double pyengine_marcum_q(double order, double a, double b) noexcept nogil
    bint PYENGINE_IS_COMPATIBLE() nogil

if not PYENGINE_IS_COMPATIBLE():
    raise ImportError("libpyengine is older than the header")


def marcum_q(double order, double a, double[:] b, double[:] out):
    """Put Q_order(a, b) into ``out``."""
    if out.shape[0] != b.shape[0]:
        raise ValueError("b and out must have the same length")
    cdef Py_ssize_t i
    with nogil:
        for i in range(b.shape[0]):
            out[i] = pyengine_marcum_q(order, a, b[i])
