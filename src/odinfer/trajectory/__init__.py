"""Exact solutions of the equations: from ODIN's estimate to the maximum of the likelihood.

`simulate` integrates forward; `collocation` are paths that need not solve the equations yet, `refine` carries one to
the maximum, `batch` many side by side, `continuation` does it for many states. `likelihood` is the one they share.
Imports from `matching` and before.
"""
