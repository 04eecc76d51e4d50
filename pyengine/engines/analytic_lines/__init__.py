"""Steps given by analytic densities: vertical lines whose errors are bounded in ball arithmetic."""
