"""Gaussian steps on Poisson samples: transforms and their inversion, with every error enclosed."""
