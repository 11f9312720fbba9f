"""Everything in the browser: `odinfer studio`, a local page on which data are dropped, models typed and fits looked at.

`server` has the addresses of the page, `guard` decides who may ask at all, `sessions` keeps what belongs to a tab, and
`lanes` are the processes in which everything runs that touches what a user brings: `desk` what must be quick (reading
tables and equations, with errors at their places), `work` what takes long (fits, comparisons, intervals). `javascript`
makes a module of a model, so that trajectories follow sliders without asking the server; `scripts` says the same in
commands and Python. The page itself lies in `page/`. Starlette and uvicorn are the extra `studio`. Imports from all
folders but `bench` and `command`.
"""
