"""Population models (nonlinear mixed effects): parameters that vary between subjects, by the exact marginal likelihood.

`structure.py` has the population's parameters and the distribution of a subject's latent values, `subjects.py` their
trajectories and observations, `quadrature.py` the nodes, `marginal.py` the likelihood with its approximations,
`estimate.py` the maximum, `intervals.py` the profiles, `result.py` what comes out.
"""
