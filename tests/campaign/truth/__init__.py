"""Independent truth: laws of privacy losses in ball arithmetic, and the four questions on them.

Nothing here imports pyengine. Every law gives the masses of A and of B above and below a threshold
of the loss log dB/dA, and the questions are answered from such masses alone.
"""
