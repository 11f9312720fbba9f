"""`odinfer studio`: a local web page for data, models, fits and comparisons.

`server` has the routes, `access` decides which requests are admitted, and `sessions` keeps the data and jobs of a tab.
Everything that touches input of a user runs in processes of `worker_process`: `interactive` reads tables and equations,
`initial_guess` finds values for the sliders, `jobs` runs fits, comparisons and intervals. `javascript` translates a
model, so that trajectories follow sliders without the server; `scripts` writes the same as commands and Python. The
page itself is in `page/`. Starlette and uvicorn are the extra `studio`.
"""
