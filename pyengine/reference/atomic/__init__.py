"""Laws with atoms: finitely many losses, Laplace steps, and their sums."""
