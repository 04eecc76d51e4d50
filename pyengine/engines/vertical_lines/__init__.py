"""Compositions of Laplace, analytic, normal and finite steps by inversion on vertical lines.

The transform of the summed loss is a product over the kinds of steps, so the cost hardly depends
on the number of steps.  It decays fast unless much of the tilted mass lies on atoms of all steps
at once; few steps, of which that holds, have deformed lines (docs/theory/line).
"""
