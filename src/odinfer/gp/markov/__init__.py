"""Gaussian processes of long series in linear time: a Matérn process is a Markov chain of its value and derivatives.

`chain` is the process at given times, with its sparse precision; `banded` the algebra of such matrices; `bins` joins
times that are closer than any process of interest can tell apart; `evidence` finds hyperparameters by chains. Imports
from the folder above and before.
"""
