"""Markov chain Monte Carlo: densities, samplers and convergence diagnostics.

Imports from `trajectory` and before.
"""
