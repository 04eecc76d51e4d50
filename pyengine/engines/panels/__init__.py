"""Equal Laplace steps, on Poisson samples or not: laws that are polynomials on panels.

The loss of a step has an atom at either end of its support and an analytic density between them, so
the loss of N steps has atoms at N + 1 places and a density that is analytic between them
(docs/theory/panels).
"""
