"""Compositions of steps of several kinds."""
