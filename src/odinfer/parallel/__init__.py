"""Independent tasks on this process, on worker processes or on a Dask cluster, with the same results from each.

`executor.py` schedules tasks and repeats those whose worker dies; `workers.py` has the processes; `store.py` keeps
results on disk, and `resume.py` computes what a store lacks.
"""
