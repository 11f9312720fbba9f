"""Fit one model to many series, and collect the fits in one table and one page.

`entry.py` is `od.fit_each`, `job.py` one of its jobs, `row.py` what tables and panels need of a fit, `fits.py` the
result; `outliers.py` finds unusual series; `summary.py`, `panels.py` and `page.py` show it.
"""
