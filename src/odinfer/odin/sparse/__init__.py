"""ODIN for many states that are each coupled to a few.

`jacobian.py` finds which equation depends on what, `risk.py` is the risk with shared operators,
`conjugate_gradients.py` and `preconditioner.py` compute its steps, `engine.py` is what a fit uses.
"""
