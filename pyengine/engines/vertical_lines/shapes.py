"""What lines ask of the shape of a step, whatever it is made of.

Functions that are registered for each kind of shape say it: `cumulants_of`, `expected_nodes`,
`tilted_step`, `fall_of` and `log_at_ends`.  Each raises what is here for others.
"""

from __future__ import annotations

__all__ = ["no_lines"]


def no_lines(shape: object, *_: object) -> TypeError:
    """Return what is raised for a shape that a function of lines is not registered for."""
    return TypeError(f"no lines are known for {shape!r}")
