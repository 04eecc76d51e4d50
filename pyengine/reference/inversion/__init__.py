"""Laws that are known by their transform, and their inversion on vertical lines."""
