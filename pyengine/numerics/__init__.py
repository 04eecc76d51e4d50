"""Numerical methods that several subpackages use.

Nothing here imports mechanisms: root brackets and minima, hulls of points, units of rounding, exact
numbers and pairs of doubles, elementary functions, and bounds that need no mechanism.
"""
