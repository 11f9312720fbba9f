"""How observations scatter about what is predicted: one file per noise model, and one line in NOISE.

A noise model gives the log-likelihood of observations, its own parameters at their best, the weights of Gauss–Newton,
and draws. Imports from `problem`.
"""

# What users write → module and class.
NOISE = {"normal": ("normal", "Normal")}
