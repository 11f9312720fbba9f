"""Optimisation building blocks: Levenberg–Marquardt, trust-region steps within bounds, arrow-shaped matrices.

Nothing here knows of differential equations.
"""
