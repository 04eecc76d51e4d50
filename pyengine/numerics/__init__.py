"""Numerical methods that several rooms use, each written once.

Nothing here knows of mechanisms or privacy: brackets and valleys, hulls of points, units of
rounding, exact numbers beside doubles, and the logarithm of a sampled ratio.
"""
