"""Independent tasks on this process, on worker processes or on a Dask cluster, with the same results from each.

`executor` has the schedule and what becomes of tasks whose worker dies; `workers` are the processes. Imports nothing of
the package but what stands at the top.
"""
