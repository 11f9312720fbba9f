"""Markov chain Monte Carlo: densities, samplers and convergence diagnostics."""
