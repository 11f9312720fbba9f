"""Population models (nonlinear mixed effects): parameters that vary between subjects, by the exact marginal likelihood.

`structure.py` has the population's parameters and the distribution of a subject's latent values, `subjects.py` the
trajectories and observations, `quadrature.py` and `nodes.py` the nodes, `modes.py` the modes, `marginal.py` the
likelihood with its approximations, `start.py` and `estimate.py` the maximum, `intervals.py` the profiles,
`posterior.py` and `simulation.py` draws, `result.py` the result with `summary.py`, `figures.py`, `report.py` and
`export.py`.
"""
