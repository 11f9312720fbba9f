"""The benchmark suite: a grid of runs, computed on one machine or many, kept in a durable store, and reported.

`grid.py` reads what to run, `runs.py` has its parts, `compute.py` does one run, `runner.py` all of them; `report/`
makes tables and figures.
"""
