"""The engine for many states, each coupled to a few: no large dense matrix anywhere.

`field` finds which equation depends on what, `risk` is the same risk with shared operators, `krylov` and
`preconditioner` make its steps. Imports from `matching` and before.
"""
