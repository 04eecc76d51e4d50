"""Gaussian steps on Poisson samples: contours, nodes, transforms and inversion, all enclosed."""
