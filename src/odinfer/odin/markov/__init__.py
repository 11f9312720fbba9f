"""ODIN for long series in linear time, with Matérn processes as Markov chains.

`risk.py` is the risk with the states of the Matérn processes at every time beside z, `banded_steps.py` its
Gauss–Newton steps by one banded matrix with a border for θ, `engine.py` what a fit uses.
"""
