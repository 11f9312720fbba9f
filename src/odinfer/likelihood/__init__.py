"""The likelihood of trajectories: residuals, gradients and Gauss–Newton matrices, by collocation or forward
integration.

`collocation` are paths that need not solve the equations yet, `refine` carries one to the maximum, `batch` many side by
side, `continuation` does it for many states; `bordered` are the matrices of many experiments that share parameters.
Where no mesh follows, `integrate` makes one forward in time; `finding` says in which order to look, and how. `simulate`
is for users, `likelihood` the one they all share. Imports from `matching` and before.
"""
