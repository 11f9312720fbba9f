"""Fit one model to many series, and collect the fits in one table and one page.

`entry` is `odinfer.fit_each`, `job` one of its jobs, `row` what a table and a picture need of a fit, `fits` the
result; `outliers` finds series far from the rest; `summary`, `panels` and `page` show it. Imports from `methods`,
`result` and before.
"""
