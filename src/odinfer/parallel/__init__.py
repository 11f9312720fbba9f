"""Independent tasks on this process, on worker processes or on a Dask cluster, with the same results from each.

`executor` has the schedule and what becomes of tasks whose worker dies; `workers` are the processes; `store` keeps
results that must last, and `resume` computes what a store does not have yet. Imports nothing of the package but what
stands at the top.
"""
