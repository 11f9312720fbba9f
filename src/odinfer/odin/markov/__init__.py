"""ODIN for long series in linear time, with Matérn processes as Markov chains.

`risk` is the risk with the processes' states at every time beside z, `steps` its Gauss–Newton steps by one banded
matrix with a border for θ, `engine` what a fit sees. Imports from the folder above and before.
"""
