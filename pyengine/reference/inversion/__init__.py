"""Inversion on vertical lines, of laws that are known by their transform."""
