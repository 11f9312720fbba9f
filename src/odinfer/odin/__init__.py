"""Step 2 of ODIN: minimise the risk that matches slopes of the smoothed curves with the equations.

`risk.py` and `gamma.py` are the paper's, `gauss_newton.py` and `lbfgsb.py` the optimisers, `startpoints.py` the start
points of θ, and `multistart.py` the stage as a whole. An engine is a risk that minimises itself: `dense_engine.py`,
`sparse/` for many states, `markov/` for many times; `engine.py` chooses.
"""
