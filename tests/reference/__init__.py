"""Arbitrary-precision reference values for DP-SGD, independent of pyengine.

Nothing here imports pyengine. The package draws points from the whole domain (noise multiplier
0.2 to 100, sampling probability 1e-7 to 1, 1 to 1e8 steps, tails down to 1e-300, several phases),
computes six quantities of each in ball arithmetic by two runs, and keeps the digits on which the
runs agree. One transform serves up to three thresholds. Needed are python-flint and numpy. From
the root of the repository:

    python -m tests.reference generate --seed 2     # tests/data/dp_sgd_random.json, 1 s a draw
    python -m tests.reference generate --resume     # go on after an interruption
    python -m tests.reference retry                 # try the recorded failures again
    python -m tests.reference check                 # published values, nested integration

Modules
-------
model
    Exact inputs, the six quantities, and the residues that connect them.
closed_form
    One step, or p = 1: enclosures proven by ball arithmetic.
line
    Method 1: vertical line, trapezoidal (Poisson summation).
hyperbola
    Method 2: hyperbola, with the one-step transform on rotated lines in log Y.
nested
    Two and three steps by direct integration, for checks.
saddle
    Double-precision saddle points that choose thresholds and nodes.
sampling, solve, generate, store, check
    Draws, agreement of two runs, the loop, the file, the cross-checks.
"""
