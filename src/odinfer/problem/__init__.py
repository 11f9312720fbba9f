"""What is asked: equations and data, what is known beforehand, and what is to be estimated.

Text becomes a `Model` by `equations` and `expression`, a file or frame `Data` by `tables`; a `Problem` joins both with
bounds, fixed values and priors, and has every check on them. `unknowns` packs what is estimated along trajectories
into one vector. Imports nothing of the package but what stands at the top.
"""
