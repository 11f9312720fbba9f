"""The likelihood of trajectories: residuals, gradients and Gauss–Newton matrices, by collocation or forward
integration.

`likelihood.py` is the likelihood that all searches share, with `observation_operator.py` and
`variable_projection.py`. `refinement.py` maximises it along one collocated trajectory, `collocation_batch.py` along
many, `batch_likelihood.py` and `forward_batch.py` by forward integration, `event_refinement.py` where states trigger
events. `extension.py` goes beyond the data; `loglik.py` is the reference.
"""
