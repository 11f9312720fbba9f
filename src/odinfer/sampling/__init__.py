"""Markov chains: the densities that are sampled, the samplers, and whether their draws can be believed.

Imports from `trajectory` and before.
"""
