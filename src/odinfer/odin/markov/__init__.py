"""The engine for long series: the same risk in linear time, since a Matérn process is a Markov chain.

`risk` is the risk with the processes' states at every time beside z, `steps` its Gauss–Newton steps by one banded
matrix with a border for θ, `engine` what a fit sees. Imports from the folder above and before.
"""
