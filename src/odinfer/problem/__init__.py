"""The problem statement: model, data, prior knowledge, and the vector of unknowns.

Text becomes a `Model` by `equations` and `expression`, a file or frame `Data` by `tables`; a `Problem` joins both with
bounds, fixed values and priors, and has every check on them. `unknowns` packs what is estimated along trajectories
into one vector. Imports nothing of the package but what stands at the top.
"""
