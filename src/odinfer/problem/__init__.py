"""The problem statement: model, data, prior knowledge, and the vector of unknowns.

A `Problem` (`problem.py`) joins a `Model` and `Data` with bounds, fixed values and priors, and has every check on
them. `parameter_vector.py` packs what is estimated along trajectories into one vector, `condition.py` is one
experiment for the solvers, `user_input.py`, `matching.py` and `from_table.py` build problems from what users pass.
"""
