"""ODIN for many states that are each coupled to a few.

`field` finds which equation depends on what, `risk` is the same risk with shared operators, `krylov` and
`preconditioner` make its steps. Imports from `matching` and before.
"""
