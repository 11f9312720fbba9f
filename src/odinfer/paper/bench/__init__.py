"""The benchmark suite: a grid of runs, computed on one machine or many, kept in a durable store, and reported.

`grid` reads what to run, `runs` has its parts, `compute` does one run, `runner` all of them; `report/` makes tables
and figures. Imports from `selection`, `methods` and before.
"""
