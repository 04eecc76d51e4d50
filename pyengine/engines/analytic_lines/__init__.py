"""Vertical lines for steps with analytic densities, with errors bounded in ball arithmetic."""
