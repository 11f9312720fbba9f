"""Gaussian processes of long series in linear time: a Matérn process is a Markov chain of its value and derivatives.

`state_space.py` is the process at given times with its sparse precision, `block_tridiagonal.py` the algebra of such
matrices; `binning.py` joins times that the process cannot distinguish; `evidence.py` finds hyperparameters.
"""
