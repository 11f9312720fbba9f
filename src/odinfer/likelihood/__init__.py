"""Exact solutions of the equations: from ODIN's estimate, or from nothing, to the maximum of the likelihood.

`collocation` are paths that need not solve the equations yet, `refine` carries one to the maximum, `batch` many side by
side, `continuation` does it for many states; `bordered` are the matrices of many experiments that share parameters.
Where no mesh follows, `integrate` makes one forward in time; `finding` says in which order to look, and how. `simulate`
is for users, `likelihood` the one they all share. Imports from `matching` and before.
"""
