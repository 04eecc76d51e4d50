"""Many steps of Laplace or analytic laws, of one kind or several: sums of losses inverted on lines.

Where hardly any of the tilted mass has losses at the ends of all steps, the transform of the sum
is small before long, and the sums over its nodes are short whatever the number of steps and of
kinds (docs/theory/line).
"""
